/* The plan, for people: what is counted where and why, as comments in front of a twin's text. */
#include "count/storage/storage.h"

static void add_block(const struct mg_rfunc *f, uint32_t block, struct mg_buf *out)
{
    mg_id label = f->x.c->blocks[block].label;
    mg_buf_printf(out, "%u", (unsigned)block);
    if (label) mg_buf_printf(out, " (%s)", mg_name(f->x.m, f->x.m->labels.at[label].name));
}

static void add_place(const struct mg_rfunc *f, const struct mg_count *k, struct mg_buf *out)
{
    switch (k->kind) {
    case MG_COUNT_ENTRY:
        mg_buf_adds(out, "entry of the function");
        break;
    case MG_COUNT_BLOCK:
        mg_buf_adds(out, "block ");
        add_block(f, k->block, out);
        break;
    case MG_COUNT_EDGE:
        mg_buf_adds(out, "edge ");
        add_block(f, k->block, out);
        mg_buf_adds(out, " -> ");
        add_block(f, f->x.c->edges[k->edge], out);
        break;
    case MG_COUNT_LEAVE:
        mg_buf_adds(out, "end of block ");
        add_block(f, k->block, out);
        break;
    case MG_COUNT_IV:
        mg_buf_adds(out, "loop of block ");
        add_block(f, f->plan->loops->loops[f->plan->ivs->list[k->iv].loop].header, out);
        mg_buf_adds(out, " by its induction variable");
        break;
    }
}

static void add_counter(const struct mg_rfunc *f, uint32_t i, struct mg_buf *out)
{
    const struct mg_rc *c = &f->counters[i];
    mg_buf_printf(out, ": %s: %s\n", mg_storage_of(c)->name, c->why);
}

void mg_count_dump(const struct mg_rfunc *f, const char *function, struct mg_buf *out)
{
    uint32_t n = 0;
    for (uint32_t b = 0; b < f->x.c->n_blocks; b++) n += f->x.c->reachable[b];
    mg_buf_printf(out, "// plan of %s: %u counters for %u blocks%s\n", function, (unsigned)f->plan->n, (unsigned)n,
                  f->calls.carried ? ", which travel to its callers"
                  : f->alike       ? ", which CTA 0 counts for all"
                                   : "");
    for (uint32_t i = 0; i < f->plan->n; i++) {
        mg_buf_adds(out, "//   ");
        add_place(f, &f->plan->list[i], out);
        add_counter(f, i, out);
    }
    for (uint32_t b = 0; b < f->x.c->n_blocks; b++) {
        if (f->warps.rule[b] != MG_WR_LOWEST) continue;
        mg_buf_adds(out, "//   warps of block ");
        add_block(f, b, out);
        add_counter(f, f->warps.counter[b], out);
    }
    for (uint32_t i = 0; i < f->calls.n_sources; i++) {
        mg_buf_adds(out, "//   from a callee");
        add_counter(f, f->n - f->calls.n_sources + i, out);
    }
}

void mg_count_dump_layout(const struct mg_sites *s, const struct mg_counter_layout *l, struct mg_buf *out)
{
    mg_buf_printf(out, "// plan of %s: %u counters for %u blocks\n", s->kernel, (unsigned)l->n_counters,
                  (unsigned)s->n_blocks);
    for (uint32_t b = 0; b < s->n_blocks && l->threads; b++) {
        const struct mg_site_block *k = &s->blocks[b];
        mg_buf_printf(out, "//   block %u of %s%s%s%s: counter %u", (unsigned)k->block_ix, k->function,
                      *k->label ? " (" : "", k->label, *k->label ? ")" : "", (unsigned)l->threads[b]);
        if (l->warps) mg_buf_printf(out, ", its warps: counter %u", (unsigned)l->warps[b]);
        mg_buf_addc(out, '\n');
    }
}
