/* The file of a capture (docs/capture.md): a run's work for the device, so that it can be run again without the
 * program.
 *
 *   head | frame | frame | ...            DATA: one chunk of content, each different content once
 *                                         OPS:  a piece of the list of operations (ops.def)
 *                                         END:  the last, with what all others must add up to
 *
 * An operation is varints: kind, number of words, the words, bytes of payload, payload. Content of up to
 * MG_CAP_INLINE bytes is payload; longer content is cut into chunks of MG_CAP_CHUNK bytes, whose numbers follow the
 * words; number 0 is a chunk of zeros. */
#ifndef MG_CAPTURE_FORMAT_H
#define MG_CAPTURE_FORMAT_H

#include "base/compiler.h"

#define MG_CAP_MAGIC       "MGCAPTR1"
#define MG_CAP_FRAME_MAGIC 0x464d4147u /* GAMF */
enum {
    MG_CAP_VERSION = 3, /* 1: a frame's crc does not say what stands before it; 2: no operation `left` */
    MG_CAP_OLDEST = 1,
    MG_CAP_CHUNK = 65536,
    MG_CAP_INLINE = 512,
    MG_CAP_FRAME_MOST = 32 << 20
};

/* Where the program's device memory lies while it is captured: below what the system gives out by itself. */
#define MG_CAP_ARENA        0x300000000000u
#define MG_CAP_ARENA_BYTES  (UINT64_C(1) << 42) /* of all devices */
#define MG_CAP_MARGIN       (UINT64_C(2) << 20) /* mapped around what lies there: programs reach beyond */
#define MG_CAP_REPLAY_ARENA 0x200000000000u     /* a replay's own device memory, without a GPU */
#define MG_CAP_HEAP         0x280000000000u /* what kernels allocate, in captured programs and replays without a GPU */
#define MG_CAP_RESERVED     0x380000000000u /* what it reserves itself begins here */

struct mg_cap_head {
    char magic[8];
    uint32_t version, crc;
};
enum mg_cap_frame_type { MG_CAP_DATA = 1, MG_CAP_OPS, MG_CAP_END };
struct mg_cap_frame {
    uint32_t magic, type, raw_bytes, packed_bytes, payload_crc;
    uint32_t crc; /* of these, going on from that of the frame before: frames stay in their order */
};                /* packed as zstd where smaller */
struct mg_cap_end {
    uint64_t n_ops, n_chunks, op_bytes, n_launches;
};
_Static_assert(sizeof(struct mg_cap_head) == 16 && sizeof(struct mg_cap_frame) == 24 && sizeof(struct mg_cap_end) == 32,
               "on disk");

enum mg_cap_op_kind {
#define OP(name, words, text) MG_CAP_##name,
#include "capture/ops.def"
#undef OP
    MG_CAP_OP_COUNT
};
enum mg_cap_memory { MG_CAP_DEVICE, MG_CAP_MANAGED, MG_CAP_HOST };
enum mg_cap_launch { /* words of a launch */
                     MG_CAP_L_NUMBER,
                     MG_CAP_L_KERNEL,
                     MG_CAP_L_GRID,
                     MG_CAP_L_BLOCK = MG_CAP_L_GRID + 3,
                     MG_CAP_L_CLUSTER = MG_CAP_L_BLOCK + 3,
                     MG_CAP_L_SHARED = MG_CAP_L_CLUSTER + 3,
                     MG_CAP_L_FLAGS,
                     MG_CAP_L_STREAM,
                     MG_CAP_L_GRAPH,
                     MG_CAP_L_WHY,
                     MG_CAP_L_COUNT
};
_Static_assert(MG_CAP_L_COUNT == 16, "ops.def");
enum {
    MG_CAP_COOPERATIVE = 1,
    MG_CAP_PROGRAMMATIC = 2,
    MG_CAP_ALLOCATES = 4 /* or prints: checks of memory behind it are void */
};
enum mg_cap_side { MG_CAP_FROM_HOST, MG_CAP_AT_ADDRESS, MG_CAP_IN_ARRAY };
enum mg_cap_copy3d { /* words of a copy in up to three dimensions: 8 words of the source, 8 of the target, then */
                     MG_CAP_C_SIDE,
                     MG_CAP_C_WHERE,
                     MG_CAP_C_X,
                     MG_CAP_C_Y,
                     MG_CAP_C_Z,
                     MG_CAP_C_LEVEL,
                     MG_CAP_C_PITCH,
                     MG_CAP_C_HEIGHT,
                     MG_CAP_C_SIDE_WORDS,
                     MG_CAP_C_EXTENT = 2 * MG_CAP_C_SIDE_WORDS,
                     MG_CAP_C_HOST_BYTES = MG_CAP_C_EXTENT + 3,
                     MG_CAP_C_STREAM,
                     MG_CAP_C_COUNT
};
_Static_assert(MG_CAP_C_COUNT <= 23, "ops.def");

/* A hash of content in two words: what is stored once is told apart by it, and results are compared by it. */
void mg_cap_hash(const void *p, size_t bytes, uint64_t out[2]);
/* Words that look like addresses of this process differ in every other. */
bool mg_cap_has_addresses(const char *p, uint64_t bytes);
const char *mg_cap_op_name(uint32_t kind); /* "launch"; NULL: there is none */
uint32_t mg_cap_op_words(uint32_t kind);
bool mg_cap_has_content(uint32_t kind);

#endif
