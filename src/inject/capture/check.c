/* Hashes of what launches left behind, by which a replay is checked. Behind a launch: the allocations that its
 * arguments point into. Where the program has waited for its work, and before memory goes away: all that changed since
 * it was last hashed. Of these only as many as take no more than half of the time that the run takes without, unless
 * MARGAY_CAPTURE says `all` (each, behind every launch) or `end` (only what is about to go away). */
#include "inject/capture/capture.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/io.h"
#include "base/thread.h"
#include "inject/session.h"
#include "inject/verify.h"

#define NOT_ENDED "it, or a launch before it, did not end while capture waited: it may wait for the host"
#define FAILED    "it, or a launch before it, failed when it was captured"
enum { STEADY = 3, SELDOM = 8, SMALL = 65536 };
#define FREE_NS 100000000u /* so much may be hashed whatever the run took */

/* Without a GPU the processor's time: other programs on the machine must not make hashing look cheap. */
uint64_t mg_check_now_ns(void)
{
    struct timespec t;
    if (mg_capture.hardware || clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t)) return mg_now_ns();
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool affordable(void)
{
    if (mg_capture.check != MG_CAPTURE_CHECK_AUTO) return mg_capture.check == MG_CAPTURE_CHECK_ALL;
    return mg_capture.hash_ns < FREE_NS + (mg_check_now_ns() - mg_capture.begin_ns - mg_capture.hash_ns) / 2;
}

/* Launches that are not known to have ended cannot be replayed, and nothing behind them. */
static void doubt(const char *why)
{
    uint64_t words[] = {mg_capture_miss(why, true), mg_capture.n_launches - 1};
    if (mg_capture.n_ended < mg_capture.n_launches) mg_capture_put(MG_CAP_uncaptured, words, 2, why, strlen(why));
}

void mg_check_stream(cu_stream s)
{
    if (!mg_capture.uses_stream) mg_capture.stream = s;
    mg_capture.uses_streams |= mg_capture.stream != s;
    mg_capture.uses_stream = true;
}

/* Most work is short and in one stream: asking that one costs less than a thread that waits for all. */
static bool ends_soon(void)
{
    cu_result rc = CUE_NOT_READY;
    for (int k = 0; k < 60 && rc == CUE_NOT_READY && mg_capture.uses_stream && !mg_capture.uses_streams; k++) {
        rc = MG_REAL_AS(cuStreamQuery, cu_stream)(mg_capture.stream);
        if (rc == CUE_NOT_READY && k < 20)
            sched_yield();
        else if (rc == CUE_NOT_READY)
            nanosleep(&(struct timespec){0, 50000}, NULL);
    }
    return rc == CUE_SUCCESS;
}

static bool wait_for_all(void)
{
    cu_result rc;
    if (ends_soon()) return true;
    mg_verify_enter();
    bool ended = mg_cap_contexts_settle(&rc);
    mg_verify_leave();
    if (ended && (rc == CUE_INVALID_CONTEXT || rc == CUE_CONTEXT_IS_DESTROYED || rc == CUE_DEINITIALIZED))
        return false; /* this thread has none: nothing can be waited for */
    if (ended && rc != CUE_SUCCESS) {
        const char *name = mg_cu_result_name(rc);
        mg_capture.lame = true;
        mg_session_error("a launch failed while it was captured (%s): it and what follows cannot be replayed",
                         name ? name : "an unknown error");
        doubt(FAILED);
        return false;
    }
    if (!ended) {
        mg_capture.lame = true;
        mg_session_say(
            "a launch did not end while its capture waited: it may wait for the program, and what follows is not compared");
        doubt(NOT_ENDED);
    }
    return ended;
}

bool mg_check_wait(bool must)
{
    mg_capture.captures = false;
    if (mg_capture.lame || (!must && !affordable())) return false;
    mg_streams_hold();
    mg_capture.captures = mg_streams_capturing();
    bool ended = !mg_capture.captures && wait_for_all();
    mg_streams_let();
    if (ended) mg_capture.host_works = false, mg_capture.n_ended = mg_capture.n_launches;
    return ended;
}

static uint64_t put_check(uint64_t at, const void *data, uint64_t bytes)
{
    uint64_t hash[2];
    mg_cap_hash(data, bytes, hash);
    PUT(MG_CAP_check, mg_capture.n_launches, at, bytes, hash[0], hash[1]);
    return hash[0];
}

void mg_check_area(struct mg_cap_area *a, bool must)
{
    if (!a->told || mg_capture.told_graph || a->checked == mg_capture.n_launches || (!must && !affordable())) return;
    uint64_t start = mg_check_now_ns();
    const void *data = (const void *)(uintptr_t)a->at;
    if (!mg_shared_is_there(a)) return;
    bool far = mg_capture.hardware && a->kind == MG_CAP_DEVICE,
         changes = a->known && mg_thread_has_others(mg_capture.hardware);
    void *room = far || changes ? malloc(a->bytes) : NULL;
    a->checked = mg_capture.n_launches;
    if (room && mg_cap_read(a, 0, room, a->bytes)) data = room;
    if (room || !far) mg_shared_refresh(a, data); /* what is not the launches' is the host's */
    if ((room || !(far || changes)) && !(a->stays && mg_cap_has_addresses(data, a->bytes))) {
        uint64_t hash = put_check(a->at, data, a->bytes);
        a->same = hash == a->hash ? a->same + 1 : 0;
        a->hash = hash;
    }
    free(room);
    mg_capture.hash_ns += mg_check_now_ns() - start;
}

/* A replay waits there, too: a launch that finds the device idle takes another time than one that finds it at work. */
static void put_wait(void)
{
    if (mg_capture.n_waited == mg_capture.n_changes) return;
    mg_capture.n_waited = mg_capture.n_changes;
    PUT(MG_CAP_wait, mg_capture.n_launches);
}

void mg_check_bytes(uint64_t at, const void *data, uint64_t bytes)
{
    put_wait();
    const struct mg_cap_area *a = mg_cap_area_find(at);
    if (mg_capture.lame || !a || !a->told || a->stays || !affordable() || mg_capture.n_launches == 0) return;
    uint64_t start = mg_check_now_ns();
    put_check(at, data, bytes);
    mg_capture.hash_ns += mg_check_now_ns() - start;
}

void mg_check_launch(const uint64_t *args, uint32_t bytes)
{
    uint64_t changes = mg_capture.n_changes;
    if (!affordable() && !mg_capture.shares) return;
    if (!mg_check_wait(mg_capture.shares) || changes != mg_capture.n_changes) return;
    mg_shared_after();
    for (uint32_t k = 0; k < bytes / 8; k++) {
        struct mg_cap_area *a = mg_cap_area_find(args[k]);
        bool seldom =
            a && a->same >= STEADY && a->bytes > SMALL && mg_capture.n_launches % SELDOM; /* what kernels only read */
        if (a && (!seldom || mg_capture.check == MG_CAPTURE_CHECK_ALL)) mg_check_area(a, false);
    }
    for (uint32_t i = 0; mg_capture.check == MG_CAPTURE_CHECK_ALL && i < mg_capture.areas.n; i++)
        mg_check_area(&mg_capture.areas.at[i], true);
}

void mg_check_sync(void)
{
    put_wait();
    if (!mg_check_wait(mg_capture.shares)) return;
    for (uint32_t i = 0; i < mg_capture.areas.n; i++) mg_check_area(&mg_capture.areas.at[i], false);
}
