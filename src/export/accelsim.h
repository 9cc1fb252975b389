/* What the two forms of Accel-Sim's traces share (accesses_accelsim.c): a launch's records CTA by CTA and warp by warp.
 * "memory" has memory instructions alone; "pseudo" (accelsim_pseudo.c) every PTX instruction under a name of machine
 * code. */
#ifndef MG_EXPORT_ACCELSIM_H
#define MG_EXPORT_ACCELSIM_H

#include "base/vec.h"
#include "export/accesses.h"

/* An instruction in the words of the format: "1 R9 IADD3 2 R8 R4". */
struct mg_accelsim_words {
    char text[160];
    uint32_t bytes;          /* of a lane, where the simulator wants addresses; else 0 */
    bool is_exit, is_global; /* global: what no lane accessed is a NOP, since no address is known */
};
/* NULL: nothing is known about the instruction. The words live until the conversion ends. */
typedef const struct mg_accelsim_words *mg_accelsim_fn(void *user, const struct mg_access_site *s);
/* A trace with instructions=on, as a folder. */
enum mg_err mg_accelsim_pseudo(struct mg_accesses *a, const struct mg_convert_opts *o, mg_accelsim_fn *fn, void *user,
                               struct mg_converted *out, struct mg_diag *d) MG_MUST_CHECK;

/* ---- inside of this folder ---- */

enum { MG_ACCELSIM_PC_BYTES = 16 };
struct mg_accelsim_held { /* a record */
    uint64_t cta;
    uint32_t warp, number, order, mask;
    const struct mg_access_site *site;
    uint64_t address[32];
};
struct mg_accelsim_writer {
    struct mg_accesses *a;
    const struct mg_convert_opts *o;
    struct mg_converted *sums;
    FILE *list, *f; /* f: of the launch */
    uint64_t n_kernels;
    bool instructions; /* blocks and barriers are held, too, in the order of the trace */
    const char *by;    /* who wrote it */
    /* The lines of a warp, in front of the exit of those lanes that have not left: their mask. */
    uint32_t (*put_warp)(struct mg_accelsim_writer *w, const struct mg_accelsim_held *h, uint32_t n, uint32_t lanes,
                         struct mg_buf *out, uint32_t *n_lines);
    mg_accelsim_fn *words;
    void *user;
    uint64_t unknown; /* instructions without words */
    MG_VEC(struct mg_accelsim_held) held;
    struct mg_buf text;
};
void mg_accelsim_put_addresses(struct mg_buf *out, const struct mg_accelsim_held *h);
enum mg_err mg_accelsim_write(struct mg_accelsim_writer *w, struct mg_diag *d) MG_MUST_CHECK;

#endif
