"""many.py N > many.cu: N kernels of (int n, const int *in, int *out). Four shapes take turns: a plain one, strided accesses,
a divergent loop, conflicts in shared memory. Names are plain, in namespaces, or templates of up to 24 arguments."""
import sys

HEAD = '''#define KERNEL __attribute__((global))
#define TID __nvvm_read_ptx_sreg_tid_x()
#define INDEX (int)(__nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() + TID)
template <int N, class T> struct Functor {};
'''
SHAPES = {
    'scale': '''{
    int i = INDEX;
    if (i < n) out[i] = in[i] * %(k)d + 1;
}
''', 'gather': '''{
    int i = INDEX;
    int at = i * %(stride)d %% n;
    out[i] = in[at];
}
''', 'walk': '''{
    int i = INDEX;
    int sum = 0;
    for (int j = 0; j < i %% 32 + %(k)d %% 7; j++) {
        sum += in[(i + j) %% n];
        if (sum & 1)
            sum ^= j;
    }
    out[i] = sum;
}
''', 'transpose': '''{
    __attribute__((shared)) static int tile[1024];
    int t = TID;
    tile[t * %(stride)d %% 1024] = in[INDEX];
    __nvvm_bar_sync(0);
    out[INDEX] = tile[(t + 1) * %(stride)d %% 1024] + %(k)d;
}
'''}
PARAMS = '(int n, const int *in, int *out)'

print(HEAD)
for k in range(int(sys.argv[1])):
    shape = list(SHAPES)[k % 4]
    body = SHAPES[shape] % {'k': k, 'stride': 8 << k % 3}
    if k % 10 < 9:
        print(f'KERNEL void {shape}_{k}{PARAMS}\n{body}')
        continue
    args = ', '.join(f'Functor<{j}, float>' for j in range(24 if k % 50 == 49 else 2))
    print(f'namespace engine {{ namespace detail {{\ntemplate <class... F> KERNEL void {shape}_{k}{PARAMS}\n{body}'
          f'template KERNEL void {shape}_{k}<{args}>{PARAMS};\n}} }}\n')
