/* Does an access of 8 or 16 bytes come apart? One CTA writes lanes whose 32-bit words are all equal, another reads
 * them: words that differ within an aligned 16 bytes (8 for narrower elements) were not read or written by one move.
 * usage: tear ROUNDS [WORD...]   forms whose name holds every WORD; a line a form: name, reads, changes seen, torn
 * Exits with 1 when a form tore, 2 when something failed. */
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

/* n registers of `type` a lane; each holds `words` words of 32 bits (a narrower one is compared as it is); unit: what
 * must be whole */
struct width {
    const char *name, *type, *reg;
    int n, bits, unit;
};
static const struct width widths[] = {{"v2.u32", ".v2.u32", "b32", 2, 32, 8},  {"v4.u32", ".v4.u32", "b32", 4, 32, 16},
                                      {"u64", ".u64", "b64", 1, 64, 8},        {"v2.u64", ".v2.u64", "b64", 2, 64, 16},
                                      {"b128", ".b128", "b128", 1, 128, 16},   {"v2.u16", ".v2.u16", "b16", 2, 16, 4},
                                      {"v4.u16", ".v4.u16", "b16", 4, 16, 8},  {"v4.u8", ".v4.u8", "b16", 4, 8, 4},
                                      {"v8.b32", ".v8.b32", "b32", 8, 32, 16}, {"v4.b64", ".v4.b64", "b64", 4, 64, 16}};
static const char *const places[] = {"same", "row", "halves", "rows", "apart", "any"};
static const char *const masks[] = {"all", "guard", "branch"};
static const char *const orders[] = {"weak", "volatile", "relaxed"};
static const char *const spaces[] = {"global", "generic"};
enum { ROOM = 32 * 64 };

static char text[1 << 16];
static size_t used;
#define PUT(...) (used += (size_t)snprintf(text + used, sizeof text - used, __VA_ARGS__))

static void address(const char *place, int size)
{
    if (!strcmp(place, "same"))
        PUT("mov.u32 %%off, 0;\n");
    else if (!strcmp(place, "row"))
        PUT("mul.lo.u32 %%off, %%lane, %d;\n", size);
    else if (!strcmp(place, "halves"))
        PUT("mul.lo.u32 %%off, %%y, %d;\n", size);
    else if (!strcmp(place, "rows"))
        PUT("mul.lo.u32 %%off, %%x, %d;\nmad.lo.u32 %%off, %%y, 1024, %%off;\n", size);
    else if (!strcmp(place, "apart"))
        PUT("mul.lo.u32 %%off, %%lane, 64;\n");
    else
        PUT("mul.lo.u32 %%off, %%lane, 7;\nand.b32 %%off, %%off, 31;\nmul.lo.u32 %%off, %%off, %d;\n", size);
    PUT("cvt.u64.u32 %%at, %%off;\nadd.u64 %%at, %%at, %%data;\n");
}

static void list(const struct width *w)
{
    if (w->n > 1) PUT("{");
    for (int k = 0; k < w->n; k++) PUT("%s%%v%d", k ? ", " : "", k);
    if (w->n > 1) PUT("}");
}

/* %bad: do words of one unit differ? %first: the lane's first word */
static void compare(const struct width *w)
{
    int words = 0, per = w->bits < 32 ? w->unit * 8 / w->bits : w->unit / 4;
    for (int k = 0; k < w->n; k++) {
        if (w->bits < 32)
            PUT("cvt.u32.u16 %%w%d, %%v%d;\n", words++, k);
        else if (w->bits == 32)
            PUT("mov.b32 %%w%d, %%v%d;\n", words++, k);
        else if (w->bits == 64)
            PUT("mov.b64 {%%w%d, %%w%d}, %%v%d;\n", words, words + 1, k), words += 2;
        else
            PUT("mov.b128 {%%h0, %%h1}, %%v%d;\nmov.b64 {%%w0, %%w1}, %%h0;\nmov.b64 {%%w2, %%w3}, %%h1;\n", k),
                words = 4;
    }
    PUT("mov.u32 %%first, %%w0;\nmov.u32 %%bits, 0;\n");
    for (int k = 0; k < words; k++)
        if (k % per) PUT("xor.b32 %%t, %%w%d, %%w%d;\nor.b32 %%bits, %%bits, %%t;\n", k, k / per * per);
    PUT("setp.ne.u32 %%p, %%bits, 0;\n@%%p add.u32 %%torn, %%torn, 1;\n");
    PUT("setp.ne.u32 %%p, %%first, %%last;\n@%%p add.u32 %%seen, %%seen, 1;\nmov.u32 %%last, %%first;\n");
}

