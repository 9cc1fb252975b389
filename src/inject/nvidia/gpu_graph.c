/* Graphs on a real GPU. A node that runs a twin keeps its slot for ever; replays add to its counters,
 * which are read when no replay of the node is under way and told as the sum of those since the last
 * time (most often: of one).
 *
 *   node taken ── by address of its slot ──► struct mg_graph_node
 *   instantiate ── the driver's list of kernel nodes ──► struct exec { nodes }
 *   cuGraphLaunch ── nodes: launched++ ── event behind it ── ended() ── idle? read, tell the difference
 *
 * What an executable graph runs is asked of the driver, so clones, child graphs and captures of every
 * kind are alike. A node is forgotten, and its slot free again, when its graph and every executable that
 * runs it are gone; where a graph was cloned or became part of another, its nodes stay for ever. Nodes below a
 * conditional node run as often as the device likes: such a launch is `unknown`. */
#include "inject/nvidia/gpu_graph.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/map.h"
#include "inject/backend.h"
#include "inject/gate.h"
#include "inject/hooks.h"
#include "inject/kernels.h"
#include "inject/session.h"
#include "inject/streams.h"
#include "inject/twin.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all this; no driver call under it */
static struct mg_map nodes;                              /* address of a context block -> struct mg_graph_node */
static struct mg_map execs;                              /* cu_graph_exec -> struct mg_graph_list */
static struct mg_graph_node *ready;                      /* to be looked at by the next pass */

static bool is_on(void)
{
    return mg_session.active && !mg_inside && mg_session.backend == &mg_backend_nvidia && !mg_session.cannot;
}

/* ---- nodes ---------------------------------------------------------------------------------------------------- */

static struct mg_graph_node *node_new(struct mg_run *r)
{
    struct mg_graph_node *n = r ? calloc(1, sizeof *n) : NULL;
    if (n) {
        n->run = r;
        n->slot = r->block ? r->room.slot : NULL;
        n->in_graph = n->slot != NULL; /* a native one belongs to its list alone */
        r->block = n->slot ? &r->room : NULL;
        if (n->slot) __atomic_add_fetch(&r->body->n_nodes, 1, __ATOMIC_RELAXED);
    }
    return n;
}

/* Functions that stand for one kernel of a library are instances of their own: of these that of the kernel. */
static struct mg_inst *one_of(struct mg_inst *i)
{
    struct mg_inst *of = i && i->kernel && i->kernel != i->handle ? mg_kernel_get(i->kernel) : NULL;
    return of ? of : i;
}

void mg_gpu_node_add(struct mg_run *r)
{
    if (!r->block) { /* what runs is asked of the driver when the graph is instantiated; why is known now */
        struct mg_inst *i = one_of(r->inst);
        bool again = r->reason.text; /* of the instance's own: what is wrong with its code is so later, too */
        pthread_mutex_lock(&lock);
        i->native = again ? (struct mg_native){0} : (struct mg_native){r->reason.code, r->ran};
        pthread_mutex_unlock(&lock);
        mg_run_free(r);
        return;
    }
    struct mg_graph_node *n = node_new(r);
    pthread_mutex_lock(&lock);
    if (n) mg_map_set(&nodes, r->room.at, (uint64_t)(uintptr_t)n);
    pthread_mutex_unlock(&lock);
}

/* Its twin's last parameter is the address of the context block. */
static struct mg_graph_node *node_of_twin(const struct mg_body *b, const struct cu_kernel_node *p)
{
    uint64_t at = 0, v = 0;
    if (p->params && p->params[b->inst->n_params]) memcpy(&at, p->params[b->inst->n_params], sizeof at);
    for (void **e = p->params ? NULL : p->extra; e && *e != CULAUNCH_PARAM_END; e += 2)
        if (*e == CULAUNCH_PARAM_BUFFER_POINTER) memcpy(&at, (const char *)e[1] + b->variant->ctx_offset, sizeof at);
    pthread_mutex_lock(&lock);
    mg_map_get(&nodes, at, &v);
    pthread_mutex_unlock(&lock);
    return (struct mg_graph_node *)(uintptr_t)v;
}

