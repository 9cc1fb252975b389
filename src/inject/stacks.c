/* The host's call stacks: addresses alone go into the trace, once for equal stacks, and which file lies where whenever
 * the loader's list has changed. Names are found when a report is made (span/symbols.h).
 *
 * The unwinder is libgcc's, by which C++ throws: it reads the tables that compilers write for all code, and where code
 * has none (a just-in-time compiler's that registers none) the stack ends there. It is loaded when the session begins.
 * Nothing here allocates unless files were loaded or unloaded, and a signal handler that interrupts it gets no stack.
 */
#include "inject/stacks.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <unwind.h>

#include "base/hash.h"
#include "base/io.h"
#include "inject/session.h"
#include "span/writer.h"

#define MOST_FRAMES 128u
#define OWN_FRAMES  16u /* between the unwinder and the program's call */
#define WAYS        4u

struct walk {
    uint64_t at[MOST_FRAMES];
    uint32_t n, own;
    uintptr_t caller;
    bool cut;
};
struct module {
    uint64_t begin, end, bias;
    char name[512], build_id[65];
};
struct modules {
    struct module *at;
    uint32_t n, room;
};

static _Unwind_Reason_Code (*backtrace_fn)(_Unwind_Trace_Fn, void *);
static _Unwind_Ptr (*get_ip)(struct _Unwind_Context *, int *);
static __thread bool inside;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static struct modules known;
static uint64_t generation;       /* of the loader's list, as it is in the file; read without the lock */
static uint64_t seen[4096][WAYS]; /* numbers of stacks that are in the file */
static char program[sizeof known.at->name];

bool mg_stacks_begin(void)
{
    void *lib = dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_LOCAL);
    void *walk = lib ? dlsym(lib, "_Unwind_Backtrace") : NULL, *ip = lib ? dlsym(lib, "_Unwind_GetIPInfo") : NULL;
    if (!walk || !ip) {
        mg_session_say("there are no stacks on the time line: the unwinder libgcc_s.so.1 is not here");
        return false;
    }
    memcpy(&backtrace_fn, &walk, sizeof walk);
    memcpy(&get_ip, &ip, sizeof ip);
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    program[n > 0 ? n : 0] = 0;
    return true;
}

/* ---- files with code ------------------------------------------------------------------------------------- */

static int read_generation(struct dl_phdr_info *info, size_t size, void *user)
{
    if (size >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs)
        *(uint64_t *)user = info->dlpi_adds * 0x100000000u + info->dlpi_subs + 1;
    return 1;
}

static int count_one(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)info, (void)size;
    ++*(uint32_t *)user;
    return 0;
}

static bool is_loaded(const struct dl_phdr_info *info, uint64_t begin, uint64_t bytes)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type == PT_LOAD && p->p_flags & PF_R && begin >= p->p_vaddr && bytes <= p->p_filesz &&
            begin - p->p_vaddr <= p->p_filesz - bytes)
            return true;
    }
    return false;
}

static void read_build_id(const uint8_t *note, uint64_t bytes, char *out)
{
    while (bytes >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) h;
        memcpy(&h, note, sizeof h);
        uint64_t name = (h.n_namesz + 3ull) & ~3ull, whole = sizeof h + name + ((h.n_descsz + 3ull) & ~3ull);
        if (whole > bytes) return;
        if (h.n_type == NT_GNU_BUILD_ID && h.n_namesz == 4 && !memcmp(note + sizeof h, "GNU", 4) && h.n_descsz <= 32) {
            for (uint32_t i = 0; i < h.n_descsz; i++) snprintf(out + 2 * i, 3, "%02x", note[sizeof h + name + i]);
            return;
        }
        note += whole;
        bytes -= whole;
    }
}

/* No allocation and no lock here: the loader's is held. */
static int describe(struct dl_phdr_info *info, size_t size, void *user)
{
    struct modules *m = user;
    struct module e = {.begin = UINT64_MAX, .bias = info->dlpi_addr};
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type == PT_LOAD && p->p_flags & PF_X) {
            e.begin = MG_MIN(e.begin, info->dlpi_addr + p->p_vaddr);
            e.end = MG_MAX(e.end, info->dlpi_addr + p->p_vaddr + p->p_memsz);
        } else if (p->p_type == PT_NOTE && !*e.build_id && is_loaded(info, p->p_vaddr, p->p_filesz)) {
            read_build_id((const uint8_t *)(uintptr_t)(info->dlpi_addr + p->p_vaddr), p->p_filesz, e.build_id);
        }
    }
    const char *name = info->dlpi_name && *info->dlpi_name ? info->dlpi_name : m->n ? "" : program;
    if (strlen(name) < sizeof e.name) strcpy(e.name, name);
    if (m->n == m->room) return 1;
    m->at[m->n++] = e; /* those without code, too: the first one is the program */
    return 0;
}

