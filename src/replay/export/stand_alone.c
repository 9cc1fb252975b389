/* Written by margay replay --export: launches of a captured program, with the memory that they start from.
 *   gcc replay.c -lcuda && ./a.out          needs the CUDA driver, and data.bin beside it
 * Exit status 0: every launch left the bytes that it left when it was captured; 1: the first that did not is named; 5:
 * there was nothing to compare. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The driver's interface, as far as it is used; cuda.h is not needed. */
typedef unsigned long long dptr;
typedef void *handle;
struct location {
    int type, id;
};
struct prop {
    int type, handle_types;
    struct location location;
    void *win32;
    unsigned char flags[8];
};
struct access {
    struct location location;
    int flags;
};
struct attribute {
    int id;
    char pad[4];
    union {
        char bytes[64];
        int on;
        unsigned dim[3];
    } value;
};
struct config {
    unsigned grid[3], block[3], shared;
    handle stream;
    struct attribute *attributes;
    unsigned n;
};
struct array_desc {
    size_t width, height, depth;
    int format;
    unsigned channels, flags;
};
struct copy_side {
    size_t x, y, z, lod;
    int type;
    const void *host;
    dptr device;
    handle array, context;
    size_t pitch, height;
};
struct copy3d {
    struct copy_side from, to;
    size_t width, height, depth;
};
struct resource {
    int type;
    union {
        handle array;
        struct {
            dptr at;
            int format;
            unsigned channels;
            size_t sizes[3];
        } memory;
        int reserved[32];
    } of;
    unsigned flags;
};
int cuInit(unsigned);
int cuDeviceGet(int *, int);
int cuDevicePrimaryCtxRetain(handle *, int);
int cuCtxSetCurrent(handle);
int cuCtxSynchronize(void);
int cuCtxSetLimit(int, size_t);
int cuMemAddressReserve(dptr *, size_t, size_t, dptr, unsigned long long), cuMemAddressFree(dptr, size_t);
int cuMemCreate(unsigned long long *, size_t, const struct prop *, unsigned long long);
int cuMemMap(dptr, size_t, size_t, unsigned long long, unsigned long long);
int cuMemSetAccess(dptr, size_t, const struct access *, size_t);
int cuMemcpyHtoD_v2(dptr, const void *, size_t);
int cuMemcpyDtoH_v2(void *, dptr, size_t);
int cuMemcpyDtoD_v2(dptr, dptr, size_t);
int cuMemsetD2D8_v2(dptr, size_t, unsigned char, size_t, size_t);
int cuMemsetD2D16_v2(dptr, size_t, unsigned short, size_t, size_t);
int cuMemsetD2D32_v2(dptr, size_t, unsigned, size_t, size_t);
int cuMemcpy3D_v2(const struct copy3d *);
int cuArray3DCreate_v2(handle *, const struct array_desc *);
int cuMipmappedArrayCreate(handle *, const struct array_desc *, unsigned);
int cuMipmappedArrayGetLevel(handle *, handle, unsigned);
int cuTexObjectCreate(uint64_t *, const struct resource *, const void *, const void *), cuTexObjectDestroy(uint64_t);
int cuSurfObjectCreate(uint64_t *, const struct resource *), cuSurfObjectDestroy(uint64_t);
int cuModuleLoadDataEx(handle *, const void *, unsigned, int *, void **);
int cuLibraryLoadData(handle *, const void *, int *, void **, unsigned, int *, void **, unsigned);
int cuModuleGetFunction(handle *, handle, const char *);
int cuLibraryGetKernel(handle *, handle, const char *);
int cuKernelGetFunction(handle *, handle);
int cuModuleGetGlobal_v2(dptr *, size_t *, handle, const char *);
int cuLibraryGetGlobal(dptr *, size_t *, handle, const char *);
int cuLibraryGetManaged(dptr *, size_t *, handle, const char *);
int cuFuncSetAttribute(handle, int, int);
int cuLaunchKernelEx(const struct config *, handle, void **, void **);

#define ARENA     0x300000000000ull
#define ARENA_END 0x340000000000ull
enum { GRANULE = 2 << 20, BLOCK = 32 << 20, MARGIN = 2 << 20, MOST_TRANSLATED = 4096 };
static char *data; /* data.bin */
static unsigned long long compared, failed;
static struct {
    dptr was, is;
    uint64_t bytes;
} * variables; /* addresses when it was captured, and here */
static unsigned n_variables;

