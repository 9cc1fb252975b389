/* Local memory, for what registers are too few for: words of 64 bits, and bytes for what happens at most once. Both lie
 * in one array of the function's, words first, saved banks of bits (saved.c) behind. */
#include "count/storage/storage.h"

#include <stdio.h>

#define EMIT(...)     EMIT_AT(x, __VA_ARGS__)
#define MOST_UNROLLED 48 /* words that are zeroed one by one */

void mg_rc_add_local_array(struct mg_rfunc *f)
{
    struct mg_module *m = f->x.m;
    char name[32];
    mg_id var = m->vars.n, decl = m->decls.n;
    snprintf(name, sizeof name, "__mg_local%u", (unsigned)var);
    struct mg_var v = {.name = mg_intern_adds(&m->names, name),
                       .space = MG_SPACE_local,
                       .type = MG_TYPE_b64,
                       .align = 8,
                       .n_dims = 1,
                       .func = f->x.func};
    v.dims = mg_arena_array(&m->arena, uint64_t, 1);
    v.dims[0] = f->local.n_words + (f->local.n_bytes + 7) / 8;
    f->packed.saved_off = (uint32_t)(8 * v.dims[0]);
    if (f->packed.n_cuts) v.dims[0] += f->packed.n_cuts / 2 + 1;
    *mg_vec_push(&m->vars) = v;
    *mg_vec_push(&m->decls) = (struct mg_decl){.space = MG_SPACE_local, .type = MG_TYPE_b64, .first = var, .n = 1};
    mg_node_insert_after(m, f->x.func, 0, mg_node_new_kind(m, MG_NODE_decl, decl));
    f->local.var = var;
    f->local.reg = mg_emit_reg(&f->x, "__mg_locals", MG_TYPE_b64);
    if (f->local.n_bytes) f->local.flagged = mg_emit_reg(&f->x, "__mg_flagged", MG_TYPE_b32);
}

static mg_id local_at(struct mg_rfunc *f, const struct mg_rc *c, int64_t *off)
{
    uint32_t at = c->slot - f->n_bits - f->n_words;
    *off = c->kind == MG_RC_LOCAL ? 8 * (int64_t)at : 7 * (int64_t)f->local.n_words + at;
    return f->local.reg;
}

/* A loop over the local array: i from 0, address in mg_rc_t64(1). */
mg_id mg_rc_begin_locals(struct mg_rfunc *f)
{
    struct mg_emit *x = &f->x;
    mg_id again = mg_rc_label(f);
    EMIT("mov.u64", mg_rc_t64(f, 1), 0);
    mg_rc_put_label(f, again);
    EMIT("add.u64", mg_rc_t64(f, 2), f->local.reg, mg_rc_t64(f, 1));
    return again;
}

void mg_rc_end_locals(struct mg_rfunc *f, mg_id again, uint32_t n_words)
{
    struct mg_emit *x = &f->x;
    EMIT("add.u64", mg_rc_t64(f, 1), mg_rc_t64(f, 1), 8);
    EMIT("setp.lt.u64", mg_rc_tp(f, 0), mg_rc_t64(f, 1), mg_o_imm(8 * (int64_t)n_words));
    mg_rc_branch(f, mg_rc_tp(f, 0), false, again);
}

static void local_begin(struct mg_rfunc *f, bool at_call)
{
    struct mg_emit *x = &f->x;
    if (at_call || !f->local.var) return;
    EMIT("mov.u64", f->local.reg, mg_o_var(f->local.var));
    if (f->packed.n_cuts) EMIT("mov.u32", f->packed.saved_at, 0);
    if (f->local.n_bytes) EMIT("mov.u32", f->local.flagged, 0);
    const uint32_t n_words = f->local.n_words + (f->local.n_bytes + 7) / 8;
    for (uint32_t i = 0; i < n_words && n_words <= MOST_UNROLLED; i++)
        EMIT("st.local.u64", mg_o_addr_reg(f->local.reg, 8 * (int64_t)i), 0);
    if (n_words <= MOST_UNROLLED) return;
    mg_id again = mg_rc_begin_locals(f);
    EMIT("st.local.u64", mg_o_addr_reg(mg_rc_t64(f, 2), 0), 0);
    mg_rc_end_locals(f, again, n_words);
}

/* ---- words ------------------------------------------------------------------------------------------- */

static const char *local_holds(const struct mg_kinds *k, const struct mg_wanted *w)
{
    (void)w;
    return k->cells + k->need > MG_COUNTER_CELLS ? "registers for counters are full" : NULL;
}

