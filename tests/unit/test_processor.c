/* base/processor: parts of processor time by hand, and what /proc says of this process. */
#include "base/processor.h"

#include <math.h>
#include <sys/wait.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

static double part(uint64_t got, uint64_t waited)
{
    return mg_processor_part(&(struct mg_processor){1000, 5000}, &(struct mg_processor){1000 + got, 5000 + waited});
}

MG_TEST(processor_part)
{
    MG_CHECK(part(0, 0) == 1);
    MG_CHECK(part(7, 0) == 1);
    MG_CHECK(fabs(part(1, 3) - 0.25) < 1e-12);
    MG_CHECK(part(0, 1) == 1.0 / 64);
    MG_CHECK(part(1, 1000) == 1.0 / 64);
    MG_CHECK(mg_processor_part(&(struct mg_processor){9, 9}, &(struct mg_processor){1, 1}) ==
             1); /* threads have ended */
}

static double used_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

MG_TEST(processor_of_this_process)
{
    struct mg_processor before = {0}, after = {0}, nobody = {0};
    mg_processor_add((uint32_t)getpid(), &before);
    for (double end = used_seconds() + 0.03; used_seconds() < end;) {
    }
    mg_processor_add((uint32_t)getpid(), &after);
    if (access("/proc/self/schedstat", R_OK)) return;
    MG_CHECK(after.got_ns - before.got_ns >= 20000000);
    MG_CHECK(mg_processor_is_wanted((uint32_t)getpid()));
    pid_t child = fork();
    if (!child) pause(), _exit(0);
    kill(child, SIGSTOP);
    waitpid(child, NULL, WUNTRACED);
    MG_CHECK(!mg_processor_is_wanted((uint32_t)child));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    mg_processor_add((uint32_t)child, &nobody);
    MG_CHECK(!nobody.got_ns && !nobody.waited_ns && !mg_processor_is_wanted((uint32_t)child));
}
