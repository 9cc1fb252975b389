/* A program that asks for its own counts while it runs (mg_profile_of_kernel): LAUNCHES launches of a kernel of four
 * instructions and of one of two, by 96 threads each. usage: inside LAUNCHES [clear: the environment, first;
 * alone: there is no Margay; while: a thread asks all the time] */
#include <margay/profile.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int cuInit(unsigned), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *), cuCtxSynchronize(void),
    cuModuleLoadData(void **, const void *), cuModuleGetFunction(void **, void *, const char *),
    cuMemAlloc_v2(uint64_t *, size_t),
    cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                   void **);
static const char text[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                           ".visible .entry _Z5storePj(.param .u64 p)\n{\n.reg .b64 %d;\n.reg .b32 %r;\n"
                           "ld.param.u64 %d, [p];\nmov.u32 %r, %tid.x;\nst.global.u32 [%d], %r;\nret;\n}\n"
                           ".visible .entry idle()\n{\n.reg .b32 %r;\nmov.u32 %r, %tid.x;\nret;\n}\n";
enum { CTAS = 3, THREADS = 32 };

static void is(const char *what, uint64_t got, uint64_t want)
{
    if (got != want) printf("%s is %llu, not %llu\n", what, (unsigned long long)got, (unsigned long long)want), exit(1);
}

/* Committed some 10 ms behind the end. */
static void ask(const char *name, uint64_t launches, uint64_t instructions)
{
    struct mg_profile_kernel k;
    int found = -1;
    for (int i = 0; i < 1000 && (found || k.launches < launches || k.incomplete); i++) {
        found = mg_profile_of_kernel(name, &k);
        usleep(10000);
    }
    is(name, (uint64_t)found, 0);
    is("launches", k.launches, launches);
    is("incomplete", k.incomplete, 0);
    is("instructions", k.thread_instructions, launches * CTAS * THREADS * instructions);
    is("warps' instructions", k.warp_instructions, launches * CTAS * instructions);
    is("blocks", k.blocks, 1);
}

static uint64_t launches;
static void *ask_in_thread(void *unused)
{
    ask("store(unsigned int*)", launches, 4);
    return unused;
}

/* Opens the database that this process is writing, over and over. */
static volatile int done;
static void *ask_all_the_time(void *unused)
{
    for (struct mg_profile_kernel k; !done;)
        if (!mg_profile_of_kernel("idle", &k)) is("idle's blocks", k.blocks, k.launches > k.incomplete);
    return unused;
}

int main(int argc, char **argv)
{
    void *ctx, *module, *store, *idle;
    uint64_t p;
    struct mg_profile_kernel k;
    pthread_t thread;
    int status = -1;
    launches = (uint64_t)atol(argv[1]);
    if (argc > 2 && !strcmp(argv[2], "clear")) clearenv();
    is("cuInit", (uint64_t)cuInit(0), 0);
    is("before a launch", (uint64_t)mg_profile_of_kernel("idle", &k), (uint64_t)-1);
    if (argc > 2 && !strcmp(argv[2], "alone")) return puts("ok"), 0;
    is("loading",
       (uint64_t)(cuDevicePrimaryCtxRetain(&ctx, 0) || cuCtxSetCurrent(ctx) || cuModuleLoadData(&module, text) ||
                  cuModuleGetFunction(&store, module, "_Z5storePj") || cuModuleGetFunction(&idle, module, "idle") ||
                  cuMemAlloc_v2(&p, 4)),
       0);
    bool asking = argc > 2 && !strcmp(argv[2], "while") && !pthread_create(&thread, NULL, ask_all_the_time, NULL);
    for (uint64_t i = 0; i < launches; i++) {
        is("a launch", (uint64_t)cuLaunchKernel(store, CTAS, 1, 1, THREADS, 1, 1, 0, NULL, (void *[]){&p}, NULL), 0);
        if (i % 2) is("a launch", (uint64_t)cuLaunchKernel(idle, CTAS, 1, 1, THREADS, 1, 1, 0, NULL, NULL, NULL), 0);
        if (asking) usleep(2000); /* several commits */
        if (i == 0) ask("_Z5storePj", 1, 4);
    }
    done = 1;
    if (asking) pthread_join(thread, NULL);
    is("cuCtxSynchronize", (uint64_t)cuCtxSynchronize(), 0);
    ask("_Z5storePj", launches, 4);
    ask("idle", launches / 2, 2);
    pthread_create(&thread, NULL, ask_in_thread, NULL);
    pthread_join(thread, NULL);
    is("no such kernel", (uint64_t)mg_profile_of_kernel("stor", &k), (uint64_t)-1);
    if (!fork()) _exit(mg_profile_of_kernel("idle", &k) == -1 ? 3 : 4); /* has launched nothing */
    wait(&status);
    is("the child's status", (uint64_t)WEXITSTATUS(status), 3);
    puts("ok");
    return 0;
}