static struct mg_graph_node *node_of_native(const struct cu_kernel_node *p)
{
    void *handle = p->func ? (void *)p->func : (void *)p->kernel;
    struct mg_inst *i = one_of(handle ? mg_kernel_get(handle) : NULL);
    struct mg_shape s = {.grid = {p->grid_x, p->grid_y, p->grid_z},
                         .block = {p->block_x, p->block_y, p->block_z},
                         .shared_bytes = p->shared_bytes};
    if (!i) return NULL;
    pthread_mutex_lock(&lock);
    struct mg_native native = i->native;
    pthread_mutex_unlock(&lock);
    return node_new(mg_run_native_node(i, &s, native, p->params, p->extra));
}

/* ---- what an executable graph runs ------------------------------------------------------------------------------- */

static void queue(struct mg_graph_node *n) /* under the lock */
{
    if (n->queued) return;
    n->queued = true;
    n->next = ready;
    ready = n;
}

static bool is_garbage(const struct mg_graph_node *n) /* under the lock */
{
    return !n->in_graph && !n->stays && !n->lists && n->told == n->launched && n->ended == n->launched;
}

static void list_add(struct mg_graph_list *l, struct mg_graph_entry e) /* under the lock */
{
    *mg_vec_push(&l->entries) = e;
    e.node->lists++;
}

static void node_leaves(struct mg_graph_node *n) /* a list; under the lock */
{
    if (!--n->lists) queue(n);
}

static void list_unref(struct mg_graph_list *l) /* under the lock */
{
    if (!l || --l->refs) return;
    for (uint32_t i = 0; i < l->entries.n; i++) node_leaves(l->entries.at[i].node);
    mg_vec_release(&l->entries);
    mg_vec_release(&l->copies);
    free(l);
}

static void read_graph(struct mg_graph_list *l, cu_graph g, unsigned depth)
{
    size_t n = 0;
    cu_node *all = depth > 16 ? NULL : mg_gpu_graph_order(g, &n);
    for (size_t k = 0; k < n; k++) {
        int type = -1;
        cu_graph child;
        struct cu_kernel_node p = {0};
        MG_REAL_AS(cuGraphNodeGetType, cu_node, int *)(all[k], &type);
        if (type == CUNODE_GRAPH &&
            MG_REAL_AS(cuGraphChildGraphNodeGetGraph, cu_node, cu_graph *)(all[k], &child) == CUE_SUCCESS)
            read_graph(l, child, depth + 1);
        if (type == CUNODE_CONDITIONAL) l->unknown = MG_REASON_conditional_graph;
        if (mg_steps_on && type == CUNODE_MEM_ALLOC) {
            struct cu_alloc_node alloc;
            if (MG_REAL_AS(cuGraphMemAllocNodeGetParams, cu_node, struct cu_alloc_node *)(all[k], &alloc) ==
                CUE_SUCCESS)
                mg_steps_alloc_node(alloc.ptr, alloc.bytes);
        }
        if (mg_steps_on && (type == CUNODE_MEMCPY || type == CUNODE_MEMSET)) mg_gpu_graph_copy(l, all[k], type);
        if (type != CUNODE_KERNEL ||
            MG_REAL_AS(cuGraphKernelNodeGetParams_v2, cu_node, struct cu_kernel_node *)(all[k], &p) != CUE_SUCCESS)
            continue;
        struct mg_body *twin = mg_kernel_of_twin(p.func);
        struct mg_graph_node *node = twin ? node_of_twin(twin, &p) : node_of_native(&p);
        if (node) {
            pthread_mutex_lock(&lock);
            list_add(l, (struct mg_graph_entry){.handle = all[k], .first = all[k], .node = node});
            pthread_mutex_unlock(&lock);
        } else
            l->unknown = MG_REASON_unknown_graph;
    }
    free(all);
}

/* An update keeps what the executable was told of its nodes, and the handles that name them, where both lists are
 * alike. */
