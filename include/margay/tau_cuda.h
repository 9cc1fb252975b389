/* The TAUcuda interface: GPU time of named blocks of CUDA work, by stream, as in "Performance Measurement of
 * Applications with GPU Acceleration using CUDA" (Mayanglambam, Malony, Sottile), table 1.
 *
 *     tau_cuda_init(argc, argv);
 *     void *block = tau_cuda_stream_begin("Interpolate", stream);
 *     interpolate<<<grid, threads, 0, stream>>>(...);
 *     tau_cuda_stream_end(block);
 *     tau_cuda_finalize_stream(stream);                    C++: tau_cuda_finalize(stream)
 *     tau_cuda_exit();                                     before each thread ends
 *
 * Link with -ltau_cuda. The library finds the CUDA driver by itself: any CUDA program can use it, on the static and
 * on the shared runtime, with Margay or without. It records two CUDA events around a block and adds no
 * synchronisation; only finalize waits. Every thread measures for itself: a block ends on the thread that began it.
 *
 * What is counted for each (event name, host context, device, stream):
 *   calls, child blocks
 *   inclusive   GPU time from the begin event to the end event
 *   exclusive   inclusive less the union of the blocks of the same thread and stream that lie inside
 *   wait        from the first update or finalize that found the block unfinished to its delivery; 0 if the first
 *               found it ready
 *   finalize    from the call of begin to delivery, on the host's clock
 * in microseconds. The host context is the current TAU timer where TAU is loaded, else what tau_cuda_context_push
 * named, else the function that called begin.
 *
 * exit writes a TAU profile, profile.NODE.0.THREAD, into $PROFILEDIR, else under `margay run` into the profile's
 * folder tau/, else into the current folder, and a table to stderr ($TAU_CUDA_TABLE=0 leaves it out). */
#ifndef MARGAY_TAU_CUDA_H
#define MARGAY_TAU_CUDA_H

#ifdef __cplusplus
#include <vector>
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

typedef struct CUstream_st *cudaStream_t; /* as cuda_runtime.h declares it */

/* What went wrong, by name; calls that return -1 or NULL say it on stderr as well. */
enum tau_cuda_status {
    TAU_CUDA_OK,
    TAU_CUDA_NO_DRIVER,          /* no CUDA driver was found */
    TAU_CUDA_NO_CONTEXT,         /* no CUDA context is current and none could be had */
    TAU_CUDA_UNKNOWN_HANDLE,     /* no block of this thread, or one that has ended: an end without a begin */
    TAU_CUDA_EXITED,             /* this thread has called tau_cuda_exit */
    TAU_CUDA_OTHER_CONTEXT,      /* end in another CUDA context than begin, or a stream of another context */
    TAU_CUDA_STREAM_DESTROYED,   /* the stream is no stream, or no longer */
    TAU_CUDA_CAPTURING,          /* the stream is being captured: events in graphs have no time of their own */
    TAU_CUDA_UNBALANCED_CONTEXT, /* tau_cuda_context_pop without a push */
    TAU_CUDA_UNFINISHED,         /* exit: blocks that were begun and never ended; they are in no profile */
    TAU_CUDA_NOT_WRITTEN,        /* exit: the profile could not be written */
    TAU_CUDA_DRIVER_ERROR        /* any other error of the CUDA driver; its number is in the line on stderr */
};
enum tau_cuda_status tau_cuda_status(void); /* of this thread's last call of this library */
const char *tau_cuda_status_name(enum tau_cuda_status status);

struct tau_cuda_event { /* of one stream: what an update or finalize found */
    int device, stream; /* numbers as in the events' names, D-device#S-stream */
    int completed;      /* blocks newly completed */
};

void tau_cuda_init(int argc, char **argv);
void tau_cuda_exit(void);
void *tau_cuda_stream_begin(const char *event, cudaStream_t stream); /* NULL: see tau_cuda_status */
void tau_cuda_stream_end(void *handle);
/* How many blocks of the stream have newly completed; -1: an error. update never waits; finalize waits for all that
 * ended. */
int tau_cuda_update_stream(cudaStream_t stream);
int tau_cuda_finalize_stream(cudaStream_t stream);
/* The same for all streams of this thread: fills one of `events` for each and returns how many streams there are; -1:
 * an error. Where `room` is less than that, nothing is asked for or delivered. events NULL: deliver, and tell only the
 * number. */
int tau_cuda_update_all(struct tau_cuda_event *events, int room);
int tau_cuda_finalize_all(struct tau_cuda_event *events, int room);

/* Names the host context of blocks that begin from now on, on this thread, where TAU is not loaded. */
void tau_cuda_context_push(const char *name);
void tau_cuda_context_pop(void);

/* What is known so far of one event of this thread, summed over the contexts, devices and streams that match. NULL or
 * -1 matches any. Returns how many profile objects match. */
struct tau_cuda_totals {
    unsigned long long calls, children;
    double inclusive_us, exclusive_us, wait_us, finalize_us;
};
int tau_cuda_query(const char *event, const char *context, int device, int stream, struct tau_cuda_totals *totals);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM /* there, stream 0 is the thread's own */
#define tau_cuda_own_stream(stream)          ((stream) ? (stream) : (cudaStream_t)2)
#define tau_cuda_stream_begin(event, stream) tau_cuda_stream_begin(event, tau_cuda_own_stream(stream))
#define tau_cuda_update_stream(stream)       tau_cuda_update_stream(tau_cuda_own_stream(stream))
#define tau_cuda_finalize_stream(stream)     tau_cuda_finalize_stream(tau_cuda_own_stream(stream))
#endif

#ifdef __cplusplus
}
typedef struct tau_cuda_event Event;
static inline int tau_cuda_update(cudaStream_t stream)
{
    return tau_cuda_update_stream(stream);
}
static inline int tau_cuda_finalize(cudaStream_t stream)
{
    return tau_cuda_finalize_stream(stream);
}
static inline std::vector<Event> tau_cuda_events_(int (*all)(struct tau_cuda_event *, int))
{
    std::vector<Event> events(8);
    int n = all(events.data(), (int)events.size());
    if (n > (int)events.size()) {
        events.resize(n);
        n = all(events.data(), n);
    }
    events.resize(n < 0 ? 0 : n);
    return events;
}
static inline std::vector<Event> tau_cuda_update()
{
    return tau_cuda_events_(tau_cuda_update_all);
}
static inline std::vector<Event> tau_cuda_finalize()
{
    return tau_cuda_events_(tau_cuda_finalize_all);
}
#endif

#endif
