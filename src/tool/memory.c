/* memory: what each memory instruction asks of the memory system: accesses, bytes, requests, 32-byte
 * sectors, 128-byte lines, strides and bank conflicts, aggregated in the kernel, without a trace.
 *
 *   access    one thread executes the instruction         request   one warp does, with at least one lane
 *   sector    an aligned 32 bytes of global, local or constant memory that a request touches; line: 128
 *   conflict  shared memory has 32 banks of 4 bytes; a request is served in groups of lanes that ask for 128
 *             bytes together (all 32 with up to 4 bytes a lane, halves with 8, quarters with 16). A group
 *             takes as many passes as its busiest bank has different words: those beyond the first count
 *
 * level=bytes counts accesses and bytes alone: from block counts, guarded instructions in a register.
 * level=full classifies each request. The two cheap patterns, all lanes at one address and neighbours in
 * order, are told by match.all and cost one cell; the rest is counted lane against lane by match.any.
 * This file: what is inserted. memory_report.c: what is shown. */
#include <stdlib.h>

#include "analysis/space.h"
#include "tool/memory.h"

static const char *const levels[] = {"full", "bytes", NULL}; /* ORDER mg_memory_level */
static const struct mg_tool_opt memory_opts[] = {
    {"level", "full", "full: requests, sectors, strides, bank conflicts; bytes: accesses and bytes alone, next to nothing"},
    {0},
};
static const struct mg_field memory_fields[] = {{"level", MG_FIELD_CHOICE, offsetof(struct mg_memory_opts, level), 0, 0, levels}, {0}};

static enum mg_err memory_configure(const char *args, void **conf, struct mg_diag *d)
{
    const struct mg_memory_opts defaults = {.level = MG_MEMORY_FULL};
    return mg_fields_parse("memory", memory_fields, &defaults, sizeof defaults, args, conf, d);
}

static enum mg_err memory_analyze(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    const struct mg_memory_opts *o = conf;
    const struct mg_module *m = mg_patch_module(p);
    if (o->level == MG_MEMORY_FULL && m->sm < 70)
        return mg_diag_err(d, MG_ERR_UNSUPPORTED, "tool memory, level=full: the PTX is for sm_%u, warps are matched from sm_70 on", m->sm);
    mg_patch_want_blocks(p, false);
    return MG_ERR_OK;
}

/* ---- one request -------------------------------------------------------------------------------------- */

#define R mg_o_reg
#define I mg_o_imm
#define EMIT(form, ...) MG_CODE(q->at, form, __VA_ARGS__)

struct request { /* code of one site under work */
    struct mg_code_at *at;
    struct mg_module *m;
    mg_id here, active;        /* lanes at the spot; of these, those that make the access */
    mg_id makes;               /* predicate: this lane does; 0: all here do */
    bool makes_not;
    mg_id lead;                /* predicate: the lowest of them, which writes */
    mg_id addr;                /* b64 */
    uint32_t bytes, cell;      /* of a lane; the site's first */
    mg_id same, unit, full;    /* predicates, alike in all lanes that make the access */
    mg_id pattern;             /* b32: which of the patterns' cells */
};

static mg_id reg32(struct request *q) { return mg_code_temp(q->at, MG_TYPE_b32); }
static mg_id reg64(struct request *q) { return mg_code_temp(q->at, MG_TYPE_b64); }
static mg_id pred(struct request *q) { return mg_code_temp(q->at, MG_TYPE_pred); }

static int64_t log2_of(uint32_t v)
{
    int64_t n = 0;
    while (v > 1) v >>= 1, n++;
    return n;
}

static void begin_access(struct request *q) { mg_code_push_guard(q->at, q->makes, q->makes_not); }
static void end_access(struct request *q) { mg_code_pop_guard(q->at); }

/* A predicate that is false in lanes that do not make the access; inside begin_access. */
static mg_id false_elsewhere(struct request *q)
{
    mg_id p = pred(q);
    end_access(q);
    EMIT("setp.ne.u32", R(p), R(q->here), R(q->here));
    begin_access(q);
    return p;
}

/* Do all lanes that make the access hold one value? */
static mg_id all_equal(struct request *q, mg_id value)
{
    mg_id p = q->makes ? false_elsewhere(q) : pred(q), mask = reg32(q), pair = mg_opnd_alloc(q->m, 2);
    q->m->opnds.at[pair] = R(mask);
    q->m->opnds.at[pair + 1] = R(p);
    EMIT("match.all.sync.b64", (struct mg_opnd){.kind = MG_OPND_pair, .id = pair, .n = 2}, R(value), R(q->active));
    return p;
}

