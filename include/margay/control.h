/* Switching Margay on and off, from inside the program or from another one (`margay ctl`).
 *
 *   #include <margay/control.h>
 *   mg_control_set(0);      from the next launch on, kernels run native
 *   mg_control_set(1);      instrumented again
 *
 * Nothing needs to be linked: the library maps one page of a file DIR/ctl.<pid> into the process, which
 * is found by name in /proc/self/maps. Without Margay the calls return -1 and do nothing. Graphs that
 * were instantiated keep the code they were made with. */
#ifndef MARGAY_CONTROL_H
#define MARGAY_CONTROL_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define MG_CONTROL_MAGIC 0x314c5443474d0a00ull
struct mg_control_page {
    uint64_t magic;
    uint32_t on;          /* written by anybody, read at every launch */
    uint32_t pid;
    uint64_t launches;    /* seen so far */
    uint64_t selected;    /* of them: to be instrumented */
};

static inline volatile struct mg_control_page *mg_control_page(void)
{
    static volatile struct mg_control_page *page;
    char line[4352];
    FILE *f = page ? NULL : fopen("/proc/self/maps", "re");
    while (f && fgets(line, sizeof line, f)) {
        unsigned long long at;
        const char *name = strrchr(line, '/');
        if (name && !strncmp(name, "/ctl.", 5) && sscanf(line, "%llx-", &at) == 1 &&
            ((volatile struct mg_control_page *)(uintptr_t)at)->magic == MG_CONTROL_MAGIC) {
            page = (volatile struct mg_control_page *)(uintptr_t)at;
            break;
        }
    }
    if (f)
        fclose(f);
    return page;
}

/* The state until now (0 off, 1 on), or -1: Margay is not there, or no CUDA call was made yet. */
static inline int mg_control_set(int on)
{
    volatile struct mg_control_page *p = mg_control_page();
    return p ? (int)__atomic_exchange_n(&p->on, (uint32_t)!!on, __ATOMIC_ACQ_REL) : -1;
}
static inline int mg_control_get(void)
{
    volatile struct mg_control_page *p = mg_control_page();
    return p ? (int)__atomic_load_n(&p->on, __ATOMIC_ACQUIRE) : -1;
}

#endif
