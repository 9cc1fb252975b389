/* Our own driver over the software devices as a backend: context blocks lie in its arena, where
 * host and device address them alike, and it tells us itself when a launch has ended. */
#include "inject/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/mem.h"
#include "inject/gate.h"
#include "inject/launch.h"
#include "inject/run.h"
#include "inject/session.h"
#include "inject/steps.h"
#include "inject/timeline.h"
#include "inject/twin.h"

static bool open_own(const struct mg_config *c)
{
    bool cpu = c->device && !strcmp(c->device, "cpu");
    bool file = c->properties && strchr(c->properties, '/');
    struct mg_driver_config dc = {
        .size = sizeof dc,
        .device = cpu ? "cpu" : "emu",
        .properties = file ? NULL : c->properties,
        .properties_path = file ? c->properties : NULL,
        .time_limit_ns = c->time_limit_ns,
        .workers = c->workers,
        .devices = c->devices,
        .count_positions = c->witness,
        .no_contract = c->no_contract,
        .overcommit = c->overcommit,
        .check = c->check,
        .say = mg_session_say_line,
        .children = &mg_children,
        .wants_busy = mg_gate_is_on,
        .watch = mg_timeline.on || mg_steps_on ? &mg_timeline_watch : &mg_graphs_watch,
    };
    mg_driver_configure(&dc);
    return true;
}

static const char *kind_own(const struct mg_config *c)
{
    return c->device && !strcmp(c->device, "cpu") ? "cpu" : "emu";
}

/* ---- context blocks: in the arena, where host and device address them alike ------------------------------- */

static uint64_t alloc_zeroed(size_t bytes)
{
    uint64_t at = mg_mem_alloc(bytes, 256, MG_ALLOC_INTERNAL);
    if (at) memset((void *)(uintptr_t)at, 0, bytes);
    return at;
}

static void free_memory(uint64_t at)
{
    if (at) mg_mem_free(at);
}

static struct mg_block_mem *new_block(uint64_t words)
{
    struct mg_block_mem *b = calloc(1, sizeof *b);
    if (!b) return NULL;
    b->words = words;
    b->at = alloc_zeroed(MG_CTX_BYTES + words * sizeof(uint64_t));
    if (!b->at) {
        free(b);
        return NULL;
    }
    return b;
}

static struct mg_block_mem *take_own(struct mg_run *r)
{
    struct mg_body *body = r->body;
    struct mg_counter_launch g = mg_run_launch(&r->shape);
    uint64_t words = mg_layout_words(&body->variant->layout, &g);
    pthread_mutex_lock(&mg_session.lock);
    struct mg_block_mem **at = &body->blocks;
    while (*at && (*at)->words < words) /* launches of other shapes may have had fewer */
        at = &(*at)->next;
    struct mg_block_mem *b = *at;
    if (b) *at = b->next;
    pthread_mutex_unlock(&mg_session.lock);
    if (!b && !(b = new_block(words))) return NULL;
    uint64_t *ctx = (uint64_t *)(uintptr_t)b->at;
    ctx[MG_CTX_COUNTERS / 8] = b->at + MG_CTX_BYTES;
    ctx[MG_CTX_SYMBOLS / 8] = body->symbols;
    return b;
}

static void give_own(struct mg_run *r, struct mg_block_mem *b)
{
    struct mg_body *body = r->body;
    memset((void *)(uintptr_t)(b->at + MG_CTX_BYTES), 0, b->words * sizeof(uint64_t));
    pthread_mutex_lock(&mg_session.lock);
    b->next = body->blocks;
    body->blocks = b;
    pthread_mutex_unlock(&mg_session.lock);
}

static void write_own(struct mg_run *r, uint64_t offset, const uint64_t *words, uint32_t n)
{
    memcpy((char *)(uintptr_t)r->block->at + offset, words, n * sizeof *words);
}

