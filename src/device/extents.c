/* Extents of address space in balanced trees (extents.h). */
#include "device/extents.h"

#include <stdlib.h>

static uint32_t random_state = 2463534242u; /* one user at a time: mem.c's lock */

static int compare(const struct mg_extent *n, uint64_t key, uint64_t key2)
{
    if (key != n->key) return key < n->key ? -1 : 1;
    return key2 == n->key2 ? 0 : key2 < n->key2 ? -1 : 1;
}

static struct mg_extent *rotate(struct mg_extent *n, int up)
{
    struct mg_extent *c = n->child[up];
    n->child[up] = c->child[!up];
    c->child[!up] = n;
    return c;
}

struct mg_extent *mg_extent_insert(struct mg_extent *root, struct mg_extent *n)
{
    if (!root) return n;
    int side = compare(root, n->key, n->key2) > 0;
    root->child[side] = mg_extent_insert(root->child[side], n);
    return root->child[side]->priority > root->priority ? rotate(root, side) : root;
}

static struct mg_extent *merge_trees(struct mg_extent *a, struct mg_extent *b)
{
    if (!a || !b) return a ? a : b;
    if (a->priority > b->priority) {
        a->child[1] = merge_trees(a->child[1], b);
        return a;
    }
    b->child[0] = merge_trees(a, b->child[0]);
    return b;
}

struct mg_extent *mg_extent_removed(struct mg_extent *root, uint64_t key, uint64_t key2, struct mg_extent **out)
{
    if (!root) return NULL;
    int c = compare(root, key, key2);
    if (c == 0) {
        struct mg_extent *rest = merge_trees(root->child[0], root->child[1]);
        root->child[0] = root->child[1] = NULL;
        *out = root;
        return rest;
    }
    root->child[c > 0] = mg_extent_removed(root->child[c > 0], key, key2, out);
    return root;
}

/* Greatest node with key <= key. */
struct mg_extent *mg_extent_at_or_below(struct mg_extent *n, uint64_t key)
{
    struct mg_extent *best = NULL;
    while (n) {
        if (n->key <= key)
            best = n, n = n->child[1];
        else
            n = n->child[0];
    }
    return best;
}

/* Smallest node with (key, key2) >= given. */
struct mg_extent *mg_extent_at_or_above(struct mg_extent *n, uint64_t key, uint64_t key2)
{
    struct mg_extent *best = NULL;
    while (n) {
        if (compare(n, key, key2) <= 0)
            best = n, n = n->child[0];
        else
            n = n->child[1];
    }
    return best;
}

struct mg_extent *mg_extent_new(uint64_t key, uint64_t key2, uint64_t span)
{
    struct mg_extent *n = calloc(1, sizeof *n);
    if (!n) return NULL;
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    *n = (struct mg_extent){.key = key, .key2 = key2, .span = span, .priority = random_state};
    return n;
}

/* ---- free extents --------------------------------------------------------------------------- */

bool mg_extent_give(struct mg_extents *x, uint64_t base, uint64_t span)
{
    struct mg_extent *below = base ? mg_extent_at_or_below(x->by_address, base - 1) : NULL, *gone = NULL;
    struct mg_extent *above = mg_extent_at_or_above(x->by_address, base + span, 0);
    if (below && below->key + below->span == base) {
        base = below->key;
        span += below->span;
        x->by_size = mg_extent_removed(x->by_size, below->span, below->key, &gone);
        free(gone);
        x->by_address = mg_extent_removed(x->by_address, below->key, 0, &gone);
        free(gone);
    }
    if (above && above->key == base + span) {
        span += above->span;
        x->by_size = mg_extent_removed(x->by_size, above->span, above->key, &gone);
        free(gone);
        x->by_address = mg_extent_removed(x->by_address, above->key, 0, &gone);
        free(gone);
    }
    struct mg_extent *a = mg_extent_new(base, 0, span), *s = mg_extent_new(span, base, span);
    if (!a || !s) { /* the extent is lost, nothing else */
        free(a);
        free(s);
        return false;
    }
    x->by_address = mg_extent_insert(x->by_address, a);
    x->by_size = mg_extent_insert(x->by_size, s);
    return true;
}

uint64_t mg_extent_take(struct mg_extents *x, uint64_t span, uint64_t align, uint64_t ahead)
{
    uint64_t need = align > MG_EXTENT_GRANULE ? span + align - MG_EXTENT_GRANULE : span;
    struct mg_extent *s = mg_extent_at_or_above(x->by_size, need, 0), *gone = NULL;
    if (!s) return 0;
    uint64_t base = s->key2, have = s->span;
    x->by_size = mg_extent_removed(x->by_size, have, base, &gone);
    free(gone);
    x->by_address = mg_extent_removed(x->by_address, base, 0, &gone);
    free(gone);
    uint64_t at = ((base + ahead + align - 1) & ~(align - 1)) - ahead;
    if (at > base) mg_extent_give(x, base, at - base);
    if (base + have > at + span) mg_extent_give(x, at + span, base + have - at - span);
    return at;
}
