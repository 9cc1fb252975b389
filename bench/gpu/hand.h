// Probes as one writes them by hand into the source of a kernel, HAND says which. They are what the same probes put in by
// Margay (probes.c) are measured against. A kernel has one parameter more then: 64-bit words, all 0 before the launch.
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

template <class T> __device__ __forceinline__ T hand_load(hand &h, T v)
{
    unsigned active = __activemask();
    bool lead = (threadIdx.x + threadIdx.y * blockDim.x) % 32 == __ffs(active) - 1;
    if (HAND == 1) h.n += sizeof(T);
    if (HAND == 2) atomicAdd(&h.p[first_bits(v) & 15], 1ull);
    if (HAND == 3 && lead) atomicAdd(&h.p[0], 1ull), atomicAdd(&h.p[1], (word)__popc(active));
    if (HAND == 6 && lead) atomicAdd(&h.p[__popc(active)], 1ull);
    return v;
}

template <class T> __device__ __forceinline__ T hand_store(hand &h, T v)
{
    if (HAND == 4) atomicMax(&h.p[0], (word)first_bits(v));
    return v;
}

__device__ __forceinline__ void hand_leave(hand &h)
{
    if (HAND == 1) atomicAdd(&h.p[0], h.n);
    if (HAND == 5) atomicAdd(&h.p[0], (word)(clock64() - h.start));
}

#define HAND_PARAM , word *hand_words
#define HAND_ENTER hand hand_ = {hand_words, 0, HAND == 5 ? clock64() : 0}
#define HAND_LOAD(x) hand_load(hand_, x)
#define HAND_STORE(x) hand_store(hand_, x)
#define HAND_LEAVE hand_leave(hand_)
#endif
