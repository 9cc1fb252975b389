/* The bytes are the ring of a process whose database is whole: every launch of the database is told once, whatever the
 * ring says. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"
#include "query/source.h"
#include "scratch.h"
#include "store/live.h"
#include "store/store.h"

enum { LAUNCHES = 5 };
static char db[96], ring[96];
static unsigned told[LAUNCHES];

static void prepare(void)
{
    const char *argv[] = {"app"};
    struct mg_store_process process = {.pid = (uint32_t)getpid(),
                                       .rank = -1,
                                       .exe = "app",
                                       .argv = argv,
                                       .argc = 1,
                                       .device_kind = "emu",
                                       .device_name = "x",
                                       .tools = ""};
    struct mg_store *s;
    prepare_folder();
    if (mg_store_open(path, &process, NULL, &s, NULL)) abort();
    struct mg_store_kernel k = {.name = "k", .module = "", .regs_native = -1, .regs_instrumented = -1};
    struct mg_store_launch l = {.kernel = mg_store_kernel(s, &k),
                                .grid = {1, 1, 1},
                                .block = {1, 1, 1},
                                .ran = MG_RAN_NATIVE,
                                .reason = "no tool"};
    struct mg_store_done done = {.complete = true, .schedule_dependent = -1};
    for (int i = 0; i < LAUNCHES; i++) mg_store_launch_done(s, mg_store_launch(s, &l), &done);
    mg_store_close(s, 0);
    snprintf(db, sizeof db, "%s/profile.db", path);
    snprintf(ring, sizeof ring, "%s/live-%u.ring", path, process.pid);
}

static void note(void *user, const struct mg_source_launch *l)
{
    (void)user;
    if (!l->kernel) abort();
    if (!l->graph && l->id < LAUNCHES) told[l->id]++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct mg_source *s;
    bool launching = false;
    if (!*path) prepare();
    int fd = open(ring, O_RDWR | O_CREAT | O_TRUNC, 0600);
    uint32_t pid = (uint32_t)getpid();
    if (fd < 0 || write(fd, data, bytes) != (ssize_t)bytes) abort();
    if (bytes >= sizeof(struct mg_live_head)) pwrite(fd, &pid, sizeof pid, offsetof(struct mg_live_head, pid));
    close(fd);
    memset(told, 0, sizeof told);
    if (mg_source_open(db, &s, &launching, NULL) || !s) abort();
    for (int i = 0; i < 3; i++) mg_source_tell(s, note, NULL);
    s->ended = false;
    s->swept_ns = 0;
    close(s->ring >= 0 ? s->ring : open("/dev/null", O_RDONLY));
    s->ring = -1;
    unlink(ring);
    mg_source_tell(s, note, NULL);
    for (int i = 0; i < LAUNCHES; i++)
        if (told[i] > 1) abort();
    mg_source_free(s);
    return 0;
}
