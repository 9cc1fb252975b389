/* Forces between particles of a Lennard-Jones liquid in a periodic box, cut off at CUTOFF where force and potential are
 * shifted to 0: energy is conserved. Particle i of a rank's slice gets one partial sum from each chunk of all particles. */
#include "../common/device.h"

#define CUTOFF 2.5

static __device__ inline double nearest(double d, double box)
{
    if (d > 0.5 * box) return d - box;
    return d < -0.5 * box ? d + box : d;
}

/* Partial sums: force in three dimensions and half the potential, for n_own particles and the chunk of CTA_Y. */
KERNEL(dev_nonbonded)(int n_own, int first, int chunk, double box, const double *position, double *partial)
{
    int own = CTA_X * NTID_X + TID_X, i = first + own;
    if (own >= n_own) return;
    double x = position[3 * i], y = position[3 * i + 1], z = position[3 * i + 2];
    double fx = 0, fy = 0, fz = 0, potential = 0;
    double c6 = 1 / (CUTOFF * CUTOFF * CUTOFF * CUTOFF * CUTOFF * CUTOFF);
    double cut_force = 24 * c6 * (2 * c6 - 1) / CUTOFF, cut_potential = 4 * c6 * (c6 - 1);
    for (int j = CTA_Y * chunk; j < (CTA_Y + 1) * chunk; j++) {
        double dx = nearest(x - position[3 * j], box), dy = nearest(y - position[3 * j + 1], box);
        double dz = nearest(z - position[3 * j + 2], box), r2 = dx * dx + dy * dy + dz * dz;
        if (j == i || r2 >= CUTOFF * CUTOFF) continue;
        double i2 = 1 / r2, i6 = i2 * i2 * i2, r = __builtin_sqrt(r2);
        double f = 24 * i6 * (2 * i6 - 1) * i2 - cut_force / r;
        fx += f * dx;
        fy += f * dy;
        fz += f * dz;
        potential += 0.5 * (4 * i6 * (i6 - 1) - cut_potential + (r - CUTOFF) * cut_force);
    }
    double *out = partial + 4 * (CTA_Y * n_own + own);
    out[0] = fx;
    out[1] = fy;
    out[2] = fz;
    out[3] = potential;
}

KERNEL(dev_sum_forces)(int n_own, int chunks, const double *partial, double *force)
{
    int k = CTA_X * NTID_X + TID_X;
    if (k >= 4 * n_own) return;
    double sum = 0;
    for (int c = 0; c < chunks; c++) sum += partial[4 * c * n_own + k];
    force[k] = sum;
}
