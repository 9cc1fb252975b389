/* Runs of one kind for studies: DIR, or DIR,DIR,... whose times are taken together. */
#ifndef MG_CLI_STUDY_RUNS_H
#define MG_CLI_STUDY_RUNS_H

#include "study/subset_program.h"

/* The next of DIR,DIR,..., malloc'd; NULL: there is none. A list that is a directory as a whole is one, with its
 * commas.
 */
char *mg_study_next_dir(const char **at, const char *list);
/* Are they one directory, whatever they are called? */
bool mg_study_same_dir(const char *a, const char *b);
/* The first run of the list, with the median (least: the least) time of each launch over all of them. with: a program
 * whose launches they must agree with, in any geometry or the same; NULL: none. */
enum mg_err mg_study_open(const char *list, const struct mg_subset_program *with, bool any_geometry, bool least,
                          struct mg_subset_program **out, struct mg_diag *d) MG_MUST_CHECK;

#endif
