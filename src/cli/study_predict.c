/* margay study predict: profiles of several programs in, a model of a launch's time and its errors out. */
#include <string.h>

#include "base/vec.h"
#include "cli/cli.h"
#include "cli/study.h"
#include "cli/study_runs.h"
#include "study/grids.h"
#include "study/predict.h"

static const struct mg_opt_page page = {
    "study predict", "COUNTS[=TIMES] COUNTS[=TIMES]... [OPTIONS]", "a launch's time from portable counts",
    "Each operand is one program: a profile with counts (-t blocks) and, behind =, a run of the same launches for its\n"
    "times (-t timeline; several, parted by commas), on the device that is to be predicted. Every program is predicted "
    "from the others.\n"
    "With --across operands are COUNTS=HERE=THERE: times on a device at hand, and on the one that is to be predicted.\n"
    "With --grids instead: on how many CTAs and multiprocessors each kernel is best run, from its launches at four grids\n"
    "or more, in one profile or several. For kernels that do the same work at every grid.\n"};

struct predict_cli {
    MG_VEC(struct mg_subset_program *) programs, timed, here; /* here: only with --across */
    MG_VEC(struct mg_known_program) known;
    struct mg_arena arena;
    uint64_t units;
    bool least, grids, across, json;
};

/* The same counts twice would be predicted from themselves. */
static enum mg_err refuse_twice(const struct predict_cli *c, const char *dir, struct mg_diag *d)
{
    for (uint32_t i = 0; i < c->programs.n; i++)
        if (mg_study_same_dir(dir, c->programs.at[i]->dir))
            return mg_diag_err(d, MG_ERR_INPUT, "%s is given twice: it would be predicted from itself", dir);
    return MG_ERR_OK;
}

static enum mg_err know(struct predict_cli *c, const struct mg_known_runs *r, struct mg_diag *d)
{
    struct mg_known_program *k = mg_vec_push(&c->known);
    enum mg_err err = mg_known_program_init(k, r, (uint32_t)c->units, &c->arena, d);
    if (err || !r->other) return err;
    struct mg_known_program *here = mg_arena_zalloc(&c->arena, sizeof *here);
    k->here = here;
    return mg_known_program_init(here, &(struct mg_known_runs){r->counts, r->other, r->timed}, 0, &c->arena, d);
}

/* What stands behind the last =, which is taken off. NULL: there is none. */
static char *take_behind(char *operand)
{
    char *parted = strrchr(operand, '=');
    if (parted) *parted++ = 0;
    return parted;
}

/* COUNTS, COUNTS=TIMES, COUNTS=HERE=THERE: parted at the last ones. */
static enum mg_err add_program(struct predict_cli *c, char *operand, struct mg_diag *d)
{
    struct mg_subset_program *s, *t = NULL, *h = NULL;
    char *there = take_behind(operand), *here = c->across ? take_behind(operand) : NULL;
    if (c->across && !here) return mg_diag_err(d, MG_ERR_INPUT, "%s: --across wants COUNTS=HERE=THERE", operand);
    enum mg_err err = refuse_twice(c, operand, d);
    if (!err) err = mg_study_open(operand, NULL, false, c->least, &s, d);
    if (err) return err;
    *mg_vec_push(&c->programs) = s;
    if (there) err = mg_study_open(there, s, false, c->least, &t, d);
    *mg_vec_push(&c->timed) = t ? t : s;
    if (!err && here) err = mg_study_open(here, s, false, c->least, &h, d);
    *mg_vec_push(&c->here) = h;
    return err || c->grids ? err : know(c, &(struct mg_known_runs){s, t ? t : s, h}, d);
}

static enum mg_err predict_grids(struct predict_cli *c, struct mg_buf *out, struct mg_diag *d)
{
    struct mg_grids g = {0};
    enum mg_err err = mg_grids_init(&g, c->programs.at, c->timed.at, c->programs.n, (uint32_t)c->units, &c->arena, d);
    if (!err) (c->json ? mg_grids_json : mg_grids_text)(&g, out);
    return err;
}

static enum mg_err predict_programs(const struct predict_cli *c, struct mg_buf *out, struct mg_diag *d)
{
    enum mg_err err = mg_known_programs_check(c->known.at, c->known.n, d);
    if (!err) (c->json ? mg_prediction_json : mg_prediction_text)(c->known.at, c->known.n, out);
    return err;
}

static void release(struct predict_cli *c)
{
    for (uint32_t i = 0; i < c->programs.n; i++) {
        if (i < c->here.n) mg_subset_program_free(c->here.at[i]);
        if (i < c->timed.n && c->timed.at[i] != c->programs.at[i]) mg_subset_program_free(c->timed.at[i]);
        mg_subset_program_free(c->programs.at[i]);
    }
    mg_vec_release(&c->programs);
    mg_vec_release(&c->timed);
    mg_vec_release(&c->here);
    mg_vec_release(&c->known);
    mg_arena_release(&c->arena);
}

int study_predict(int argc, char **argv)
{
    struct predict_cli c = {0};
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_buf out = MG_BUF_INIT;
    enum mg_err err = MG_ERR_OK;
    int status = MG_EXIT_USAGE;
    const struct mg_opt opts[] = {
        MG_OPT_U64(
            0, "units", &c.units, 1, 1000000, "N",
            "multiprocessors that share a launch's CTAs (a GPU's; without a GPU 1, and --grids has to be told: workers)"),
        MG_OPT_FLAG(0, "least", &c.least, "of TIMES,TIMES,... the least time of each launch, not the median"),
        MG_OPT_FLAG(0, "grids", &c.grids, "the best grid and the fewest multiprocessors of each kernel"),
        MG_OPT_FLAG(0, "across", &c.across, "times of another device beside: what do they tell of these?"),
        MG_OPT_FLAG(0, "json", &c.json, "as JSON"),
        MG_OPT_END};
    int n = mg_opt_parse(&page, opts, 0, argc, argv, &status);
    if (n < 0) return status;
    if (n < 2 && !c.grids)
        return mg_opt_usage(&page, MG_EXIT_USAGE, "needs two programs or more: one is predicted from the others");
    if (c.across && c.grids) return mg_opt_usage(&page, MG_EXIT_USAGE, "--grids has no --across");
    if (!n) return mg_opt_usage(&page, MG_EXIT_USAGE, "needs a profile");
    for (int i = 0; i < n && !err; i++) err = add_program(&c, argv[i], &d);
    if (!err) err = c.grids ? predict_grids(&c, &out, &d) : predict_programs(&c, &out, &d);
    status = err ? mg_cli_fail(&d, MG_EXIT_INPUT) : mg_cli_out(&out);
    release(&c);
    mg_buf_release(&out);
    mg_diag_release(&d);
    return status;
}
