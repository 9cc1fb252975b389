/* Every line of the interface, with times known in advance (fake_cuda.c). */
#include <margay/tau_cuda.h>

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "fake_cuda.h"

static int failed;
#define CHECK(c) ((c) ? (void)0 : (void)(failed = 1, printf("FAIL line %d: %s\n", __LINE__, #c)))
static void check_times(int line, const char *event, const char *context, int device, int stream,
                        unsigned long long calls, double inclusive, double exclusive)
{
    struct tau_cuda_totals t;
    int n = tau_cuda_query(event, context, device, stream, &t);
    if (n > 0 && t.calls == calls && fabs(t.inclusive_us - inclusive) < 0.01 && fabs(t.exclusive_us - exclusive) < 0.01)
        return;
    failed = 1;
    printf("FAIL line %d: %s: %d objects, %llu calls, %g and %g us\n", line, event, n, t.calls, t.inclusive_us,
           t.exclusive_us);
}
#define TIMES(...) check_times(__LINE__, __VA_ARGS__)

/* Table 5: an event over two others, called ten times each, in two host contexts. */
static void __attribute__((noinline)) SecondWrapper(cudaStream_t s)
{
    void *all = tau_cuda_stream_begin("All-Interpolate", s);
    for (int i = 0; i < 10; i++) {
        void *a = tau_cuda_stream_begin("InterpolateA", s);
        fake_work(s, 15000);
        tau_cuda_stream_end(a);
        void *b = tau_cuda_stream_begin("InterpolateB", s);
        fake_work(s, 15002);
        tau_cuda_stream_end(b);
    }
    fake_work(s, 65);
    tau_cuda_stream_end(all);
}
static void __attribute__((noinline)) FirstWrapper(cudaStream_t s)
{
    for (int i = 0; i < 10; i++) {
        void *a = tau_cuda_stream_begin("InterpolateA", s);
        fake_work(s, 14994);
        tau_cuda_stream_end(a);
    }
    fake_work(s, 1);
}

static void check_misuse(cudaStream_t s)
{
    tau_cuda_stream_end((void *)12345);
    CHECK(tau_cuda_status() == TAU_CUDA_UNKNOWN_HANDLE);
    void *h = tau_cuda_stream_begin("twice", s);
    tau_cuda_stream_end(h);
    CHECK(tau_cuda_status() == TAU_CUDA_OK);
    tau_cuda_stream_end(h);
    CHECK(tau_cuda_status() == TAU_CUDA_UNKNOWN_HANDLE);
    tau_cuda_stream_end(NULL);
    CHECK(tau_cuda_status() == TAU_CUDA_UNKNOWN_HANDLE);
    fake_capture(s, 1);
    CHECK(!tau_cuda_stream_begin("captured", s) && tau_cuda_status() == TAU_CUDA_CAPTURING);
    fake_capture(s, 0);
    h = tau_cuda_stream_begin("across", s);
    fake_device(1);
    tau_cuda_stream_end(h);
    CHECK(tau_cuda_status() == TAU_CUDA_OTHER_CONTEXT);
    CHECK(!tau_cuda_stream_begin("foreign", s) && tau_cuda_status() == TAU_CUDA_OTHER_CONTEXT);
    fake_device(0);
    fake_work(s, 7);
    tau_cuda_stream_end(h);
    CHECK(tau_cuda_status() == TAU_CUDA_OK && tau_cuda_finalize_stream(s) == 2);
    TIMES("across", NULL, 0, -1, 1, 7, 7);
    cudaStream_t gone = fake_stream();
    h = tau_cuda_stream_begin("gone", gone);
    fake_destroy(gone);
    tau_cuda_stream_end(h);
    CHECK(tau_cuda_status() == TAU_CUDA_STREAM_DESTROYED);
    CHECK(!tau_cuda_stream_begin("gone", gone) && tau_cuda_status() == TAU_CUDA_STREAM_DESTROYED);
    tau_cuda_context_pop();
    CHECK(tau_cuda_status() == TAU_CUDA_UNBALANCED_CONTEXT);
    CHECK(!strcmp(tau_cuda_status_name(TAU_CUDA_CAPTURING), "stream is being captured"));
}

