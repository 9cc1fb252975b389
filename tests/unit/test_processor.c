/* base/processor: parts of processor time by hand, and what /proc says of this process. */
#include "base/processor.h"

#include <math.h>
#include <sched.h>
#include <sys/syscall.h>
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
    MG_CHECK(!mg_process_is_stopped((uint32_t)getpid()));
    pid_t child = fork();
    if (!child) pause(), _exit(0);
    kill(child, SIGSTOP);
    waitpid(child, NULL, WUNTRACED);
    MG_CHECK(mg_process_is_stopped((uint32_t)child));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    mg_processor_add((uint32_t)child, &nobody);
    MG_CHECK(!nobody.got_ns && !nobody.waited_ns && !mg_process_is_stopped((uint32_t)child));
}

static int sleep_on(void *until)
{
    do syscall(SYS_pause);
    while (!until);
    return 0;
}

/* A process lives while a thread of it does; its first one may have ended. One that nobody has waited for does not. */
MG_TEST(processor_process_is_alive)
{
    static char stack[16384];
    const int thread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
    siginfo_t info;
    char state = 0;
    pid_t child = fork();
    if (!child) { /* a thread that no sanitizer knows of, since these want none behind a fork */
        clone(sleep_on, stack + sizeof stack, thread, NULL);
        syscall(SYS_exit, 0);
    }
    for (int i = 0; i < 5000 && state != 'Z'; i++) {
        char path[64], text[512] = "";
        snprintf(path, sizeof path, "/proc/%d/stat", (int)child);
        FILE *f = fopen(path, "r");
        const char *end = f && fgets(text, sizeof text, f) ? strrchr(text, ')') : NULL;
        if (end) state = end[2];
        if (f) fclose(f);
        usleep(1000);
    }
    MG_CHECK_EQ(state, 'Z');
    MG_CHECK(mg_process_is_alive((uint32_t)child));
    kill(child, SIGKILL);
    waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT);
    MG_CHECK(!mg_process_is_alive((uint32_t)child));
    waitpid(child, NULL, 0);
    MG_CHECK(!mg_process_is_alive((uint32_t)child));
}
