/* What lies in memory now against what the capture says lay there. */
#include "replay/replay.h"

#include <stdio.h>

int mg_replay_check(struct mg_replay *r, const struct mg_cap_op *op)
{
    uint64_t at = op->words[1], bytes = op->words[2], hash[2], here = mg_replay_here(r, at);
    struct mg_live *l = mg_replay_live_at(r, at);
    if (op->words[0] != r->n_launches || !mg_replay_is_there(r, at, bytes))
        return mg_replay_fail(r, MG_REPLAY_INPUT, "%s: a check names memory that is not there: 0x%llx", r->path,
                              (unsigned long long)at);
    void *room = mg_replay_room(r, bytes);
    int status = room ? mg_replay_read(r, here, room, bytes) : r->status;
    if (status) return status;
    mg_replay_translate(r, room, bytes, true);
    mg_cap_hash(room, bytes, hash);
    r->n_checks++;
    if (l) l->checked = r->n_launches;
    if (hash[0] == op->words[3] && hash[1] == op->words[4]) {
        if (l) l->agreed = r->n_launches;
        return 0;
    }
    if (r->differences)
        printf("differs %llu 0x%llx %llu\n", (unsigned long long)r->n_launches, (unsigned long long)at,
               (unsigned long long)bytes);
    const char *kernel = r->last_kernel ? r->last_kernel : "no kernel";
    uint64_t launch = r->n_launches - (r->n_launches > 0);
    if (!r->n_differ++) { /* the run goes on: tools see all of it */
        char since[64] = "";
        if (l && l->agreed + 1 < r->n_launches)
            snprintf(since, sizeof since, ", or one since launch %llu,", (unsigned long long)l->agreed);
        snprintf(r->difference, sizeof r->difference,
                 "launch %llu (%s)%s left other bytes than recorded: %llu bytes at 0x%llx", (unsigned long long)launch,
                 kernel, since, (unsigned long long)bytes, (unsigned long long)at);
    }
    return 0;
}
