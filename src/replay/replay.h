/* margay-replay: runs the device's side of a capture again, over the driver's interface alone. `margay replay`
 * starts it
 * like any program (`margay run`), so that every tool and device works on it.
 *
 *   capture ── reader ──► scan.c  what no operation can say is refused before anything runs
 *                     └─► operations ── exec.c ──► contexts.c contexts, their streams, the order of work
 *                                                  modules.c  images, kernels, variables
 *                                                  memory.c   allocations at the addresses of the capture
 *                                                  objects.c  arrays, textures, surfaces
 *                                                  check.c    hashes against those of the capture
 *   extract.c writes a smaller capture of selected launches while they are replayed, export.c a C program of that.
 *
 * One order: that of the capture. Work stays in its stream; where the stream changes an event orders the two. */
#ifndef MG_REPLAY_REPLAY_H
#define MG_REPLAY_REPLAY_H

#include "abi/cu.h"
#include "base/map.h"
#include "base/vec.h"
#include "capture/reader.h"
#include "capture/writer.h"
#include "image/packed.h"

enum { MG_REPLAY_OK, MG_REPLAY_DIFFERS, MG_REPLAY_USAGE, MG_REPLAY_INPUT, MG_REPLAY_DEVICE, MG_REPLAY_UNCOMPARED };

struct mg_range_of {
    uint64_t lo, hi;
}; /* of addresses */
struct mg_context {
    uint64_t number, device; /* as the capture has them */
    cu_ctx handle;
    MG_VEC(cu_stream) streams; /* by number; 0: the default one */
    cu_event event;
};
struct mg_load {
    uint64_t number, image;
    uint32_t context; /* place in the list of these, here and below */
    void *handle;
    bool library, live;
    uint64_t words[35];
    uint32_t n_words;
};
struct mg_kernel {
    uint64_t number, load;
    char *name;
    void *handle; /* of a library's kernel: in this context */
    uint32_t context;
    cu_kernel kernel; /* of a library */
};
struct mg_variable {
    uint64_t load, was, is, bytes;
    char *name;
}; /* its address in the capture, and here */
struct mg_live {
    uint64_t at, bytes;
    uint32_t context;
    uint64_t agreed, checked;
}; /* an allocation; launches at its last check that held, and at its last check or when it was made */
struct mg_array {
    uint64_t number;
    uint32_t context;
    void *handle;
    bool mipmap, level;
    uint64_t mipmap_number; /* of a level */
    struct cu_array3d_desc desc;
    unsigned levels;
};
struct mg_object {
    uint64_t serial, handle; /* handles are given again */
    uint32_t context;
    bool surface;
    uint64_t op[10];
    char payload[256];
    size_t payload_bytes;
    uint64_t at, bytes; /* the allocation that it was made over; 0, 0: none */
};
struct mg_image_bytes {
    uint64_t number, bytes;
    void *at;
    struct mg_image_unpacked unpacked;
};
struct mg_set {
    uint64_t kernel, attribute, value;
    uint32_t context;
}; /* or a limit: kernel 0 */

struct mg_before {
    uint64_t at, bytes;
    char *was;
}; /* what lay there before the last launch */

struct mg_given {                    /* memory that another thread of the program may have written while a launch ran */
    MG_VEC(struct mg_before) before; /* of what the operations behind the last launch say */
    uint64_t n, at;                  /* bytes that were taken from the capture; first launch of these */
};
struct mg_origin {
    uint64_t words[3];
    const void *line; /* owner: the reader */
    size_t bytes;
};

