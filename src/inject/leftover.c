/* Instances whose module the application has unloaded, and their twins. They are freed when the last run has told what
 * it counted. Unloading a twin may wait for all work in flight, so it is done right after calls of the application's
 * that waited likewise (module loads and unloads), when nothing runs; else at the next such call. */
#include "inject/images.h"

#include <stdlib.h>

#include "inject/kernels.h"
#include "inject/run.h"
#include "inject/session.h"
#include "inject/twin.h"

#define MOST_LEFT                                                                                                      \
    16u /* a program that loads modules faster than the thread that collects counts gets to run has them collected     \
           here */

static struct mg_inst *left; /* under the session's lock */
static uint32_t n_left;

void mg_leftover_add(struct mg_inst *i)
{
    i->next_left = left;
    left = i;
    __atomic_add_fetch(&n_left, 1, __ATOMIC_RELAXED);
}

static bool unload(struct mg_inst *i)
{
    if (__atomic_load_n(&i->refs, __ATOMIC_ACQUIRE)) return false;
    while (i->bodies) {
        struct mg_body *b = i->bodies;
        if (!mg_session.backend->unload(b)) return false;
        mg_kernel_drop_twin(b);
        i->bodies = b->next;
        free(b->reason);
        free(b);
    }
    return true;
}

static void free_inst(struct mg_inst *i)
{
    mg_legacy_free(i->legacy);
    pthread_mutex_destroy(&i->describing);
    free(i->param_offsets);
    mg_img_unref(i->code->im);
    free(i);
}

void mg_leftover_unload(void)
{
    struct mg_inst *later = NULL, **last = &later;
    if (!__atomic_load_n(&left, __ATOMIC_RELAXED)) return;
    if (__atomic_load_n(&n_left, __ATOMIC_RELAXED) > MOST_LEFT) mg_session.backend->collect();
    mg_run_bury();
    pthread_mutex_lock(&mg_session.lock);
    struct mg_inst *i = left;
    __atomic_store_n(&left, NULL, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&mg_session.lock);
    while (i) {
        struct mg_inst *next = i->next_left;
        if (unload(i)) {
            free_inst(i);
            __atomic_sub_fetch(&n_left, 1, __ATOMIC_RELAXED);
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
