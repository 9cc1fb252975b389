/* memory: requests of which it is likely how far apart their lanes' addresses are (tool/memory/stride.c). That is asked
 * first, by one match.
 *
 *   same     all lanes are known to have one address: nothing is asked
 *   alike    all lanes have one address. Where that is made once, in front of loops, it is asked there, and later
 *            on only whether the lanes are of those that have it. The lowest lane counts
 *   strided  32 lanes, one step apart. Where the step alone says what they ask for, each adds 1 to a register
 *
 * Else a request is counted as any other; where that is most unlikely, with nothing kept in registers. */
#include "tool/memory/code.h"

/* Right behind the question who is here: no branch stands between, at which others may come along. */
void mg_memory_add_one(struct mg_memory_request *q, uint32_t cell, uint32_t sum, mg_id p)
{
    mg_code_push_guard(q->at, lowest(q, p), false);
    if (sum != UINT32_MAX)
        mg_sum_add(q->at, sum, I(1));
    else
        mg_cell_update(q->at, cell, I(1), MG_ALONE);
    mg_code_pop_guard(q->at);
}

/* Memory is added to under a branch, behind which other lanes may have come along: nothing is asked of p there. */
void mg_memory_add_one_and_go(struct mg_memory_request *q, uint32_t cell, uint32_t sum, mg_id p, mg_id done)
{
    mg_id next = mg_code_label(q->at);
    bool now = sum == UINT32_MAX;
    if (now) jump(q, p, true, next);
    mg_memory_add_one(q, cell, sum, now ? 0 : p);
    jump(q, now ? 0 : p, false, done);
    mg_code_place(q->at, next);
}

void mg_memory_count_same(struct mg_memory_request *q, uint32_t cell, uint32_t sum)
{
    if (q->group) EMIT("setp.eq.u32", q->group->covered, mg_value_lane(q->at), mg_value_lane(q->at));
    q->active = mg_value_active(q->at);
    if (q->makes) {
        q->active = reg32(q);
        EMIT("vote.sync.ballot.b32", q->active, q->makes, mask_of(q));
    }
    mg_memory_add_one(q, cell, sum, 0);
}

void mg_memory_count_as_any(struct mg_memory_request *q, bool likely)
{
    q->mask = (struct mg_opnd){0};
    if (q->called) {
        mg_memory_count_away(q);
        return;
    }
    if (likely) q->place = mg_strip_place(q->at, q->strip);
    mg_memory_count_here(q, NULL);
    q->place = 0;
}

/* Predicate: the addresses of lanes here are one step apart. *from: the low half of that of lane 0, were it here. */
static mg_id are_apart(struct mg_memory_request *q, int64_t step, mg_id *from)
{
    mg_id any = reg32(q), p = pred(q), wide = q->addr;
    bool is_64 = mg_type_bits((enum mg_type)q->m->regs.at[wide].type) == 64;
    *from = reg32(q);
    if (is_64 && q->space != MG_SPACE_shared) {
        if (step) EMIT("mad.wide.s32", wide = reg64(q), mg_value_lane(q->at), I(-step), q->addr);
        EMIT("match.all.sync.b64", pair_of(q, MG_OPND_pair, any, p), wide, mask_of(q));
        EMIT("cvt.u32.u64", *from, wide);
        return p;
    }
    EMIT(is_64 ? "cvt.u32.u64" : "mov.u32", *from, q->addr); /* the low half is all */
    if (step) EMIT("mad.lo.u32", *from, mg_value_lane(q->at), I(-step), *from);
    EMIT("match.all.sync.b32", pair_of(q, MG_OPND_pair, any, p), *from, mask_of(q));
    return p;
}

mg_id mg_memory_find_alike(struct mg_memory_request *q)
{
    mg_id lanes = mg_code_reg(q->at, MG_TYPE_b32), from;
    EMIT("selp.b32", lanes, mg_value_active(q->at), 0, are_apart(q, 0, &from));
    return lanes;
}

void mg_memory_count_alike(struct mg_memory_request *q, mg_id lanes, bool likely, uint32_t cell, uint32_t sum)
{
    mg_id done = mg_code_label(q->at), p, others, from;
    if (q->group) EMIT("setp.eq.u32", q->group->covered, mg_value_lane(q->at), mg_value_lane(q->at));
    mg_memory_ask_lanes(q, done);
    if (lanes) {
        p = pred(q), others = reg32(q);
        EMIT("not.b32", others, lanes);
        EMIT("and.b32", others, others, q->active);
        EMIT("setp.eq.u32", p, others, 0);
    } else {
        p = are_apart(q, 0, &from);
    }
    mg_memory_add_one_and_go(q, cell, sum, p, done);
    mg_memory_count_as_any(q, likely);
    mg_code_place(q->at, done);
}

