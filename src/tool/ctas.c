/* ctas: thread instructions of each CTA: how evenly a kernel's work is spread. Exact on every device, since nothing
 * is timed; warps that wait cost nothing here.
 *
 *   block   a register of the thread grows by the block's instructions
 *   loop    the head of each of the first `most_loops` loops counts its entries likewise: names the loop that makes
 *           some CTAs longer
 *   exit    the thread adds its registers to the cells of its CTA, if that has a slot (cta_slot.h)
 *   slots   of a kernel as many as the launch has CTAs that its twin is made for: from `least_slots` on, doubled
 *
 * Kept launch by launch. Profile: multiprocessors take CTAs in order, each the next one when it is free; what that
 * takes is compared with an even share (docs/tools/ctas.md). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/loop.h"
#include "patch/cta_slot.h"
#include "tool/tool.h"
#include "view/chart.h"
#include "view/kit.h"

enum { bars = 16, charts = 40 /* pictures: of the first kernels */ };
enum { most_loops = 6, least_slots = 1024, words = 4 /* masks of CTAs without a slot, for each number of slots */ };
struct conf {
    uint64_t slots;
};

static const struct mg_tool_opt ctas_opts[] = {
    {"ctas", "4096", "CTAs of a launch with a count of their own; larger grids are sampled evenly"}, {0}};
static const struct mg_field ctas_fields[] = {{"ctas", MG_FIELD_NUMBER, offsetof(struct conf, slots), 1, 8192, NULL},
                                              {0}};

static enum mg_err ctas_configure(const char *args, void **conf, struct mg_diag *d)
{
    const struct conf defaults = {.slots = 4096};
    return mg_fields_parse("ctas", ctas_fields, &defaults, sizeof defaults, args, conf, d);
}

static uint32_t slots_of(const struct conf *c, uint32_t ix)
{
    return (uint32_t)MG_MIN(c->slots, (uint64_t)least_slots << ix);
}

static void ctas_initialize(const void *conf, const struct mg_tool_launch *l, uint64_t *w)
{
    for (uint32_t i = 0; i < words; i++)
        w[i] = ((uint64_t)1 << mg_cta_slot_shift(l->shape.grid, slots_of(conf, i))) - 1;
}

/* ---- instrument ---------------------------------------------------------------------------------------- */

struct sums { /* of one function; registers */
    uint32_t func_ix, first, slots, word;
    uint32_t n; /* instructions, then loops */
    mg_id reg[1 + most_loops];
    uint32_t ix[1 + most_loops]; /* run of cells of each */
};

static enum mg_err ctas_analyze(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    (void)conf;
    if (mg_patch_ends_in_callee(p))
        return mg_diag_err(d, MG_ERR_UNSUPPORTED, "tool ctas: threads end inside functions that the kernel calls");
    mg_patch_words(p, words);
    return MG_ERR_OK;
}

static mg_id new_sum(struct mg_patch *p, uint32_t func_ix)
{
    struct mg_code_at *entry = mg_at_entry(p, func_ix);
    mg_id r = mg_code_reg(entry, MG_TYPE_b64);
    MG_CODE(entry, "mov.u64", r, 0);
    return r;
}

static void add_to(struct mg_code_at *at, mg_id reg, uint64_t n)
{
    MG_CODE(at, "add.u64", reg, reg, (int64_t)n);
}

static void at_exit(struct mg_code_at *at, void *user)
{
    const struct sums *s = user;
    mg_id mask = mg_code_temp(at, MG_TYPE_b32), slot;
    if (mg_at_func(at) != s->func_ix) return; /* analyze refuses such kernels */
    MG_CODE(at, "cvt.u32.u64", mask, mg_value_word(at, s->word));
    mg_id without = mg_cta_slot_find(at, mask, &slot);
    for (uint32_t i = 0; i < s->n; i++)
        mg_cell_update_at(at, s->first + s->ix[i] * s->slots, s->slots, slot, mg_o_reg(s->reg[i]), MG_EACH);
    mg_code_place(at, without);
}

