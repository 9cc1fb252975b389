/* The table of texture and surface handles (texture.h): slots in blocks that are never freed, so a
 * stale handle finds an empty slot and never freed memory. Handles count up from 1 and are used
 * again, oldest first. */
#include "device/texture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "device/mem.h"

#define BLOCK    256u
#define N_BLOCKS 4096u /* 2^20 objects, as on hardware */

struct slot {
    _Atomic bool live;
    uint32_t next_free;
    struct mg_texture t;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(struct slot *) blocks[N_BLOCKS];
static uint32_t n_slots, first_free, last_free; /* handles; 0: none */

struct mg_texels *mg_texels_new(uint64_t bytes)
{
    struct mg_texels *t = malloc(sizeof *t);
    uint8_t *at = calloc(1, bytes + 16); /* a fetch may read a whole vector */
    if (!t || !at) {
        free(t);
        free(at);
        return NULL;
    }
    t->bytes = bytes;
    t->at = at;
    atomic_init(&t->refs, 1);
    return t;
}

void mg_texels_ref(struct mg_texels *t)
{
    if (t) atomic_fetch_add(&t->refs, 1);
}

void mg_texels_unref(struct mg_texels *t)
{
    if (!t || atomic_fetch_sub(&t->refs, 1) != 1) return;
    free(t->at);
    free(t);
}

static struct slot *slot_of(uint64_t handle)
{
    if (!handle || handle > (uint64_t)BLOCK * N_BLOCKS) return NULL;
    struct slot *b = atomic_load_explicit(&blocks[(handle - 1) / BLOCK], memory_order_acquire);
    return b ? &b[(handle - 1) % BLOCK] : NULL;
}

uint64_t mg_texture_add(const struct mg_texture *t)
{
    uint32_t handle = 0;
    pthread_mutex_lock(&lock);
    if (first_free) {
        handle = first_free;
        first_free = slot_of(handle)->next_free;
        if (!first_free) last_free = 0;
    } else if (n_slots < BLOCK * N_BLOCKS) {
        if (n_slots % BLOCK == 0) {
            struct slot *b = calloc(BLOCK, sizeof *b);
            if (b) atomic_store_explicit(&blocks[n_slots / BLOCK], b, memory_order_release);
        }
        if (atomic_load(&blocks[n_slots / BLOCK])) handle = ++n_slots;
    }
    struct slot *s = slot_of(handle);
    if (s) {
        s->t = *t;
        for (uint32_t i = 0; i < t->n_levels; i++) mg_texels_ref(t->level[i].texels);
        atomic_store(&s->t.checked, 0);
        atomic_store_explicit(&s->live, true, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
    return handle;
}

bool mg_texture_remove(uint64_t handle)
{
    pthread_mutex_lock(&lock);
    struct slot *s = slot_of(handle);
    bool was = s && atomic_exchange(&s->live, false);
    if (was) {
        for (uint32_t i = 0; i < s->t.n_levels; i++) mg_texels_unref(s->t.level[i].texels);
        s->next_free = 0;
        if (last_free)
            slot_of(last_free)->next_free = (uint32_t)handle;
        else
            first_free = (uint32_t)handle;
        last_free = (uint32_t)handle;
        mg_mem_changed(); /* what was found of its texels; the handle may become another object's */
    }
    pthread_mutex_unlock(&lock);
    return was;
}

struct mg_texture *mg_texture_object(uint64_t handle)
{
    struct slot *s = slot_of(handle);
    return s && atomic_load_explicit(&s->live, memory_order_acquire) ? &s->t : NULL;
}

struct mg_texture *mg_texture_find(uint64_t handle)
{
    struct mg_texture *t = mg_texture_object(handle);
    if (!t || t->shape == MG_TEX_ARRAY) return t;
    uint64_t now = mg_mem_epoch();
    if (atomic_load_explicit(&t->checked, memory_order_relaxed) == now) return t;
    const struct mg_tex_level *l = &t->level[0];
    uint64_t base = (uint64_t)l->at, bytes = (uint64_t)(l->height - 1) * l->row +
                                             (uint64_t)l->width * mg_texel_kind_bytes(t->kind) * t->channels;
    struct mg_alloc a;
    if (!mg_mem_find(base, &a)) return NULL;
    uint64_t reach = a.base + a.bytes - base;
    if (t->shape == MG_TEX_PITCH && bytes > reach) return NULL;
    atomic_store_explicit(&t->reach, reach, memory_order_relaxed);
    atomic_store_explicit(&t->checked, now, memory_order_relaxed);
    return t;
}