/* The lanes and the one that writes; patterns that all lanes share. */
static void classify(struct request *q)
{
    struct mg_code_at *at = q->at;
    begin_access(q);
    mg_id low = reg32(q), rev = reg32(q), base = reg64(q), lane = reg64(q), plain = reg32(q), aligned = pred(q);
    q->lead = q->makes ? false_elsewhere(q) : pred(q);
    q->full = pred(q);
    EMIT("brev.b32", R(rev), R(q->active));
    EMIT("clz.b32", R(low), R(rev));
    EMIT("setp.eq.u32", R(q->lead), R(low), R(mg_value_lane(at)));
    EMIT("setp.eq.u32", R(q->full), R(q->active), I(0xffffffff));
    EMIT("mul.wide.u32", R(lane), R(mg_value_lane(at)), I(q->bytes));
    EMIT("sub.u64", R(base), R(q->addr), R(lane));
    q->same = all_equal(q, q->addr);
    q->unit = all_equal(q, base);
    EMIT("cvt.u32.u64", R(low), R(base));
    EMIT("and.b32", R(low), R(low), I(127));
    EMIT("setp.eq.and.u32", R(aligned), R(low), I(0), R(q->full));
    q->pattern = reg32(q);
    EMIT("selp.u32", R(plain), I(MG_MC_ALIGNED - MG_MC_SAME), I(MG_MC_UNIT - MG_MC_SAME), R(aligned));
    EMIT("selp.u32", R(q->pattern), R(plain), I(MG_MC_IRREGULAR - MG_MC_SAME), R(q->unit));
    EMIT("selp.u32", R(q->pattern), I(0), R(q->pattern), R(q->same));
    end_access(q);
}

/* Jumps to `to` when no lane makes an access whose pattern is a higher one than `most`. */
static void unless_beyond(struct request *q, uint32_t most, mg_id to)
{
    begin_access(q);
    mg_id beyond = q->makes ? false_elsewhere(q) : pred(q), any = pred(q);
    EMIT("setp.gt.u32", R(beyond), R(q->pattern), I(most - MG_MC_SAME));
    end_access(q);
    EMIT("vote.sync.any.pred", R(any), R(beyond), R(q->here));
    mg_code_push_guard(q->at, any, true);
    EMIT("bra", mg_o_label(to));
    mg_code_pop_guard(q->at);
}

/* One stride between neighbours, of 32 lanes: its size. */
static void classify_stride(struct request *q)
{
    begin_access(q);
    mg_id lo = reg32(q), hi = reg32(q), next = reg64(q), step = reg64(q), last = pred(q), size = reg32(q), p = pred(q), first = reg64(q);
    mg_id halves = mg_opnd_alloc(q->m, 2), joined = mg_opnd_alloc(q->m, 2);
    q->m->opnds.at[halves] = R(lo), q->m->opnds.at[halves + 1] = R(hi);
    q->m->opnds.at[joined] = R(lo), q->m->opnds.at[joined + 1] = R(hi);
    EMIT("mov.b64", (struct mg_opnd){.kind = MG_OPND_vec, .id = halves, .n = 2}, R(q->addr));
    EMIT("shfl.sync.down.b32", R(lo), R(lo), I(1), I(31), R(q->active));
    EMIT("shfl.sync.down.b32", R(hi), R(hi), I(1), I(31), R(q->active));
    EMIT("mov.b64", R(next), (struct mg_opnd){.kind = MG_OPND_vec, .id = joined, .n = 2});
    EMIT("sub.u64", R(step), R(next), R(q->addr));
    /* Lane 31 has no neighbour: it takes lane 0's step, so that all may be compared. */
    mg_id step_lo = reg32(q), step_hi = reg32(q), from = mg_opnd_alloc(q->m, 2), to = mg_opnd_alloc(q->m, 2);
    q->m->opnds.at[from] = R(step_lo), q->m->opnds.at[from + 1] = R(step_hi);
    q->m->opnds.at[to] = R(step_lo), q->m->opnds.at[to + 1] = R(step_hi);
    EMIT("mov.b64", (struct mg_opnd){.kind = MG_OPND_vec, .id = from, .n = 2}, R(step));
    EMIT("shfl.sync.idx.b32", R(step_lo), R(step_lo), I(0), I(31), R(q->active));
    EMIT("shfl.sync.idx.b32", R(step_hi), R(step_hi), I(0), I(31), R(q->active));
    EMIT("mov.b64", R(first), (struct mg_opnd){.kind = MG_OPND_vec, .id = to, .n = 2});
    EMIT("setp.eq.u32", R(last), R(mg_value_lane(q->at)), I(31));
    EMIT("selp.b64", R(step), R(first), R(step), R(last));
    mg_id one = all_equal(q, step);
    EMIT("abs.s64", R(step), R(step));
    EMIT("setp.gt.s64", R(p), R(step), I(128));
    EMIT("selp.u32", R(size), I(MG_MC_STRIDE_MORE - MG_MC_SAME), I(MG_MC_STRIDE_128 - MG_MC_SAME), R(p));
    EMIT("setp.gt.s64", R(p), R(step), I(32));
    EMIT("selp.u32", R(size), R(size), I(MG_MC_STRIDE_32 - MG_MC_SAME), R(p));
    EMIT("setp.gt.and.u32", R(p), R(q->pattern), I(MG_MC_UNIT - MG_MC_SAME), R(q->full));
    EMIT("and.pred", R(p), R(p), R(one));
    EMIT("selp.u32", R(q->pattern), R(size), R(q->pattern), R(p));
    end_access(q);
}

