/* Ranges, instants and names that the program gives through NVTX v3, on the time line and for --range. The first call
 * of each copy of NVTX's header opens the library that NVTX_INJECTION64_PATH names and calls InitializeInjectionNvtx2
 * there: the launcher names this library. Another tool that was named before (MARGAY_NVTX) is opened and gets every
 * call, too.
 *
 *   header ──► our function ── the other tool's function (its handles and depths are what the program sees)
 *                        └──► mg_timeline_mark when the range ends
 *
 * Own declarations of the published interface: ids of functions, and the attributes' layout. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <wchar.h>

#include "base/env.h"
#include "base/io.h"
#include "base/map.h"
#include "inject/config.h"
#include "inject/range.h"
#include "inject/timeline.h"

enum { MODULE_CORE = 1, MODULE_CORE2 = 5, TABLE = 16 };
enum {
    CORE_MARK_EX = 1,
    CORE_MARK_A,
    CORE_MARK_W,
    CORE_START_EX,
    CORE_START_A,
    CORE_START_W,
    CORE_END,
    CORE_PUSH_EX,
    CORE_PUSH_A,
    CORE_PUSH_W,
    CORE_POP,
    CORE_THREAD_A = 14,
    CORE_THREAD_W
};
enum {
    CORE2_MARK_EX = 1,
    CORE2_START_EX,
    CORE2_END,
    CORE2_PUSH_EX,
    CORE2_POP,
    CORE2_REGISTER_A = 10,
    CORE2_REGISTER_W,
    CORE2_CREATE_A,
    CORE2_CREATE_W,
    CORE2_DESTROY
};
enum { MESSAGE_ASCII = 1, MESSAGE_WIDE = 2, MESSAGE_REGISTERED = 3 };
struct attributes { /* of an event; `size` says how much of it there is */
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t message_type, reserved2;
    const void *message;
};
_Static_assert(sizeof(struct attributes) == 48, "as published");
struct exports {
    size_t size;
    int (*table)(unsigned module, void ***functions, unsigned *n);
};
typedef const struct exports *(*get_fn)(uint32_t id); /* as published */

struct domain {
    char *name;
    void *theirs;
}; /* what a program has as its domain; never freed: ranges may name it */
struct text {
    char *name;
    void *theirs;
};                                                   /* a registered string */
static void *their_core[TABLE], *their_core2[TABLE]; /* the other tool's; NULL: none */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mg_map started; /* id -> struct range of ranges that any thread may end; under the lock */
static uint64_t n_started, n_marks;

#define DEEPEST 128
struct range {
    uint64_t begin_ns, payload, number, outer;
    char *name;
    const char *domain;
    bool opens;
};
static __thread struct range *pushed; /* DEEPEST of them */
static __thread uint32_t depth;       /* may exceed DEEPEST: what lies deeper is not kept */

/* ---- texts ------------------------------------------------------------------------------------------------ */

static char *narrow(const wchar_t *w)
{
    size_t n = 0, room = w ? 4 * wcslen(w) + 1 : 1;
    char *out = malloc(room);
    for (; out && w && *w; w++) {
        uint32_t c = (uint32_t)*w;
        if (c < 0x80) {
            out[n++] = (char)c;
        } else if (c < 0x800) {
            out[n++] = (char)(0xc0 | c >> 6), out[n++] = (char)(0x80 | (c & 63));
        } else if (c < 0x10000) {
            out[n++] = (char)(0xe0 | c >> 12), out[n++] = (char)(0x80 | (c >> 6 & 63)),
            out[n++] = (char)(0x80 | (c & 63));
        } else {
            out[n++] = (char)(0xf0 | (c >> 18 & 7)), out[n++] = (char)(0x80 | (c >> 12 & 63));
            out[n++] = (char)(0x80 | (c >> 6 & 63)), out[n++] = (char)(0x80 | (c & 63));
        }
    }
    if (out) out[n] = 0;
    return out;
}