/* Loops in text order of their functions, outer ones before inner ones. Their site is the branch that goes back to the
 * head: it has the source line of the loop itself. Note: number of the loop, its depth. */
struct loops {
    struct {
        uint32_t head /* dense block id */, depth;
        mg_id branch;
    } at[most_loops];
    uint32_t n;
};

/* The last instruction of the last block that goes back to the head; 0: none does. */
static mg_id find_branch_back(struct mg_patch *p, uint32_t func_ix, uint32_t loop)
{
    const struct mg_sites *s = mg_patch_sites(p);
    const struct mg_loops *of = mg_patch_loops(p, func_ix);
    const struct mg_patch_inst *insts;
    uint32_t n = mg_patch_insts(p, &insts), head = s->first_block[func_ix] + of->loops[loop].header;
    mg_id found = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct mg_site_block *b = &s->blocks[insts[i].id];
        bool last = i + 1 == n || insts[i + 1].id != insts[i].id;
        if (!last || insts[i].func_ix != func_ix || !mg_loops_contains(of, loop, insts[i].block)) continue;
        for (uint32_t e = 0; e < b->n_succs; e++)
            if (b->succs[e] == head) found = insts[i].node;
    }
    return found;
}

static void list_loops(struct mg_patch *p, struct loops *l)
{
    const struct mg_sites *s = mg_patch_sites(p);
    l->n = 0;
    for (uint32_t f = 0; f < s->n_funcs; f++) {
        const struct mg_loops *of = mg_patch_loops(p, f);
        for (uint32_t i = 0; i < of->n_loops && l->n < most_loops; i++) {
            mg_id branch = find_branch_back(p, f, i);
            if (!branch) continue;
            l->at[l->n].head = s->first_block[f] + of->loops[i].header;
            l->at[l->n].depth = MG_MIN(of->loops[i].depth, 255u);
            l->at[l->n++].branch = branch;
        }
    }
}

static enum mg_err ctas_instrument(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    const struct conf *c = conf;
    const struct mg_sites *s = mg_patch_sites(p);
    struct loops loops;
    (void)d;
    list_loops(p, &loops);
    uint32_t word = 0;
    while (word + 1 < words && slots_of(c, word) < mg_patch_ctas(p)) word++;
    uint32_t slots = slots_of(c, word);
    uint32_t first = mg_patch_site(p, MG_SITE_KERNEL, 0, 0, slots * (1 + loops.n), MG_MERGE_SUM, loops.n);
    for (uint32_t i = 0; i < loops.n; i++)
        mg_patch_site(p, MG_SITE_INST, loops.at[i].branch, 0, 0, MG_MERGE_SUM, (i + 1) | loops.at[i].depth << 8);
    mg_patch_one_copy(p); /* CTAs have cells of their own */
    for (uint32_t f = 0; f < s->n_funcs; f++) {
        struct sums *x = mg_arena_new(mg_patch_scratch(p), struct sums);
        *x = (struct sums){.func_ix = f, .first = first, .slots = slots, .word = word, .n = 1, .reg = {new_sum(p, f)}};
        for (uint32_t i = 0; i < loops.n; i++) {
            if (s->blocks[loops.at[i].head].func_ix != f) continue;
            x->ix[x->n] = i + 1;
            x->reg[x->n] = new_sum(p, f);
            add_to(mg_at_block(p, loops.at[i].head), x->reg[x->n++], 1);
        }
        for (uint32_t b = 0; b < s->n_blocks; b++)
            if (s->blocks[b].func_ix == f && s->blocks[b].n_insts)
                add_to(mg_at_block(p, b), x->reg[0], s->blocks[b].n_insts);
        mg_at_exits(p, f, at_exit, x);
    }
    return MG_ERR_OK;
}

/* ---- profile ------------------------------------------------------------------------------------------- */