/* How many different values of addr >> shift the lanes hold, in every lane. `first`: predicate, this lane is
 * the lowest with its value (NULL: not wanted). */
static mg_id count_different(struct request *q, mg_id addr, int64_t shift, mg_id *first_mask)
{
    mg_id part = reg64(q), peers = reg32(q), n = reg32(q), first = pred(q), lower = reg32(q);
    EMIT("shr.u64", R(part), R(addr), I(shift));
    EMIT("match.any.sync.b64", R(peers), R(part), R(q->active));
    EMIT("mov.u32", R(lower), mg_o_sreg(MG_SREG_lanemask_lt, 0));
    EMIT("and.b32", R(peers), R(peers), R(lower));
    EMIT("setp.eq.u32", R(first), R(peers), I(0));
    EMIT("vote.sync.ballot.b32", R(n), R(first), R(q->active));
    if (first_mask) *first_mask = n;
    mg_id count = reg32(q);
    EMIT("popc.b32", R(count), R(n));
    return count;
}

static void write_cell(struct request *q, uint32_t cell, mg_id v)
{
    mg_code_push_guard(q->at, q->lead, false);
    mg_cell_update(q->at, q->cell + cell, R(v), MG_ALONE);
    mg_code_pop_guard(q->at);
}

/* Sectors and lines of a request: a whole warp in order covers a range, else lanes are compared. */
static void count_sectors(struct request *q)
{
    begin_access(q);
    mg_id sectors = reg32(q), lines = reg32(q), low = reg32(q), range = pred(q), slow = q->makes ? false_elsewhere(q) : pred(q), any = pred(q);
    EMIT("cvt.u32.u64", R(low), R(q->addr));
    /* From lane's own address back to the first one's place in its line. */
    mg_id back = reg32(q);
    EMIT("mul.lo.u32", R(back), R(mg_value_lane(q->at)), I(q->bytes));
    EMIT("sub.u32", R(low), R(low), R(back));
    EMIT("and.b32", R(low), R(low), I(127));
    EMIT("and.b32", R(sectors), R(low), I(31));
    EMIT("add.u32", R(sectors), R(sectors), I(32 * (int64_t)q->bytes + 31));
    EMIT("shr.u32", R(sectors), R(sectors), I(5));
    EMIT("add.u32", R(lines), R(low), I(32 * (int64_t)q->bytes + 127));
    EMIT("shr.u32", R(lines), R(lines), I(7));
    EMIT("setp.eq.and.u32", R(range), R(q->pattern), I(MG_MC_UNIT - MG_MC_SAME), R(q->full));
    EMIT("not.pred", R(slow), R(range));
    end_access(q);
    EMIT("vote.sync.any.pred", R(any), R(slow), R(q->here));
    mg_id add = mg_code_label(q->at);
    mg_code_push_guard(q->at, any, true);
    EMIT("bra", mg_o_label(add));
    mg_code_pop_guard(q->at);
    classify_stride(q);
    begin_access(q);
    EMIT("mov.u32", R(sectors), R(count_different(q, q->addr, 5, NULL)));
    EMIT("mov.u32", R(lines), R(count_different(q, q->addr, 7, NULL)));
    end_access(q);
    mg_code_place(q->at, add);
    write_cell(q, MG_MC_SECTORS, sectors);
    write_cell(q, MG_MC_LINES, lines);
}

