/* Accel-Sim, "pseudo" form: each PTX instruction that a warp executed, under a name that the simulator knows, with
 * virtual registers. Blocks of the trace (instructions=on) say which; accesses among them have their own records. It is
 * no trace of machine code, which has other instructions and fewer of some.
 *
 * Addresses of shared and local memory are not in the trace: lanes stand one behind the other there, without bank
 * conflicts. A guarded instruction has the lanes of its block, an access those that made it; one that no lane made is a
 * NOP. */
#include <inttypes.h>

#include "base/buf.h"
#include "export/accelsim.h"

static void put_line(struct mg_accelsim_writer *w, const struct mg_access_site *s, const struct mg_accelsim_words *x,
                     const struct mg_accelsim_held *h, uint32_t mask, struct mg_buf *out)
{
    mg_buf_printf(out, "%04x %08x %s", s->number * MG_ACCELSIM_PC_BYTES, mask, x->text);
    w->sums->accesses++;
    w->sums->lanes += (unsigned)__builtin_popcount(mask);
    if (!x->bytes) {
        mg_buf_adds(out, " 0\n");
        return;
    }
    mg_buf_printf(out, " %u", x->bytes);
    if (h)
        mg_accelsim_put_addresses(out, h);
    else
        mg_buf_printf(out, " 1 0x0 %u", x->bytes);
    mg_buf_addc(out, '\n');
}

/* An instruction of a block, at h[at] of n records: what its lanes accessed, or that they executed it. On a GPU lanes
 * of a block may part and meet within it, so that an access has part of the block's lanes, or those of several. A lane
 * that enters another block has done this one. Returns the number of lines. */
static uint32_t put_instruction(struct mg_accelsim_writer *w, const struct mg_access_site *s,
                                const struct mg_accelsim_words *x, const struct mg_accelsim_held *h, uint32_t at,
                                uint32_t n, struct mg_buf *out)
{
    uint32_t lines = 0, left = h[at].mask;
    for (uint32_t i = at + 1; i < n && left && x->bytes; i++) {
        uint32_t mask = h[i].mask & left;
        bool is_block = h[i].site->kind == MG_ACCESS_BLOCK;
        if (!mask || (!is_block && (!h[i].site->bytes || h[i].site->number != s->number))) continue;
        left &= ~mask;
        if (is_block) continue;
        struct mg_accelsim_held part = h[i];
        part.mask = mask;
        put_line(w, s, x, &part, mask, out);
        lines++;
    }
    static const struct mg_accelsim_words nothing = {.text = "0 NOP 0"};
    if (!lines) put_line(w, s, x->is_global ? &nothing : x, NULL, h[at].mask, out);
    return lines ? lines : 1;
}

static uint32_t put_block(struct mg_accelsim_writer *w, const struct mg_accelsim_held *h, uint32_t at, uint32_t n,
                          uint32_t *left, struct mg_buf *out)
{
    const struct mg_access_site *block = h[at].site;
    uint32_t lines = 0;
    for (uint32_t i = 0; i < block->n_instructions; i++) {
        const struct mg_access_site *s = &block->instructions[i];
        const struct mg_accelsim_words *x = w->words(w->user, s);
        w->unknown += !x;
        if (!x) continue;
        if (x->is_exit) *left &= ~h[at].mask;
        lines += put_instruction(w, s, x, h, at, n, out);
    }
    return lines;
}

static uint32_t put_instructions(struct mg_accelsim_writer *w, const struct mg_accelsim_held *h, uint32_t n,
                                 uint32_t lanes, struct mg_buf *out, uint32_t *n_lines)
{
    uint32_t left = lanes;
    for (uint32_t i = 0; i < n; i++)
        if (h[i].site->kind == MG_ACCESS_BLOCK) *n_lines += put_block(w, h, i, n, &left, out);
    return left;
}

enum mg_err mg_accelsim_pseudo(struct mg_accesses *a, const struct mg_convert_opts *o, mg_accelsim_fn *fn, void *user,
                               struct mg_converted *out, struct mg_diag *d)
{
    struct mg_accelsim_writer w = {.a = a,
                                   .o = o,
                                   .sums = out,
                                   .instructions = true,
                                   .words = fn,
                                   .user = user,
                                   .put_warp = put_instructions,
                                   .by = "pseudo: PTX instructions of Margay with virtual registers, no machine code"};
    enum mg_err err = mg_accelsim_write(&w, d);
    if (!err && w.unknown)
        err = mg_diag_err(d, MG_ERR_INPUT, "%" PRIu64 " instructions are left out: the profile does not keep their PTX",
                          w.unknown);
    return err;
}
