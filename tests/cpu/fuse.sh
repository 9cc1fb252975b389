#!/bin/sh
# Regions that need not wait for one another are run warp by warp (fuse.c): read, wait, write, as scans do, up, down and both ways,
# with gaps, guards, several arrays and types, values that count behind several barriers, by chance; results and counts are the
# emulator's, with random kernels of the same kind each time.
set -u
[ -e "$B/lib/margay/libmargay-cpu.so" ] || { echo "the CPU device is not built here (llvm-19-dev)"; exit 77; }
[ -n "$NVCC" ] || { echo "needs nvcc"; exit 77; }
cat > make.py <<'P'
import random, sys
R = random.Random(int(sys.argv[1]))
TAKEN = ['1', '1', 't < {a}', 't >= {a}', 't < {w}', 't >= {w}', '(t & {m}) == 0', 'blockIdx.x & 1', 'in[t] > 0', 't != {a}', 't >= {a} && t < {w}']


class Kernel:
    def __init__(self, k):
        self.k, self.threads, self.type = k, R.choice([64, 96, 128, 256, 512]), R.choice(['float', 'int', 'unsigned', 'double'])
        self.pad, self.values = R.choice([0, 32, self.threads, 5]), 0

    def taken(self):
        t = self.threads
        return R.choice(TAKEN).format(a=R.randrange(1, t), w=32 * R.randrange(1, t // 32 + 1), m=R.choice([1, 3, 31, 63]))

    def place(self):
        return self.pad + R.choice([0, 32, -32, self.pad, -self.pad, 1, -2]) if self.pad >= 32 else R.randint(0, 2 * self.pad)

    def read(self, a):
        d, t = R.choice([1, 2, 4, 8, 16, 32, self.threads // 2]), self.threads
        return R.choice([f'({self.taken()} ? {a}[t + {self.place()}] : 2)', f'(t >= {d} ? {a}[t - {d} + {self.pad}] : 0)',
                         f'(t < {t - d} ? {a}[t + {d} + {self.pad}] : 0)'])

    def step(self):
        what = R.choice(['read', 'write', 'both', 'other'])
        text = ''
        if what in ('read', 'both') or not self.values:
            for _ in range(R.randrange(1, 3)):
                text += f'    {self.type} v{self.values} = {self.read(R.choice("su"))};\n'
                self.values += 1
            text += '    __syncthreads();\n'
        if what != 'read':
            a, v = R.choice('su'), f'v{R.randrange(self.values)}'
            of = self.read('u' if a == 's' else 's') if what == 'other' else f'v{R.randrange(self.values)}'
            text += f'    if ({self.taken()}) {a}[t + {self.place()}] {R.choice(["=", "+="])} {of} + {v};\n    __syncthreads();\n'
        return text

    def text(self):
        t, n = self.threads, self.threads + 2 * self.pad
        steps = ''.join(self.step() for _ in range(R.randrange(2, 9)))
        return f'''__global__ void k{self.k}(const {self.type} *in, {self.type} *out)
{{
    __shared__ {self.type} s[{n}], u[{n}];
    int t = threadIdx.x;
    in += blockIdx.x * {t};
    s[t + {self.pad}] = in[t * 7 % {t}], u[t + {self.pad}] = in[(t * 3 + 1) % {t}];
    if (t < {self.pad}) s[t] = in[t], u[t] = in[t / 2], s[t + {t + self.pad}] = in[t], u[t + {t + self.pad}] = 3;
    __syncthreads();
{steps}    out[blockIdx.x * {t} + t] = {' + '.join(f'v{i}' for i in range(self.values))} + s[t + {self.pad}] - u[t + {self.pad}];
}}
'''


kernels = [Kernel(k) for k in range(int(sys.argv[2]))]
print('#include <cstdio>\n#include <cstring>\n#include <vector>\n' + ''.join(k.text() for k in kernels) + '''
__global__ void scan(const float *in, float *out)
{
    __shared__ float s[512];
    int t = threadIdx.x;
    s[t] = in[blockIdx.x * 512 + t];
    __syncthreads();
    for (int d = 1; d < 512; d *= 2) {
        float v = t >= d ? s[t - d] : 0;
        __syncthreads();
        s[t] += v;
        __syncthreads();
    }
    out[blockIdx.x * 512 + t] = s[t];
}
template <class X> static void run(const char *name, void (*f)(const X *, X *), int threads)
{
    const int ctas = 7;
    std::vector<X> a(ctas * threads), b(ctas * threads);
    unsigned x = threads, h = 0;
    for (auto &v : a) {
        x = x * 1664525u + 1013904223u, v = (X)((int)(x >> 12) - 500000);
        if (x % 97 == 0) memset(&v, 0xff, sizeof v); /* a NaN where there are some */
    }
    X *in, *out;
    cudaMalloc(&in, a.size() * sizeof(X)), cudaMalloc(&out, a.size() * sizeof(X));
    cudaMemcpy(in, a.data(), a.size() * sizeof(X), cudaMemcpyHostToDevice);
    for (int i = 0; i < 2; i++) f<<<ctas, threads>>>(in, out);
    cudaMemcpy(b.data(), out, a.size() * sizeof(X), cudaMemcpyDeviceToHost);
    for (size_t i = 0; i < b.size() * sizeof(X); i++) h = (h ^ ((unsigned char *)b.data())[i]) * 16777619u;
    printf("%s: %08x %s\\n", name, h, cudaGetErrorName(cudaGetLastError()));
    cudaFree(in), cudaFree(out);
}
int main()
{
    run<float>("scan", scan, 512);
''' + ''.join(f'    run<{k.type}>("k{k.k}", k{k.k}, {k.threads});\n' for k in kernels) + '}')
P
seed=${SEED:-$(od -An -N2 -tu2 /dev/urandom | tr -d ' ')}
python3 make.py "$seed" "${KERNELS:-12}" > fuse.cu && "$NVCC" -w -O2 -arch=sm_90 -cudart shared fuse.cu -o fuse || { echo "FAIL nvcc, seed $seed"; exit 1; }
export MARGAY_CPU_TIER=sync MARGAY_CPU_VERIFY=1 MARGAY_CPU_STORE=off
for isa in ${ISA:-avx512 avx2 base}; do
    for device in emu cpu; do
        for tool in none blocks; do
            MARGAY_ISA=$isa "$MARGAY" run -q --workers 2 --device $device -t $tool -o p.$isa.$device.$tool -- ./fuse > $device.$tool.out 2> $device.$tool.err
        done
        "$MARGAY" report p.$isa.$device.blocks --json | python3 -c 'import json, sys
for k in json.load(sys.stdin)["kernels"]: print(k["name"], [(b["thread_entries"], b["warp_entries"]) for b in k["blocks"]])' > $device.counts
    done
    for what in none.out blocks.out counts; do
        cmp -s emu.$what cpu.$what || { echo "FAIL: seed $seed, $isa: $what"; diff emu.$what cpu.$what | head; exit 1; }
    done
done
grep -c Success emu.none.out > n && ! grep -v Success emu.none.out || { echo "FAIL: seed $seed: a launch failed"; cat emu.none.out; exit 1; }
MARGAY_CPU_VERBOSE=1 "$MARGAY" run -q --workers 1 --device cpu -t none -- ./fuse 2>&1 | grep -o 'whole CTAs, .* [1-9][0-9]* regions fused' > fused
grep -q ' 18 regions fused' fused && [ "$(wc -l < fused)" -gt 3 ] || { echo "FAIL: seed $seed: the scan's regions, or those of random kernels, are not fused"; exit 1; }
echo "seed $seed: $(cat n) kernels"