static void fill(const struct width *w) /* all words %i */
{
    if (w->bits == 64 || w->bits == 128) PUT("mov.b64 %%h0, {%%i, %%i};\n");
    for (int k = 0; k < w->n; k++) {
        if (w->bits < 32)
            PUT("and.b32 %%t, %%i, 255;\ncvt.u16.u32 %%v%d, %%t;\n", k);
        else if (w->bits == 32)
            PUT("mov.b32 %%v%d, %%i;\n", k);
        else if (w->bits == 64)
            PUT("mov.b64 %%v%d, %%h0;\n", k);
        else
            PUT("mov.b128 %%v%d, {%%h0, %%h0};\n", k);
    }
}

static void begin_mask(const char *mask)
{
    if (strcmp(mask, "all")) PUT("and.b32 %%t, %%lane, 11;\nsetp.ne.u32 %%q, %%t, 3;\n");
    if (!strcmp(mask, "branch")) PUT("@!%%q bra DONE;\n"); /* some lanes alone from here on */
}

static void kernel(const struct width *w, const char *place, const char *mask, const char *order, const char *space,
                   int lanes_apart)
{
    char op[64];
    const char *guard = !strcmp(mask, "guard") ? "@%q " : "";
    snprintf(op, sizeof op, "%s%s%s",
             !strcmp(order, "volatile")  ? ".volatile"
             : !strcmp(order, "relaxed") ? ".relaxed.gpu"
                                         : "",
             !strcmp(space, "global") ? ".global" : "", w->type);
    used = 0;
    PUT(".version 8.7\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 data, .param .u64 out, .param .u32 rounds)\n{\n");
    PUT(".reg .pred %%p, %%q, %%w;\n.reg .b32 %%lane, %%x, %%y, %%off, %%t, %%i, %%n, %%torn, %%seen, %%last, %%first, %%bits, %%inner, %%c, %%w<16>;\n");
    PUT(".reg .b64 %%data, %%out, %%at, %%place, %%h<2>;\n.reg .%s %%v<8>;\n", w->reg);
    PUT("ld.param.u64 %%data, [data];\nld.param.u64 %%out, [out];\nld.param.u32 %%n, [rounds];\nmov.u32 %%x, %%tid.x;\nmov.u32 %%y, %%tid.y;\n");
    PUT("mad.lo.u32 %%lane, %%y, 16, %%x;\nmov.u32 %%c, %%ctaid.x;\n");
    address(place, w->n * w->bits / 8);
    PUT("mov.u32 %%torn, 0;\nmov.u32 %%seen, 0;\nmov.u32 %%last, 0;\nmov.u32 %%i, 0;\nsetp.eq.u32 %%w, %%c, 0;\n");
    begin_mask(mask);
    if (!strcmp(guard, "@%q ")) { /* lanes that read nothing find what is equal */
        PUT("mov.u32 %%i, 0;\n");
        fill(w);
    }
    /* time for a second worker to take the other CTA: whoever waits for it gives way to it on its own */
    PUT("mov.u64 %%h0, %%globaltimer;\nadd.u64 %%h0, %%h0, 3000000;\nEARLY:\nmov.u64 %%h1, %%globaltimer;\nsetp.lt.u64 %%p, %%h1, %%h0;\n@%%p bra EARLY;\n");
    PUT("@%%w bra WRITE;\n");
    if (lanes_apart) { /* lanes stay for different times and go all over the table: code that takes them one by one */
        PUT("shl.b32 %%t, %%lane, 4;\nadd.u32 %%n, %%n, %%t;\nREAD:\nmad.lo.u32 %%t, %%i, 5, %%lane;\nand.b32 %%t, %%t, 31;\nmul.wide.u32 %%place, %%t, %d;\nadd.u64 %%place, %%place, %%data;\n",
            w->n * w->bits / 8);
        PUT("ld%s ", op), list(w), PUT(", [%%place];\n");
    } else {
        PUT("READ:\n%sld%s ", guard, op), list(w), PUT(", [%%at];\nmembar.cta;\n");
    }
    compare(w);
    PUT("add.u32 %%i, %%i, 1;\nsetp.lt.u32 %%p, %%i, %%n;\n@%%p bra READ;\n");
    PUT("atom.global.add.u32 %%t, [%%out], %%torn;\natom.global.add.u32 %%t, [%%out+4], %%seen;\nmov.u32 %%t, 1;\nst.volatile.global.u32 [%%out+8], %%t;\nbra DONE;\n");
    PUT("WRITE:\nmov.u32 %%inner, 0;\nAGAIN:\nadd.u32 %%i, %%i, 1;\n");
    fill(w);
    PUT("%sst%s [%%at], ", guard, op), list(w), PUT(";\n");
    PUT("add.u32 %%inner, %%inner, 1;\nsetp.lt.u32 %%p, %%inner, 256;\n@%%p bra AGAIN;\n");
    PUT("ld.volatile.global.u32 %%t, [%%out+8];\nsetp.eq.u32 %%p, %%t, 0;\n@%%p bra WRITE;\nDONE:\nret;\n}\n");
}