/* The largest value of v over the lanes that make the access, in each of them. */
static mg_id largest(struct request *q, mg_id v)
{
    mg_id most = reg32(q);
    if (q->m->sm >= 80) {
        EMIT("redux.sync.max.u32", R(most), R(v), R(q->active));
        return most;
    }
    mg_id in = reg32(q), bit = reg32(q), some = reg32(q), p = pred(q), any = pred(q);
    EMIT("mov.u32", R(most), I(0));
    EMIT("mov.u32", R(in), I(1)); /* still among the largest */
    for (int shift = 5; shift >= 0; shift--) {
        EMIT("shr.u32", R(bit), R(v), I(shift));
        EMIT("and.b32", R(bit), R(bit), R(in));
        EMIT("setp.ne.u32", R(p), R(bit), I(0));
        EMIT("vote.sync.ballot.b32", R(some), R(p), R(q->active));
        EMIT("setp.ne.u32", R(any), R(some), I(0));
        EMIT("selp.u32", R(in), R(bit), R(in), R(any));
        EMIT("selp.u32", R(some), I(1), I(0), R(any));
        EMIT("shl.b32", R(some), R(some), I(shift));
        EMIT("or.b32", R(most), R(most), R(some));
    }
    return most;
}

/* Groups of lanes are served one after another; in each, the busiest bank's different words. */
static void count_conflicts(struct request *q)
{
    uint32_t unit = MG_MAX(q->bytes, 4u), groups = unit > 8 ? 4 : unit > 4 ? 2 : 1, lanes = 32 / groups, banks = 32 / groups;
    begin_access(q);
    mg_id group = reg32(q), wide = reg64(q), key = reg64(q), word = reg64(q), bank = reg64(q), peers = reg32(q), mine = reg32(q), total = reg32(q), firsts;
    EMIT("shr.u32", R(group), R(mg_value_lane(q->at)), I(log2_of(lanes)));
    EMIT("cvt.u64.u32", R(wide), R(group));
    EMIT("shr.u64", R(word), R(q->addr), I(log2_of(unit)));
    EMIT("shl.b64", R(key), R(word), I(2));
    EMIT("or.b64", R(key), R(key), R(wide));
    count_different(q, key, 0, &firsts);
    EMIT("and.b64", R(bank), R(word), I(banks - 1));
    EMIT("shl.b64", R(bank), R(bank), I(2));
    EMIT("or.b64", R(bank), R(bank), R(wide));
    EMIT("match.any.sync.b64", R(peers), R(bank), R(q->active));
    EMIT("and.b32", R(peers), R(peers), R(firsts));
    EMIT("popc.b32", R(peers), R(peers));
    EMIT("mov.u32", R(total), I(0));
    for (uint32_t g = 0; g < groups; g++) {
        mg_id in = pred(q), extra = reg32(q);
        EMIT("setp.eq.u32", R(in), R(group), I(g));
        EMIT("selp.u32", R(mine), R(peers), I(1), R(in)); /* a group without lanes takes no pass beyond the first */
        EMIT("add.u32", R(extra), R(largest(q, mine)), I(-1));
        EMIT("add.u32", R(total), R(total), R(extra));
    }
    end_access(q);
    write_cell(q, MG_MC_CONFLICTS, total);
}

static void count_pattern(struct request *q)
{
    mg_code_push_guard(q->at, q->lead, false);
    mg_cell_update_at(q->at, q->cell + MG_MC_SAME, MG_MC_PATTERNS, q->pattern, I(1), MG_ALONE);
    mg_code_pop_guard(q->at);
}

static void count_request(struct request *q, enum mg_space space)
{
    mg_id done = mg_code_label(q->at);
    q->here = mg_value_active(q->at);
    begin_access(q);
    q->active = mg_value_active(q->at);
    end_access(q);
    classify(q);
    if (space == MG_SPACE_shared) {
        unless_beyond(q, MG_MC_UNIT, done); /* neighbours in order have no conflicts */
        classify_stride(q);
        count_conflicts(q);
    } else {
        unless_beyond(q, MG_MC_ALIGNED, done);
        count_sectors(q);
    }
    mg_code_place(q->at, done);
    count_pattern(q);
}

