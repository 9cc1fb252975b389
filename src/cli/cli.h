/* The commands: one function each in cmd_<name>.c, listed once in main.c. argv[0] is the command's
 * name. Result: the exit status. Only this folder prints and exits. */
#ifndef MG_CLI_CLI_H
#define MG_CLI_CLI_H

#include "cli/opt.h"

enum { MG_EXIT_OK, MG_EXIT_FINDING, MG_EXIT_USAGE, MG_EXIT_INPUT, MG_EXIT_DEVICE };

int cmd_run(int argc, char **argv);
int cmd_ctl(int argc, char **argv);
int cmd_sched(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_annotate(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_diff(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_trace(int argc, char **argv);
int cmd_study(int argc, char **argv);
int cmd_capture(int argc, char **argv);
int cmd_replay(int argc, char **argv);
int cmd_merge(int argc, char **argv);
int cmd_tools(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_probe(int argc, char **argv);
int cmd_ptx(int argc, char **argv);
int cmd_ptxas(int argc, char **argv); /* what we are under the name ptxas */

struct mg_diag;
struct mg_recording;
/* Prints what was collected on stderr, "margay: " in front; returns status. */
int mg_cli_fail(const struct mg_diag *d, int status);
/* Writes the text to stdout (or a file); 0, or MG_EXIT_INPUT with a line on stderr. */
int mg_cli_out(const struct mg_buf *text);
uint32_t mg_cli_columns(void); /* of the terminal on stdout, or as COLUMNS says; 0: not known */
/* A line for each database that could not be read or is empty, with what the output is of; MG_EXIT_INPUT, or status
 * when there is none. */
int mg_cli_damaged(const struct mg_recording *p, const char *rest, int status);

#endif