static char *copy_text(const char *s)
{
    return strdup(s ? s : "");
}

static bool has_message(const struct attributes *a)
{
    return a && a->size >= sizeof *a && a->message;
}

static char *message(const struct attributes *a)
{
    if (!has_message(a)) return copy_text("");
    if (a->message_type == MESSAGE_REGISTERED) return copy_text(((const struct text *)a->message)->name);
    return a->message_type == MESSAGE_WIDE ? narrow(a->message) : copy_text(a->message);
}

static uint64_t payload(const struct attributes *a)
{
    return a && a->size >= sizeof *a && a->payload_type ? a->payload : 0;
}

/* The attributes as the other tool knows them: its own handle of a registered string. */
static const struct attributes *for_them(const struct attributes *a, struct attributes *room)
{
    if (!has_message(a) || a->message_type != MESSAGE_REGISTERED) return a;
    memcpy(room, a, sizeof *room);
    room->message = ((const struct text *)a->message)->theirs;
    return room;
}

/* ---- ranges ------------------------------------------------------------------------------------------------- */

static void record_range(const struct range *r, enum mg_mark_kind kind)
{
    uint64_t now = mg_now_ns();
    struct mg_record_mark m = {
        .begin = r->begin_ns,
        .end = kind == MG_MARK_INSTANT ? r->begin_ns : now,
        .payload = r->payload,
        .correlation = r->number,
        .outer = r->outer,
        .end_thread = (uint32_t)syscall(SYS_gettid),
        .layer = MG_LAYER_nvtx,
        .kind = (uint8_t)kind,
    };
    if ((mg_timeline.on || !mg_session.start_ns) && r->name) mg_timeline_mark(&m, r->name, r->domain);
}

uint64_t mg_nvtx_range(void)
{
    return pushed && depth ? pushed[MG_MIN(depth, DEEPEST) - 1].number : 0;
}

static struct range new_range(char *name, uint64_t value, const char *domain)
{
    return (struct range){.begin_ns = mg_now_ns(),
                          .payload = value,
                          .number = __atomic_add_fetch(&n_marks, 1, __ATOMIC_RELAXED),
                          .outer = mg_nvtx_range(),
                          .name = name,
                          .domain = domain};
}

static struct range begin_range(char *name, uint64_t value, const char *domain)
{
    struct range r = new_range(name, value, domain);
    r.opens = name && mg_window_wants(name);
    if (r.opens) mg_window_mark(1);
    return r;
}

static void end_range(struct range *r, enum mg_mark_kind kind)
{
    if (r->opens) mg_window_mark(-1);
    record_range(r, kind);
    free(r->name);
}

static void instant(char *name, uint64_t value, const char *domain)
{
    struct range r = new_range(name, value, domain);
    record_range(&r, MG_MARK_INSTANT);
    free(name);
}

/* The depth at which the range stands, as NVTX counts: from 0, and for each domain by itself. */
static int push(char *name, uint64_t value, const char *domain)
{
    int level = 0;
    if (!pushed) pushed = calloc(DEEPEST, sizeof *pushed);
    for (uint32_t i = 0; pushed && i < MG_MIN(depth, DEEPEST); i++) level += pushed[i].domain == domain;
    if (pushed && depth < DEEPEST)
        pushed[depth] = begin_range(name, value, domain);
    else
        free(name);
    depth++;
    return level;
}

static int pop(const char *domain)
{
    if (depth > DEEPEST) { /* it was not kept */
        depth--;
        return DEEPEST;
    }
    uint32_t at = depth;
    while (pushed && at && pushed[at - 1].domain != domain) at--;
    if (!pushed || !at) return -1;
    int level = 0;
    for (uint32_t i = 0; i + 1 < at; i++) level += pushed[i].domain == domain;
    end_range(&pushed[at - 1], MG_MARK_PUSHED);
    memmove(pushed + at - 1, pushed + at, (depth - at) * sizeof *pushed);
    depth--;
    return level;
}