static void carry_over(struct mg_graph_list *l, const struct mg_graph_list *old) /* under the lock */
{
    bool alike = old->entries.n == l->entries.n && old->copies.n == l->copies.n;
    for (uint32_t i = 0; alike && i < l->entries.n; i++)
        alike = l->entries.at[i].node->run->inst == old->entries.at[i].node->run->inst;
    for (uint32_t i = 0; alike && i < l->copies.n; i++)
        alike = l->copies.at[i].step.kind == old->copies.at[i].step.kind &&
                l->copies.at[i].before == old->copies.at[i].before;
    for (uint32_t i = 0; alike && i < l->entries.n; i++) {
        l->entries.at[i].first = old->entries.at[i].first;
        l->entries.at[i].disabled = old->entries.at[i].disabled;
    }
    for (uint32_t i = 0; alike && i < l->copies.n; i++) {
        l->copies.at[i].first = old->copies.at[i].first;
        l->copies.at[i].disabled = old->copies.at[i].disabled;
    }
}

/* Takes the graph's list for x, or none. */
static void exec_set(cu_graph_exec x, cu_graph g, bool updates)
{
    struct mg_graph_list *l = g ? calloc(1, sizeof *l) : NULL;
    uint64_t old = 0;
    if (l) {
        l->refs = 1;
        mg_inside++;
        read_graph(l, g, 0);
        mg_inside--;
    }
    pthread_mutex_lock(&lock);
    mg_map_get(&execs, (uint64_t)(uintptr_t)x, &old);
    if (l && old && updates) carry_over(l, (struct mg_graph_list *)(uintptr_t)old);
    if (l)
        mg_map_set(&execs, (uint64_t)(uintptr_t)x, (uint64_t)(uintptr_t)l);
    else
        mg_map_del(&execs, (uint64_t)(uintptr_t)x);
    list_unref((struct mg_graph_list *)(uintptr_t)old);
    pthread_mutex_unlock(&lock);
}

/* A copy of x's list that may be changed; put in its place under the lock. */
static struct mg_graph_list *list_change(cu_graph_exec x) /* under the lock */
{
    uint64_t v = 0;
    if (!mg_map_get(&execs, (uint64_t)(uintptr_t)x, &v)) return NULL;
    struct mg_graph_list *old = (struct mg_graph_list *)(uintptr_t)v, *l = old->refs == 1 ? old : calloc(1, sizeof *l);
    if (!l || l == old) return l;
    l->refs = 1;
    l->unknown = old->unknown;
    for (uint32_t i = 0; i < old->entries.n; i++) list_add(l, old->entries.at[i]);
    for (uint32_t i = 0; i < old->copies.n; i++) *mg_vec_push(&l->copies) = old->copies.at[i];
    mg_map_set(&execs, (uint64_t)(uintptr_t)x, (uint64_t)(uintptr_t)l);
    list_unref(old);
    return l;
}

static void exec_put(cu_graph_exec x, cu_node handle, struct mg_run *r)
{
    struct mg_graph_node *n = node_new(r);
    pthread_mutex_lock(&lock);
    struct mg_graph_list *l = n ? list_change(x) : NULL;
    bool found = false;
    for (uint32_t i = 0; l && i < l->entries.n; i++)
        if (l->entries.at[i].handle == handle || l->entries.at[i].first == handle) {
            found = true;
            node_leaves(l->entries.at[i].node);
            l->entries.at[i].node = n;
            n->lists++;
            n->in_graph = false; /* the graph itself has the node that was there */
        }
    if (l && !found) l->unknown = MG_REASON_unknown_graph;
    if (n && n->slot) mg_map_set(&nodes, r->room.at, (uint64_t)(uintptr_t)n);
    pthread_mutex_unlock(&lock);
}

void mg_gpu_node_taken(struct mg_run *r, cu_graph_exec x, cu_node node)
{
    if (x)
        exec_put(x, node, r);
    else
        mg_gpu_node_add(r);
}

MG_HOOK(cuGraphNodeSetEnabled, cu_graph_exec x, cu_node node, unsigned on)
{
    cu_result rc = MG_REAL(cuGraphNodeSetEnabled)(x, node, on);
    if (rc != CUE_SUCCESS || !is_on()) return rc;
    pthread_mutex_lock(&lock);
    struct mg_graph_list *l = list_change(x);
    for (uint32_t i = 0; l && i < l->entries.n; i++)
        if (l->entries.at[i].handle == node || l->entries.at[i].first == node) l->entries.at[i].disabled = !on;
    for (uint32_t i = 0; l && i < l->copies.n; i++)
        if (l->copies.at[i].handle == node || l->copies.at[i].first == node) l->copies.at[i].disabled = !on;
    pthread_mutex_unlock(&lock);
    return rc;
}