static bool peek_own(const struct mg_run *r, uint64_t offset, uint64_t *words, uint32_t n)
{
    const uint64_t *from = (const uint64_t *)(uintptr_t)(r->block->at + offset);
    for (uint32_t i = 0; i < n; i++) words[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
    return true;
}

static void poke_own(const struct mg_run *r, uint64_t offset, uint64_t word)
{
    __atomic_store_n((uint64_t *)(uintptr_t)(r->block->at + offset), word, __ATOMIC_RELAXED);
}

/* ---- launches ---------------------------------------------------------------------------------------------- */

static cu_result send_own(const struct mg_call *c, struct mg_run *r, void **params, void **extra)
{
    bool node = r->node; /* the run of a launch may be gone when the call returns */
    cu_result rc = c->send(c, r->block ? r->body->twin : c->f, params, extra);
    if (rc == CUE_SUCCESS && node) mg_run_free(r);
    return rc;
}

/* The driver's note holds it. */
static void node_taken_own(struct mg_run *r, cu_graph_exec x, cu_node node)
{
    (void)x, (void)node;
    mg_run_free(r);
}

static void context_ends_own(void *ctx, int device)
{
    (void)ctx, (void)device;
    mg_session.generation++;
}

/* ---- twins -------------------------------------------------------------------------------------------------- */

static uint64_t table_own(struct mg_body *b, const uint64_t *values, uint32_t n)
{
    (void)b;
    uint64_t at = alloc_zeroed(n * sizeof *values);
    if (at) memcpy((void *)(uintptr_t)at, values, n * sizeof *values);
    return at;
}

static bool load_own(struct mg_body *b, void **twin, char *why, size_t room)
{
    struct mg_module *ir = mg_module_hold(b->variant->ir); /* all contexts have the same one */
    cu_result rc = mg_driver_twin_open(ir, b->inst->code->name, b->inst->handle, twin);
    const char *name = mg_cu_result_name(rc);
    if (rc != CUE_SUCCESS)
        snprintf(why, room, mg_reason_text(MG_REASON_driver_rejects_code), name ? name : "unknown error");
    return rc == CUE_SUCCESS;
}

/* The twin's module, its table and free context blocks: when no work is in flight, since the driver may still look at a
 * launch's function after it has told that the launch has ended. */
static bool unload_own(struct mg_body *b)
{
    if (b->twin && !mg_driver_twin_close(b->twin)) return false;
    while (b->blocks) {
        struct mg_block_mem *m = b->blocks;
        b->blocks = m->next;
        free_memory(m->at);
        free(m);
    }
    free_memory(b->symbols);
    return true;
}

static bool global_own(void *function, const char *name, uint64_t *address)
{
    uint64_t bytes;
    return mg_driver_global_address(function, name, address, &bytes);
}

static uint64_t function_own(struct mg_body *b, const char *name)
{
    return mg_driver_function_address(b->inst->handle, name);
}

static bool allocation_own(uint64_t address, uint64_t *id, uint64_t *offset, uint64_t *bytes)
{
    return mg_driver_allocation(address, id, offset, bytes);
}

/* ---- channels: kernels and the host address one memory ---- */

enum {
    CHANNEL_RINGS = 256,
    CHANNEL_PAGES = 12 << 10
}; /* as an H200 has warps, and some; what is not used takes no memory */

static void channel_size(void *where, uint32_t *rings, uint32_t *pages)
{
    (void)where;
    *rings = CHANNEL_RINGS;
    *pages = CHANNEL_PAGES;
}
static void *channel_where(void)
{
    static char all;
    return &all;
}
static uint64_t channel_memory(void *where, size_t bytes)
{
    (void)where;
    return mg_mem_alloc(bytes, 256, MG_ALLOC_INTERNAL);
}
static void *channel_host(void *where, size_t bytes)
{
    return (void *)(uintptr_t)channel_memory(where, bytes);
}
static bool channel_read(void *where, void *to, uint64_t from, size_t bytes)
{
    (void)where;
    memcpy(to, (const void *)(uintptr_t)from, bytes);
    return true;
}
static bool channel_write(void *where, uint64_t to, const void *data, size_t bytes)
{
    (void)where;
    memcpy((void *)(uintptr_t)to, data, bytes);
    return true;
}
static const struct mg_channel_io channel_own = {.in_place = true,
                                                 .size = channel_size,
                                                 .where = channel_where,
                                                 .memory = channel_memory,
                                                 .host = channel_host,
                                                 .read = channel_read,
                                                 .write = channel_write};

const struct mg_backend mg_backend_own = {
    MG_BACKEND_DEFAULTS,
    .caps = MG_BACKEND_TELLS_ENDS | MG_BACKEND_ALLOCATIONS | MG_BACKEND_CHILDREN | MG_BACKEND_TAKES_IR |
            MG_BACKEND_ENDS_AT_RELEASE,
    .kind = kind_own,
    .open = open_own,
    .symbol = mg_driver_symbol,
    .channel = &channel_own,
    .global = global_own,
    .function_address = function_own,
    .registers_estimated = mg_driver_registers_estimated,
    .allocation = allocation_own,
    .module = mg_driver_module,
    .positions = mg_driver_positions,
    .table = table_own,
    .load = load_own,
    .unload = unload_own,
    .block_take = take_own,
    .block_give = give_own,
    .write = write_own,
    .peek = peek_own,
    .poke = poke_own,
    .note = mg_driver_note_next_launch,
    .note_node = mg_driver_note_next_node,
    .send = send_own,
    .node_taken = node_taken_own,
    .drain = mg_driver_drain,
    .context_ends = context_ends_own,
};