static uint64_t start(char *name, uint64_t value, const char *domain, uint64_t theirs)
{
    struct range *r = malloc(sizeof *r);
    uint64_t id = theirs ? theirs : __atomic_add_fetch(&n_started, 1, __ATOMIC_RELAXED);
    if (!r) {
        free(name);
        return id;
    }
    *r = begin_range(name, value, domain);
    pthread_mutex_lock(&lock);
    mg_map_set(&started, id, (uint64_t)(uintptr_t)r);
    pthread_mutex_unlock(&lock);
    return id;
}

static void end(uint64_t id)
{
    uint64_t v = 0;
    pthread_mutex_lock(&lock);
    if (mg_map_get(&started, id, &v)) mg_map_del(&started, id);
    pthread_mutex_unlock(&lock);
    struct range *r = (struct range *)(uintptr_t)v;
    if (r) end_range(r, MG_MARK_STARTED);
    free(r);
}

/* ---- the functions that programs get ---------------------------------------------------------------------------- */

#define THEIRS(table, id, type) ((type)(uintptr_t)table[id])
static const char no_domain[] = ""; /* of ranges without one: compared by address */
static const char *name_of(const struct domain *d)
{
    return d ? d->name : no_domain;
}
static void *theirs_of(const struct domain *d)
{
    return d ? d->theirs : NULL;
}

static void mark_ex(const struct attributes *a)
{
    struct attributes room;
    void (*f)(const struct attributes *) = THEIRS(their_core, CORE_MARK_EX, void (*)(const struct attributes *));
    if (f) f(for_them(a, &room));
    instant(message(a), payload(a), no_domain);
}
static void mark_a(const char *s)
{
    void (*f)(const char *) = THEIRS(their_core, CORE_MARK_A, void (*)(const char *));
    if (f) f(s);
    instant(copy_text(s), 0, no_domain);
}
static void mark_w(const wchar_t *s)
{
    void (*f)(const wchar_t *) = THEIRS(their_core, CORE_MARK_W, void (*)(const wchar_t *));
    if (f) f(s);
    instant(narrow(s), 0, no_domain);
}
static uint64_t start_ex(const struct attributes *a)
{
    struct attributes room;
    uint64_t (*f)(const struct attributes *) =
        THEIRS(their_core, CORE_START_EX, uint64_t(*)(const struct attributes *));
    return start(message(a), payload(a), no_domain, f ? f(for_them(a, &room)) : 0);
}
static uint64_t start_a(const char *s)
{
    uint64_t (*f)(const char *) = THEIRS(their_core, CORE_START_A, uint64_t(*)(const char *));
    return start(copy_text(s), 0, no_domain, f ? f(s) : 0);
}
static uint64_t start_w(const wchar_t *s)
{
    uint64_t (*f)(const wchar_t *) = THEIRS(their_core, CORE_START_W, uint64_t(*)(const wchar_t *));
    return start(narrow(s), 0, no_domain, f ? f(s) : 0);
}
static void end_core(uint64_t id)
{
    void (*f)(uint64_t) = THEIRS(their_core, CORE_END, void (*)(uint64_t));
    if (f) f(id);
    end(id);
}
static int push_ex(const struct attributes *a)
{
    struct attributes room;
    int (*f)(const struct attributes *) = THEIRS(their_core, CORE_PUSH_EX, int (*)(const struct attributes *));
    int level = push(message(a), payload(a), no_domain);
    return f ? f(for_them(a, &room)) : level;
}
static int push_a(const char *s)
{
    int (*f)(const char *) = THEIRS(their_core, CORE_PUSH_A, int (*)(const char *));
    int level = push(copy_text(s), 0, no_domain);
    return f ? f(s) : level;
}
static int push_w(const wchar_t *s)
{
    int (*f)(const wchar_t *) = THEIRS(their_core, CORE_PUSH_W, int (*)(const wchar_t *));
    int level = push(narrow(s), 0, no_domain);
    return f ? f(s) : level;
}
static int pop_core(void)
{
    int (*f)(void) = THEIRS(their_core, CORE_POP, int (*)(void));
    int level = pop(no_domain);
    return f ? f() : level;
}
static void thread_a(uint32_t thread, const char *s)
{
    void (*f)(uint32_t, const char *) = THEIRS(their_core, CORE_THREAD_A, void (*)(uint32_t, const char *));
    if (f) f(thread, s);
    if (mg_timeline.on && s) mg_timeline_thread(thread, s);
}
static void thread_w(uint32_t thread, const wchar_t *s)
{
    void (*f)(uint32_t, const wchar_t *) = THEIRS(their_core, CORE_THREAD_W, void (*)(uint32_t, const wchar_t *));
    if (f) f(thread, s);
    char *name = narrow(s);
    if (mg_timeline.on && name) mg_timeline_thread(thread, name);
    free(name);
}

