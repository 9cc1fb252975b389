/* Finds the coefficients of src/device/emu/mufu_tables.c in what record.cu recorded.
 *
 * Per piece of a function's range every recorded result says lo <= c0' + c1 * x + c2 * s < hi, where x is
 * the rest of the operand below the piece's index and s its cut square. The width of the interval left for
 * c0' is concave in (c1, c2): a nested search finds the best reals, then all integers around are tried.
 * Prints c0 c1 c2, a line a piece, and on stderr where not exactly one triple fits.
 * usage: fit DIR NAME > table, NAME one of rcp rsq sqrt ex2 lg2 sin tanh        build: cc -O3 fit.c -lm */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PIECES = 128, POINTS = 1 << 17, THIN = 3000, FINE = 12, COARSE = 4 };
static struct piece {
    uint32_t n, *x, *s;
    int64_t *lo, *hi;
} pieces[MAX_PIECES];
static uint32_t n_pieces;

static const struct how {
    const char *name;
    uint32_t pieces, rest_bits, a, c;
    int64_t bias;
    double c1_min, c1_max, c2_min, c2_max;
} hows[] = {
    {"rcp", 128, 16, 13, 0, 0x7e7, -131072, 0, 0, 16384},   {"rsq", 128, 17, 14, 2, 0x3fff, -131072, 0, 0, 16384},
    {"sqrt", 128, 17, 15, 1, 0x7fff, 0, 131072, -16384, 0}, {"ex2", 64, 17, 13, 0, 0x17e2, 0, 131072, 0, 16384},
    {"lg2", 64, 17, 12, 1, 0x345, 0, 131072, -16384, 0},    {"sin", 64, 17, 11, 0, 0, 0, 131072, -16384, 0},
    {"tanh", 51, 17, 15, 0, 0, -10, 1048576, -65536, 10},
};

static void *need(void *p)
{
    if (!p) exit((fprintf(stderr, "out of memory\n"), 1));
    return p;
}
static uint32_t *recorded(const char *dir, const char *name, uint32_t start, uint32_t octaves)
{
    char path[500];
    uint32_t n = octaves << 23, *v = need(malloc(n * 4ull));
    snprintf(path, sizeof path, "%s/%s-%08x.bin", dir, name, start);
    FILE *f = fopen(path, "rb");
    if (!f || fread(v, 4, n, f) != n) exit((fprintf(stderr, "%s cannot be read\n", path), 1));
    fclose(f);
    return v;
}
static uint32_t square(uint32_t x)
{
    uint32_t sum = 0;
    for (int i = 0; i < 17; i++) sum += (x >> i & 1) ? x >> (18 - i) : 0;
    return sum >> 1;
}
static void begin(uint32_t n, uint32_t rest_bits)
{
    n_pieces = n;
    for (uint32_t k = 0; k < n; k++) {
        struct piece *p = &pieces[k];
        p->n = 1u << rest_bits;
        p->x = need(malloc(p->n * 4)), p->s = need(malloc(p->n * 4));
        p->lo = need(malloc(p->n * 8)), p->hi = need(malloc(p->n * 8));
        for (uint32_t i = 0; i < p->n; i++) {
            p->x[i] = i, p->s[i] = square(i << (17 - rest_bits));
            p->lo[i] = INT64_MIN, p->hi[i] = INT64_MAX;
        }
    }
}
static void limit(uint32_t k, uint32_t x, int64_t lo, int64_t hi)
{
    struct piece *p = &pieces[k];
    if (lo > p->lo[x]) p->lo[x] = lo;
    if (hi < p->hi[x]) p->hi[x] = hi;
    if (p->lo[x] >= p->hi[x]) exit((fprintf(stderr, "results contradict each other\n"), 1));
}
static int64_t bits24(uint32_t u)
{
    return (u & 0x7fffff) | 0x800000;
}
/* A result that is the sum cut to an integer: u's significand, below one of 24 bits, and cut bits */
static void limit_integer(uint32_t k, uint32_t x, uint32_t u, bool one, int cut)
{
    int64_t v = one ? 1 << 24 : bits24(u);
    limit(k, x, v << cut, (v + 1) << cut);
}
/* A result that is the sum, of which the last `fraction` bits are fraction and `unseen` are dropped, cut to a float */
static void limit_float(uint32_t k, uint32_t x, uint32_t u, int fraction, int unseen)
{
    int shift = (int)(u >> 23 & 255) - 150 + fraction;
    int64_t v = u << 1 ? shift >= 0 ? bits24(u) << shift : bits24(u) >> -shift : 0;
    limit(k, x, v, v + (1ll << (u << 1 && shift > unseen ? shift : unseen)));
}