static bool has(const struct modules *m, const struct module *e)
{
    for (uint32_t i = 0; i < m->n; i++)
        if (m->at[i].begin == e->begin && m->at[i].end == e->end && m->at[i].bias == e->bias &&
            !strcmp(m->at[i].build_id, e->build_id) && !strcmp(m->at[i].name, e->name))
            return true;
    return false;
}

/* The whole path: a library may have been found by one from the folder of then. */
static uint32_t name_module(struct mg_span_writer *w, const struct module *e)
{
    char folder[PATH_MAX], path[PATH_MAX + sizeof e->name];
    if (*e->name == '/' || !strchr(e->name, '/') || !getcwd(folder, sizeof folder)) return mg_span_name(w, e->name);
    snprintf(path, sizeof path, "%s/%s", folder, e->name);
    return mg_span_name(w, path);
}

/* Those of `from` that `of` lacks; gone: they are there no more. */
static bool write_others(struct mg_span_writer *w, const struct modules *from, const struct modules *of, bool gone)
{
    for (uint32_t i = 0; i < from->n; i++) {
        const struct module *e = &from->at[i];
        if (e->begin >= e->end || has(of, e)) continue;
        struct mg_record_module r = {.time = mg_now_ns(), .begin = e->begin, .end = e->end, .bias = e->bias};
        if (!gone) r.name = name_module(w, e), r.build_id = mg_span_name(w, e->build_id);
        if (!mg_span_put_module(w, &r)) return false;
    }
    return true;
}

/* Under the lock. False: no memory, or a full buffer. */
static bool write_modules(struct mg_span_writer *w)
{
    struct modules m = {.room = 16};
    dl_iterate_phdr(count_one, &m.room);
    m.at = malloc(m.room * sizeof *m.at);
    if (!m.at) return false;
    dl_iterate_phdr(describe, &m);
    bool ok = write_others(w, &known, &m, true) && write_others(w, &m, &known, false);
    if (ok) {
        free(known.at);
        known = m;
    } else {
        free(m.at);
    }
    return ok;
}

/* The number that the loader's list has; 0: the file does not have that list. */
static uint64_t tell_modules(struct mg_span_writer *w)
{
    uint64_t now = 1;
    dl_iterate_phdr(read_generation, &now);
    if (now == __atomic_load_n(&generation, __ATOMIC_ACQUIRE)) return now;
    pthread_mutex_lock(&lock);
    bool ok = now == generation || write_modules(w);
    if (ok) __atomic_store_n(&generation, now, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
    return ok ? now : 0;
}

/* ---- stacks ------------------------------------------------------------------------------------------------ */

static _Unwind_Reason_Code visit(struct _Unwind_Context *c, void *user)
{
    struct walk *w = user;
    int before = 0; /* the address is that of an instruction: of a frame that a signal interrupted */
    uintptr_t ip = get_ip(c, &before);
    if (!w->n && ip != w->caller) return ++w->own < OWN_FRAMES ? _URC_NO_REASON : _URC_NORMAL_STOP;
    if (!ip) return _URC_NORMAL_STOP;
    w->cut = w->n == MOST_FRAMES;
    if (w->cut) return _URC_NORMAL_STOP;
    w->at[w->n++] = before ? ip : ip - 1;
    return _URC_NO_REASON;
}

static bool is_seen(uint64_t id)
{
    for (uint32_t i = 0; i < WAYS; i++)
        if (__atomic_load_n(&seen[id % MG_COUNT_OF(seen)][i], __ATOMIC_ACQUIRE) == id) return true;
    return false;
}

/* A stack whose number others have driven out is told again. */
static void set_seen(uint64_t id)
{
    uint64_t *row = seen[id % MG_COUNT_OF(seen)];
    uint32_t i = 0;
    while (i < WAYS && __atomic_load_n(&row[i], __ATOMIC_RELAXED)) i++;
    __atomic_store_n(&row[i < WAYS ? i : (id >> 32) % WAYS], id, __ATOMIC_RELEASE);
}

static uint64_t take(struct mg_span_writer *w, const void *caller)
{
    struct walk walk;
    walk.n = walk.own = 0;
    walk.cut = false;
    walk.caller = (uintptr_t)caller;
    uint64_t list = tell_modules(w);
    if (!list) return 0;
    backtrace_fn(visit, &walk);
    if (!walk.n) { /* the call came by a jump: its own place is known */
        walk.at[walk.n++] = walk.caller - 1;
        walk.cut = true;
    }
    uint64_t id = mg_hash64(walk.at, walk.n * sizeof *walk.at, list + walk.cut) | 1;
    if (is_seen(id)) return id;
    struct mg_record_stack r = {.time = mg_now_ns(), .id = id, .cut = walk.cut};
    if (!mg_span_put_stack(w, &r, walk.at, walk.n)) return 0;
    set_seen(id);
    return id;
}

uint64_t mg_stacks_take(struct mg_span_writer *w, const void *caller)
{
    if (inside) return 0;
    inside = true;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    uint64_t id = take(w, caller);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    inside = false;
    return id;
}
