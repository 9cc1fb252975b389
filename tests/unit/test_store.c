/* The profile directory: what goes in comes out, also after kill -9, on damage, with two writers. */
#include "profile_sample.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/hash.h"
#include "base/io.h"
#include "store/priv.h"

MG_TEST(counts_round_trip)
{
    static const uint64_t cases[][8] = {
        {0}, {1, 0, 0, 5}, {UINT64_MAX, 0, UINT64_MAX, 127, 128, 0, 0, 0}, {1, 2, 3, 4, 5, 6, 7, 8}};
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
    struct mg_recording *p;
    struct mg_diag d = MG_DIAG_INIT;
    MG_CHECK_EQ(mg_recording_open(dir, &p, &d), MG_ERR_OK);
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
    char *ptx = mg_recording_module(dir, "00112233445566778899aabbccddeeff", &bytes);
    MG_CHECK_STR(ptx, ".version 8.0\n");
    free(ptx);
    mg_recording_free(p);
    mg_diag_release(&d);
    char path[128];
    struct stat st;
    snprintf(path, sizeof path, "%s/profile.db-wal", dir);
    MG_CHECK(stat(path, &st) && errno == ENOENT); /* a closed profile is one plain file */
    sample_remove(dir);
}

/* ---- what happens to databases in the wild ------------------------------------------------------ */

static int said; /* lines that the store had for the user, in this process */
static char said_line[512];
static void note_line(const char *line)
{
    said++;
    snprintf(said_line, sizeof said_line, "%s", line);
}

static uint64_t open_and_count(const char *dir, struct mg_recording **out)
{
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_recording *p;
    uint64_t n = UINT64_MAX;
    if (mg_recording_open(dir, &p, &d))
        mg_test_fail(__FILE__, __LINE__, "%s", mg_diag_first(&d, MG_ERR_IO));
    else
        n = p->n_launches;
    mg_diag_release(&d);
    if (out)
        *out = p;
    else
        mg_recording_free(p);
    return n;
}

/* Launch i has i turns of the loop, so that each one's counts are known. Goes on until killed. */
static void write_forever(const char *dir, volatile uint64_t *done_so_far)
{
    struct mg_store *s = NULL;
    struct mg_store_process proc = sample_process(77);
    if (mg_store_open(dir, &proc, NULL, &s, NULL)) _exit(9);
    struct mg_store_kernel k = {.name = "_Z4loopPfi", .module = "m", .sites = &sample_sites};
    uint32_t loop = mg_store_kernel(s, &k);
    for (uint64_t i = 0;; i++) {
        uint64_t counts[] = {SAMPLE_THREADS, SAMPLE_THREADS * i, SAMPLE_THREADS};
        struct mg_store_launch l = sample_launch(loop);
        struct mg_store_done done = {.complete = true, .start_ns = i + 1, .threads = counts, .n_blocks = 3};
        mg_store_launch_done(s, mg_store_launch(s, &l), &done);
        *done_so_far = i + 1;
        usleep(50);
    }
}

static void check_prefix(const struct mg_recording *p)
{
    for (uint64_t i = 0; i < p->n_launches; i++) {
        const struct mg_plaunch *l = &p->launches[i];
        if (!l->complete) continue;
        if (!l->threads || l->threads[1] != SAMPLE_THREADS * i) {
            mg_test_fail(__FILE__, __LINE__, "launch %llu holds another's counts", (unsigned long long)i);
            return;
        }
    }
}

MG_TEST(profile_survives_kill)
{
    volatile uint64_t *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int round = 0; round < 24; round++) {
        char *dir = sample_dir();
        *shared = 0;
        pid_t child = fork();
        if (!child) write_forever(dir, shared);
        while (!*shared) usleep(100);
        uint64_t a_second_ago = 0;
        if (round == 0) {
            usleep(400000);
            a_second_ago = *shared;
            usleep(1000000);
            struct mg_recording *live;
            MG_CHECK(open_and_count(dir, &live) >= a_second_ago); /* while it runs */
            MG_CHECK(!live->processes[0].closed);
            mg_recording_free(live);
        } else {
            usleep((useconds_t)(round * 977 % 300) * 1000);
        }
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        struct mg_recording *p;
        uint64_t n = open_and_count(dir, &p);
        MG_CHECK(n != UINT64_MAX && n >= a_second_ago && n <= *shared + 1);
        if (p) check_prefix(p);
        if (p && p->n_processes) MG_CHECK_EQ(p->processes[0].exit_code, -1);
        mg_recording_free(p);
        MG_CHECK_EQ(open_and_count(dir, NULL), n); /* reading changed nothing */
        sample_remove(dir);
    }
    munmap((void *)shared, 4096);
}