/* ---- sites --------------------------------------------------------------------------------------------- */

/* Where the access goes: its own space, or what analysis proves of a generic address; generic: not one. */
static enum mg_space space_of(struct mg_patch *p, const struct mg_patch_inst *i, const struct mg_access *a, unsigned *set)
{
    *set = a->space == MG_SPACE_generic ? mg_spaces_of(mg_patch_spaces(p, i->func_ix), i->node) : MG_SPACE_BIT(a->space);
    return mg_spaces_one(*set);
}

/* A generic access that may be to shared memory: lanes to whom it is go one way, the others the other. */
static void count_generic(struct request *q, enum mg_space space, mg_id guard, bool negated)
{
    mg_id shared = mg_code_reg(q->at, MG_TYPE_pred), elsewhere = mg_code_reg(q->at, MG_TYPE_pred), generic = q->addr, near = mg_code_reg(q->at, MG_TYPE_b64);
    EMIT("isspacep.shared", R(shared), R(generic));
    EMIT("not.pred", R(elsewhere), R(shared));
    if (guard) {
        mg_id makes = guard;
        if (negated) EMIT("not.pred", R(makes = mg_code_reg(q->at, MG_TYPE_pred)), R(guard));
        EMIT("and.pred", R(shared), R(shared), R(makes));
        EMIT("and.pred", R(elsewhere), R(elsewhere), R(makes));
    }
    EMIT("cvta.to.shared.u64", R(near), R(generic));
    q->makes_not = false;
    q->makes = shared;
    q->addr = near;
    count_request(q, MG_SPACE_shared);
    if (space == MG_SPACE_shared) return;
    q->makes = elsewhere;
    q->addr = generic;
    count_request(q, MG_SPACE_global);
}

static void count_site(const struct mg_memory_opts *o, struct mg_patch *p, const struct mg_patch_inst *i, const struct mg_access *a)
{
    struct mg_module *m = mg_patch_module(p);
    bool negated = false, full = o->level == MG_MEMORY_FULL;
    mg_id guard = mg_node_guard(m, i->node, &negated);
    unsigned set;
    enum mg_space space = space_of(p, i, a, &set);
    struct mg_memory_note note = {.bytes = (uint32_t)a->bytes * a->vec, .vec = a->vec, .space = space, .reads = a->reads, .writes = a->writes, .atomic = a->atomic, .guarded = guard != 0, .full = full};
    uint32_t cell = mg_patch_site(p, MG_SITE_INST, i->node, i->id, full ? MG_MC_COUNT : guard != 0, MG_MERGE_SUM, mg_memory_pack(&note));
    struct request q = {.at = full || guard ? mg_at_before(p, i->node) : NULL, .m = m, .makes = guard, .makes_not = negated, .bytes = note.bytes, .cell = cell};
    if (guard) {
        mg_code_push_guard(q.at, guard, negated);
        mg_sum_add(q.at, mg_patch_sum(p, cell + MG_MC_ACCESSES), I(1));
        mg_code_pop_guard(q.at);
    }
    if (!full) return;
    q.addr = mg_value_address(q.at, i->node);
    if (a->space == MG_SPACE_generic && set & MG_SPACE_BIT(MG_SPACE_shared)) count_generic(&q, space, guard, negated);
    else count_request(&q, space);
}

static enum mg_err memory_instrument(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    const struct mg_patch_inst *insts;
    uint32_t n = mg_patch_insts(p, &insts);
    (void)d;
    for (uint32_t i = 0; i < n; i++) {
        struct mg_access a;
        if (mg_access_of(mg_patch_module(p), insts[i].node, &a) && a.space != MG_SPACE_param) count_site(conf, p, &insts[i], &a);
    }
    return MG_ERR_OK;
}

extern const struct mg_tool mg_tool_memory;
const struct mg_tool mg_tool_memory = {
    .name = "memory", .summary = "accesses, bytes, sectors, strides and bank conflicts of each memory instruction",
    .cost = "kernel time on an H200, geometric mean of 20 kernels: 5.1, with level=bytes 1.07 (docs/measured.md)",
    .opts = memory_opts, .configure = memory_configure, .release = free,
    .analyze = memory_analyze, .instrument = memory_instrument, .profile = mg_memory_profile,
};