static void read_points(const char *dir, const struct how *h)
{
    const char *name = h->name;
    static const int drop[] = {6, 6, 6, 5, 5, 4, 4, 4, 3, 2, 3},
                     fraction[] = {44, 43, 42, 41, 40, 39, 38, 37, 37, 39, 37};
    begin(h->pieces, h->rest_bits);
    if (!strcmp(name, "sin")) {
        for (uint32_t quarter = 0; quarter < 2; quarter++) {
            uint32_t *v = recorded(dir, quarter ? "cos" : "sin", 0x3f000000, 2);
            for (uint32_t i = 0; i < 1u << 24; i++) {
                uint64_t turns = ((i & 0x7fffff) | 0x800000ull) *
                                 0xa2f983; /* of x / 2, 49 fraction bits; cut to 24 bits, then to 25 fraction bits */
                turns = turns >> 47 ? turns & ~0xffffffull : turns & ~0x7fffffull;
                uint32_t q = (uint32_t)((i >> 23 ? turns << 1 : turns) >> 25) + (quarter << 23);
                if (q & 1 << 23) q = ~q;
                limit_float(q >> 17 & 63, q & 0x1ffff, v[i], 37, 0);
            }
            free(v);
        }
        return;
    }
    bool two = !strcmp(name, "rsq") || !strcmp(name, "sqrt"), is_tanh = !strcmp(name, "tanh"),
         is_lg2 = !strcmp(name, "lg2");
    uint32_t octaves = is_tanh ? 11 : two ? 2 : 1, first = 0;
    uint32_t *v = recorded(dir, name, is_tanh ? 0x3b800000 : 0x3f800000, octaves);
    int cut = !strcmp(name, "sqrt") ? 17 : !strcmp(name, "rsq") ? 16 : 15;
    bool falls = !strcmp(name, "rcp") || !strcmp(name, "rsq");
    for (uint32_t i = 0; i < octaves << 23; i++) {
        if (is_tanh) {
            uint32_t e = i >> 23, m = (i & 0x7fffff) >> drop[e];
            if (i && !(i & 0x7fffff)) first += 1u << (6 - drop[e - 1]);
            limit_float(first + (m >> 17), m & 0x1ffff, v[i], fraction[e], 0);
        } else if (!i && (is_lg2 || falls) && strcmp(name, "rcp"))
            continue; /* 1 is special to lg2 and rsq */
        else if (is_lg2)
            limit_float(i >> 17, i & 0x1ffff, v[i], 38, 2);
        else
            limit_integer(i >> h->rest_bits, i & ((1u << h->rest_bits) - 1), v[i], falls && v[i] == 0x3f800000, cut);
    }
    free(v);
}