enum { MOST_LONG = 4096 /* kept of the longest CTAs */ };
struct shape {             /* of the launch with the largest imbalance */
    double worst;          /* longest / mean */
    uint32_t longest[3];   /* the CTA */
    uint64_t ctas, beyond; /* those counted; of these, with more than half way from the mean to the longest */
    double trend;          /* correlation of a CTA's instructions with its number, -1 to 1 */
    const struct mg_result_site *loop;     /* that the longest CTA enters more often; NULL: none */
    double rounds_of_longest, rounds_mean; /* of a thread in it */
    uint64_t least, most;
    uint64_t counts[bars]; /* CTAs of each part of least to most */
    uint64_t parts[bars];  /* the longest CTA of each part of the grid, by number */
    uint32_t *long_slots;  /* those beyond, up to MOST_LONG; NULL: no launch was looked at */
    uint32_t grid[3], shift;
};
struct work { /* of one kernel, over its launches */
    const struct mg_result_kernel *k;
    uint64_t launches, ctas, sum, least, most, grid_ctas; /* grid_ctas: all, counted or not */
    double takes;                   /* thread instructions until the last multiprocessor is done */
    double even, equal;             /* the same in even shares; of CTAs that are equal */
    double mean, shortest, longest; /* CTA of a launch, summed over launches */
    struct shape shape;
};

/* A multiprocessor, whose CTAs share it equally: `shared` is what each that was there all the time has done. */
struct sm {
    double shared, since, next; /* when `shared` was true; when a CTA ends, INFINITY: none is there */
    double *ends;               /* of the CTAs that are there: what `shared` is then */
    uint32_t n;
};

static uint32_t first_to_end(const struct sm *s)
{
    uint32_t first = 0;
    for (uint32_t i = 1; i < s->n; i++)
        if (s->ends[i] < s->ends[first]) first = i;
    return first;
}

static void find_next(struct sm *s)
{
    s->next = s->n ? s->since + (s->ends[first_to_end(s)] - s->shared) * s->n : INFINITY;
}

/* The first multiprocessor of a heap has changed. */
static void sink(struct sm *heap, uint32_t n)
{
    struct sm x = heap[0];
    uint32_t at = 0;
    for (uint32_t child; (child = 2 * at + 1) < n; at = child) {
        child += child + 1 < n && heap[child + 1].next < heap[child].next;
        if (heap[child].next >= x.next) break;
        heap[at] = heap[child];
    }
    heap[at] = x;
}

static int by_next(const void *a, const void *b)
{
    double x = ((const struct sm *)a)->next, y = ((const struct sm *)b)->next;
    return (x > y) - (x < y);
}

/* n CTAs in order, to one multiprocessor after the other as long as they take some, then each to the one where the next
 * CTA ends. When the last one has ended. */
static double schedule(const uint64_t *work, uint32_t n, uint32_t sms, uint32_t resident)
{
    uint32_t most = MG_MIN(MG_MAX(resident, 1u), n / sms + 1), i = 0;
    struct sm *heap = mg_xcalloc(sms, sizeof *heap);
    double *ends = mg_xcalloc((size_t)sms * most, sizeof *ends), last = 0;
    for (uint32_t s = 0; s < sms; s++) heap[s].ends = ends + (size_t)s * most;
    for (; i < n && i < sms * most; i++) heap[i % sms].ends[heap[i % sms].n++] = (double)work[i];
    for (uint32_t s = 0; s < sms; s++) find_next(&heap[s]);
    qsort(heap, sms, sizeof *heap, by_next);
    while (heap[0].n) {
        struct sm *s = &heap[0];
        uint32_t first = first_to_end(s);
        last = s->since = s->next;
        s->shared = s->ends[first];
        s->ends[first] = i < n ? s->shared + (double)work[i++] : s->ends[--s->n];
        find_next(s);
        sink(heap, sms);
    }
    free(ends);
    free(heap);
    return last;
}

/* Of loops that the longest CTA enters at least half as much more often than the mean as it is longer: the outermost,
 * of these the one with most entries beyond the mean. */
