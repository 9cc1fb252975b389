/* What tools counted: through the store and back, joined over processes, damaged; the table builder as
 * text and CSV; names of tools joined and split. */
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include "profile_sample.h"
#include "base/json_read.h"
#include "report/priv.h"
#include "test.h"
#include "tool/spec.h"

/* ---- the store -------------------------------------------------------------------------------------- */

static const struct mg_result_site sites[] = {
    {.kind = MG_SITE_INST,
     .note = 3,
     .block = 1,
     .ptx_line = 18,
     .function = "_Z4loopPfi",
     .op = "ld.global.f32",
     .file = "loop.cu",
     .line = 5,
     .cell = 0,
     .n_cells = 2},
    {.kind = MG_SITE_KERNEL, .function = "_Z4loopPfi", .op = "", .cell = 2, .n_cells = 2},
};
static const uint8_t rules[] = {MG_MERGE_SUM, MG_MERGE_SUM, MG_MERGE_MAX, MG_MERGE_OR};
static const struct mg_store_table table = {1, 2, 1, MG_MERGE_SUM};

/* Two launches: cells 1 2 3 4 and 10 20 1 8; entries (1,1)+=5 twice, (1,2)+=7. */
static void write_process(const char *dir, uint32_t pid, const char *args)
{
    struct mg_store *s = NULL;
    struct mg_store_process p = sample_process(pid);
    p.tools = "probe";
    if (mg_store_open(dir, &p, NULL, &s, NULL)) mg_test_fail(__FILE__, __LINE__, "cannot open %s", dir);
    struct mg_store_kernel k = {.name = "_Z4loopPfi",
                                .module = "00112233445566778899aabbccddeeff",
                                .regs_native = 20,
                                .regs_instrumented = -1,
                                .sites = &sample_sites};
    uint32_t other = mg_store_use(s, "other", "", NULL), use = mg_store_use(s, "probe", args, "/tools/probe.so"),
             kernel = mg_store_kernel(s, &k);
    mg_store_region(s, &(struct mg_store_region){.use = other, .kernel = kernel, .reason = "too many registers"});
    struct mg_account *a = mg_store_region(s, &(struct mg_store_region){.use = use,
                                                                        .kernel = kernel,
                                                                        .sites = sites,
                                                                        .n_sites = 2,
                                                                        .rules = rules,
                                                                        .n_cells = 4,
                                                                        .tables = &table,
                                                                        .n_tables = 1});
    for (uint64_t i = 0; i < 2; i++) {
        struct mg_store_launch l = sample_launch(kernel);
        uint64_t threads[] = {1, 10, 1};
        l.grid[0] = l.block[0] = 1;
        l.tools = 1u << use;
        uint64_t id = mg_store_launch(s, &l);
        mg_account_add(a, i ? (const uint64_t[]){10, 20, 1, 8} : (const uint64_t[]){1, 2, 3, 4}, 1, true, id);
        mg_account_entry(a, 0, (const uint64_t[]){1, 1}, (const uint64_t[]){5});
        mg_store_launch_done(
            s, id,
            &(struct mg_store_done){.complete = true, .schedule_dependent = -1, .threads = threads, .n_blocks = 3});
    }
    mg_account_entry(a, 0, (const uint64_t[]){1, 2}, (const uint64_t[]){7});
    mg_account_lost(a, 0, 9);
    mg_store_close(s, 0);
}

static void check_region(const struct mg_recording *p, uint64_t times)
{
    MG_CHECK_EQ(p->n_regions, 2);
    MG_CHECK_STR(p->regions[0].reason, "too many registers");
    const struct mg_pregion *g = &p->regions[1];
    MG_CHECK_STR(p->uses[g->use].name, "probe");
    MG_CHECK_STR(p->uses[g->use].path, "/tools/probe.so");
    MG_CHECK_EQ(g->counted, 2 * times);
    const uint64_t want[] = {11 * times, 22 * times, 3, 12};
    for (int i = 0; i < 4; i++) MG_CHECK_EQ(g->cells[i], want[i]);
    MG_CHECK_EQ(g->n_sites, 2);
    MG_CHECK_STR(g->sites[0].op, "ld.global.f32");
    MG_CHECK_STR(g->sites[0].file, "loop.cu");
    MG_CHECK_EQ(g->sites[0].note, 3);
    MG_CHECK_EQ(g->sites[1].cell, 2);
    MG_CHECK_EQ(g->tables[0].n, 2);
    MG_CHECK_EQ(g->tables[0].lost, 9 * times);
    const uint64_t entries[] = {1, 1, 10 * times, 1, 2, 7 * times};
    for (int i = 0; i < 6; i++) MG_CHECK_EQ(g->tables[0].words[i], entries[i]);
    MG_CHECK_EQ(p->n_launch_cells, 2 * times);
    MG_CHECK_EQ(p->launch_cells[0].cells[3], 4);
    MG_CHECK_EQ(p->launches[p->launch_cells[1].launch].id, 1);
    MG_CHECK_EQ(p->launches[0].tools, 1u << g->use);
}

