/* Shared memory that is added to a kernel: what is there already, and a part for each of its warps. */
#include <stdio.h>

#include "pass/priv.h"

enum { MOST_SHARED = 24576, KEPT = 1024 /* what lies behind moves by so much: it is aligned as ever */ };

uint64_t mg_twin_shared_bytes(const struct mg_module *m, bool *dynamic)
{
    uint64_t sum = 0;
    *dynamic = false;
    for (mg_id k = 1; k < m->vars.n; k++) {
        const struct mg_var *v = &m->vars.at[k];
        if (v->space != MG_SPACE_shared || v->is_param || (v->func && !m->funcs.at[v->func].first_node)) continue;
        *dynamic |= !mg_var_bytes(v);
        sum += mg_var_bytes(v);
    }
    return sum;
}

/* Machine code that is linked later knows no more of where a variable lies than its alignment; code compiled as a whole
 * knows that arrays of words lie well, and reads them by fours. */
void mg_twin_align_shared(struct mg_module *m)
{
    enum { BY = 16 };
    bool whole = true; /* no variable that is not a multiple of that */
    for (mg_id k = 1; k < m->vars.n; k++) {
        struct mg_var *v = &m->vars.at[k];
        if (v->space != MG_SPACE_shared || v->is_param) continue;
        if (mg_var_bytes(v) % BY)
            whole = false;
        else if (mg_var_bytes(v) && mg_var_align(v) < BY)
            v->align = BY;
    }
    for (mg_id k = 1; whole && k < m->vars.n; k++) {
        struct mg_var *v = &m->vars.at[k];
        if (v->space == MG_SPACE_shared && !v->is_param && !mg_var_bytes(v) && mg_var_align(v) < BY) v->align = BY;
    }
}

/* Room in shared memory, and nobody who would see it move. */
static bool has_room(const struct mg_module *m, uint64_t bytes)
{
    bool dynamic;
    bytes += mg_twin_shared_bytes(m, &dynamic);
    return !dynamic && bytes <= MOST_SHARED;
}

static uint32_t count_warps(const struct mg_func *f)
{
    const uint32_t *d = f->reqntid[0] ? f->reqntid : f->maxntid;
    uint64_t threads = d[0] ? (uint64_t)d[0] * MG_MAX(d[1], 1u) * MG_MAX(d[2], 1u) : 1024;
    return (uint32_t)((MG_MIN(threads, 1024u) + 31) / 32);
}

mg_id mg_kernel_add_shared(struct mg_module *m, mg_id func, const char *stem, uint32_t bytes)
{
    uint64_t all = ((uint64_t)bytes * count_warps(&m->funcs.at[func]) + KEPT - 1) / KEPT * KEPT;
    return has_room(m, all) ? mg_module_add_shared(m, func, stem, MG_TYPE_b8, 16, all) : 0;
}
