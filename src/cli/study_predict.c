/* margay study predict: profiles of several programs in, a model of a launch's time and its errors out. */
#include <string.h>
#include <sys/stat.h>

#include "base/vec.h"
#include "cli/cli.h"
#include "cli/study.h"
#include "cli/study_runs.h"
#include "study/predict.h"

static const struct mg_opt_page page = {
    "study predict", "COUNTS[=TIMES] COUNTS[=TIMES]... [OPTIONS]", "a launch's time from portable counts",
    "Each operand is one program: a profile with counts (-t blocks) and, behind =, a run of the same launches for its\n"
    "times (-t timeline; several, parted by commas), on the device that is to be predicted. Every program is predicted "
    "from the others.\n"};

struct predict_cli {
    MG_VEC(struct mg_subset_program *) programs;
    MG_VEC(struct mg_known_program) known;
    struct mg_arena arena;
    uint64_t units;
    bool least;
};

/* The same counts twice would be predicted from themselves. */
static enum mg_err refuse_twice(const struct predict_cli *c, const char *dir, struct mg_diag *d)
{
    struct stat one, other;
    for (uint32_t i = 0; i < c->programs.n && !stat(dir, &one); i++)
        if (!stat(c->programs.at[i]->dir, &other) && one.st_dev == other.st_dev && one.st_ino == other.st_ino)
            return mg_diag_err(d, MG_ERR_INPUT, "%s is given twice: it would be predicted from itself", dir);
    return MG_ERR_OK;
}

/* COUNTS or COUNTS=TIMES, parted at the last =. */
static enum mg_err add_program(struct predict_cli *c, char *operand, struct mg_diag *d)
{
    struct mg_subset_program *s, *t = NULL;
    char *parted = strrchr(operand, '=');
    if (parted) *parted = 0;
    enum mg_err err = refuse_twice(c, operand, d);
    if (!err) err = mg_study_open(operand, NULL, false, c->least, &s, d);
    if (err) return err;
    *mg_vec_push(&c->programs) = s;
    if (parted) err = mg_study_open(parted + 1, s, false, c->least, &t, d);
    if (!err) err = mg_known_program_init(mg_vec_push(&c->known), s, t ? t : s, (uint32_t)c->units, &c->arena, d);
    if (t) mg_subset_program_free(t);
    return err;
}

int study_predict(int argc, char **argv)
{
    struct predict_cli c = {0};
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_buf out = MG_BUF_INIT;
    enum mg_err err = MG_ERR_OK;
    bool json = false;
    int status = MG_EXIT_USAGE;
    const struct mg_opt opts[] = {
        MG_OPT_U64(0, "units", &c.units, 1, 1000000, "N",
                   "multiprocessors that share a launch's CTAs (a GPU's; without a GPU 1: work adds up)"),
        MG_OPT_FLAG(0, "least", &c.least, "of TIMES,TIMES,... the least time of each launch, not the median"),
        MG_OPT_FLAG(0, "json", &json, "as JSON"), MG_OPT_END};
    int n = mg_opt_parse(&page, opts, 0, argc, argv, &status);
    if (n < 0) return status;
    if (n < 2)
        return mg_opt_usage(&page, MG_EXIT_USAGE, "needs two programs or more: one is predicted from the others");
    for (int i = 0; i < n && !err; i++) err = add_program(&c, argv[i], &d);
    if (!err) err = mg_known_programs_check(c.known.at, c.known.n, &d);
    if (!err && json)
        mg_prediction_json(c.known.at, c.known.n, &out);
    else if (!err)
        mg_prediction_text(c.known.at, c.known.n, &out);
    status = err ? mg_cli_fail(&d, MG_EXIT_INPUT) : mg_cli_out(&out);
    for (uint32_t i = 0; i < c.programs.n; i++) mg_subset_program_free(c.programs.at[i]);
    mg_vec_release(&c.programs);
    mg_vec_release(&c.known);
    mg_arena_release(&c.arena);
    mg_buf_release(&out);
    mg_diag_release(&d);
    return status;
}
