/* Functions of the C library that libmargay stands in for while it is preloaded:
 *   dlopen, dlmopen  libcuda.so, libcuda.so.1 and absolute paths of it are this library; the same for
 *                    libcudart.so.13 on the software devices
 *   dlsym            a pointer into the real driver becomes our entry of that name;
 *                    nvrtcGetCUBIN is ours as well (nvrtc.c)
 * The loader looks at who called dlopen (RPATH, namespace) and dlsym (RTLD_NEXT), so every call that
 * is passed on is a tail call: the real function sees the application's return address. */
#include "inject/symbols.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/thread.h"
#include "inject/backend.h"
#include "inject/calls.h"
#include "inject/hooks.h"
#include "inject/session.h"

/* Called by the jumps below. */
const char *mg_preload_name(const char *name);
const char *mg_preload_name_in(Lmid_t space, const char *name);
void *mg_preload_symbol(void *handle, const char *name);
MG_HIDDEN void *mg_real_dlopen, *mg_real_dlmopen, *mg_real_dlsym;
MG_HIDDEN extern const char mg_own_dlopen[], mg_own_dlmopen[], mg_own_dlsym[];

static char self[4096]; /* path of this library */

/* A function of the C library as its own tables have it: the default version of the name. */
static void *find_in(const struct link_map *l, const char *name)
{
    const Elf64_Sym *symbols = NULL;
    const char *texts = NULL;
    const uint32_t *hash = NULL;
    const Elf64_Half *versions = NULL;
    for (const Elf64_Dyn *d = l->l_ld; d->d_tag != DT_NULL; d++) {
        if (d->d_tag == DT_SYMTAB) symbols = (const Elf64_Sym *)d->d_un.d_ptr;
        if (d->d_tag == DT_STRTAB) texts = (const char *)d->d_un.d_ptr;
        if (d->d_tag == DT_GNU_HASH) hash = (const uint32_t *)d->d_un.d_ptr;
        if (d->d_tag == DT_VERSYM) versions = (const Elf64_Half *)d->d_un.d_ptr;
    }
    if (!symbols || !texts || !hash || !hash[0]) return NULL;
    const uint32_t *buckets = hash + 4 + 2 * hash[2], *chain = buckets + hash[0];
    uint32_t h = 5381;
    for (const char *c = name; *c; c++) h = h * 33 + (unsigned char)*c;
    for (uint32_t i = buckets[h % hash[0]]; i >= hash[1]; i++) {
        uint32_t one = chain[i - hash[1]];
        bool hidden = versions && versions[i] & 0x8000;
        if ((one | 1) == (h | 1) && !hidden && symbols[i].st_shndx != SHN_UNDEF &&
            !strcmp(texts + symbols[i].st_name, name))
            return (char *)l->l_addr + symbols[i].st_value;
        if (one & 1) break;
    }
    return NULL;
}

/* The C library's own, past everybody who stands in for it. NULL: it is not found. */
void *mg_libc_symbol(const char *name)
{
    void *f = NULL;
    for (const struct link_map *l = _r_debug.r_map; l && !f; l = l->l_next) {
        const char *base = l->l_name ? strrchr(l->l_name, '/') : NULL;
        if (base && (!strcmp(base, "/libc.so.6") || !strcmp(base, "/libdl.so.2"))) f = find_in(l, name);
    }
    return f;
}

/* Whatever else interposes: by version, since dlsym itself is ours. A profiler that stands in for dlvsym,
 * too, and looks behind itself, finds us: then the C library's tables are asked. */
static void *libc_function(const char *name, const char *older, const void *ours)
{
    void *f = dlvsym(RTLD_NEXT, name, "GLIBC_2.34");
    f = f ? f : dlvsym(RTLD_NEXT, name, older);
    if (f == ours && mg_libc_symbol(name)) f = mg_libc_symbol(name);
    return f;
}

static void find_real(void)
{
    if (mg_real_dlsym) return;
    mg_real_dlopen = libc_function("dlopen", "GLIBC_2.2.5", mg_own_dlopen);
    mg_real_dlmopen = libc_function("dlmopen", "GLIBC_2.3.4", mg_own_dlmopen);
    mg_real_dlsym = libc_function("dlsym", "GLIBC_2.2.5", mg_own_dlsym);
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
    if (!name || mg_inside) return name;
    if (is_library(name, "libcudart.so.13")) { /* software devices: our own runtime, wherever it is looked for */
        const char *ours = mg_config_env(mg_env_name(MG_ENV_CUDART));
        return ours && *ours ? ours : name;
    }
    if (!is_library(name, "libcuda.so")) return name;
    if (!self[0]) {
        Dl_info info;
        if (!dladdr((void *)(uintptr_t)mg_preload_name, &info) || !info.dli_fname) return name;
        strncpy(self, info.dli_fname, sizeof self - 1);
    }
    return self;
}

static void *nothing(void *arg)
{
    return arg;
}

/* A driver in another namespace starts its threads with that namespace's C library. The program's own
 * would go on as for one thread alone, and leave the loader's lock without waking who waits for it:
 * the process hangs at its end. So it sees a thread, too. */
const char *mg_preload_name_in(Lmid_t space, const char *name)
{
    pthread_t thread;
    if (space != LM_ID_BASE && mg_thread_start(nothing, NULL, 0, &thread)) pthread_join(thread, NULL);
    return mg_preload_name(name);
}

/* NULL: the C library shall answer. */
void *mg_preload_symbol(void *handle, const char *name)
{
    find_real();
    if (handle == RTLD_NEXT || handle == RTLD_DEFAULT || mg_inside || !name) return NULL;
    if (!strcmp(name, "nvrtcGetCUBIN")) return mg_nvrtc_symbol(mg_real_symbol(handle, name));
    if (strstr(name, "nvJitLink")) return mg_nvjitlink_symbol(name, mg_real_symbol(handle, name));
    if (!mg_session_can(MG_BACKEND_HARDWARE) || strncmp(name, "cu", 2)) return NULL;
    void *p = mg_real_symbol(handle, name);
    int entry = p ? mg_slot_find(p) : -1;
    return mg_calls_pointer(entry, NULL);
}

/* In assembly, because a compiler makes tail calls only when it optimises. */
__asm__(".text\n"
        ".globl dlopen\n.type dlopen,@function\n"
        ".hidden mg_own_dlopen, mg_own_dlmopen, mg_own_dlsym\n"
        "mg_own_dlopen: dlopen: push %rsi\n"
        " call mg_preload_name\n"
        " pop %rsi\n mov %rax,%rdi\n"
        " jmp *mg_real_dlopen(%rip)\n.size dlopen,.-dlopen\n"
        ".globl dlmopen\n.type dlmopen,@function\n"
        "mg_own_dlmopen: dlmopen: push %rdi\n push %rdx\n sub $8,%rsp\n"
        " call mg_preload_name_in\n"
        " add $8,%rsp\n pop %rdx\n pop %rdi\n mov %rax,%rsi\n"
        " jmp *mg_real_dlmopen(%rip)\n.size dlmopen,.-dlmopen\n"
        ".globl dlsym\n.type dlsym,@function\n"
        "mg_own_dlsym: dlsym: push %rdi\n push %rsi\n sub $8,%rsp\n"
        " call mg_preload_symbol\n"
        " add $8,%rsp\n pop %rsi\n pop %rdi\n test %rax,%rax\n jz 1f\n ret\n"
        "1: jmp *mg_real_dlsym(%rip)\n.size dlsym,.-dlsym\n");
