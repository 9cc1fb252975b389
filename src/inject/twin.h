/* Twins (twin.c): the text of one (variant), and that text loaded in one context (body). */
#ifndef MG_INJECT_TWIN_H
#define MG_INJECT_TWIN_H

#include "inject/kernels.h"
#include "patch/layout.h"

struct mg_variant { /* text of a twin: the kernel with one set of tools */
    struct mg_variant *next;
    struct mg_code *code;
    uint32_t set;         /* bit u: with tool u of the session */
    enum mg_state state;  /* of what follows */
    char *reason;         /* FAILED: why */
    struct mg_module *ir; /* what the backend loads when it takes IR; nobody changes it any more */
    char *text;           /* PTX: what it loads else, and what is dumped; or NULL */
    struct mg_layout layout;
    uint32_t uses[MG_MAX_USES]; /* region -> tool of the session */
    struct mg_twin_symbol *symbols;
    uint32_t n_symbols;
    uint32_t ctx_offset;
    struct mg_twin_known *known;
    uint32_t n_known, known_bytes, known_offset, known_values; /* as in struct mg_twin */
    bool fitted;                                               /* as in struct mg_twin */
    uint32_t fewer;                                            /* as in struct mg_twin */
    uint64_t tools;                                            /* as the store numbers those that stand in the text */
    bool told;                                                 /* the store knows of all regions */
};
struct mg_block_mem {
    struct mg_block_mem *next;
    uint64_t at, words;
    void *slot;
};               /* context block, then its counters */
struct mg_body { /* a variant as it is loaded in one context; owner: its instance */
    struct mg_body *next;
    struct mg_inst *inst;
    struct mg_variant *variant;
    enum mg_state state;
    char *reason;
    uint32_t threads;            /* of a CTA of the launch that asked first; 0: none has */
    uint64_t ctas;               /* of that launch */
    uint32_t most_registers;     /* with which as many of its CTAs fit at once as natively; 0: not known */
    bool must_fit;               /* it may need that */
    void *twin;                  /* cu_function */
    uint64_t symbols;            /* table of addresses on the device */
    const uint64_t *known;       /* what the twin's parameter for constants holds; NULL: it has none */
    struct mg_block_mem *blocks; /* free ones; under the session's lock */
    struct mg_gpu_body *gpu;     /* of the NVIDIA backend, NULL: nothing yet */
    uint32_t n_nodes;            /* NVIDIA: nodes of graphs that run the twin */
};

/* The kernel with this set of tools, in this context; NULL: out of memory. */
struct mg_body *mg_kernel_body(struct mg_inst *i, uint32_t set);
void mg_twin_settings(struct mg_inst *i, void *twin); /* what the application set on the kernel so far */
/* The part of making a twin that waits for nothing: its text, and machine code where the backend compiles apart. */
void mg_kernel_prepare(struct mg_body *b);
/* Makes the twin on first use; false: it cannot have one, b->reason says why. */
bool mg_kernel_twin(struct mg_body *b, const struct mg_shape *s);
/* Gives back its text and all that belongs to that. */
void mg_variant_clear(struct mg_variant *v);
/* A kernel of a text of the image, which nobody has launched, with these tools, for any launch: known to nobody else,
 * in no context, good for its text alone. registers: of the native code, 0: not known. NULL: it has none, or one that
 * would be another for its launch. The image is held. */
struct mg_body *mg_twin_ahead(struct mg_img *im, uint32_t text, mg_id kernel, uint32_t set, uint32_t registers);
void mg_twin_ahead_free(struct mg_body *b);
const struct mg_module *mg_twin_parsed(struct mg_img *im, uint32_t text); /* NULL: it cannot be */
/* Which PTX text the kernel is in, without parsing it: its identity in the profile. */
void mg_kernel_find(struct mg_inst *i);
/* While the app may be capturing, calls that this thread makes between the two do not spoil that. */
int mg_capture_relax(void);
void mg_capture_unrelax(int before);
uint64_t mg_jit_spent(uint64_t ns); /* adds to the session's; returns what this thread spent so far */

#endif