/* ---- copies and memsets that are changed there ---------------------------------------------------------------- */

static cu_result change_copy(cu_result rc, cu_graph_exec x, cu_node node, const struct cu_memcpy3d *c,
                             const struct cu_memset_node *m)
{
    struct mg_step_record step;
    if (rc != CUE_SUCCESS || !is_on() || !mg_steps_on || (!c && !m)) return rc;
    mg_inside++;
    if (c)
        mg_steps_copy_node(c, &step);
    else
        mg_steps_memset_node(m, &step);
    mg_inside--;
    pthread_mutex_lock(&lock);
    struct mg_graph_list *l = list_change(x);
    for (uint32_t i = 0; l && i < l->copies.n; i++)
        if (l->copies.at[i].handle == node || l->copies.at[i].first == node) l->copies.at[i].step = step;
    pthread_mutex_unlock(&lock);
    return rc;
}
MG_HOOK(cuGraphExecMemcpyNodeSetParams, cu_graph_exec x, cu_node node, const struct cu_memcpy3d *c, cu_ctx ctx)
{
    return change_copy(MG_REAL(cuGraphExecMemcpyNodeSetParams)(x, node, c, ctx), x, node, c, NULL);
}
MG_HOOK(cuGraphExecMemsetNodeSetParams, cu_graph_exec x, cu_node node, const struct cu_memset_node *m, cu_ctx ctx)
{
    return change_copy(MG_REAL(cuGraphExecMemsetNodeSetParams)(x, node, m, ctx), x, node, NULL, m);
}
void mg_gpu_node_changed(cu_graph_exec x, cu_node node, const struct cu_node_params *p)
{
    change_copy(CUE_SUCCESS, x, node, p->type == CUNODE_MEMCPY ? &p->u.memcpy.copy : NULL,
                p->type == CUNODE_MEMSET ? &p->u.memset : NULL);
}

/* ---- graphs that go, or become part of another ------------------------------------------------------------------- */

/* Calls fn for every node of ours in the graph itself (deep: in its child graphs as well). */
static void each_node(cu_graph g, bool deep, void (*fn)(struct mg_graph_node *))
{
    size_t n = 0;
    cu_result (*get)(cu_graph, cu_node *, size_t *) = MG_REAL_AS(cuGraphGetNodes, cu_graph, cu_node *, size_t *);
    cu_node *all = get(g, NULL, &n) == CUE_SUCCESS && n ? calloc(n, sizeof *all) : NULL;
    for (size_t k = 0; all && get(g, all, &n) == CUE_SUCCESS && k < n; k++) {
        int type = -1;
        cu_graph child;
        struct cu_kernel_node p = {0};
        MG_REAL_AS(cuGraphNodeGetType, cu_node, int *)(all[k], &type);
        if (deep && type == CUNODE_GRAPH &&
            MG_REAL_AS(cuGraphChildGraphNodeGetGraph, cu_node, cu_graph *)(all[k], &child) == CUE_SUCCESS)
            each_node(child, deep, fn);
        if (type != CUNODE_KERNEL ||
            MG_REAL_AS(cuGraphKernelNodeGetParams_v2, cu_node, struct cu_kernel_node *)(all[k], &p) != CUE_SUCCESS)
            continue;
        struct mg_body *twin = mg_kernel_of_twin(p.func);
        struct mg_graph_node *node = twin ? node_of_twin(twin, &p) : NULL;
        pthread_mutex_lock(&lock);
        if (node) fn(node);
        pthread_mutex_unlock(&lock);
    }
    free(all);
}
static void leave_graph(struct mg_graph_node *n)
{
    n->in_graph = false;
    queue(n);
}
static void stay(struct mg_graph_node *n)
{
    n->stays = true;
}

void mg_gpu_graph_stays(cu_graph g)
{
    if (!is_on()) return;
    mg_inside++;
    each_node(g, true, stay);
    mg_inside--;
}