struct mg_replay {
    const char *path;
    struct mg_cap_reader *reader;
    MG_VEC(struct mg_range_of) ranges; /* where it had memory at any time */
    MG_VEC(char *) reasons;            /* by number - 1 */
    MG_VEC(uint32_t) doubts;           /* pairs: launch, reason */
    MG_VEC(struct mg_image_bytes) images;
    MG_VEC(struct mg_load) loads;
    MG_VEC(struct mg_kernel) kernels;
    MG_VEC(struct mg_variable) variables;
    MG_VEC(struct mg_live) live; /* by address */
    MG_VEC(struct mg_array) arrays;
    MG_VEC(struct mg_object) objects;
    uint64_t n_objects; /* that were made so far */
    MG_VEC(struct mg_set) sets;
    MG_VEC(uint64_t) devices;           /* of the capture, in the order of their first use: 0, 1, .. here */
    MG_VEC(struct mg_context) contexts; /* the first is there before the capture names one */
    uint32_t context;                   /* that operations are done in */
    uint32_t busy;                      /* context and stream of the work that was sent last */
    uint64_t stream;
    struct mg_map pages; /* mapped so far; 1: an allocation has used it */
    uint64_t reserved;   /* addresses up to here */
    size_t granule;
    const char *last_kernel; /* that was launched; owner: kernels */
    uint64_t n_launches, n_checks, n_differ;
    struct mg_given given;
    uint64_t n_unseen; /* allocations that were freed without a check behind their last launch */
    char *room;
    size_t room_bytes;     /* content on its way */
    char difference[1024]; /* "": none; the first */
    char why[1024];        /* first failure */
    int status;
    struct mg_extract *extract; /* NULL: none is written */
    const char *extracted;      /* its name, once the replay has run */
    struct mg_origin run;       /* the process that it is of */
    bool taken_out;             /* its launches are some of another capture's */
    bool quiet, differences;    /* every check that differs is printed */
};

/* main.c */
int mg_replay_fail(struct mg_replay *r, int status, const char *fmt, ...)
    MG_PRINTF(3, 4);                                       /* keeps the first, returns status */
void *mg_replay_room(struct mg_replay *r, uint64_t bytes); /* NULL: there is no memory, and r has failed */

/* scan.c: 0, or the status that r has failed with */
int mg_replay_scan(struct mg_replay *r); /* what the whole capture says and needs, before anything runs */

/* exec.c: 0, or the status that r has failed with */
int mg_replay_run(struct mg_replay *r);
bool mg_replay_is_there(struct mg_replay *r, uint64_t at, uint64_t bytes); /* in allocations or a variable */
int mg_replay_call(struct mg_replay *r, cu_result rc, const char *fmt, ...) MG_PRINTF(3, 4);

/* contexts.c */
int mg_replay_start(struct mg_replay *r);
const char *mg_replay_scan_context(struct mg_replay *r, const struct mg_cap_op *op); /* NULL, or what is wrong */
int mg_replay_context(struct mg_replay *r, const struct mg_cap_op *op);
int mg_replay_go(struct mg_replay *r, uint32_t context);         /* what follows is done there */
cu_stream mg_replay_enter(struct mg_replay *r, uint64_t stream); /* work for this stream follows */
cu_stream mg_replay_last(struct mg_replay *r);                   /* work for the stream of the last follows */
int mg_replay_settle(struct mg_replay *r);                       /* all work has ended */
int mg_replay_device(const struct mg_replay *r);                 /* of the current context */

/* modules.c */
int mg_replay_image(struct mg_replay *r, const struct mg_cap_op *op);
int mg_replay_load(struct mg_replay *r, const struct mg_cap_op *op);
int mg_replay_unload(struct mg_replay *r, const struct mg_cap_op *op);
int mg_replay_kernel(struct mg_replay *r, const struct mg_cap_op *op);
int mg_replay_variable(struct mg_replay *r, const struct mg_cap_op *op);
struct mg_kernel *mg_replay_kernel_of(struct mg_replay *r, uint64_t number);
cu_function mg_replay_function(struct mg_replay *r, struct mg_kernel *k); /* in the current context; NULL: it failed */
struct mg_load *mg_replay_load_of(struct mg_replay *r, uint64_t number);
struct mg_image_bytes *mg_replay_image_of(struct mg_replay *r, uint64_t number);
uint64_t mg_replay_here(const struct mg_replay *r, uint64_t was); /* an address of the capture in this process */
void mg_replay_translate(const struct mg_replay *r, void *data, uint64_t bytes,
                         bool back); /* words that are addresses of variables */

