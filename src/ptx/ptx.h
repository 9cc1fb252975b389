/* PTX text to IR and back. Whole language, ISA 1.4 to 9.x, driven by the tables of isa/. */
#ifndef MG_PTX_PTX_H
#define MG_PTX_PTX_H

#include "base/buf.h"
#include "ir/ir.h"

/* Parses text (need not be NUL-terminated; trailing NULs are ignored). On a syntax error the
 * parser recovers and goes on to find the next ones: *out then is NULL and d holds them all.
 * Unknown opcodes and modifiers are no error (m->n_unknown_forms counts them). */
enum mg_err mg_ptx_parse(const char *text, size_t bytes, const char *file, struct mg_module **out,
                         struct mg_diag *d) MG_MUST_CHECK;
/* Prints from the IR alone. Deterministic.
 *
 * A marked module's text begins with the line MG_PTX_MARKED, and instructions and labels that were inserted
 * (MG_NF_PROBE) end in MG_PTX_MARK. To ptxas both are comments; our own parser takes the flag from them,
 * in texts that begin so alone. There, too, stand the operations that say what inserted code counts (MG_OPF_OURS),
 * each in a pragma: .pragma "margay @%p count_warps 5, 1;"; */
#define MG_PTX_MARKED "//@ margay: lines that end in these three characters were inserted\n"
#define MG_PTX_MARK   " //@"
#define MG_PTX_OURS   ".pragma \"margay "
void mg_ptx_print(const struct mg_module *m, struct mg_buf *out);
/* One instruction without newline, for messages: "@%p1 bra $L__BB0_2;" */
void mg_ptx_print_node(const struct mg_module *m, mg_id node, struct mg_buf *out);

#endif
