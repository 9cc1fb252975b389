/* What kind of work an instruction is, from its dotted text: the five classes of GT-Pin, classes that
 * follow the chapters of the PTX manual, and the width of the operation.
 *
 *                 GT-Pin                        PTX
 *   move          mov, cvt, selp, shfl ...      move
 *   logic         and, shf, setp, min ...       logic, compare
 *   control       bra, call, ret, bar ...       control, sync
 *   computation   add, fma, mma, sin ...        integer, float, half, matrix, video
 *   send          ld, st, atom, tex ...         memory, atomic, texture */
#ifndef MG_TOOL_OPCLASS_H
#define MG_TOOL_OPCLASS_H

#include "isa/isa.h"

enum mg_gt_class { MG_GT_MOVE, MG_GT_LOGIC, MG_GT_CONTROL, MG_GT_COMPUTATION, MG_GT_SEND, MG_GT_COUNT };
enum mg_op_class {
    MG_CLASS_INTEGER,
    MG_CLASS_FLOAT,
    MG_CLASS_HALF,
    MG_CLASS_MATRIX,
    MG_CLASS_VIDEO,
    MG_CLASS_COMPARE,
    MG_CLASS_LOGIC,
    MG_CLASS_MOVE,
    MG_CLASS_MEMORY,
    MG_CLASS_ATOMIC,
    MG_CLASS_TEXTURE,
    MG_CLASS_CONTROL,
    MG_CLASS_SYNC,
    MG_CLASS_OTHER,
    MG_CLASS_COUNT
};
enum mg_op_width {
    MG_WIDTH_SCALAR,
    MG_WIDTH_V2,
    MG_WIDTH_V4,
    MG_WIDTH_V8,
    MG_WIDTH_PACKED /* several values in a register */,
    MG_WIDTH_MATRIX,
    MG_WIDTH_COUNT
};

enum mg_op_class mg_form_class(const struct mg_form *f);
enum mg_gt_class mg_form_gt_class(const struct mg_form *f);
enum mg_op_width mg_form_width(const struct mg_form *f);
const char *mg_op_class_name(enum mg_op_class c);
const char *mg_gt_class_name(enum mg_gt_class c);
const char *mg_op_width_name(enum mg_op_width w);

#endif
