/* Arrays, textures and surfaces. Arrays have numbers; objects are named by the handles that kernels are given. */
#include "inject/capture/capture.h"

#include <string.h>

#include "inject/session.h"
#include "inject/verify.h"

struct array {
    void *handle;
    uint64_t number, mipmap; /* of which it is a level; 0: of none */
    uint32_t context;
};
struct object {
    uint64_t handle;
    bool surface;
    uint32_t context;
};
static MG_VEC(struct array) arrays;
static MG_VEC(struct object) objects; /* both under the lock */
static uint64_t n_arrays;

uint64_t mg_cap_array_of(void *array)
{
    uint32_t k = arrays.n;
    while (k && arrays.at[k - 1].handle != array) k--;
    return k ? arrays.at[k - 1].number : 0;
}

static uint64_t add_array(void *handle, uint64_t mipmap)
{
    *mg_vec_push(&arrays) = (struct array){handle, ++n_arrays, mipmap, mg_cap_context()};
    return n_arrays;
}

static void drop_array(uint64_t number) /* and its levels */
{
    for (uint32_t k = arrays.n; k-- > 0;)
        if (arrays.at[k].number == number || arrays.at[k].mipmap == number) arrays.at[k] = arrays.at[--arrays.n];
    PUT(MG_CAP_array_free, number);
}

static void made(void *handle, const struct cu_array3d_desc *d, unsigned levels)
{
    mg_capture_lock();
    uint64_t n = add_array(handle, 0);
    PUT(MG_CAP_array, n, d->width, d->height, d->depth, (uint64_t)d->format, d->channels, d->flags, levels);
    mg_capture_unlock();
}
static void gone(void *handle)
{
    if (!mg_capture_looks()) return;
    mg_capture_lock();
    uint64_t n = mg_cap_array_of(handle);
    if (n && (mg_check_wait(true) || mg_capture.captures)) drop_array(n);
    mg_capture_unlock();
}

/* What a context has goes with it. */
void mg_cap_objects_end(uint32_t context)
{
    for (uint32_t k = objects.n; context && k-- > 0;)
        if (objects.at[k].context == context) {
            PUT(MG_CAP_object_free, objects.at[k].handle, objects.at[k].surface);
            objects.at[k] = objects.at[--objects.n];
        }
    for (uint32_t k = 0; context && k < arrays.n;)
        if (arrays.at[k].context == context && !arrays.at[k].mipmap)
            drop_array(arrays.at[k].number), k = 0;
        else
            k++;
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
            uint64_t of = mg_cap_array_of(m), n = add_array(*a, of);
            PUT(MG_CAP_level, n, of, level);
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
        *mg_vec_push(&objects) = (struct object){handle, surface, mg_cap_context()};
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
    uint32_t k = objects.n;
    while (k && (objects.at[k - 1].handle != handle || objects.at[k - 1].surface != surface)) k--;
    if (k && (mg_check_wait(true) || mg_capture.captures)) {
        objects.at[k - 1] = objects.at[--objects.n];
        PUT(MG_CAP_object_free, handle, surface);
    }
    mg_capture_unlock();
}
/* The driver numbers objects in the order of these calls: it has to be the order in which they are told, so that a
 * replay gets the same handles. */
static pthread_mutex_t calls = PTHREAD_MUTEX_INITIALIZER;

static bool begin_call(void)
{
    return mg_capture_looks() && !pthread_mutex_lock(&calls);
}

static cu_result end_call(bool begun, cu_result rc)
{
    if (begun) pthread_mutex_unlock(&calls);
    return rc;
}

MG_CAPTURE(cuTexObjectCreate, cu_tex *t, const struct cu_resource_desc *r, const struct cu_texture_desc *d,
           const struct cu_view_desc *v)
{
    bool looks = begin_call();
    cu_result rc = NEXT(cuTexObjectCreate)(t, r, d, v);
    if (rc == CUE_SUCCESS && looks) object(*t, false, r, d, v);
    return end_call(looks, rc);
}
MG_CAPTURE(cuSurfObjectCreate, cu_surf *s, const struct cu_resource_desc *r)
{
    bool looks = begin_call();
    cu_result rc = NEXT(cuSurfObjectCreate)(s, r);
    if (rc == CUE_SUCCESS && looks) object(*s, true, r, NULL, NULL);
    return end_call(looks, rc);
}
MG_CAPTURE(cuTexObjectDestroy, cu_tex t)
{
    bool looks = begin_call();
    object_gone(t, false);
    return end_call(looks, NEXT(cuTexObjectDestroy)(t));
}
MG_CAPTURE(cuSurfObjectDestroy, cu_surf s)
{
    bool looks = begin_call();
    object_gone(s, true);
    return end_call(looks, NEXT(cuSurfObjectDestroy)(s));
}