static void local_take(struct mg_kinds *k, const struct mg_wanted *w)
{
    (void)k, (void)w;
} /* places are given out at the end */

/* The word becomes the sum of itself and v; both temporaries of the counter's. */
static void local_event(struct mg_rfunc *f, uint32_t counter)
{
    struct mg_emit *x = &f->x;
    int64_t off;
    mg_id base = local_at(f, &f->counters[counter], &off), v = mg_rc_t64(f, 0);
    EMIT("ld.local.u64", v, mg_o_addr_reg(base, off));
    EMIT("add.u64", v, v, 1);
    EMIT("st.local.u64", mg_o_addr_reg(base, off), v);
}

static void local_add(struct mg_rfunc *f, uint32_t counter, mg_id d, bool wide, struct mg_spot s)
{
    struct mg_emit *x = &f->x;
    int64_t off;
    mg_id base = local_at(f, &f->counters[counter], &off), all = wide ? d : mg_emit_reg(x, "__mg_v", MG_TYPE_u64);
    (void)s;
    if (!wide) EMIT("cvt.u64.u32", all, d);
    mg_id sum = mg_emit_reg(x, "__mg_v", MG_TYPE_u64);
    EMIT("ld.local.u64", sum, mg_o_addr_reg(base, off));
    EMIT("add.u64", sum, sum, all);
    EMIT("st.local.u64", mg_o_addr_reg(base, off), sum);
}

static void local_clear(struct mg_rfunc *f, const struct mg_rc *c, bool at_call)
{
    struct mg_emit *x = &f->x;
    int64_t off;
    mg_id base = local_at(f, c, &off);
    if (at_call)
        EMIT("st.local.u64", mg_o_addr_reg(base, off),
             0); /* without a branch; at the entry the whole array becomes 0 */
}

static struct mg_opnd local_lane(struct mg_rfunc *f, const struct mg_rc *c, mg_id p)
{
    struct mg_emit *x = &f->x;
    int64_t off;
    mg_id at = local_at(f, c, &off), wide = mg_rc_t64(f, 0);
    EMIT("ld.local.u64", wide, mg_o_addr_reg(at, off));
    EMIT("setp.ne.u64", p, wide, 0);
    return mg_o_reg(wide);
}

/* Jumps to `slow`, for what is no whole warp, or where some lane's word does not fit a sum of 32 bits. Else each lane
 * takes the sum of the word of its number, of the next 32 words at a time. */
static void flush_whole(struct mg_rfunc *f, const struct mg_flush *w, mg_id slow)
{
    struct mg_emit *x = &f->x;
    mg_id all = mg_rc_t64(f, 1), v = mg_rc_t64(f, 0), mine = mg_rc_t32(f, MG_FLUSH_VALUE), one = mg_rc_t32(f, 5),
          p = mg_rc_tp(f, 1);
    for (uint32_t i = 0; i < f->local.n_words; i++) {
        EMIT("ld.local.u64", i ? v : all, mg_o_addr_reg(f->local.reg, 8 * (int64_t)i));
        if (i) EMIT("or.b64", all, all, v);
    }
    EMIT("setp.ne.u32", p, w->mask, -1);
    EMIT("setp.gt.or.u64", p, all, (1 << 27) - 1, p);
    mg_flush_any(f, p);
    mg_rc_branch(f, p, false, slow);
    for (uint32_t first = 0; first < f->local.n_words; first += 32) {
        EMIT("mov.u32", mine, 0);
        for (uint32_t i = first; i < MG_MIN(first + 32, f->local.n_words); i++) {
            EMIT("ld.local.u32", one, mg_o_addr_reg(f->local.reg, 8 * (int64_t)i));
            mg_flush_sum(f, one, one, 0);
            EMIT("setp.eq.u32", p, w->rank, mg_o_imm(i - first));
            EMIT("selp.b32", mine, one, mine, p);
        }
        EMIT("mad.wide.u32", all, w->rank, 8, w->base);
        EMIT("cvt.u64.u32", v, mine);
        EMIT("setp.ne.u32", p, mine, 0);
        mg_emit_guard(x, p, false);
        EMIT("red.global.add.u64", mg_o_addr_reg(all, 8 * (int64_t)(f->n_bits + f->n_words + first)), v);
        mg_emit_guard(x, 0, false);
    }
}

