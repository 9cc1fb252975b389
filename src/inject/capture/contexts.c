/* Contexts and their devices: operations are told with the one in which they are done. */
#include "inject/capture/capture.h"

#include "inject/session.h"
#include "inject/verify.h"

struct context {
    cu_ctx handle; /* a primary one comes back with its own */
    cu_device device;
    bool there;
};
static MG_VEC(struct context) list; /* by number - 1; under the lock */

/* Asking must not make one: only of a device whose primary context is there. */
cu_ctx mg_cap_context_primary(cu_device d)
{
    unsigned flags;
    int active = 0;
    cu_ctx c = NULL;
    if (MG_REAL_AS(cuDevicePrimaryCtxGetState, cu_device, unsigned *, int *)(d, &flags, &active) == CUE_SUCCESS &&
        active && MG_REAL_AS(cuDevicePrimaryCtxRetain, cu_ctx *, cu_device)(&c, d) == CUE_SUCCESS)
        MG_REAL_AS(cuDevicePrimaryCtxRelease_v2, cu_device)(d);
    return c;
}

uint32_t mg_cap_context_of(cu_ctx c)
{
    uint32_t k = list.n;
    while (k && list.at[k - 1].handle != c) k--;
    return c ? k : 0;
}

static bool enter(cu_ctx c)
{
    return MG_REAL_AS(cuCtxSetCurrent, cu_ctx)(c) == CUE_SUCCESS;
}

uint32_t mg_cap_context(void)
{
    cu_ctx current = NULL, c;
    MG_REAL_AS(cuCtxGetCurrent, cu_ctx *)(&current);
    if (!(c = mg_capture.of ? mg_capture.of : current)) return 0;
    uint32_t number = mg_cap_context_of(c);
    if (!number) {
        struct context new = {.handle = c, .there = true};
        bool other = c != current && enter(c);
        MG_REAL_AS(cuCtxGetDevice, cu_device *)(&new.device);
        if (other) enter(current);
        *mg_vec_push(&list) = new;
        number = list.n;
        mg_capture.uses_streams |= number > 1; /* their default streams have one handle */
    }
    struct context *x = &list.at[number - 1]; /* a primary one that was reset stays current */
    if (!x->there) x->there = mg_cap_context_primary(x->device) == c;
    return number;
}

void mg_cap_context_told(void)
{
    uint32_t number = mg_cap_context();
    if (!number || number == mg_capture.context) return;
    mg_capture.context = number;
    PUT(MG_CAP_context, number, (uint64_t)list.at[number - 1].device);
}

/* Its handle may be another one's next. A primary context keeps number and handle. */
void mg_cap_context_ends(uint32_t context, bool primary)
{
    if (!context) return;
    list.at[context - 1].there = false;
    if (!primary) list.at[context - 1].handle = NULL;
}

bool mg_cap_contexts_settle(cu_result *rc)
{
    cu_ctx current = NULL;
    cu_result one;
    bool ended = true;
    MG_REAL_AS(cuCtxGetCurrent, cu_ctx *)(&current);
    *rc = list.n && !list.at[0].there ? CUE_INVALID_CONTEXT : CUE_SUCCESS;
    if (list.n < 2) return *rc || mg_settle(rc, false);
    *rc = CUE_SUCCESS;
    for (uint32_t k = 0; k < list.n && ended; k++) {
        if (!list.at[k].there || !enter(list.at[k].handle)) continue;
        ended = mg_settle(&one, false);
        if (ended && *rc == CUE_SUCCESS) *rc = one;
    }
    enter(current);
    return ended;
}
