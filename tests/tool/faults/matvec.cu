/* Coalescing: a thread for each row of a matrix whose rows, or whose columns, lie together. */
#include "common.h"

__global__ void rows_times_vector(const double *matrix, const double *vec, double *product, int rows, int columns)
{
    int row = blockIdx.x * 128 + threadIdx.x;
    double sum = 0;
    if (row < rows)
        for (int c = 0; c < columns; c++)
            sum += matrix[row * columns + c] * /* FAULT */
                   vec[c];
    if (row < rows) product[row] = sum;
}

__global__ void columns_times_vector(const double *matrix, const double *vec, double *product, int rows, int columns)
{
    int row = blockIdx.x * 128 + threadIdx.x;
    double sum = 0;
    if (row < rows)
        for (int c = 0; c < columns; c++)
            sum += matrix[c * rows + row] *
                   vec[c];
    if (row < rows) product[row] = sum;
}

int main(int argc, char **argv)
{
    const int rows = 2048, columns = 90;
    std::vector<double> a(rows * columns), t(rows * columns), x(columns), y(rows);
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) a[r * columns + c] = t[c * rows + r] = mix(r * 131 + c) % 17;
    for (int c = 0; c < columns; c++) x[c] = c % 5 - 2;
    double *product = to_device(y);
    if (is_fault(argc, argv)) rows_times_vector<<<rows / 128, 128>>>(to_device(a), to_device(x), product, rows, columns);
    else columns_times_vector<<<rows / 128, 128>>>(to_device(t), to_device(x), product, rows, columns);
    CHECK(cudaDeviceSynchronize());
    print_sum(from_device(product, rows));
}
