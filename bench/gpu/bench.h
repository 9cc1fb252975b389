/* The driver's entries that the benchmark uses, and what a workload is. */
#ifndef MG_BENCH_GPU_H
#define MG_BENCH_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

struct cuda {
    int (*init)(unsigned), (*device_get)(int *, int), (*device_name)(char *, int, int), (*device_attribute)(int *, int, int);
    int (*retain)(void **, int), (*set_current)(void *), (*sync)(void), (*set_limit)(int, size_t);
    int (*load)(void **, const void *, unsigned, int *, void **), (*unload)(void *);
    int (*function)(void **, void *, const char *), (*global)(uint64_t *, size_t *, void *, const char *);
    int (*attribute)(int *, int, void *), (*occupancy)(int *, void *, int, size_t);
    int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
    int (*alloc)(uint64_t *, size_t), (*free)(uint64_t);
    int (*to_device)(uint64_t, const void *, size_t), (*to_host)(void *, uint64_t, size_t), (*copy)(uint64_t, uint64_t, size_t), (*set)(uint64_t, unsigned, size_t);
    int (*event_create)(void **, unsigned), (*event_record)(void *, void *), (*event_sync)(void *), (*event_elapsed)(float *, void *, void *);
};
extern struct cuda cu;
void check(int rc, const char *what);

struct launch { const char *kernel; unsigned grid[3], block[3]; uint64_t args[10]; unsigned n_args; };
struct work {
    const char *name;
    void (*setup)(struct work *w, bool small, void *module);
    struct launch launches[16]; unsigned n_launches; /* of one kernel, the same shape */
    struct { uint64_t to, from; size_t bytes; } resets[4]; unsigned n_resets; /* before every run */
    uint64_t out; size_t out_bytes;
    uint64_t buffers[12]; unsigned n_buffers;
};
extern struct work works[];
extern const unsigned n_works;
void work_release(struct work *w);
void work_long(struct work *w, uint64_t rounds);

#endif
