/* Arrays, textures and surfaces. Arrays have numbers; objects are named by the handles that kernels are given. */
#include "inject/capture/capture.h"

#include <string.h>

#include "inject/session.h"

static struct mg_map arrays; /* handles -> number */
static uint64_t n_arrays;

uint64_t mg_cap_array_of(void *array)
{
    uint64_t n = 0;
    mg_map_get(&arrays, (uintptr_t)array, &n);
    return n;
}

static void made(void *handle, const struct cu_array3d_desc *d, unsigned levels)
{
    mg_capture_lock();
    mg_map_set(&arrays, (uintptr_t)handle, ++n_arrays);
    PUT(MG_CAP_array, n_arrays, d->width, d->height, d->depth, (uint64_t)d->format, d->channels, d->flags, levels);
    mg_capture_unlock();
}
static void gone(void *handle)
{
    if (!mg_capture_looks()) return;
    mg_capture_lock();
    uint64_t n = mg_cap_array_of(handle);
    mg_map_del(&arrays, (uintptr_t)handle);
    if (n && mg_check_wait(true)) PUT(MG_CAP_array_free, n);
    mg_capture_unlock();
}

MG_CAPTURE(cuArrayCreate_v2, cu_array *a, const struct cu_array_desc *d)
{
    cu_result rc = NEXT(cuArrayCreate_v2)(a, d);
    if (rc == CUE_SUCCESS && mg_capture_looks())
        made(*a,
             &(struct cu_array3d_desc){
                 .width = d->width, .height = d->height, .format = d->format, .channels = d->channels},
             0);
    return rc;
}
MG_CAPTURE(cuArray3DCreate_v2, cu_array *a, const struct cu_array3d_desc *d)
{
    cu_result rc = NEXT(cuArray3DCreate_v2)(a, d);
    if (rc == CUE_SUCCESS && mg_capture_looks()) made(*a, d, 0);
    return rc;
}
MG_CAPTURE(cuMipmappedArrayCreate, cu_mipmap *m, const struct cu_array3d_desc *d, unsigned levels)
{
    cu_result rc = NEXT(cuMipmappedArrayCreate)(m, d, levels);
    if (rc == CUE_SUCCESS && mg_capture_looks()) made(*m, d, levels);
    return rc;
}
MG_CAPTURE(cuMipmappedArrayGetLevel, cu_array *a, cu_mipmap m, unsigned level)
{
    cu_result rc = NEXT(cuMipmappedArrayGetLevel)(a, m, level);
    if (rc == CUE_SUCCESS && mg_capture_looks()) {
        mg_capture_lock();
        if (!mg_cap_array_of(*a)) {
            mg_map_set(&arrays, (uintptr_t)*a, ++n_arrays);
            PUT(MG_CAP_level, n_arrays, mg_cap_array_of(m), level);
        }
        mg_capture_unlock();
    }
    return rc;
}
MG_CAPTURE(cuArrayDestroy, cu_array a)
{
    gone(a);
    return NEXT(cuArrayDestroy)(a);
}
MG_CAPTURE(cuMipmappedArrayDestroy, cu_mipmap m)
{
    gone(m);
    return NEXT(cuMipmappedArrayDestroy)(m);
}

static void object(uint64_t handle, bool surface, const struct cu_resource_desc *r, const struct cu_texture_desc *t,
                   const struct cu_view_desc *v)
{
    struct {
        struct cu_texture_desc texture;
        struct cu_view_desc view;
    } more = {0};
    uint64_t w[10] = {handle, surface, (uint64_t)r->type};
    mg_capture_lock();
    switch (r->type) {
    case CURES_ARRAY:
        w[3] = mg_cap_array_of(r->res.array.array);
        break;
    case CURES_MIPMAP:
        w[3] = mg_cap_array_of(r->res.mipmap.mipmap);
        break;
    case CURES_LINEAR:
        w[4] = r->res.linear.ptr, w[5] = (uint64_t)r->res.linear.format, w[6] = r->res.linear.channels,
        w[7] = r->res.linear.bytes;
        break;
    default:
        w[4] = r->res.pitch2d.ptr, w[5] = (uint64_t)r->res.pitch2d.format, w[6] = r->res.pitch2d.channels,
        w[7] = r->res.pitch2d.width, w[8] = r->res.pitch2d.height, w[9] = r->res.pitch2d.pitch;
    }
    if (t) more.texture = *t;
    if (v) more.view = *v;
    if (w[3] || w[4]) {
        struct mg_cap_area *a = mg_cap_area_find(w[4]);
        if (a) mg_cap_area_tell(a);
        mg_capture_put(MG_CAP_object, w, 10, &more, v ? sizeof more : sizeof more.texture);
    } else {
        mg_capture_miss("a texture of an array that was not seen to be made is not captured", true);
    }
    mg_capture_unlock();
}
static void object_gone(uint64_t handle, bool surface)
{
    if (!mg_capture_looks()) return;
    mg_capture_lock();
    if (mg_check_wait(true)) PUT(MG_CAP_object_free, handle, surface);
    mg_capture_unlock();
}
MG_CAPTURE(cuTexObjectCreate, cu_tex *t, const struct cu_resource_desc *r, const struct cu_texture_desc *d,
           const struct cu_view_desc *v)
{
    cu_result rc = NEXT(cuTexObjectCreate)(t, r, d, v);
    if (rc == CUE_SUCCESS && mg_capture_looks()) object(*t, false, r, d, v);
    return rc;
}
MG_CAPTURE(cuSurfObjectCreate, cu_surf *s, const struct cu_resource_desc *r)
{
    cu_result rc = NEXT(cuSurfObjectCreate)(s, r);
    if (rc == CUE_SUCCESS && mg_capture_looks()) object(*s, true, r, NULL, NULL);
    return rc;
}
MG_CAPTURE(cuTexObjectDestroy, cu_tex t)
{
    object_gone(t, false);
    return NEXT(cuTexObjectDestroy)(t);
}
MG_CAPTURE(cuSurfObjectDestroy, cu_surf s)
{
    object_gone(s, true);
    return NEXT(cuSurfObjectDestroy)(s);
}
