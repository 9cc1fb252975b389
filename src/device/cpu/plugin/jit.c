/* libmargay-cpu.so: functions to objects of machine code through LLVM's C interface. Opened only by the
 * CPU device, in a namespace of its own; exports mg_cpu_plugin alone. What it makes is loaded by
 * device/cpu/object.c. */
#include "device/cpu/plugin/jit.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <llvm-c/Analysis.h>
#include <llvm-c/Error.h>
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>

#include "base/env.h"

/* Instructions of a function: more take LLVM many seconds, and of more than
 * GOOD_IR behind the passes code is made in another way, in a tenth of the
 * time. Such code takes twice to ten times as long.
 */
#define MAX_IR  100000
#define GOOD_IR 40000

struct jit {
    enum emu_isa isa;
    LLVMTargetMachineRef machine, quick;
};

static bool say(char *why, size_t bytes, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static bool say(char *why, size_t bytes, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, bytes, fmt, ap);
    va_end(ap);
    return false;
}

static bool failed(LLVMErrorRef err, char *why, size_t bytes)
{
    if (!err) return false;
    char *text = LLVMGetErrorMessage(err);
    say(why, bytes, "%s", text);
    LLVMDisposeErrorMessage(text);
    return true;
}

static const char *const cpus[EMU_ISA_COUNT] = {"x86-64", "x86-64-v3", "x86-64-v4"};
static const char *const features[EMU_ISA_COUNT] = {"", "+prefer-256-bit,+prfchw", "-prefer-256-bit,+avx512cd,+prfchw"};

static LLVMTargetMachineRef machine_new(enum emu_isa isa, LLVMCodeGenOptLevel usual, char *why, size_t bytes)
{
    char *triple = LLVMGetDefaultTargetTriple(), *err = NULL;
    LLVMTargetRef t;
    LLVMTargetMachineRef m = NULL;
    if (LLVMGetTargetFromTriple(triple, &t, &err)) {
        say(why, bytes, "%s", err);
        LLVMDisposeMessage(err);
    } else {
        const char *level = mg_env(MG_ENV_CPU_CODEGEN);
        m = LLVMCreateTargetMachine(t, triple, cpus[isa], features[isa],
                                    level ? (LLVMCodeGenOptLevel)atoi(level) : usual, LLVMRelocPIC,
                                    LLVMCodeModelDefault);
    }
    LLVMDisposeMessage(triple);
    return m;
}

/* What the code generator does at length and this code gains nothing from: an eighth to a quarter of its time
 * (docs/history/2026-11.md). Options hold for a whole LLVM: set where it is linked in and nobody else's. */
static void start_llvm(void)
{
#ifdef CPU_LLVM_LINKED
    static const char *const options[] = {"margay", "-disable-lsr", "-enable-misched=false",
                                          "-disable-x86-domain-reassignment"};
    LLVMParseCommandLineOptions((int)MG_COUNT_OF(options), options, NULL);
#endif
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
}

static void jit_close(void *p)
{
    struct jit *j = p;
    if (j->machine) LLVMDisposeTargetMachine(j->machine);
    if (j->quick) LLVMDisposeTargetMachine(j->quick);
    free(j);
}

static void *jit_open(enum emu_isa isa, char *why, size_t bytes)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start_llvm);
    struct jit *j = calloc(1, sizeof *j);
    if (!j) return NULL;
    j->isa = isa;
    j->machine = machine_new(isa, LLVMCodeGenLevelLess, why, bytes);
    j->quick = j->machine ? machine_new(isa, LLVMCodeGenLevelNone, why, bytes) : NULL;
    if (j->quick) return j;
    jit_close(j);
    return NULL;
}

static void dump(LLVMModuleRef m, const char *kernel, bool whole, const char *what)
{
    const char *dir = mg_env(MG_ENV_CPU_DUMP);
    char path[600], *err = NULL;
    if (!dir) return;
    snprintf(path, sizeof path, "%s/%.200s.%s%s.ll", dir, kernel, whole ? "w" : "", what);
    LLVMPrintModuleToFile(m, path, &err);
}

/* Where the time went, for MARGAY_CPU_VERBOSE: CPU time of this thread. */
static double lap(double *last)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    double now = (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6, d = now - *last;
    *last = now;
    return d;
}

#define TIDY  ",instcombine<no-verify-fixpoint>,simplifycfg"
#define FIRST "mem2reg,early-cse" TIDY ",early-cse,loop-mssa(licm)"
/* Whole CTAs of few warps: without a loop over these, what one region stores the next one has in registers, and need
 * not be stored where it is stored once more. */
#define UNROLLED FIRST ",loop-unroll-full" TIDY ",gvn<no-pre;no-load-pre>,dse" TIDY

static bool optimise(struct jit *j, LLVMModuleRef m, bool unroll, char *why, size_t bytes)
{
    LLVMPassBuilderOptionsRef o = LLVMCreatePassBuilderOptions();
    const char *passes = mg_env(MG_ENV_CPU_PASSES);
    if (!passes) passes = unroll ? UNROLLED : FIRST TIDY;
    bool bad = failed(LLVMRunPasses(m, passes, j->machine, o), why, bytes);
    LLVMDisposePassBuilderOptions(o);
    return !bad;
}

static bool is_variable(LLVMValueRef v)
{
    return LLVMIsAAllocaInst(v) != NULL;
}