static const struct mg_result_site *find_loop(const struct mg_result_kernel *k, const uint64_t *cells, uint32_t slots,
                                              uint32_t n, uint32_t longest, double ratio)
{
    const struct mg_result_site *found = NULL;
    double most = 0;
    for (uint32_t i = 0; i < k->n_sites; i++) {
        const struct mg_result_site *s = &k->sites[i];
        uint32_t ix = s->note & 255;
        if (s->kind != MG_SITE_INST || !ix || (uint64_t)(ix + 1) * slots > k->n_cells) continue;
        const uint64_t *entries = cells + (size_t)ix * slots;
        double mean = 0;
        for (uint32_t c = 0; c < n; c++) mean += (double)entries[c] / n;
        double beyond = (double)entries[longest] - mean;
        if (!entries[longest] || (double)entries[longest] < mean * (1 + .5 * (ratio - 1))) continue;
        bool outer = found && s->note >> 8 < found->note >> 8, inner = found && s->note >> 8 > found->note >> 8;
        if (inner || (!outer && beyond <= most)) continue;
        found = s;
        most = beyond;
    }
    return found;
}

/* How the work of the first n CTAs grows with their number: 1 or -1 is a ramp. */
static double find_trend(const uint64_t *work, uint32_t n, double mean)
{
    double xy = 0, xx = 0, yy = 0;
    for (uint32_t i = 0; i < n; i++) {
        double x = i - .5 * (n - 1), y = (double)work[i] - mean;
        xy += x * y, xx += x * x, yy += y * y;
    }
    return xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : 0;
}

/* How many CTAs have how much work: parts of equal width, the last with the longest. */
static void count_bars(struct shape *s, const uint64_t *work, uint32_t n)
{
    s->least = s->most = work[0];
    for (uint32_t i = 1; i < n; i++) s->least = MG_MIN(s->least, work[i]), s->most = MG_MAX(s->most, work[i]);
    double width = (double)(s->most - s->least) / bars;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = width > 0 ? (uint32_t)((double)(work[i] - s->least) / width) : 0;
        s->counts[MG_MIN(at, bars - 1u)]++;
    }
}

static uint32_t count_parts(const struct shape *s)
{
    return (uint32_t)MG_MIN(s->ctas, (uint64_t)bars);
}

/* The CTA that the part begins with, of those that were counted. */
static uint64_t begin_of_part(const struct shape *s, uint32_t part)
{
    uint32_t n = count_parts(s);
    return (part * s->ctas + n - 1) / n;
}

static void find_parts(struct shape *s, const uint64_t *work)
{
    for (uint32_t p = 0; p < count_parts(s); p++)
        for (uint64_t i = begin_of_part(s, p); i < begin_of_part(s, p + 1); i++)
            s->parts[p] = MG_MAX(s->parts[p], work[i]);
}

static void place_of_cta(const struct shape *s, uint32_t slot, uint32_t at[3])
{
    uint64_t cta = (uint64_t)slot << s->shift;
    at[0] = (uint32_t)(cta % s->grid[0]);
    at[1] = (uint32_t)(cta / s->grid[0] % s->grid[1]);
    at[2] = (uint32_t)(cta / s->grid[0] / s->grid[1]);
}

static void find_shape(struct shape *s, const struct mg_result_kernel *k, const struct mg_result_launch *l,
                       uint32_t slots, uint32_t n, uint32_t longest)
{
    uint32_t *list = s->long_slots ? s->long_slots : mg_xcalloc(MOST_LONG, sizeof *list);
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += (double)l->cells[i];
    double mean = sum / n, most = (double)l->cells[longest];
    *s = (struct shape){.worst = most / mean,
                        .ctas = n,
                        .trend = find_trend(l->cells, n, mean),
                        .long_slots = list,
                        .grid = {l->grid[0], l->grid[1], l->grid[2]},
                        .shift = mg_cta_slot_shift(l->grid, slots)};
    place_of_cta(s, longest, s->longest);
    for (uint32_t i = 0; i < n; i++) {
        if ((double)l->cells[i] <= .5 * (mean + most)) continue;
        if (s->beyond < MOST_LONG) list[s->beyond] = i;
        s->beyond++;
    }
    count_bars(s, l->cells, n);
    find_parts(s, l->cells);
    s->loop = find_loop(k, l->cells, slots, n, longest, s->worst);
    if (!s->loop) return;
    const uint64_t *entries = l->cells + (size_t)(s->loop->note & 255) * slots;
    double threads = (double)l->block[0] * l->block[1] * l->block[2];
    for (uint32_t i = 0; i < n; i++) s->rounds_mean += (double)entries[i] / n / threads;
    s->rounds_of_longest = (double)entries[longest] / threads;
}