MG_TEST(result_round_trip)
{
    char *dir = sample_dir();
    struct mg_recording *p;
    write_process(dir, 5, "depth=2");
    MG_CHECK_EQ(mg_recording_open(dir, &p, NULL), MG_ERR_OK);
    check_region(p, 1);
    mg_recording_free(p);
    sample_remove(dir);
}

/* Sums add up over processes, maxima and sets do not; other options stay apart. */
MG_TEST(result_joined)
{
    char *dir = sample_dir();
    struct mg_recording *p;
    write_process(dir, 5, "depth=2");
    write_process(dir, 6, "depth=2");
    MG_CHECK_EQ(mg_recording_open(dir, &p, NULL), MG_ERR_OK);
    check_region(p, 2);
    mg_recording_free(p);
    write_process(dir, 7, "depth=3");
    MG_CHECK_EQ(mg_recording_open(dir, &p, NULL), MG_ERR_OK);
    MG_CHECK_EQ(p->n_uses, 3);
    MG_CHECK_EQ(p->n_regions, 3);
    MG_CHECK_EQ(p->regions[2].cells[0], 11);
    MG_CHECK_EQ(p->launches[4].tools, 4);
    mg_recording_free(p);
    sample_remove(dir);
}

MG_TEST(result_refused)
{
    static const struct {
        const char *sql, *says;
    } cases[] = {
        {"UPDATE site SET cell=3 WHERE id=0", "the cells of a tool's site"},
        {"UPDATE site SET block=9 WHERE id=0", "what a tool's site is"},
        {"UPDATE site SET kind=9 WHERE id=0", "what a tool's site is"},
        {"DELETE FROM site WHERE id=1", "sites are missing"},
        {"UPDATE site SET id=7 WHERE id=1", "a tool's site of no region"},
        {"UPDATE region SET rules=x'0307' WHERE use=1", "rules of a tool's cells"},
        {"UPDATE region SET n_cells=5 WHERE use=1", "rules of a tool's cells"},
        {"UPDATE region SET tables=x'09020100' WHERE use=1", "a tool's tables"},
        {"UPDATE region SET kernel=9 WHERE use=0", "no tool or kernel"},
        {"UPDATE cells SET cells=x'01'", "a tool's cells"},
        {"UPDATE cells SET kernel=4", "cells of no region"},
        {"UPDATE entries SET n=3", "a tool's table"},
        {"UPDATE entries SET tab=1", "a table of no tool"},
        {"UPDATE launch_cells SET cells=x'01' WHERE launch=1", "a launch's cells"},
        {"DELETE FROM use WHERE id=0", "tool ids are not dense"},
    };
    for (size_t i = 0; i < MG_COUNT_OF(cases); i++) {
        char *dir = sample_dir(), path[128];
        sqlite3 *db;
        struct mg_recording *p = NULL;
        struct mg_diag d = MG_DIAG_INIT;
        write_process(dir, 5, "");
        snprintf(path, sizeof path, "%s/profile.db", dir);
        MG_CHECK_EQ(sqlite3_open(path, &db), SQLITE_OK);
        MG_CHECK_EQ(sqlite3_exec(db, cases[i].sql, NULL, NULL, NULL), SQLITE_OK);
        sqlite3_close(db);
        enum mg_err err = mg_recording_open(dir, &p, &d);
        if (!err || !strstr(mg_diag_first(&d, err), cases[i].says))
            mg_test_fail(__FILE__, __LINE__, "case %zu says '%s'", i, err ? mg_diag_first(&d, err) : "nothing");
        mg_recording_free(p);
        mg_diag_release(&d);
        sample_remove(dir);
    }
}

/* The tool is not to be had: its sites are shown as they are. */
MG_TEST(result_without_its_tool)
{
    char *dir = sample_dir();
    struct mg_recording *p;
    struct mg_buf out = MG_BUF_INIT;
    write_process(dir, 5, "");
    MG_CHECK_EQ(mg_recording_open(dir, &p, NULL), MG_ERR_OK);
    mg_report_text(p, &(struct mg_report_opts){.size = sizeof(struct mg_report_opts), .tool = "probe"}, &out);
    MG_CHECK(strstr(out.at, "loop.cu:5"));
    MG_CHECK(strstr(out.at, "11 22"));
    MG_CHECK(strstr(out.at, "probe.so cannot be opened"));
    MG_CHECK(strstr(out.at, "without tool other, too many registers"));
    mg_buf_reset(&out);
    mg_report_json(p, NULL, &out);
    MG_CHECK(mg_json_valid(out.at));
    MG_CHECK(strstr(out.at, "left_alone"));
    mg_buf_release(&out);
    mg_recording_free(p);
    sample_remove(dir);
}

/* ---- tables --------------------------------------------------------------------------------------------- */

