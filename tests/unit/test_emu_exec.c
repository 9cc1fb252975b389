/* Runs every tests/exec/\*.ptx on the emulator and compares memory with what the file says.
 *
 *   // RUN kernel grid=2,1,1 block=64 cluster=2,1,1 shared=0 coop limit=0.5 args=buf:256,u32:7,f32:1.5,u64:9
 *   // FILL 0 u32 0..63             initial contents of buffer 0 (others are zero)
 *   // WANT 0 u32 32*5 1..32 0x10    contents of buffer 0 from its start
 *   // FAULT timeout some text       kind prefix of mg_fault_kind_text, text that the message holds
 *   // PRINT text\n                  what the kernel printed
 *   // COUNT 12 64 2                 witness: PTX line, threads, warps
 * Items of a list: V, N*V (repeated), A..B (counting up or down), ; types u8 u16 u32 u64 f32 f64.
 * Expected values are worked out by hand or by closed forms, never by the emulator. Every file runs
 * twice, the second time with an event stream: then no instructions are taken together, and the
 * results must be the same.
 */
#include <glob.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/io.h"
#include "device/device.h"
#include "device/mem.h"
#include "ptx/ptx.h"
#include "test.h"

static const struct mg_device_ops *run_ops; /* of the device under test */
static bool compiled;

static void ignore(void *user, const struct mg_event *ev)
{
    (void)ev;
    __atomic_fetch_add((uint64_t *)user, 1, __ATOMIC_RELAXED);
}

enum { MAX_BUFS = 8 };
struct run {
    const char *file;
    struct mg_device *dev;
    struct mg_dmod *mod;
    struct mg_buf printed;
    uint64_t bufs[MAX_BUFS], bytes[MAX_BUFS];
    uint32_t n_bufs;
    struct mg_launch l;
    char params[256];
    char kernel[128];
    bool pending; /* RUN seen, not launched yet */
    bool launched;
    struct mg_fault fault;
    bool fault_wanted;
};

static void collect(void *user, const char *text, size_t n)
{
    mg_buf_add(user, text, n);
}

static unsigned type_bytes(const char *t)
{
    return t[1] == '8' ? 1 : t[1] == '1' ? 2 : t[1] == '3' ? 4 : 8;
}

static uint64_t number(const char *t, const char *s, char **end)
{
    uint64_t v = 0;
    if (t[0] == 'f') {
        double d = strtod(s, end);
        float f = (float)d;
        if (type_bytes(t) == 4)
            memcpy(&v, &f, 4);
        else
            memcpy(&v, &d, 8);
        return v;
    }
    return s[0] == '-' ? (uint64_t)strtoll(s, end, 0) : strtoull(s, end, 0);
}

/* Calls fn for every value of a list. */
static void values(const char *t, const char *s, void (*fn)(void *, uint64_t), void *user)
{
    while (*s) {
        while (*s == ' ') s++;
        if (!*s || *s == '\n') break;
        char *end;
        uint64_t a = number(t, s, &end), n = 1;
        if (end == s) break;
        if (*end == '*') {
            n = strtoull(s, NULL, 0);
            s = end + 1;
            a = number(t, s, &end);
        } else if (end[0] == '.' && end[1] == '.') {
            s = end + 2;
            uint64_t b = number(t, s, &end);
            for (uint64_t v = a; v != b; v += (int64_t)(b - a) < 0 ? (uint64_t)-1 : 1) fn(user, v);
            a = b;
        }
        while (n--) fn(user, a);
        s = end;
    }
}

struct cursor {
    char *p, *end;
    unsigned bytes;
    const char *file;
    unsigned line;
    uint32_t ix;
    uint32_t bad;
};

static void put(void *user, uint64_t v)
{
    struct cursor *c = user;
    if (c->p + c->bytes > c->end) return;
    memcpy(c->p, &v, c->bytes);
    c->p += c->bytes;
}

static void want(void *user, uint64_t v)
{
    struct cursor *c = user;
    uint64_t got = 0, mask = c->bytes == 8 ? UINT64_MAX : (1ull << 8 * c->bytes) - 1;
    if (c->p + c->bytes > c->end)
        mg_test_fail(c->file, (int)c->line, "more values than the buffer has");
    else
        memcpy(&got, c->p, c->bytes);
    if (got != (v & mask) && !c->bad++)
        mg_test_fail(c->file, (int)c->line, "element %u is %#llx, want %#llx", c->ix, (unsigned long long)got,
                     (unsigned long long)(v & mask));
    c->p += c->bytes;
    c->ix++;
}

static void launch(struct run *r)
{
    if (!r->pending) return;
    r->pending = false;
    r->launched = true;
    r->l.kernel = run_ops->kernel(r->mod, r->kernel);
    if (!r->l.kernel) {
        mg_test_fail(r->file, 1, "no kernel %s", r->kernel);
        return;
    }
    run_ops->launch(r->dev, &r->l, NULL, &r->fault);
}

