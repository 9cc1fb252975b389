/* One launch from the decision to its counts: which code runs, with which context block, what the
 * store is told before the driver's call and what when the driver says that it has ended.
 *
 *   mg_run_new ── mg_run_begin ── backend's send (the driver's launch) ── mg_run_reject, when it was not taken
 *                     └── note ──► ended(): counters -> store, block zeroed and free again
 *
 * ended() runs on a thread of the driver, before any later work of that stream: it takes no lock
 * for long and calls no driver entry. */
#include "inject/run.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/demangle.h"
#include "base/hash.h"
#include "inject/backend.h"
#include "inject/buffers.h"
#include "inject/channels.h"
#include "inject/device_clock.h"
#include "inject/findings.h"
#include "inject/gate.h"
#include "inject/kernels.h"
#include "inject/parts.h"
#include "inject/range.h"
#include "inject/select.h"
#include "inject/session.h"
#include "inject/steps.h"
#include "inject/streams.h"
#include "inject/timeline.h"
#include "inject/tools.h"
#include "inject/twin.h"

/* ---- context blocks ---------------------------------------------------------------------------------------- */

static uint64_t *counters_of(const struct mg_block_mem *b)
{
    return (uint64_t *)(uintptr_t)(b->at + MG_CTX_BYTES);
}

struct mg_counter_launch mg_run_launch(const struct mg_shape *s)
{
    return (struct mg_counter_launch){{s->grid[0], s->grid[1], s->grid[2]}, {s->block[0], s->block[1], s->block[2]}, 0};
}

static void block_give(struct mg_run *r)
{
    struct mg_block_mem *b = r->block;
    r->block = NULL;
    if (b) mg_session.backend->block_give(r, b);
}

/* ---- deciding -------------------------------------------------------------------------------------------------- */

static bool select_kernel(struct mg_run *r)
{
    struct mg_session *s = &mg_session;
    static uint64_t n_children;
    uint64_t number = __atomic_fetch_add(r->child ? &n_children : &s->n_launches, 1, __ATOMIC_RELAXED);
    enum mg_reason why;
    uint32_t set = mg_tools_active(&why);
    r->number = number;
    r->ran = MG_RAN_NATIVE;
    if (!set)
        r->reason = mg_why_of(why);
    else if (s->cannot)
        r->reason = (struct mg_why){MG_REASON_driver_lacks, s->cannot};
    else if (!r->child && !r->in_window)
        r->reason = mg_why_of(r->node ? MG_REASON_graph_outside_range : MG_REASON_outside_range);
    else if (!mg_kernel_matches(s->config.kernel_glob, r->inst->code->name))
        r->reason = mg_why_of(MG_REASON_filtered);
    else if (!r->child && (why = mg_select_why_not(r, number))) /* launches of the host are numbered */
        r->reason = mg_why_of(why);
    else if (!r->node && !(set = mg_tools_draw(r->inst->code, set))) /* replays of a node are counted together */
        r->reason = mg_why_of(MG_REASON_not_sampled);
    else if (!(r->body = mg_kernel_body(r->inst, set)) || !mg_kernel_twin(r->body, &r->shape)) {
        bool later = r->body &&
                     __atomic_load_n(&r->body->state, __ATOMIC_ACQUIRE) == MG_STATE_NEW; /* nothing is wrong with it */
        r->reason = mg_why_of(later ? MG_REASON_would_wait : MG_REASON_no_memory);
        if (!later && r->body && r->body->reason) r->reason = (struct mg_why){MG_REASON_detail, r->body->reason};
        bool cannot = r->inst->code->no_ptx || (!mg_session_can(MG_BACKEND_CHILDREN) && r->inst->code->launches);
        r->ran = cannot || later ? MG_RAN_NATIVE : MG_RAN_FAILED;
    } else if ((why = s->backend->why_not(r->body, &r->shape))) {
        r->reason = mg_why_of(why);
    } else {
        return true;
    }
    return false;
}