/* What c1 and c2 leave for c0': *from .. *from + result, empty if negative */
static int64_t width(const struct piece *p, int64_t c1, int64_t c2, int64_t *from)
{
    int64_t low = INT64_MIN, high = INT64_MAX;
    for (uint32_t i = 0; i < p->n; i++) {
        int64_t v = c1 * p->x[i] + c2 * p->s[i], l = p->lo[i] - v, r = p->hi[i] - 1 - v;
        low = l > low ? l : low;
        high = r < high ? r : high;
    }
    *from = low;
    return high - low;
}
static int64_t best_c1(const struct piece *p, int64_t c2, int64_t from, int64_t to, int64_t *c1)
{
    int64_t unused, best = INT64_MIN;
    while (to - from > 2) {
        int64_t mid = (from + to) >> 1;
        if (width(p, mid, c2, &unused) < width(p, mid + 1, c2, &unused))
            from = mid + 1;
        else
            to = mid;
    }
    for (int64_t b = from; b <= to; b++) {
        int64_t w = width(p, b, c2, &unused);
        if (w > best) best = w, *c1 = b;
    }
    return best;
}
/* The best reals for a sample of the points: c1 in units of 2^-FINE, c2 of 2^-COARSE */
static void solve(const struct piece *p, const struct how *h, double *c1, double *c2)
{
    static uint32_t x[THIN], s[THIN];
    static int64_t lo[THIN], hi[THIN];
    struct piece thin = {.n = THIN, .x = x, .s = s, .lo = lo, .hi = hi};
    uint64_t random = 12345;
    for (uint32_t k = 0; k < THIN; k++) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        uint32_t i = (uint32_t)(random >> 33) % p->n;
        x[k] = p->x[i], s[k] = p->s[i] << (FINE - COARSE), lo[k] = p->lo[i] << FINE, hi[k] = p->hi[i] << FINE;
    }
    int64_t from = (int64_t)(h->c2_min * (1 << COARSE << h->c)), to = (int64_t)(h->c2_max * (1 << COARSE << h->c)), a,
            b, best = INT64_MIN;
    int64_t first = (int64_t)(h->c1_min * (1 << FINE)), last = (int64_t)(h->c1_max * (1 << FINE));
    while (to - from > 2) {
        int64_t mid = (from + to) >> 1;
        if (best_c1(&thin, mid, first, last, &a) < best_c1(&thin, mid + 1, first, last, &b))
            from = mid + 1;
        else
            to = mid;
    }
    for (int64_t m = from; m <= to; m++) {
        int64_t w = best_c1(&thin, m, first, last, &a);
        if (w > best) best = w, *c1 = (double)a / (1 << FINE), *c2 = (double)m / (1 << COARSE);
    }
}

static void fit(uint32_t k, const struct how *h)
{
    struct piece *p = &pieces[k], q;
    uint32_t n = 0, found = 0;
    double r1 = 0, r2 = 0;
    for (uint32_t i = 0; i < p->n; i++)
        if (p->lo[i] != INT64_MIN) p->x[n] = p->x[i], p->s[n] = p->s[i], p->lo[n] = p->lo[i], p->hi[n] = p->hi[i], n++;
    p->n = n;
    solve(p, h, &r1, &r2);
    q = *p;
    for (uint32_t i = 0; i < n; i++) q.s[i] <<= h->c;
    for (int64_t c1 = llrint(r1) - 4; c1 <= llrint(r1) + 4; c1++)
        for (int64_t c2 = llrint(r2 / (1 << h->c)) - 3; c2 <= llrint(r2 / (1 << h->c)) + 3; c2++) {
            int64_t from, w = width(&q, c1, c2, &from), c0 = (from + w - h->bias) >> h->a;
            if (w < 0 || c0 << h->a < from - h->bias) continue;
            if (!found++) printf("%lld %lld %lld\n", (long long)c0, (long long)c1, (long long)c2);
        }
    if (found != 1) fprintf(stderr, "%s, piece %u: %u solutions\n", h->name, k, found);
}

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 2 && i < sizeof hows / sizeof *hows; i++) {
        if (strcmp(hows[i].name, argv[2])) continue;
        read_points(argv[1], &hows[i]);
        for (uint32_t k = 0; k < n_pieces; k++) fit(k, &hows[i]);
        return 0;
    }
    return 2;
}
