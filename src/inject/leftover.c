/* Twins whose kernels the application has unloaded. Unloading waits for all work in flight, so it is done
 * right after calls of the application's that waited likewise (module loads and unloads), when nothing
 * runs; else at the next such call. Instances themselves stay: what they counted may be on its way to
 * the store. */
#include "inject/priv.h"

static struct mg_body *left; /* under the session's lock */

void mg_leftover_add(struct mg_body *b)
{
    if (!b->twin || !mg_session.backend->unload)
        return;
    b->next_left = left;
    left = b;
}

void mg_leftover_unload(void)
{
    struct mg_body *later = NULL, **last = &later;
    if (!__atomic_load_n(&left, __ATOMIC_RELAXED))
        return;
    pthread_mutex_lock(&mg_session.lock);
    struct mg_body *b = left;
    left = NULL;
    pthread_mutex_unlock(&mg_session.lock);
    while (b) {
        struct mg_body *next = b->next_left;
        if (mg_session.backend->unload(b)) {
            mg_kernel_drop_twin(b);
        } else {
            *last = b;
            last = &b->next_left;
        }
        b = next;
    }
    pthread_mutex_lock(&mg_session.lock);
    *last = left;
    left = later;
    pthread_mutex_unlock(&mg_session.lock);
}
