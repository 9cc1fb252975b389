/* Litmus tests of docs/schedule.md, "Memory": threads of different CTAs run freely over rising values and write down
 * what they read; the logs are then searched for outcomes that are forbidden. usage: litmus ROUNDS [WORD...]   tests
 * whose name holds every WORD; a line a test: name, rounds, forbidden, and how often what was read changed names:
 * SHAPE-ORDER-WIDTH-SCOPE-PLACE. Exits with 1 when a forbidden outcome was seen, 2 when something failed.
 *
 * Each of a warp's 32 lanes has locations x and y of its own, round r writes r (its bits repeated up to the width;
 * halves that differ are forbidden everywhere). "Forbidden" is what the software devices promise: every strong access
 * is seen by all in program order, but for a store and a later load of another location without a fence between. PTX
 * promises less without fences. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int cuInit(unsigned), cuDeviceGet(int *, int), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *);
int cuModuleLoadData(void **, const void *), cuModuleUnload(void *), cuModuleGetFunction(void **, void *, const char *);
int cuMemAlloc_v2(uint64_t *, size_t), cuMemFree_v2(uint64_t), cuMemcpyDtoH_v2(void *, uint64_t, size_t),
    cuMemsetD8_v2(uint64_t, unsigned char, size_t);
int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                   void **);

/* One letter a step: X, Y store the round; x, y read and log; f fence; c store what was read last to y. */
struct shape {
    const char *name;
    int threads;
    const char *steps[4];
};
enum { MP, SB, LB, IRIW, CO, WW, WRC };
static const struct shape shapes[] = {
    [MP] = {"message", 2, {"XfY", "yfx"}},        [SB] = {"stores", 2, {"Xfy", "Yfx"}},
    [LB] = {"loads", 2, {"yfX", "xfY"}},          [IRIW] = {"independent", 4, {"X", "Y", "xfy", "yfx"}},
    [CO] = {"coherence", 2, {"X", "xfx"}},        [WW] = {"writes", 2, {"XfY", "YfX"}},
    [WRC] = {"causality", 3, {"X", "xfc", "yfx"}}};
static const char *const orders[] = {"relaxed", "acquire", "acq_rel", "sc"};
static const char *const scopes[] = {"gpu", "sys"};
static const char *const places[] = {"apart", "row"};
enum { LANES = 32, ROOM = 4096, WINDOW = 32 };

static char text[1 << 16];
static size_t used;
#define PUT(...) (used += (size_t)snprintf(text + used, sizeof text - used, __VA_ARGS__))

struct test {
    int shape, order, width, scope, place;
};

static void store(const struct test *t, int loc, const char *what)
{
    const char *order = t->order == 1 ? "release" : "relaxed", *type = t->width == 32   ? "u32"
                                                                       : t->width == 64 ? "u64"
                                                                                        : "v2.u64";
    if (t->width > 32) PUT("mov.b64 %%d0, {%s, %s};\n", what, what);
    PUT("st.%s.%s.global.%s [%%%c], ", order, scopes[t->scope], type, loc);
    PUT(t->width == 32 ? "%s;\n" : t->width == 64 ? "%%d0;\n" : "{%%d0, %%d0};\n", what);
}

static void load(const struct test *t, int loc, int log)
{
    const char *order = t->order == 1 ? "acquire" : "relaxed", *type = t->width == 32   ? "u32"
                                                                       : t->width == 64 ? "u64"
                                                                                        : "v2.u64";
    PUT("ld.%s.%s.global.%s %s, [%%%c];\n", order, scopes[t->scope], type,
        t->width == 32   ? "%r"
        : t->width == 64 ? "%d0"
                         : "{%d0, %d1}",
        loc);
    for (int k = 0; k < t->width / 64; k++)
        PUT("mov.b64 {%%r, %%h}, %%d%d;\nxor.b32 %%h, %%h, %%r;\nor.b32 %%torn, %%torn, %%h;\n", k);
    if (t->width == 128) PUT("xor.b64 %%d1, %%d1, %%d0;\nmov.b64 {%%h, %%g}, %%d1;\nor.b32 %%torn, %%torn, %%h;\n");
    PUT("mad.wide.u32 %%p, %%n, %d, %%log;\nst.global.u32 [%%p], %%r;\n", 4 * LANES * log);
}

static void thread(const struct test *t, int k)
{
    const char *s = shapes[t->shape].steps[k];
    for (int log = 2 * k; *s; s++) switch (*s) {
        case 'X':
        case 'Y':
            store(t, *s | 32, t->shape != WW ? "%i" : s[1] ? "1" : "2");
            break;
        case 'x':
        case 'y':
            load(t, *s, log++);
            break;
        case 'c':
            store(t, 'y', "%r");
            break;
        default:
            if (t->order >= 2) PUT("fence.%s.%s;\n", orders[t->order], scopes[t->scope]);
        }
}

/* Threads that only write go on until those that read are done; where nobody does, all wait for one another from time
 * to time. */
