#include "inject/nvidia/cupti_join.h"

#include <stdlib.h>

#define EARLY_NS   10000000000u  /* work of calls that are none of ours is kept so long */
#define PATIENT_NS 600000000000u /* a call whose work is captured into a graph, or whose record is lost */

static struct mg_join_thread *thread_of(struct mg_join *j, uint32_t tid, bool make)
{
    uint64_t v;
    if (mg_map_get(&j->thread_of, tid, &v)) return &j->threads.at[v];
    if (!make) return NULL;
    mg_map_set(&j->thread_of, tid, j->threads.n);
    struct mg_join_thread *t = mg_vec_push(&j->threads);
    *t = (struct mg_join_thread){.tid = tid};
    return t;
}

static struct mg_join_piece *piece_of(const struct mg_join *j, uint64_t correlation)
{
    uint64_t v;
    return mg_map_get(&j->piece_of, correlation, &v) ? (struct mg_join_piece *)(uintptr_t)v : NULL;
}

static void end_piece(struct mg_join *j, struct mg_join_piece *p)
{
    p->over = true;
    mg_map_del(&j->piece_of, p->correlation);
}

static void emit(struct mg_join *j, struct mg_join_piece *p)
{
    struct mg_record_work r = p->record;
    if (p->timed) {
        r.begin = p->start_ns;
        r.end = MG_MAX(p->stop_ns, p->start_ns + 1);
        r.source = MG_SOURCE_cupti;
        r.uncertainty_ns = 0;
    }
    end_piece(j, p);
    j->emit(j->user, &r);
}

void mg_join_begin(struct mg_join *j, uint32_t tid, uint64_t begin_ns, uint64_t correlation, enum mg_span_work work)
{
    struct mg_join_thread *t = thread_of(j, tid, true);
    struct mg_join_piece *p = calloc(1, sizeof *p);
    if (!p) return;
    p->begin_ns = begin_ns;
    p->end_ns = UINT64_MAX;
    p->correlation = correlation;
    p->work = (uint8_t)work;
    *mg_vec_push(&t->at) = p;
    mg_map_set(&j->piece_of, correlation, (uint64_t)(uintptr_t)p);
}

void mg_join_end(struct mg_join *j, uint64_t correlation, uint64_t end_ns, bool failed)
{
    struct mg_join_piece *p = piece_of(j, correlation);
    if (!p) return;
    p->end_ns = end_ns;
    if (failed) end_piece(j, p);
}

bool mg_join_work(struct mg_join *j, const struct mg_record_work *r)
{
    struct mg_join_piece *p = r->correlation ? piece_of(j, r->correlation) : NULL;
    if (!p || p->told || p->work != r->work) return false;
    p->record = *r;
    p->told = true;
    if (p->timed) emit(j, p);
    return true;
}

