/* Bank conflicts: a group of 16 lanes shares a row of coefficients; rows lie 64 doubles apart, or 65. */
#include "common.h"

enum { TAPS = 64, GROUPS = 8, THREADS = 128 };

template <int STEP> __global__ void filter_rows(const double *samples, const double *taps, double *filtered, int n)
{
    extern __shared__ double coefficients[];
    for (int k = threadIdx.x; k < TAPS * GROUPS * 2; k += THREADS) coefficients[k / TAPS * STEP + k % TAPS] = taps[k];
    __syncthreads();
    int i = blockIdx.x * THREADS + threadIdx.x;
    double sum = 0, s = samples[i];
    const double *row = coefficients + threadIdx.x % 16 * STEP;
    for (int t = 0; t < TAPS; t++)
        sum = sum * s + row[t]; /* FAULT */
    filtered[i] = sum;
}

int main(int argc, char **argv)
{
    const int n = 128 * 60;
    std::vector<double> x(n), h(TAPS * GROUPS * 2), y(n);
    for (int i = 0; i < n; i++) x[i] = (double)(mix(i) % 100) / 200;
    for (size_t i = 0; i < h.size(); i++) h[i] = mix(i + 7) % 9;
    double *samples = to_device(x), *taps = to_device(h), *filtered = to_device(y);
    size_t bytes = (TAPS + 1) * GROUPS * 2 * sizeof(double);
    if (is_fault(argc, argv)) filter_rows<TAPS><<<n / THREADS, THREADS, bytes>>>(samples, taps, filtered, n);
    else filter_rows<TAPS + 1><<<n / THREADS, THREADS, bytes>>>(samples, taps, filtered, n);
    CHECK(cudaDeviceSynchronize());
    print_sum(from_device(filtered, n));
}
