#include "inject/nvidia/cupti_join.h"

#include <stdlib.h>

#define PATIENT_NS 600000000000u /* a call whose work is captured into a graph, or whose record is lost */

struct piece { /* a call and its work */
    struct mg_join_call call;
    bool timed, told; /* start and stop are there; the record is */
    uint64_t start_ns, stop_ns;
    struct mg_record_work record;
};

static struct piece *piece_of(const struct mg_join *j, uint64_t correlation)
{
    uint64_t v;
    return mg_map_get(&j->piece_of, correlation, &v) ? (struct piece *)(uintptr_t)v : NULL;
}

static void end_piece(struct mg_join *j, struct piece *p)
{
    if (p->told) {
        struct mg_record_work r = p->record;
        if (p->timed) {
            r.begin = p->start_ns;
            r.end = MG_MAX(p->stop_ns, p->start_ns + 1);
            r.source = MG_SOURCE_cupti;
            r.uncertainty_ns = 0;
        }
        j->emit(j->user, &r);
    }
    mg_map_del(&j->piece_of, p->call.correlation);
    mg_map_del(&j->correlation_of, p->call.number);
    free(p);
}

void mg_join_call(struct mg_join *j, const struct mg_join_call *c)
{
    struct piece *p = piece_of(j, c->correlation);
    if (c->failed && p) end_piece(j, p);
    if (c->failed || p || !(p = calloc(1, sizeof *p))) return;
    p->call = *c;
    mg_map_set(&j->piece_of, c->correlation, (uint64_t)(uintptr_t)p);
    mg_map_set(&j->correlation_of, c->number, c->correlation);
}

bool mg_join_work(struct mg_join *j, const struct mg_record_work *r)
{
    struct piece *p = r->correlation ? piece_of(j, r->correlation) : NULL;
    if (!p || p->told || p->call.work != r->work) return false;
    p->record = *r;
    p->told = true;
    if (p->timed) end_piece(j, p);
    return true;
}

void mg_join_activity(struct mg_join *j, const struct mg_join_activity *a)
{
    uint64_t correlation;
    struct piece *p = mg_map_get(&j->correlation_of, a->number, &correlation) ? piece_of(j, correlation) : NULL;
    if (!p || p->timed || p->call.work != a->work) return;
    bool sane = a->start_ns >= p->call.begin_ns && a->stop_ns >= a->start_ns && a->stop_ns <= a->seen_ns;
    j->odd += !sane;
    if (!sane) return;
    p->start_ns = a->start_ns;
    p->stop_ns = a->stop_ns;
    p->timed = true;
    if (p->told) end_piece(j, p);
}

/* Ends all pieces that began before. */
static void end_before(struct mg_join *j, uint64_t begin_ns)
{
    MG_VEC(struct piece *) ends = {0};
    uint64_t correlation, v;
    for (uint32_t i = 0; mg_map_next(&j->piece_of, &i, &correlation, &v);) {
        struct piece *p = (struct piece *)(uintptr_t)v;
        if (p->call.begin_ns < begin_ns) *mg_vec_push(&ends) = p;
    }
    for (uint32_t k = 0; k < ends.n; k++) end_piece(j, ends.at[k]);
    mg_vec_release(&ends);
}

void mg_join_sweep(struct mg_join *j, uint64_t now_ns)
{
    if (now_ns > PATIENT_NS) end_before(j, now_ns - PATIENT_NS);
}

void mg_join_finish(struct mg_join *j)
{
    end_before(j, UINT64_MAX);
    mg_map_release(&j->piece_of);
    mg_map_release(&j->correlation_of);
}
