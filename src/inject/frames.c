/* Frames of launches that run (record/frame.h): now and then the host looks at them. A tool that was switched off stops
 * writing in kernels that run already, and the tool sees what a long kernel has recorded so far.
 *
 *   launch ── add ─► in flight ◄── look: own thread (software devices: one memory), or the thread that drains (NVIDIA)
 *                        └── remove ── launch has ended
 *
 * Looking only copies: nothing waits for a kernel. A launch that ends meanwhile waits for the copy. */
#include "inject/channels.h"

#include <stdlib.h>
#include <time.h>

#include "base/io.h"
#include "base/thread.h"
#include "inject/hooks.h"
#include "inject/run.h"
#include "inject/select.h"
#include "inject/session.h"
#include "inject/tools.h"
#include "inject/twin.h"
#include "record/frame.h"
#include "tool/tool.h"

enum { LOOK_NS = 10000000, READ_NS = 200000000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t some = PTHREAD_COND_INITIALIZER;
static struct mg_run *in_flight; /* by framed.next; under `lock` */
static uint64_t last_look;
static bool looking; /* there is a thread */

static bool is_framed(const struct mg_run *r, uint32_t region)
{
    const struct mg_variant *v = r->body->variant;
    const struct mg_region *g = &v->layout.regions[region];
    return !g->reason && g->n_frame && mg_session.uses[v->uses[region]].tool->flags & MG_TOOL_FRAME;
}

static uint64_t offset_of(const struct mg_region *g)
{
    return MG_CTX_BYTES + 8 * (g->at + g->list_at);
}

static void read_frame(struct mg_run *r, uint32_t region, bool read)
{
    const struct mg_region *g = &r->body->variant->layout.regions[region];
    union {
        struct mg_frame_head head;
        uint64_t words[MG_FRAME_HEAD_WORDS];
    } h;
    const struct mg_backend *of = mg_session.backend;
    if (!of->peek(r, offset_of(g), h.words, MG_FRAME_HEAD_WORDS)) return;
    bool on = mg_select_is_on(r->body->variant->uses[region]);
    const struct mg_frame_shape s = mg_frame_shape_of(g->n_frame, g->frame_payload);
    for (uint32_t k = 0; k < s.parts && on == (h.head.off != 0); k++)
        of->poke(r, offset_of(g) + 8 * (uint64_t)k * s.stride, (uint64_t)h.head.less << 32 | !on);
    uint64_t *words = read ? malloc(g->n_list * sizeof *words) : NULL;
    if (words && of->peek(r, offset_of(g), words, g->n_list)) mg_tools_running(r, region, words);
    free(words);
}

void mg_frames_look(void)
{
    uint64_t now = mg_now_ns();
    pthread_mutex_lock(&lock);
    bool due = now - last_look >= LOOK_NS;
    if (due) last_look = now;
    for (struct mg_run *r = due ? in_flight : NULL; r; r = r->framed.next) {
        bool read = now - r->framed.read_ns >= READ_NS;
        for (uint32_t k = 0; k < r->body->variant->layout.n_regions; k++)
            if (is_framed(r, k)) read_frame(r, k, read);
        if (read) r->framed.read_ns = now;
    }
    pthread_mutex_unlock(&lock);
}

static void *look_for_ever(void *arg)
{
    (void)arg;
    mg_thread_name("margay frames");
    mg_inside++;
    for (;;) {
        pthread_mutex_lock(&lock);
        while (!in_flight) pthread_cond_wait(&some, &lock);
        pthread_mutex_unlock(&lock);
        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
        mg_frames_look();
    }
    return NULL;
}

void mg_frames_add(struct mg_run *r)
{
    for (uint32_t k = 0; k < r->body->variant->layout.n_regions && !r->framed.is; k++) r->framed.is = is_framed(r, k);
    if (!r->framed.is) return;
    pthread_mutex_lock(&lock);
    if (!looking && !mg_session_can(MG_BACKEND_LOOKS)) looking = mg_thread_start(look_for_ever, NULL, 0, NULL);
    r->framed.read_ns = mg_now_ns();
    r->framed.next = in_flight;
    in_flight = r;
    pthread_cond_signal(&some);
    pthread_mutex_unlock(&lock);
}

void mg_frames_remove(struct mg_run *r)
{
    if (!r->framed.is) return;
    pthread_mutex_lock(&lock);
    struct mg_run **at = &in_flight;
    while (*at && *at != r) at = &(*at)->framed.next;
    if (*at) *at = r->framed.next;
    pthread_mutex_unlock(&lock);
    r->framed.is = false;
}
