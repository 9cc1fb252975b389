// Several accesses of one base at constant distances, of every width: what each asks for depends on where it begins.
template <typename T> __global__ void apart(T *__restrict__ out, const T *__restrict__ in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    T a = in[i], b = in[i + 1], c = in[i + 32], d = in[i + 64], e = in[i + 128];
    out[i] = a;
    out[i + 64] = b;
    if (i < n) { // part of a warp
        out[i + 300] = c;
        out[i + 364] = d;
    }
    const T *far = in + 3 * i; // a stride
    out[i + 900] = (threadIdx.x & 1) ? e : far[2];
    out[i + 901] = far[66];
}

int main()
{
    char *a, *b;
    if (cudaMalloc(&a, 1 << 16) || cudaMalloc(&b, 1 << 16)) return 1;
    cudaMemset(b, 0, 1 << 16);
    apart<<<3, 96>>>(a, (const char *)b, 70);
    apart<<<3, 96>>>((short *)a, (const short *)b, 70);
    apart<<<3, 96>>>((int *)a, (const int *)b, 70);
    apart<<<3, 96>>>((double *)a, (const double *)b, 70);
    return cudaDeviceSynchronize() != cudaSuccess;
}