static bool is_few_long(const struct shape *s)
{
    return s->worst >= 2 && s->beyond <= MG_MIN(MG_MAX(s->ctas / 20, (uint64_t)1), (uint64_t)MOST_LONG);
}

/* One word for it: decides what to try. */
static const char *shape_word(const struct shape *s)
{
    if (s->worst < 1.01) return "even";
    if (s->ctas >= 8 && fabs(s->trend) >= .9) return s->trend > 0 ? "rising" : "falling";
    return is_few_long(s) ? "few long" : "spread";
}

static void add_launch(struct work *w, const struct mg_result_launch *l, uint32_t slots, uint32_t sms)
{
    uint32_t shift = mg_cta_slot_shift(l->grid, slots), longest = 0;
    uint64_t ctas = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2], sum = 0;
    uint32_t n = (uint32_t)((ctas + ((uint64_t)1 << shift) - 1) >> shift);
    n = MG_MIN(n, slots);
    if (!n) return;
    for (uint32_t i = 0; i < n; i++) {
        sum += l->cells[i];
        if (l->cells[i] > l->cells[longest]) longest = i;
        w->least = w->ctas + i ? MG_MIN(w->least, l->cells[i]) : l->cells[i];
    }
    if (!sum) return;
    double mean = (double)sum / n, ratio = (double)l->cells[longest] / mean;
    uint32_t places = MG_MAX(MG_MIN(shift < 32 ? sms >> shift : 0, n), 1u); /* of a sample: as many times fewer */
    w->launches += l->times ? l->times : 1;
    w->ctas += n;
    w->grid_ctas += ctas;
    w->sum += sum;
    w->most = MG_MAX(w->most, l->cells[longest]);
    double equal = mean * ((n + places - 1) / places);
    uint64_t shortest = l->cells[0];
    for (uint32_t i = 1; i < n; i++) shortest = MG_MIN(shortest, l->cells[i]);
    w->mean += mean;
    w->shortest += (double)shortest;
    w->longest += (double)l->cells[longest];
    w->takes += ratio > 1 ? schedule(l->cells, n, places, l->resident) : equal;
    w->even += (double)sum / places;
    w->equal += equal;
    if (ratio > w->shape.worst) find_shape(&w->shape, w->k, l, slots, n, longest);
}

static uint32_t slots_in(const struct mg_result_kernel *k)
{
    for (uint32_t i = 0; i < k->n_sites; i++)
        if (k->sites[i].kind == MG_SITE_KERNEL) return k->n_cells / (1 + k->sites[i].note);
    return 0;
}

static void work_init(struct work *w, const struct mg_result_kernel *k, const struct mg_tool_result *r)
{
    uint32_t slots = slots_in(k);
    *w = (struct work){.k = k};
    for (uint64_t i = 0; i < k->n_of_launch && slots; i++)
        if (k->of_launch[i].complete) add_launch(w, &k->of_launch[i], slots, r->sms);
}

static struct mg_result_site place_of(const struct work *w)
{
    const struct mg_site_block *b = w->k->n_blocks && w->k->blocks ? &w->k->blocks[0] : NULL;
    if (w->shape.loop) return *w->shape.loop;
    return (struct mg_result_site){.function = w->k->name,
                                   .op = "",
                                   .file = b ? b->file : NULL,
                                   .line = b ? b->line : 0,
                                   .ptx_line = b ? b->ptx_line : 0};
}