/* Copies the arguments, laid out as the kernel sees them. */
static void copy_arguments(struct mg_run *r, void **params, void **extra)
{
    const struct mg_inst *i = r->inst;
    if (!i->n_params || !(r->values = calloc(i->param_bytes / 8 + 1, 8))) return;
    char *to = (char *)r->values;
    if (params) {
        for (uint32_t k = 0; k < i->n_params; k++)
            if (params[k]) memcpy(to + i->param_offsets[k], params[k], i->param_sizes[k]);
        return;
    }
    const void *from = NULL;
    size_t bytes = 0;
    for (void **e = extra; e && *e != CULAUNCH_PARAM_END; e += 2) {
        if (*e == CULAUNCH_PARAM_BUFFER_POINTER)
            from = e[1];
        else if (*e == CULAUNCH_PARAM_BUFFER_SIZE && e[1])
            bytes = *(const size_t *)e[1];
    }
    if (from) memcpy(to, from, MG_MIN(bytes, (size_t)i->param_bytes));
}

static void tell_kernel(struct mg_run *r)
{
    const struct mg_code *c = r->inst->code;
    struct mg_body *b = r->block ? r->body : NULL;
    r->kernel = __atomic_load_n(&c->store_id, __ATOMIC_ACQUIRE);
    if (r->kernel != UINT32_MAX && !mg_code_is_news(c) && (!b || __atomic_load_n(&b->variant->told, __ATOMIC_ACQUIRE)))
        return; /* the warm way takes no lock */
    pthread_rwlock_rdlock(&mg_session.closing);
    if (mg_session.store) r->kernel = mg_kernel_store_id(r->inst, b);
    pthread_rwlock_unlock(&mg_session.closing);
}

static void hold(struct mg_run *r)
{
    __atomic_add_fetch(&r->inst->refs, 1, __ATOMIC_RELAXED);
}

static void destroy(struct mg_run *r)
{
    mg_frames_remove(r);
    mg_channels_give(r);
    block_give(r);
    mg_steps_over(r->step);
    free(r->found);
    free(r->values);
    __atomic_sub_fetch(&r->inst->refs, 1, __ATOMIC_RELEASE); /* it and its bodies may be freed from here on */
    free(r);
}

void mg_run_free(struct mg_run *r)
{
    if (__atomic_sub_fetch(&r->refs, 1, __ATOMIC_ACQ_REL) == 0) destroy(r);
}

/* Runs of nodes that the driver has dropped: it may hold its lock then, so they wait for the next launch. */
static struct mg_run *dead;

static void let_go(void *user)
{
    struct mg_run *r = user;
    if (__atomic_sub_fetch(&r->refs, 1, __ATOMIC_ACQ_REL)) return;
    r->next = __atomic_load_n(&dead, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&dead, &r->next, r, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
    }
}

void mg_run_bury(void)
{
    struct mg_run *r =
        __atomic_load_n(&dead, __ATOMIC_RELAXED) ? __atomic_exchange_n(&dead, NULL, __ATOMIC_ACQUIRE) : NULL;
    while (r) {
        struct mg_run *next = r->next;
        destroy(r);
        r = next;
    }
}

/* What tools want the kernel to know of this launch. */
static void fill_words(struct mg_run *r)
{
    uint64_t words[MG_CTX_N_WORDS] = {0};
    mg_write_fn write = mg_session.backend->write;
    if (mg_tools_words(r, words)) write(r, MG_CTX_WORDS, words, MG_CTX_N_WORDS);
    mg_tools_lists(r, write);
}

static struct mg_run *new_run(struct mg_inst *i, const struct mg_shape *s, void **params, void **extra, bool node,
                              bool child)
{
    mg_run_bury();
    struct mg_run *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    *r = (struct mg_run){.refs = 1, .inst = i, .shape = *s, .node = node, .child = child, .ran = MG_RAN_INSTRUMENTED};
    hold(r);
    if (child) r->graph = MG_GRAPH_DEVICE;
    r->device = i->device;
    r->stream = mg_stream_number(mg_stream_of(s->stream, s->per_thread));
    r->ctx = i->ctx_number;
    r->correlation = mg_calls_correlation();
    r->call_ns = mg_calls_begin_ns();
    r->mark = mg_nvtx_range();
    r->in_window = mg_window_is_open();
    if (select_kernel(r) && !(r->block = mg_session.backend->block_take(r))) {
        r->reason = mg_why_of(MG_REASON_no_room_counters);
        r->ran = MG_RAN_FAILED;
    }
    enum mg_reason no_channel = r->block ? mg_channels_take(r) : MG_REASON_none;
    if (no_channel) {
        block_give(r);
        r->reason = mg_why_of(no_channel);
        r->ran = MG_RAN_FAILED;
    }
    if (r->block)
        r->ran = MG_RAN_INSTRUMENTED;
    else
        mg_kernel_find(i);
    tell_kernel(r);
    copy_arguments(r, params, extra);
    if (r->block) fill_words(r);
    if (r->block && !node) mg_frames_add(r);
    return r;
}

