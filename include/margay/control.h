/* Switching Margay on and off, from inside the program or from another one (`margay ctl`).
 *
 *   #include <margay/control.h>
 *   mg_control_set(0);      from the next launch on, kernels run native
 *   mg_control_set(1);      instrumented again
 *   mg_control_tool("memory", 0);   from the next launch on without this tool
 *   mg_control_tool("memory", 1);   with it; one that was not given with -t is added
 *
 * Nothing needs to be linked: the library maps one page of a file DIR/ctl.<pid> into the process, which
 * is found by name in /proc/self/maps. Without Margay the calls return -1 and do nothing. Graphs that
 * were instantiated keep the code they were made with. */
#ifndef MARGAY_CONTROL_H
#define MARGAY_CONTROL_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The gate in front of a process' launches, which `margay sched` opens and closes. Times are device time: of the GPU,
 * or of the processors that run kernels. Who waits sleeps on `door`, the scheduler sleeps on `news`. */
enum mg_gate_turn { MG_GATE_SHUT, MG_GATE_TURN /* open while there is credit */, MG_GATE_OPEN };
enum mg_gate_listens {
    MG_GATE_DEAF,
    MG_GATE_WAITERS /* and spent credit */,
    MG_GATE_IDLERS /* and work that has ended */
};
struct mg_control_gate {
    uint32_t daemon;                 /* process of the scheduler; 0: there is no gate */
    uint32_t turn;                   /* enum mg_gate_turn; written by the scheduler */
    int64_t credit_ns;               /* what is left of the turn: set by the scheduler, spent by launches that end */
    uint64_t beat_ns;                /* the scheduler's last sign of life (CLOCK_MONOTONIC) */
    uint32_t door;                   /* futex: grows when those who wait should look again */
    uint32_t news;                   /* futex: grows when the scheduler should look */
    uint32_t listens;                /* enum mg_gate_listens; set by the scheduler before it sleeps */
    uint32_t waiting;                /* threads in front of the gate */
    uint32_t looks;                  /* times that they have looked: they live */
    uint32_t dropped;                /* 1: `margay ctl PID drop`, the scheduler lets it be */
    uint64_t passed, ended;          /* launches */
    uint64_t device_ns;              /* of those that have ended */
    uint64_t longest_ns, typical_ns; /* kernels */
    uint64_t waited_ns;              /* in front of the gate, all threads */
    uint64_t forced;                 /* launches that passed though it was shut */
};

#define MG_CONTROL_MAGIC 0x334c5443474d0a00ull
#define MG_CONTROL_TOOLS 32
struct mg_control_page {
    uint64_t magic;
    uint32_t on; /* written by anybody, read at every launch */
    uint32_t pid;
    uint64_t launches;  /* seen so far */
    uint64_t selected;  /* of them: to be instrumented */
    uint32_t n_tools;   /* names that stand */
    uint32_t tools_off; /* bit t: tool t is switched off; written by anybody, read at every launch */
    char tools[MG_CONTROL_TOOLS][64];
    uint32_t busy;                     /* somebody writes a wish */
    uint32_t asked, answered;          /* wishes; the program grants them at its next launch */
    char wish[1024];                   /* a tool to be added, as -t takes it */
    char answer[200];                  /* why the last one was not granted; "": it was */
    uint64_t run;                      /* number of the run, as in the profile */
    uint16_t inside[MG_CONTROL_TOOLS]; /* calls of the tool that have not returned: of a dead process, whose they may
                                          have been */
    uint8_t doing[MG_CONTROL_TOOLS];   /* the last of them: enum mg_control_call */
    char opening[128];                 /* a shared object that is being opened as a tool */
    struct mg_control_gate gate;
    uint64_t taken; /* launches that the driver has taken, but those captured for a graph */
};
enum mg_control_call {
    MG_CONTROL_CONFIGURE,
    MG_CONTROL_BEGIN,
    MG_CONTROL_INSTRUMENT,
    MG_CONTROL_INITIALIZE,
    MG_CONTROL_READ,
    MG_CONTROL_FINALIZE,
    MG_CONTROL_STREAM,
    MG_CONTROL_END
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
    if (f) fclose(f);
    return page;
}

/* The state until now (0 off, 1 on), or -1: Margay is not there, or no CUDA call was made yet. */
static inline int mg_control_set(int on)
{
    volatile struct mg_control_page *p = mg_control_page();
    return p ? (int)__atomic_exchange_n(&p->on, (uint32_t) !!on, __ATOMIC_ACQ_REL) : -1;
}
static inline int mg_control_tool_in(volatile struct mg_control_page *p, const char *tool, int on)
{
    size_t n = strcspn(tool, ",");
    uint32_t known = __atomic_load_n(&p->n_tools, __ATOMIC_ACQUIRE);
    for (uint32_t t = 0; t < known && t < MG_CONTROL_TOOLS; t++) {
        const char *name = (const char *)(uintptr_t)p->tools[t];
        if (strncmp(name, tool, n) || name[n]) continue;
        if (on)
            __atomic_and_fetch(&p->tools_off, ~(1u << t), __ATOMIC_ACQ_REL);
        else
            __atomic_or_fetch(&p->tools_off, 1u << t, __ATOMIC_ACQ_REL);
        return 0;
    }
    uint32_t nobody = 0;
    if (!on || strlen(tool) >= sizeof p->wish) return -1;
    if (!__atomic_compare_exchange_n(&p->busy, &nobody, 1u, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return -1;
    int free_now = __atomic_load_n(&p->asked, __ATOMIC_ACQUIRE) == __atomic_load_n(&p->answered, __ATOMIC_ACQUIRE);
    if (free_now) {
        strcpy((char *)(uintptr_t)p->wish, tool);
        __atomic_add_fetch(&p->asked, 1, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&p->busy, 0, __ATOMIC_RELEASE);
    return free_now ? 0 : -1;
}
/* One tool, as -t names it ("lanes", "./mine.so,depth=3"). 0: done, or (a tool that is not there yet) asked
 * for at the next launch; -1: Margay is not there, or somebody else asks for a tool this very moment. */
static inline int mg_control_tool(const char *tool, int on)
{
    volatile struct mg_control_page *p = mg_control_page();
    return p ? mg_control_tool_in(p, tool, on) : -1;
}
static inline int mg_control_get(void)
{
    volatile struct mg_control_page *p = mg_control_page();
    return p ? (int)__atomic_load_n(&p->on, __ATOMIC_ACQUIRE) : -1;
}

#endif