MG_HOOK(cuGraphDestroy, cu_graph g)
{
    if (is_on()) {
        mg_inside++;
        each_node(g, false, leave_graph);
        mg_inside--;
    }
    return MG_REAL(cuGraphDestroy)(g);
}
MG_HOOK(cuGraphClone, cu_graph *copy, cu_graph g)
{
    mg_gpu_graph_stays(g);
    return MG_REAL(cuGraphClone)(copy, g);
}
MG_HOOK(cuGraphAddChildGraphNode, cu_node *node, cu_graph g, const cu_node *deps, size_t n, cu_graph child)
{
    mg_gpu_graph_stays(child);
    return MG_REAL(cuGraphAddChildGraphNode)(node, g, deps, n, child);
}
MG_HOOK(cuGraphExecChildGraphNodeSetParams, cu_graph_exec x, cu_node node, cu_graph child)
{
    mg_gpu_graph_stays(child);
    cu_result rc = MG_REAL(cuGraphExecChildGraphNodeSetParams)(x, node, child);
    if (rc == CUE_SUCCESS && is_on()) { /* which of x's nodes are meant is not known any more */
        pthread_mutex_lock(&lock);
        struct mg_graph_list *l = list_change(x);
        if (l) l->unknown = MG_REASON_child_exchanged;
        pthread_mutex_unlock(&lock);
    }
    return rc;
}

#define INSTANTIATED(call)                                                                                             \
    cu_result rc = call;                                                                                               \
    if (rc == CUE_SUCCESS && x && is_on()) exec_set(*x, g, false);                                                     \
    return rc
MG_HOOK(cuGraphInstantiate, cu_graph_exec *x, cu_graph g, cu_node *error, char *log, size_t room)
{
    INSTANTIATED(MG_REAL(cuGraphInstantiate)(x, g, error, log, room));
}
MG_HOOK(cuGraphInstantiate_v2, cu_graph_exec *x, cu_graph g, cu_node *error, char *log, size_t room)
{
    INSTANTIATED(MG_REAL(cuGraphInstantiate_v2)(x, g, error, log, room));
}
MG_HOOK(cuGraphInstantiateWithFlags, cu_graph_exec *x, cu_graph g, unsigned long long flags)
{
    INSTANTIATED(MG_REAL(cuGraphInstantiateWithFlags)(x, g, flags));
}
MG_HOOK(cuGraphInstantiateWithParams, cu_graph_exec *x, cu_graph g, struct cu_instantiate_params *p)
{
    INSTANTIATED(MG_REAL(cuGraphInstantiateWithParams)(x, g, p));
}
MG_HOOK(cuGraphInstantiateWithParams_ptsz, cu_graph_exec *x, cu_graph g, struct cu_instantiate_params *p)
{
    INSTANTIATED(MG_REAL(cuGraphInstantiateWithParams_ptsz)(x, g, p));
}
MG_HOOK(cuGraphExecUpdate, cu_graph_exec x, cu_graph g, cu_node *error, int *result)
{
    cu_result rc = MG_REAL(cuGraphExecUpdate)(x, g, error, result);
    if (rc == CUE_SUCCESS && is_on()) exec_set(x, g, true);
    return rc;
}
MG_HOOK(cuGraphExecUpdate_v2, cu_graph_exec x, cu_graph g, struct cu_update_info *info)
{
    cu_result rc = MG_REAL(cuGraphExecUpdate_v2)(x, g, info);
    if (rc == CUE_SUCCESS && is_on()) exec_set(x, g, true);
    return rc;
}
MG_HOOK(cuGraphExecDestroy, cu_graph_exec x)
{
    if (is_on()) exec_set(x, NULL, false);
    return MG_REAL(cuGraphExecDestroy)(x);
}

/* ---- replays ----------------------------------------------------------------------------------------------------- */

/* One replay of l has ended; on the thread that drains. */
static void ended(void *user, const struct mg_nv_done *d)
{
    struct mg_graph_list *l = user;
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < l->entries.n; i++) {
        struct mg_graph_node *n = l->entries.at[i].node;
        if (l->entries.at[i].disabled) continue;
        n->ended++;
        if (d->error) n->slot = NULL; /* what it counted is lost */
        if (n->ended == n->launched) queue(n);
    }
    list_unref(l);
    pthread_mutex_unlock(&lock);
}

static void ended_gated(void *user, const struct mg_nv_done *d)
{
    mg_gate_ended(d->timed ? d->time_ns : MG_GATE_UNKNOWN, false);
    ended(user, d);
}

