/* Launches that kernels make (CUDA dynamic parallelism, the interface that PTX of CUDA 12 and later
 * calls: __cudaCDP2...). A child waits in a list of its parent's grid until every CTA of that has
 * ended, which the rules allow: a parent cannot wait for its children. Then children run in order of
 * CTA and call, each with everything that it launches itself before the next; tail launches come
 * last. A host launch is over when all that has run.
 */
#include "device/emu/emu.h"

#include <inttypes.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "device/defined.h"
#include "device/mem.h"

enum { TAIL_LAUNCH = 3 }; /* cudaStreamTailLaunch; cudaStreamFireAndForget is 4; else NULL or a handle that we made */
enum { CUDA_SUCCESS = 0, CUDA_INVALID_VALUE = 1, CUDA_OUT_OF_MEMORY = 2, CUDA_INVALID_CONFIGURATION = 9 };
#define MAGIC 0x646c6968636d6567ull /* a buffer; one more once it is launched */

struct emu_child { /* in device memory, the parameters behind it */
    _Alignas(64) uint64_t magic;
    struct emu_child *next;
    struct mg_dkernel *kernel; /* NULL: a copy, or a fill */
    uint64_t to, from, bytes;
    bool fill;
    uint32_t grid[3], block[3], shared;
    uint64_t stream, cta, seq;
};

static const struct {
    const char *name;
    enum emu_builtin builtin;
} entries[] = {
    {"GetParameterBufferV2", EMU_BUILTIN_CHILD_BUFFER},
    {"LaunchDeviceV2", EMU_BUILTIN_CHILD_LAUNCH},
    {"LaunchDeviceV2_ptsz", EMU_BUILTIN_CHILD_LAUNCH},
    {"StreamCreateWithFlags", EMU_BUILTIN_CHILD_STREAM},
    {"StreamDestroy", EMU_BUILTIN_CHILD_NOTHING},
    {"EventCreateWithFlags", EMU_BUILTIN_CHILD_STREAM},
    {"EventRecord", EMU_BUILTIN_CHILD_NOTHING},
    {"EventDestroy", EMU_BUILTIN_CHILD_NOTHING},
    {"StreamWaitEvent", EMU_BUILTIN_CHILD_NOTHING},
    {"GetLastError", EMU_BUILTIN_CHILD_ERROR},
    {"PeekAtLastError", EMU_BUILTIN_CHILD_ERROR},
    {"GetErrorString", EMU_BUILTIN_CHILD_TEXT},
    {"GetErrorName", EMU_BUILTIN_CHILD_TEXT},
    {"MemcpyAsync", EMU_BUILTIN_CHILD_COPY},
    {"MemsetAsync", EMU_BUILTIN_CHILD_FILL},
    {"Malloc", EMU_BUILTIN_CHILD_MALLOC},
    {"Free", EMU_BUILTIN_CHILD_FREE},
    {"GetDevice", EMU_BUILTIN_CHILD_DEVICE},
    {"GraphSetConditional", EMU_BUILTIN_SET_CONDITIONAL},
};

enum emu_builtin emu_child_find(const char *name)
{
    if (!strncmp(name, "__cudaCDP2", 10))
        name += 10;
    else if (!strncmp(name, "cuda", 4))
        name += 4;
    else
        return EMU_BUILTIN_NONE;
    for (uint32_t i = 0; i < MG_COUNT_OF(entries); i++)
        if (!strcmp(name, entries[i].name)) return entries[i].builtin;
    return EMU_BUILTIN_NONE;
}

/* ---- what the parent calls ----------------------------------------------------------------------------- */

static struct mg_dkernel *kernel_at(struct mg_device *dev, uint64_t address)
{
    struct mg_dmod *mod;
    mg_id func;
    if (!emu_function_at(dev, address, &mod, &func)) return NULL;
    for (uint32_t i = 0; i < mod->n_kernels; i++)
        if (mod->kernels[i].func == func) return &mod->kernels[i];
    return NULL;
}

