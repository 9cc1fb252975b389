// Kernels of the client without nvcc: built by clang alone, no CUDA headers.
#define GLOBAL __attribute__((global))
#define DEVICE __attribute__((device))
DEVICE int bias[4];
__attribute__((constant)) int scale = 2;
extern "C" GLOBAL void fill(int n, int *out)
{
    int i = __nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() + __nvvm_read_ptx_sreg_tid_x();
    if (i < n) out[i] = i * scale + bias[i & 3];
}
extern "C" GLOBAL void sum(int n, const int *in, int *out)
{
    int s = 0;
    for (int i = 0; i < n; i++) s += in[i];
    *out = s;
}
