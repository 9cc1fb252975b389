/* Which blocks' counts may depend on timing: what the analysis said of each (analysis/timing.h), with the
 * arguments that launches were made with put in. */
#include <stdlib.h>
#include <string.h>

#include "store/priv.h"

struct pair {
    uint32_t a, b;
    bool met;
};
struct pairs {
    struct pair at[64];
    uint32_t n;
}; /* a kernel has at most 62 */

/* "0,16 8,16": the next pair; NULL behind the last one, and where the text is damaged. */
static const char *next_pair(const char *text, struct pair *out)
{
    char *end;
    out->a = (uint32_t)strtoul(text, &end, 10);
    if (end == text || *end != ',') return NULL;
    text = end + 1;
    out->b = (uint32_t)strtoul(text, &end, 10);
    if (end == text) return NULL;
    return end + (*end == ' ');
}

static struct pair *find_pair(struct pairs *p, const struct pair *x)
{
    for (uint32_t i = 0; i < p->n; i++)
        if (p->at[i].a == x->a && p->at[i].b == x->b) return &p->at[i];
    return NULL;
}

static void collect(const struct mg_pkernel *k, struct pairs *p)
{
    p->n = 0;
    for (uint32_t b = 0; b < k->n_blocks; b++) {
        struct pair x = {0};
        for (const char *t = k->blocks[b].timing; t && *t && *t != '*' && (t = next_pair(t, &x));)
            if (!find_pair(p, &x) && p->n < MG_COUNT_OF(p->at)) p->at[p->n++] = x;
    }
}

static const struct mg_store_arg *arg_at(const struct mg_plaunch *l, uint32_t off)
{
    for (uint32_t i = 0; i < l->n_args; i++)
        if (off >= l->args[i].offset && off - l->args[i].offset + 8 <= l->args[i].bytes) return &l->args[i];
    return NULL;
}

/* Two pointers of which the recorder knew both allocations: one of them? Else: the same pointer? */
static bool meet(const struct mg_plaunch *l, const struct pair *x)
{
    const struct mg_store_arg *a = arg_at(l, x->a), *b = arg_at(l, x->b);
    if (!a || !b) return true; /* not recorded */
    if (a->kind == MG_ARG_POINTER && b->kind == MG_ARG_POINTER) return a->allocation == b->allocation;
    const char *p = (const char *)a->value + (x->a - a->offset), *q = (const char *)b->value + (x->b - b->offset);
    static const char null[8];
    return !memcmp(p, q, 8) && memcmp(p, null, 8);
}

static bool decide(const struct mg_pblock *b, struct pairs *p)
{
    struct pair x = {0}, *found;
    if (*b->timing == '*') return true;
    for (const char *t = b->timing; *t && (t = next_pair(t, &x));)
        if (!(found = find_pair(p, &x)) || found->met) return true;
    return false;
}

void mg_timing_resolve(struct mg_recording *p)
{
    struct pairs *pairs = mg_xcalloc(p->n_kernels + 1, sizeof *pairs);
    for (uint32_t i = 0; i < p->n_kernels; i++) collect(&p->kernels[i], &pairs[i]);
    for (uint64_t i = 0; i < p->n_launches; i++) {
        const struct mg_plaunch *l = &p->launches[i];
        if (l->ran != MG_RAN_INSTRUMENTED || !l->complete) continue;
        for (uint32_t x = 0; x < pairs[l->kernel].n; x++)
            if (!pairs[l->kernel].at[x].met) pairs[l->kernel].at[x].met = meet(l, &pairs[l->kernel].at[x]);
    }
    for (uint32_t i = 0; i < p->n_kernels; i++)
        for (uint32_t b = 0; b < p->kernels[i].n_blocks; b++) {
            struct mg_pblock *block = &p->kernels[i].blocks[b];
            block->timing_dependent = block->timing ? decide(block, &pairs[i]) : -1;
        }
    free(pairs);
}
