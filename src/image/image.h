/* Containers that hold PTX: fatbins (raw, LZ4, zstd), ELF executables and shared objects with
 * .nv_fatbin sections, cubins that carry .nv_debug_ptx_txt, and plain PTX text. */
#ifndef MG_IMAGE_IMAGE_H
#define MG_IMAGE_IMAGE_H

#include "base/diag.h"

enum mg_image_kind {
    MG_IMAGE_UNKNOWN,
    MG_IMAGE_PTX,
    MG_IMAGE_FATBIN,
    MG_IMAGE_FATBIN_WRAPPER,
    MG_IMAGE_CUBIN,
    MG_IMAGE_ELF
};
enum mg_entry_kind { MG_ENTRY_PTX = 1, MG_ENTRY_CUBIN = 2, MG_ENTRY_LTOIR = 8 };

struct mg_image_entry {
    enum mg_entry_kind kind;
    uint32_t sm; /* 90 */
    char suffix; /* 'a', 'f' or 0 when the flags say arch-specific */
    uint64_t flags;
    uint32_t group;      /* which fatbin of the container (one per translation unit) */
    bool relocatable;    /* from -rdc */
    const char *options; /* ptxas option string, or NULL; owner: image */
    const char *name;    /* or NULL */
    const char *data;    /* decompressed payload; PTX is NUL-terminated, bytes without trailing NULs */
    size_t bytes;
};
struct mg_image {
    enum mg_image_kind kind;
    struct mg_image_entry *entries;
    uint32_t n_entries;
    const void *start;      /* of memory: where the container lies, not a wrapper that points to it */
    struct mg_arena *arena; /* owns everything */
};

/* What a driver load call was given: a pointer to PTX text, fatbin header, wrapper or cubin whose
 * size is known from its own header. Memory only needs to stay valid during the call. */
enum mg_err mg_image_open_memory(const void *p, struct mg_image **out, struct mg_diag *d) MG_MUST_CHECK;
/* A file's content: bounds-checked, never reads outside [p, p + bytes). */
enum mg_err mg_image_open_bytes(const void *p, size_t bytes, const char *file, struct mg_image **out,
                                struct mg_diag *d) MG_MUST_CHECK;
void mg_image_free(struct mg_image *im);
/* The PTX a device of compute capability sm (90) would JIT: highest sm not above it within group,
 * arch-specific ones only on an exact match; NULL when there is none. */
const struct mg_image_entry *mg_image_best_ptx(const struct mg_image *im, uint32_t group, uint32_t sm);
/* Calls fn with the name of every kernel in a cubin; returns how many. */
uint32_t mg_cubin_kernels(const void *cubin, size_t bytes, void (*fn)(void *user, const char *name), void *user);
/* Calls fn with the registers per thread that the machine code records for each of its kernels and
 * functions; returns how many. */
uint32_t mg_cubin_registers(const void *cubin, size_t bytes,
                            void (*fn)(void *user, const char *name, uint32_t registers), void *user);
/* True when the ELF file at path has the CUDA runtime linked in statically and no PT_NEEDED of
 * libcudart: such a program needs a GPU. */
bool mg_image_is_static_cudart(const char *path);
/* True when the ELF file at path has a PT_NEEDED of a shared CUDA runtime of another major version;
 * `name` gets the library's. */
bool mg_image_needs_other_cudart(const char *path, unsigned major, char *name, size_t room);

/* Decompressors, bounds-checked: number of bytes written or -1. */
int64_t mg_lz4_block(const uint8_t *src, size_t src_bytes, uint8_t *dst, size_t dst_bytes);
/* Is the claimed size believable? Asked before that much memory is taken. */
bool mg_zstd_may_hold(const uint8_t *src, size_t src_bytes, uint64_t unpacked);
int64_t mg_zstd_frame(const uint8_t *src, size_t src_bytes, uint8_t *dst, size_t dst_bytes);

#endif
