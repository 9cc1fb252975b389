/* Decoder, private to decode*.c: the function under work. */
#ifndef MG_DEVICE_EMU_DECODE_H
#define MG_DEVICE_EMU_DECODE_H

#include "analysis/analysis.h"
#include "device/emu/emu.h"

struct decoder {
    struct emu_code *code;
    struct emu_func *fn;
    struct mg_dmod *mod;
    const struct mg_module *m;
    const struct mg_func *f;
    struct mg_cfg *cfg;
    enum emu_isa isa;
    MG_VEC(struct emu_op) ops;
    MG_VEC(struct emu_const) consts;
    MG_VEC(struct emu_sreg) sregs;
    MG_VEC(struct emu_slot) all_slots; /* as they are made */
    MG_VEC(uint32_t) named, named_at; /* offsets that instructions name; per operation, where its instruction's begin */
    struct mg_map slots;              /* register -> offset */
    struct mg_map const_w, const_d;   /* value -> offset */
    struct mg_map locals;             /* var -> offset in the thread's stack, from the activation's base */
    struct mg_map label_block;
    struct mg_map fused; /* node of a sum -> node of the product it takes in */
    struct mg_map marks; /* --check: offset of a register -> its number in mark_list */
    MG_VEC(struct emu_mark_of) mark_list;
    uint32_t frame_at, pred_at, pred_end, trash;
    uint8_t *named_vars;   /* by whom, see note_named; NULL: not asked for */
    uint8_t *written_regs; /* by whom, see note_written; NULL: not asked for */
    uint32_t n_sites;
    uint32_t block; /* being decoded */
    mg_id node;     /* being decoded; 0 in helpers made afterwards */
    struct mg_arena scratch;
    struct mg_fault *fault;
    jmp_buf refused;
};

/* Jumps hold block numbers until the function is complete. */
#define DEC_BLOCK(b) ((const struct emu_op *)(uintptr_t)(b))
#define DEC_SELF     DEC_BLOCK(UINTPTR_MAX) /* the operation that follows */
#define DEC_FRONT    ((uintptr_t)1 << 31)
#define DEC_IN_FRONT(b)                                                                                                \
    DEC_BLOCK((uintptr_t)(b) | DEC_FRONT) /* where warps enter the loop that the block is head of; else the block */

MG_NORETURN void dec_refuse(struct decoder *d, const char *fmt, ...) MG_PRINTF(2, 3);
enum emu_class dec_class(enum mg_type t);
uint32_t dec_slot(struct decoder *d, enum emu_class c);       /* fresh */
uint32_t dec_reg(struct decoder *d, const struct mg_opnd *o); /* of a register or a component of one */
enum emu_class dec_reg_class(struct decoder *d, const struct mg_opnd *o);
uint32_t dec_const(struct decoder *d, enum emu_class c, uint64_t value);
struct emu_op *dec_emit(struct decoder *d, unsigned opcode); /* helper: not counted, not guarded */
/* Emits the instruction itself: guard and count attached. */
struct emu_op *dec_emit_inst(struct decoder *d, unsigned opcode, enum emu_ctl ctl);
void dec_set_element(struct decoder *d, struct emu_op *op, enum emu_elem elem, uint32_t count); /* of a load or store */
/* Source operand as class c, converted from type t when it is an immediate. */
uint32_t dec_src(struct decoder *d, const struct mg_opnd *o, enum emu_class c, enum mg_type t);
uint64_t dec_imm(struct decoder *d, const struct mg_opnd *o, enum mg_type t);
mg_id dec_var(struct decoder *d, mg_id var);
uint32_t dec_local(struct decoder *d, mg_id var); /* offset of a local or parameter variable */
uint32_t dec_shared(struct decoder *d, mg_id var);
uint32_t dec_label_block(struct decoder *d, mg_id label);
bool dec_falls_in(const struct decoder *d, mg_id label); /* inserted, in front of a label of the program's */
uint32_t dec_next_block(struct decoder *d);              /* in text order; n_blocks: the end */
void dec_instruction(struct decoder *d, mg_id node);     /* decode_inst.c */
void dec_memory(struct decoder *d, const struct mg_form *form, const struct mg_opnd *o, uint32_t n);
uint32_t dec_cache(struct decoder *d); /* of an operation that looks at memory */
void dec_address(struct decoder *d, struct emu_op *op, const struct mg_opnd *o, enum mg_space space);
/* tex_decode.c */
void dec_texture(struct decoder *d, const struct mg_form *form, const struct mg_opnd *o, uint32_t n);
bool dec_is_reference(const struct mg_var *v);        /* a texture, sampler or surface reference */
uint32_t dec_reference(struct decoder *d, mg_id var); /* its handle */
/* decode_async.c: true when it was one of those. */
bool dec_async(struct decoder *d, const struct mg_form *form, const struct mg_opnd *o, uint32_t n);
/* A shared::cluster address as the generic one that the access then uses. */
void dec_cluster_address(struct decoder *d, struct emu_op *proto, const struct mg_opnd *address);
/* decode_matrix.c, likewise */
bool dec_matrix(struct decoder *d, const struct mg_form *form, const struct mg_opnd *o, uint32_t n);
/* decode_fuse.c: mul and add/sub as one fma, where ptxas makes them one. */
void dec_find_fusions(struct decoder *d);
bool dec_fused(struct decoder *d, mg_id node); /* emits it; false: not one of those */
/* decode_count.c */
mg_id dec_count(struct decoder *d, mg_id node, mg_id last);
void dec_cells(struct decoder *d, const struct mg_opnd *o, uint32_t n);
void dec_request(struct decoder *d, const struct mg_opnd *o, uint32_t n);
void dec_carried(struct decoder *d, const struct mg_opnd *o, uint32_t n);
static inline bool dec_is_probe(const struct decoder *d, mg_id node) /* inserted */
{
    return d->m->nodes.at[node].flags & MG_NF_PROBE;
}
void dec_call(struct decoder *d, const struct mg_opnd *o, uint32_t n);
struct emu_func *dec_callee(struct decoder *d, mg_id func);

#endif