static int writes_only(const struct test *t, int k)
{
    return t->shape != WW && !strpbrk(shapes[t->shape].steps[k], "xy");
}
static int in_step(const struct test *t)
{
    return t->shape == WW || t->shape == SB || t->shape == LB;
}
static int readers(const struct test *t)
{
    int n = 0;
    for (int k = 0; k < shapes[t->shape].threads; k++) n += !writes_only(t, k);
    return n;
}

static void kernel(const struct test *t)
{
    int bytes = t->width / 8, n = shapes[t->shape].threads;
    used = 0;
    PUT(".version 8.7\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 data, .param .u64 logs, .param .u64 sync, .param .u32 rounds)\n{\n");
    PUT(".reg .pred %%p0;\n.reg .b32 %%lane, %%c, %%i, %%n, %%r, %%h, %%g, %%torn, %%t, %%w;\n.reg .b64 %%x, %%y, %%log, %%p, %%sync, %%d<2>;\n");
    PUT("ld.param.u64 %%x, [data];\nld.param.u64 %%log, [logs];\nld.param.u64 %%sync, [sync];\nld.param.u32 %%n, [rounds];\nmov.u32 %%lane, %%tid.x;\nmov.u32 %%c, %%ctaid.x;\n");
    PUT("mad.wide.u32 %%x, %%lane, %d, %%x;\n", t->place ? bytes : 64);
    if (t->shape == WW)
        PUT("mul.wide.u32 %%p, %%n, %d;\nadd.u64 %%y, %%x, %%p;\n", ROOM);
    else
        PUT("add.u64 %%y, %%x, %d;\n", ROOM);
    PUT("mad.wide.u32 %%log, %%lane, 4, %%log;\nmov.u32 %%i, 0;\nmov.u32 %%torn, 0;\nmov.u32 %%w, 0;\n");
    /* time for other workers to take their CTAs: whoever waits for another gives way to it on its own worker */
    PUT("mov.u64 %%d0, %%globaltimer;\nadd.u64 %%d0, %%d0, 3000000;\nEARLY:\nmov.u64 %%d1, %%globaltimer;\nsetp.lt.u64 %%p0, %%d1, %%d0;\n@%%p0 bra EARLY;\n");
    PUT("GATHER:\nadd.u32 %%w, %%w, %d;\nmad.wide.u32 %%p, %%c, 64, %%sync;\nst.volatile.global.u32 [%%p], %%w;\n",
        WINDOW);
    for (int k = 0; k < n; k++)
        PUT("WAIT%d:\nld.volatile.global.u32 %%t, [%%sync+%d];\nsetp.lt.u32 %%p0, %%t, %%w;\n@%%p0 bra WAIT%d;\n", k,
            64 * k, k);
    for (int k = 0; k < n; k++) PUT("setp.eq.u32 %%p0, %%c, %d;\n@%%p0 bra T%d;\n", k, k);
    for (int k = 0; k < n; k++) {
        PUT("T%d:\nadd.u32 %%i, %%i, 1;\n", k);
        thread(t, k);
        PUT("add.u64 %%log, %%log, %d;\n", 4 * LANES);
        if (t->shape == WW) PUT("add.u64 %%x, %%x, %d;\nadd.u64 %%y, %%y, %d;\n", ROOM, ROOM);
        if (writes_only(t, k))
            PUT("ld.volatile.global.u32 %%t, [%%sync+512];\nsetp.lt.u32 %%p0, %%t, %d;\n@%%p0 bra T%d;\nbra OUT;\n",
                readers(t), k);
        else
            PUT("setp.lt.u32 %%p0, %%i, %%%s;\n@%%p0 bra T%d;\n", in_step(t) ? "w" : "n", k);
        if (in_step(t)) PUT("setp.lt.u32 %%p0, %%i, %%n;\n@%%p0 bra GATHER;\n");
        PUT("setp.eq.u32 %%p0, %%lane, 0;\n@%%p0 atom.global.add.u32 %%t, [%%sync+512], 1;\nbra OUT;\n");
    }
    PUT("OUT:\nsetp.ne.u32 %%p0, %%torn, 0;\n@%%p0 atom.global.add.u32 %%t, [%%sync+1024], 1;\nret;\n}\n");
}

/* What thread k read j-th (0, 1) in round r (from 1), by a lane. */
static uint32_t *logs;
static uint32_t n_rounds;
static uint32_t at(int k, int j, uint32_t r, int lane)
{
    return logs[((size_t)(2 * k + j) * n_rounds + (r - 1)) * LANES + (size_t)lane];
}

static unsigned long long pairs(int shape, int lane) /* rounds of thread 0 beside those of thread 1 */
{
    unsigned long long bad = 0;
    for (uint32_t r = 1; r <= n_rounds; r++) {
        uint32_t a = at(0, 0, r, lane), s = shape == SB ? a + 1 : a;
        if (!s || s > n_rounds) continue;
        uint32_t b = at(1, 0, s, lane);
        bad += shape == SB ? b < r : b >= r;
    }
    return bad;
}