struct mg_run *mg_run_new(struct mg_inst *i, const struct mg_shape *s, void **params, void **extra, bool node)
{
    return new_run(i, s, params, extra, node, false);
}

struct mg_run *mg_run_child(struct mg_inst *i, const struct mg_shape *s, void **extra)
{
    struct mg_run *r = new_run(i, s, NULL, extra, false, true);
    struct mg_step_record step;
    if (r) mg_run_announce(r);
    if (r && mg_steps_on) {
        mg_steps_describe(r, &step);
        mg_steps_put(&step, r->inst->code->name);
        mg_steps_over(step.order);
    }
    return r;
}

struct mg_run *mg_run_native(struct mg_run *r, enum mg_reason reason)
{
    mg_frames_remove(r);
    mg_channels_give(r);
    block_give(r);
    mg_steps_over(r->step);
    r->step = 0;
    r->ran = MG_RAN_FAILED;
    r->reason = mg_why_of(reason);
    return r;
}

/* ---- telling the store ----------------------------------------------------------------------------------------- */

static bool is_pointer(uint64_t value, struct mg_store_arg *a, uint64_t *bytes)
{
    return value && (mg_part_find(value, &a->allocation, &a->allocation_off, bytes) ||
                     mg_session.backend->allocation(value, &a->allocation, &a->allocation_off, bytes));
}

static uint64_t store_launch(const struct mg_run *r) /* under closing */
{
    const struct mg_inst *i = r->inst;
    struct mg_store_arg few[32], *args = few;
    uint32_t n = r->values ? i->n_params : 0;
    if (n > MG_COUNT_OF(few) && !(args = malloc(n * sizeof *args))) n = 0;
    for (uint32_t k = 0; k < n; k++) {
        const char *at = (const char *)r->values + i->param_offsets[k];
        args[k] = (struct mg_store_arg){.offset = i->param_offsets[k], .bytes = i->param_sizes[k], .value = at};
        uint64_t v, bytes = 0;
        if (r->found && r->found[k].is) {
            args[k].kind = MG_ARG_POINTER;
            args[k].allocation = r->found[k].id;
            args[k].allocation_off = r->found[k].off;
            bytes = r->found[k].bytes;
        } else if (args[k].bytes == 8 && (memcpy(&v, at, 8), is_pointer(v, &args[k], &bytes))) {
            args[k].kind = MG_ARG_POINTER;
        }
        if (args[k].kind == MG_ARG_POINTER) mg_buffers_note(args[k].allocation, bytes);
    }
    const struct mg_shape *s = &r->shape;
    struct mg_store_launch l = {
        .kernel = r->kernel,
        .grid = {s->grid[0], s->grid[1], s->grid[2]},
        .block = {s->block[0], s->block[1], s->block[2]},
        .cluster = {s->cluster[0], s->cluster[1], s->cluster[2]},
        .static_shared_bytes = i->static_shared,
        .dyn_shared_bytes = s->shared_bytes,
        .device = r->device,
        .stream = r->stream,
        .ctx = r->ctx,
        .graph = r->graph,
        .ran = r->ran,
        .reason = r->ran == MG_RAN_INSTRUMENTED && r->reason.code != MG_REASON_repeat ? NULL : mg_why_text(r->reason),
        .cooperative = s->cooperative,
        .tools = r->ran == MG_RAN_INSTRUMENTED && r->body ? r->body->variant->tools : 0,
        .args = args,
        .n_args = n,
    };
    uint64_t id = mg_store_launch(mg_session.store, &l);
    if (args != few) free(args);
    return id;
}

static void count_time(struct mg_code *c, const struct mg_store_done *done)
{
    __atomic_fetch_add(&c->n_ended, done->replays, __ATOMIC_RELAXED);
    if (done->timed) {
        __atomic_fetch_add(&c->n_timed, 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&c->timed_ns, done->time_ns, __ATOMIC_RELAXED);
    }
}