/* Blocks that overlap without nesting: [0,10], [4,16] and, inside the second, [12,14]. */
static void check_overlap(cudaStream_t s)
{
    void *a = tau_cuda_stream_begin("left", s);
    fake_work(s, 4);
    void *b = tau_cuda_stream_begin("right", s);
    fake_work(s, 6);
    tau_cuda_stream_end(a);
    fake_work(s, 2);
    void *c = tau_cuda_stream_begin("inner", s);
    fake_work(s, 2);
    tau_cuda_stream_end(c);
    fake_work(s, 2);
    tau_cuda_stream_end(b);
    CHECK(tau_cuda_finalize_stream(s) == 3);
    TIMES("left", NULL, -1, -1, 1, 10, 10);
    TIMES("right", NULL, -1, -1, 1, 12, 10);
    TIMES("inner", NULL, -1, -1, 1, 2, 2);
}

/* update never waits; wait is 0 where the first query finds a block ready. */
static void check_wait(cudaStream_t s)
{
    struct tau_cuda_totals t;
    int waits = fake_waits;
    fake_slow = 2;
    tau_cuda_context_push("named");
    tau_cuda_stream_end((fake_work(s, 0), tau_cuda_stream_begin("slow", s)));
    CHECK(tau_cuda_update_stream(s) == 0 && tau_cuda_update_stream(s) == 0 && tau_cuda_update_stream(s) == 1);
    CHECK(tau_cuda_query("slow", "named", 0, -1, &t) == 1 && t.wait_us > 0 && t.finalize_us >= t.wait_us);
    CHECK(fake_waits == waits);
    tau_cuda_stream_end(tau_cuda_stream_begin("finalized", s));
    CHECK(tau_cuda_finalize_stream(s) == 1 && fake_waits == waits + 1);
    CHECK(tau_cuda_query("finalized", "named", 0, -1, &t) == 1 && t.wait_us > 0);
    fake_slow = 0;
    tau_cuda_stream_end(tau_cuda_stream_begin("ready", s));
    CHECK(tau_cuda_finalize_stream(s) == 1 && fake_waits == waits + 1);
    CHECK(tau_cuda_query("ready", "named", 0, -1, &t) == 1 && t.wait_us == 0 && t.finalize_us > 0);
    tau_cuda_context_pop();
}

static void *on_thread(void *user)
{
    (void)user;
    fake_device(1);
    cudaStream_t s = fake_stream();
    tau_cuda_init(0, NULL);
    int before = fake_events;
    for (int i = 0; i < 1000; i++) {
        void *h = tau_cuda_stream_begin("threaded", i % 2 ? s : NULL);
        fake_work(i % 2 ? s : NULL, 3);
        tau_cuda_stream_end(h);
        tau_cuda_update_stream(i % 2 ? s : NULL);
    }
    CHECK(fake_events - before <= 4);
    TIMES("threaded", NULL, 1, -1, 1000, 3000, 3000);
    TIMES("threaded", NULL, 1, 0, 500, 1500, 1500);
    tau_cuda_exit();
    tau_cuda_exit();
    CHECK(tau_cuda_status() == TAU_CUDA_EXITED);
    CHECK(!tau_cuda_stream_begin("late", s) && tau_cuda_status() == TAU_CUDA_EXITED);
    return NULL;
}

int main(int argc, char **argv)
{
    tau_cuda_init(argc, argv);
    CHECK(tau_cuda_status() == TAU_CUDA_OK);
    cudaStream_t s = fake_stream();
    SecondWrapper(s);
    FirstWrapper(s);
    struct tau_cuda_event e[4];
    CHECK(tau_cuda_finalize_all(e, 4) == 1 && e[0].device == 0 && e[0].stream == 1 && e[0].completed == 31);
    TIMES("All-Interpolate", "SecondWrapper", 0, 1, 1, 300085, 65);
    TIMES("InterpolateA", "SecondWrapper", 0, 1, 10, 150000, 150000);
    TIMES("InterpolateB", "SecondWrapper", 0, 1, 10, 150020, 150020);
    TIMES("InterpolateA", "FirstWrapper", 0, 1, 10, 149940, 149940);
    TIMES("InterpolateA", NULL, -1, -1, 20, 299940, 299940);
    struct tau_cuda_totals t;
    CHECK(tau_cuda_query("All-Interpolate", NULL, -1, -1, &t) == 1 && t.children == 20);
    check_overlap(s);
    check_wait(s);
    check_misuse(s);
    pthread_t thread;
    pthread_create(&thread, NULL, on_thread, NULL);
    pthread_join(thread, NULL);
    tau_cuda_stream_begin("unfinished \"quoted\"", s);
    tau_cuda_exit();
    CHECK(tau_cuda_status() == TAU_CUDA_UNFINISHED);
    return failed;
}
