/* Plugin, private: IR in, machine code out. */
#ifndef MG_DEVICE_CPU_JIT_H
#define MG_DEVICE_CPU_JIT_H

#include "device/cpu/cpu.h"

#include <llvm-c/Core.h>

/* false: something it does not know */
bool mg_emit_function(LLVMModuleRef m, struct cpu_func *f, const char *name); /* emit.c: warp by warp, from any entry */
bool mg_emit_whole(LLVMModuleRef m, struct cpu_func *f, const char *name);    /* whole.c: CTAs from their start */
void mg_part_merges(LLVMModuleRef m); /* merge.c: what LLVM makes wrong code of with AVX-512 */

#endif