/* Block counters of replays since `before`; the words behind them are the tools'. */
static uint64_t *counted_since(const struct mg_counter_layout *l, const struct mg_counter_launch *g,
                               const uint64_t *raw, const uint64_t *before)
{
    uint64_t n = mg_counters_words(l, g), *since = malloc((n + 1) * sizeof *since);
    for (uint64_t k = 0; since && k < n; k++) since[k] = raw[k] - before[k];
    return since;
}

static void write_each(const struct mg_counter_layout *l, const struct mg_counter_launch *g, const uint64_t *counters,
                       uint64_t launch)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%ld-%llu.csv", l->each, (long)getpid(), (unsigned long long)launch);
    if (mg_counters_write_each(l, g, counters, path, NULL)) mg_session_error("%s cannot be written", path);
}

static bool counts_fit(const struct mg_fit *f, const struct mg_counter_layout *l, const struct mg_counter_launch *g,
                       const struct mg_store_done *done)
{
    uint64_t threads, warps;
    mg_counters_launched(l->scope, l->cta, l->warp, g, &threads, &warps);
    return mg_counts_fit(f, threads, done->threads, done->warps);
}

/* Under -q nobody else says that counts are lost: the first time, and what cancels others behind it. */
static void tell_broken(const struct mg_run *r, const struct mg_launch_done *d, const char *why)
{
    static atomic_bool told, told_cancelled;
    bool cancelled = d->fault.kind == MG_FAULT_CANCELLED;
    if (!mg_session.config.quiet || !r->block || (cancelled && atomic_load(&told)) ||
        atomic_exchange(cancelled ? &told_cancelled : &told, true))
        return;
    struct mg_buf name = MG_BUF_INIT;
    const char *rest = strncmp(why, "kernel ", 7) ? NULL : strchr(why, ':');
    mg_demangle_add(&name, r->inst->code->name, 80);
    mg_session_error("kernel %s did not complete and is not in the counts%s%s", name.at ? name.at : "",
                     rest ? "" : ": ", rest ? rest : why);
    mg_buf_release(&name);
}

/* raw: what was counted; before: what of it has been told already, NULL: nothing. Counts that the program wrote into
 * are no counts, nor are those of other tools beside them. */
static void store_done(const struct mg_run *r, uint64_t launch, const struct mg_launch_done *d, const uint64_t *raw,
                       const uint64_t *before, uint64_t replays, struct mg_timeline_kernel *k)
{
    const struct mg_layout *all = r->block && raw ? &r->body->variant->layout : NULL;
    const struct mg_counter_layout *layout = all && all->has_blocks ? &all->blocks : NULL;
    uint32_t n = layout ? layout->n_blocks : 0;
    uint64_t *counts = n ? malloc(2 * (size_t)n * sizeof *counts) : NULL;
    struct mg_store_done done = {
        .complete = !d || (d->fault.kind == MG_FAULT_NONE && !d->cuda_error),
        .replays = replays,
    };
    done.schedule_dependent = d && !mg_session_can(MG_BACKEND_HARDWARE) ? d->schedule_dependent : -1;
    if (!done.complete) {
        done.why = d->fault.text[0] ? d->fault.text : mg_fault_kind_text(d->fault.kind);
        tell_broken(r, d, done.why);
    }
    if (d && d->end_ns > d->start_ns) {
        done.start_ns = d->start_ns - mg_session.start_ns;
        done.time_ns = d->end_ns - d->start_ns;
        done.timed = true;
    }
    count_time(r->inst->code, &done);
    const char *spoilt = done.complete ? r->spoilt : NULL;
    if (counts) {
        struct mg_counter_launch g = mg_run_launch(&r->shape);
        g.times = replays;
        uint64_t *since = before ? counted_since(layout, &g, raw, before) : NULL;
        const uint64_t *counters = before ? since : raw;
        if (counters) {
            bool fits = mg_counters_read(layout, &g, counters, counts, counts + n);
            done.threads = counts;
            done.warps = layout->warps ? counts + n : NULL;
            done.n_blocks = n;
            if (done.complete && !spoilt && !(fits && counts_fit(&all->fit, layout, &g, &done)))
                spoilt = MG_SPOILT_COUNTS;
            __atomic_fetch_add(&r->inst->code->other_calls, mg_counters_other(layout, &g, counters), __ATOMIC_RELAXED);
            if (layout->each && !spoilt) write_each(layout, &g, counters, launch);
        }
        free(since);
    }
    if (spoilt) {
        done.why = spoilt;
        done.threads = done.warps = NULL;
    }
    const bool tools = all || (r->block && !done.complete); /* counts that a fault took are none to them, too */
    uint64_t hash = tools ? mg_tools_ended(r, launch, raw, before, replays, done.complete && !spoilt, k) : 0;
    mg_store_launch_done(mg_session.store, launch, &done);
    if (all && done.complete && !spoilt)
        mg_select_ended(r, done.threads ? mg_hash64(counts, n * sizeof *counts, hash) : hash, done.timed, done.time_ns);
    free(counts);
}

