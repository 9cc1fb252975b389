/* What the files of the NVIDIA backend share: the state of a twin on a real GPU, and what nvidia/backend.c offers. */
#ifndef MG_INJECT_NVIDIA_GPU_H
#define MG_INJECT_NVIDIA_GPU_H

#include "inject/nvidia/nv.h"
#include "inject/launch.h"

struct mg_gpu_fit {
    unsigned threads, shared_bytes;
    int native, twin;
}; /* CTAs a multiprocessor takes */
struct mg_gpu_body {
    struct mg_nv_ctx *x;
    struct mg_nv_slots *slots; /* one for every size of counters that a launch needs; under the session's lock */
    pthread_mutex_t compiling; /* the next four; known */
    void *code;
    size_t code_bytes; /* machine code, compiled and not loaded yet */
    bool compiled;     /* once more only with a cap */
    cu_result rc;      /* of compiling */
    char why[400];
    cu_module modules[3];
    uint32_t n_modules; /* the twin, once more with room for registers, and with a cap */
    void *narrow;       /* cu_function of the first, while the second is the twin; NULL: there is none */
    char *text;         /* the twin's text changed for this device, NULL: as it is */
    unsigned cap;       /* registers that the twin was told to keep to; 0: none */
    bool capped;        /* tried */
    bool tightened;     /* likewise, for the sake of more CTAs at once alone */
    bool early;         /* lets later kernels begin before it ends: its launch's own event would too */
    struct mg_gpu_fit fits[8];
    uint32_t n_fits;
    struct mg_gpu_known *known;   /* values of constants that launches bring along, newest first (gpu_known.c) */
    uint64_t look_at, look_after; /* when they are looked at next; how long after the last time */
    uint32_t n_changes;           /* found then */
    bool used;                    /* a launch has ended since */
    bool listed;
    struct mg_body *next_known; /* all bodies with any */
};
/* NULL: out of memory, or the context cannot be used. */
struct mg_gpu_body *mg_gpu_body_get(struct mg_body *b);
void mg_gpu_widen_stack(const struct mg_inst *i); /* before its twin is loaded; gpu_stack.c */
void mg_gpu_forget_stack(void *ctx);
/* Constants: have they changed? In pass_ends. And when nothing of the body runs any more: gives them back. */
void mg_gpu_known_pass(void);
void mg_gpu_known_release(struct mg_body *b);
void mg_gpu_known_forget(struct mg_body *b);                              /* it is freed */
uint64_t mg_gpu_words(const struct mg_body *b, const struct mg_shape *s); /* of the counters of a launch */

/* Events around a recorded call, for the time line (gpu_work.c). NULL: there are none. */
struct mg_call_frame;
struct mg_gpu_work;
struct mg_gpu_work *mg_gpu_work_begin(const struct mg_call_frame *f);
void mg_gpu_work_end(struct mg_call_frame *f, cu_result result);

/* Around what the assembler does with so many bytes of text: its time is the session's, who waits is told
 * (gpu_assembly.c). */
uint64_t mg_gpu_assembly_begin(size_t bytes);
void mg_gpu_assembly_end(size_t bytes, uint64_t began);
void mg_gpu_assembly_say(const char *kernel, size_t bytes, uint64_t began, const char *how); /* with --verbose */

/* What is given to the assembler, and how, for a body of mg_twin_ahead; false: nothing is, before it is launched. */
bool mg_gpu_text_ahead(struct mg_body *b, char **text, struct mg_nv_jit *j);
/* The body's kernel is wanted: others of its image are assembled meanwhile (gpu_ahead.c). */
void mg_gpu_ahead(struct mg_body *b);
void mg_gpu_ahead_leave(void *ctx, bool destroyed); /* it ends, destroyed: nobody assembles in it any more */
void mg_gpu_ahead_stop(void);                       /* the process may end: nothing more is begun */

/* The parts of NVIDIA's: gpu_twin.c, gpu_run.c. */
bool mg_gpu_is_for_any(struct mg_body *b);
void mg_gpu_compile(struct mg_body *b);
bool mg_gpu_unload(struct mg_body *b);
bool mg_gpu_global(void *function, const char *name, uint64_t *address);
uint64_t mg_gpu_function_address(struct mg_body *b, const char *name);
uint64_t mg_gpu_table(struct mg_body *b, const uint64_t *values, uint32_t n);
bool mg_gpu_known_fill(struct mg_body *b);
bool mg_gpu_may_load(struct mg_body *b, const struct mg_shape *s);
bool mg_gpu_load(struct mg_body *b, void **twin, char *why, size_t room);
enum mg_reason mg_gpu_why_not(struct mg_body *b, const struct mg_shape *s);
uint32_t mg_gpu_most_registers(const struct mg_inst *i, const struct mg_shape *s, bool *must);
struct mg_block_mem *mg_gpu_take(struct mg_run *r);
void mg_gpu_give(struct mg_run *r, struct mg_block_mem *m);
void mg_gpu_write(struct mg_run *r, uint64_t offset, const uint64_t *words, uint32_t n);
bool mg_gpu_peek(const struct mg_run *r, uint64_t offset, uint64_t *words, uint32_t n);
void mg_gpu_poke(const struct mg_run *r, uint64_t offset, uint64_t word);
cu_result mg_gpu_send(const struct mg_call *c, struct mg_run *r, void **params, void **extra);
/* gpu_graph.c: the run of a node that the driver took (it is ours from now on); the same for a node of an
 * executable graph. */
void mg_gpu_node_add(struct mg_run *r);
void mg_gpu_node_taken(struct mg_run *r, cu_graph_exec x, cu_node node);                 /* x NULL: of none */
void mg_gpu_node_changed(cu_graph_exec x, cu_node node, const struct cu_node_params *p); /* a copy or memset */
void mg_gpu_graph_stays(cu_graph g); /* it becomes part of another: its nodes are kept */
void mg_gpu_graph_pass(void);        /* hands over what replays counted; on the thread that drains */
/* gpu_run.c: tells the store of the launches taken since the last time. */
void mg_gpu_announce(void);

#endif
