/* --check: what orders accesses of global memory.
 *
 *   bar, barrier            what was before it in the warps that arrive, for those that leave; and what these
 *                           read from flags counts as seen
 *   fence, membar           ends the interval; what the warp read from flags counts as seen
 *   strong write            at the first behind a fence: publishes what the fence ended
 *   release, acquire        fence before, fence behind
 *   barrier.cluster, mbarrier (who saw the phase end: what any warp did that arrived), flags in shared memory
 * Scopes: a fence of .cta publishes for the CTA alone. A barrier orders for the CTA alone: what was fenced
 * before it may be published by any of its warps afterwards. */
#include "device/emu/race.h"

#include <stdlib.h>
#include <string.h>

void emu_race_start(struct emu_race_cta *k)
{
    k->interval = 1;
    k->touched = false;
    mg_map_release(&k->flags);
    memset(k->warps, 0, sizeof k->warps);
}

void emu_race_ends_interval(struct emu_race_cta *k)
{
    if (k->touched && k->interval < EMU_RACE_LAST) k->interval++;
    k->touched = false;
}

void emu_race_fenced(struct emu_race_cta *k, uint32_t warp, bool narrow)
{
    struct emu_race_warp *w = &k->warps[warp];
    emu_race_ends_interval(k);
    for (int s = narrow; s < 2; s++) { /* a wider one is a narrower one, too */
        w->fenced[s] |= w->own[s] != k->interval || w->all[s] != w->from;
        w->own[s] = k->interval;
        w->all[s] = w->from;
    }
    w->seen_narrow = MG_MAX(w->seen_narrow, w->pending);
    if (!narrow) w->seen = MG_MAX(w->seen, w->pending);
}

/* ---- publishing ------------------------------------------------------------------------------------------ */

static uint32_t now(struct emu_race *r)
{
    uint32_t t = atomic_fetch_add(&r->time, 1) + 1;
    return t ? t : 1;
}

static void publish(struct emu_race *r, uint64_t cta, struct emu_race_event e)
{
    pthread_rwlock_wrlock(&r->past_lock);
    struct emu_race_past **past = &r->past[cta];
    if (!*past) *past = calloc(1, sizeof **past);
    if (*past)
        *mg_vec_push(&(*past)->events) = e;
    else
        atomic_store(&r->full, true);
    pthread_rwlock_unlock(&r->past_lock);
}

static void publish_lent(struct emu_race_cta *k, uint64_t cta, uint32_t t)
{
    for (uint32_t u = 0; u < EMU_MAX_WARPS; u++)
        if (k->warps[u].lent) {
            publish(k->race, cta, (struct emu_race_event){t, 0, k->warps[u].lent, (uint8_t)u, false});
            k->warps[u].lent = 0;
        }
}

uint32_t emu_race_publish(struct emu_race_cta *k, uint64_t cta, uint32_t warp)
{
    struct emu_race_warp *w = &k->warps[warp];
    uint32_t t = now(k->race);
    for (int s = 0; s < 2; s++) {
        if (!w->fenced[s]) continue;
        publish(k->race, cta, (struct emu_race_event){t, w->all[s], w->own[s], (uint8_t)warp, s == 1});
        w->fenced[s] = false;
        if (!s && w->own[1] == w->own[0] && w->all[1] == w->all[0]) w->fenced[1] = false;
    }
    publish_lent(k, cta, t);
    return t;
}

/* ---- barriers ---------------------------------------------------------------------------------------------- */

void emu_race_bar(struct emu_cta *c, uint32_t warps)
{
    struct emu_race_cta *k = c->check->race;
    uint32_t seen = 0, narrow = 0;
    if (!k) return;
    emu_race_ends_interval(k);
    EMU_FOR_LANES(i, warps)
    {
        struct emu_race_warp *w = &k->warps[i];
        emu_race_settle(k, i);
        seen = MG_MAX(seen, MG_MAX(w->seen, w->pending));
        narrow = MG_MAX(narrow, w->seen_narrow);
        if (w->fenced[0]) w->lent = w->own[0];
    }
    EMU_FOR_LANES(i, warps)
    {
        struct emu_race_warp *w = &k->warps[i];
        w->from = k->interval;
        w->seen = seen;
        w->seen_narrow = MG_MAX(narrow, seen);
    }
}

/* The warp has seen all of the cluster arrive. Lenient: what these did since counts as well. */
void emu_race_cluster(struct emu_cta *c, uint32_t warp)
{
    struct emu_race_cta *k = c->check->race;
    if (!k) return;
    emu_race_settle(k, warp);
    uint32_t t = now(k->race);
    for (uint32_t r = 0; r < c->n_peers; r++) {
        struct emu_race_cta *p = c->peers[r]->check->race;
        if (!p) continue;
        emu_race_ends_interval(p);
        publish(p->race, c->peers[r]->linear, (struct emu_race_event){t, p->interval, 0, 0, false});
    }
    k->warps[warp].seen = k->warps[warp].seen_narrow = t;
    k->warps[warp].from = k->interval;
}

/* As a fence of the CTA and a flag. */
void emu_race_mbar(struct emu_cta *c, uint32_t warp, const uint64_t *words, uint32_t lanes, bool waits)
{
    struct emu_race_cta *k = c->check->race;
    uint64_t at;
    if (!k) return;
    emu_race_settle(k, warp);
    if (!waits) emu_race_fenced(k, warp, true);
    uint32_t t = waits ? 0 : emu_race_publish(k, c->linear, warp);
    EMU_FOR_LANES(i, lanes)
    {
        if (!waits)
            mg_map_set(&k->flags, words[i], t);
        else if (mg_map_get(&k->flags, words[i], &at))
            k->warps[warp].pending = MG_MAX(k->warps[warp].pending, (uint32_t)at);
    }
    if (waits) emu_race_fenced(k, warp, true);
}

/* ---- asking ------------------------------------------------------------------------------------------------- */

#define MOST_EVENTS 4096u /* looked at; what came before counts as published */

static bool published(struct emu_race *r, uint64_t record, uint32_t seen, bool same_cta)
{
    bool found = false;
    uint32_t interval = EMU_RACE_INTERVAL_OF(record), warp = EMU_RACE_WARP_OF(record), looked = 0;
    if (!seen) return false;
    pthread_rwlock_rdlock(&r->past_lock);
    const struct emu_race_past *p = r->past[EMU_RACE_CTA_OF(record)];
    for (uint32_t i = p ? p->events.n : 0; i-- > 0 && !found;) {
        const struct emu_race_event *e = &p->events.at[i];
        if (e->time > seen) continue;
        found = ++looked > MOST_EVENTS ||
                ((same_cta || !e->narrow) && (e->all > interval || (e->warp == warp && e->own > interval)));
    }
    pthread_rwlock_unlock(&r->past_lock);
    return found;
}

bool emu_race_ordered(struct emu_race_cta *k, uint64_t cta, uint32_t warp, uint64_t record)
{
    const struct emu_race_warp *w = &k->warps[warp];
    bool same = EMU_RACE_CTA_OF(record) == cta;
    uint32_t interval = EMU_RACE_INTERVAL_OF(record);
    if (interval == EMU_RACE_LAST) return true;
    if (same && interval < w->from) return true;
    return published(k->race, record, same ? MG_MAX(w->seen, w->seen_narrow) : w->seen, same);
}