/* Launches of a kernel of late count for an eighth each. */
static void note_busy(struct mg_inst *i, uint64_t ns)
{
    uint64_t typical = __atomic_load_n(&i->busy_ns, __ATOMIC_RELAXED);
    __atomic_store_n(&i->busy_ns, typical ? typical - typical / 8 + ns / 8 : ns, __ATOMIC_RELAXED);
}

/* To the gate: how long the device was at it, and at nothing else of ours that the gate was told of. */
static void tell_gate(const struct mg_run *r, const struct mg_launch_done *d, uint64_t own_ns)
{
    uint64_t wall_ns = d && d->end_ns > d->start_ns ? d->end_ns - d->start_ns : 0, ns = d && d->busy_ns ? d->busy_ns
                                                                                        : own_ns        ? own_ns
                                                                                                        : wall_ns;
    if (r->gated && ns) note_busy(r->inst, ns);
    if (r->charged_ns && ns)
        mg_gate_correct(r->charged_ns, ns);
    else if (r->gated && !r->charged_ns)
        mg_gate_ended(ns ? ns : MG_GATE_UNKNOWN, false);
    else if (r->node && ns)
        mg_gate_charge(ns);
}

void mg_run_seen(struct mg_run *r, uint64_t time_ns)
{
    uint64_t typical = __atomic_load_n(&r->inst->busy_ns, __ATOMIC_RELAXED);
    if (!r->gated) return;
    r->charged_ns = mg_gate_ended(time_ns ? time_ns : typical ? typical : MG_GATE_UNKNOWN, true);
}

/* To the time line and the store: what a launch counted alone. */
static void tell_ended(const struct mg_run *r, uint64_t launch, const struct mg_launch_done *d, const uint64_t *raw)
{
    struct mg_timeline_kernel k;
    bool on = mg_timeline_kernel(r, launch, d, raw, &k);
    store_done(r, launch, d, raw, NULL, 1, on ? &k : NULL);
}

static void ended_launch(struct mg_run *r, const struct mg_launch_done *d)
{
    tell_gate(r, d, 0);
    pthread_rwlock_rdlock(&mg_session.closing);
    if (mg_session.store) {
        tell_ended(r, r->launch, d, r->block ? counters_of(r->block) : NULL);
        mg_findings_add(r->kernel, r->launch, d);
    }
    pthread_rwlock_unlock(&mg_session.closing);
    mg_run_free(r);
}

/* Counters that replays of a graph's node left together; those that begin now find none. NULL: there are none. */
static uint64_t *take_counters(const struct mg_run *r, bool *lost)
{
    uint64_t n = r->block ? r->block->words : 0;
    uint64_t *raw = n ? malloc(n * sizeof *raw) : NULL;
    for (uint64_t k = 0; raw && k < n; k++)
        raw[k] = __atomic_exchange_n(&counters_of(r->block)[k], 0, __ATOMIC_ACQ_REL);
    *lost = n && !raw;
    return raw;
}

/* Those that ran at the same time, the last of which has ended. */
static void tell_replays(struct mg_run *r, const struct mg_launch_done *d, const uint64_t *raw)
{
    struct mg_timeline_kernel k;
    struct mg_launch_done last = *d;
    bool on = mg_timeline_kernel(r, r->launch, d, r->runs.together == 1 ? raw : NULL, &k);
    if (r->runs.together > 1) last.start_ns = last.end_ns = 0;
    if (r->runs.failed && !last.cuda_error) {
        last.cuda_error = r->runs.failed;
        snprintf(last.fault.text, sizeof last.fault.text, "another run of this node, at the same time, failed");
    }
    store_done(r, r->launch, &last, raw, NULL, r->runs.together, on ? &k : NULL);
}

