/* Handing out CTAs (share.h): how many at once adapts to how long they take; the grid's parts lie on cache lines of
 * their own. */
#include "device/emu/share.h"

#include <stdlib.h>

#include "base/io.h"
#include "device/emu/emu.h"

#define SHARE_LEAST_NS 5000
#define SHARE_SHORT_NS 50000
#define SHARE_LONG_NS  400000

struct emu_span {
    _Alignas(128) _Atomic uint64_t next;
    uint64_t end;
    _Atomic bool claimed;
}; /* of the grid: next is the first that has not begun */

bool emu_spans_init(struct emu_launch *l, bool one)
{
    uint64_t n = one ? 1 : MG_MIN(l->dev->n_workers, l->n_ctas), at = 0;
    l->spans = aligned_alloc(128, n * sizeof *l->spans);
    l->n_spans = (uint32_t)n;
    for (uint64_t k = 0; l->spans && k < n; k++) {
        atomic_init(&l->spans[k].next, at);
        atomic_init(&l->spans[k].claimed, false);
        at += l->n_ctas / n + (k < l->n_ctas % n);
        l->spans[k].end = at;
    }
    return l->spans != NULL;
}

void emu_spans_release(struct emu_launch *l)
{
    free(l->spans);
}

static uint64_t left(const struct emu_span *p)
{
    uint64_t next = atomic_load_explicit(&p->next, memory_order_relaxed);
    return next < p->end ? p->end - next : 0;
}

bool emu_spans_left(const struct emu_launch *l)
{
    for (uint32_t k = 0; k < l->n_spans; k++)
        if (left(&l->spans[k])) return true;
    return false;
}

uint64_t emu_spans_lowest(const struct emu_launch *l)
{
    for (uint32_t k = 0; k < l->n_spans; k++) {
        uint64_t next = atomic_load_explicit(&l->spans[k].next, memory_order_relaxed);
        if (next < l->spans[k].end) return next;
    }
    return UINT64_MAX;
}

uint32_t emu_span_claim(struct emu_launch *l, uint32_t like)
{
    for (uint32_t k = 0; k < l->n_spans; k++) {
        uint32_t n = (like + k) % l->n_spans;
        if (!atomic_load_explicit(&l->spans[n].claimed, memory_order_relaxed) &&
            !atomic_exchange(&l->spans[n].claimed, true))
            return n;
    }
    return like % l->n_spans;
}

static struct emu_span *choose(struct emu_launch *l, uint32_t home, bool *own)
{
    bool ordered = atomic_load_explicit(&l->in_order, memory_order_relaxed);
    struct emu_span *best = &l->spans[home % l->n_spans];
    uint64_t most = 0;
    *own = !ordered && l->n_spans > 1 && left(best);
    if (*own) return best;
    best = NULL;
    for (uint32_t k = 0; k < l->n_spans; k++) {
        uint64_t n = left(&l->spans[k]);
        if (n <= most) continue;
        most = n;
        best = &l->spans[k];
        if (ordered) break;
    }
    return best;
}

/* Few where they take long, and towards the end; but not so few that taking them costs more than they do. */
static void adapt(struct emu_share *s)
{
    uint64_t now = mg_now_ns(), took = now - s->since, ran = s->end - s->first;
    if (!s->size)
        s->size = s->least = 1;
    else {
        if (took < SHARE_SHORT_NS && ran >= s->size)
            s->size *= 4;
        else if (took > SHARE_LONG_NS && s->size > 1)
            s->size /= 2;
        s->least = MG_MAX(ran * SHARE_LEAST_NS / MG_MAX(took, 1), 1);
    }
    s->since = now;
}

bool emu_share_take(struct emu_launch *l, uint32_t home, struct emu_share *s)
{
    uint64_t workers = l->dev->n_workers;
    struct emu_span *p;
    bool own;
    if (!(p = choose(l, home, &own))) return false;
    if (l->compiled && !l->l->cooperative)
        adapt(s);
    else
        s->size = s->least = 1;
    do {
        uint64_t n = left(p), most = own ? n / 2 : workers > 1 ? n / (2 * workers) : n;
        n = MG_MIN(s->size, MG_MAX(most, s->least));
        s->first = s->at = atomic_fetch_add_explicit(&p->next, n, memory_order_relaxed);
        s->end = MG_MIN(s->at + n, p->end);
    } while (s->at >= p->end && (p = choose(l, home, &own)));
    return p != NULL;
}
