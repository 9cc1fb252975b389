/* What gpu_twin.c, gpu_run.c and gpu_graph.c share: the state of a twin on a real GPU. */
#ifndef MG_INJECT_GPU_H
#define MG_INJECT_GPU_H

#include "device/nvidia/nvidia.h"
#include "inject/launch.h"

struct mg_gpu_fit { unsigned threads, shared_bytes; int native, twin; }; /* CTAs a multiprocessor takes */
struct mg_gpu_body {
    struct mg_nv_ctx *x;
    struct mg_nv_slots *slots;   /* one for every size of counters that a launch needs; under the session's lock */
    pthread_mutex_t compiling;   /* the next four; known */
    void *code; size_t code_bytes; /* machine code, compiled and not loaded yet */
    bool compiled;               /* once more only with a cap */
    cu_result rc;                /* of compiling */
    char why[400];
    cu_module modules[3]; uint32_t n_modules; /* the twin, once more with room for registers, and with a cap */
    void *narrow;                /* cu_function of the first, while the second is the twin; NULL: there is none */
    char *text;                  /* the twin's text changed for this device, NULL: as it is */
    unsigned cap;                /* registers that the twin was told to keep to; 0: none */
    bool capped;                 /* tried */
    bool early;                  /* lets later kernels begin before it ends: its launch's own event would too */
    struct mg_gpu_fit fits[8];
    uint32_t n_fits;
    struct mg_gpu_known *known;  /* values of constants that launches bring along, newest first (gpu_known.c) */
    uint64_t look_at, look_after; /* when they are looked at next; how long after the last time */
    uint32_t n_changes;          /* found then */
    bool used;                   /* a launch has ended since */
    bool listed; struct mg_body *next_known; /* all bodies with any */
};
/* NULL: out of memory, or the context cannot be used. */
struct mg_gpu_body *mg_gpu_body_get(struct mg_body *b);
void mg_gpu_widen_stack(const struct mg_inst *i); /* before its twin is loaded; gpu_stack.c */
void mg_gpu_forget_stack(void *ctx);
/* Constants: have they changed? In pass_ends. And when nothing of the body runs any more: gives them back. */
void mg_gpu_known_pass(void);
void mg_gpu_known_release(struct mg_body *b);
void mg_gpu_known_forget(struct mg_body *b); /* it is freed */
uint64_t mg_gpu_words(const struct mg_body *b, const struct mg_shape *s); /* of the counters of a launch */

#endif
