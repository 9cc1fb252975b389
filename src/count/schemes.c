/* Inserting the counters of blocks into a twin: the scheme that the options name, and what all schemes share.
 *
 *   class      by_class.c   a counter for every class of equally frequent blocks; cheapest on emu and cpu
 *   register   by_register.c the fewest counters that determine all blocks; cheapest on a GPU
 *   thread, flux, atomic   by_seed.c   those of GPU Ocelot, CUDA Flux, and the plainest one, to compare with
 *
 * All of them count the same on every device. */
#include "count/schemes.h"

#define EMIT(...) EMIT_AT(x, __VA_ARGS__)

enum { GPU_COPIES = 64 };

struct mg_counter_opts mg_counter_opts_for(bool gpu, uint32_t sm)
{
    struct mg_counter_opts o = {.scheme = gpu ? MG_SCHEME_REGISTER : MG_SCHEME_CLASS,
                                .shards = gpu ? GPU_COPIES : 1,
                                .registers = 32,
                                .sm = sm};
    o.warps = !gpu;
    return o;
}

bool mg_counter_opts_equal(const struct mg_counter_opts *a, const struct mg_counter_opts *b)
{
    bool same_threads = a->scope == b->scope && a->cta == b->cta && a->warp == b->warp && a->each == b->each;
    return same_threads && a->warps == b->warps && a->scheme == b->scheme && a->shards == b->shards &&
           a->registers == b->registers && a->sm == b->sm && a->weights == b->weights;
}

enum mg_err mg_count_insert(const struct mg_counter_opts *o, const struct mg_sites *s, struct mg_twin *t,
                            struct mg_counter_layout *l, struct mg_buf *plan, struct mg_diag *d)
{
    enum mg_err err;
    if (s->n_funcs != t->n_funcs) return mg_diag_err(d, MG_ERR_STATE, "sites and twin are of different kernels");
    switch (o->scheme) {
    case MG_SCHEME_REGISTER:
        err = mg_count_by_register(o, s, t, l, plan, d);
        break;
    case MG_SCHEME_CLASS:
        err = mg_count_by_class(o, s, t, l, d);
        break;
    default:
        err = mg_count_by_seed(o, s, t, l, d);
        break;
    }
    if (plan && !err && o->scheme != MG_SCHEME_REGISTER) mg_count_dump_layout(s, l, plan);
    l->scope = o->scope;
    l->cta = o->cta;
    l->warp = o->warp;
    l->each = o->each;
    return err;
}

mg_id mg_count_mine(struct mg_emit *x, const struct mg_counter_opts *o)
{
    if (o->scope == MG_COUNT_FULL) return 0;
    mg_id mine = mg_emit_reg(x, "__mg_mine", MG_TYPE_pred), cta = mg_emit_linear(x, MG_SREG_ctaid, MG_SREG_nctaid);
    EMIT("setp.eq.u64", mine, cta, (int64_t)o->cta);
    if (o->scope != MG_COUNT_WARP) return mine;
    if (!x->both) x->both = mg_emit_reg(x, "__mg_both", MG_TYPE_pred);
    mg_id thread = mg_emit_linear(x, MG_SREG_tid, MG_SREG_ntid);
    EMIT("shr.u64", thread, thread, 5);
    EMIT("setp.eq.u64", x->both, thread, mg_o_imm(o->warp));
    EMIT("and.pred", mine, mine, x->both);
    return mine;
}

void mg_count_others(struct mg_twin *t, const struct mg_counter_layout *l)
{
    for (uint32_t i = 0; i < t->n_native_calls; i++) {
        mg_id node = t->native_calls[i], func = 0;
        uint32_t ix = 0;
        for (uint32_t f = 0; f < t->n_funcs && !func; f++) MG_EACH_NODE(t->m, &t->m->funcs.at[t->funcs[f]], id)
        if (id == node) {
            func = t->funcs[f];
            ix = f;
        }
        if (!func) continue;
        mg_id base = mg_module_add_reg(t->m, func, "__mg_other", MG_TYPE_b64);
        mg_id ld = MG_INSERT(t->m, func, node, "ld.global.u64", base, mg_o_addr_reg(t->ctx_reg[ix], MG_CTX_COUNTERS));
        mg_id red = MG_INSERT(t->m, func, node, "red.global.add.u64",
                              mg_o_addr_reg(base, 8 * (int64_t)l->other_at * l->counter_words), 1);
        t->m->nodes.at[ld].guard = t->m->nodes.at[red].guard = t->native_guards[i];
    }
}
