/* libmargay-cpu.so: machine code through LLVM's C interface. Opened only by the CPU device, in a
 * namespace of its own; exports mg_cpu_plugin alone. */
#include "device/cpu/plugin/jit.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <llvm-c/Analysis.h>
#include <llvm-c/Error.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>

struct jit {
    LLVMOrcLLJITRef lljit;
    LLVMTargetMachineRef machine;
    const char *cpu;
    pthread_mutex_t lock;
    unsigned n;
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
static const char *const features[EMU_ISA_COUNT] = {"", "+prefer-256-bit", "-prefer-256-bit,+avx512cd"};

static LLVMTargetMachineRef machine_new(enum emu_isa isa, char *why, size_t bytes)
{
    char *triple = LLVMGetDefaultTargetTriple(), *err = NULL;
    LLVMTargetRef t;
    LLVMTargetMachineRef m = NULL;
    if (LLVMGetTargetFromTriple(triple, &t, &err)) {
        say(why, bytes, "%s", err);
        LLVMDisposeMessage(err);
    } else {
        const char *level = getenv("MARGAY_CPU_CODEGEN");
        m = LLVMCreateTargetMachine(t, triple, cpus[isa], features[isa], level ? (LLVMCodeGenOptLevel)atoi(level) : LLVMCodeGenLevelLess, LLVMRelocPIC, LLVMCodeModelDefault);
    }
    LLVMDisposeMessage(triple);
    return m;
}

static void *jit_open(enum emu_isa isa, char *why, size_t bytes)
{
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    struct jit *j = calloc(1, sizeof *j);
    if (!j || !(j->machine = machine_new(isa, why, bytes))) {
        free(j);
        return NULL;
    }
    LLVMTargetMachineRef for_linker = machine_new(isa, why, bytes);
    LLVMOrcLLJITBuilderRef b = LLVMOrcCreateLLJITBuilder();
    LLVMOrcLLJITBuilderSetJITTargetMachineBuilder(b, LLVMOrcJITTargetMachineBuilderCreateFromTargetMachine(for_linker));
    if (failed(LLVMOrcCreateLLJIT(&j->lljit, b), why, bytes)) {
        LLVMDisposeTargetMachine(j->machine);
        free(j);
        return NULL;
    }
    /* memcpy and the like, should code generation want them */
    LLVMOrcDefinitionGeneratorRef process = NULL;
    if (!LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess(&process, LLVMOrcLLJITGetGlobalPrefix(j->lljit), NULL, NULL))
        LLVMOrcJITDylibAddGenerator(LLVMOrcLLJITGetMainJITDylib(j->lljit), process);
    pthread_mutex_init(&j->lock, NULL);
    return j;
}

static void jit_close(void *p)
{
    struct jit *j = p;
    char ignored[200];
    failed(LLVMOrcDisposeLLJIT(j->lljit), ignored, sizeof ignored);
    LLVMDisposeTargetMachine(j->machine);
    pthread_mutex_destroy(&j->lock);
    free(j);
}

static void dump(LLVMModuleRef m, const char *kernel, const char *what)
{
    const char *dir = getenv("MARGAY_CPU_DUMP");
    char path[600], *err = NULL;
    if (!dir) return;
    snprintf(path, sizeof path, "%s/%.200s.%s.ll", dir, kernel, what);
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

#define PASSES "mem2reg,early-cse,instcombine<no-verify-fixpoint>,simplifycfg,early-cse,loop-mssa(licm),instcombine<no-verify-fixpoint>,simplifycfg"

static bool optimise(struct jit *j, LLVMModuleRef m, char *why, size_t bytes)
{
    LLVMPassBuilderOptionsRef o = LLVMCreatePassBuilderOptions();
    const char *passes = getenv("MARGAY_CPU_PASSES");
    bool bad = failed(LLVMRunPasses(m, passes ? passes : PASSES, j->machine, o), why, bytes);
    LLVMDisposePassBuilderOptions(o);
    return !bad;
}

static bool compile_locked(struct jit *j, struct cpu_func *f, struct cpu_object *out, char *why, size_t bytes)
{
    char name[32], *err = NULL;
    const struct mg_module *ir = f->fn->mod->ir;
    const char *kernel = f->fn->code->kernel->name;
    (void)ir;
    snprintf(name, sizeof name, "mg%u", ++j->n);
#if LLVM_VERSION_MAJOR >= 22
    LLVMContextRef c = LLVMContextCreate();
    LLVMOrcThreadSafeContextRef safe = LLVMOrcCreateNewThreadSafeContextFromLLVMContext(c);
#else
    LLVMOrcThreadSafeContextRef safe = LLVMOrcCreateNewThreadSafeContext();
    LLVMContextRef c = LLVMOrcThreadSafeContextGetContext(safe);
#endif
    LLVMModuleRef m = LLVMModuleCreateWithNameInContext(name, c);
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(j->machine);
    char *triple = LLVMGetTargetMachineTriple(j->machine);
    LLVMSetModuleDataLayout(m, layout);
    LLVMSetTarget(m, triple);
    LLVMDisposeMessage(triple);
    LLVMDisposeTargetData(layout);
    double clock = 0;
    lap(&clock);
    bool ok = mg_emit_function(m, f, name) != NULL;
    double t_emit = lap(&clock);
    if (!ok) say(why, bytes, "an operation has no code");
    dump(m, kernel, "0");
    if (ok && LLVMVerifyModule(m, LLVMReturnStatusAction, &err)) ok = say(why, bytes, "%.400s", err);
    if (err) LLVMDisposeMessage(err);
    ok = ok && optimise(j, m, why, bytes);
    double t_passes = lap(&clock);
    unsigned n_ir = 0;
    if (getenv("MARGAY_CPU_VERBOSE"))
        for (LLVMBasicBlockRef bb = LLVMGetFirstBasicBlock(LLVMGetNamedFunction(m, name)); bb; bb = LLVMGetNextBasicBlock(bb))
            for (LLVMValueRef v = LLVMGetFirstInstruction(bb); v; v = LLVMGetNextInstruction(v)) n_ir++;
    LLVMMemoryBufferRef object = NULL;
    if (ok) dump(m, kernel, "1");
    err = NULL;
    if (ok && LLVMTargetMachineEmitToMemoryBuffer(j->machine, m, LLVMObjectFile, &err, &object)) {
        ok = say(why, bytes, "%.400s", err);
        LLVMDisposeMessage(err);
    }
    if (n_ir) fprintf(stderr, "margay cpu: %u operations, %u IR instructions: %.1f ms IR, %.1f passes, %.1f code\n", f->n_insts, n_ir, t_emit, t_passes, lap(&clock));
    LLVMDisposeModule(m);
    LLVMOrcDisposeThreadSafeContext(safe);
    if (!ok) return false;
    LLVMOrcResourceTrackerRef rt = LLVMOrcJITDylibCreateResourceTracker(LLVMOrcLLJITGetMainJITDylib(j->lljit));
    LLVMOrcExecutorAddress at = 0;
    if (failed(LLVMOrcLLJITAddObjectFileWithRT(j->lljit, rt, object), why, bytes) || failed(LLVMOrcLLJITLookup(j->lljit, &at, name), why, bytes)) {
        LLVMOrcReleaseResourceTracker(rt);
        return false;
    }
    out->fn = (cpu_code_fn)(uintptr_t)at;
    out->own = rt;
    return true;
}

static bool jit_compile(void *p, struct cpu_func *f, struct cpu_object *out, char *why, size_t bytes)
{
    struct jit *j = p;
    pthread_mutex_lock(&j->lock);
    bool ok = compile_locked(j, f, out, why, bytes);
    pthread_mutex_unlock(&j->lock);
    return ok;
}

static void jit_release(void *p, struct cpu_object *o)
{
    struct jit *j = p;
    char ignored[200];
    pthread_mutex_lock(&j->lock);
    failed(LLVMOrcResourceTrackerRemove(o->own), ignored, sizeof ignored);
    LLVMOrcReleaseResourceTracker(o->own);
    pthread_mutex_unlock(&j->lock);
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
    static const struct cpu_plugin plugin = {CPU_PLUGIN_VERSION, LLVM_VERSION_STRING, jit_open, jit_compile, jit_release, jit_close};
    return &plugin;
}