/* The first piece on the thread that ends at that time or later. */
static uint32_t search(const struct mg_join_thread *t, uint64_t begin_ns)
{
    uint32_t from = 0, to = t->at.n;
    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        if (t->at.at[middle]->end_ns < begin_ns)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* The first of them that still awaits such work (work WORK_COUNT: any). */
static struct mg_join_piece *find_piece(struct mg_join *j, const struct mg_join_call *c, uint32_t work)
{
    const struct mg_join_thread *t = thread_of(j, c->tid, false);
    for (uint32_t i = t ? search(t, c->begin_ns) : 0; t && i < t->at.n && t->at.at[i]->begin_ns <= c->end_ns; i++) {
        struct mg_join_piece *p = t->at.at[i];
        if (!p->over && !p->timed && (work == MG_WORK_COUNT || p->work == work)) return p;
    }
    return NULL;
}

static void set_times(struct mg_join *j, const struct mg_join_call *c, const struct mg_join_activity *a)
{
    struct mg_join_piece *p = find_piece(j, c, a->work);
    if (!p) return;
    bool sane = a->start_ns >= p->begin_ns && a->stop_ns >= a->start_ns && a->stop_ns <= a->seen_ns;
    j->odd += !sane;
    if (!sane) return;
    p->start_ns = a->start_ns;
    p->stop_ns = a->stop_ns;
    p->timed = true;
    if (p->told) emit(j, p);
}

void mg_join_call(struct mg_join *j, const struct mg_join_call *c)
{
    uint64_t v;
    if (!find_piece(j, c, MG_WORK_COUNT)) return;
    mg_map_set(&j->call_of, c->number, j->calls.n);
    *mg_vec_push(&j->calls) = *c;
    if (!mg_map_get(&j->early, c->number, &v)) return;
    mg_map_del(&j->early, c->number);
    for (struct mg_join_activity *a = (struct mg_join_activity *)(uintptr_t)v, *next; a; a = next) {
        next = a->next;
        set_times(j, c, a);
        free(a);
    }
}

void mg_join_activity(struct mg_join *j, const struct mg_join_activity *a)
{
    uint64_t v = 0;
    if (mg_map_get(&j->call_of, a->number, &v)) {
        struct mg_join_call c = j->calls.at[v];
        set_times(j, &c, a);
        return;
    }
    struct mg_join_activity *e = malloc(sizeof *e);
    if (!e) return;
    *e = *a;
    e->next = mg_map_get(&j->early, a->number, &v) ? (struct mg_join_activity *)(uintptr_t)v : NULL;
    mg_map_set(&j->early, a->number, (uint64_t)(uintptr_t)e);
}

/* Work of calls that are none of ours. */
static void forget_early(struct mg_join *j, uint64_t before_ns)
{
    struct mg_map kept = MG_MAP_INIT;
    uint64_t number, v;
    for (uint32_t i = 0; mg_map_next(&j->early, &i, &number, &v);) {
        struct mg_join_activity *a = (struct mg_join_activity *)(uintptr_t)v;
        if (a->seen_ns >= before_ns) {
            mg_map_set(&kept, number, v);
            continue;
        }
        for (struct mg_join_activity *next; a; a = next) {
            next = a->next;
            free(a);
        }
    }
    mg_map_release(&j->early);
    j->early = kept;
}

static void sweep_thread(struct mg_join *j, struct mg_join_thread *t, uint64_t now_ns)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->at.n; i++) {
        struct mg_join_piece *p = t->at.at[i];
        if (!p->over && now_ns > p->begin_ns && now_ns - p->begin_ns > PATIENT_NS) {
            if (p->told)
                emit(j, p);
            else
                end_piece(j, p);
        }
        if (p->over)
            free(p);
        else
            t->at.at[n++] = p;
    }
    t->at.n = n;
}

void mg_join_sweep(struct mg_join *j, uint64_t now_ns)
{
    for (uint32_t k = 0; k < j->threads.n; k++) sweep_thread(j, &j->threads.at[k], now_ns);
    uint32_t n = 0;
    for (uint32_t i = 0; i < j->calls.n; i++)
        if (find_piece(j, &j->calls.at[i], MG_WORK_COUNT)) j->calls.at[n++] = j->calls.at[i];
    j->calls.n = n;
    mg_map_release(&j->call_of);
    for (uint32_t i = 0; i < n; i++) mg_map_set(&j->call_of, j->calls.at[i].number, i);
    forget_early(j, now_ns > EARLY_NS ? now_ns - EARLY_NS : 0);
}

void mg_join_finish(struct mg_join *j)
{
    for (uint32_t k = 0; k < j->threads.n; k++) {
        struct mg_join_thread *t = &j->threads.at[k];
        for (uint32_t i = 0; i < t->at.n; i++) {
            struct mg_join_piece *p = t->at.at[i];
            if (!p->over && p->told)
                emit(j, p);
            else if (!p->over)
                end_piece(j, p);
            free(p);
        }
        mg_vec_release(&t->at);
    }
    mg_vec_release(&j->threads);
    mg_vec_release(&j->calls);
    forget_early(j, UINT64_MAX);
    mg_map_release(&j->thread_of);
    mg_map_release(&j->call_of);
    mg_map_release(&j->piece_of);
}
