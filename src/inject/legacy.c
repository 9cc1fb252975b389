/* Launches as of CUDA 3 and before: geometry and parameters are set on the function, one call each,
 * and cuLaunchGrid runs it with what was set. The driver keeps that state for the function alone, so
 * it is noted here too; the twin is launched by cuLaunchKernel with a copy of it, the kernel itself by
 * the application's own call. */
#include "inject/launch.h"

#include <stdlib.h>
#include <string.h>

#include "inject/hooks.h"
#include "inject/kernels.h"
#include "inject/run.h"
#include "inject/session.h"

struct mg_legacy { /* owner: its instance */
    unsigned block[3], shared_bytes;
    char *params; /* bytes set so far */
    size_t bytes;
};

void mg_legacy_free(struct mg_legacy *l)
{
    if (l) free(l->params);
    free(l);
}

/* State of the function in the current context, when the call is the application's and was taken. */
static struct mg_legacy *state_of(cu_result rc, cu_function f)
{
    if (rc != CUE_SUCCESS || !mg_session.active || mg_inside) return NULL;
    mg_inside++;
    struct mg_inst *i = mg_kernel_get(f);
    if (i && !i->legacy) i->legacy = calloc(1, sizeof *i->legacy);
    mg_inside--;
    return i ? i->legacy : NULL;
}

/* ---- what is set ------------------------------------------------------------------------------------------ */

MG_HOOK(cuFuncSetBlockShape, cu_function f, int x, int y, int z)
{
    cu_result rc = MG_REAL(cuFuncSetBlockShape)(f, x, y, z);
    struct mg_legacy *l = state_of(rc, f);
    if (l) l->block[0] = (unsigned)x, l->block[1] = (unsigned)y, l->block[2] = (unsigned)z;
    return rc;
}
MG_HOOK(cuFuncSetSharedSize, cu_function f, unsigned bytes)
{
    cu_result rc = MG_REAL(cuFuncSetSharedSize)(f, bytes);
    struct mg_legacy *l = state_of(rc, f);
    if (l) l->shared_bytes = bytes;
    return rc;
}

static void set_param(cu_result rc, cu_function f, int offset, const void *value, unsigned bytes)
{
    struct mg_legacy *l = state_of(rc, f);
    size_t end = l ? (size_t)offset + bytes : 0;
    if (end > 1u << 16) /* more than any kernel takes */
        return;
    if (l && end > l->bytes) {
        char *more = realloc(l->params, end);
        if (!more) return;
        memset(more + l->bytes, 0, end - l->bytes);
        l->params = more;
        l->bytes = end;
    }
    if (l && bytes) memcpy(l->params + offset, value, bytes);
}
MG_HOOK(cuParamSetv, cu_function f, int offset, void *value, unsigned bytes)
{
    cu_result rc = MG_REAL(cuParamSetv)(f, offset, value, bytes);
    set_param(rc, f, offset, value, bytes);
    return rc;
}
MG_HOOK(cuParamSeti, cu_function f, int offset, unsigned value)
{
    cu_result rc = MG_REAL(cuParamSeti)(f, offset, value);
    set_param(rc, f, offset, &value, sizeof value);
    return rc;
}
MG_HOOK(cuParamSetf, cu_function f, int offset, float value)
{
    cu_result rc = MG_REAL(cuParamSetf)(f, offset, value);
    set_param(rc, f, offset, &value, sizeof value);
    return rc;
}

/* ---- launches --------------------------------------------------------------------------------------------- */

static cu_result send_twin(cu_function f, const struct mg_shape *s, void **extra)
{
    return MG_REAL_AS(cuLaunchKernel, cu_function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                      cu_stream, void **, void **)(f, s->grid[0], s->grid[1], s->grid[2], s->block[0], s->block[1],
                                                   s->block[2], s->shared_bytes, s->stream, NULL, extra);
}

static cu_result launch_grid(cu_function f, int width, int height, cu_stream stream,
                             cu_result (*send)(const struct mg_call *c, cu_function f, void **params, void **extra))
{
    struct mg_call c = {
        .f = f, .shape = {.grid = {(unsigned)width, (unsigned)height, 1}, .stream = stream}, .send = send};
    struct mg_legacy *l = state_of(CUE_SUCCESS, f);
    if (!l) return mg_launch(&c);
    memcpy(c.shape.block, l->block, sizeof l->block);
    c.shape.shared_bytes = l->shared_bytes;
    size_t bytes = l->bytes;
    void *extra[] = {CULAUNCH_PARAM_BUFFER_POINTER, l->params, CULAUNCH_PARAM_BUFFER_SIZE, &bytes, CULAUNCH_PARAM_END};
    if (bytes) c.extra = extra;
    return mg_launch(&c);
}

#define SEND(name, ...)                                                                                                \
    static cu_result send_##name(const struct mg_call *c, cu_function f, void **params, void **extra)                  \
    {                                                                                                                  \
        (void)params;                                                                                                  \
        return f == c->f ? MG_REAL(name)(__VA_ARGS__) : send_twin(f, &c->shape, extra);                                \
    }
MG_HOOK(cuLaunch, cu_function f);
MG_HOOK(cuLaunchGrid, cu_function f, int width, int height);
MG_HOOK(cuLaunchGridAsync, cu_function f, int width, int height, cu_stream stream);
SEND(cuLaunch, f)
SEND(cuLaunchGrid, f, (int)c->shape.grid[0], (int)c->shape.grid[1])
SEND(cuLaunchGridAsync, f, (int)c->shape.grid[0], (int)c->shape.grid[1], c->shape.stream)

cu_result mg_hook_cuLaunch(cu_function f)
{
    return launch_grid(f, 1, 1, NULL, send_cuLaunch);
}
cu_result mg_hook_cuLaunchGrid(cu_function f, int width, int height)
{
    return launch_grid(f, width, height, NULL, send_cuLaunchGrid);
}
cu_result mg_hook_cuLaunchGridAsync(cu_function f, int width, int height, cu_stream stream)
{
    return launch_grid(f, width, height, stream, send_cuLaunchGridAsync);
}
