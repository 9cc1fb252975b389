/* Coalescing: one member of an array of structs, against an array for each member. */
#include "common.h"

struct Particle { float x, y, z, mass, vx, vy, vz, charge; };

__global__ void kinetic_energy(const Particle *particles, float *energy, int count)
{
    int id = blockDim.x * blockIdx.x + threadIdx.x;
    if (id >= count) return;
    float v = particles[id].vx; /* FAULT */
    energy[id] = 0.5f * v * v;
}

__global__ void kinetic_energy_members(const float *vx, float *energy, int count)
{
    int id = blockDim.x * blockIdx.x + threadIdx.x;
    if (id >= count) return;
    float v = vx[id];
    energy[id] = 0.5f * v * v;
}

int main(int argc, char **argv)
{
    const int n = 50000;
    std::vector<Particle> all(n);
    std::vector<float> vx(n), out(n);
    for (int i = 0; i < n; i++) all[i].vx = vx[i] = (float)(mix(i) % 1000) / 100;
    float *energy = to_device(out);
    if (is_fault(argc, argv)) kinetic_energy<<<(n + 191) / 192, 192>>>(to_device(all), energy, n);
    else kinetic_energy_members<<<(n + 191) / 192, 192>>>(to_device(vx), energy, n);
    CHECK(cudaDeviceSynchronize());
    print_sum(from_device(energy, n));
}
