/* What a whole capture says, before anything runs and without a device: numbers that no recorded operation can have,
 * and the addresses that it needs. Handles and places are checked when an operation is done. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "abi/jit.h"
#include "replay/replay.h"

#define GAP  (UINT64_C(64) << 20) /* address ranges that lie closer are reserved as one */
#define MOST (UINT64_C(1) << 47)  /* addresses and sizes of memory lie below */
enum { MOST_IMAGE = 1 << 30, MOST_OPTIONS = 32, MOST_LEVELS = 32, MOST_CHANNELS = 4, MOST_SIDE = 1 << 20 };

struct scan {
    struct mg_replay *r;
    MG_VEC(struct mg_range_of) spans;
    uint64_t room; /* bytes of all memory so far: content has no more */
};

static bool is_range(uint64_t at, uint64_t bytes)
{
    return at < MOST && bytes <= MOST - at;
}

static bool all_at_most(const uint64_t *w, uint32_t n, uint64_t most)
{
    for (uint32_t k = 0; k < n; k++)
        if (w[k] > most) return false;
    return true;
}

/* A number that was an int or an unsigned when it was recorded. */
static bool is_int(uint64_t w)
{
    return w <= UINT_MAX || (int64_t)w == (int)w;
}

/* ---- operations; NULL, or what is wrong -------------------------------------------------------------------------- */

static const char *scan_reason(struct mg_replay *r, const struct mg_cap_op *op)
{
    uint64_t n = op->words[0];
    if (op->n_words == 1 && n == r->reasons.n + 1) {
        *mg_vec_push(&r->reasons) = strndup((const char *)op->payload, op->payload_bytes);
    } else if (op->n_words == 2 && n - 1 < r->reasons.n) {
        *mg_vec_push(&r->doubts) = (uint32_t)op->words[1];
        *mg_vec_push(&r->doubts) = (uint32_t)n;
    } else {
        return "a reason is malformed";
    }
    return NULL;
}

static const char *scan_launch(struct mg_replay *r, const struct mg_cap_op *op)
{
    if (op->words[MG_CAP_L_WHY] > r->reasons.n) return "a launch names a reason that is not there";
    if (!all_at_most(op->words + MG_CAP_L_GRID, MG_CAP_L_FLAGS - MG_CAP_L_GRID, UINT_MAX))
        return "a launch is larger than any can be";
    return NULL;
}

/* Others than those are places in memory, of the program that was recorded. */
static const char *scan_load(const struct mg_cap_op *op)
{
    uint32_t n = op->n_words - mg_cap_op_words(op->kind);
    bool good = n % 2 == 0 && n <= 2 * MOST_OPTIONS;
    for (uint32_t k = 0; good && k < n; k += 2)
        good =
            op->words[3 + k] < CUJIT_COUNT && mg_cu_jit_changes_code((int)op->words[3 + k]) && is_int(op->words[4 + k]);
    return good ? NULL : "a module is loaded with an option that no capture has";
}

static const char *scan_set(const uint64_t *w)
{
    uint64_t pitch = w[1], width = w[2], height = w[3], element = w[4], row, all;
    bool good = (element == 1 || element == 2 || element == 4) && height &&
                !__builtin_mul_overflow(width, element, &row) && !__builtin_mul_overflow(height - 1, pitch, &all) &&
                !__builtin_add_overflow(all, row, &all) && is_range(w[0], all) && (height == 1 || pitch >= row);
    return good ? NULL : "a memset is malformed";
}

static const char *scan_copy3d(const struct scan *x, const uint64_t *s)
{
    const uint64_t *t = s + MG_CAP_C_SIDE_WORDS, *e = s + MG_CAP_C_EXTENT;
    uint64_t bytes = s[MG_CAP_C_HOST_BYTES], box;
    bool good = s[MG_CAP_C_SIDE] <= MG_CAP_IN_ARRAY && t[MG_CAP_C_SIDE] <= MG_CAP_IN_ARRAY &&
                t[MG_CAP_C_SIDE] != MG_CAP_FROM_HOST && all_at_most(s + MG_CAP_C_WHERE, 4, MOST) &&
                all_at_most(t + MG_CAP_C_WHERE, 4, MOST) && all_at_most(e, 3, MOST) &&
                !__builtin_mul_overflow(e[0], e[1], &box) && !__builtin_mul_overflow(box, e[2], &box);
    if (good && s[MG_CAP_C_SIDE] == MG_CAP_FROM_HOST)
        good = box == bytes && bytes <= x->room && !s[MG_CAP_C_X] && !s[MG_CAP_C_Y] && !s[MG_CAP_C_Z] &&
               s[MG_CAP_C_PITCH] == e[0] && s[MG_CAP_C_HEIGHT] == e[1];
    else
        good = good && !bytes;
    return good ? NULL : "a copy is malformed";
}

