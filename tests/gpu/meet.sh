#!/bin/sh
# On a GPU: lanes that a branch or a loop parts meet again in twins of tools that tell which lanes run together, where they meet natively.
# Each CTA of the kernel is one warp of 32 lanes; inner loops of both kinds end in other rounds for each lane, a barrier of the warp's own is none:
# what stands behind them is entered by 32 lanes ROUNDS times. In twins with an atomic on shared memory in such loops it was entered in pieces.
set -u
: "${NVCC:=$(command -v nvcc || true)}" "${MARGAY:=build/release/bin/margay}"
MARGAY=$(readlink -f "$MARGAY")
[ -n "$NVCC" ] || { echo "no nvcc"; exit 77; }
cat > meet.cu <<'C'
#include <cstdio>
enum { CTAS = 64, ROUNDS = 9 };
extern "C" __global__ void meet(unsigned *out, const unsigned *in, float x)
{
    __shared__ unsigned words[32];
    unsigned s = 0, t = threadIdx.x;
    float f = x;
    words[t] = t;
#pragma unroll 1
    for (unsigned k = 0; k < ROUNDS; k++) {
#pragma unroll 1
        for (unsigned n = in[t] + k; n != 1; s++) {          /* another number of rounds in each lane */
            if (n & 1) n = 3 * n + 1, s += words[n & 31];
            else n >>= 1;
            if (s == 0x7fffffff) return;                     /* never */
        }
        if (s & 1) f = f / (1 + s);
        else s += in[s & 31];
        out[blockIdx.x * 32 + t] = s + k;                    /* BEHIND */
    }
    out[blockIdx.x * 32 + t] = s + (unsigned)f + words[s & 31];
}
int main()
{
    unsigned in[32], out[32 * CTAS], *i, *o, sum = 0;
    for (unsigned k = 0; k < 32; k++) in[k] = 27 + 5 * k;
    cudaMalloc(&i, sizeof in), cudaMalloc(&o, sizeof out);
    cudaMemcpy(i, in, sizeof in, cudaMemcpyHostToDevice);
    meet<<<CTAS, 32>>>(o, i, 3);
    if (cudaMemcpy(out, o, sizeof out, cudaMemcpyDeviceToHost)) return 1;
    for (unsigned v : out) sum = 31 * sum + v;
    printf("%u\n", sum);
}
C
"$NVCC" -O2 -lineinfo -arch=sm_90 -cudart shared -o meet meet.cu || exit 1
./meet > native.out || exit 1
bad=0
for tools in "blocks,warps=on" "lanes" "memory" "lanes memory" "lanes,guards=on opcodes"; do
    set --
    for t in $tools; do set -- "$@" -t "$t"; done
    case " $tools" in *blocks* | *lanes*) ;; *) set -- "$@" -t blocks,warps=on ;; esac
    rm -rf p
    "$MARGAY" run -q --strict --device nvidia "$@" -o p -- ./meet > out || { echo "$tools: status $?"; bad=1; continue; }
    cmp -s out native.out || { echo "$tools: another output"; bad=1; }
    "$MARGAY" report p --json > p.json
    python3 - "$tools" <<'P' || bad=1
import json, sys
r = json.load(open('p.json'))
line = next(n for n, l in enumerate(open('meet.cu'), 1) if 'BEHIND' in l)
blocks = [b for b in r['kernels'][0]['blocks'] if b['thread_entries'] == 64 * 9 * 32]
lanes = {b['id']: b['lanes'] for b in r['tools']['lanes']['kernels'][0]['blocks']} if 'lanes' in r['tools'] else {}
entries = {b['id']: sum(lanes[b['id']][1:]) if lanes else b['warp_entries'] for b in blocks}
# a block of the outer loop is entered by all 32 lanes in each round; its header and what stands behind the inner loop are such
whole = [i for i, n in entries.items() if n == 64 * 9]
if len(whole) < 2 or any(n != 64 * 9 for n in entries.values()):
    sys.exit(f'{sys.argv[1]}: blocks of the outer loop are entered in pieces: {entries}')
P
done
exit $bad
