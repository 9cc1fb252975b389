/* What was loaded (images.c, eager.c): the PTX texts of an image, shared by equal images. */
#ifndef MG_INJECT_IMAGES_H
#define MG_INJECT_IMAGES_H

#include "base/vec.h"
#include "image/image.h"
#include "store/reason.h"
#include "tool/host.h"

struct mg_code;

struct mg_native_registers { /* of a thread, in the machine code beside the text */
    char *kernel;
    uint32_t n;
};
struct mg_ptx { /* one PTX text of an image; owner: its image */
    char *text;
    size_t bytes;
    char id[33];
    unsigned max_registers; /* what it was compiled with; 0: no cap */
    struct mg_module *m;    /* parsed when first needed */
    bool parsed, stored;
    struct mg_native_registers *registers; /* where twins are made ahead */
    uint32_t n_registers;
    uint64_t built_unix_ns; /* when the program, library or file that it came from was written; 0: not known */
    char *why;              /* why m is NULL after parsing */
};
/* What one load call was given. The first with its texts has them, and the kernels' codes, for all others; it stays,
 * with what is the same whenever those texts are loaded again (text ids, codes with their numbers in the store), and
 * gives back the rest when nothing is loaded and nothing is in flight that came from them. */
struct mg_img {
    struct mg_img *first; /* the same texts were loaded before: texts and codes are that one's; else NULL */
    uint32_t refs; /* of a first: loaded images that share it, instances of its kernels; under the session's lock */
    bool spent;    /* of a first: refs came to 0 */
    struct mg_ptx *ptx;
    uint32_t n_ptx;
    bool linked;             /* made of relocatable parts: the driver's linked module is the text */
    uint32_t seen;           /* witness counts were taken of instances of generation seen - 1 */
    enum mg_reason why;      /* why there is no PTX */
    struct mg_module *whole; /* all texts linked, when no driver gives that */
    bool tried;              /* to link them */
    struct mg_code *codes;   /* newest first; under the session's lock */
    uint32_t ahead; /* of a first: the set of tools with which others of its kernels were looked at last; atomic */
};
/* What parsing a text takes, and what making a twin of a kernel in it takes: several times what was measured. */
#define MG_PARSE_BYTES(text) (((size_t)1 << 20) + 16 * (size_t)(text))
#define MG_TWIN_BYTES(text)  (((size_t)4 << 20) + 32 * (size_t)(text))
void mg_img_unref(struct mg_img *first);
struct mg_img *mg_img_of(void *handle);                   /* of a module or library handle, NULL when unknown */
const struct mg_module *mg_img_linked(struct mg_img *im); /* NULL: they do not link */
/* Calls fn for every text that was loaded, once each. */
void mg_img_each_ptx(void (*fn)(const struct mg_host_module *m, void *user), void *user);
struct mg_ptx *mg_img_parsed(struct mg_img *im, uint32_t ix);      /* parses on first use */
void mg_eager_load(void *handle, struct mg_img *im, bool library); /* eager.c */

#endif
