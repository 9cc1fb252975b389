/* The list of cubins whose PTX is known, by the SHA-256 of the machine code: programs hand the bytes
 * on as they like (copied, written to a file and read again), so neither an address nor a name would
 * find them. A few per process; equal programs share one entry.
 * Not here: who tells (inject/nvrtc.c) and who asks (image.c). */
#include "image/known.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

struct known {
    struct known *next;
    uint8_t id[32];
    size_t bytes; /* of the machine code, then of text */
    size_t ptx_bytes;
    char text[];
};
static struct known *all;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct known *find(const uint8_t id[32], size_t bytes)
{
    struct known *k = all;
    while (k && (k->bytes != bytes || memcmp(k->id, id, 32))) k = k->next;
    return k;
}

bool mg_known_ptx_add(const void *cubin, size_t bytes, const char *ptx, size_t ptx_bytes)
{
    struct known *k = malloc(sizeof *k + ptx_bytes + 1);
    if (!k) return false;
    mg_sha256_of(cubin, bytes, k->id);
    k->bytes = bytes;
    k->ptx_bytes = ptx_bytes;
    memcpy(k->text, ptx, ptx_bytes);
    k->text[ptx_bytes] = 0;
    while (k->ptx_bytes && !k->text[k->ptx_bytes - 1]) k->ptx_bytes--;
    pthread_mutex_lock(&lock);
    bool old = find(k->id, bytes) != NULL;
    if (!old) {
        k->next = all;
        __atomic_store_n(&all, k, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
    if (old) free(k);
    return true;
}

const char *mg_known_ptx_find(const void *cubin, size_t bytes, size_t *ptx_bytes)
{
    if (!__atomic_load_n(&all, __ATOMIC_ACQUIRE)) return NULL; /* most programs: nothing is hashed */
    uint8_t id[32];
    mg_sha256_of(cubin, bytes, id);
    pthread_mutex_lock(&lock);
    struct known *k = find(id, bytes);
    pthread_mutex_unlock(&lock);
    if (k) *ptx_bytes = k->ptx_bytes;
    return k ? k->text : NULL;
}
