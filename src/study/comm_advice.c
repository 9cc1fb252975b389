/* Advice and scaling as text and JSON. */
#include <inttypes.h>
#include <stdio.h>

#include "base/demangle.h"
#include "study/comm_print.h"

enum { PAIRS = 12 /* in the text */ };

static const char *const assumptions[] = {"a launch takes the time that its executed bytes take in memory, and scales "
                                          "with the GPUs; caches, arithmetic and launches cost nothing",
                                          "each GPU reads what it needs from the GPU that wrote it last, each reading "
                                          "CTA for itself, when the launch begins; nothing overlaps",
                                          "bytes with several writers come from another GPU",
                                          "blocks: CTAs by number in as many rows as GPUs; cyclic: in turn; cut: moved "
                                          "from these to where most of their partners are, 5 % off balance at most",
                                          NULL};

static double share(uint64_t part, uint64_t of)
{
    return of ? 100.0 * (double)part / (double)of : 0;
}

static void print_pairs(const struct mg_comm_study *s, struct mg_json *j)
{
    for (uint32_t i = 0; i < s->advice->pairs.n; i++) {
        const struct mg_comm_pair *p = &s->advice->pairs.at[i];
        mg_json_obj(j);
        mg_json_key_str(j, "from", s->r->kernels[p->from]);
        mg_json_key_str(j, "to", s->r->kernels[p->to]);
        mg_json_key_u64(j, "launches", p->times);
        mg_json_key_u64(j, "read_nothing", p->free);
        mg_json_key_u64(j, "read_own", p->own);
        mg_json_key_u64(j, "bytes", p->bytes);
        mg_json_key_u64(j, "own_bytes", p->own_bytes);
        mg_json_end(j, '}');
    }
}

void mg_comm_print_advice_json(const struct mg_comm_study *s, struct mg_json *j)
{
    const struct mg_comm_advice *a = s->advice;
    mg_json_key(j, "advice");
    mg_json_obj(j);
    mg_json_key(j, "pairs");
    mg_json_arr(j);
    print_pairs(s, j);
    mg_json_end(j, ']');
    mg_json_key_u64(j, "next_bytes", a->next_bytes);
    mg_json_key_u64(j, "same_cta_bytes", a->same_cta);
    mg_json_key(j, "clusters");
    mg_json_arr(j);
    for (uint32_t i = 0; i < MG_COUNT_OF(a->in_cluster); i++) {
        mg_json_obj(j);
        mg_json_key_u64(j, "ctas", 2u << i);
        mg_json_key_u64(j, "bytes", a->in_cluster[i]);
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
    mg_json_end(j, '}');
    mg_json_key(j, "scaling");
    mg_json_obj(j);
    mg_json_key_bool(j, "estimate", true);
    mg_json_key(j, "assumptions");
    mg_json_arr(j);
    for (const char *const *text = assumptions; *text; text++) mg_json_str(j, *text);
    mg_json_end(j, ']');
    mg_json_key(j, "memory_gbs"), mg_json_f64(j, s->link.memory_gbs);
    mg_json_key(j, "link_gbs"), mg_json_f64(j, s->link.link_gbs);
    mg_json_key(j, "latency_us"), mg_json_f64(j, s->link.latency_us);
    mg_json_key(j, "gpus");
    mg_json_arr(j);
    for (uint32_t i = 0; i < s->scales->n; i++) {
        const struct mg_comm_scale *x = &s->scales->at[i];
        mg_json_obj(j);
        mg_json_key_u64(j, "gpus", x->gpus);
        mg_json_key_str(j, "placement", mg_comm_placement_name(x->placement));
        mg_json_key_u64(j, "bytes", x->bytes);
        mg_json_key_u64(j, "superstep_bytes_most", x->most_bytes);
        mg_json_key_u64(j, "several_bytes", x->unplaced);
        mg_json_key(j, "speedup_bound"), mg_json_f64(j, x->speedup);
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
    mg_json_end(j, '}');
}

void mg_comm_print_advice_text(const struct mg_comm_study *s, struct mg_buf *out)
{
    const struct mg_comm_advice *a = s->advice;
    if (!mg_comm_has_ctas(s->r)) return;
    mg_buf_adds(out, "\nlaunches one behind the other, and what the second reads of the first\n");
    for (uint32_t i = 0; i < a->pairs.n && i < PAIRS; i++) {
        const struct mg_comm_pair *p = &a->pairs.at[i];
        mg_buf_adds(out, "  ");
        mg_demangle_add(out, s->r->kernels[p->from], SIZE_MAX);
        mg_buf_adds(out, ", ");
        mg_demangle_add(out, s->r->kernels[p->to], SIZE_MAX);
        mg_buf_printf(out, ": %" PRIu64 " times, %" PRIu64 " B\n", p->times, p->bytes);
        if (p->free) mg_buf_printf(out, "    %" PRIu64 " read nothing of it: these need no order\n", p->free);
        if (p->own)
            mg_buf_printf(out,
                          "    %" PRIu64
                          " read what the same CTA wrote alone: one kernel without a barrier of the grid keeps %" PRIu64
                          " B on chip,\n      if no other CTA still reads what the second one writes\n",
                          p->own, p->own_bytes);
    }
    if (a->pairs.n > PAIRS) mg_buf_printf(out, "  and %lu more pairs: --json\n", (unsigned long)(a->pairs.n - PAIRS));
    if (a->next_bytes)
        mg_buf_printf(out,
                      "  from a launch to the next one: %" PRIu64
                      " B, to the same CTA number %.1f %%, within clusters of 2, 4, 8, 16: %.1f %.1f %.1f %.1f %%\n",
                      a->next_bytes, share(a->same_cta, a->next_bytes), share(a->in_cluster[0], a->next_bytes),
                      share(a->in_cluster[1], a->next_bytes), share(a->in_cluster[2], a->next_bytes),
                      share(a->in_cluster[3], a->next_bytes));
    mg_buf_printf(out,
                  "\nover several GPUs, a model (memory %.0f GB/s, link %.0f GB/s, %.1f us): bytes between GPUs, bound "
                  "of the speed-up\n",
                  s->link.memory_gbs, s->link.link_gbs, s->link.latency_us);
    mg_buf_printf(out, "  %4s %26s %26s %26s\n", "GPUs", "blocks", "cyclic", "cut");
    for (uint32_t i = 0; i < s->scales->n; i++) {
        const struct mg_comm_scale *x = &s->scales->at[i];
        if (x->placement == MG_COMM_BLOCKS) mg_buf_printf(out, "%s  %4lu", i ? "\n" : "", (unsigned long)x->gpus);
        mg_buf_printf(out, " %14" PRIu64 " B %8.3g x", x->bytes, x->speedup);
    }
    mg_buf_adds(out, "\n");
}
