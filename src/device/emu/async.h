/* Asynchronous copies and mbarriers: what an instruction names besides registers, and the state of
 * a barrier. Used by async.c, mbar.c, tma.c, cluster.c and their decoder, decode_async.c.
 *
 * A copy is carried out where it is issued: a program without races cannot tell, since it must wait
 * (wait_group, mbarrier, bulk_group) before it looks at the destination or reuses the source.
 * Waiting for groups is then no work, and an mbarrier is told of the bytes at once.
 */
#ifndef MG_DEVICE_EMU_ASYNC_H
#define MG_DEVICE_EMU_ASYNC_H

#include "device/emu/emu.h"

/* A memory operand is an emu_op of its own that never runs: base register, offset, space, cache and
 * flags say what is named, node where it stands. */
/* Host address of an operand for one lane, checked: all bytes in one live allocation, shared memory
 * of the CTA, or (EMU_OF_CLUSTER) of another CTA of the cluster. Faults when it is not. */
char *emu_at(struct emu_frame *f, const struct emu_op *place, const char *regs, uint32_t lane, uint64_t bytes,
             uint32_t align);
/* The same address in another CTA of the cluster; p lies in some CTA's shared memory. */
char *emu_peer_at(struct emu_frame *f, const char *p, uint32_t rank);

#define EMU_MAX_DIMS 5
struct emu_copy {                /* cp.async, cp.async.bulk, cp.reduce.async.bulk, st.async, red.async; owner: code */
    struct emu_op dst, src, bar; /* bar.node 0: no mbarrier is told */
    uint32_t bytes, size;        /* constant, or offset of a 32-bit register (0: constant) */
    uint32_t src_size, skip, skip_flip; /* registers: bytes read (the rest is zero), predicate .ignore-src */
    uint32_t ctas, byte_mask;           /* registers: multicast mask, .cp_mask; 0: none */
    uint8_t reduce;                     /* 1 + enum emu_atom, 0: plain */
    uint8_t type;                       /* of the elements reduced or stored */
    uint8_t vec, values_wide;           /* st.async, red.async: registers stored */
    uint32_t values[4];
    uint8_t n_dims, to_global, skips;
    uint32_t coords[EMU_MAX_DIMS]; /* registers */
    struct emu_op map;
    uint32_t field, ordinal, value; /* tensormap.replace: what, which dimension, register */
};

/* dst[i] = reduce(dst[i], src[i]), element by element; atomic unless private_memory (atom.c) */
void emu_reduce_bytes(unsigned op, enum mg_type t, char *dst, const char *src, uint64_t bytes, bool private_memory);

/* An mbarrier is one 64-bit word: pending arrivals in bits 0-19, arrivals a phase expects in 20-39,
 * bytes still to come (signed) in 40-61, the phase's parity in 63. A token is the word before. */
void emu_mbar_init(uint64_t *bar, uint32_t count);
bool emu_mbar_arrive(uint64_t *bar, uint32_t count, bool drop); /* false: more arrivals than expected */
void emu_mbar_expect(uint64_t *bar, uint32_t bytes);
void emu_mbar_complete(uint64_t *bar, uint32_t bytes);
static inline uint32_t emu_mbar_phase(uint64_t word)
{
    return (uint32_t)(word >> 63);
}

enum emu_mbar_kind {
    EMU_MBAR_INIT,
    EMU_MBAR_INVAL,
    EMU_MBAR_ARRIVE,
    EMU_MBAR_DROP,
    EMU_MBAR_EXPECT,
    EMU_MBAR_COMPLETE,
    EMU_MBAR_TEST,
    EMU_MBAR_NOINC
};
struct emu_mbar { /* owner: code */
    struct emu_op at;
    uint8_t kind;
    uint8_t parity;        /* test and try_wait: token is a 32-bit parity */
    uint32_t count, bytes; /* registers, 0: count 1, no bytes */
    uint32_t token;        /* register */
};
uint32_t emu_mbar_awaited(const struct emu_mbar *b, const char *regs,
                          uint32_t lane); /* phase whose end is waited for */

#endif
