/* What lies in memory now against what the capture says lay there. */
#include "replay/replay.h"

#include <stdio.h>
#include <stdlib.h>

/* With addresses of variables as the program had them. */
static int read_as_recorded(struct mg_replay *r, uint64_t here, void *to, uint64_t bytes)
{
    int status = mg_replay_read(r, here, to, bytes);
    if (!status) mg_replay_translate(r, to, bytes, true);
    return status;
}

static void differs(struct mg_replay *r, const struct mg_live *l, uint64_t at, uint64_t bytes)
{
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
}

int mg_replay_check(struct mg_replay *r, const struct mg_cap_op *op)
{
    uint64_t at = op->words[1], bytes = op->words[2], hash[2], here = mg_replay_here(r, at);
    struct mg_live *l = mg_replay_live_at(r, at);
    if (op->words[0] != r->n_launches || !mg_replay_is_there(r, at, bytes))
        return mg_replay_fail(r, MG_REPLAY_INPUT, "%s: a check names memory that is not there: 0x%llx", r->path,
                              (unsigned long long)at);
    void *room = mg_replay_room(r, bytes);
    int status = room ? read_as_recorded(r, here, room, bytes) : r->status;
    if (status) return status;
    mg_cap_hash(room, bytes, hash);
    r->n_checks++;
    if (l) l->checked = r->n_launches;
    if (hash[0] == op->words[3] && hash[1] == op->words[4]) {
        if (l) l->agreed = r->n_launches;
        return 0;
    }
    differs(r, l, at, bytes);
    return 0;
}

/* ---- memory that other threads of the program may have written while a launch ran ---------------------------- */

int mg_replay_before(struct mg_replay *r, const struct mg_cap_op *launch)
{
    struct mg_cap_op next = {.off = launch->off, .at = launch->at};
    int status = 0;
    for (uint32_t k = 0; k < r->given.before.n; k++) free(r->given.before.at[k].was);
    r->given.before.n = 0;
    while (!status && mg_cap_next(r->reader, &next) && next.kind == MG_CAP_left && !launch->words[MG_CAP_L_GRAPH]) {
        struct mg_before b = {next.words[0], next.words[1], NULL};
        if (!mg_replay_is_there(r, b.at, b.bytes)) break; /* told when it is done */
        if (!(b.was = malloc(b.bytes)))
            status = mg_replay_fail(r, MG_REPLAY_INPUT, "there is no memory for content of %llu bytes",
                                    (unsigned long long)b.bytes);
        else
            status = read_as_recorded(r, mg_replay_here(r, b.at), b.was, b.bytes);
        *mg_vec_push(&r->given.before) = b;
    }
    mg_cap_op_release(&next);
    return status;
}

static const char *before(const struct mg_replay *r, uint64_t at, uint64_t bytes)
{
    for (uint32_t k = 0; k < r->given.before.n; k++)
        if (r->given.before.at[k].at == at && r->given.before.at[k].bytes == bytes) return r->given.before.at[k].was;
    return NULL;
}

/* now takes what was recorded, where the launch has not stored here; false: it has stored something else. */
static bool give(struct mg_replay *r, char *now, const char *was, const char *recorded, uint64_t bytes)
{
    bool same = true;
    for (uint64_t k = 0; k < bytes; k++) {
        if (now[k] == recorded[k]) continue;
        if (was && now[k] == was[k]) {
            now[k] = recorded[k];
            if (!r->given.n++) r->given.at = r->n_launches - 1;
        } else {
            same = false;
        }
    }
    return same;
}

int mg_replay_left(struct mg_replay *r, const struct mg_cap_op *op)
{
    uint64_t at = op->words[0], bytes = op->words[1], here = mg_replay_here(r, at), given = r->given.n;
    const char *why = "there is no memory for it";
    if (!r->n_launches || !mg_replay_is_there(r, at, bytes))
        return mg_replay_fail(r, MG_REPLAY_INPUT, "%s: it names memory that is not there: 0x%llx", r->path,
                              (unsigned long long)at);
    char *now = mg_replay_room(r, 2 * bytes), *recorded = now + bytes;
    if (!now || !mg_cap_content(r->reader, op, recorded, &why))
        return mg_replay_fail(r, MG_REPLAY_INPUT, "%s: %s", r->path, why);
    int status = read_as_recorded(r, here, now, bytes);
    if (status) return status;
    r->n_checks++;
    if (!give(r, now, before(r, at, bytes), recorded, bytes)) differs(r, mg_replay_live_at(r, at), at, bytes);
    if (r->given.n == given) return 0;
    mg_replay_translate(r, now, bytes, false);
    status = mg_replay_call(r, mg_cu.cuMemcpyHtoDAsync_v2(here, now, bytes, mg_replay_last(r)), "writing memory");
    return status ? status : mg_replay_settle(r);
}