static int failed(const char *what, int rc)
{
    printf("%s: error %d\n", what, rc);
    return 2;
}

static int run(const char *name, uint32_t rounds, int n_lanes)
{
    void *module, *f;
    uint64_t data, out;
    uint32_t got[3], n = rounds;
    void *args[] = {&data, &out, &n};
    int rc;
    if ((rc = cuModuleLoadData(&module, text)) || (rc = cuModuleGetFunction(&f, module, "k"))) return failed(name, rc);
    if ((rc = cuMemAlloc_v2(&data, ROOM)) || (rc = cuMemAlloc_v2(&out, 16)) || (rc = cuMemsetD8_v2(data, 0, ROOM)) ||
        (rc = cuMemsetD8_v2(out, 0, 16)))
        return failed(name, rc);
    if ((rc = cuLaunchKernel(f, 2, 1, 1, 16, 2, 1, 0, NULL, args, NULL)) ||
        (rc = cuMemcpyDtoH_v2(got, out, sizeof got)))
        return failed(name, rc);
    cuMemFree_v2(data);
    cuMemFree_v2(out);
    cuModuleUnload(module);
    printf("%s reads=%llu changes=%u torn=%u%s\n", name, (unsigned long long)rounds * (unsigned)n_lanes, got[1], got[0],
           got[0] ? "  TORN" : "");
    fflush(stdout);
    return got[0] != 0;
}

static int wanted(const char *name, int argc, char **argv)
{
    for (int i = 2; i < argc; i++)
        if (!strstr(name, argv[i])) return 0;
    return 1;
}

#define EACH(k, list) for (size_t k = 0; k < sizeof(list) / sizeof *(list); k++)
int main(int argc, char **argv)
{
    uint32_t rounds = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1000;
    int dev, worst = 0;
    void *ctx;
    if (cuInit(0) || cuDeviceGet(&dev, 0) || cuDevicePrimaryCtxRetain(&ctx, dev) || cuCtxSetCurrent(ctx))
        return failed("start", 0);
    EACH(w, widths) EACH(o, orders) EACH(s, spaces)
    {
        char name[128];
        int rc;
        EACH(p, places) EACH(m, masks)
        {
            snprintf(name, sizeof name, "%s-%s-%s-%s-%s", widths[w].name, orders[o], spaces[s], places[p], masks[m]);
            if (!wanted(name, argc, argv)) continue;
            kernel(&widths[w], places[p], masks[m], orders[o], spaces[s], 0);
            rc = run(name, rounds, m ? 28 : 32);
            if (rc > worst) worst = rc;
            if (rc == 2) return 2;
        }
        snprintf(name, sizeof name, "%s-%s-%s-lanes", widths[w].name, orders[o], spaces[s]);
        if (o || !wanted(name, argc, argv)) continue;
        kernel(&widths[w], "row", "all", orders[o], spaces[s], 1);
        rc = run(name, rounds, 32);
        if (rc > worst) worst = rc;
    }
    return worst;
}
