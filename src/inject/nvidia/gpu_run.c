/* Launches on a real GPU: a slot of device memory holds the context block and the counters, the event
 * that tells the end rides on the launch itself as a launch attribute, and what was counted comes from
 * the drain thread.
 *
 *   mg_gpu_take ── slot ── mg_gpu_send (cuLaunchKernelEx with our event) ─ ─ ─ done(): counts to the store
 *
 * A launch that allows no further attribute has its event recorded behind it. Now and then, and for the
 * first launches of a kernel, an event pair gives the time instead; never in a capture, nor where the
 * application lets kernels overlap. */
#include "inject/nvidia/gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "inject/device_clock.h"
#include "inject/hooks.h"
#include "inject/kernels.h"
#include "inject/parts.h"
#include "inject/run.h"
#include "inject/session.h"
#include "inject/timeline.h"
#include "inject/tools.h"
#include "inject/twin.h"
#include "inject/verify.h"

#define TIMED_FIRST   4u      /* launches of every kernel */
#define GATED_EVERY   8u      /* one of so many native launches of a short kernel */
#define GATED_LONG_NS 200000u /* of longer ones every launch: the events take some microseconds */
#define MAX_ATTRS     24u

/* ---- slots -------------------------------------------------------------------------------------------------- */

uint64_t mg_gpu_words(const struct mg_body *b, const struct mg_shape *s)
{
    struct mg_counter_launch g = mg_run_launch(s);
    return mg_layout_words(&b->variant->layout, &g);
}

static struct mg_nv_slots *find_slots(struct mg_body *b, struct mg_gpu_body *g, size_t body)
{
    pthread_mutex_lock(&mg_session.lock);
    struct mg_nv_slots *s = g->slots;
    while (s && mg_nv_slots_body(s) != body) s = mg_nv_slots_link(s);
    if (!s) {
        uint64_t header[MG_CTX_BYTES / 8] = {0};
        header[MG_CTX_SYMBOLS / 8] = b->symbols;
        s = mg_nv_slots_new(g->x, header, sizeof header, body);
        if (s) {
            mg_nv_slots_next(s, g->slots);
            g->slots = s;
        }
    }
    pthread_mutex_unlock(&mg_session.lock);
    return s;
}

struct mg_block_mem *mg_gpu_take(struct mg_run *r)
{
    struct mg_gpu_body *g = mg_gpu_body_get(r->body);
    struct mg_nv_slots *s = g ? find_slots(r->body, g, mg_gpu_words(r->body, &r->shape) * sizeof(uint64_t)) : NULL;
    struct mg_nv_slot *slot = s ? mg_nv_slot_take(s) : NULL;
    if (!slot) return NULL;
    r->room = (struct mg_block_mem){.at = slot->at, .slot = slot};
    return &r->room;
}

void mg_gpu_write(struct mg_run *r, uint64_t offset, const uint64_t *words, uint32_t n)
{
    mg_nv_slot_write(r->room.slot, offset, words, n * sizeof *words);
}

bool mg_gpu_peek(const struct mg_run *r, uint64_t offset, uint64_t *words, uint32_t n)
{
    return mg_nv_slot_peek(r->room.slot, offset, words, n * sizeof *words);
}

void mg_gpu_poke(const struct mg_run *r, uint64_t offset, uint64_t word)
{
    mg_nv_slot_poke(r->room.slot, offset, &word, sizeof word);
}

void mg_gpu_give(struct mg_run *r, struct mg_block_mem *m)
{
    (void)m;
    if (r->room.slot) mg_nv_slot_give(r->room.slot);
    r->room.slot = NULL;
}

/* ---- telling the store: on the thread that drains, in the order of the launches ------------------------------ */

static struct mg_run *news; /* newest first */