/* memory.c */
struct mg_range_of mg_replay_span(uint64_t at, uint64_t bytes);
int mg_replay_reserve(struct mg_replay *r, uint64_t lo, uint64_t hi);
int mg_replay_alloc(struct mg_replay *r, uint64_t at, uint64_t bytes);
int mg_replay_free(struct mg_replay *r, uint64_t at);
struct mg_live *mg_replay_live_at(struct mg_replay *r, uint64_t p);
int mg_replay_read(struct mg_replay *r, uint64_t at, void *to, uint64_t bytes);

/* objects.c */
int mg_replay_array(struct mg_replay *r, const struct mg_cap_op *op);
int mg_replay_object(struct mg_replay *r, const struct mg_cap_op *op);
int mg_replay_copy3d(struct mg_replay *r, const struct mg_cap_op *op);
struct mg_array *mg_replay_array_of(struct mg_replay *r, uint64_t number);

/* check.c */
int mg_replay_check(struct mg_replay *r, const struct mg_cap_op *op);
int mg_replay_before(struct mg_replay *r, const struct mg_cap_op *launch); /* it follows */
int mg_replay_left(struct mg_replay *r, const struct mg_cap_op *op);

/* extract.c */
int mg_extract_open(struct mg_replay *r, const char *path, const char *spec);
bool mg_extract_wants(const struct mg_replay *r, uint64_t launch);
bool mg_extract_is_over(const struct mg_replay *r); /* no launch from here on is wanted */
int mg_extract_before(struct mg_replay *r, const struct mg_cap_op *op);
int mg_extract_after(struct mg_replay *r, const struct mg_cap_op *op);
int mg_extract_close(struct mg_replay *r);

/* export.c */
int mg_export(struct mg_replay *r, const char *folder);

/* list.c */
int mg_replay_list(struct mg_replay *r);

