/* What the lanes of a request ask of the memory system together (MG_OP_count_request), and what values they carry
 * (MG_OP_count_carried), over 32 lanes. Compiled once per vector ISA (EMU_ISA, EMU_SUF). On a GPU inserted code finds
 * the same: tool/memory/count.c, tool/values.c. */
#include "device/emu/alu_priv.h"
#include "device/emu/cells.h"
#include "device/emu/request.h"

#define INLINE static inline __attribute__((always_inline))

/* Which lanes hold v, as bits. */
INLINE uint32_t lanes_with(const uint32_t *x, uint32_t v)
{
#if defined(__AVX512F__)
    __m512i k = _mm512_set1_epi32((int)v);
    return _mm512_cmpeq_epi32_mask(_mm512_load_si512(x), k) |
           (uint32_t)_mm512_cmpeq_epi32_mask(_mm512_load_si512(x + 16), k) << 16;
#elif defined(__AVX2__)
    __m256i k = _mm256_set1_epi32((int)v);
    uint32_t r = 0;
    for (int i = 0; i < 4; i++) {
        __m256i same = _mm256_cmpeq_epi32(_mm256_load_si256((const __m256i *)(const void *)x + i), k);
        r |= (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(same)) << 8 * i;
    }
    return r;
#else
    uint32_t r = 0;
    for (int i = 0; i < 32; i++) r |= (uint32_t)(x[i] == v) << i;
    return r;
#endif
}

/* The lanes of the mask that are the first of them with their value. */
INLINE uint32_t firsts_of(const uint32_t *x, uint32_t mask)
{
    uint32_t firsts = 0;
    for (uint32_t left = mask; left;) {
        uint32_t i = (uint32_t)__builtin_ctz(left);
        firsts |= 1u << i;
        left &= ~lanes_with(x, x[i]);
    }
    return firsts;
}

/* How many aligned units of 2^shift bytes. */
static uint32_t count_units(const uint64_t *a, uint32_t mask, unsigned shift)
{
    uint32_t low[32] __attribute__((aligned(64)));
    uint64_t first = a[__builtin_ctz(mask)] >> shift, far = 0;
    for (int i = 0; i < 32; i++) {
        uint64_t off = (a[i] >> shift) - first + (1u << 31);
        low[i] = (uint32_t)off;
        far |= mask & lane_bit[i] ? off >> 32 : 0;
    }
    if (MG_LIKELY(!far)) return emu_popc(firsts_of(low, mask));
    uint32_t n = 0;
    EMU_FOR_LANES(i, mask)
    {
        bool again = false;
        EMU_FOR_LANES(k, mask & ((1u << i) - 1)) again |= a[k] >> shift == a[i] >> shift;
        n += !again;
    }
    return n;
}

/* Passes beyond the first of each group of lanes that is served together: its busiest bank's different words. */
static uint32_t count_passes(const uint64_t *a, uint32_t mask, unsigned bytes)
{
    uint32_t groups = bytes > 8   ? 4
                      : bytes > 4 ? 2
                                  : 1,
             lanes = 32 / groups, total = 0, shift = (uint32_t)__builtin_ctz(MG_MAX(bytes, 4u));
    uint32_t word[32] __attribute__((aligned(64)));
    for (int i = 0; i < 32; i++) word[i] = (uint32_t)(a[i] >> shift);
    for (uint32_t g = 0; g < groups; g++) {
        uint32_t here = mask & UINT32_MAX >> (32 - lanes) << g * lanes, banks = 0, again = 0, most = 1;
        uint32_t n[32] = {0};
        EMU_FOR_LANES(i, here)
        {
            uint32_t bank = 1u << word[i] % lanes;
            again |= banks & bank;
            banks |= bank;
        }
        if (!again) continue;
        EMU_FOR_LANES(i, firsts_of(word, here))
        {
            n[word[i] % lanes]++;
            most = MG_MAX(most, n[word[i] % lanes]);
        }
        total += most - 1;
    }
    return total;
}

/* Do the lanes of the mask lie `step` apart, lane by lane? */
INLINE bool lies_apart(const uint64_t *a, uint32_t mask, int64_t step)
{
    uint32_t from = (uint32_t)__builtin_ctz(mask);
    uint64_t first = a[from] - (uint64_t)step * from, differ = 0;
    for (uint64_t i = 0; i < 32; i++) {
        uint64_t d = (a[i] - (uint64_t)step * i) ^ first;
        differ |= mask & lane_bit[i] ? d : 0;
    }
    return !differ;
}

static enum mg_request_cell pattern_of(const uint64_t *a, uint32_t mask, unsigned bytes, bool placed)
{
    if (mask == UINT32_MAX) {
        int64_t step = (int32_t)(uint32_t)(a[1] - a[0]);
        if (!lies_apart(a, mask, step)) return MG_RQ_IRREGULAR;
        if (step == (int64_t)bytes) return placed && a[0] % 128 == 0 ? MG_RQ_ALIGNED : MG_RQ_UNIT;
        uint64_t size = (uint64_t)(step < 0 ? -step : step);
        return !size ? MG_RQ_SAME : size <= 32 ? MG_RQ_STRIDE_32 : size <= 128 ? MG_RQ_STRIDE_128 : MG_RQ_STRIDE_MORE;
    }
    if (lies_apart(a, mask, 0)) return MG_RQ_SAME;
    return lies_apart(a, mask, bytes) ? MG_RQ_UNIT : MG_RQ_IRREGULAR;
}

