/* The schemes of the systems that Margay follows, kept to be compared with: none needs to know more
 * of a kernel than where its blocks begin.
 *
 *   thread   GPU Ocelot, listing 1: a matrix [block][thread] of words in memory; at a block's head
 *            ld.global v, [at];  add v, v, 1;  st.global [at], v
 *   flux     CUDA Flux: the lowest active lane adds the number of active lanes to counter[block][CTA % 64]
 *   atomic   every thread adds 1 to counter[block]
 *
 * Counter 0 is that of calls which leave for uninstrumented callees.
 */
#include "count/schemes.h"

#include <stdlib.h>

#define BANKS     64
#define EMIT(...) EMIT_AT(x, __VA_ARGS__)

struct seed {
    struct mg_emit x;
    const struct mg_counter_opts *o;
    mg_id base; /* address of counter 0 for this thread */
    mg_id step; /* thread: bytes from counter to counter */
    mg_id mine, at, value, mask, lane, n, lowest, always;
    bool ballot;
};

static void emit_begin(struct seed *e)
{
    struct mg_emit *x = &e->x;
    x->at = x->t->entry_at[x->ix];
    e->mine = mg_count_mine(x, e->o);
    e->base = mg_emit_reg(x, "__mg_base", MG_TYPE_b64);
    e->value = mg_emit_reg(x, "__mg_n", MG_TYPE_b64);
    EMIT("ld.global.u64", e->base, mg_o_addr_reg(x->ctx, MG_CTX_COUNTERS));
    if (e->o->scheme == MG_SCHEME_ATOMIC) return;
    mg_id cta = mg_emit_linear(x, MG_SREG_ctaid, MG_SREG_nctaid);
    if (e->o->scheme == MG_SCHEME_FLUX) {
        EMIT("and.b64", cta, cta, BANKS - 1);
        EMIT("mad.lo.u64", e->base, cta, 8, e->base);
        e->mask = mg_emit_reg(x, "__mg_m", MG_TYPE_b32);
        e->n = mg_emit_reg(x, "__mg_t", MG_TYPE_b32);
        e->lane = mg_emit_reg(x, "__mg_lane", MG_TYPE_b32);
        e->lowest = mg_emit_reg(x, "__mg_p", MG_TYPE_pred);
        EMIT("mov.u32", e->lane, mg_o_sreg(MG_SREG_laneid, 0));
        if (!e->ballot) return;
        e->always = mg_emit_reg(x, "__mg_true", MG_TYPE_pred);
        EMIT("setp.eq.u32", e->always, e->lane, e->lane);
        return;
    }
    mg_id thread = mg_emit_linear(x, MG_SREG_tid, MG_SREG_ntid), block = mg_emit_reg(x, "__mg_threads", MG_TYPE_b64);
    mg_id extent = mg_emit_reg(x, "__mg_e", MG_TYPE_b32), wide = mg_emit_reg(x, "__mg_w", MG_TYPE_b64);
    e->step = mg_emit_reg(x, "__mg_step", MG_TYPE_b64);
    e->at = mg_emit_reg(x, "__mg_at", MG_TYPE_b64);
    static const enum mg_sreg extents[] = {MG_SREG_ntid, MG_SREG_nctaid};
    EMIT("mov.u64", e->step, 8);
    for (unsigned k = 0; k < 6; k++) { /* threads of a CTA, then CTAs */
        EMIT("mov.u32", extent, mg_o_sreg(extents[k / 3], (uint8_t)(1 + k % 3)));
        EMIT("cvt.u64.u32", wide, extent);
        EMIT("mul.lo.u64", e->step, e->step, wide);
        if (k == 2) EMIT("mov.u64", block, e->step);
    }
    /* 8 * (CTA * threads of a CTA + thread) */
    EMIT("mad.lo.u64", e->base, cta, block, e->base);
    EMIT("mad.lo.u64", e->base, thread, 8, e->base);
}

static void emit_block(struct seed *e, uint32_t block, uint32_t counter)
{
    struct mg_emit *x = &e->x;
    x->at = mg_block_head(x->m, &x->c->blocks[block]);
    mg_emit_guard(x, e->mine, false);
    switch (e->o->scheme) {
    case MG_SCHEME_THREAD:
        EMIT("mad.lo.u64", e->at, e->step, mg_o_imm(counter), e->base);
        EMIT("ld.global.u64", e->value, mg_o_addr_reg(e->at, 0));
        EMIT("add.u64", e->value, e->value, 1);
        EMIT("st.global.u64", mg_o_addr_reg(e->at, 0), e->value);
        break;
    case MG_SCHEME_FLUX:
        mg_emit_guard(x, 0, false);
        if (e->ballot)
            EMIT("vote.ballot.b32", e->mask, e->always);
        else
            EMIT("activemask.b32", e->mask);
        EMIT("brev.b32", e->n, e->mask); /* the lowest bit's number: as CUDA Flux finds it */
        EMIT("bfind.shiftamt.u32", e->n, e->n);
        EMIT("setp.eq.u32", e->lowest, e->n, e->lane);
        EMIT("popc.b32", e->n, e->mask);
        EMIT("cvt.u64.u32", e->value, e->n);
        mg_emit_guard_by(x, e->mine, false, e->lowest);
        EMIT("red.global.add.u64", mg_o_addr_reg(e->base, (int64_t)8 * BANKS * counter), e->value);
        break;
    default:
        EMIT("red.global.add.u64", mg_o_addr_reg(e->base, (int64_t)8 * counter), 1);
        break;
    }
    mg_emit_guard(x, 0, false);
}

enum mg_err mg_count_by_seed(const struct mg_counter_opts *o, const struct mg_sites *s, struct mg_twin *t,
                             struct mg_counter_layout *l, struct mg_diag *d)
{
    bool ballot = false, flux = o->scheme == MG_SCHEME_FLUX;
    *l = (struct mg_counter_layout){.n_counters = s->n_blocks + 1,
                                    .n_blocks = s->n_blocks,
                                    .counter_words = flux ? BANKS : 1,
                                    .copy_words = 1,
                                    .n_copies = flux                            ? BANKS
                                                : o->scheme == MG_SCHEME_THREAD ? 0
                                                                                : 1,
                                    .other_at = t->n_native_calls ? 0 : UINT32_MAX};
    l->threads = mg_xcalloc(s->n_blocks + 1, sizeof *l->threads);
    for (uint32_t i = 0; i < s->n_blocks; i++) l->threads[i] = i + 1;
    if (flux && !mg_choose_mask(t->m, &ballot))
        return mg_diag_err(d, MG_ERR_UNSUPPORTED, "counters=flux asks which lanes are active: PTX for sm_20 or later");
    for (uint32_t i = 0; i < t->n_funcs; i++) {
        struct seed e = {.o = o,
                         .x = {.t = t, .m = t->m, .c = s->cfgs[i], .ix = i, .func = t->funcs[i], .ctx = t->ctx_reg[i]},
                         .ballot = ballot};
        if (!s->cfgs[i]->n_blocks) continue;
        emit_begin(&e);
        for (uint32_t b = 0; b < s->cfgs[i]->n_blocks; b++) emit_block(&e, b, s->first_block[i] + b + 1);
    }
    mg_count_others(t, l);
    return MG_ERR_OK;
}
