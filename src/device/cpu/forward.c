/* Special registers and constants read where they were moved from: `mov r, %tid.x` and then an operation on r is an
 * operation on %tid.x, where that move is what every way there has last written to r.
 *
 * A register has one shape wherever it is read (shape.c). Compilers use one for the thread's number and, when nobody
 * asks for it any more, for a loop's variable that differs from lane to lane; what was computed before the loop would
 * then differ, too. The emulator goes on reading r, so that it stays live (cpu_inst.was). */
#include "device/cpu/cpu.h"

#include <stdlib.h>
#include <string.h>

#define NOTHING  0
#define ANYTHING UINT64_MAX

struct forward {
    struct cpu_func *f;
    uint32_t *number, n; /* by register: 1 + its place in a row, which says what the register is: 1 + another */
    uint64_t *now;
    const struct cpu_inst *in;
};

static bool is_source(const struct cpu_reg *r)
{
    if (r->kind == CPU_REG_CONST) return true;
    return r->kind == CPU_REG_SREG && (r->sreg == MG_SREG_tid || r->sreg == MG_SREG_ntid || r->sreg == MG_SREG_ctaid ||
                                       r->sreg == MG_SREG_nctaid || r->sreg == MG_SREG_laneid);
}

/* Does it move a special register or a constant as it is? */
static bool moves_source(const struct cpu_func *f, const struct cpu_inst *in)
{
    if (!cpu_is_move(in) || in->guard || !in->d || in->d2 || !in->s[0]) return false;
    const struct cpu_reg *d = &f->regs[in->d - 1], *s = &f->regs[in->s[0] - 1];
    return d->kind == CPU_REG_PLAIN && d->cls == s->cls && d->cls != EMU_Q && is_source(s);
}

static bool join_rows(uint64_t *to, const uint64_t *from, uint32_t words)
{
    bool grew = false;
    for (uint32_t k = 0; k < words; k++) {
        uint64_t now = from[k] == NOTHING || from[k] == to[k] ? to[k] : to[k] == NOTHING ? from[k] : ANYTHING;
        grew |= now != to[k];
        to[k] = now;
    }
    return grew;
}

static void write_row(void *user, uint32_t r, bool must)
{
    struct forward *z = user;
    (void)must;
    if (z->number[r]) z->now[z->number[r] - 1] = moves_source(z->f, z->in) ? z->in->s[0] : ANYTHING;
}

static void pass_block(void *user, uint32_t b, uint64_t *row)
{
    struct forward *z = user;
    z->now = row;
    for (uint32_t i = z->f->blocks[b].first; i < z->f->blocks[b].end; i++) {
        z->in = &z->f->insts[i];
        cpu_each_def(z->f, z->in, write_row, z);
    }
}

static void read_there(struct forward *z, struct cpu_inst *in)
{
    for (int k = 0; k < 3 && in->kind == CPU_ALU; k++) {
        uint32_t at = in->s[k] ? z->number[in->s[k] - 1] : 0;
        if (!at || z->now[at - 1] == NOTHING || z->now[at - 1] == ANYTHING) continue;
        in->was[k] = in->s[k];
        in->s[k] = (uint32_t)z->now[at - 1];
    }
}

void cpu_forward(struct cpu_func *f)
{
    struct forward z = {.f = f, .number = mg_xcalloc(f->n_regs + 1, sizeof *z.number)};
    for (uint32_t i = 0; i < f->n_insts; i++)
        if (moves_source(f, &f->insts[i]) && !z.number[f->insts[i].d - 1]) z.number[f->insts[i].d - 1] = ++z.n;
    uint64_t *rows = mg_xcalloc((size_t)f->n_blocks * z.n + 1, sizeof *rows);
    for (uint32_t k = 0; k < z.n; k++) rows[(size_t)f->entry * z.n + k] = ANYTHING;
    if (z.n)
        mg_dataflow_run(&(struct mg_dataflow){
            .g = &f->succ, .any = true, .join = join_rows, .words = z.n, .rows = rows, .pass = pass_block, .user = &z});
    for (uint32_t b = 0; b < f->n_blocks && z.n; b++) {
        z.now = rows + (size_t)b * z.n;
        for (uint32_t i = f->blocks[b].first; i < f->blocks[b].end; i++) {
            struct cpu_inst moved = f->insts[i];
            z.in = &moved;
            read_there(&z, &f->insts[i]);
            cpu_each_def(f, &moved, write_row, &z);
        }
    }
    free(rows);
    free(z.number);
}
