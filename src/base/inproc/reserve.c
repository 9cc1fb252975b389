/* The allocation functions of in-process libraries: the C library's, then the reserve (reserve.h).
 *
 * The reserve hands out blocks of a power of two bytes, each behind a header, and keeps a list of free blocks for
 * each power. A pointer of the reserve is known by its address. Only the library that allocated it may free it. */
#include "base/inproc/reserve.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define RESERVE_BYTES ((size_t)32 << 20)
#define CLASSES       26u /* the largest block is the whole reserve */

/* The linker's names. */
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__real_realloc(void *p, size_t bytes);
void *__real_aligned_alloc(size_t align, size_t bytes);
size_t __real_malloc_usable_size(void *p);
void __real_free(void *p);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_realloc(void *p, size_t bytes);
void *__wrap_aligned_alloc(size_t align, size_t bytes);
char *__wrap_strdup(const char *s);
char *__wrap_strndup(const char *s, size_t n);
size_t __wrap_malloc_usable_size(void *p);
void __wrap_free(void *p);

struct block { /* in front of what it holds */
    size_t bytes;
    struct block *next; /* while it is free */
};
static struct {
    pthread_once_t once;
    pthread_mutex_t lock;
    char *base; /* NULL: none; atomic, since any thread may free before it allocates */
    char *at;   /* what lies behind was never handed out */
    struct block *free[CLASSES];
    bool is_short; /* an allocation failed; atomic */
} reserve = {.once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER};

static void set_aside(void)
{
    void *p = mmap(NULL, RESERVE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return;
    reserve.at = p;
    __atomic_store_n(&reserve.base, p, __ATOMIC_RELEASE);
}

static bool is_ours(const void *p)
{
    const char *base = __atomic_load_n(&reserve.base, __ATOMIC_ACQUIRE);
    return base && (uintptr_t)p - (uintptr_t)base < RESERVE_BYTES;
}

static uint32_t class_of(size_t bytes)
{
    uint32_t c = 5;
    while (c < CLASSES && ((size_t)1 << c) < bytes) c++;
    return c;
}

static void *reserve_alloc(size_t align, size_t bytes)
{
    uint32_t c = class_of(bytes);
    char *p = NULL;
    __atomic_store_n(&reserve.is_short, true, __ATOMIC_RELEASE);
    if (c >= CLASSES) return NULL;
    pthread_mutex_lock(&reserve.lock);
    if (align <= 16 && reserve.free[c]) {
        struct block *b = reserve.free[c];
        reserve.free[c] = b->next;
        p = (char *)(b + 1);
    } else if (reserve.at) {
        size_t before = sizeof(struct block), room = RESERVE_BYTES - (size_t)(reserve.at - reserve.base);
        before += (align - ((uintptr_t)reserve.at + before) % align) % align;
        if (before + ((size_t)1 << c) <= room) {
            p = reserve.at + before;
            reserve.at = p + ((size_t)1 << c);
            ((struct block *)(void *)p)[-1] = (struct block){.bytes = (size_t)1 << c};
        }
    }
    pthread_mutex_unlock(&reserve.lock);
    return p;
}

static void reserve_free(void *p)
{
    struct block *b = (struct block *)p - 1;
    uint32_t c = class_of(b->bytes);
    pthread_mutex_lock(&reserve.lock);
    b->next = reserve.free[c];
    reserve.free[c] = b;
    pthread_mutex_unlock(&reserve.lock);
}

bool mg_memory_is_short(void)
{
    return __atomic_load_n(&reserve.is_short, __ATOMIC_ACQUIRE);
}

bool mg_memory_has(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        __atomic_store_n(&reserve.is_short, true, __ATOMIC_RELEASE);
    else
        munmap(p, bytes);
    return p != MAP_FAILED;
}

void *__wrap_malloc(size_t bytes)
{
    pthread_once(&reserve.once, set_aside);
    void *p = __real_malloc(bytes);
    return MG_LIKELY(p) ? p : reserve_alloc(16, bytes);
}

void *__wrap_calloc(size_t n, size_t bytes)
{
    pthread_once(&reserve.once, set_aside);
    void *p = __real_calloc(n, bytes);
    if (MG_LIKELY(p)) return p;
    p = bytes && n > SIZE_MAX / bytes ? NULL : reserve_alloc(16, n * bytes);
    return p ? memset(p, 0, n * bytes) : NULL;
}

void *__wrap_realloc(void *p, size_t bytes)
{
    if (!p) return __wrap_malloc(bytes);
    if (!is_ours(p)) {
        void *q = __real_realloc(p, bytes);
        if (MG_LIKELY(q) || !bytes) return q;
        if (!(q = reserve_alloc(16, bytes))) return NULL;
        size_t had = __real_malloc_usable_size(p);
        memcpy(q, p, MG_MIN(had, bytes));
        __real_free(p);
        return q;
    }
    struct block *b = (struct block *)p - 1;
    if (bytes && bytes <= b->bytes) return p;
    void *q = bytes ? __wrap_malloc(bytes) : NULL;
    if (q) memcpy(q, p, b->bytes);
    if (q || !bytes) reserve_free(p);
    return q;
}

void *__wrap_aligned_alloc(size_t align, size_t bytes)
{
    pthread_once(&reserve.once, set_aside);
    void *p = __real_aligned_alloc(align, bytes);
    return MG_LIKELY(p) ? p : reserve_alloc(MG_MAX(align, 16), bytes);
}

char *__wrap_strndup(const char *s, size_t n)
{
    size_t bytes = strnlen(s, n);
    char *p = __wrap_malloc(bytes + 1);
    if (p) {
        memcpy(p, s, bytes);
        p[bytes] = 0;
    }
    return p;
}

char *__wrap_strdup(const char *s)
{
    return __wrap_strndup(s, SIZE_MAX);
}

size_t __wrap_malloc_usable_size(void *p)
{
    return is_ours(p) ? ((struct block *)p - 1)->bytes : __real_malloc_usable_size(p);
}

void __wrap_free(void *p)
{
    if (MG_UNLIKELY(is_ours(p)))
        reserve_free(p);
    else
        __real_free(p);
}