static void domain_mark_ex(struct domain *d, const struct attributes *a)
{
    struct attributes room;
    void (*f)(void *, const struct attributes *) =
        THEIRS(their_core2, CORE2_MARK_EX, void (*)(void *, const struct attributes *));
    if (f) f(theirs_of(d), for_them(a, &room));
    instant(message(a), payload(a), name_of(d));
}
static uint64_t domain_start_ex(struct domain *d, const struct attributes *a)
{
    struct attributes room;
    uint64_t (*f)(void *, const struct attributes *) =
        THEIRS(their_core2, CORE2_START_EX, uint64_t(*)(void *, const struct attributes *));
    return start(message(a), payload(a), name_of(d), f ? f(theirs_of(d), for_them(a, &room)) : 0);
}
static void domain_end(struct domain *d, uint64_t id)
{
    void (*f)(void *, uint64_t) = THEIRS(their_core2, CORE2_END, void (*)(void *, uint64_t));
    if (f) f(theirs_of(d), id);
    end(id);
}
static int domain_push_ex(struct domain *d, const struct attributes *a)
{
    struct attributes room;
    int (*f)(void *, const struct attributes *) =
        THEIRS(their_core2, CORE2_PUSH_EX, int (*)(void *, const struct attributes *));
    int level = push(message(a), payload(a), name_of(d));
    return f ? f(theirs_of(d), for_them(a, &room)) : level;
}
static int domain_pop(struct domain *d)
{
    int (*f)(void *) = THEIRS(their_core2, CORE2_POP, int (*)(void *));
    int level = pop(name_of(d));
    return f ? f(theirs_of(d)) : level;
}
static void *new_handle(char *name, void *theirs)
{
    struct domain *d = malloc(sizeof *d);
    if (!d || !name) {
        free(d);
        free(name);
        return NULL;
    }
    *d = (struct domain){name, theirs};
    return d;
}
static void *register_a(struct domain *d, const char *s)
{
    void *(*f)(void *, const char *) = THEIRS(their_core2, CORE2_REGISTER_A, void *(*)(void *, const char *));
    return new_handle(copy_text(s), f ? f(theirs_of(d), s) : NULL);
}
static void *register_w(struct domain *d, const wchar_t *s)
{
    void *(*f)(void *, const wchar_t *) = THEIRS(their_core2, CORE2_REGISTER_W, void *(*)(void *, const wchar_t *));
    return new_handle(narrow(s), f ? f(theirs_of(d), s) : NULL);
}
static void *create_a(const char *s)
{
    void *(*f)(const char *) = THEIRS(their_core2, CORE2_CREATE_A, void *(*)(const char *));
    return new_handle(copy_text(s), f ? f(s) : NULL);
}
static void *create_w(const wchar_t *s)
{
    void *(*f)(const wchar_t *) = THEIRS(their_core2, CORE2_CREATE_W, void *(*)(const wchar_t *));
    return new_handle(narrow(s), f ? f(s) : NULL);
}
static void destroy(struct domain *d)
{
    void (*f)(void *) = THEIRS(their_core2, CORE2_DESTROY, void (*)(void *));
    if (f) f(theirs_of(d));
}

