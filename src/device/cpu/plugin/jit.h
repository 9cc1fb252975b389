/* Plugin, private: IR in, machine code out. */
#ifndef MG_DEVICE_CPU_JIT_H
#define MG_DEVICE_CPU_JIT_H

#include "device/cpu/cpu.h"

#include <llvm-c/Core.h>

LLVMValueRef mg_emit_function(LLVMModuleRef m, struct cpu_func *f, const char *name); /* emit.c; NULL: something it does not know */

#endif
