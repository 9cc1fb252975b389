/* Arrays, textures and surfaces that live: what a tool may enumerate (tool/host.h). Noted as the application
 * makes them, forgotten as it destroys them; nobody else needs them. */
#include "inject/hooks.h"

#include <stdlib.h>

#include "base/vec.h"
#include "inject/session.h"
#include "inject/tools.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static MG_VEC(struct mg_host_object) objects; /* in order of creation */
static uint64_t n_ids;

static cu_result made(cu_result rc, uint64_t handle, enum mg_host_object_kind kind, const struct cu_array3d_desc *d,
                      unsigned levels, uint64_t of)
{
    if (rc != CUE_SUCCESS || mg_inside || !mg_session.active) return rc;
    pthread_mutex_lock(&lock);
    *mg_vec_push(&objects) = (struct mg_host_object){.handle = handle,
                                                     .id = n_ids++,
                                                     .kind = kind,
                                                     .of = of,
                                                     .levels = levels,
                                                     .width = d ? d->width : 0,
                                                     .height = d ? d->height : 0,
                                                     .depth = d ? d->depth : 0,
                                                     .channels = d ? d->channels : 0,
                                                     .format = d ? d->format : 0};
    pthread_mutex_unlock(&lock);
    return rc;
}

/* Taken out before the driver's call: the handle may be given out again at once. */
static bool remove_object(uint64_t handle, enum mg_host_object_kind kind, struct mg_host_object *old)
{
    bool found = false;
    if (mg_inside || !mg_session.active) return false;
    pthread_mutex_lock(&lock);
    for (uint32_t i = objects.n; i-- && !found;)
        if (objects.at[i].handle == handle && objects.at[i].kind == kind) {
            *old = objects.at[i];
            objects.n--;
            for (uint32_t k = i; k < objects.n; k++) objects.at[k] = objects.at[k + 1];
            found = true;
        }
    pthread_mutex_unlock(&lock);
    return found;
}

static cu_result gone(cu_result rc, bool found, const struct mg_host_object *old)
{
    if (rc == CUE_SUCCESS || !found) return rc;
    pthread_mutex_lock(&lock);
    *mg_vec_push(&objects) = *old; /* it lives on */
    pthread_mutex_unlock(&lock);
    return rc;
}
#define GONE(handle, kind, CALL)                                                                                       \
    struct mg_host_object old = {0};                                                                                   \
    bool found = remove_object((uint64_t)(uintptr_t)(handle), kind, &old);                                             \
    return gone(CALL, found, &old)

void mg_objects_each(void (*fn)(const struct mg_host_object *o, void *user), void *user)
{
    pthread_mutex_lock(&lock);
    uint32_t n = objects.n;
    struct mg_host_object *all = calloc((size_t)n + 1, sizeof *all);
    for (uint32_t i = 0; all && i < n; i++) all[i] = objects.at[i];
    pthread_mutex_unlock(&lock);
    for (uint32_t i = 0; all && i < n; i++) fn(&all[i], user);
    free(all);
}

MG_HOOK(cuArrayCreate_v2, cu_array *a, const struct cu_array_desc *d)
{
    cu_result rc = MG_REAL(cuArrayCreate_v2)(a, d);
    struct cu_array3d_desc full = {0};
    if (rc == CUE_SUCCESS)
        full = (struct cu_array3d_desc){
            .width = d->width, .height = d->height, .format = d->format, .channels = d->channels};
    return made(rc, rc == CUE_SUCCESS ? (uint64_t)(uintptr_t)*a : 0, MG_HOST_ARRAY, &full, 1, 0);
}
MG_HOOK(cuArray3DCreate_v2, cu_array *a, const struct cu_array3d_desc *d)
{
    cu_result rc = MG_REAL(cuArray3DCreate_v2)(a, d);
    return made(rc, rc == CUE_SUCCESS ? (uint64_t)(uintptr_t)*a : 0, MG_HOST_ARRAY, d, 1, 0);
}
MG_HOOK(cuMipmappedArrayCreate, cu_mipmap *m, const struct cu_array3d_desc *d, unsigned levels)
{
    cu_result rc = MG_REAL(cuMipmappedArrayCreate)(m, d, levels);
    return made(rc, rc == CUE_SUCCESS ? (uint64_t)(uintptr_t)*m : 0, MG_HOST_MIPMAP, d, levels, 0);
}
MG_HOOK(cuArrayDestroy, cu_array a)
{
    GONE(a, MG_HOST_ARRAY, MG_REAL(cuArrayDestroy)(a));
}
MG_HOOK(cuMipmappedArrayDestroy, cu_mipmap m)
{
    GONE(m, MG_HOST_MIPMAP, MG_REAL(cuMipmappedArrayDestroy)(m));
}

/* What a texture or surface looks at: handle of the array, or address. */
static uint64_t behind(const struct cu_resource_desc *d)
{
    switch (d->type) {
    case CURES_ARRAY:
        return (uint64_t)(uintptr_t)d->res.array.array;
    case CURES_MIPMAP:
        return (uint64_t)(uintptr_t)d->res.mipmap.mipmap;
    case CURES_LINEAR:
        return d->res.linear.ptr;
    default:
        return d->res.pitch2d.ptr;
    }
}

MG_HOOK(cuTexObjectCreate, cu_tex *t, const struct cu_resource_desc *d, const struct cu_texture_desc *how,
        const struct cu_view_desc *view)
{
    cu_result rc = MG_REAL(cuTexObjectCreate)(t, d, how, view);
    return made(rc, rc == CUE_SUCCESS ? *t : 0, MG_HOST_TEXTURE, NULL, 0, rc == CUE_SUCCESS ? behind(d) : 0);
}
MG_HOOK(cuSurfObjectCreate, cu_surf *s, const struct cu_resource_desc *d)
{
    cu_result rc = MG_REAL(cuSurfObjectCreate)(s, d);
    return made(rc, rc == CUE_SUCCESS ? *s : 0, MG_HOST_SURFACE, NULL, 0, rc == CUE_SUCCESS ? behind(d) : 0);
}
MG_HOOK(cuTexObjectDestroy, cu_tex t)
{
    GONE(t, MG_HOST_TEXTURE, MG_REAL(cuTexObjectDestroy)(t));
}
MG_HOOK(cuSurfObjectDestroy, cu_surf s)
{
    GONE(s, MG_HOST_SURFACE, MG_REAL(cuSurfObjectDestroy)(s));
}
