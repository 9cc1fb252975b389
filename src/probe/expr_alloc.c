/* `alloc` and `offset`: in which live allocation an address lies. The host writes the live allocations behind each
 * launch's frame (record/frame.h), sorted; a lane finds its own in eleven steps without a branch.
 *
 *   n, then n times: begin, bytes, id      n = all ones: there are more than fit */
#include "probe/expr_place.h"
#include "record/frame.h"
#include "tool/ranges.h"

#define EMIT(form, ...) MG_CODE(h->at, form, __VA_ARGS__)

enum { MOST = 1024, RANGE_BYTES = 24, WORDS = 1 + 3 * MOST };
_Static_assert((int)WORDS == (int)MG_EXPR_ALLOC_WORDS, "who reserves them knows");

/* ---- in a kernel ------------------------------------------------------------------------------------------- */

void mg_expr_find_allocation(struct mg_expr_here *h)
{
    struct mg_access a;
    struct mg_expr_val *alloc = &h->values[MG_EV_alloc], *offset = &h->values[MG_EV_offset];
    h->has[MG_EV_alloc] = h->has[MG_EV_offset] = true;
    *alloc = *offset = mg_expr_imm(-1);
    if (!mg_access_of(mg_patch_cfg(h->p, 0)->m, h->spot->node, &a) ||
        (a.space != MG_SPACE_global && a.space != MG_SPACE_generic))
        return;
    mg_id addr = mg_expr_reg(h, mg_expr_value_at(h, MG_EV_addr)), base = mg_code_temp(h->at, MG_TYPE_b64),
          n = mg_code_temp(h->at, MG_TYPE_b64), count = mg_code_temp(h->at, MG_TYPE_b32);
    mg_id low = mg_code_temp(h->at, MG_TYPE_b32), next = mg_code_temp(h->at, MG_TYPE_b32),
          in = mg_code_temp(h->at, MG_TYPE_pred), at = mg_code_temp(h->at, MG_TYPE_b64);
    mg_id begin = mg_code_temp(h->at, MG_TYPE_b64), bytes = mg_code_temp(h->at, MG_TYPE_b64),
          id = mg_code_temp(h->at, MG_TYPE_b64);
    EMIT("add.u64", base, mg_value_list(h->at), mg_o_imm(8 * (int64_t)h->ranges_at));
    EMIT("ld.global.u64", n, mg_o_addr_reg(base, 0));
    EMIT("cvt.u32.u64", count, n);
    EMIT("setp.ne.u64", in, n, -1);
    EMIT("selp.b32", count, count, 0, in);
    EMIT("mov.u32", low, 0);
    for (uint32_t step = MOST; step; step /= 2) { /* low: ranges that begin at or below the address */
        EMIT("add.u32", next, low, mg_o_imm(step));
        EMIT("setp.le.u32", in, next, count);
        EMIT("mad.wide.u32", at, next, RANGE_BYTES, base);
        EMIT("mov.u64", begin, -1);
        mg_code_push_guard(h->at, in, false);
        EMIT("ld.global.u64", begin, mg_o_addr_reg(at, 8 - RANGE_BYTES));
        mg_code_pop_guard(h->at);
        EMIT("setp.le.and.u64", in, begin, addr, in);
        EMIT("selp.b32", low, next, low, in);
    }
    EMIT("setp.ne.u32", in, low, 0);
    EMIT("mad.wide.u32", at, low, RANGE_BYTES, base);
    EMIT("mov.u64", begin, 0);
    EMIT("mov.u64", bytes, 0);
    EMIT("mov.u64", id, 0);
    mg_code_push_guard(h->at, in, false);
    EMIT("ld.global.u64", begin, mg_o_addr_reg(at, 8 - RANGE_BYTES));
    EMIT("ld.global.u64", bytes, mg_o_addr_reg(at, 16 - RANGE_BYTES));
    EMIT("ld.global.u64", id, mg_o_addr_reg(at, 24 - RANGE_BYTES));
    mg_code_pop_guard(h->at);
    EMIT("sub.u64", begin, addr, begin);
    EMIT("setp.lt.and.u64", in, begin, bytes, in);
    EMIT("selp.b64", begin, begin, -1, in);
    EMIT("selp.b64", id, id, -1, in);
    *offset = (struct mg_expr_val){.kind = MG_VAL_REG, .reg = begin};
    *alloc = (struct mg_expr_val){.kind = MG_VAL_REG, .reg = id};
}

/* ---- one launch ---------------------------------------------------------------------------------------------- */

uint32_t mg_expr_list(const void *conf, const struct mg_tool_launch *l, uint64_t *words, uint32_t n)
{
    const struct mg_expr_conf *c = conf;
    uint64_t *own = words + n - WORDS;
    (void)l;
    if (!mg_expr_wants_allocations(c->e) || n < WORDS) return 0;
    uint32_t found = mg_ranges_fill(c->host, own + 1, 3, MOST);
    own[0] = found == MG_RANGE_NONE ? UINT64_MAX : found;
    if (found == MG_RANGE_NONE && c->host &&
        !__atomic_exchange_n(&((struct mg_expr_conf *)(uintptr_t)conf)->many, true, __ATOMIC_RELAXED))
        c->host->say("more than 1,024 live allocations: alloc and offset of one-liners are -1");
    return n;
}
