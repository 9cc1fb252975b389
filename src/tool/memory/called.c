/* memory in kernels with many accesses: the assembler takes minutes for them with all code at each. There an access
 * has the code for what most requests are, whole warps in order, and calls a function for the others: one for each
 * space, width, and so on, with the code of tool/memory/count.c.
 *
 *   count      (address, the lane's cell[, does the lane make it]) -> of a group: 256 covered + slot
 *   follow     (address, the lane's cell[, does the lane make it], slot)
 *   classify   (address) -> strip; of whole warps, in shared memory */
#include "tool/memory/code.h"

enum part { COUNT, FOLLOW, CLASSIFY };
enum { COVERED = 256 };
struct mg_memory_function {
    uint64_t key;
    struct mg_code_at *at;
};

static uint64_t key_of(const struct mg_memory_request *q, enum part part)
{
    return (uint64_t)part | (uint64_t)q->space << 2 | (uint64_t)q->bytes << 8 | (uint64_t)(q->makes != 0) << 24 |
           (uint64_t)(q->group != NULL) << 25;
}

/* ---- functions ------------------------------------------------------------------------------------------------- */

static mg_id return_group(struct mg_memory_request *q)
{
    mg_id r = reg32(q);
    EMIT("selp.u32", r, I(COVERED), 0, q->group->covered);
    EMIT("or.b32", r, r, q->group->slot);
    return r;
}

static void write_count(struct mg_memory_request *q)
{
    struct mg_memory_group g = {.covered = q->group ? pred(q) : 0, .slot = q->group ? reg32(q) : 0};
    if (q->group) {
        EMIT("mov.u32", g.slot, 0);
        q->group = &g;
    }
    mg_memory_count_here(q, NULL);
    if (q->group) mg_called_return(q->at, return_group(q));
}

static void write_follow(struct mg_memory_request *q)
{
    const struct mg_memory_group g = {.slot = mg_called_param(q->at, MG_TYPE_b32)};
    mg_id done = mg_code_label(q->at), full = mg_memory_ask_lanes(q, done);
    mg_memory_follow_one(q, full, &g, 0, 0);
    mg_code_place(q->at, done);
}

static void write_classify(struct mg_memory_request *q)
{
    mg_id strip = reg32(q), from = reg32(q), unit = pred(q);
    mg_memory_ask_lanes(q, 0);
    mg_memory_classify_full(q, strip, from, unit);
    mg_called_return(q->at, strip);
}

static struct mg_code_at *write_function(const struct mg_memory_request *site, enum part part)
{
    struct mg_code_at *at = mg_at_called(site->called->p, part == CLASSIFY || (part == COUNT && site->group));
    struct mg_memory_request one = {.at = at,
                                    .m = site->m,
                                    .space = site->space,
                                    .bytes = site->bytes,
                                    .group = site->group},
                             *q = &one;
    q->addr = mg_called_param(at, MG_TYPE_b64);
    if (part == CLASSIFY) {
        write_classify(q);
        return at;
    }
    q->place = mg_called_param(at, MG_TYPE_b64);
    if (site->makes) {
        mg_id makes = mg_called_param(at, MG_TYPE_b32);
        q->makes = pred(q);
        EMIT("setp.ne.u32", q->makes, makes, 0);
    }
    if (part == FOLLOW)
        write_follow(q);
    else
        write_count(q);
    return at;
}

static struct mg_code_at *function_of(const struct mg_memory_request *q, enum part part)
{
    uint64_t key = key_of(q, part);
    for (size_t i = 0; i < q->called->functions.n; i++)
        if (q->called->functions.at[i].key == key) return q->called->functions.at[i].at;
    struct mg_code_at *at = write_function(q, part);
    *mg_vec_push(&q->called->functions) = (struct mg_memory_function){key, at};
    return at;
}

void mg_memory_called_release(struct mg_memory_called *c)
{
    mg_vec_release(&c->functions);
}

/* ---- calls ----------------------------------------------------------------------------------------------------- */

/* slot: of a follower; 0: none. */
static void call(struct mg_memory_request *q, enum part part, mg_id slot, mg_id result)
{
    mg_id args[4] = {q->addr}, n = 1;
    if (part != CLASSIFY) args[n++] = mg_strip_place(q->at, q->strip);
    if (q->makes) {
        mg_id makes = reg32(q);
        EMIT("selp.u32", makes, 1, 0, q->makes);
        args[n++] = makes;
    }
    if (slot) args[n++] = slot;
    mg_code_call(q->at, function_of(q, part), result, args);
}

void mg_memory_count_away(struct mg_memory_request *q)
{
    const struct mg_memory_group *g = q->group;
    mg_id told = g ? reg32(q) : 0;
    q->mask = (struct mg_opnd){0};
    call(q, COUNT, 0, told);
    if (!g) return;
    EMIT("and.b32", g->slot, told, I(COVERED - 1));
    EMIT("setp.ge.u32", g->covered, told, I(COVERED));
}

/* A whole warp in order, where that says all: elsewhere jumps to slow. */
static void count_in_order(struct mg_memory_request *q, mg_id slow)
{
    mg_id from, strip = reg32(q), unit, p;
    q->mask = I(0xffffffff);
    unit = mg_memory_in_order(q, &from);
    jump(q, unit, true, slow);
    if (q->places) {
        mg_memory_add_place(q, from);
        return;
    }
    bool lined = has_sectors(q);
    if (lined) {
        p = pred(q);
        EMIT("and.b32", from, from, 127);
        EMIT("setp.ne.u32", p, from, 0);
        jump(q, p, false, slow);
    }
    mg_memory_add_pattern(q, strip, lined ? MG_MC_ALIGNED : MG_MC_UNIT);
    if (!q->group) return;
    EMIT("mov.u32", q->group->slot, I(MG_MC_UNIT - MG_MC_SECTORS));
    EMIT("setp.ne.u32", q->group->covered, strip, strip);
}

void mg_memory_count_called(struct mg_memory_request *q, const struct mg_memory_class *k)
{
    mg_id slow = mg_code_label(q->at), done = mg_code_label(q->at);
    if (q->group) /* nobody makes it, or places tell of all */
        EMIT("setp.eq.u32", q->group->covered, mg_value_lane(q->at), mg_value_lane(q->at));
    mg_id full = mg_memory_ask_lanes(q, done);
    if (k) {
        mg_memory_count_by_class(q, k, slow);
    } else {
        jump(q, full, true, slow);
        count_in_order(q, slow);
    }
    jump(q, 0, false, done);
    mg_code_place(q->at, slow);
    if (k) mg_memory_count_part(q, k, done);
    mg_memory_count_away(q);
    mg_code_place(q->at, done);
}

void mg_memory_follow_called(struct mg_memory_request *q, mg_id slot)
{
    call(q, FOLLOW, slot, 0);
}

void mg_memory_classify_called(struct mg_memory_request *q, mg_id strip, mg_id ordered)
{
    mg_id from, unit, other = mg_code_label(q->at), done = mg_code_label(q->at);
    q->mask = I(0xffffffff);
    unit = mg_memory_in_order(q, &from);
    jump(q, unit, true, other);
    mg_memory_set_pattern(q, strip, I(MG_MC_UNIT - MG_MC_SECTORS));
    EMIT("mov.u32", ordered, q->active);
    jump(q, 0, false, done);
    mg_code_place(q->at, other);
    call(q, CLASSIFY, 0, strip);
    mg_code_place(q->at, done);
}