/* Counter by counter. */
static void flush_each(struct mg_rfunc *f, const struct mg_flush *w)
{
    struct mg_emit *x = &f->x;
    mg_id again = mg_rc_begin_locals(f), next = mg_rc_label(f), slow = mg_rc_label(f), v = mg_rc_t64(f, 0),
          p = mg_rc_tp(f, 1), q = mg_rc_tp(f, 2), one = mg_rc_tp(f, 3);
    struct mg_opnd to = mg_o_addr_reg(mg_rc_t64(f, 2), 8 * (int64_t)(f->n_bits + f->n_words));
    EMIT("ld.local.u64", v, mg_o_addr_reg(mg_rc_t64(f, 2), 0));
    EMIT("add.u64", mg_rc_t64(f, 2), w->base, mg_rc_t64(f, 1));
    EMIT("setp.ne.u64", one, v, 0);
    EMIT("mov.pred", p, one);
    mg_flush_any(f, p);
    mg_rc_branch(f, p, true, next);
    EMIT("setp.gt.u64", q, v, (1 << 27) - 1);
    mg_flush_any(f, q);
    if (!f->redux) {
        EMIT("setp.ne.u32", p, mg_rc_t32(f, MG_FLUSH_MASK), -1);
        EMIT("or.pred", q, q, p);
    }
    mg_rc_branch(f, q, false, slow);
    EMIT("cvt.u32.u64", mg_rc_t32(f, MG_FLUSH_SHIFT), v);
    mg_flush_sum(f, mg_rc_t32(f, MG_FLUSH_VALUE), mg_rc_t32(f, MG_FLUSH_SHIFT),
                 f->redux ? mg_flush_lowest(f, one, mg_rc_t64(f, 1)) : 0);
    EMIT("cvt.u64.u32", v, mg_rc_t32(f, MG_FLUSH_VALUE));
    if (!f->redux) EMIT("setp.eq.u32", one, mg_rc_t32(f, MG_FLUSH_RANK), 0);
    mg_rc_put_label(f, slow);
    mg_emit_guard(x, one, false);
    EMIT("red.global.add.u64", to, v);
    mg_emit_guard(x, 0, false);
    mg_rc_put_label(f, next);
    mg_rc_end_locals(f, again, f->local.n_words);
}

static void local_flush(struct mg_rfunc *f, const struct mg_flush *w)
{
    if (!f->redux || !f->local.n_words || f->local.n_words > MOST_UNROLLED) {
        flush_each(f, w);
        return;
    }
    mg_id slow = mg_rc_label(f), done = mg_rc_label(f);
    flush_whole(f, w, slow);
    mg_rc_branch(f, 0, false, done);
    mg_rc_put_label(f, slow);
    flush_each(f, w);
    mg_rc_put_label(f, done);
}

const struct mg_storage mg_storage_local = {.name = "local",
                                            .in_memory = true,
                                            .holds = local_holds,
                                            .take = local_take,
                                            .event = local_event,
                                            .add = local_add,
                                            .begin = local_begin,
                                            .clear = local_clear,
                                            .lane = local_lane,
                                            .flush = local_flush};

/* ---- bytes ------------------------------------------------------------------------------------------- */

static const char *flag_holds(const struct mg_kinds *k, const struct mg_wanted *w)
{
    (void)k;
    return w->width == MG_WIDTH_BIT ? "at most once in an activation, and packed registers are full" : NULL;
}

static void flag_take(struct mg_kinds *k, const struct mg_wanted *w)
{
    (void)w;
    k->f->local.n_bytes++;
}

static void flag_event(struct mg_rfunc *f, uint32_t counter)
{
    struct mg_emit *x = &f->x;
    int64_t off;
    mg_id base = local_at(f, &f->counters[counter], &off);
    EMIT("st.local.u8", mg_o_addr_reg(base, off), 1);
    EMIT("mov.u32", f->local.flagged, 1);
}

static void flag_clear(struct mg_rfunc *f, const struct mg_rc *c, bool at_call)
{
    struct mg_emit *x = &f->x;
    int64_t off;
    mg_id base = local_at(f, c, &off);
    if (at_call) EMIT("st.local.u8", mg_o_addr_reg(base, off), 0);
}

static struct mg_opnd flag_lane(struct mg_rfunc *f, const struct mg_rc *c, mg_id p)
{
    struct mg_emit *x = &f->x;
    int64_t off;
    mg_id at = local_at(f, c, &off), bit = mg_rc_t32(f, 7);
    EMIT("ld.local.u8", bit, mg_o_addr_reg(at, off));
    EMIT("setp.ne.u32", p, bit, 0);
    return mg_o_imm(1);
}

