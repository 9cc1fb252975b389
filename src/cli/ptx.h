/* What `margay ptx cfg|stat|instrument` do to one parsed module; cmd_ptx.c finds the modules. */
#ifndef MG_CLI_PTX_H
#define MG_CLI_PTX_H

#include "base/buf.h"
#include "base/json.h"
#include "cli/opt.h"
#include "ir/ir.h"

struct ptx_opts {
    const char *kernel;       /* glob over function names; NULL: all */
    bool dot;                 /* cfg: for Graphviz */
    bool data;                /* cfg: with what each instruction reads and writes */
    bool json;                /* cfg, stat: as JSON */
    struct mg_opt_list tools; /* instrument: "blocks,warps=off"; none: blocks */
    uint64_t sm;              /* instrument: of the GPU; 0: emu and cpu */
    const char *pass;         /* instrument: run this pass over the module instead of a tool */
    const char *dump;         /* instrument: print the module after this pass, too ("all") */
};
bool ptx_wants(const struct ptx_opts *o, const struct mg_module *m, mg_id func);
void ptx_cfg(const struct mg_module *m, const struct ptx_opts *o, struct mg_buf *out);
/* The same as one object, inside a list, with the data. */
void ptx_cfg_json(const struct mg_module *m, const struct ptx_opts *o, const char *label, struct mg_json *j);
/* What the instructions of a function read, write and access (ptx_data.c). */
struct mg_cfg;
struct mg_spaces;
struct ptx_data;
struct ptx_data *ptx_data_new(const struct mg_cfg *c, const struct mg_spaces *spaces);
void ptx_data_free(struct ptx_data *d);
void ptx_data_print(struct ptx_data *d, uint32_t block, struct mg_buf *out);
void ptx_data_json(struct ptx_data *d, struct mg_json *j);
void ptx_stat(const struct mg_module *m, const struct ptx_opts *o, struct mg_buf *out);
/* The same as one object, inside a list. */
void ptx_stat_json(const struct mg_module *m, const struct ptx_opts *o, const char *label, struct mg_json *j);
/* The tool, its options and the passes exist; else one line of usage. */
bool ptx_opts_check(const struct ptx_opts *o, const char *action, const struct mg_opt_page *page);
/* The twin of every kernel asked for, or the module after the pass. Changes m when a pass runs. */
enum mg_err ptx_instrument(struct mg_module *m, const struct ptx_opts *o, struct mg_buf *out,
                           struct mg_diag *d) MG_MUST_CHECK;

#endif