static void finish(struct run *r)
{
    launch(r);
    if (r->launched && r->fault.kind && !r->fault_wanted) mg_test_fail(r->file, 1, "%s", r->fault.text);
    for (uint32_t i = 0; i < r->n_bufs; i++) mg_mem_free(r->bufs[i]);
    r->n_bufs = 0;
    r->launched = r->fault_wanted = false;
    r->fault.kind = MG_FAULT_NONE;
    mg_buf_reset(&r->printed);
}

static void dims(const char *s, struct mg_dim3 *d)
{
    d->x = d->y = d->z = 1;
    sscanf(s, "%u,%u,%u", &d->x, &d->y, &d->z);
}

static void parse_run(struct run *r, char *s)
{
    finish(r);
    memset(&r->l, 0, sizeof r->l);
    memset(r->params, 0, sizeof r->params);
    r->l.grid = r->l.block = (struct mg_dim3){1, 1, 1};
    char *save = NULL, *word = strtok_r(s, " \n", &save);
    snprintf(r->kernel, sizeof r->kernel, "%s", word ? word : "");
    uint32_t at = 0;
    while ((word = strtok_r(NULL, " \n", &save))) {
        if (!strncmp(word, "grid=", 5))
            dims(word + 5, &r->l.grid);
        else if (!strncmp(word, "block=", 6))
            dims(word + 6, &r->l.block);
        else if (!strncmp(word, "cluster=", 8))
            dims(word + 8, &r->l.cluster);
        else if (!strncmp(word, "shared=", 7))
            r->l.dyn_shared_bytes = (uint32_t)strtoul(word + 7, NULL, 0);
        else if (!strncmp(word, "limit=", 6))
            r->l.time_limit_ns = (uint64_t)(strtod(word + 6, NULL) * 1e9);
        else if (!strcmp(word, "coop"))
            r->l.cooperative = true;
        else if (!strncmp(word, "args=", 5)) {
            char *save2 = NULL;
            for (char *a = strtok_r(word + 5, ",", &save2); a; a = strtok_r(NULL, ",", &save2)) {
                char *colon = strchr(a, ':'), *end;
                uint64_t v;
                unsigned bytes = 8;
                if (!strncmp(a, "buf", 3)) {
                    uint64_t n = strtoull(colon + 1, NULL, 0);
                    v = mg_mem_alloc(n, 0, MG_ALLOC_DEVICE);
                    memset((void *)v, 0, n);
                    r->bufs[r->n_bufs] = v;
                    r->bytes[r->n_bufs++] = n;
                } else {
                    *colon = 0;
                    bytes = type_bytes(a);
                    v = number(a, colon + 1, &end);
                }
                at = (at + bytes - 1) / bytes * bytes;
                memcpy(r->params + at, &v, bytes);
                at += bytes;
            }
        }
    }
    r->l.params = r->params;
    r->l.param_bytes = at;
    r->pending = true;
}

struct count {
    uint32_t line;
    uint64_t threads, warps;
};
static void add_count(void *user, mg_id func, mg_id node, uint64_t threads, uint64_t warps)
{
    struct count *c = user;
    (void)func;
    if (node != c->line) return;
    c->threads += threads;
    c->warps += warps;
}

static void check_count(struct run *r, const char *s, unsigned line)
{
    unsigned ptx_line;
    unsigned long long threads, warps;
    const struct mg_module *m = run_ops->module_ir(r->mod);
    if (sscanf(s, "%u %llu %llu", &ptx_line, &threads, &warps) != 3) return;
    struct count total = {0};
    for (uint32_t i = 1; i < m->nodes.n; i++)
        if (m->nodes.at[i].line == ptx_line && m->nodes.at[i].kind == MG_NODE_inst) {
            struct count c = {.line = i};
            run_ops->positions(r->mod, add_count, &c);
            total.threads += c.threads;
            total.warps += c.warps;
        }
    if (total.threads != threads || total.warps != warps)
        mg_test_fail(r->file, (int)line, "line %u ran %llu threads, %llu warps, want %llu, %llu", ptx_line,
                     (unsigned long long)total.threads, (unsigned long long)total.warps, threads, warps);
}

static void unescape(char *s)
{
    char *o = s;
    for (; *s && *s != '\n'; s++) {
        if (s[0] == '\\' && s[1] == 'n')
            *o++ = '\n', s++;
        else
            *o++ = *s;
    }
    *o = 0;
}