static uint64_t buffer(struct emu_frame *f, const struct emu_call *call, uint32_t lane)
{
    struct emu_launch *l = f->wk->l;
    struct mg_dkernel *k = kernel_at(f->wk->dev, emu_argument(f, call, 0, lane, NULL, 0));
    struct emu_child proto = {.magic = MAGIC, .kernel = k};
    emu_argument(f, call, 1, lane, proto.grid, sizeof proto.grid);
    emu_argument(f, call, 2, lane, proto.block, sizeof proto.block);
    proto.shared = (uint32_t)emu_argument(f, call, 3, lane, NULL, 0);
    uint64_t threads = (uint64_t)proto.block[0] * proto.block[1] * proto.block[2],
             ctas = (uint64_t)proto.grid[0] * proto.grid[1] * proto.grid[2];
    int error = !k                                    ? CUDA_INVALID_VALUE
                : !threads || threads > 1024 || !ctas ? CUDA_INVALID_CONFIGURATION
                                                      : CUDA_SUCCESS;
    uint64_t at = error ? 0 : mg_mem_alloc(sizeof proto + k->param_bytes + 16, 0, MG_ALLOC_RUNTIME);
    if (!error && !at) error = CUDA_OUT_OF_MEMORY;
    if (error) {
        atomic_store(&l->child_error, error);
        return 0;
    }
    memset((void *)at, 0, sizeof proto + k->param_bytes + 16);
    memcpy((void *)at, &proto, sizeof proto);
    return at + sizeof proto;
}

static int launch(struct emu_frame *f, uint64_t params, uint64_t stream)
{
    struct emu_launch *l = f->wk->l;
    struct emu_child *c = (struct emu_child *)(params - sizeof *c);
    struct mg_alloc a;
    if (params < sizeof *c || !mg_mem_find((uint64_t)c, &a) || a.base != (uint64_t)c || a.kind != MG_ALLOC_RUNTIME ||
        c->magic != MAGIC)
        return CUDA_INVALID_VALUE;
    c->magic++;
    c->stream = stream;
    c->cta = f->w->cta->linear;
    pthread_mutex_lock(&l->lock);
    c->seq = ++l->n_children;
    c->next = l->children;
    l->children = c;
    pthread_mutex_unlock(&l->lock);
    return CUDA_SUCCESS;
}

/* A copy or a fill in stream order: dst, src or value, bytes, (kind,) stream. */
static int transfer(struct emu_frame *f, const struct emu_call *call, uint32_t lane, bool fill)
{
    uint64_t bytes = emu_argument(f, call, 2, lane, NULL, 0),
             at = bytes ? mg_mem_alloc(sizeof(struct emu_child), 0, MG_ALLOC_RUNTIME) : 0;
    if (!bytes) return CUDA_SUCCESS;
    if (!at) return CUDA_OUT_OF_MEMORY;
    *(struct emu_child *)at = (struct emu_child){.magic = MAGIC,
                                                 .to = emu_argument(f, call, 0, lane, NULL, 0),
                                                 .from = emu_argument(f, call, 1, lane, NULL, 0),
                                                 .bytes = bytes,
                                                 .fill = fill};
    return launch(f, at + sizeof(struct emu_child), emu_argument(f, call, fill ? 3 : 4, lane, NULL, 0));
}

/* A text that the kernel can read; kept as long as the process. */
static uint64_t error_text(int error)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static uint64_t at[2];
    static const char *const texts[] = {"no error", "error of a device-side launch"};
    int k = error != CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    if (!at[k] && (at[k] = mg_mem_alloc(64, 0, MG_ALLOC_RUNTIME)))
        memcpy((void *)at[k], texts[k], strlen(texts[k]) + 1);
    pthread_mutex_unlock(&lock);
    return at[k];
}

static void put(struct emu_frame *f, const struct emu_op *op, uint32_t lane, uint64_t address, uint64_t value)
{
    struct emu_op to = *op;
    to.space = MG_SPACE_generic;
    to.flags = EMU_OF_WRITES;
    if (!emu_check_one(f, &to, (int)lane, address, 8)) emu_fault_access(f, &to, (int)lane, address, 8);
    memcpy((void *)address, &value, sizeof value);
}

