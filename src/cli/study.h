/* The studies of `margay study`: one function each in study_<name>.c, listed in cmd_study.c. argv[0] is the study's
 * name. */
#ifndef MG_CLI_STUDY_H
#define MG_CLI_STUDY_H

int study_communication(int argc, char **argv);
int study_subset(int argc, char **argv);

#endif