static void look(const struct emu_request *r, const uint64_t *at, uint32_t mask, struct emu_looked *x)
{
    uint64_t near[32] __attribute__((aligned(64)));
    const uint64_t *a = at;
    bool shared = r->space == MG_SPACE_shared,
         global = r->space == MG_SPACE_global || r->space == MG_SPACE_generic; /* others' places may differ in a twin */
    if (shared) {
        for (int i = 0; i < 32; i++) near[i] = (uint32_t)at[i];
        a = near;
    }
    *x = (struct emu_looked){.pattern = pattern_of(a, mask, r->bytes, global)};
    if (x->pattern == MG_RQ_SAME || x->pattern == MG_RQ_ALIGNED) return;
    if (shared && x->pattern != MG_RQ_UNIT) x->conflicts = count_passes(a, mask, r->bytes);
    if (!global) return;
    x->sectors = count_units(a, mask, 5);
    x->lines = count_units(a, mask, 7);
}

void ALU_TABLE(emu_request_look)(const struct emu_request *r, const uint64_t *at, uint32_t mask, struct emu_looked *x)
{
    look(r, at, mask, x);
}

void ALU_TABLE(emu_count_request)(ALU_ARGS)
{
    const struct emu_op *op = (const struct emu_op *)o;
    const struct emu_request *r = op->ext;
    uint64_t at[32] __attribute__((aligned(64)));
    struct emu_looked x;
    if (!mask) return;
    if (op->flags & EMU_OF_BASE_W)
        for (int i = 0; i < 32; i++) at[i] = AT(lane32, o->s[0])[i] + (uint32_t)op->off;
    else
        for (int i = 0; i < 32; i++) at[i] = AT(lane64, o->s[0])[i] + (uint64_t)op->off;
    look(r, at, mask, &x);
    emu_request_add(EMU_FRAME(regs)->wk, r, &x, 1);
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static uint64_t low_bits(unsigned bits)
{
    return bits >= 64 ? UINT64_MAX : (1ull << bits) - 1;
}

/* Bits in an order in which unsigned comparison is the type's. */
INLINE uint64_t key_of(uint64_t v, unsigned kind, uint64_t top)
{
    return kind == MG_CK_UNSIGNED ? v : kind == MG_CK_SIGNED || !(v & top) ? v ^ top : v ^ (top | (top - 1));
}

/* Does every lane of the mask hold what the first one does? */
INLINE bool all_equal(const uint64_t *v, uint32_t mask, uint64_t low)
{
    uint64_t first = v[__builtin_ctz(mask)], differ = 0;
    for (int i = 0; i < 32; i++) differ |= mask & lane_bit[i] ? (v[i] ^ first) & low : 0;
    return !differ;
}

/* One step between neighbours, as the two lowest lanes have it: without dividing. */
static bool is_affine(const uint64_t *v, uint32_t mask, uint64_t low)
{
    uint64_t rest[32];
    uint32_t first = (uint32_t)__builtin_ctz(mask), left = mask & (mask - 1);
    if (!left) return false;
    uint32_t next = (uint32_t)__builtin_ctz(left);
    uint64_t step = v[next] - v[first], far = next - first;
    for (uint32_t i = 0; i < 32; i++) rest[i] = v[i] * far - step * (uint64_t)((int64_t)i - first);
    return all_equal(rest, mask, low);
}

void ALU_TABLE(emu_count_carried)(ALU_ARGS)
{
    const struct emu_carried *r = ((const struct emu_op *)o)->ext;
    const uint32_t *had = AT(lane32, o->s[2]);
    bool is_float = r->kind >= MG_CK_F32;
    uint64_t v[32], before[32], sums[MG_CR_SUMS] = {0}, least = UINT64_MAX, most = 0, low = low_bits(r->bits),
                                top = 1ull << (r->bits - 1), size = is_float ? low >> 1 : low,
                                inf = r->kind == MG_CK_F32 ? 0x7f800000 : 0x7ff0000000000000;
    if (!mask) return;
    for (int i = 0; i < 32; i++) {
        bool wide = r->bits > 32;
        v[i] = wide ? AT(lane64, o->s[0])[i] : AT(lane32, o->s[0])[i] & low;
        before[i] = wide ? AT(lane64, o->s[1])[i] : AT(lane32, o->s[1])[i];
    }
    EMU_FOR_LANES(i, mask)
    {
        uint64_t key = key_of(v[i], r->kind, top);
        least = MG_MIN(least, key);
        most = MG_MAX(most, key);
        sums[MG_CR_ZEROS] += !(v[i] & size);
        sums[MG_CR_NANS] += is_float && (v[i] & size) > inf;
        sums[MG_CR_REDUNDANT] += had[i] && before[i] == v[i];
    }
    sums[MG_CR_VALUES] = emu_popc(mask);
    sums[MG_CR_WARPS] = 1;
    sums[MG_CR_UNIFORM] = all_equal(v, mask, UINT64_MAX);
    sums[MG_CR_AFFINE] = !sums[MG_CR_UNIFORM] && is_affine(v, mask, low);
    emu_carried_add(EMU_FRAME(regs)->wk, r, sums, least, most);
}
