/* A program whose places that launch and wait are known: tests/inject/stacks.sh. usage: stacks fill.ptx MODE [N]
 *   plain N      first() launches N times, second() 2 N times at two lines, both wait in finish()
 *   threads T    T threads, each launches and waits three times
 *   deep N       the launch lies behind N calls of deep()
 *   jit          a launch out of machine code without tables, made at run time, that jumps and calls on behalf of main
 *   jump         a launch by a jump: its caller's frame is gone
 *   early        a launch before main, out of a constructor
 *   unload LIB N N times: load LIB, let it launch, unload it
 *   swap A B     load A, let it launch, unload it; the same with B
 *   churn LIB T  T threads launch 50 times each while one loads and unloads LIB all the time
 *   signal       a launch out of a signal handler; then a handler that walks the stack itself interrupts launches
 *   fork         a child launches, too
 *   loop         launches and waits until it is killed
 * Prints "ok", or what is wrong. */
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

int cuInit(unsigned), cuDeviceGet(int *, int), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *),
    cuCtxSynchronize(void), cuModuleLoadData(void **, const void *), cuModuleGetFunction(void **, void *, const char *),
    cuMemAlloc_v2(uint64_t *, size_t),
    cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                   void **);
static void *ctx, *module, *kernel;
static uint64_t cells;
#define NOINLINE __attribute__((noinline))
#define CHECK(call) check(#call, call)
static void check(const char *what, int rc)
{
    if (!rc) return;
    printf("%s: %d\n", what, rc);
    exit(1);
}

static char text[1 << 16];
static void start(const char *ptx)
{
    FILE *f = fopen(ptx, "r");
    if (!f || !fread(text, 1, sizeof text - 1, f)) exit(1);
    fclose(f);
    int device;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&ctx, device));
    CHECK(cuCtxSetCurrent(ctx));
    CHECK(cuModuleLoadData(&module, text));
    CHECK(cuModuleGetFunction(&kernel, module, "fill"));
    CHECK(cuMemAlloc_v2(&cells, 1 << 16));
}

