/* Launches that kernels make, on our own devices: each is recorded like a launch of the host and runs
 * instrumented when its kernel can. The driver calls this on the thread that runs the parent. */
#include "inject/hooks.h"

#include <stdlib.h>
#include <string.h>

#include "inject/images.h"
#include "inject/kernels.h"
#include "inject/run.h"
#include "inject/session.h"

struct child {
    struct mg_run *run;
    char *params;
};

static struct mg_inst *instance(void *function, void *container, const char *name)
{
    struct mg_inst *i = mg_kernel_get(function);
    struct mg_img *im = i ? NULL : mg_img_of(container);
    if (!im) return i;
    mg_kernel_note(function, im, name, false); /* the host has not asked for it */
    return mg_kernel_get(function);
}

/* The twin's parameter block: the kernel's, and the context block's address. */
static bool put_twin(struct child *c, struct mg_launch *l)
{
    uint32_t at = c->run->body->variant->ctx_offset;
    c->params = calloc(1, at + 8 + 16);
    if (!c->params) return false;
    memcpy(c->params, l->params, MG_MIN(l->param_bytes, at));
    memcpy(c->params + at, &c->run->block->at, 8);
    l->kernel = mg_driver_kernel(c->run->body->twin);
    l->params = c->params;
    l->param_bytes = at + 8;
    return true;
}

static void *begin(void *function, void *container, const char *name, struct mg_launch *l)
{
    if (!mg_session.active) return NULL;
    if (mg_session_is_short()) {
        mg_session_miss();
        return NULL;
    }
    struct mg_shape s = {
        .grid = {l->grid.x, l->grid.y, l->grid.z},
        .block = {l->block.x, l->block.y, l->block.z},
        .shared_bytes = l->dyn_shared_bytes,
    };
    size_t bytes = l->param_bytes;
    void *extra[] = {CULAUNCH_PARAM_BUFFER_POINTER, (void *)(uintptr_t)l->params, CULAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     CULAUNCH_PARAM_END};
    struct child *c = calloc(1, sizeof *c);
    mg_inside++;
    struct mg_inst *i = c ? instance(function, container, name) : NULL;
    if (i && (c->run = mg_run_child(i, &s, extra)) && c->run->block && !put_twin(c, l))
        mg_run_native(c->run, MG_REASON_no_memory);
    mg_inside--;
    if (c && !c->run) {
        free(c);
        return NULL;
    }
    return c;
}

static void end(void *token, const struct mg_launch_done *d)
{
    struct child *c = token;
    mg_inside++;
    mg_run_child_ended(c->run, d);
    mg_inside--;
    free(c->params);
    free(c);
}

const struct mg_driver_children mg_children = {begin, end};