static void fill_table(struct mg_table *t)
{
    static const struct mg_result_site place = {.file = "/src/a,b.cu", .line = 7}, ptx = {.ptx_line = 30},
                                       nowhere = {0};
    mg_table_begin(t, "loads", "what loads did");
    mg_table_column(t, "name", MG_COL_TEXT, NULL);
    mg_table_column(t, "count", MG_COL_COUNT, NULL);
    mg_table_column(t, "share", MG_COL_PERCENT, NULL);
    mg_table_column(t, "size", MG_COL_BYTES, NULL);
    mg_table_column(t, "at", MG_COL_HEX, NULL);
    mg_table_column(t, "place", MG_COL_PLACE, NULL);
    mg_table_row(t), mg_table_text(t, "small \"one\""), mg_table_u64(t, 5), mg_table_f64(t, 0.25), mg_table_u64(t, 512),
        mg_table_u64(t, 255), mg_table_place(t, &place);
    mg_table_row(t), mg_table_text(t, "large"), mg_table_u64(t, 1234567), mg_table_f64(t, 99.75),
        mg_table_u64(t, 20480), mg_table_null(t), mg_table_place(t, &ptx);
    mg_table_row(t), mg_table_text(t, "short row"), mg_table_u64(t, 5);
    mg_table_row(t), mg_table_text(t, "too long"), mg_table_null(t), mg_table_null(t), mg_table_null(t),
        mg_table_null(t), mg_table_place(t, &nowhere), mg_table_u64(t, 1);
    mg_table_note(t, "%d rows", 4);
}

MG_TEST(table_text_and_csv)
{
    struct mg_table t = {0};
    struct mg_buf out = MG_BUF_INIT;
    fill_table(&t);
    mg_table_sort(&t, 1);
    MG_CHECK_EQ(t.tables.at[0].n_rows, 4);
    MG_CHECK_STR(mg_table_value(&t.tables.at[0], 0, 0).text, "large"); /* then 5 and 5 in their order, null last */
    MG_CHECK_STR(mg_table_value(&t.tables.at[0], 1, 0).text, "small \"one\"");
    MG_CHECK_STR(mg_table_value(&t.tables.at[0], 2, 0).text, "short row");
    MG_CHECK_STR(mg_table_value(&t.tables.at[0], 3, 0).text, "too long");
    const struct mg_report_opts o = {.size = sizeof o, .columns = 100};
    mg_add_table(&t.tables.at[0], &o, 2, &out);
    MG_CHECK_STR(out.at, "what loads did\n"
                         "  name             count   share      size    at  place\n"
                         "  large        1,234,567  99.8 %  20.0 KiB     -  ptx:30\n"
                         "  small \"one\"          5   0.2 %     512 B  0xff  a,b.cu:7\n"
                         "  and 2 more rows (--top 4)\n"
                         "  4 rows\n");
    mg_buf_reset(&out);
    mg_add_table_csv(NULL, &t.tables.at[0], &out);
    MG_CHECK_STR(
        out.at,
        "name,count,share,size,at,place\r\nlarge,1234567,99.75,20480,,ptx:30\r\n\"small \"\"one\"\"\",5,0.25,512,0xff,\"/src/a,b.cu:7\"\r\n"
        "short row,5,,,,\r\ntoo long,,,,,\r\n");
    mg_buf_reset(&out);
    mg_add_table(&t.tables.at[0], &(struct mg_report_opts){.size = sizeof o, .columns = 60}, 0, &out);
    for (const char *line = out.at; *line; line += strcspn(line, "\n") + 1) MG_CHECK(strcspn(line, "\n") <= 60);
    mg_buf_release(&out);
    mg_table_release(&t);
}

/* ---- names ------------------------------------------------------------------------------------------------ */

MG_TEST(tool_specs_join_and_split)
{
    static const char *const specs[] = {"blocks,warps=on", "expr,ld { @a[line] = sum(width); @b\\n = count() }",
                                        "./x.so"};
    struct mg_buf list = MG_BUF_INIT;
    for (int i = 0; i < 3; i++) mg_tool_spec_join(&list, specs[i]);
    const char *at = list.at;
    for (int i = 0; i < 3; i++) {
        char *one = mg_tool_spec_next(&at);
        MG_CHECK_STR(one, specs[i]);
        free(one);
    }
    MG_CHECK_EQ(*at, 0);
    mg_buf_release(&list);
    struct mg_tool_spec t;
    struct mg_diag d = MG_DIAG_INIT;
    MG_CHECK_EQ(mg_tool_spec_open("blocks,warps=on", &t, &d), MG_ERR_OK);
    MG_CHECK_STR(t.name, "blocks");
    MG_CHECK_STR(t.args, "warps=on");
    MG_CHECK(!t.path);
    mg_tool_spec_close(&t);
    MG_CHECK_EQ(mg_tool_spec_open("/nonexistent/t.so,x", &t, &d), MG_ERR_INPUT);
    MG_CHECK(strstr(mg_diag_first(&d, MG_ERR_INPUT), "/nonexistent/t.so cannot be opened"));
    mg_diag_release(&d);
}
