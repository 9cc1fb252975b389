/* Twins whose kernels the application has unloaded. Unloading waits for all work in flight, so it is done
 * right after calls of the application's that waited likewise (module loads and unloads), when nothing
 * runs; else at the next such call. Instances themselves stay: what they counted may be on its way to
 * the store. */
#include "inject/priv.h"

static struct mg_inst *left; /* under the session's lock */

void mg_leftover_add(struct mg_inst *i)
{
    if (!i->twin || !mg_session.backend->unload)
        return;
    i->next_left = left;
    left = i;
}

void mg_leftover_unload(void)
{
    struct mg_inst *later = NULL, **last = &later;
    if (!__atomic_load_n(&left, __ATOMIC_RELAXED))
        return;
    pthread_mutex_lock(&mg_session.lock);
    struct mg_inst *i = left;
    left = NULL;
    pthread_mutex_unlock(&mg_session.lock);
    while (i) {
        struct mg_inst *next = i->next_left;
        if (mg_session.backend->unload(i)) {
            mg_kernel_drop_twin(i);
        } else {
            *last = i;
            last = &i->next_left;
        }
        i = next;
    }
    pthread_mutex_lock(&mg_session.lock);
    *last = left;
    left = later;
    pthread_mutex_unlock(&mg_session.lock);
}