/* Results on both sides of the length from which they are compressed, and of that from which speed matters. */
MG_TEST(long_results_are_read_back)
{
    static const size_t lengths[] = {2, (1 << 16) - 1, 1 << 16, (1 << 16) + 1, (1 << 20) + 7};
    char *dir = sample_dir();
    struct mg_store *s = open_sample(dir, 5);
    for (size_t i = 0; i < MG_COUNT_OF(lengths); i++) {
        char key[] = {(char)('a' + i), 0}, *text = mg_xcalloc(1, lengths[i] + 1);
        for (size_t k = 0; k < lengths[i]; k++) text[k] = (char)(' ' + (k * k + i) % 95);
        mg_store_tool_json(s, "long", key, text);
        free(text);
    }
    mg_store_close(s, 0);
    struct mg_recording *p = NULL;
    uint32_t seen = 0;
    open_and_count(dir, &p);
    for (uint32_t t = 0; p && t < p->n_tools; t++) {
        if (strcmp(p->tools[t].tool, "long")) continue;
        size_t i = (size_t)(p->tools[t].key[0] - 'a'), wrong = 0;
        const char *text = p->tools[t].json;
        MG_CHECK_EQ(strlen(text), lengths[i]);
        for (size_t k = 0; k < lengths[i] && text[k]; k++) wrong += text[k] != (char)(' ' + (k * k + i) % 95);
        MG_CHECK_EQ(wrong, 0);
        seen++;
    }
    MG_CHECK_EQ(seen, MG_COUNT_OF(lengths));
    mg_recording_free(p);
    sample_remove(dir);
}

#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__ /* they need memory of their own */
static bool stores_with_little_memory(const char *path, const char *object)
{
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    struct mg_diag d = MG_DIAG_INIT;
    if (!f || fscanf(f, "%lu", &pages) != 1) return true;
    struct rlimit most = {(pages << 12) + (8 << 20), (pages << 12) + (8 << 20)};
    return setrlimit(RLIMIT_AS, &most) || !mg_store_results(path, "tool", object, &d);
}

/* A member that there is no memory for is an error, and no result without it. */
MG_TEST(results_are_whole_or_absent)
{
    enum { BYTES = 64 << 20 };
    char *dir = sample_dir(), path[4096], *object = mg_xmalloc(BYTES + 64);
    int status = -1;
    mg_store_close(open_sample(dir, 5), 0);
    snprintf(path, sizeof path, "%s/profile.db", dir);
    size_t n = (size_t)sprintf(object, "{\"a\":1,\"b\":\"");
    memset(object + n, 'x', BYTES);
    memcpy(object + n + BYTES, "\"}", 3);
    pid_t pid = fork();
    if (!pid) _exit(stores_with_little_memory(path, object));
    MG_CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    free(object);
    sample_remove(dir);
}
#endif

MG_TEST(profile_of_two_writers)
{
    char *dir = sample_dir();
    pid_t children[4];
    for (int i = 0; i < 4; i++)
        if (!(children[i] = fork())) {
            struct mg_store *s = open_sample(dir, 100 + (uint32_t)i);
            sample_write(s);
            mg_store_close(s, 0);
            _exit(0);
        }
    for (int i = 0; i < 4; i++) waitpid(children[i], NULL, 0);
    struct mg_recording *p;
    MG_CHECK_EQ(open_and_count(dir, &p), 12);
    MG_CHECK_EQ(p->n_processes, 4);
    MG_CHECK_EQ(p->n_kernels, 2); /* joined by module and name */
    MG_CHECK_EQ(p->kernels[0].launches, 8);
    MG_CHECK_EQ(p->kernels[0].blocks[1].threads, 8 * 10 * SAMPLE_THREADS);
    mg_recording_free(p);
    sample_remove(dir);
}