static void push_news(struct mg_run *r)
{
    struct mg_run *first = __atomic_load_n(&news, __ATOMIC_RELAXED);
    do r->next = first;
    while (!__atomic_compare_exchange_n(&news, &first, r, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

void mg_gpu_announce(void)
{
    struct mg_run *r = __atomic_exchange_n(&news, NULL, __ATOMIC_ACQUIRE), *oldest = NULL;
    while (r) {
        struct mg_run *next = r->next;
        r->next = oldest;
        oldest = r;
        r = next;
    }
    while (oldest) {
        r = oldest;
        oldest = r->next;
        mg_run_announce(r);
        if (r->over) mg_run_ended(r, NULL, NULL);
    }
}

/* ---- the end of a launch --------------------------------------------------------------------------------------- */

static void done(void *user, const struct mg_nv_done *d)
{
    struct mg_run *r = user;
    struct mg_launch_done end = {.start_ns = d->start_ns,
                                 .end_ns = d->timed ? d->start_ns + d->time_ns : 0,
                                 .cuda_error = d->error,
                                 .uncertainty_ns = d->uncertainty_ns};
    const char *name = mg_cu_result_name(d->error);
    if (!r->announced) mg_gpu_announce();
    if (d->spoilt) r->spoilt = MG_SPOILT_WORDS;
    if (r->block && r->body->gpu) __atomic_store_n(&r->body->gpu->used, true, __ATOMIC_RELAXED);
    if (d->error == CUE_CONTEXT_IS_DESTROYED)
        snprintf(end.fault.text, sizeof end.fault.text, "its context was destroyed before it ended");
    else if (d->error != CUE_SUCCESS)
        snprintf(end.fault.text, sizeof end.fault.text, "its context failed with %s", name ? name : "an unknown error");
    mg_run_ended(r, &end, d->body);
}

static void seen(void *user, uint64_t time_ns)
{
    mg_run_seen(user, time_ns);
}

/* Nobody tells when it ends: it is taken as run. */
static void end_now(struct mg_run *r)
{
    if (mg_session.cannot) { /* no thread of ours lives on this driver */
        mg_run_announce(r);
        mg_run_ended(r, NULL, NULL);
        return;
    }
    r->over = true;
    push_news(r);
    mg_nv_thread_start();
}

/* Where pointer arguments point, while that is still allocated. */
static void find_pointers(struct mg_run *r)
{
    const struct mg_inst *i = r->inst;
    struct mg_area a;
    for (uint32_t k = 0; r->values && k < i->n_params; k++) {
        uint64_t v;
        if (i->param_sizes[k] != 8) continue;
        memcpy(&v, (const char *)r->values + i->param_offsets[k], 8);
        struct mg_found f = {.is = true};
        bool part = v && mg_part_find(v, &f.id, &f.off, &f.bytes);
        if (!part && v && mg_area_find(v, &a))
            f = (struct mg_found){a.id, v - a.at, a.bytes, true};
        else if (!part)
            continue;
        if (r->found || (r->found = calloc(i->n_params, sizeof *r->found))) r->found[k] = f;
    }
}

/* ---- sending ----------------------------------------------------------------------------------------------------- */

/* The launch as cuLaunchKernelEx takes it, with one attribute more. */
static cu_result send_with_event(const struct mg_call *c, void *f, void **params, void **extra, cu_event event)
{
    struct cu_launch_attribute attrs[MAX_ATTRS + 1];
    const struct mg_shape *s = &c->shape;
    struct cu_launch_config cfg = {
        .grid_x = s->grid[0],
        .grid_y = s->grid[1],
        .grid_z = s->grid[2],
        .block_x = s->block[0],
        .block_y = s->block[1],
        .block_z = s->block[2],
        .shared_bytes = s->shared_bytes,
        .stream = s->stream,
        .attrs = attrs,
    };
    if (c->config && c->config->n_attrs) {
        memcpy(attrs, c->config->attrs, c->config->n_attrs * sizeof *attrs);
        cfg.n_attrs = c->config->n_attrs;
    }
    struct cu_launch_attribute *a = &attrs[cfg.n_attrs++];
    memset(a, 0, sizeof *a);
    a->id = CULAUNCH_PROGRAMMATIC_EVENT;
    a->value.programmatic_event.event = event;
    void *entry = mg_slots[s->per_thread ? MG_FN_cuLaunchKernelEx_ptsz : MG_FN_cuLaunchKernelEx];
    return ((cu_result(*)(const struct cu_launch_config *, cu_function, void **, void **))entry)(&cfg, f, params,
                                                                                                 extra);
}

/* Behind the gate device time is charged: a launch whose twin reads the clock needs no events for that, and of short
 * ones that run native some are timed, drawn at random. */
static bool wants_time(const struct mg_run *r)
{
    const struct mg_session *s = &mg_session;
    uint32_t n_timed = __atomic_load_n(&r->inst->n_timed, __ATOMIC_RELAXED);
    if (n_timed < TIMED_FIRST || s->config.native_times || s->config.repeat || mg_timeline_times()) return true;
    if (!r->gated || mg_device_clock_is_read(r)) return false;
    return __atomic_load_n(&r->inst->busy_ns, __ATOMIC_RELAXED) > GATED_LONG_NS || !(mg_mix64(r->number) % GATED_EVERY);
}

cu_result mg_gpu_send(const struct mg_call *c, struct mg_run *r, void **params, void **extra)
{
    void *f = r->block ? r->body->twin : c->f;
    bool no_tool = !mg_tools_any();
    find_pointers(r);
    if (r->node || mg_session.cannot) {
        cu_result rc = c->send(c, f, params, extra);
        if (rc == CUE_SUCCESS && r->node)
            mg_gpu_node_add(r); /* the run of a native node is not needed any more */
        else if (rc == CUE_SUCCESS)
            end_now(r);
        return rc;
    }
    struct mg_nv_launch l = {
        .stream = c->shape.stream,
        .per_thread = c->shape.per_thread,
        .plain = !r->block || c->shape.cooperative || c->shape.own_event || (r->body->gpu && r->body->gpu->early) ||
                 (c->config && c->config->n_attrs >= MAX_ATTRS),
        .may_time = !c->shape.programmatic && !c->shape.own_event,
        .wants_time = wants_time(r),
        .only_timed = no_tool && !r->gated,
        .seen = r->gated ? seen : NULL,
    };
    bool follows = mg_nv_launch_begin(&l);
    if (follows && l.wants_time) __atomic_add_fetch(&r->inst->n_timed, 1, __ATOMIC_RELAXED);
    cu_result rc = follows && l.event ? send_with_event(c, f, params, extra, l.event) : c->send(c, f, params, extra);
    if (rc != CUE_SUCCESS && follows && l.event) { /* perhaps the attribute is what it does not take */
        l.event = NULL;
        rc = c->send(c, f, params, extra);
    }
    struct mg_nv_slot *slot = r->block ? r->room.slot : NULL;
    if (rc == CUE_SUCCESS && !r->block && r->inst->code->launches) mg_run_unknown(MG_REASON_device_launches);
    if (follows && rc == CUE_SUCCESS) push_news(r);
    if (follows)
        mg_nv_launch_end(&l, rc == CUE_SUCCESS, slot, done, r);
    else if (rc == CUE_SUCCESS)
        end_now(r); /* the slot, if any, is lost with its context */
    return rc;
}