static unsigned n_threads = 32;
static void *params[] = {&cells, &n_threads};
#define LAUNCH() cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL)
NOINLINE void finish(void)
{
    CHECK(cuCtxSynchronize());
}
NOINLINE void first(unsigned n)
{
    for (unsigned i = 0; i < n; i++) CHECK(LAUNCH()); /* line first */
    finish();
}
NOINLINE void second(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        CHECK(LAUNCH()); /* line second */
        CHECK(LAUNCH()); /* line third */
    }
    finish();
}
NOINLINE int deep(unsigned n)
{
    int rc = n ? deep(n - 1) : LAUNCH();
    __asm__ volatile("" : "+r"(rc));
    return rc;
}
NOINLINE void *run(void *arg)
{
    CHECK(cuCtxSetCurrent(ctx));
    for (int i = 0; i < 3; i++) {
        CHECK(LAUNCH());
        CHECK(cuCtxSynchronize());
    }
    return arg;
}
static void threads(unsigned n)
{
    pthread_t t[256];
    for (unsigned i = 0; i < n; i++) CHECK(pthread_create(&t[i], NULL, run, NULL));
    for (unsigned i = 0; i < n; i++) pthread_join(t[i], NULL);
}
int plain_launch(void)
{
    return LAUNCH();
}
/* push %rbx; garbage in rbp; mov $plain_launch, %rax; call *%rax; pop %rbx; ret: no unwind tables know it. */
NOINLINE void jit(void)
{
    static const uint8_t head[] = {0x55, 0x48, 0xc7, 0xc5, 0x11, 0x22, 0x33, 0x44, 0x48, 0xb8}, tail[] = {0xff, 0xd0, 0x5d, 0xc3};
    uint8_t *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t to = (uint64_t)(uintptr_t)plain_launch;
    memcpy(code, head, sizeof head);
    memcpy(code + sizeof head, &to, 8);
    memcpy(code + sizeof head + 8, tail, sizeof tail);
    CHECK(((int (*)(void))(uintptr_t)code)());
    munmap(code, 4096);
}
NOINLINE int jump(void)
{
    return LAUNCH();
}
static void use(const char *path)
{
    void *lib = dlopen(path, RTLD_NOW);
    if (!lib) check(dlerror(), 1);
    int (*go)(void *, void **) = (int (*)(void *, void **))dlsym(lib, "go");
    CHECK(go(kernel, params));
    dlclose(lib);
}
static int churning = 1;
static void *churn(void *arg)
{
    while (__atomic_load_n(&churning, __ATOMIC_RELAXED)) {
        void *lib = dlopen(arg, RTLD_NOW);
        if (!lib) check(dlerror(), 1);
        dlclose(lib);
    }
    return NULL;
}
NOINLINE void *launch_often(void *arg)
{
    CHECK(cuCtxSetCurrent(ctx));
    for (int i = 0; i < 50; i++) CHECK(LAUNCH());
    CHECK(cuCtxSynchronize());
    return arg;
}
static void churned(char *lib, unsigned n)
{
    pthread_t t[256], c;
    CHECK(pthread_create(&c, NULL, churn, lib));
    for (unsigned i = 0; i < n; i++) CHECK(pthread_create(&t[i], NULL, launch_often, NULL));
    for (unsigned i = 0; i < n; i++) pthread_join(t[i], NULL);
    __atomic_store_n(&churning, 0, __ATOMIC_RELAXED);
    pthread_join(c, NULL);
}
static volatile sig_atomic_t handled;
NOINLINE void on_signal(int s)
{
    void *frames[64];
    if (s == SIGUSR1) CHECK(LAUNCH());
    if (s == SIGALRM) backtrace(frames, 64);
    handled++;
}
/* Its frame is one that a signal interrupts between two instructions. */
NOINLINE void interrupted(void)
{
    raise(SIGUSR1);
    __asm__ volatile("");
}
static void signals(void)
{
    struct itimerval t = {{0, 300}, {0, 300}};
    signal(SIGUSR1, on_signal);
    interrupted();
    signal(SIGALRM, on_signal);
    setitimer(ITIMER_REAL, &t, NULL);
    while (handled < 200) CHECK(deep(50));
    memset(&t, 0, sizeof t);
    setitimer(ITIMER_REAL, &t, NULL);
}
__attribute__((constructor)) static void early(int argc, char **argv)
{
    if (argc > 2 && !strcmp(argv[2], "early")) start(argv[1]), CHECK(LAUNCH());
}

int main(int argc, char **argv)
{
    const char *mode = argc > 2 ? argv[2] : "";
    unsigned n = argc > 3 ? (unsigned)atoi(argv[3]) : 1;
    if (strcmp(mode, "early")) start(argv[1]);
    if (!strcmp(mode, "plain")) first(n), second(n);
    if (!strcmp(mode, "threads")) threads(n);
    if (!strcmp(mode, "deep")) CHECK(deep(n));
    if (!strcmp(mode, "jit")) jit();
    if (!strcmp(mode, "jump")) CHECK(jump());
    if (!strcmp(mode, "unload"))
        for (int i = atoi(argv[4]); i > 0; i--) use(argv[3]);
    if (!strcmp(mode, "swap")) use(argv[3]), use(argv[4]);
    if (!strcmp(mode, "churn")) churned(argv[3], (unsigned)atoi(argv[4]));
    if (!strcmp(mode, "signal")) signals();
    if (!strcmp(mode, "fork")) {
        first(1);
        pid_t child = fork();
        if (!child) _exit(LAUNCH() < 0);
        waitpid(child, NULL, 0);
        second(1);
    }
    while (!strcmp(mode, "loop")) first(100);
    CHECK(cuCtxSynchronize());
    puts("ok");
    return 0;
}