static mg_id flag_told(const struct mg_rfunc *f, const struct mg_rc *c)
{
    (void)c;
    return f->local.flagged;
}

/* Bytes in local memory, if any is set, four at a time: their sums over a warp stay below 256. */
static void flag_flush(struct mg_rfunc *f, const struct mg_flush *w)
{
    struct mg_emit *x = &f->x;
    mg_id none = mg_rc_label(f);
    EMIT("setp.ne.u32", mg_rc_tp(f, 1), f->local.flagged, 0);
    mg_flush_any(f, mg_rc_tp(f, 1));
    mg_rc_branch(f, mg_rc_tp(f, 1), true, none);
    mg_id again = mg_rc_begin_locals(f), next = mg_rc_label(f), slow = mg_rc_label(f), v = mg_rc_t32(f, MG_FLUSH_VALUE),
          sum = mg_rc_t32(f, MG_FLUSH_SHIFT), t = mg_rc_t32(f, 5), p = mg_rc_tp(f, 1), own = mg_rc_t64(f, 3);
    int64_t slots = 8 * (int64_t)(f->n_bits + f->n_words + f->local.n_words);
    /* the loop's counter goes by words of 8 bytes: two halves a round, each 4 flags */
    for (uint32_t half = 0; half < 2; half++) {
        if (half) {
            mg_rc_put_label(f, next);
            next = mg_rc_label(f);
            slow = mg_rc_label(f);
            EMIT("add.u64", mg_rc_t64(f, 2), f->local.reg, mg_rc_t64(f, 1));
        }
        EMIT("ld.local.u32", v, mg_o_addr_reg(mg_rc_t64(f, 2), 8 * (int64_t)f->local.n_words + 4 * half));
        EMIT("setp.ne.u32", p, v, 0);
        mg_flush_any(f, p);
        mg_rc_branch(f, p, true, next);
        EMIT("mad.lo.u64", own, mg_rc_t64(f, 1), 8, w->base);
        mg_id here = f->redux ? mg_flush_lowest(f, p, mg_rc_t64(f, 1)) : mg_rc_t32(f, MG_FLUSH_MASK),
              rank = f->redux ? mg_rc_t32(f, 6) : w->rank; /* among those here; the flush's own is asked for later */
        if (f->redux) {
            EMIT("popc.b32", rank, t);
            mg_flush_sum(f, sum, v, here);
        }
        EMIT("popc.b32", t, here);
        EMIT("setp.lt.u32", p, t, mg_o_imm(f->redux ? 4 : 32));
        mg_rc_branch(f, p, false, slow);
        if (!f->redux) mg_flush_sum(f, sum, v, 0);
        EMIT("shl.b32", t, rank, 3);
        EMIT("shr.u32", sum, sum, t);
        EMIT("and.b32", sum, sum, 255);
        EMIT("setp.ne.u32", p, sum, 0);
        EMIT("cvt.u64.u32", mg_rc_t64(f, 0), sum);
        EMIT("mad.wide.u32", mg_rc_t64(f, 2), rank, 8, own);
        mg_emit_guard(x, p, false);
        EMIT("red.global.add.u64", mg_o_addr_reg(mg_rc_t64(f, 2), slots + 32 * half), mg_rc_t64(f, 0));
        mg_emit_guard(x, 0, false);
        mg_rc_branch(f, 0, false, next);
        mg_rc_put_label(f, slow);
        for (uint32_t k = 0; k < 4; k++) {
            EMIT("and.b32", t, v, (int64_t)1 << 8 * k);
            EMIT("setp.ne.u32", p, t, 0);
            mg_emit_guard(x, p, false);
            EMIT("red.global.add.u64", mg_o_addr_reg(own, slots + 32 * half + 8 * k), 1);
            mg_emit_guard(x, 0, false);
        }
    }
    mg_rc_put_label(f, next);
    mg_rc_end_locals(f, again, (f->local.n_bytes + 7) / 8);
    mg_rc_put_label(f, none);
}

const struct mg_storage mg_storage_flag = {.name = "flag",
                                           .in_memory = true,
                                           .holds = flag_holds,
                                           .take = flag_take,
                                           .event = flag_event,
                                           .clear = flag_clear,
                                           .lane = flag_lane,
                                           .told = flag_told,
                                           .flush = flag_flush};