static void shape_json(const struct shape *s, struct mg_json *j)
{
    mg_json_key_str(j, "shape", shape_word(s));
    mg_json_key(j, "longest");
    mg_json_arr(j);
    for (int d = 0; d < 3; d++) mg_json_u64(j, s->longest[d]);
    mg_json_end(j, ']');
    mg_json_key_u64(j, "long_ctas", s->beyond);
    mg_json_key(j, "long_cta_ids");
    mg_json_arr(j);
    for (uint32_t i = 0; is_few_long(s) && i < s->beyond; i++) {
        uint32_t at[3];
        place_of_cta(s, s->long_slots[i], at);
        mg_json_arr(j);
        for (int d = 0; d < 3; d++) mg_json_u64(j, at[d]);
        mg_json_end(j, ']');
    }
    mg_json_end(j, ']');
    mg_json_key(j, "histogram");
    mg_json_obj(j);
    mg_json_key_u64(j, "least", s->least);
    mg_json_key_u64(j, "most", s->most);
    mg_json_key(j, "ctas");
    mg_json_arr(j);
    for (uint32_t i = 0; i < bars; i++) mg_json_u64(j, s->counts[i]);
    mg_json_end(j, ']');
    mg_json_end(j, '}');
    mg_json_key(j, "longest_by_number");
    mg_json_arr(j);
    for (uint32_t i = 0; i < count_parts(s); i++) mg_json_u64(j, s->parts[i]);
    mg_json_end(j, ']');
    if (!s->loop) return;
    mg_json_key_f64(j, "rounds_of_longest", s->rounds_of_longest);
    mg_json_key_f64(j, "rounds_mean", s->rounds_mean);
}

static void work_json(const struct work *w, struct mg_json *j)
{
    struct mg_result_site place = place_of(w);
    bool any = w->launches > 0;
    mg_json_obj(j);
    mg_kit_site_json(j, w->k, &place);
    mg_json_key_bool(j, "loop", w->shape.loop != NULL);
    mg_json_key_u64(j, "launches", w->launches);
    mg_json_key_u64(j, "ctas", w->ctas);
    mg_json_key_u64(j, "grid_ctas", w->grid_ctas);
    mg_json_key_bool(j, "estimate", w->ctas < w->grid_ctas);
    mg_json_key_u64_if(j, "least", any, w->least);
    mg_json_key_u64_if(j, "most", any, w->most);
    mg_json_key_f64_if(j, "mean", any, (double)w->sum / (double)w->ctas);
    mg_json_key_f64_if(j, "imbalance", any, w->shape.worst);
    mg_json_key_f64_if(j, "shortest_share", any, w->shortest / w->mean);
    mg_json_key_f64_if(j, "longest_share", any, w->longest / w->mean);
    mg_json_key_f64_if(j, "even_share", any && w->takes > 0, w->even / w->takes);
    mg_json_key_f64_if(j, "grid_share", any && w->equal > 0, w->even / w->equal);
    if (any) shape_json(&w->shape, j);
    mg_json_end(j, '}');
}

static void work_row(const struct work *w, struct mg_table *t)
{
    struct mg_result_site place = place_of(w);
    const uint32_t *at = w->shape.longest;
    bool flat = !at[1] && !at[2];
    char longest[40];
    if (!w->launches) return;
    mg_table_row(t);
    mg_table_place(t, &place);
    mg_table_f64(t, w->takes > w->equal ? 100 * (1 - w->equal / w->takes) : 0);
    mg_table_f64(t, w->shape.worst);
    mg_table_u64(t, w->least);
    mg_table_f64(t, (double)w->sum / (double)w->ctas);
    mg_table_u64(t, w->most);
    snprintf(longest, sizeof longest, flat ? "%u" : "%u,%u,%u", at[0], at[1], at[2]);
    mg_table_text(t, longest);
    mg_table_text(t, shape_word(&w->shape));
    mg_table_u64(t, w->ctas);
    mg_table_u64(t, w->launches);
    mg_table_text(t, w->k->demangled);
}

