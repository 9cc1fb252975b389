/* Slots: where a launch counts. Made in chunks, each with a copy of its pristine content in pinned host
 * memory: one copy of a run of slots makes them new again, header included.
 *
 *   chunk   | header  body 0 0 0  check words | header  body 0 0 0  check words | ...      word 0 of a header: address
 * of its body
 *
 * Slots are taken in order of address and come back in about that order, so runs are long. */
#include "inject/nvidia/nv_priv.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CHUNK_BYTES ((size_t)512 << 10)
#define POOL_BYTES  ((size_t)256 << 20)
#define POOL_SLOTS  16384u
#define FIRST_SLOTS 8u  /* few: most kernels of programs that load many modules are launched once */
#define CHECK_BYTES 64u /* behind each body; the header in front of it has to stay, too */

struct mg_nv_chunk {
    uint64_t at;
    uint8_t *pristine; /* pinned */
    size_t bytes;
    uint32_t n;
    struct mg_nv_slot *slots;
    struct mg_nv_chunk *next;
};
struct mg_nv_slots {
    struct mg_nv_ctx *x;
    void *header;
    size_t head, body, stride;
    struct mg_nv_chunk *chunks;
    struct mg_nv_slot *free, **free_last; /* first in, first out */
    uint32_t n, n_free, cap;
    struct mg_nv_slots *link;
};

struct mg_nv_slots *mg_nv_slots_new(struct mg_nv_ctx *x, const void *header, size_t header_bytes, size_t body_bytes)
{
    struct mg_nv_slots *s = calloc(1, sizeof *s);
    if (!s || !(s->header = malloc(header_bytes))) {
        free(s);
        return NULL;
    }
    memcpy(s->header, header, header_bytes);
    s->x = x;
    s->head = header_bytes;
    s->body = body_bytes;
    s->stride = (header_bytes + body_bytes + CHECK_BYTES + 127) & ~(size_t)127;
    s->free_last = &s->free;
    s->cap = (uint32_t)MG_MIN(MG_MAX(POOL_BYTES / s->stride, (size_t)4), (size_t)POOL_SLOTS);
    return s;
}

size_t mg_nv_slots_body(const struct mg_nv_slots *s)
{
    return s->body;
}
struct mg_nv_slots *mg_nv_slots_next(struct mg_nv_slots *s, struct mg_nv_slots *next)
{
    return s->link = next;
}
struct mg_nv_slots *mg_nv_slots_link(const struct mg_nv_slots *s)
{
    return s->link;
}
bool mg_nv_slot_is_whole(const struct mg_nv_slot *slot, const void *from)
{
    const struct mg_nv_slots *s = slot->owner;
    size_t end = s->head + s->body, checks = (s->stride - end) & ~(size_t)7;
    return !memcmp(from, slot->chunk->pristine + slot->ix * s->stride, s->head) &&
           mg_nv_check_holds((const char *)from + s->stride - checks, slot->at + s->stride - checks, checks);
}
size_t mg_nv_slot_stride(const struct mg_nv_slot *s)
{
    return s->owner->stride;
}
struct mg_nv_ctx *mg_nv_slot_ctx(const struct mg_nv_slot *s)
{
    return s->owner->x;
}
size_t mg_nv_slot_head(const struct mg_nv_slot *s)
{
    return s->owner->head;
}

static void push_free(struct mg_nv_slots *s, struct mg_nv_slot *slot) /* under the lock */
{
    slot->next = NULL;
    *s->free_last = slot;
    s->free_last = &slot->next;
    s->n_free++;
}

static struct mg_nv_slot *pop_free(struct mg_nv_slots *s)
{
    pthread_mutex_lock(&mg_nv.lock);
    struct mg_nv_slot *slot = s->free;
    if (slot && !(s->free = slot->next)) s->free_last = &s->free;
    s->n_free -= slot != NULL;
    pthread_mutex_unlock(&mg_nv.lock);
    return slot;
}

