/* margay-replay maps memory in pages and puts several allocations of the captured program into one. It tells each of
 * them, so that arguments point into these, not into what is mapped. Any other process has none. */
#include "inject/parts.h"

#include <pthread.h>
#include <string.h>

#include "base/compiler.h"
#include "base/search.h"
#include "base/vec.h"

#define FIRST_NUMBER (UINT64_C(1) << 32) /* the driver's allocations are fewer */

struct part {
    uint64_t at, bytes, id;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static MG_VEC(struct part) parts; /* by address */
static uint64_t n_ids;

static uint32_t behind(uint64_t at) /* the first that begins behind it */
{
    uint32_t k;
    MG_FIND_FIRST(k, parts.n, parts.at[k].at <= at);
    return k;
}

/* Memory at an address is an allocation of so many bytes from now on; of 0: is none any more. */
MG_EXPORT void margay_replay_memory(uint64_t at, uint64_t bytes);
void margay_replay_memory(uint64_t at, uint64_t bytes)
{
    pthread_mutex_lock(&lock);
    uint32_t k = behind(at);
    if (bytes) {
        (void)mg_vec_push(&parts);
        memmove(parts.at + k + 1, parts.at + k, (parts.n - 1 - k) * sizeof *parts.at);
        parts.at[k] = (struct part){at, bytes, FIRST_NUMBER + n_ids++};
    } else if (k && parts.at[k - 1].at == at) {
        memmove(parts.at + k - 1, parts.at + k, (parts.n - k) * sizeof *parts.at);
        parts.n--;
    }
    pthread_mutex_unlock(&lock);
}

bool mg_part_find(uint64_t address, uint64_t *id, uint64_t *offset, uint64_t *bytes)
{
    if (!__atomic_load_n(&parts.n, __ATOMIC_RELAXED)) return false;
    pthread_mutex_lock(&lock);
    uint32_t k = behind(address);
    const struct part *p = k ? &parts.at[k - 1] : NULL;
    bool is = p && address - p->at < p->bytes;
    if (is) {
        *id = p->id;
        *offset = address - p->at;
        *bytes = p->bytes;
    }
    pthread_mutex_unlock(&lock);
    return is;
}