static struct mg_graph_list *begin_replay(cu_graph_exec x, uint64_t stream)
{
    uint64_t v = 0, correlation = mg_calls_correlation(), call_ns = mg_calls_begin_ns();
    pthread_mutex_lock(&lock);
    struct mg_graph_list *l =
        mg_map_get(&execs, (uint64_t)(uintptr_t)x, &v) ? (struct mg_graph_list *)(uintptr_t)v : NULL;
    for (uint32_t i = 0; l && i < l->entries.n; i++)
        if (!l->entries.at[i].disabled) {
            struct mg_run *r = l->entries.at[i].node->run;
            l->entries.at[i].node->launched++;
            r->stream = stream; /* of the last one, where several are told together */
            r->correlation = correlation;
            r->call_ns = call_ns;
        }
    if (l) l->refs++;
    pthread_mutex_unlock(&lock);
    return l;
}

static void undo_replay(struct mg_graph_list *l)
{
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < l->entries.n; i++) l->entries.at[i].node->launched -= !l->entries.at[i].disabled;
    list_unref(l);
    pthread_mutex_unlock(&lock);
}

/* The executable becomes a child graph of what is being captured. */
static void keep_exec(cu_graph_exec x)
{
    uint64_t v = 0;
    pthread_mutex_lock(&lock);
    struct mg_graph_list *l =
        mg_map_get(&execs, (uint64_t)(uintptr_t)x, &v) ? (struct mg_graph_list *)(uintptr_t)v : NULL;
    for (uint32_t i = 0; l && i < l->entries.n; i++) l->entries.at[i].node->stays = true;
    pthread_mutex_unlock(&lock);
}

static bool is_capturing(cu_stream s)
{
    int status = CUCAPTURE_NONE;
    return MG_REAL_AS(cuStreamIsCapturing, cu_stream, int *)(s, &status) == CUE_SUCCESS && status == CUCAPTURE_ACTIVE;
}

/* Without a GPU our own driver tells the ends of a graph's kernels; the gate is told when all of it has ended. */
static cu_result replay_own(cu_graph_exec x, cu_stream s, bool per_thread, cu_result (*send)(cu_graph_exec, cu_stream))
{
    bool own = mg_session.active && !mg_inside && mg_gate_is_on() && !mg_session_can(MG_BACKEND_HARDWARE);
    if (!own || is_capturing(s || !per_thread ? s : CU_PER_THREAD_STREAM) || !mg_gate_pass()) return send(x, s);
    mg_inside++;
    cu_result rc = send(x, s);
    if (rc != CUE_SUCCESS)
        mg_gate_undo(true);
    else
        mg_gate_follow(s, per_thread);
    mg_inside--;
    return rc;
}

/* ---- replays in the trace of accesses: gpu_graph_steps.c --------------------------------------------------------- */

/* Numbers are set in the order of the launches that follow them. Who waits too long, since the driver keeps another
 * launch waiting, sets none. */
static pthread_mutex_t sending = PTHREAD_MUTEX_INITIALIZER;
enum { PATIENCE_MS = 100 };

static bool lock_sending(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += PATIENCE_MS * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    return pthread_mutex_timedlock(&sending, &until) == 0;
}

static struct mg_graph_replays *begin_steps(struct mg_graph_list *l, cu_stream s, bool per_thread, bool alone)
{
    struct mg_graph_replays *r = mg_gpu_replays_new(l, s, per_thread);
    if (!r) return NULL;
    pthread_mutex_lock(&lock);
    if (mg_gpu_replays_meet(r)) { /* some of it may have ended since that was looked at */
        pthread_mutex_unlock(&lock);
        mg_nv_collect();
        pthread_mutex_lock(&lock);
    }
    mg_gpu_replays_begin(r, alone);
    l->refs++;
    pthread_mutex_unlock(&lock);
    mg_gpu_replays_number(r);
    return r;
}

static void steps_release(struct mg_graph_replays *r)
{
    pthread_mutex_lock(&lock);
    bool last = !--r->holders;
    if (last) list_unref(r->list);
    pthread_mutex_unlock(&lock);
    if (last) free(r);
}

