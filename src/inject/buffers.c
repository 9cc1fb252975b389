/* Sizes of the first allocations that arguments of kernels point into: into the profile as tools/margay/allocations, so
 * that reports can name a buffer with its size. Written when one is new, so that a killed run keeps them; later ones
 * are without a size. */
#include "inject/buffers.h"

#include <pthread.h>

#include "base/json.h"
#include "inject/session.h"

enum { MOST = 64 };

static struct {
    pthread_mutex_t lock;
    uint32_t n;
    uint64_t id[MOST], bytes[MOST];
} known = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void write_all(void) /* under the lock */
{
    struct mg_buf text = MG_BUF_INIT;
    struct mg_json j;
    mg_json_init(&j, &text, 0);
    mg_json_arr(&j);
    for (uint32_t i = 0; i < known.n; i++) {
        mg_json_obj(&j);
        mg_json_key_u64(&j, "allocation", known.id[i]);
        mg_json_key_u64(&j, "bytes", known.bytes[i]);
        mg_json_end(&j, '}');
    }
    mg_json_end(&j, ']');
    mg_store_tool_json(mg_session.store, "margay", "allocations", text.at);
    mg_buf_release(&text);
}

void mg_buffers_note(uint64_t allocation, uint64_t bytes)
{
    uint32_t i = 0;
    if (!bytes) return;
    pthread_mutex_lock(&known.lock);
    while (i < known.n && known.id[i] != allocation) i++;
    if (i == known.n && known.n < MOST) {
        known.id[known.n] = allocation;
        known.bytes[known.n++] = bytes;
        write_all();
    }
    pthread_mutex_unlock(&known.lock);
}