void check(int rc, const char *what)
{
    if (!rc) return;
    printf("%s: the driver says %d\n", what, rc);
    exit(2);
}

dptr here(dptr p)
{
    for (unsigned k = 0; k < n_variables; k++)
        if (p - variables[k].was < variables[k].bytes) return variables[k].is + (p - variables[k].was);
    return p;
}
/* Words that are addresses of variables; back: as they were. */
void translate(void *p, size_t bytes, int back)
{
    for (size_t k = 0; n_variables && k + 8 <= bytes; k += 8) {
        dptr w;
        memcpy(&w, (char *)p + k, 8);
        for (unsigned i = 0; i < n_variables; i++) {
            dptr from = back ? variables[i].is : variables[i].was, to = back ? variables[i].was : variables[i].is;
            if (w - from < variables[i].bytes) {
                w = to + (w - from);
                memcpy((char *)p + k, &w, 8);
                break;
            }
        }
    }
}

void start(void)
{
    int device;
    handle context;
    FILE *f = fopen("data.bin", "rb");
    long bytes = f && !fseek(f, 0, SEEK_END) ? ftell(f) : -1;
    if (bytes < 0 || fseek(f, 0, SEEK_SET) || !(data = malloc((size_t)bytes + 1)) ||
        fread(data, 1, (size_t)bytes, f) != (size_t)bytes) {
        puts("data.bin cannot be read");
        exit(2);
    }
    fclose(f);
    check(cuInit(0), "cuInit");
    check(cuDeviceGet(&device, 0), "cuDeviceGet");
    check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
}

static int reserve_at(dptr lo, dptr hi)
{
    dptr got = 0;
    int rc = cuMemAddressReserve(&got, hi - lo, GRANULE, lo, 0);
    if (!rc && got != lo) cuMemAddressFree(got, hi - lo);
    return !rc && got == lo;
}

/* Address space from lo to hi, for allocations at their addresses, in order. A driver may not look at where a small
 * range is asked for, and begin at a multiple of 32 MiB. */
void reserve(dptr lo, dptr hi)
{
    static dptr to;
    lo = lo / GRANULE * GRANULE;
    hi = (hi + GRANULE - 1) / GRANULE * GRANULE;
    if (lo < to) lo = to;
    if (hi <= lo) return;
    int there = reserve_at(lo, hi);
    if (!there) {
        dptr from = lo / BLOCK * BLOCK > to ? lo / BLOCK * BLOCK : to;
        hi = (hi + BLOCK - 1) / BLOCK * BLOCK;
        if (hi < from + (1 << 30)) hi = from + (1 << 30);
        there = reserve_at(from, hi);
    }
    if (!there) {
        printf("the addresses from 0x%llx to 0x%llx are not free in this process\n", lo, hi);
        exit(2);
    }
    to = hi;
}

void allocate(dptr at, size_t bytes)
{
    static dptr *mapped;
    static size_t n, cap;
    struct prop prop = {1, 0, {1, 0}, NULL, {0}};
    struct access access = {{1, 0}, 3};
    unsigned long long memory;
    int margin = at >= ARENA && at < ARENA_END; /* kernels may read beyond */
    dptr from = margin && at - ARENA >= MARGIN ? at - MARGIN : at, to = at + bytes + (margin ? MARGIN : 0);
    for (dptr p = from / GRANULE * GRANULE; p < to; p += GRANULE) {
        size_t k = 0;
        while (k < n && mapped[k] != p) k++;
        if (k < n) continue;
        if (n == cap && !(mapped = realloc(mapped, (cap = 2 * cap + 64) * sizeof *mapped))) exit(2);
        mapped[n++] = p;
        check(cuMemCreate(&memory, GRANULE, &prop, 0), "cuMemCreate");
        check(cuMemMap(p, GRANULE, 0, memory, 0), "cuMemMap");
        check(cuMemSetAccess(p, GRANULE, &access, 1), "cuMemSetAccess");
    }
    check(cuMemsetD2D8_v2(at, bytes, 0, bytes, 1), "clearing memory");
}