static void ended_steps(void *user, const struct mg_nv_done *d)
{
    struct mg_graph_replays *r = user;
    (r->gated ? ended_gated : ended)(r->list, d);
    mg_gpu_replays_over(r);
    steps_release(r);
}

static void tell_steps(struct mg_graph_replays *r, bool taken, bool follows)
{
    if (taken) mg_gpu_replays_tell(r);
    mg_steps_over(r->order);
    if (!taken || !follows) steps_release(r); /* no end comes */
    steps_release(r);
}

static cu_result replay(cu_graph_exec x, cu_stream s, bool per_thread, cu_result (*send)(cu_graph_exec, cu_stream))
{
    if (!is_on()) return replay_own(x, s, per_thread, send);
    if (is_capturing(s || !per_thread ? s : CU_PER_THREAD_STREAM)) {
        keep_exec(x);
        return send(x, s);
    }
    bool gated = mg_gate_is_on() && mg_gate_pass();
    mg_inside++;
    const bool alone = mg_steps_on && lock_sending();
    struct mg_graph_list *l = begin_replay(x, mg_stream_number(s || !per_thread ? s : CU_PER_THREAD_STREAM));
    struct mg_graph_replays *steps = l && mg_steps_on ? begin_steps(l, s, per_thread, alone) : NULL;
    if (steps) steps->gated = gated;
    struct mg_nv_launch n = {
        .stream = s, .per_thread = per_thread, .plain = true, .may_time = gated, .wants_time = gated};
    bool follows = l && mg_nv_launch_begin(&n);
    cu_result rc = send(x, s);
    if (steps && rc != CUE_SUCCESS) mg_gpu_replays_fail(steps);
    if (alone) pthread_mutex_unlock(&sending);
    mg_nv_done_fn end = steps ? ended_steps : gated ? ended_gated : ended;
    if (follows) mg_nv_launch_end(&n, rc == CUE_SUCCESS, NULL, end, steps ? (void *)steps : l);
    if (l && (!follows || rc != CUE_SUCCESS)) undo_replay(l);
    if (gated && (!follows || rc != CUE_SUCCESS)) mg_gate_undo(rc != CUE_SUCCESS);
    if (steps) tell_steps(steps, rc == CUE_SUCCESS, follows);
    if (rc == CUE_SUCCESS && (!follows || l->unknown))
        mg_run_unknown(l && l->unknown ? l->unknown : MG_REASON_early_graph);
    mg_inside--;
    return rc;
}
MG_HOOK(cuGraphLaunch, cu_graph_exec x, cu_stream s)
{
    return replay(x, s, false, MG_REAL(cuGraphLaunch));
}
MG_HOOK(cuGraphLaunch_ptsz, cu_graph_exec x, cu_stream s)
{
    return replay(x, s, true, MG_REAL(cuGraphLaunch_ptsz));
}

/* ---- telling ----------------------------------------------------------------------------------------------------- */

struct work {
    struct mg_graph_node *node;
    struct mg_nv_slot *slot;
    uint64_t launched;
};
struct pass {
    struct work *list;
    uint32_t n;
};

static void report_replays(struct mg_graph_node *n, uint64_t replays, uint64_t *raw, const uint64_t *before)
{
    struct mg_launch_done d = {.cuda_error = n->run->block && !raw ? CUE_UNKNOWN : CUE_SUCCESS};
    if (d.cuda_error) strcpy(d.fault.text, "its context failed or was destroyed before it ended");
    mg_run_replays(n->run, replays, &d, raw, before);
}

static int by_slot(const void *a, const void *b)
{
    uint64_t x = ((const struct work *)a)->slot->at, y = ((const struct work *)b)->slot->at;
    return x < y ? -1 : x > y;
}

