/* What a backend does that does not say otherwise (MG_BACKEND_DEFAULTS): nothing, or it knows nothing. */
#include "inject/backend.h"

bool mg_backend_no_estimate(void *function)
{
    (void)function;
    return false;
}

bool mg_backend_no_allocation(uint64_t address, uint64_t *id, uint64_t *offset, uint64_t *bytes)
{
    (void)address, (void)id, (void)offset, (void)bytes;
    return false;
}

const struct mg_module *mg_backend_no_module(void *function)
{
    (void)function;
    return NULL;
}

void mg_backend_no_positions(void *function,
                             void (*fn)(void *user, mg_id func, mg_id node, uint64_t threads, uint64_t warps),
                             void *user)
{
    (void)function, (void)fn, (void)user;
}

void mg_backend_no_adapt(struct mg_twin *t)
{
    (void)t;
}

bool mg_backend_no_constants(struct mg_body *b)
{
    (void)b;
    return false;
}

void mg_backend_no_compile(struct mg_body *b)
{
    (void)b;
}

bool mg_backend_for_one(struct mg_body *b)
{
    (void)b;
    return false;
}

bool mg_backend_any_time(struct mg_body *b, const struct mg_shape *s)
{
    (void)b, (void)s;
    return true;
}

enum mg_reason mg_backend_any_shape(struct mg_body *b, const struct mg_shape *s)
{
    (void)b, (void)s;
    return MG_REASON_none;
}

uint32_t mg_backend_any_registers(const struct mg_inst *i, const struct mg_shape *s, bool *must)
{
    (void)i, (void)s, (void)must;
    return 0;
}

void mg_backend_no_note(mg_launch_done_fn fn, void *user)
{
    (void)fn, (void)user;
}

void mg_backend_no_note_node(mg_launch_done_fn fn, void *user, void (*drop)(void *user))
{
    (void)fn, (void)user, (void)drop;
}

void mg_backend_no_graph(cu_graph g)
{
    (void)g;
}
void mg_backend_no_change(cu_graph_exec x, cu_node node, const struct cu_node_params *p)
{
    (void)x, (void)node, (void)p;
}

void mg_backend_no_collect(void)
{
}

void mg_backend_no_flush(uint64_t timeout_ns)
{
    (void)timeout_ns;
}

void mg_backend_no_context(void *ctx, int device, bool surely)
{
    (void)ctx, (void)device, (void)surely;
}