static const char *scan_array(struct scan *x, const uint64_t *w)
{
    if (!all_at_most(w + 1, 3, MOST_SIDE) || w[4] > INT_MAX || w[5] > MOST_CHANNELS || w[6] > UINT_MAX ||
        w[7] > MOST_LEVELS)
        return "an array is larger than any can be";
    x->room += MG_MAX(w[1], 1u) * MG_MAX(w[2], 1u) * MG_MIN(MG_MAX(w[3], 1u), 1u << 14) * 16;
    return NULL;
}

static const char *scan_object(const struct mg_cap_op *op)
{
    const uint64_t *w = op->words;
    bool good = w[1] <= 1 && w[2] <= CURES_PITCH2D && op->payload_bytes <= sizeof((struct mg_object *)NULL)->payload;
    if (w[2] == CURES_LINEAR || w[2] == CURES_PITCH2D)
        good = good && w[4] < MOST && w[5] <= INT_MAX && w[6] <= MOST_CHANNELS &&
               all_at_most(w + 7, w[2] == CURES_LINEAR ? 1 : 3, MOST);
    return good ? NULL : "a texture is malformed";
}

static const char *scan_alloc(struct scan *x, const uint64_t *w)
{
    if (w[0] < 4096 || !w[1] || w[1] > MG_CAP_ARENA_BYTES || !is_range(w[0], w[1]))
        return "an allocation lies where no memory can be";
    *mg_vec_push(&x->spans) = mg_replay_span(w[0], w[1]);
    x->room += w[1];
    return NULL;
}

static const char *scan_range(struct scan *x, const struct mg_cap_op *op, uint64_t at, uint64_t bytes)
{
    if (!is_range(at, bytes)) return "it names memory where none can be";
    if (op->kind == MG_CAP_variable) x->room += bytes;
    if ((op->kind == MG_CAP_write || op->kind == MG_CAP_left) && bytes > x->room)
        return "it writes more than there is memory";
    return NULL;
}

static const char *scan_op(struct scan *x, const struct mg_cap_op *op)
{
    const uint64_t *w = op->words;
    const char *why;
    switch (op->kind) {
    case MG_CAP_uncaptured:
        return scan_reason(x->r, op);
    case MG_CAP_launch:
        return scan_launch(x->r, op);
    case MG_CAP_context:
        return mg_replay_scan_context(x->r, op);
    case MG_CAP_origin:
        x->r->taken_out = true;
        return NULL;
    case MG_CAP_alloc:
        return scan_alloc(x, w);
    case MG_CAP_image:
        return w[1] > MOST_IMAGE ? "an image is larger than any can be" : NULL;
    case MG_CAP_load:
        return scan_load(op);
    case MG_CAP_write:
    case MG_CAP_left:
        return scan_range(x, op, w[0], w[1]);
    case MG_CAP_variable:
    case MG_CAP_check:
        return scan_range(x, op, w[1], w[2]);
    case MG_CAP_copy:
        why = scan_range(x, op, w[0], w[2]);
        return why ? why : scan_range(x, op, w[1], w[2]);
    case MG_CAP_set:
        return scan_set(w);
    case MG_CAP_copy3d:
        return scan_copy3d(x, w);
    case MG_CAP_array:
        return scan_array(x, w);
    case MG_CAP_level:
        return w[2] >= MOST_LEVELS ? "an array is larger than any can be" : NULL;
    case MG_CAP_object:
        return scan_object(op);
    case MG_CAP_attribute:
        return is_int(w[1]) && is_int(w[2]) ? NULL : "an attribute is malformed";
    case MG_CAP_limit:
        return is_int(w[0]) ? NULL : "a limit is malformed";
    default:
        return NULL;
    }
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static int by_lo(const void *a, const void *b)
{
    const struct mg_range_of *x = a, *y = b;
    return x->lo < y->lo ? -1 : x->lo > y->lo;
}

int mg_replay_scan(struct mg_replay *r)
{
    struct mg_cap_op op = {0};
    struct scan x = {.r = r};
    const char *why = NULL;
    while (!why && mg_cap_next(r->reader, &op)) why = scan_op(&x, &op);
    mg_cap_op_release(&op);
    if (x.spans.n) qsort(x.spans.at, x.spans.n, sizeof *x.spans.at, by_lo);
    for (uint32_t k = 0; k < x.spans.n; k++) {
        if (r->ranges.n && x.spans.at[k].lo <= r->ranges.at[r->ranges.n - 1].hi + GAP)
            r->ranges.at[r->ranges.n - 1].hi = MG_MAX(r->ranges.at[r->ranges.n - 1].hi, x.spans.at[k].hi);
        else
            *mg_vec_push(&r->ranges) = x.spans.at[k];
    }
    mg_vec_release(&x.spans);
    return why ? mg_replay_fail(r, MG_REPLAY_INPUT, "%s: %s", r->path, why) : 0;
}