static void directive(struct run *r, char *s, unsigned line)
{
    unsigned buf;
    char type[16];
    int at = 0;
    if (!strncmp(s, "RUN ", 4))
        parse_run(r, s + 4);
    else if (sscanf(s, "FILL %u %7s %n", &buf, type, &at) == 2 && at) {
        struct cursor c = {
            (char *)r->bufs[buf], (char *)r->bufs[buf] + r->bytes[buf], type_bytes(type), r->file, line, 0, 0};
        values(type, s + at, put, &c);
    } else if (sscanf(s, "WANT %u %7s %n", &buf, type, &at) == 2 && at) {
        launch(r);
        struct cursor c = {
            (char *)r->bufs[buf], (char *)r->bufs[buf] + r->bytes[buf], type_bytes(type), r->file, line, 0, 0};
        if (!r->fault.kind || r->fault_wanted) values(type, s + at, want, &c);
    } else if (sscanf(s, "FAULT %15s %n", type, &at) == 1) {
        launch(r);
        unescape(s);
        r->fault_wanted = true;
        const char *kind = mg_fault_kind_text(r->fault.kind);
        if (strncmp(kind, type, strlen(type)) || (at && !strstr(r->fault.text, s + at)))
            mg_test_fail(r->file, (int)line, "fault is \"%s\": %s", kind, r->fault.text);
    } else if (!strncmp(s, "PRINT ", 6)) {
        launch(r);
        unescape(s);
        if (!r->printed.at || strcmp(r->printed.at, s + 6))
            mg_test_fail(r->file, (int)line, "printed \"%s\", want \"%s\"", r->printed.at ? r->printed.at : "", s + 6);
    } else if (!strncmp(s, "COUNT ", 6)) {
        launch(r);
        if (!compiled) check_count(r, s + 6, line);
    }
}

static void run_file(const char *path, bool watched)
{
    struct mg_diag diag = MG_DIAG_INIT;
    struct run r = {.file = path};
    char *text;
    size_t bytes;
    struct mg_module *m;
    struct mg_device_opts opts = {
        .size = sizeof opts, .properties = "h200", .workers = 2, .print = collect, .print_user = &r.printed};
    if (mg_io_read(path, &text, &bytes, &diag)) {
        mg_test_fail(path, 1, "%s", mg_diag_first(&diag, MG_ERR_IO));
        return;
    }
    uint64_t events = 0;
    struct mg_observe_opts trace = {.size = sizeof trace, .fn = ignore, .user = &events};
    opts.count_positions = !compiled && strstr(text, "// COUNT") != NULL;
    if (run_ops->open(&r.dev, &opts, &diag) || mg_ptx_parse(text, bytes, path, &m, &diag) ||
        run_ops->module_load(r.dev, m, &r.mod, &diag)) {
        mg_test_fail(path, 1, "%s", mg_diag_first(&diag, MG_ERR_INPUT));
    } else {
        unsigned line = 1;
        if (watched) run_ops->trace(r.dev, &trace);
        for (char *p = text, *next; *p; p = next, line++) {
            next = strchr(p, '\n');
            next = next ? next + 1 : p + strlen(p);
            if (strncmp(p, "// ", 3)) continue;
            char *copy = strndup(p + 3, (size_t)(next - p - 3));
            directive(&r, copy, line);
            free(copy);
        }
        finish(&r);
        if (watched != (events > 0)) mg_test_fail(path, 1, "%llu events", (unsigned long long)events);
        run_ops->module_unload(r.mod);
    }
    run_ops->close(r.dev);
    mg_buf_release(&r.printed);
    mg_diag_release(&diag);
    free(text);
}

static void run_files(void)
{
    glob_t g;
    if (glob("tests/exec/*.ptx", 0, NULL, &g)) {
        mg_test_skip("not in the source tree");
        return;
    }
    const char *only = getenv("MG_EXEC");
    for (size_t i = 0; i < g.gl_pathc; i++)
        if (!only || strstr(g.gl_pathv[i], only)) {
            run_file(g.gl_pathv[i], false);
            if (!compiled) run_file(g.gl_pathv[i], true);
        }
    globfree(&g);
}

MG_TEST(emu_exec)
{
    run_ops = &mg_emu_ops;
    compiled = false;
    run_files();
}

/* The same on compiled code, for each vector ISA of this CPU. */
MG_TEST(cpu_exec)
{
#ifdef MG_ASAN
    if (!getenv("MG_CPU_ASAN")) {
        mg_test_skip("LLVM is not run under the address sanitizer");
        return;
    }
#endif
    static const char *const isas[] = {"avx512", "avx2", "base"};
    struct mg_diag diag = MG_DIAG_INIT;
    struct mg_device *dev;
    run_ops = mg_cpu_ops();
    compiled = true;
    setenv("MARGAY_CPU_TIER", "sync", 1);
    setenv("MARGAY_CPU_VERIFY", "1", 1);
    if (run_ops->open(&dev, NULL, &diag))
        mg_test_skip(mg_diag_first(&diag, MG_ERR_UNSUPPORTED));
    else {
        run_ops->close(dev);
        const char *own = getenv("MARGAY_ISA"), *wish = own ? own : getenv("ISA"); /* tests/run */
        for (size_t i = 0; i < MG_COUNT_OF(isas); i++) {
            if (wish && !strstr(wish, isas[i])) continue;
            setenv("MARGAY_ISA", isas[i], 1);
            run_files();
        }
        if (!own) unsetenv("MARGAY_ISA");
        setenv("MARGAY_CPU_TIER", "0", 1); /* some launches end in the emulator, some go over */
        run_files();
        setenv("MARGAY_CPU_TIER", "sync", 1);
        setenv("MARGAY_CPU_LIVE", "0", 1); /* no register is a value across blocks */
        run_files();
        unsetenv("MARGAY_CPU_LIVE");
    }
    mg_diag_release(&diag);
}