/* Pattern of 32 lanes that are one step apart; UNIT where they are in order. */
static uint32_t pattern_of(int64_t step, uint32_t bytes)
{
    int64_t size = step < 0 ? -step : step;
    return step == bytes ? MG_MC_UNIT
           : size <= 32  ? MG_MC_STRIDE_32
           : size <= 128 ? MG_MC_STRIDE_128
                         : MG_MC_STRIDE_MORE;
}

bool mg_memory_of_step(enum mg_space space, uint32_t bytes, int64_t step, struct mg_memory_ask *a)
{
    *a = (struct mg_memory_ask){.pattern = pattern_of(step, bytes)};
    if (space == MG_SPACE_const) return true;
    if (bytes > 16 || bytes & (bytes - 1)) return false;
    if (space == MG_SPACE_shared) { /* as many lanes in a bank as the step in words and the banks divide by */
        uint32_t groups = bytes > 8 ? 4 : bytes > 4 ? 2 : 1, size = (uint32_t)(step / (int64_t)bytes) | 32 / groups;
        a->conflicts = groups * ((size & -size) - 1);
        return bytes >= 4 && step % (int64_t)bytes == 0;
    }
    a->sectors = a->lines = 32;
    return space != MG_SPACE_local && (step >= 128 || step <= -128);
}

void mg_memory_share(struct mg_patch *p, uint32_t sum, uint32_t cell, const struct mg_memory_ask *a)
{
    mg_patch_share(p, sum, 32, cell + a->pattern, 1);
    if (a->conflicts) mg_patch_share(p, sum, 32, cell + MG_MC_CONFLICTS, a->conflicts);
    if (a->sectors) mg_patch_share(p, sum, 32, cell + MG_MC_SECTORS, a->sectors);
    if (a->lines) mg_patch_share(p, sum, 32, cell + MG_MC_LINES, a->lines);
}

static void count_step(struct mg_memory_request *q, mg_id from, int64_t step)
{
    mg_id strip = reg32(q);
    mg_memory_set_pattern(q, strip, I(pattern_of(step, q->bytes) - MG_MC_SECTORS));
    mg_memory_add_step(q, strip, from, step);
    mg_strip_add(q->at, q->strip, strip);
}

void mg_memory_follow_step(struct mg_memory_request *q, const struct mg_memory_group *g,
                           const struct mg_memory_follower *f, uint32_t n, mg_id done)
{
    mg_id next = mg_code_label(q->at), from = reg32(q);
    jump(q, g->in_step, true, next);
    q->mask = I(0xffffffff);
    for (uint32_t i = 0; i < n; i++) {
        EMIT("add.u32", from, g->from, I(f[i].apart));
        q->strip = f[i].strip;
        count_step(q, from, g->step);
    }
    jump(q, 0, false, done);
    mg_code_place(q->at, next);
    q->mask = (struct mg_opnd){0};
}

void mg_memory_count_strided(struct mg_memory_request *q, int64_t step, bool likely, uint32_t sum)
{
    mg_id done = mg_code_label(q->at), slow = mg_code_label(q->at), from, strip = reg32(q);
    if (q->group) EMIT("setp.eq.u32", q->group->covered, mg_value_lane(q->at), mg_value_lane(q->at));
    if (q->group && sum == UINT32_MAX)
        EMIT("setp.ne.u32", q->group->in_step, mg_value_lane(q->at), mg_value_lane(q->at));
    jump(q, mg_memory_ask_lanes(q, done), true, slow);
    q->mask = I(0xffffffff); /* a constant: the assembler then waits for nobody */
    mg_id p = are_apart(q, step, &from);
    if (sum != UINT32_MAX) {
        mg_code_push_guard(q->at, p, false);
        mg_sum_add(q->at, sum, I(1));
        mg_code_pop_guard(q->at);
        jump(q, p, false, done);
    } else {
        uint32_t slot = pattern_of(step, q->bytes) - MG_MC_SECTORS;
        jump(q, p, true, slow);
        count_step(q, from, step);
        if (q->group) EMIT("mov.pred", q->group->in_step, p);
        if (q->group) EMIT("mov.u32", q->group->from, from);
        if (q->group) EMIT("mov.u32", q->group->slot, I(slot));
        if (q->group) EMIT("setp.ne.u32", q->group->covered, strip, strip);
        jump(q, 0, false, done);
    }
    mg_code_place(q->at, slow);
    mg_memory_count_as_any(q, likely);
    mg_code_place(q->at, done);
}
