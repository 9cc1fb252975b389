/* Functions of the C library that libmargay stands in for while it is preloaded:
 *   dlopen, dlmopen  libcuda.so, libcuda.so.1 and absolute paths of it are this library; the same for
 *                    libcudart.so.13 on the software devices
 *   dlsym            a pointer into the real driver becomes our entry of that name;
 *                    nvrtcGetCUBIN is ours as well (nvrtc.c)
 * The loader looks at who called dlopen (RPATH, namespace) and dlsym (RTLD_NEXT), so every call that
 * is passed on is a tail call: the real function sees the application's return address. */
#include "inject/priv.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* Called by the jumps below. */
const char *mg_preload_name(const char *name);
void *mg_preload_symbol(void *handle, const char *name);
MG_HIDDEN void *mg_real_dlopen, *mg_real_dlmopen, *mg_real_dlsym;

static char self[4096]; /* path of this library */

/* The C library's own, whatever else interposes: by version, since dlsym itself is ours. */
static void *libc_function(const char *name, const char *older)
{
    void *f = dlvsym(RTLD_NEXT, name, "GLIBC_2.34");
    return f ? f : dlvsym(RTLD_NEXT, name, older);
}

static void find_real(void)
{
    if (mg_real_dlsym)
        return;
    mg_real_dlopen = libc_function("dlopen", "GLIBC_2.2.5");
    mg_real_dlmopen = libc_function("dlmopen", "GLIBC_2.3.4");
    mg_real_dlsym = libc_function("dlsym", "GLIBC_2.2.5");
}

void *mg_real_symbol(void *handle, const char *name)
{
    find_real();
    return ((void *(*)(void *, const char *))mg_real_dlsym)(handle, name);
}

static bool is_library(const char *name, const char *want)
{
    const char *base = strrchr(name, '/');
    size_t n = strlen(want);
    base = base ? base + 1 : name;
    return !strncmp(base, want, n) && (!base[n] || base[n] == '.');
}

const char *mg_preload_name(const char *name)
{
    find_real();
    if (!name || mg_inside)
        return name;
    if (is_library(name, "libcudart.so.13")) { /* software devices: our own runtime, wherever it is looked for */
        const char *ours = mg_config_env("MARGAY_CUDART");
        return ours && *ours ? ours : name;
    }
    if (!is_library(name, "libcuda.so"))
        return name;
    if (!self[0]) {
        Dl_info info;
        if (!dladdr((void *)(uintptr_t)mg_preload_name, &info) || !info.dli_fname)
            return name;
        strncpy(self, info.dli_fname, sizeof self - 1);
    }
    return self;
}

/* NULL: the C library shall answer. */
void *mg_preload_symbol(void *handle, const char *name)
{
    find_real();
    if (handle == RTLD_NEXT || handle == RTLD_DEFAULT || mg_inside || !name)
        return NULL;
    if (!strcmp(name, "nvrtcGetCUBIN"))
        return mg_nvrtc_symbol(mg_real_symbol(handle, name));
    if (strstr(name, "nvJitLink"))
        return mg_nvjitlink_symbol(name, mg_real_symbol(handle, name));
    if (mg_session.backend != &mg_backend_nvidia || strncmp(name, "cu", 2))
        return NULL;
    void *p = mg_real_symbol(handle, name);
    int entry = p ? mg_slot_find(p) : -1;
    return entry >= 0 ? mg_hook_table[entry] : NULL;
}

/* In assembly, because a compiler makes tail calls only when it optimises. */
__asm__(".text\n"
        ".globl dlopen\n.type dlopen,@function\n"
        "dlopen: push %rsi\n"
        " call mg_preload_name\n"
        " pop %rsi\n mov %rax,%rdi\n"
        " jmp *mg_real_dlopen(%rip)\n.size dlopen,.-dlopen\n"
        ".globl dlmopen\n.type dlmopen,@function\n"
        "dlmopen: push %rdi\n push %rdx\n sub $8,%rsp\n mov %rsi,%rdi\n"
        " call mg_preload_name\n"
        " add $8,%rsp\n pop %rdx\n pop %rdi\n mov %rax,%rsi\n"
        " jmp *mg_real_dlmopen(%rip)\n.size dlmopen,.-dlmopen\n"
        ".globl dlsym\n.type dlsym,@function\n"
        "dlsym: push %rdi\n push %rsi\n sub $8,%rsp\n"
        " call mg_preload_symbol\n"
        " add $8,%rsp\n pop %rsi\n pop %rdi\n test %rax,%rax\n jz 1f\n ret\n"
        "1: jmp *mg_real_dlsym(%rip)\n.size dlsym,.-dlsym\n");
