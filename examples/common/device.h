/* Device side of the examples: the few CUDA words they use, so that the same kernels build with
 * nvcc, and with clang alone on a machine without any CUDA toolkit. */
#ifndef EXAMPLES_DEVICE_H
#define EXAMPLES_DEVICE_H

#ifdef __NVCC__
#define KERNEL(name) extern "C" __global__ void name
#else
#define KERNEL(name) extern "C" __attribute__((global)) void name
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))

#define SREG(name, reg) \
    static __device__ inline int name##_x() { return __nvvm_read_ptx_sreg_##reg##_x(); } \
    static __device__ inline int name##_y() { return __nvvm_read_ptx_sreg_##reg##_y(); }
SREG(tid, tid)
SREG(ctaid, ctaid)
SREG(ntid, ntid)
SREG(nctaid, nctaid)
#undef SREG
static __device__ inline int atomicAdd(int *p, int v) { return __nvvm_atom_add_gen_i(p, v); }
#endif

#ifdef __NVCC__
#define TID_X ((int)threadIdx.x)
#define TID_Y ((int)threadIdx.y)
#define CTA_X ((int)blockIdx.x)
#define CTA_Y ((int)blockIdx.y)
#define NTID_X ((int)blockDim.x)
#define NTID_Y ((int)blockDim.y)
#else
#define TID_X tid_x()
#define TID_Y tid_y()
#define CTA_X ctaid_x()
#define CTA_Y ctaid_y()
#define NTID_X ntid_x()
#define NTID_Y ntid_y()
#endif

#endif