static bool fill_chunk(struct mg_nv_slots *s, struct mg_nv_chunk *c)
{
    for (uint32_t i = 0; i < c->n; i++) {
        uint8_t *to = c->pristine + i * s->stride;
        uint64_t at = c->at + i * s->stride, body = at + s->head;
        memset(to, 0, s->stride);
        memcpy(to, s->header, s->head);
        memcpy(to, &body, sizeof body);
        size_t checks = (s->stride - s->head - s->body) & ~(size_t)7;
        mg_nv_check_fill(to + s->stride - checks, at + s->stride - checks, checks);
        c->slots[i] = (struct mg_nv_slot){.at = at, .owner = s, .chunk = c, .ix = i};
    }
    pthread_mutex_lock(&s->x->copying);
    bool ok = mg_nv.cuMemcpyHtoDAsync_v2(c->at, c->pristine, c->n * s->stride, s->x->copy) == CUE_SUCCESS &&
              mg_nv_copies_wait(s->x);
    pthread_mutex_unlock(&s->x->copying);
    return ok;
}

/* Memory of slots that are no more, for at least one slot; NULL: none. */
static struct mg_nv_chunk *take_spare(struct mg_nv_slots *s)
{
    pthread_mutex_lock(&mg_nv.lock);
    struct mg_nv_chunk **at = &s->x->spare, *c;
    while (*at && (*at)->bytes < s->stride) at = &(*at)->next;
    if ((c = *at)) *at = c->next;
    pthread_mutex_unlock(&mg_nv.lock);
    return c;
}

static bool allocate(struct mg_nv_ctx *x, struct mg_nv_chunk *c, size_t bytes)
{
    c->bytes = bytes;
    c->at = mg_nv_take(x, MG_NV_DEVICE, bytes);
    c->pristine = c->at ? (uint8_t *)(uintptr_t)mg_nv_take(x, MG_NV_HOST, bytes) : NULL;
    return c->pristine != NULL;
}

/* A chunk more: none of these calls waits for the application's work. */
static bool grow(struct mg_nv_slots *s)
{
    uint32_t n = (uint32_t)MG_MAX(CHUNK_BYTES / s->stride, (size_t)1), have = __atomic_load_n(&s->n, __ATOMIC_RELAXED);
    if (have >= s->cap) /* another thread was here */
        return true;
    n = MG_MIN(MG_MAX(MG_MIN(n, FIRST_SLOTS), have), s->cap - have); /* twice as many each time */
    struct mg_nv_chunk *c = n ? take_spare(s) : NULL;
    if (c)
        n = (uint32_t)MG_MIN(c->bytes / s->stride, (size_t)(s->cap - have));
    else
        c = n ? calloc(1, sizeof *c) : NULL;
    if (!c || !(c->slots = calloc(n, sizeof *c->slots))) {
        free(c);
        return false;
    }
    c->n = n;
    int mode = mg_nv_relax();
    bool ok = (c->at || allocate(s->x, c, n * s->stride)) && fill_chunk(s, c);
    mg_nv_unrelax(mode);
    if (!ok) { /* what was allocated stays with the context: freeing waits */
        free(c->slots);
        free(c);
        return false;
    }
    pthread_mutex_lock(&mg_nv.lock);
    c->next = s->chunks;
    s->chunks = c;
    __atomic_add_fetch(&s->n, n, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < n; i++) push_free(s, &c->slots[i]);
    pthread_mutex_unlock(&mg_nv.lock);
    return true;
}

/* With every slot of a full pool in flight the launch waits a little for one, as it would for a place in
 * the driver's own queue, but not for ever: what runs may wait for the launch. */
struct mg_nv_slot *mg_nv_slot_take(struct mg_nv_slots *s)
{
    for (uint32_t k = 0; k < 2000; k++) {
        struct mg_nv_slot *slot = pop_free(s);
        if (slot) return slot;
        if (__atomic_load_n(&s->n, __ATOMIC_RELAXED) < s->cap) {
            if (!grow(s)) return NULL;
        } else {
            nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
        }
    }
    return NULL;
}

/* Into a slot that was taken and not launched yet, and into every later life of it. Waits for this copy
 * alone, which no stream of the application's knows of; nothing is copied when it holds that already. */
bool mg_nv_slot_write(struct mg_nv_slot *slot, size_t offset, const void *p, size_t bytes)
{
    struct mg_nv_ctx *x = slot->owner->x;
    if (x->error) return false;
    uint8_t *kept = slot->chunk->pristine + slot->ix * slot->owner->stride + offset; /* what it is made new with */
    if (!memcmp(kept, p, bytes)) return true;
    memcpy(kept, p, bytes);
    int mode = mg_nv_relax();
    pthread_mutex_lock(&x->copying);
    bool ok =
        mg_nv.cuMemcpyHtoDAsync_v2(slot->at + offset, kept, bytes, x->copy) == CUE_SUCCESS && mg_nv_copies_wait(x);
    pthread_mutex_unlock(&x->copying);
    mg_nv_unrelax(mode);
    return ok;
}