/* One replay of a graph node. Several executables may run it at once and share the block: their counters are told
 * together, when none runs. */
static void ended_node(struct mg_run *r, const struct mg_launch_done *d)
{
    bool lost = false;
    tell_gate(r, d, 0);
    uint64_t *raw = d->others ? NULL : take_counters(r, &lost);
    pthread_rwlock_rdlock(&mg_session.closing);
    if (mg_session.store && !lost) {
        struct mg_timeline_kernel k;
        r->stream = d->mark.stream; /* of what launched the graph this time */
        if (!r->runs.together) r->launch = store_launch(r);
        mg_steps_node(r, d, r->runs.next + r->runs.together, !r->runs.together);
        mg_findings_add(r->kernel, r->launch, d);
        r->runs.together++;
        if (d->cuda_error) r->runs.failed = d->cuda_error;
        if (d->others)
            mg_timeline_kernel(r, r->launch, d, NULL, &k);
        else
            tell_replays(r, d, raw);
    }
    if (!d->others) {
        r->runs.next += MG_MAX(r->runs.together, 1u);
        r->runs.together = 0;
        r->runs.failed = 0;
        mg_channels_replay(r, r->runs.next, NULL, NULL);
    }
    pthread_rwlock_unlock(&mg_session.closing);
    free(raw);
}

void mg_run_child_ended(struct mg_run *r, const struct mg_launch_done *d)
{
    ended_launch(r, d);
}

static void ended(void *user, const struct mg_launch_done *d)
{
    struct mg_run *r = user;
    if (r->node)
        ended_node(r, d);
    else
        ended_launch(r, d);
}

void mg_run_ended(struct mg_run *r, const struct mg_launch_done *d, uint64_t *raw)
{
    struct mg_launch_done by_clock;
    if (d && mg_device_clock_time(r, raw, d, &by_clock)) d = &by_clock;
    tell_gate(r, d, d && r->gated ? mg_device_clock_own(r, raw) : 0);
    pthread_rwlock_rdlock(&mg_session.closing);
    if (mg_session.store) {
        tell_ended(r, r->launch, d, raw);
    }
    pthread_rwlock_unlock(&mg_session.closing);
    r->block = NULL; /* its slot is seen to by who calls this */
    mg_run_free(r);
}

/* Tells the store of a launch that the driver has taken. */
void mg_run_announce(struct mg_run *r)
{
    pthread_rwlock_rdlock(&mg_session.closing);
    if (mg_session.store) r->launch = store_launch(r);
    pthread_rwlock_unlock(&mg_session.closing);
    r->announced = true;
}

/* n replays of a graph's node have ended; raw: what they counted together, NULL: nothing. */
void mg_run_replays(const struct mg_run *r, uint64_t n, const struct mg_launch_done *d, uint64_t *raw,
                    const uint64_t *before)
{
    pthread_rwlock_rdlock(&mg_session.closing);
    if (mg_session.store) {
        uint64_t launch = store_launch(r);
        struct mg_timeline_kernel kernel;
        bool on = false;
        for (uint64_t k = 0; k < n && mg_timeline.on; k++) /* several share their cells */
            on = mg_timeline_kernel(r, launch, NULL, n == 1 && !before ? raw : NULL, &kernel);
        store_done(r, launch, d, raw, before, n, on ? &kernel : NULL);
    }
    pthread_rwlock_unlock(&mg_session.closing);
}

/* A node that runs the application's own code, for the record. native: as such a node was made; where that is not
 * known, what would be the reason now. */
struct mg_run *mg_run_native_node(struct mg_inst *i, const struct mg_shape *s, struct mg_native native, void **params,
                                  void **extra)
{
    struct mg_run *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    *r = (struct mg_run){.refs = 1,
                         .inst = i,
                         .shape = *s,
                         .node = true,
                         .in_window = true,
                         .ran = MG_RAN_NATIVE,
                         .device = i->device,
                         .ctx = i->ctx_number};
    hold(r);
    if (native.why) {
        r->reason = mg_why_of(native.why);
        r->ran = native.ran;
    } else if (select_kernel(r)) {
        r->ran = MG_RAN_NATIVE;
        r->reason = mg_why_of(MG_REASON_native_graph);
    }
    mg_kernel_find(i);
    tell_kernel(r);
    copy_arguments(r, params, extra);
    return r;
}

