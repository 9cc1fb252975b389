/* See run_dead.h. */
#include "cli/run_dead.h"

static const struct mg_dead *find(const struct mg_deads *deads, uint32_t pid)
{
    for (uint32_t i = 0; i < deads->list.n; i++)
        if (deads->list.at[i].pid == pid) return &deads->list.at[i];
    return NULL;
}

static uint64_t count_written(const struct mg_recording *p, uint32_t process)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < p->n_launches; i++) {
        const struct mg_plaunch *l = &p->launches[i];
        n += l->process == process && !l->graph && !l->repeat;
    }
    return n;
}

bool mg_dead_note_missing(const struct mg_deads *deads, const struct mg_recording *p)
{
    bool any = false;
    if (p->n_unknowns) return false; /* some are counted there already, of which process is not known */
    for (uint32_t i = 0; i < p->n_processes; i++) {
        const struct mg_pprocess *q = &p->processes[i];
        const struct mg_dead *d = q->closed ? NULL : find(deads, q->pid);
        uint64_t written = d ? count_written(p, i) : 0;
        if (!d || d->launches <= written) continue;
        any |= !mg_store_missing(q->path, d->launches - written, "the process ended before they were written", NULL);
    }
    return any;
}