/* driver.c: the driver's entries by name */
#define MG_REPLAY_ENTRIES(E)                                                                                           \
    E(cuInit, (unsigned))                                                                                              \
    E(cuDeviceGet, (cu_device *, int))                                                                                 \
    E(cuDeviceGetCount, (int *))                                                                                       \
    E(cuDevicePrimaryCtxRetain, (cu_ctx *, cu_device))                                                                 \
    E(cuCtxCreate_v2, (cu_ctx *, unsigned, cu_device))                                                                 \
    E(cuCtxSetCurrent, (cu_ctx))                                                                                       \
    E(cuCtxSynchronize, (void))                                                                                        \
    E(cuCtxSetLimit, (int, size_t))                                                                                    \
    E(cuMemGetAllocationGranularity, (size_t *, const struct cu_alloc_prop *, int))                                    \
    E(cuMemAddressFree, (cu_ptr, size_t))                                                                              \
    E(cuMemAddressReserve, (cu_ptr *, size_t, size_t, cu_ptr, unsigned long long))                                     \
    E(cuMemCreate, (cu_mem_handle *, size_t, const struct cu_alloc_prop *, unsigned long long))                        \
    E(cuMemMap, (cu_ptr, size_t, size_t, cu_mem_handle, unsigned long long))                                           \
    E(cuMemRelease, (cu_mem_handle))                                                                                   \
    E(cuMemSetAccess, (cu_ptr, size_t, const struct cu_access *, size_t))                                              \
    E(cuMemcpyHtoDAsync_v2, (cu_ptr, const void *, size_t, cu_stream))                                                 \
    E(cuMemcpyDtoHAsync_v2, (void *, cu_ptr, size_t, cu_stream))                                                       \
    E(cuMemcpyDtoDAsync_v2, (cu_ptr, cu_ptr, size_t, cu_stream))                                                       \
    E(cuMemcpy3D_v2, (const struct cu_memcpy3d *))                                                                     \
    E(cuMemsetD8Async, (cu_ptr, uint8_t, size_t, cu_stream))                                                           \
    E(cuMemsetD2D8Async, (cu_ptr, size_t, uint8_t, size_t, size_t, cu_stream))                                         \
    E(cuMemsetD2D16Async, (cu_ptr, size_t, uint16_t, size_t, size_t, cu_stream))                                       \
    E(cuMemsetD2D32Async, (cu_ptr, size_t, uint32_t, size_t, size_t, cu_stream))                                       \
    E(cuMemsetD16Async, (cu_ptr, uint16_t, size_t, cu_stream))                                                         \
    E(cuMemsetD32Async, (cu_ptr, uint32_t, size_t, cu_stream))                                                         \
    E(cuStreamCreate, (cu_stream *, unsigned))                                                                         \
    E(cuStreamSynchronize, (cu_stream))                                                                                \
    E(cuEventCreate, (cu_event *, unsigned))                                                                           \
    E(cuEventRecord, (cu_event, cu_stream))                                                                            \
    E(cuStreamWaitEvent, (cu_stream, cu_event, unsigned))                                                              \
    E(cuModuleLoadDataEx, (cu_module *, const void *, unsigned, int *, void **))                                       \
    E(cuModuleUnload, (cu_module))                                                                                     \
    E(cuLibraryLoadData, (cu_library *, const void *, int *, void **, unsigned, int *, void **, unsigned))             \
    E(cuLibraryUnload, (cu_library))                                                                                   \
    E(cuModuleGetFunction, (cu_function *, cu_module, const char *))                                                   \
    E(cuLibraryGetKernel, (cu_kernel *, cu_library, const char *))                                                     \
    E(cuKernelGetFunction, (cu_function *, cu_kernel))                                                                 \
    E(cuModuleGetGlobal_v2, (cu_ptr *, size_t *, cu_module, const char *))                                             \
    E(cuLibraryGetGlobal, (cu_ptr *, size_t *, cu_library, const char *))                                              \
    E(cuLibraryGetManaged, (cu_ptr *, size_t *, cu_library, const char *))                                             \
    E(cuFuncSetAttribute, (cu_function, int, int))                                                                     \
    E(cuFuncGetParamInfo, (cu_function, size_t, size_t *, size_t *))                                                   \
    E(cuLaunchKernelEx, (const struct cu_launch_config *, cu_function, void **, void **))                              \
    E(cuArray3DCreate_v2, (cu_array *, const struct cu_array3d_desc *))                                                \
    E(cuArrayDestroy, (cu_array))                                                                                      \
    E(cuMipmappedArrayCreate, (cu_mipmap *, const struct cu_array3d_desc *, unsigned))                                 \
    E(cuMipmappedArrayGetLevel, (cu_array *, cu_mipmap, unsigned))                                                     \
    E(cuMipmappedArrayDestroy, (cu_mipmap))                                                                            \
    E(cuTexObjectCreate,                                                                                               \
      (cu_tex *, const struct cu_resource_desc *, const struct cu_texture_desc *, const struct cu_view_desc *))        \
    E(cuSurfObjectCreate, (cu_surf *, const struct cu_resource_desc *))                                                \
    E(cuTexObjectDestroy, (cu_tex))                                                                                    \
    E(cuSurfObjectDestroy, (cu_surf))
extern struct mg_replay_driver {
#define E(name, args) cu_result(*name) args;
    MG_REPLAY_ENTRIES(E)
#undef E
} mg_cu;
bool mg_replay_driver_open(const char **missing);
/* To Margay, whose tools would take all that is mapped together for one allocation; 0: freed. NULL: it is not there. */
extern void (*mg_replay_tell)(uint64_t at, uint64_t bytes);

#endif
