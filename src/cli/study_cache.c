/* margay study cache: a model of L1 and L2 over the trace of a run. */
#include "base/io.h"
#include "cli/buffer_names.h"
#include "cli/cli.h"
#include "cli/newest.h"
#include "cli/study.h"
#include "study/cache.h"

static const struct mg_opt_page page = {"study cache", "[DIR] [OPTIONS]",
                                        "what caches of any size would hold, from a trace",
                                        "DIR is a profile with a trace (margay run -t trace). Without DIR the newest "
                                        "profile here. A model: its assumptions are in the\n"
                                        "output, and hits are intervals.\n"};

static enum mg_err write_csv(const char *path, const struct mg_cache_result *r, struct mg_diag *d)
{
    struct mg_buf text = MG_BUF_INIT;
    mg_cache_print_csv(r, &text);
    enum mg_err err = mg_io_write(path, text.at, text.n, d);
    mg_buf_release(&text);
    return err;
}

static enum mg_err study(const char *dir, const struct mg_cache_opts *co, uint64_t process, bool json, const char *csv,
                         struct mg_buf *out, struct mg_diag *d)
{
    struct mg_trace_reader *r = NULL;
    struct mg_comm_source source;
    struct mg_cache *c = NULL;
    struct mg_json j;
    uint32_t file = 0;
    enum mg_err err = mg_trace_reader_open(dir, &r, d);
    if (!err) err = study_find_file(r, process, &file, d);
    if (!err) err = mg_cache_feed(c = mg_cache_new(co), r, file, &source, d);
    if (!err && csv) err = write_csv(csv, mg_cache_finish(c), d);
    if (!err && !json) mg_cache_print_text(mg_cache_finish(c), &source, out);
    if (!err && json) {
        mg_json_init(&j, out, 1);
        mg_json_obj(&j);
        mg_json_key_u64(&j, "margay_json", 1);
        mg_json_key(&j, "cache");
        mg_cache_print_json(mg_cache_finish(c), &source, &j);
        mg_json_end(&j, '}');
        mg_buf_addc(out, '\n');
    }
    mg_cache_free(c);
    mg_trace_reader_free(r);
    return err;
}

int study_cache(int argc, char **argv)
{
    struct mg_cache_opts co = {.size = sizeof co,
                               .l1_bytes = 256 << 10,
                               .l2_bytes = 60 << 20, /* an H200 */
                               .interleavings = 2,
                               .seed = 1};
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_buf out = MG_BUF_INIT;
    char newest[PATH_MAX];
    uint64_t process = 0;
    const char *csv = NULL;
    bool json = false;
    int status = MG_EXIT_USAGE;
    const struct mg_opt opts[] = {
        MG_OPT_SIZE(0, "l1", &co.l1_bytes, 4096, 1 << 26, "BYTES",
                    "L1 of a multiprocessor, with shared memory; 256k without it"),
        MG_OPT_SIZE(0, "l2", &co.l2_bytes, 4096, (uint64_t)1 << 33, "BYTES", "L2; 60M without it"),
        MG_OPT_U64(0, "interleavings", &co.interleavings, 0, MG_CACHE_MOST_SEEDS, "N",
                   "orders of a multiprocessor's warps at random; 2 without it"),
        MG_OPT_U64(0, "seed", &co.seed, 0, UINT32_MAX, "S", "of the first of them; 1 without it"),
        MG_OPT_U64(0, "process", &process, 1, UINT32_MAX, "PID", "this process of the run"),
        MG_OPT_FLAG(0, "json", &json, "everything as JSON"),
        MG_OPT_STR(0, "csv", &csv, "FILE", "accesses and buffers, one a line"),
        MG_OPT_END};
    int n = mg_opt_parse(&page, opts, 0, argc, argv, &status);
    if (n < 0) return status;
    if (n > 1) return mg_opt_usage(&page, MG_EXIT_USAGE, "takes one profile directory");
    if (!n && !mg_newest_profile(0, newest))
        return mg_opt_usage(&page, MG_EXIT_USAGE, "there is no profile here: name its directory");
    const char *dir = n ? argv[0] : newest;
    struct mg_buffer_names *names = mg_buffer_names_open(dir, NULL);
    co.place = mg_buffer_names_place;
    co.buffer = mg_buffer_names_find;
    co.buffers = names;
    enum mg_err err = study(dir, &co, process, json, csv, &out, &d);
    mg_buffer_names_free(names);
    status = err ? mg_cli_fail(&d, MG_EXIT_INPUT) : mg_cli_out(&out);
    mg_buf_release(&out);
    mg_diag_release(&d);
    return status;
}
