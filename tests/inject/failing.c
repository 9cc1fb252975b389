/* Preloaded: the FAIL_AT-th allocation that Margay's in-process libraries ask for fails, with FAIL_ON every one from
 * there on. FAIL_COUNT=FILE: writes how many there were. Calls are told apart by where they return to. */
#define _GNU_SOURCE
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *p, size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);

static struct {
    uintptr_t from, to;
} ours[2];
static unsigned long fail_at, n_calls;
static bool fail_on;

static int find_library(struct dl_phdr_info *info, size_t bytes, void *user)
{
    static const char *const names[] = {"lib/margay/driver/libcuda.so", "lib/margay/cudart/libcudart.so"};
    (void)bytes, (void)user;
    for (int k = 0; k < 2; k++)
        for (int i = 0; strstr(info->dlpi_name, names[k]) && i < info->dlpi_phnum; i++)
            if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
                ours[k].from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
                ours[k].to = ours[k].from + info->dlpi_phdr[i].p_memsz;
            }
    return 0;
}

__attribute__((constructor)) static void begin(void)
{
    dl_iterate_phdr(find_library, NULL);
    fail_at = getenv("FAIL_AT") ? strtoul(getenv("FAIL_AT"), NULL, 10) : 0;
    fail_on = getenv("FAIL_ON") != NULL;
}

__attribute__((destructor)) static void end(void)
{
    FILE *f = ours[0].from && getenv("FAIL_COUNT") ? fopen(getenv("FAIL_COUNT"), "w") : NULL;
    if (f) {
        fprintf(f, "%lu\n", n_calls);
        fclose(f);
    }
}

static bool fails(const void *to)
{
    uintptr_t at = (uintptr_t)to;
    if (!((at >= ours[0].from && at < ours[0].to) || (at >= ours[1].from && at < ours[1].to))) return false;
    unsigned long k = __atomic_add_fetch(&n_calls, 1, __ATOMIC_RELAXED);
    if (!fail_at || !(k == fail_at || (fail_on && k > fail_at))) return false;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t bytes)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(bytes);
}
void *calloc(size_t n, size_t bytes)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(n, bytes);
}
void *realloc(void *p, size_t bytes)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_realloc(p, bytes);
}
void *aligned_alloc(size_t a, size_t bytes)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_memalign(a, bytes);
}