/* A file size limit raises SIGXFSZ: not in the application's thread, and not fatal. */
MG_TEST(profile_full_disk)
{
    char *dir = sample_dir();
    pid_t child = fork();
    if (!child) {
        struct rlimit lim = {160 << 10, 160 << 10};
        struct mg_store *s = NULL;
        struct mg_store_process proc = sample_process(5);
        setrlimit(RLIMIT_FSIZE, &lim);
        if (mg_store_open(dir, &proc, note_line, &s, NULL)) _exit(8);
        sample_write(s);
        mg_store_flush(s);
        for (int i = 0; i < 20000; i++) {
            struct mg_store_launch l = sample_launch(0);
            uint64_t id = mg_store_launch(s, &l);
            struct mg_store_done done = {.complete = true};
            mg_store_launch_done(s, id, &done);
        }
        mg_store_flush(s);
        mg_store_close(s, 0);
        _exit(said == 1 && strstr(said_line, "profile.db") && strstr(said_line, "stays readable") ? 0 : 7);
    }
    int status;
    waitpid(child, &status, 0);
    MG_CHECK_EQ(status, 0);
    MG_CHECK(open_and_count(dir, NULL) >= 3);
    sample_remove(dir);
}

static const char *open_error(const char *dir, struct mg_diag *d)
{
    struct mg_recording *p;
    enum mg_err err = mg_recording_open(dir, &p, d);
    mg_recording_free(p);
    return err ? mg_diag_first(d, err) : "";
}

