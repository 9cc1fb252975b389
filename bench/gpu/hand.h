// Probes as one writes them by hand into the source of a kernel, HAND says which. They are what the same probes put in by
// Margay (probes.c) are measured against, written with care: multiprocessors share out 64 copies of the words, warps add
// up before they go to memory (for numbers below 2^27 only: more would take more code), the lowest lane leads. A kernel
// has one parameter more then: 64 times 64 words, all 0 before the launch.
//
//   1 bytes   a register of each thread: bytes read from global memory; added to word 0 when the thread leaves
//   2 values  at each load: word (value & 15) + 1
//   3 warps   at each load, the lowest active lane: word 0 + 1, word 1 + active lanes
//   4 max     at each store: word 0 = the largest value, as bits
//   5 cycles  word 0 + clocks from entry to exit
//   6 lanes   at each load, the lowest active lane: word (active lanes) + 1
#if !HAND
#define HAND_PARAM
#define HAND_ENTER
#define HAND_LOAD(x) (x)
#define HAND_STORE(x) (x)
#define HAND_LEAVE
#else
typedef unsigned long long word;
struct hand { word *p, n; long long start; };

template <class T> __device__ __forceinline__ unsigned first_bits(T v)
{
    union { T v; unsigned bits; } u;
    u.v = v;
    return u.bits;
}

__device__ __forceinline__ bool hand_leads(unsigned active)
{
    unsigned below;
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(below));
    return (active & below) == 0;
}

template <class T> __device__ __forceinline__ T hand_load(hand &h, T v)
{
    if (HAND == 1) h.n += sizeof(T);
    if (HAND == 2) atomicAdd(&h.p[first_bits(v) & 15], 1ull);
    if (HAND == 3 || HAND == 6) {
        unsigned active = __activemask();
        if (hand_leads(active)) {
            if (HAND == 3) atomicAdd(&h.p[0], 1ull), atomicAdd(&h.p[1], (word)__popc(active));
            else atomicAdd(&h.p[__popc(active)], 1ull);
        }
    }
    return v;
}

template <class T> __device__ __forceinline__ T hand_store(hand &h, T v)
{
    if (HAND == 4) {
        unsigned active = __activemask(), most = __reduce_max_sync(active, first_bits(v));
        if (hand_leads(active)) atomicMax(&h.p[0], (word)most);
    }
    return v;
}

__device__ __forceinline__ void hand_leave(hand &h)
{
    if (HAND != 1 && HAND != 5) return;
    unsigned active = __activemask(), sum = __reduce_add_sync(active, HAND == 1 ? (unsigned)h.n : (unsigned)(clock64() - h.start));
    if (hand_leads(active)) atomicAdd(&h.p[0], (word)sum);
}

__device__ __forceinline__ word *hand_copy(word *p)
{
    unsigned sm;
    asm("mov.u32 %0, %%smid;" : "=r"(sm));
    return p + 64 * (sm & 63);
}

#define HAND_PARAM , word *hand_words
#define HAND_ENTER hand hand_ = {hand_copy(hand_words), 0, HAND == 5 ? clock64() : 0}
#define HAND_LOAD(x) hand_load(hand_, x)
#define HAND_STORE(x) hand_store(hand_, x)
#define HAND_LEAVE hand_leave(hand_)
#endif
