/* The profile directory: what goes in comes out, also after kill -9, on damage, with two writers. */
#include "profile_sample.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "store/priv.h"

MG_TEST(counts_round_trip)
{
    static const uint64_t cases[][8] = {{0}, {1, 0, 0, 5}, {UINT64_MAX, 0, UINT64_MAX, 127, 128, 0, 0, 0}, {1, 2, 3, 4, 5, 6, 7, 8}};
    uint8_t bytes[8 * 11];
    for (size_t c = 0; c < MG_COUNT_OF(cases); c++)
        for (uint32_t n = 0; n <= 8; n++) {
            uint64_t back[8] = {0};
            size_t used = mg_counts_encode(cases[c], n, bytes);
            MG_CHECK(used <= mg_counts_bound(n));
            MG_CHECK(mg_counts_decode(bytes, used, back, n));
            MG_CHECK(!memcmp(back, cases[c], n * sizeof *back));
            if (used) MG_CHECK(!mg_counts_decode(bytes, used - 1, back, n)); /* torn */
            if (n < 8) MG_CHECK(!mg_counts_decode(bytes, used, back, n + 1));
        }
    uint64_t zeros[4] = {0};
    MG_CHECK_EQ(mg_counts_encode(zeros, 4, bytes), 2); /* a run of zeros is two bytes */
}

MG_TEST(leb_refuses_too_long)
{
    static const uint8_t over[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02};
    uint64_t v;
    MG_CHECK(!mg_leb_read(over, over + sizeof over, &v));
    MG_CHECK(!mg_leb_read(over, over, &v));
}

static struct mg_store *open_sample(const char *dir, uint32_t pid)
{
    struct mg_store *s = NULL;
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_store_process p = sample_process(pid);
    if (mg_store_open(dir, &p, NULL, &s, &d)) mg_test_fail(__FILE__, __LINE__, "%s", mg_diag_first(&d, MG_ERR_IO));
    mg_diag_release(&d);
    return s;
}

MG_TEST(profile_round_trip)
{
    char *dir = sample_dir();
    struct mg_store *s = open_sample(dir, 11);
    sample_write(s);
    mg_store_module(s, "00112233445566778899aabbccddeeff", ".version 8.0\n", 13);
    mg_store_unknown(s, "cuGraphLaunch", 2, "conditional node");
    mg_store_tool_json(s, "blocks", "x", "{\"a\":1}");
    mg_store_close(s, 3);
    struct mg_profile *p;
    struct mg_diag d = MG_DIAG_INIT;
    MG_CHECK_EQ(mg_profile_open(dir, &p, &d), MG_ERR_OK);
    MG_CHECK_EQ(p->n_processes, 1);
    MG_CHECK_EQ(p->processes[0].pid, 11);
    MG_CHECK_EQ(p->processes[0].argc, 3);
    MG_CHECK_STR(p->processes[0].argv[2], "10");
    MG_CHECK_EQ(p->processes[0].exit_code, 3);
    MG_CHECK(p->processes[0].closed);
    MG_CHECK_EQ(p->n_kernels, 2);
    const struct mg_pkernel *k = &p->kernels[0];
    MG_CHECK_STR(k->name, "_Z4loopPfi");
    MG_CHECK_EQ(k->launches, 2);
    MG_CHECK_EQ(k->threads_launched, 2 * SAMPLE_THREADS);
    MG_CHECK_EQ(k->n_blocks, 3);
    MG_CHECK_EQ(k->blocks[1].threads, 2 * 10 * SAMPLE_THREADS);
    MG_CHECK_EQ(k->blocks[1].warps, 2 * 10 * SAMPLE_WARPS);
    MG_CHECK_EQ(k->blocks[1].n_succs, 2);
    MG_CHECK_EQ(k->blocks[0].n_ops, 3);
    MG_CHECK_EQ(k->blocks[0].ops[2].n_guarded, 1);
    MG_CHECK_STR(k->blocks[1].file, "loop.cu");
    MG_CHECK(!k->blocks[2].file);
    MG_CHECK_EQ(p->n_launches, 3);
    MG_CHECK_EQ(p->launches[0].n_args, 2);
    MG_CHECK_EQ(p->launches[0].args[0].allocation, 3);
    MG_CHECK_EQ(p->launches[0].args[0].allocation_off, 256);
    float f;
    memcpy(&f, p->launches[1].args[1].value, 4);
    MG_CHECK(f == 2.5f);
    MG_CHECK_EQ(p->launches[2].ran, MG_RAN_NATIVE);
    MG_CHECK_STR(p->launches[2].reason, "no PTX");
    MG_CHECK(!p->kernels[1].blocks);
    MG_CHECK_EQ(p->n_unknowns, 1);
    MG_CHECK_EQ(p->n_tools, 1);
    size_t bytes;
    char *ptx = mg_profile_module(dir, "00112233445566778899aabbccddeeff", &bytes);
    MG_CHECK_STR(ptx, ".version 8.0\n");
    free(ptx);
    mg_profile_free(p);
    mg_diag_release(&d);
    char path[128];
    struct stat st;
    snprintf(path, sizeof path, "%s/profile.db-wal", dir);
    MG_CHECK(stat(path, &st) && errno == ENOENT); /* a closed profile is one plain file */
    sample_remove(dir);
}