static void run_sql(const char *dir, const char *sql)
{
    char path[128];
    sqlite3 *db;
    snprintf(path, sizeof path, "%s/profile.db", dir);
    MG_CHECK_EQ(sqlite3_open(path, &db), SQLITE_OK);
    MG_CHECK_EQ(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

/* What was lost in between is told when writing works again at the end. */
MG_TEST(profile_lost_launches)
{
    char *dir = sample_dir();
    pid_t child = fork();
    if (!child) {
        struct rlimit lim;
        struct mg_store *s = NULL;
        struct mg_store_process proc = sample_process(5);
        getrlimit(RLIMIT_FSIZE, &lim);
        if (mg_store_open(dir, &proc, note_line, &s, NULL)) _exit(8);
        sample_write(s);
        mg_store_flush(s);
        rlim_t before = lim.rlim_cur;
        lim.rlim_cur = 4096;
        setrlimit(RLIMIT_FSIZE, &lim);
        for (int i = 0; i < 50; i++) {
            struct mg_store_launch l = sample_launch(0);
            struct mg_store_done done = {.complete = true};
            mg_store_launch_done(s, mg_store_launch(s, &l), &done);
            mg_store_flush(s);
        }
        lim.rlim_cur = before;
        setrlimit(RLIMIT_FSIZE, &lim);
        mg_store_close(s, 4);
        _exit(said == 1 ? 0 : 7);
    }
    int status;
    struct mg_recording *p;
    waitpid(child, &status, 0);
    MG_CHECK_EQ(status, 0);
    MG_CHECK_EQ(open_and_count(dir, &p), 3);
    MG_CHECK_EQ(p->n_unknowns, 1);
    if (p->n_unknowns) MG_CHECK_EQ(p->unknowns[0].n, 50);
    MG_CHECK(p->processes[0].closed && p->processes[0].exit_code == 4);
    mg_recording_free(p);
    sample_remove(dir);
}

/* One database of several is damaged: the others are read, as if it were not there. */
MG_TEST(profile_one_of_several_damaged)
{
    char *dir = sample_dir(), cmd[200];
    for (uint32_t pid = 5; pid < 8; pid++) {
        struct mg_store *s = open_sample(dir, pid);
        sample_write(s);
        mg_store_close(s, 0);
    }
    MG_CHECK_EQ(open_and_count(dir, NULL), 9);
    run_sql(dir, "UPDATE launch SET ran=9 WHERE id=2"); /* after two good launches of its own */
    struct mg_recording *p;
    MG_CHECK_EQ(open_and_count(dir, &p), 6);
    MG_CHECK_EQ(p->n_processes, 2);
    MG_CHECK_EQ(p->n_damaged, 1);
    MG_CHECK(strstr(p->damaged[0], "profile.db is damaged: how a launch ran"));
    MG_CHECK_EQ(p->n_kernels, 2);
    MG_CHECK_EQ(p->kernels[0].blocks[1].threads, 4 * 10 * SAMPLE_THREADS);
    mg_recording_free(p);
    snprintf(cmd, sizeof cmd, "cd %s && for f in profile-*.db; do echo junk > $f; done", dir);
    MG_CHECK_EQ(system(cmd), 0);
    struct mg_diag d = MG_DIAG_INIT;
    MG_CHECK(strstr(open_error(dir, &d), dir)); /* none is left */
    mg_diag_release(&d);
    sample_remove(dir);
}

/* Two runs of a launcher in one DIR: together, or one alone. */
MG_TEST(profile_of_one_run)
{
    char *dir = sample_dir();
    static const char *const argv[] = {"./app"};
    for (uint64_t run = 1; run < 3; run++) {
        struct mg_store_process proc = sample_process(5);
        struct mg_store *s;
        proc.run = run;
        MG_CHECK_EQ(mg_store_run(dir, run, 500, argv, 1, (int)run, NULL),
                    MG_ERR_OK); /* the same pid, as in containers */
        MG_CHECK_EQ(mg_store_open(dir, &proc, NULL, &s, NULL), MG_ERR_OK);
        for (uint64_t i = 0; i < run; i++) sample_write(s);
        mg_store_close(s, 0);
    }
    struct mg_recording *p;
    MG_CHECK_EQ(open_and_count(dir, &p), 9);
    MG_CHECK_EQ(p->n_runs, 2);
    mg_recording_free(p);
    for (uint64_t run = 1; run < 4; run++) {
        MG_CHECK_EQ(mg_recording_open_run(dir, run, &p, NULL), MG_ERR_OK);
        MG_CHECK_EQ(p->n_launches, run < 3 ? 3 * run : 0);
        MG_CHECK_EQ(p->n_runs, run < 3);
        if (run < 3) MG_CHECK_EQ(p->runs[0].exit_code, (int)run);
        mg_recording_free(p);
    }
    sample_remove(dir);
}

MG_TEST(profile_unwritable_directory)
{
    struct mg_store *s = NULL;
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_store_process proc = sample_process(5);
    MG_CHECK_EQ(mg_store_open("/proc/nowhere/x", &proc, NULL, &s, &d), MG_ERR_IO);
    MG_CHECK(strstr(mg_diag_first(&d, MG_ERR_IO), "/proc/nowhere/x"));
    MG_CHECK(!s);
    mg_diag_release(&d);
}

/* As another user, since root may write anywhere: the cause is said, not what follows from it. */
MG_TEST(profile_directory_of_somebody_else)
{
    if (getuid()) mg_test_skip("needs root to become somebody else");
    char *dir = sample_dir(), inner[128];
    static const char *const argv[] = {"./app"};
    snprintf(inner, sizeof inner, "%s/sub/x", dir);
    MG_CHECK_EQ(chmod(dir, 0755), 0);
    for (int k = 0; k < 2; k++) {
        pid_t child = fork();
        if (!child) {
            struct mg_diag d = MG_DIAG_INIT;
            if (setuid(65534)) _exit(6);
            enum mg_err err = mg_store_run(k ? inner : dir, 7, 500, argv, 1, -1, &d);
            _exit(err && strstr(mg_diag_first(&d, err), dir) && strstr(mg_diag_first(&d, err), "Permission denied")
                      ? 0
                      : 5);
        }
        int status;
        waitpid(child, &status, 0);
        MG_CHECK_EQ(status, 0);
    }
    sample_remove(dir);
}

/* A forked child of the application must leave the parent's profile alone. */
MG_TEST(profile_in_forked_child)
{
    char *dir = sample_dir();
    struct mg_store *s = open_sample(dir, 9);
    pid_t child = fork();
    if (!child) {
        sample_write(s);
        mg_store_flush(s);
        mg_store_close(s, 1);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    sample_write(s);
    mg_store_close(s, 0);
    MG_CHECK_EQ(open_and_count(dir, NULL), 3);
    sample_remove(dir);
}

/* A program that closes every descriptor and opens its own must not find our pages in its file. */
MG_TEST(profile_descriptors_closed)
{
    char *dir = sample_dir(), path[128], text[16] = "";
    pid_t child = fork();
    snprintf(path, sizeof path, "%s/apps-own", dir);
    if (!child) {
        struct mg_store *s = NULL;
        struct mg_store_process proc = sample_process(5);
        if (mg_store_open(dir, &proc, note_line, &s, NULL)) _exit(8);
        mg_store_flush(s);
        for (int fd = 3; fd < 1100; fd++) close(fd);
        int first = open(path, O_RDWR | O_CREAT, 0666);
        if (first != 3 || write(first, "mine", 4) != 4) _exit(6);
        for (int fd = 500; fd < 520; fd++) dup2(first, fd);
        sample_write(s);
        mg_store_flush(s);
        for (int fd = 600; fd < 1100; fd++) close(fd); /* and once more, where the numbers stay free */
        for (int fd = 520; fd < 600; fd++) close(fd);
        struct mg_store_launch l = sample_launch(0);
        struct mg_store_done done = {.complete = true};
        mg_store_launch_done(s, mg_store_launch(s, &l), &done);
        mg_store_close(s, 0);
        _exit(said == 0 && fcntl(512, F_GETFD) >= 0 ? 0 : 7);
    }
    int status;
    waitpid(child, &status, 0);
    MG_CHECK_EQ(status, 0);
    FILE *f = fopen(path, "r");
    MG_CHECK(f && fread(text, 1, sizeof text, f) == 4 && !memcmp(text, "mine", 4));
    if (f) fclose(f);
    MG_CHECK_EQ(open_and_count(dir, NULL), 4);
    sample_remove(dir);
}

/* Killed, then moved to where nothing can be written: as another user, since root may write anywhere. */
MG_TEST(profile_read_only)
{
    if (getuid()) mg_test_skip("needs root to become somebody else");
    for (int killed = 0; killed < 2; killed++) {
        char *dir = sample_dir(), cmd[300];
        pid_t child = fork();
        if (!child) {
            struct mg_store *s = open_sample(dir, 5);
            sample_write(s);
            mg_store_flush(s);
            if (killed) kill(getpid(), SIGKILL);
            mg_store_close(s, 0);
            _exit(0);
        }
        waitpid(child, NULL, 0);
        for (int without_shm = 0; without_shm <= killed; without_shm++) {
            snprintf(cmd, sizeof cmd, "cd %s && %s chmod 444 * && chmod 555 .", dir,
                     without_shm ? "rm -f profile.db-shm;" : "");
            MG_CHECK_EQ(system(cmd), 0);
            if (!(child = fork())) {
                struct mg_recording *p;
                if (setuid(65534)) _exit(6);
                _exit(mg_recording_open(dir, &p, NULL) || p->n_launches != 3);
            }
            int status;
            waitpid(child, &status, 0);
            MG_CHECK_EQ(status, 0);
        }
        sample_remove(dir);
    }
}

/* ---- input that is no profile, or no longer one ------------------------------------------------ */

MG_TEST(profile_refused)
{
    static const struct {
        const char *sql, *says;
    } cases[] = {
        {"PRAGMA user_version=10", "newer margay"},
        {"INSERT INTO tool VALUES('t','k','',x'28b52ffd')", "a tool's result"},
        {"INSERT INTO tool VALUES('t','k','',x'')", "a tool's result"},
        {"PRAGMA application_id=7", "no margay profile"},
        {"UPDATE launch SET kernel=9 WHERE id=1", "a launch of no kernel"},
        {"UPDATE launch SET ran=9", "how a launch ran"},
        {"UPDATE launch SET threads=x'0102'", "block counts"},
        {"UPDATE launch SET args=x'ff'", "arguments"},
        {"DELETE FROM block WHERE id=0 AND kernel=0; INSERT INTO block(kernel,id,n_insts) VALUES(0,7,0)", "block ids"},
        {"UPDATE block SET succs='1 77' WHERE id=0", "successors"},
        {"UPDATE block SET ops='add 1' WHERE id=0", "opcodes"},
        {"UPDATE block SET n_insts=99 WHERE id=0", "opcodes"},
        {"DELETE FROM kernel WHERE id=0", "dense"},
        {"INSERT INTO process SELECT * FROM process", "two process rows"},
        {"DROP TABLE launch; CREATE VIEW launch AS SELECT 1", "more than tables"},
        {"DROP TABLE launch", "no such table"},
    };
    for (size_t i = 0; i < MG_COUNT_OF(cases); i++) {
        char *dir = sample_dir();
        struct mg_store *s = open_sample(dir, 5);
        sample_write(s);
        mg_store_close(s, 0);
        run_sql(dir, cases[i].sql);
        struct mg_diag d = MG_DIAG_INIT;
        const char *text = open_error(dir, &d);
        if (!strstr(text, cases[i].says) || !strstr(text, dir))
            mg_test_fail(__FILE__, __LINE__, "case %zu says '%s'", i, text);
        mg_diag_release(&d);
        sample_remove(dir);
    }
}

/* Bytes of a good database cut off or overturned: an error with the path, or a profile; never a crash. */
MG_TEST(profile_damaged_bytes)
{
    char *dir = sample_dir(), path[128], *data;
    size_t bytes;
    struct mg_store *s = open_sample(dir, 5);
    sample_write(s);
    mg_store_close(s, 0);
    snprintf(path, sizeof path, "%s/profile.db", dir);
    if (mg_io_read(path, &data, &bytes, NULL)) mg_test_fail(__FILE__, __LINE__, "cannot read %s", path);
    uint64_t seed = 1, refused = 0;
    for (int i = 0; i < 200; i++) {
        struct mg_diag d = MG_DIAG_INIT;
        char *copy = mg_xmalloc(bytes);
        size_t n = bytes;
        memcpy(copy, data, bytes);
        if (i < 40) n = bytes * (size_t)i / 40;
        for (int k = 0; i >= 40 && k < 4; k++) {
            seed = mg_mix64(seed + 0x9e3779b97f4a7c15u);
            copy[seed % bytes] ^= (char)(1 << (seed >> 40 & 7));
        }
        if (mg_io_write(path, copy, n, NULL)) mg_test_fail(__FILE__, __LINE__, "cannot write %s", path);
        const char *text = open_error(dir, &d);
        if (*text) {
            refused++;
            MG_CHECK(strstr(text, dir));
        }
        mg_diag_release(&d);
        free(copy);
    }
    MG_CHECK(refused >= 30);
    free(data);
    sample_remove(dir);
}

MG_TEST(profile_nothing_there)
{
    char *dir = sample_dir(), cmd[128];
    struct mg_diag d = MG_DIAG_INIT;
    MG_CHECK(strstr(open_error(dir, &d), "no profile.db in it"));
    mg_diag_release(&d);
    MG_CHECK(strstr(open_error("/nonexistent/x", &d), "/nonexistent/x"));
    mg_diag_release(&d);
    snprintf(cmd, sizeof cmd, ": > %s/profile.db", dir); /* claimed a moment ago */
    MG_CHECK_EQ(system(cmd), 0);
    MG_CHECK_EQ(open_and_count(dir, NULL), 0);
    sample_remove(dir);
}

MG_TEST(profile_launcher_record)
{
    char *dir = sample_dir();
    static const char *const argv[] = {"sh", "-c", "./app"};
    MG_CHECK_EQ(mg_store_run(dir, 77, 500, argv, 3, -1, NULL), MG_ERR_OK);
    struct mg_recording *p;
    MG_CHECK_EQ(open_and_count(dir, &p), 0);
    MG_CHECK_EQ(p->n_runs, 1);
    MG_CHECK_EQ(p->runs[0].exit_code, -1);
    mg_recording_free(p);
    MG_CHECK_EQ(mg_store_run(dir, 77, 500, argv, 3, 139, NULL), MG_ERR_OK);
    open_and_count(dir, &p);
    MG_CHECK_EQ(p->n_runs, 1);
    MG_CHECK_EQ(p->runs[0].exit_code, 139);
    MG_CHECK_STR(p->runs[0].argv[2], "./app");
    mg_recording_free(p);
    sample_remove(dir);
}

MG_TEST(profile_dropped_and_incomplete)
{
    char *dir = sample_dir();
    struct mg_store *s = open_sample(dir, 5);
    sample_write(s);
    struct mg_store_launch l = sample_launch(0);
    mg_store_launch_drop(s, mg_store_launch(s, &l));
    uint64_t counts[3] = {5, 5, 5};
    struct mg_store_done trapped = {.why = "trap", .start_ns = 9, .threads = counts, .n_blocks = 3};
    mg_store_launch_done(s, mg_store_launch(s, &l), &trapped);
    mg_store_launch(s, &l); /* still running */
    mg_store_close(s, 0);
    struct mg_recording *p;
    MG_CHECK_EQ(open_and_count(dir, &p), 5);
    MG_CHECK_EQ(p->kernels[0].incomplete, 2);
    MG_CHECK_EQ(p->kernels[0].blocks[0].threads, 2 * SAMPLE_THREADS); /* complete launches only */
    MG_CHECK_EQ(p->launches[3].threads[0], 5);
    MG_CHECK_STR(p->launches[3].why, "trap");
    mg_recording_free(p);
    sample_remove(dir);
}
