/* Our own driver over the software devices as a backend: context blocks lie in its arena, where
 * host and device address them alike, and it tells us itself when a launch has ended. */
#include "inject/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/mem.h"
#include "inject/run.h"
#include "inject/session.h"
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
        .count_positions = c->witness,
        .no_contract = c->no_contract,
        .overcommit = c->overcommit,
        .check = c->check,
        .say = mg_session_say_line,
        .children = &mg_children,
        .watch = mg_timeline.on ? &mg_timeline_watch : NULL,
    };
    mg_driver_configure(&dc);
    return true;
}

static uint64_t alloc_block(size_t bytes)
{
    uint64_t at = mg_mem_alloc(bytes, 256, MG_ALLOC_INTERNAL);
    if (at)
        memset((void *)(uintptr_t)at, 0, bytes);
    return at;
}

static void free_block(uint64_t block)
{
    if (block)
        mg_mem_free(block);
}

static bool load_own(struct mg_body *b, void **twin, char *why, size_t room)
{
    struct mg_module *ir = mg_module_hold(b->variant->ir); /* all contexts have the same one */
    cu_result rc = mg_driver_twin_open(ir, b->inst->code->name, b->inst->handle, twin);
    const char *name = mg_cu_result_name(rc);
    if (rc != CUE_SUCCESS)
        snprintf(why, room, "the driver does not take the instrumented code (%s)", name ? name : "unknown error");
    return rc == CUE_SUCCESS;
}

/* The twin's module, its table and free context blocks: when no work is in flight, since the driver may still look at a
 * launch's function after it has told that the launch has ended. */
static bool unload_own(struct mg_body *b)
{
    if (b->twin && !mg_driver_twin_close(b->twin))
        return false;
    while (b->blocks) {
        struct mg_block_mem *m = b->blocks;
        b->blocks = m->next;
        free_block(m->at);
        free(m);
    }
    free_block(b->symbols);
    return true;
}

static bool note_own(mg_launch_done_fn fn, void *user)
{
    mg_driver_note_next_launch(fn, user);
    return true;
}

static bool note_node_own(mg_launch_done_fn fn, void *user, void (*drop)(void *user))
{
    mg_driver_note_next_node(fn, user, drop);
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

static bool allocation_own(uint64_t address, uint64_t *id, uint64_t *offset)
{
    uint64_t bytes;
    return mg_driver_allocation(address, id, offset, &bytes);
}

/* ---- channels: kernels and the host address one memory ---- */

enum { CHANNEL_RINGS = 256, CHANNEL_PAGES = 12 << 10 }; /* as an H200 has warps, and some; what is not used takes no memory */

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
static void *channel_host(void *where, size_t bytes) { return (void *)(uintptr_t)channel_memory(where, bytes); }
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
static const struct mg_channel_io channel_own = {.in_place = true, .size = channel_size, .where = channel_where, .memory = channel_memory,
                                                 .host = channel_host, .read = channel_read, .write = channel_write};

const struct mg_backend mg_backend_own = {
    .kind = "emu",
    .open = open_own,
    .symbol = mg_driver_symbol,
    .alloc = alloc_block,
    .free = free_block,
    .note = note_own,
    .channel = &channel_own,
    .note_node = note_node_own,
    .global = global_own,
    .function_address = function_own,
    .allocation = allocation_own,
    .registers_estimated = mg_driver_registers_estimated,
    .module = mg_driver_module,
    .positions = mg_driver_positions,
    .takes_ir = true,
    .load = load_own,
    .unload = unload_own,
    .drain = mg_driver_drain,
};