/* As LLVM's users count them: without variables and what reads and writes these, which the first pass makes values. */
static unsigned count_instructions(LLVMModuleRef m)
{
    unsigned n = 0;
    for (LLVMValueRef fn = LLVMGetFirstFunction(m); fn; fn = LLVMGetNextFunction(fn))
        for (LLVMBasicBlockRef bb = LLVMGetFirstBasicBlock(fn); bb; bb = LLVMGetNextBasicBlock(bb))
            for (LLVMValueRef v = LLVMGetFirstInstruction(bb); v; v = LLVMGetNextInstruction(v))
                n += !is_variable(v) && !(LLVMIsALoadInst(v) && is_variable(LLVMGetOperand(v, 0))) &&
                     !(LLVMIsAStoreInst(v) && is_variable(LLVMGetOperand(v, 1)));
    return n;
}

/* What LLVM would print and, of errors, end the process for; a frame that a thread's stack might not hold is one. */
static void heard(LLVMDiagnosticInfoRef d, void *user)
{
    char *text = LLVMGetDiagInfoDescription(d);
    if (LLVMGetDiagInfoSeverity(d) == LLVMDSError || strstr(text, "stack frame")) *(bool *)user = true;
    LLVMDisposeMessage(text);
}

static bool jit_compile(void *p, struct cpu_func *f, bool whole, void **object, size_t *object_bytes, char *why,
                        size_t bytes)
{
    struct jit *j = p;
    const char *kernel = f->fn->code->kernel->name;
    char *err = NULL;
    bool refused = false;
    LLVMContextRef c = LLVMContextCreate();
    LLVMContextSetDiagnosticHandler(c, heard, &refused);
    LLVMModuleRef m = LLVMModuleCreateWithNameInContext(CPU_SYMBOL, c);
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(j->machine);
    char *triple = LLVMGetTargetMachineTriple(j->machine);
    LLVMSetModuleDataLayout(m, layout);
    LLVMSetTarget(m, triple);
    LLVMDisposeMessage(triple);
    LLVMDisposeTargetData(layout);
    double clock = 0;
    lap(&clock);
    bool ok = whole ? mg_emit_whole(m, f, CPU_SYMBOL) : mg_emit_function(m, f, CPU_SYMBOL);
    double t_emit = lap(&clock);
    unsigned n_ir = ok ? count_instructions(m) : 0, scalar = f->n_lone > f->n_insts / 2 ? 3 : 1; /* takes less time */
    *object_bytes = 0;
    if (!ok)
        say(why, bytes, "an operation has no code");
    else if (n_ir > MAX_IR * scalar)
        ok = say(why, bytes, "%u instructions are more than the compiler takes", n_ir);
    if (!ok) *object_bytes = CPU_NEVER;
    dump(m, kernel, whole, "0");
    if (ok &&
        LLVMVerifyModule(m, mg_env_is(MG_ENV_CPU_VERIFY, "1") ? LLVMAbortProcessAction : LLVMReturnStatusAction, &err))
        ok = say(why, bytes, "%.400s", err); /* LLVM would end the process */
    if (err) LLVMDisposeMessage(err);
    ok = ok && optimise(j, m, whole && n_ir <= GOOD_IR / 2, why, bytes);
    if (ok && j->isa == EMU_ISA_AVX512) mg_part_merges(m);
    double t_passes = lap(&clock);
    unsigned n_left = ok ? count_instructions(m) : 0;
    LLVMMemoryBufferRef code = NULL;
    if (ok) dump(m, kernel, whole, "1");
    err = NULL;
    if (ok &&
        LLVMTargetMachineEmitToMemoryBuffer(n_left > GOOD_IR ? j->quick : j->machine, m, LLVMObjectFile, &err, &code)) {
        ok = say(why, bytes, "%.400s", err);
        LLVMDisposeMessage(err);
    }
    if (ok && refused) {
        LLVMDisposeMemoryBuffer(code);
        ok = say(why, bytes, "its frame is larger than 1 MiB");
        *object_bytes = CPU_NEVER;
    }
    if (n_left && mg_env_is(MG_ENV_CPU_VERBOSE, "1"))
        fprintf(stderr,
                "margay cpu: %s, %u operations, %u loops lane by lane, %u regions fused, %u functions called, %u IR "
                "instructions (%u after the passes): %.1f ms IR, %.1f passes, %.1f "
                "code\n",
                whole ? "whole CTAs" : "warps", whole ? f->region.n_ops : f->n_insts, f->n_serials,
                whole ? f->region.n_fused : 0, f->n_pures, n_ir, n_left, t_emit, t_passes, lap(&clock));
    LLVMDisposeModule(m);
    LLVMContextDispose(c);
    if (!ok) return false;
    *object_bytes = LLVMGetBufferSize(code);
    *object = malloc(*object_bytes);
    if (*object)
        memcpy(*object, LLVMGetBufferStart(code), *object_bytes);
    else
        ok = say(why, bytes, "host memory ran out");
    LLVMDisposeMemoryBuffer(code);
    return ok;
}

/* LLVM's static objects are not destroyed at exit: a kernel may be being compiled just then. With
 * RTLD_DEEPBIND libLLVM finds this one before libc's. */
__attribute__((visibility("default"))) int __cxa_atexit(void (*fn)(void *), void *arg, void *dso);
int __cxa_atexit(void (*fn)(void *), void *arg, void *dso)
{
    (void)fn;
    (void)arg;
    (void)dso;
    return 0;
}

__attribute__((visibility("default"))) const struct cpu_plugin *mg_cpu_plugin(void);
const struct cpu_plugin *mg_cpu_plugin(void)
{
    static const struct cpu_plugin plugin = {CPU_PLUGIN_VERSION, LLVM_VERSION_STRING, jit_open, jit_compile, jit_close};
    return &plugin;
}