void emu_child_builtin(struct emu_frame *f, const struct emu_op *op, uint32_t mask)
{
    const struct emu_call *call = op->ext;
    struct emu_launch *l = f->wk->l;
    EMU_FOR_LANES(i, mask)
    {
        uint64_t a = emu_argument(f, call, 0, i, NULL, 0), r = CUDA_SUCCESS;
        switch ((enum emu_builtin)op->sub) {
        case EMU_BUILTIN_CHILD_BUFFER:
            r = buffer(f, call, i);
            break;
        case EMU_BUILTIN_CHILD_LAUNCH:
            r = (uint64_t)launch(f, a, emu_argument(f, call, 1, i, NULL, 0));
            if (r) atomic_store(&l->child_error, (int)r);
            break;
        case EMU_BUILTIN_CHILD_COPY:
        case EMU_BUILTIN_CHILD_FILL:
            r = (uint64_t)transfer(f, call, i, op->sub == EMU_BUILTIN_CHILD_FILL);
            break;
        case EMU_BUILTIN_CHILD_STREAM: /* streams and events order nothing here: children run one by one */
            put(f, op, i, a, 0x1000 + atomic_fetch_add(&l->n_handles, 1));
            break;
        case EMU_BUILTIN_CHILD_ERROR:
            r = (uint64_t)atomic_load(&l->child_error);
            break;
        case EMU_BUILTIN_CHILD_TEXT:
            r = error_text((int)a);
            break;
        case EMU_BUILTIN_CHILD_MALLOC: {
            uint64_t at = emu_heap_alloc(f->wk->dev, emu_argument(f, call, 1, i, NULL, 0));
            put(f, op, i, a, at);
            r = at ? CUDA_SUCCESS : CUDA_OUT_OF_MEMORY;
            break;
        }
        case EMU_BUILTIN_CHILD_FREE:
            r = !a || emu_heap_free(f->wk->dev, a) ? CUDA_SUCCESS : CUDA_INVALID_VALUE;
            break;
        case EMU_BUILTIN_SET_CONDITIONAL: {
            struct mg_cond_value *v = (struct mg_cond_value *)a;
            struct mg_alloc m;
            if (!mg_mem_find_any(a, &m) || m.base != a || m.bytes < sizeof *v || v->magic != MG_COND_MAGIC)
                emu_fault(f, op, MG_FAULT_ADDRESS, (int)i, a, 0,
                          "0x%" PRIx64 " is no handle of a conditional graph node", a);
            __atomic_store_n(&v->value, (uint32_t)emu_argument(f, call, 1, i, NULL, 0), __ATOMIC_RELAXED);
            break;
        }
        case EMU_BUILTIN_CHILD_DEVICE: { /* device 0, an int */
            uint32_t zero = 0;
            struct emu_op to = *op;
            to.space = MG_SPACE_generic;
            to.flags = EMU_OF_WRITES;
            if (!emu_check_one(f, &to, (int)i, a, 4)) emu_fault_access(f, &to, (int)i, a, 4);
            memcpy((void *)a, &zero, sizeof zero);
            break;
        }
        default:
            break;
        }
        emu_result(f, call, i, r);
    }
    emu_epoch(f->wk);
}

/* ---- running them ------------------------------------------------------------------------------------------ */

static int by_order(const void *x, const void *y)
{
    const struct emu_child *a = *(struct emu_child *const *)x, *b = *(struct emu_child *const *)y;
    bool ta = a->stream == TAIL_LAUNCH, tb = b->stream == TAIL_LAUNCH;
    if (ta != tb) return ta ? 1 : -1;
    if (a->cta != b->cta) return a->cta < b->cta ? -1 : 1;
    return a->seq < b->seq ? -1 : 1;
}

struct stack {
    struct emu_child **at;
    uint32_t n, cap;
};

static void drop(struct emu_child *c)
{
    c->magic = 0;
    mg_mem_free((uint64_t)c);
}