/* Who reads the slot meanwhile finds another word than it expects; it does not look at slots that were launched since.
 */
bool mg_nv_slot_set(struct mg_nv_slot *slot, size_t offset, uint32_t word, cu_stream s, bool per_thread)
{
    struct mg_nv_ctx *x = slot->owner->x;
    if (x->error || (per_thread ? mg_nv.cuMemsetD32Async_ptsz : mg_nv.cuMemsetD32Async)(slot->at + offset, word, 1,
                                                                                        s) != CUE_SUCCESS)
        return false;
    pthread_mutex_lock(&x->copying);
    memcpy(slot->chunk->pristine + slot->ix * slot->owner->stride + offset, &word, sizeof word);
    pthread_mutex_unlock(&x->copying);
    return true;
}

bool mg_nv_slot_peek(struct mg_nv_slot *slot, size_t offset, void *to, size_t bytes)
{
    struct mg_nv_ctx *x = slot->owner->x;
    cu_ctx was;
    if (x->error || mg_nv.cuCtxPushCurrent_v2(x->ctx) != CUE_SUCCESS) return false;
    bool ok = mg_nv_read(x, to, slot->at + offset, bytes);
    mg_nv.cuCtxPopCurrent_v2(&was);
    return ok;
}

bool mg_nv_slot_poke(struct mg_nv_slot *slot, size_t offset, const void *p, size_t bytes)
{
    struct mg_nv_ctx *x = slot->owner->x;
    cu_ctx was;
    if (x->error || mg_nv.cuCtxPushCurrent_v2(x->ctx) != CUE_SUCCESS) return false;
    pthread_mutex_lock(&x->copying);
    bool ok = mg_nv_staging(x, bytes);
    if (ok) {
        memcpy(x->staging, p, bytes);
        ok = mg_nv.cuMemcpyHtoDAsync_v2(slot->at + offset, x->staging, bytes, x->copy) == CUE_SUCCESS &&
             mg_nv_copies_wait(x);
    }
    pthread_mutex_unlock(&x->copying);
    mg_nv.cuCtxPopCurrent_v2(&was);
    return ok;
}

void mg_nv_slot_give(struct mg_nv_slot *slot)
{
    pthread_mutex_lock(&mg_nv.lock);
    push_free(slot->owner, slot);
    pthread_mutex_unlock(&mg_nv.lock);
}

bool mg_nv_slots_are_free(const struct mg_nv_slots *s)
{
    pthread_mutex_lock(&mg_nv.lock);
    bool all = s->n_free == s->n;
    pthread_mutex_unlock(&mg_nv.lock);
    return all;
}

void mg_nv_slots_free(struct mg_nv_slots *s)
{
    pthread_mutex_lock(&mg_nv.lock);
    while (s->chunks) {
        struct mg_nv_chunk *c = s->chunks;
        s->chunks = c->next;
        free(c->slots);
        c->slots = NULL;
        c->next = s->x->spare;
        s->x->spare = c;
    }
    pthread_mutex_unlock(&mg_nv.lock);
    free(s->header);
    free(s);
}

void mg_nv_slots_restore(struct mg_nv_ctx *x, struct mg_nv_slot **slots, uint32_t n)
{
    bool ok = true;
    for (uint32_t i = 0, k; i < n; i = k) {
        size_t stride = slots[i]->owner->stride;
        for (k = i + 1; k < n && slots[k]->chunk == slots[i]->chunk && slots[k]->ix == slots[i]->ix + (k - i);) k++;
        ok &= mg_nv.cuMemcpyHtoDAsync_v2(slots[i]->at, slots[i]->chunk->pristine + slots[i]->ix * stride,
                                         (k - i) * stride, x->copy) == CUE_SUCCESS;
    }
    if (!mg_nv_copies_wait(x) || !ok) return; /* the context is broken: nobody needs them */
    pthread_mutex_lock(&mg_nv.lock);
    for (uint32_t i = 0; i < n; i++) push_free(slots[i]->owner, slots[i]);
    pthread_mutex_unlock(&mg_nv.lock);
}
