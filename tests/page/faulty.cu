/* A race in shared memory between lines 9 and 10, for --check and the page; `sound` has none. */
#define KERNEL __attribute__((global))
#define TID __nvvm_read_ptx_sreg_tid_x()
#define INDEX (__nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() + TID)
KERNEL void race(int n, const int *in, int *out)
{
    __attribute__((shared)) static int s[64];
    int t = TID;
    s[t] = in[INDEX];
    out[INDEX] = s[(t + 33) % 64];
}

KERNEL void sound(int n, const int *in, int *out)
{
    out[INDEX] = in[INDEX] + n;
}
