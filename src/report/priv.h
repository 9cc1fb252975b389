/* Inside report/. */
#ifndef MG_REPORT_PRIV_H
#define MG_REPORT_PRIV_H

#include "base/json.h"
#include "report/report.h"
#include "view/table.h"

/* The report as one object; `parts`: what goes along beside the run, its coverage and its kernels. */
enum { MG_PART_LAUNCHES = 1, MG_PART_TOOLS = 2 };
void mg_write_report(struct mg_json *j, const struct mg_recording *p, const struct mg_report_opts *o, unsigned parts);
/* "tools": {...}: every tool that the run named or that left a result, sorted by name. */
void mg_report_tools_json(struct mg_json *j, const struct mg_recording *p, const struct mg_report_opts *o);

/* ---- what --check found (checked.c): a table, nothing when the run had no --check ---------------------- */
void mg_add_unwritten(const struct mg_recording *p, struct mg_buf *out,
                      uint32_t max_rows); /* kernels that may read registers they never wrote */
void mg_write_unwritten(struct mg_json *j, const struct mg_recording *p);
void mg_add_checked(const struct mg_recording *p, uint32_t columns, uint32_t max_rows, struct mg_buf *out);

/* ---- what tools counted (result.c), as tables (table.c) ------------------------------------------------- */
/* Calls the tool's `profile`; j stands inside an object that is open. */
void mg_tool_tell(const struct mg_recording *p, uint32_t use, const struct mg_report_opts *o, struct mg_table *t,
                  struct mg_json *j);
/* The tables alone, to be released. False: options ask for another tool, and there is nothing. */
bool mg_tool_tables(const struct mg_recording *p, uint32_t use, const struct mg_report_opts *o, struct mg_table *t);
bool mg_has_host_times(const struct mg_recording *p); /* no GPU: what ran the kernels stands in for one */
enum { MG_MOST_TABLES = 4 }; /* of more tools than that the report leaves tables out, and the summary has none */
/* The tables of every tool, an empty line before each; rows 0: all of them. */
void mg_add_tools(const struct mg_recording *p, const struct mg_report_opts *o, uint32_t rows, bool first_only,
                  struct mg_buf *out);
/* The table that --tool and --table name; false: there is none. out NULL: only asks. */
bool mg_add_tools_csv(const struct mg_recording *p, const struct mg_report_opts *o, struct mg_buf *out);
/* Kernels that a tool left alone, and why. */
void mg_add_left_alone(const struct mg_recording *p, struct mg_buf *out, uint32_t max_rows);
void mg_add_table(const struct mg_one_table *t, const struct mg_report_opts *o, uint32_t rows, struct mg_buf *out);
void mg_format_value(struct mg_buf *out, const struct mg_table_value *v,
                     enum mg_column_kind kind); /* out is emptied first */
void mg_add_table_csv(const struct mg_recording *p, const struct mg_one_table *t, struct mg_buf *out);
/* A member of the table's name: a list of rows, each an object with the columns in snake_case. */
void mg_write_table(struct mg_json *j, const struct mg_one_table *t);
/* Names of the tools' tables, "tool table" a line. */
void mg_list_tool_tables(const struct mg_recording *p, const struct mg_report_opts *o, struct mg_buf *out);
void mg_add_csv_text(struct mg_buf *out, const char *s);
void mg_add_csv_name(struct mg_buf *out, const char *name); /* "idle slots" as idle_slots */

/* At most so many bytes of a name: without parameters, then without template arguments, then its last part (name.c). */
void mg_add_name(struct mg_buf *out, const char *name, uint32_t width);
/* "f<int>" of "void f<int>(float*)"; where two kernels have one such name, whole names are used. */
void mg_add_short_name(struct mg_buf *out, const char *name);
bool mg_short_names(const struct mg_recording *p);
void mg_add_kernel_name(struct mg_buf *out, const struct mg_recording *p, const struct mg_pkernel *k, uint32_t width);
/* The time line's members of an open object, and its tables (timeline.c). */
void mg_timeline_tell(const struct mg_recording *p, const char *args, struct mg_table *t, struct mg_json *j);
/* Its member "tau" and table "tau": of files of the TAUcuda library, with `events` also of the time line (tau.c). t
 * NULL: no table. */
void mg_tau_tell(const char *dir, bool events, struct mg_table *t, struct mg_json *j);
bool mg_tau_has_files(const char *dir);

/* "ns::f" of "void ns::f<int>(float*)": what a name keeps when its types change. */
void mg_add_family(struct mg_buf *out, const char *name);

/* ---- words (words.c) ------------------------------------------------------------------------------ */
void mg_add_grouped(struct mg_buf *out, uint64_t v); /* 1,234,567 */
void mg_add_right(struct mg_buf *out, const char *text, uint32_t width);
void mg_add_left(struct mg_buf *out, const char *text, uint32_t width); /* cut with ".." when longer */
void mg_add_time(struct mg_buf *out, uint64_t ns);                      /* 12.3 us */
void mg_add_bar(struct mg_buf *out, double share, uint32_t width, bool ascii);
/* A number right-aligned, "-" when it was not measured, "~" in front when it is an estimate. */
void mg_add_count(struct mg_buf *out, uint64_t v, bool measured, bool estimated, uint32_t width);
/* The coverage line and, before it, the reasons: all with UINT32_MAX rows, those of launches that faulted, too. */
void mg_add_coverage(const struct mg_recording *p, struct mg_buf *out, uint32_t max_rows);

const char *mg_op_kind(const char *op); /* "memory", "float", ...: of an opcode's dotted text */

/* ---- kernels by instructions ------------------------------------------------------------------------ */
struct mg_hot_kernel {
    const struct mg_pkernel *k;
    struct mg_kernel_sums s;
    uint64_t key; /* what it is ranked by, before instructions */
};
/* Those that the options show: by time where a GPU measured it for all, else by instructions, or as --sort says;
 * release with mg_hot_release. */
struct mg_hot_kernel *mg_hot_kernels(const struct mg_recording *p, const struct mg_report_opts *o, uint32_t *n);
void mg_hot_release(struct mg_hot_kernel *hot, uint32_t n);

/* ---- machine code (machine.c) ------------------------------------------------------------------------ */
struct mg_machines; /* what was disassembled so far */
struct mg_machines *mg_machines_new(const struct mg_recording *p);
void mg_machines_free(struct mg_machines *m);
struct mg_result_machine mg_machine_of(void *machines, const struct mg_result_kernel *k);

/* ---- source lines (source.c) -------------------------------------------------------------------------- */
struct mg_sources; /* files read so far */
struct mg_sources *mg_sources_new(const struct mg_recording *p);
void mg_sources_free(struct mg_sources *s);
/* Why the text of the file's lines is missing or may be wrong; NULL: it is there as it was when the run began. */
const char *mg_sources_doubt(struct mg_sources *s, const char *file);
/* The text of file:line without leading space and newline; NULL when the file is not readable. */
const char *mg_sources_line(struct mg_sources *s, const char *file, uint32_t line, size_t *bytes);
/* A whole file; NULL when it is not readable. */
const char *mg_sources_text(struct mg_sources *s, const char *file, size_t *bytes);
/* The same of a module's PTX, when the profile keeps it. */
const char *mg_sources_ptx(struct mg_sources *s, const char *module, uint32_t line, size_t *bytes);

#endif
