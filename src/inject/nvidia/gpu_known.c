/* Values of constants, and addresses of variables, that launches of a twin bring along (pass/twin_const.c): what stood
 * in the application's image when we last looked, and a copy of that in device memory, with which the kernel tells
 * whether it still does. An image of the parameter is never changed once a launch may have it, nor is its copy: a
 * launch that is under way must find the two equal. Constants that have changed make kernels slower, not wrong, so it
 * is enough to look again now and then, when a launch has ended since: on the thread that drains. */
#include "inject/nvidia/gpu.h"

#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "inject/twin.h"

#define SOON_NS      5000000u   /* after a change */
#define LATE_NS      640000000u /* when nothing has changed for long */
#define MOST_CHANGES 64u        /* constants of a program that changes them all the time are read where they are */

struct mg_gpu_known {
    struct mg_gpu_known *older; /* of the same body */
    uint64_t copy, copy_bytes;
    uint64_t image[];
};

static struct mg_body *bodies; /* those that have any */
static pthread_mutex_t listing = PTHREAD_MUTEX_INITIALIZER;

static bool read_values(struct mg_body *b, uint64_t *image)
{
    const struct mg_variant *v = b->variant;
    bool ok = true;
    for (uint32_t i = 0; i < v->n_known && ok; i++) {
        const struct mg_twin_known *k = &v->known[i];
        ok = !k->bytes || mg_nv_read(b->gpu->x, (char *)image + k->at, image[1 + i] + k->from, k->bytes);
    }
    return ok;
}

static struct mg_gpu_known *image_new(const struct mg_body *b)
{
    return calloc(1, sizeof(struct mg_gpu_known) + (b->variant->known_bytes + 7) / 8 * 8);
}

static bool publish(struct mg_body *b, struct mg_gpu_known *new)
{
    const struct mg_variant *v = b->variant;
    new->copy_bytes = v->known_bytes - v->known_values;
    if (new->copy_bytes &&
        !(new->copy = mg_nv_upload(b->gpu->x, (const char *)new->image + v->known_values, new->copy_bytes)))
        return false;
    new->image[0] = new->copy;
    new->older = b->gpu->known;
    b->gpu->known = new;
    __atomic_store_n(&b->known, new->image, __ATOMIC_RELEASE);
    return true;
}

bool mg_gpu_known_fill(struct mg_body *b)
{
    const struct mg_variant *v = b->variant;
    struct mg_gpu_body *g = mg_gpu_body_get(b);
    struct mg_gpu_known *new = g ? image_new(b) : NULL;
    bool ok = new != NULL;
    for (uint32_t i = 0; i < v->n_known && ok; i++)
        ok = mg_gpu_global(b->inst->function, v->symbols[v->known[i].symbol].name, &new->image[1 + i]);
    ok = ok && read_values(b, new->image) && publish(b, new);
    if (!ok)
        free(new);
    else
        g->look_at = mg_now_ns() + (g->look_after = SOON_NS);
    if (ok && !g->listed && new->copy_bytes) {
        g->listed = true;
        pthread_mutex_lock(&listing);
        g->next_known = bodies;
        bodies = b;
        pthread_mutex_unlock(&listing);
    }
    return ok;
}

static void read_known(struct mg_body *b)
{
    struct mg_gpu_body *g = b->gpu;
    struct mg_gpu_known *new = image_new(b);
    size_t bytes = b->variant->known_bytes;
    bool ok = new != NULL;
    if (ok) memcpy(new->image, g->known->image, bytes);
    ok = ok && read_values(b, new->image);
    bool changed = ok && memcmp(new->image, g->known->image, bytes);
    if (changed) g->n_changes++;
    if (!changed || !publish(b, new)) free(new);
    g->look_after = changed ? SOON_NS : MG_MIN(2 * g->look_after, LATE_NS);
    g->look_at = mg_now_ns() + g->look_after;
}

void mg_gpu_known_pass(void)
{
    uint64_t now = mg_now_ns();
    pthread_mutex_lock(&listing);
    for (struct mg_body *b = bodies; b; b = b->gpu->next_known) {
        struct mg_gpu_body *g = b->gpu;
        pthread_mutex_lock(&g->compiling);
        if (g->known && now >= g->look_at && g->n_changes < MOST_CHANGES && !mg_nv_ctx_is_broken(g->x) &&
            __atomic_exchange_n(&g->used, false, __ATOMIC_RELAXED))
            read_known(b);
        pthread_mutex_unlock(&g->compiling);
    }
    pthread_mutex_unlock(&listing);
}

void mg_gpu_known_forget(struct mg_body *b)
{
    pthread_mutex_lock(&listing);
    struct mg_body **at = &bodies;
    while (*at && *at != b) at = &(*at)->gpu->next_known;
    if (*at) *at = b->gpu->next_known;
    pthread_mutex_unlock(&listing);
}

void mg_gpu_known_release(struct mg_body *b)
{
    struct mg_gpu_body *g = b->gpu;
    __atomic_store_n(&b->known, NULL, __ATOMIC_RELEASE);
    pthread_mutex_lock(&g->compiling);
    while (g->known) {
        struct mg_gpu_known *k = g->known;
        g->known = k->older;
        if (k->copy) mg_nv_give_back(g->x, k->copy, k->copy_bytes);
        free(k);
    }
    pthread_mutex_unlock(&g->compiling);
}