void mg_run_begin(struct mg_run *r)
{
    if (!mg_session_can(MG_BACKEND_TELLS_ENDS)) /* send tells the store later, off the launch's path */
        return;
    if (!r->node) {
        pthread_rwlock_rdlock(&mg_session.closing);
        if (mg_session.store) r->launch = store_launch(r);
        pthread_rwlock_unlock(&mg_session.closing);
    }
    if (r->node) {
        __atomic_add_fetch(&r->refs, 1, __ATOMIC_RELAXED);
        mg_session.backend->note_node(ended, r, let_go);
    } else {
        mg_session.backend->note(ended, r);
    }
}

void mg_run_reject(struct mg_run *r)
{
    if (r->node || !mg_session_can(MG_BACKEND_TELLS_ENDS)) return;
    pthread_rwlock_rdlock(&mg_session.closing);
    if (mg_session.store) mg_store_launch_drop(mg_session.store, r->launch);
    pthread_rwlock_unlock(&mg_session.closing);
}

/* A launch that ran as it is and whose end nobody tells. */
void mg_run_record(struct mg_inst *i, const struct mg_shape *s, enum mg_reason reason)
{
    struct mg_run *r = calloc(1, sizeof *r);
    if (!r) return;
    *r = (struct mg_run){.refs = 1, .inst = i, .shape = *s, .ran = MG_RAN_NATIVE, .reason = mg_why_of(reason)};
    hold(r);
    r->stream = mg_stream_number(mg_stream_of(s->stream, s->per_thread));
    r->ctx = mg_ctx_number(i->ctx);
    r->in_window = mg_window_is_open();
    mg_kernel_find(i);
    tell_kernel(r);
    pthread_rwlock_rdlock(&mg_session.closing);
    if (mg_session.store) {
        uint64_t launch = store_launch(r);
        tell_ended(r, launch, NULL, NULL);
    }
    pthread_rwlock_unlock(&mg_session.closing);
    mg_run_free(r);
}

void mg_run_unknown(enum mg_reason reason)
{
    pthread_rwlock_rdlock(&mg_session.closing);
    if (mg_session.store) mg_store_unknown(mg_session.store, "launch", 1, mg_reason_text(reason));
    pthread_rwlock_unlock(&mg_session.closing);
}

/* ---- parameters of the twin -------------------------------------------------------------------------------------- */

static bool extend_params(struct mg_params *p, uint32_t n, void **params)
{
    void **to = p->params_at;
    if (n + 2 > MG_COUNT_OF(p->params_at) && !(to = p->heap = malloc((n + 2) * sizeof *to))) return false;
    for (uint32_t k = 0; k < n; k++) to[k] = params[k];
    to[n] = &p->ctx;
    to[n + 1] = (void *)p->known;
    p->params = to;
    return true;
}

static bool extend_extra(struct mg_params *p, const struct mg_run *r)
{
    const struct mg_variant *v = r->body->variant;
    uint32_t at = v->ctx_offset, bytes = v->known_bytes ? v->known_offset + v->known_bytes : at + 8;
    char *buffer = p->heap = calloc(1, bytes);
    if (!buffer) return false;
    if (r->values) memcpy(buffer, r->values, MG_MIN(at, r->inst->param_bytes));
    memcpy(buffer + at, &p->ctx, 8);
    if (v->known_bytes) memcpy(buffer + v->known_offset, p->known, v->known_bytes);
    p->size = bytes;
    void *extra[5] = {CULAUNCH_PARAM_BUFFER_POINTER, buffer, CULAUNCH_PARAM_BUFFER_SIZE, &p->size, CULAUNCH_PARAM_END};
    memcpy(p->extra_at, extra, sizeof extra);
    p->extra = p->extra_at;
    return true;
}

bool mg_params_extend(struct mg_params *p, const struct mg_run *r, void **params, void **extra)
{
    *p = (struct mg_params){.ctx = r->block->at, .known = __atomic_load_n(&r->body->known, __ATOMIC_ACQUIRE)};
    if (params || !extra) return (params || !r->inst->n_params) && extend_params(p, r->inst->n_params, params);
    return extend_extra(p, r);
}

void mg_params_release(struct mg_params *p)
{
    free(p->heap);
}