/* The last to run goes lowest. False: host memory ran out. */
static bool push(struct stack *s, struct emu_child *list, uint64_t n)
{
    if (s->n + n > s->cap) {
        uint64_t cap = 2 * (s->n + n);
        struct emu_child **at = cap < UINT32_MAX ? realloc(s->at, cap * sizeof *at) : NULL;
        if (!at) {
            while (list) {
                struct emu_child *next = list->next;
                drop(list);
                list = next;
            }
            return false;
        }
        s->at = at;
        s->cap = (uint32_t)cap;
    }
    uint32_t first = s->n;
    for (struct emu_child *c = list; c; c = c->next) s->at[s->n++] = c;
    if (s->n > first) qsort(s->at + first, s->n - first, sizeof *s->at, by_order);
    for (uint32_t i = first, j = s->n; i + 1 < j; i++) {
        struct emu_child *c = s->at[--j];
        s->at[j] = s->at[i];
        s->at[i] = c;
    }
    return true;
}

static bool is_live(uint64_t at, uint64_t bytes)
{
    struct mg_alloc a;
    return mg_mem_find(at, &a) && a.base + a.bytes - at >= bytes;
}

static void run_transfer(const struct emu_child *c, struct mg_fault *fault)
{
    uint64_t bad = !is_live(c->to, c->bytes) ? c->to : !c->fill && !is_live(c->from, c->bytes) ? c->from : 0;
    if (bad) {
        fault->kind = MG_FAULT_ADDRESS;
        fault->address = bad;
        snprintf(fault->text, sizeof fault->text,
                 "device-side copy of %" PRIu64 " bytes: 0x%" PRIx64 " is outside live allocations", c->bytes, bad);
    } else if (c->fill) {
        mg_defined_set(c->to, c->bytes);
        memset((void *)c->to, (int)c->from, c->bytes);
    } else {
        mg_defined_copy(c->to, c->from, c->bytes, false);
        memmove((void *)c->to, (const void *)c->from, c->bytes);
    }
}

static void run_child(struct mg_device *dev, struct emu_child *c, const struct mg_launch *host,
                      struct mg_launch_stats *sum, struct mg_fault *fault, struct emu_kids *kids)
{
    struct mg_launch_stats stats = {0};
    struct mg_launch l = {
        .kernel = c->kernel,
        .grid = {c->grid[0], c->grid[1], c->grid[2]},
        .block = {c->block[0], c->block[1], c->block[2]},
        .dyn_shared_bytes = c->shared,
        .params = c + 1,
        .param_bytes = c->kernel->param_bytes,
        .time_limit_ns = host->time_limit_ns,
        .cancel = host->cancel,
        .busy = host->busy,
    };
    const struct mg_child_hooks *h = dev->opts.child_hooks;
    void *token = h ? h->begin(&l) : NULL;
    emu_grid_run(dev, &l, &stats, fault, kids);
    if (token) h->end(token, &stats, fault);
    sum->busy_ns += stats.busy_ns;
    sum->warp_instructions += stats.warp_instructions;
    sum->thread_instructions += stats.thread_instructions;
    sum->schedule_dependent |= stats.schedule_dependent;
    sum->device_launches++;
    sum->end_ns = stats.end_ns;
    free((void *)(uintptr_t)stats.strays);
}

void emu_launch_run(struct mg_device *dev, const struct mg_launch *l, struct mg_launch_stats *stats,
                    struct mg_fault *fault)
{
    struct mg_launch_stats ignored = {0}, *sum = stats ? stats : &ignored;
    struct mg_fault none, *seen = fault ? fault : &none;
    struct emu_kids kids = {0};
    struct stack s = {0};
    emu_grid_run(dev, l, sum, seen, &kids);
    sum->device_launches = 0;
    bool ok = push(&s, kids.first, kids.n);
    while (ok && s.n && seen->kind == MG_FAULT_NONE) {
        struct emu_child *c = s.at[--s.n];
        kids = (struct emu_kids){0};
        if (c->kernel)
            run_child(dev, c, l, sum, seen, &kids);
        else
            run_transfer(c, seen);
        drop(c);
        ok = push(&s, kids.first, kids.n);
    }
    while (s.n) drop(s.at[--s.n]);
    free(s.at);
    if (!ok && seen->kind == MG_FAULT_NONE) {
        seen->kind = MG_FAULT_MEMORY;
        memcpy(seen->text, "host memory ran out", sizeof "host memory ran out");
    }
    if (!stats) free((void *)(uintptr_t)ignored.strays);
}