handle load(const void *image, int library, int *options, void **values, unsigned n)
{
    handle h = NULL;
    check(library ? cuLibraryLoadData(&h, image, options, values, n, NULL, NULL, 0)
                  : cuModuleLoadDataEx(&h, image, n, options, values),
          "loading a module");
    return h;
}
handle find(handle module, int library, const char *name)
{
    handle h = NULL;
    check(library ? cuLibraryGetKernel(&h, module, name) : cuModuleGetFunction(&h, module, name), name);
    if (library) check(cuKernelGetFunction(&h, h), name);
    return h;
}
void variable(handle module, int library, const char *name, dptr was, uint64_t bytes)
{
    dptr is = 0;
    size_t size = 0;
    int rc = library ? cuLibraryGetGlobal(&is, &size, module, name) : cuModuleGetGlobal_v2(&is, &size, module, name);
    if (rc && library) rc = cuLibraryGetManaged(&is, &size, module, name);
    check(rc, name);
    if (!(variables = realloc(variables, (n_variables + 1) * sizeof *variables))) exit(2);
    variables[n_variables].was = was;
    variables[n_variables].is = is;
    variables[n_variables++].bytes = bytes;
}

void write_at(dptr at, void *from, size_t bytes)
{
    if (bytes <= MOST_TRANSLATED) translate(from, bytes, 0);
    check(cuMemcpyHtoD_v2(here(at), from, bytes), "writing memory");
}
void copy(dptr to, dptr from, size_t bytes)
{
    check(cuMemcpyDtoD_v2(here(to), here(from), bytes), "a copy");
}
void set(dptr at, size_t pitch, size_t width, size_t height, unsigned element, unsigned value)
{
    pitch = height == 1 ? width * element : pitch;
    check(element == 1   ? cuMemsetD2D8_v2(here(at), pitch, (unsigned char)value, width, height)
          : element == 2 ? cuMemsetD2D16_v2(here(at), pitch, (unsigned short)value, width, height)
                         : cuMemsetD2D32_v2(here(at), pitch, value, width, height),
          "a memset");
}

/* Arrays have numbers; 0 is none. What is freed stays until the end. */
static struct {
    uint64_t number;
    handle is;
} * arrays;
static unsigned n_arrays;

static void add_array(uint64_t number, handle is)
{
    if (!(arrays = realloc(arrays, (n_arrays + 1) * sizeof *arrays))) exit(2);
    arrays[n_arrays].number = number;
    arrays[n_arrays++].is = is;
}
static handle array_of(uint64_t number)
{
    for (unsigned k = n_arrays; k-- > 0;)
        if (arrays[k].number == number) return arrays[k].is;
    printf("there is no array %llu\n", (unsigned long long)number);
    exit(2);
}
void array(uint64_t number, struct array_desc d, unsigned levels)
{
    handle h = NULL;
    check(levels ? cuMipmappedArrayCreate(&h, &d, levels) : cuArray3DCreate_v2(&h, &d), "making an array");
    add_array(number, h);
}
void level(uint64_t number, uint64_t of, unsigned which)
{
    handle h = NULL;
    check(cuMipmappedArrayGetLevel(&h, array_of(of), which), "finding the level of an array");
    add_array(number, h);
}

/* Kernels have handles as numbers: others that come first are kept until the one of the capture comes. w: the handle,
 * is it a surface, what it is over, the array or where memory lies, format, channels, sizes. */
void object(const uint64_t *w, const char *texture, size_t bytes)
{
    enum { TEXTURE_BYTES = 104, MOST = 1024 };
    struct resource r;
    uint64_t handles[MOST] = {0};
    unsigned n = 0;
    memset(&r, 0, sizeof r);
    r.type = (int)w[2];
    if (r.type < 2) {
        r.of.array = array_of(w[3]);
    } else {
        r.of.memory.at = here(w[4]);
        r.of.memory.format = (int)w[5];
        r.of.memory.channels = (unsigned)w[6];
        for (int k = 0; k < 3; k++) r.of.memory.sizes[k] = w[7 + k];
    }
    do {
        check(w[1]
                  ? cuSurfObjectCreate(&handles[n], &r)
                  : cuTexObjectCreate(&handles[n], &r, texture, bytes > TEXTURE_BYTES ? texture + TEXTURE_BYTES : NULL),
              "a texture or surface");
    } while (handles[n] != w[0] && ++n < MOST);
    if (n == MOST) {
        printf("a texture or surface does not get the handle 0x%llx\n", (unsigned long long)w[0]);
        exit(2);
    }
    while (n-- > 0) w[1] ? cuSurfObjectDestroy(handles[n]) : cuTexObjectDestroy(handles[n]);
}
void object_free(uint64_t is, int surface)
{
    check(surface ? cuSurfObjectDestroy(is) : cuTexObjectDestroy(is), "freeing a texture or surface");
}

