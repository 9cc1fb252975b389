/* The clock of fake_cuda.c: set by the test. */
#ifndef TESTS_TAU_FAKE_CUDA_H
#define TESTS_TAU_FAKE_CUDA_H
#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)
struct CUstream_st *fake_stream(void); /* of the current device */
void fake_device(int device);
void fake_work(struct CUstream_st *s, double us);
void fake_capture(struct CUstream_st *s, int on);
void fake_destroy(struct CUstream_st *s);
extern int fake_slow;               /* so many queries of an event find it unfinished */
extern int fake_waits, fake_events; /* cuEventSynchronize calls; events alive */
#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