/* The counters of one node as they are now. They count when no replay began since it was found idle. */
static void take_body(void *user, struct mg_nv_slot *slot, uint64_t *body, bool spoilt)
{
    struct pass *p = user;
    struct work key = {.slot = slot}, *w = bsearch(&key, p->list, p->n, sizeof *p->list, by_slot);
    size_t bytes = mg_nv_slots_body(slot->owner);
    struct mg_graph_node *n = w ? w->node : NULL;
    if (!n || (!n->before && !(n->before = calloc(1, bytes + 8)))) return;
    pthread_mutex_lock(&lock);
    bool still = n->launched == w->launched;
    pthread_mutex_unlock(&lock);
    if (spoilt && still) n->run->spoilt = MG_SPOILT_WORDS; /* for good: they are not made new */
    uint64_t *raw = still ? malloc(bytes + 8) : NULL;
    if (raw) {
        memcpy(raw, body, bytes);
        report_replays(n, w->launched - n->told, raw, n->before);
        memcpy(n->before, body, bytes);
        n->told = w->launched;
    }
    free(raw);
}

static void forget(struct mg_graph_node *n)
{
    if (n->run->block) __atomic_sub_fetch(&n->run->body->n_nodes, 1, __ATOMIC_RELEASE);
    n->run->block = NULL; /* its slot is free already */
    mg_run_free(n->run);
    free(n->before);
    free(n);
}

/* Frees nodes that nothing runs any more; their slots first, a context at a time. */
static void sweep(struct mg_graph_node *garbage)
{
    MG_VEC(struct mg_nv_slot *) slots = {0};
    while (garbage) {
        struct mg_graph_node *rest = NULL;
        struct mg_nv_ctx *x = NULL;
        slots.n = 0;
        for (struct mg_graph_node *n = garbage, *next; n; n = next) {
            next = n->next;
            if (n->slot && x && n->run->body->gpu->x != x) {
                n->next = rest;
                rest = n;
                continue;
            }
            if (n->slot) {
                x = n->run->body->gpu->x;
                *mg_vec_push(&slots) = n->slot;
            }
            forget(n);
        }
        mg_nv_slots_recycle(slots.at, slots.n);
        garbage = rest;
    }
    mg_vec_release(&slots);
}

/* What replays have ended of and who is not needed any more. */
static void look_at_ready(struct work **list, uint32_t *n_list, struct mg_graph_node **garbage)
{
    MG_VEC(struct work) found = {0};
    pthread_mutex_lock(&lock);
    while (ready) {
        struct mg_graph_node *n = ready;
        ready = n->next;
        n->queued = false;
        if (n->ended == n->launched && n->told < n->launched) { /* else the end of a later replay queues it again */
            *mg_vec_push(&found) = (struct work){n, n->slot, n->launched};
        } else if (is_garbage(n)) {
            if (n->slot) mg_map_del(&nodes, n->run->room.at);
            n->next = *garbage;
            *garbage = n;
        }
    }
    pthread_mutex_unlock(&lock);
    *list = found.at;
    *n_list = found.n;
}

void mg_gpu_graph_pass(void)
{
    struct {
        struct work *at;
        uint32_t n;
    } list;
    struct mg_graph_node *garbage = NULL;
    look_at_ready(&list.at, &list.n, &garbage);
    if (garbage) sweep(garbage);
    uint32_t n_slots = 0;
    for (uint32_t i = 0; i < list.n; i++) {
        struct work w = list.at[i];
        if (w.slot) {
            list.at[n_slots++] = w;
            continue;
        }
        report_replays(w.node, w.launched - w.node->told, NULL, NULL);
        w.node->told = w.launched;
    }
    struct mg_nv_slot **slots = calloc(n_slots + 1, sizeof *slots);
    if (n_slots) qsort(list.at, n_slots, sizeof *list.at, by_slot);
    for (uint32_t from = 0, to; slots && from < n_slots; from = to) { /* a context at a time */
        struct pass p = {list.at + from, 0};
        const struct mg_body *first = list.at[from].node->run->body;
        for (to = from; to < n_slots && list.at[to].node->run->body->gpu->x == first->gpu->x; to++)
            slots[p.n++] = list.at[to].slot;
        if (!mg_nv_slots_read(slots, p.n, take_body, &p))
            for (uint32_t i = 0; i < p.n; i++)
                if (p.list[i].node->told < p.list[i].launched) {
                    report_replays(p.list[i].node, p.list[i].launched - p.list[i].node->told, NULL, NULL);
                    p.list[i].node->told = p.list[i].launched;
                }
    }
    free(slots);
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < list.n; i++)
        if (is_garbage(list.at[i].node)) queue(list.at[i].node);
    pthread_mutex_unlock(&lock);
    free(list.at);
}