/* w: what it is (0: memory of the host, 1: an address, 2: an array), which, x, y, z, -, pitch, height. */
static struct copy_side side_of(const uint64_t *w, const void *host)
{
    struct copy_side s = {w[2], w[3], w[4], 0, (int)w[0] + 1, host, 0, NULL, NULL, w[6], w[7]};
    if (w[0] == 1) s.device = here(w[1]);
    if (w[0] == 2) s.array = array_of(w[1]);
    return s;
}
void copy3d(const uint64_t *w, const void *host)
{
    struct copy3d c = {side_of(w, host), side_of(w + 8, NULL), w[16], w[17], w[18]};
    check(cuMemcpy3D_v2(&c), "a copy in three dimensions");
}

void launch(const char *name, handle kernel, const unsigned *g, int cooperative, void *args, size_t bytes)
{
    struct attribute a[2];
    struct config c = {{g[0], g[1], g[2]}, {g[3], g[4], g[5]}, g[9], NULL, a, 0};
    void *extra[] = {(void *)1, args, (void *)2, &bytes, NULL};
    memset(a, 0, sizeof a);
    if (cooperative) a[c.n].id = 2, a[c.n++].value.on = 1;
    if (g[6]) a[c.n].id = 4, memcpy(a[c.n++].value.dim, g + 6, 12);
    translate(args, bytes, 0);
    check(cuLaunchKernelEx(&c, kernel, NULL, bytes ? extra : NULL), name);
    check(cuCtxSynchronize(), name);
}

uint64_t fold(uint64_t a, uint64_t b)
{
    __extension__ unsigned __int128 p = (unsigned __int128)a * b;
    return (uint64_t)p ^ (uint64_t)(p >> 64);
}
void hash_of(const void *p, size_t bytes, uint64_t out[2])
{
    static const uint64_t secret[4] = {0xa0761d6478bd642fu, 0xe7037ed1a0b428dbu, 0x8ebc6af09c88c6e3u,
                                       0x589965cc75374cc3u};
    uint64_t lane[4], w[8];
    const char *s = p;
    size_t left = bytes;
    for (int k = 0; k < 4; k++) lane[k] = secret[k] ^ bytes;
    for (int last = 0; !last; s += sizeof w) {
        last = left < sizeof w;
        memset(w, 0, sizeof w);
        memcpy(w, s, last ? left : sizeof w);
        left -= last ? 0 : sizeof w;
        for (int k = 0; k < 4; k++) lane[k] = fold(w[2 * k] ^ secret[k], w[2 * k + 1] ^ lane[k]) + w[2 * k];
    }
    out[0] = fold(lane[0] ^ secret[1], lane[1] ^ secret[2]) + fold(lane[2] ^ secret[3], lane[3] ^ secret[0]);
    out[1] = fold(lane[0] ^ secret[3], lane[2] ^ secret[0]) ^ fold(lane[1] ^ secret[1], lane[3] ^ secret[2]) ^ lane[0];
}
/* What lies there, against what lay there when the launch was captured. */
void compare(const char *launch, dptr at, size_t bytes, uint64_t h0, uint64_t h1)
{
    uint64_t h[2];
    char *now = malloc(bytes + 1);
    if (!now) exit(2);
    check(cuMemcpyDtoH_v2(now, here(at), bytes), "reading memory");
    translate(now, bytes, 1);
    hash_of(now, bytes, h);
    free(now);
    compared++;
    if ((h[0] != h0 || h[1] != h1) && !failed++)
        printf("%s left other bytes than recorded: %zu bytes at 0x%llx\n", launch, bytes, at);
}
int end(unsigned launches)
{
    printf("%u launch%s, %s\n", launches, launches == 1 ? "" : "es",
           failed     ? "other results than recorded"
           : compared ? "the recorded results"
                      : "and nothing was compared: the capture holds no check");
    return failed ? 1 : compared ? 0 : 5;
}