static unsigned long long independent(int lane)
{
    unsigned long long bad = 0;
    uint32_t j = 1;
    for (uint32_t i = 1; i <= n_rounds; i++) {
        while (j <= n_rounds && at(3, 0, j, lane) <= at(2, 1, i, lane)) j++;
        if (j <= n_rounds) bad += at(3, 1, j, lane) < at(2, 0, i, lane);
    }
    return bad;
}

static unsigned long long search(const struct test *t, const unsigned char *data, unsigned long long *changes)
{
    unsigned long long bad = 0;
    int bytes = t->width / 8, reader = shapes[t->shape].threads - 1;
    for (int lane = 0; lane < LANES; lane++) {
        if (t->shape == SB || t->shape == LB) bad += pairs(t->shape, lane);
        if (t->shape == IRIW) bad += independent(lane);
        for (uint32_t r = 1; r <= n_rounds; r++) {
            if (t->shape == WW) {
                uint32_t x, y;
                memcpy(&x, data + (size_t)(r - 1) * ROOM + (size_t)lane * (size_t)(t->place ? bytes : 64), 4);
                memcpy(&y, data + (size_t)(r - 1 + n_rounds) * ROOM + (size_t)lane * (size_t)(t->place ? bytes : 64),
                       4);
                bad += x == 1 && y == 1;
                *changes += x != y;
                continue;
            }
            uint32_t a = at(reader, 0, r, lane);
            if (t->shape == MP || t->shape == CO || t->shape == WRC) bad += at(reader, 1, r, lane) < a;
            *changes += r > 1 && a != at(reader, 0, r - 1, lane);
        }
    }
    return bad;
}

static int run(const struct test *t, const char *name)
{
    void *module, *f;
    uint64_t data, log, sync;
    size_t data_bytes = t->shape == WW ? (size_t)2 * n_rounds * ROOM : 2 * ROOM,
           log_bytes = (size_t)8 * n_rounds * LANES * 4;
    void *args[] = {&data, &log, &sync, &n_rounds};
    unsigned char *host = malloc(data_bytes);
    uint32_t torn;
    logs = malloc(log_bytes);
    kernel(t);
    if (!host || !logs || cuModuleLoadData(&module, text) || cuModuleGetFunction(&f, module, "k") ||
        cuMemAlloc_v2(&data, data_bytes) || cuMemAlloc_v2(&log, log_bytes) || cuMemAlloc_v2(&sync, 2048) ||
        cuMemsetD8_v2(data, 0, data_bytes) || cuMemsetD8_v2(sync, 0, 2048) ||
        cuLaunchKernel(f, (unsigned)shapes[t->shape].threads, 1, 1, LANES, 1, 1, 0, NULL, args, NULL) ||
        cuMemcpyDtoH_v2(host, data, data_bytes) || cuMemcpyDtoH_v2(logs, log, log_bytes) ||
        cuMemcpyDtoH_v2(&torn, sync + 1024, 4)) {
        printf("%s: failed\n", name);
        return 2;
    }
    unsigned long long changes = 0, seen = search(t, host, &changes);
    int allowed = t->shape == SB && t->order < 2;
    printf("%s rounds=%llu %s=%llu torn=%u changes=%llu\n", name, (unsigned long long)n_rounds * LANES,
           allowed ? "allowed" : "forbidden", seen, torn, changes);
    fflush(stdout);
    cuMemFree_v2(data), cuMemFree_v2(log), cuMemFree_v2(sync), cuModuleUnload(module);
    free(host), free(logs);
    return torn || (seen && !allowed);
}

static int wanted(const char *name, int argc, char **argv)
{
    for (int i = 2; i < argc; i++)
        if (!strstr(name, argv[i])) return 0;
    return 1;
}

int main(int argc, char **argv)
{
    int dev, worst = 0, n = 0;
    void *ctx;
    struct test t;
    n_rounds =
        ((argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 10000) + LANES * WINDOW - 1) / (LANES * WINDOW) * WINDOW;
    if (cuInit(0) || cuDeviceGet(&dev, 0) || cuDevicePrimaryCtxRetain(&ctx, dev) || cuCtxSetCurrent(ctx)) return 2;
    for (t.shape = 0; t.shape <= WRC; t.shape++)
        for (t.order = 0; t.order < 4; t.order++)
            for (t.width = 32; t.width <= 128; t.width *= 2)
                for (t.scope = 0; t.scope < 2; t.scope++)
                    for (t.place = 0; t.place < 2; t.place++) {
                        char name[100];
                        snprintf(name, sizeof name, "%s-%s-%d-%s-%s", shapes[t.shape].name, orders[t.order], t.width,
                                 scopes[t.scope], places[t.place]);
                        if (!wanted(name, argc, argv)) continue;
                        int rc = run(&t, name);
                        if (rc == 2) return 2;
                        n++;
                        if (rc > worst) worst = rc;
                    }
    printf("%d tests\n", n);
    return worst;
}