/* ---- injection --------------------------------------------------------------------------------------------------- */

static void *const our_core[TABLE] = {
    [CORE_MARK_EX] = mark_ex,   [CORE_MARK_A] = mark_a,   [CORE_MARK_W] = mark_w, [CORE_START_EX] = start_ex,
    [CORE_START_A] = start_a,   [CORE_START_W] = start_w, [CORE_END] = end_core,  [CORE_PUSH_EX] = push_ex,
    [CORE_PUSH_A] = push_a,     [CORE_PUSH_W] = push_w,   [CORE_POP] = pop_core,  [CORE_THREAD_A] = thread_a,
    [CORE_THREAD_W] = thread_w,
};
static void *const our_core2[TABLE] = {
    [CORE2_MARK_EX] = domain_mark_ex, [CORE2_START_EX] = domain_start_ex, [CORE2_END] = domain_end,
    [CORE2_PUSH_EX] = domain_push_ex, [CORE2_POP] = domain_pop,           [CORE2_REGISTER_A] = register_a,
    [CORE2_REGISTER_W] = register_w,  [CORE2_CREATE_A] = create_a,        [CORE2_CREATE_W] = create_w,
    [CORE2_DESTROY] = destroy,
};

/* Where a header keeps the functions of a module; NULL: it has none of it. */
static void ***places_of(get_fn get, unsigned module, unsigned *n)
{
    void ***places = NULL;
    const struct exports *e = get(1);
    *n = 0;
    if (!e || e->size < sizeof *e || !e->table(module, (void ***)&places, n) || !places) *n = 0;
    *n = MG_MIN(*n, TABLE);
    return places;
}

static void read_callbacks(get_fn get, unsigned module, void *found[TABLE])
{
    unsigned n;
    void ***places = places_of(get, module, &n);
    for (unsigned i = 1; i < n; i++) found[i] = places[i] ? *places[i] : NULL;
}

/* Puts ours there; what another tool has put there since `before` gets the calls, too. */
static void fill(get_fn get, unsigned module, void *const ours[TABLE], void *theirs[TABLE], void *const before[TABLE])
{
    unsigned n;
    void ***places = places_of(get, module, &n);
    for (unsigned i = 1; i < n; i++) {
        if (!ours[i] || !places[i]) continue;
        if (*places[i] != before[i]) theirs[i] = *places[i];
        *places[i] = ours[i];
    }
}

/* The tool that was named before us: it fills the table first. */
static void open_other(get_fn get)
{
    const char *path = mg_config_env(mg_env_name(MG_ENV_NVTX));
    void *lib = path && *path ? dlopen(path, RTLD_LAZY) : NULL;
    int (*init)(get_fn) = lib ? (int (*)(get_fn))dlsym(lib, "InitializeInjectionNvtx2") : NULL;
    if (init) init(get);
}

MG_EXPORT int InitializeInjectionNvtx2(get_fn get);
int InitializeInjectionNvtx2(get_fn get)
{
    void *before[TABLE] = {0}, *before2[TABLE] = {0};
    if (!get) return 0;
    if (!mg_session.start_ns) /* no call of CUDA yet: ranges may be open at the first one */
        mg_window_begin(mg_config_env(mg_env_name(MG_ENV_RANGE)), mg_now_ns());
    read_callbacks(get, MODULE_CORE, before);
    read_callbacks(get, MODULE_CORE2, before2);
    open_other(get);
    fill(get, MODULE_CORE, our_core, their_core, before);
    fill(get, MODULE_CORE2, our_core2, their_core2, before2);
    return 1;
}