/* Where the work lies over the grid: the CTAs by number; where their number does not tell, by their work. */
static void draw_bars(const struct work *w, struct mg_table *t, uint32_t ix)
{
    const struct shape *s = &w->shape;
    struct mg_buf svg = MG_BUF_INIT, title = MG_BUF_INIT, marks[bars] = {MG_BUF_INIT};
    const char *texts[bars];
    double values[bars];
    bool by_work = !strcmp(shape_word(s), "spread");
    uint32_t n = by_work ? bars : count_parts(s);
    for (uint32_t i = 0; i < n; i++) {
        if (by_work)
            mg_chart_short(&marks[i], (double)s->least + (double)(s->most - s->least) * i / bars);
        else
            mg_buf_addu(&marks[i], begin_of_part(s, i) << s->shift);
        texts[i] = i % 4 ? NULL : marks[i].at;
        values[i] = (double)(by_work ? s->counts[i] : s->parts[i]);
    }
    mg_kit_kernel_name(w->k, 60, &title);
    mg_buf_adds(&title,
                by_work ? ": CTAs by their thread instructions, " : ": thread instructions of CTAs by number, ");
    mg_chart_short(&title, (double)s->least);
    mg_buf_adds(&title, " to ");
    mg_chart_short(&title, (double)s->most);
    mg_chart_distribution(&svg, title.at,
                          by_work ? "thread instructions, from" : "number of the CTA, from; the longest of each part",
                          by_work ? "CTAs" : "instructions", values, n, 0, texts);
    mg_kit_chart(t, "ctas", ix, &title, &svg);
    for (uint32_t i = 0; i < n; i++) mg_buf_release(&marks[i]);
}

static void ctas_profile(const void *conf, const struct mg_tool_result *r, struct mg_table *t, struct mg_json *j)
{
    (void)conf;
    mg_table_begin(t, "ctas", "thread instructions of CTAs; what as many equal CTAs would save, waits aside");
    mg_table_column(t, "line", MG_COL_PLACE, NULL);
    mg_table_column(t, "equal CTAs save", MG_COL_PERCENT, NULL);
    mg_table_column(t, "imbalance", MG_COL_REAL, "longest / mean");
    mg_table_column(t, "least", MG_COL_COUNT, NULL);
    mg_table_column(t, "mean", MG_COL_REAL, NULL);
    mg_table_column(t, "most", MG_COL_COUNT, NULL);
    mg_table_column(t, "longest", MG_COL_TEXT, NULL);
    mg_table_column(t, "shape", MG_COL_TEXT, NULL);
    mg_table_column(t, "CTAs", MG_COL_COUNT, NULL);
    mg_table_column(t, "launches", MG_COL_COUNT, NULL);
    mg_table_column(t, "kernel", MG_COL_TEXT, NULL);
    mg_json_key(j, "kernels");
    mg_json_arr(j);
    uint32_t even = 0;
    for (uint32_t k = 0; k < r->n_kernels; k++) {
        struct work w;
        work_init(&w, &r->kernels[k], r);
        work_json(&w, j);
        work_row(&w, t);
        bool alike = w.launches && w.shape.worst < 1.01;
        even += alike;
        if (k < charts && w.launches && !alike) draw_bars(&w, t, k);
        mg_kit_sampled(t, w.k, w.ctas, w.grid_ctas);
        free(w.shape.long_slots);
    }
    mg_json_end(j, ']');
    mg_table_sort(t, 1);
    if (even) mg_table_note(t, "CTAs are equal in %u kernel%s (within 1 %%): no picture", even, even == 1 ? "" : "s");
}

extern const struct mg_tool mg_tool_ctas;
const struct mg_tool mg_tool_ctas = {
    .name = "ctas",
    .summary = "instructions of each CTA: imbalance, exact on every device",
    .opts = ctas_opts,
    .configure = ctas_configure,
    .release = free,
    .analyze = ctas_analyze,
    .instrument = ctas_instrument,
    .initialize = ctas_initialize,
    .profile = ctas_profile,
    .flags = MG_TOOL_PER_LAUNCH | MG_TOOL_NO_LOADS,
};
