/* clock: when CTAs ran and where: cycles of each, the time each multiprocessor was busy, how evenly work
 * was spread (GPU Ocelot's ClockCycleCountInstrumentor).
 *
 *   entry   clocks are read
 *   exit    each leaving group of lanes says that the multiprocessor was busy until now, the last to say so stays;
 *           thread 0 of a
 *           CTA also when it began, and counts the CTA there
 *   CTA     one of every 2^k CTAs, so that they fit into the slots there are, has its own first and last
 *           clock and its multiprocessor
 *
 * Times of multiprocessors are %globaltimer (one clock for all), cycles of CTAs are %clock64 (of their own
 * multiprocessor). Beginnings are stored as complements: cells merge by maximum. Kept launch by launch. */
#include <stdlib.h>

#include "patch/cta_slot.h"
#include "tool/tool.h"
#include "view/chart.h"
#include "view/kit.h"

enum {
    n_sms = 256,
    n_ends = 8 /* ends of a multiprocessor, of which the latest counts */,
    word_mask = 0,
    words = 1,
    charts = 8
};
struct conf {
    uint64_t slots;
};

static const struct mg_tool_opt clock_opts[] = {
    {"ctas", "1024", "CTAs of a launch with cycles of their own; larger grids are sampled evenly"}, {0}};
static const struct mg_field clock_fields[] = {{"ctas", MG_FIELD_NUMBER, offsetof(struct conf, slots), 1, 8192, NULL},
                                               {0}};

static enum mg_err clock_configure(const char *args, void **conf, struct mg_diag *d)
{
    const struct conf defaults = {.slots = 1024};
    return mg_fields_parse("clock", clock_fields, &defaults, sizeof defaults, args, conf, d);
}

/* Where things lie among the cells of the one site. */
struct cells {
    uint32_t begin, end, ctas, cta_begin, cta_end, cta_sm, n, slots;
};

static struct cells cells_of(const struct conf *c)
{
    uint32_t s = (uint32_t)c->slots;
    return (struct cells){.begin = 0,
                          .end = n_sms,
                          .ctas = (n_ends + 1) * n_sms,
                          .cta_begin = (n_ends + 2) * n_sms,
                          .cta_end = (n_ends + 2) * n_sms + s,
                          .cta_sm = (n_ends + 2) * n_sms + 2 * s,
                          .n = (n_ends + 2) * n_sms + 3 * s,
                          .slots = s};
}

static void clock_initialize(const void *conf, const struct mg_tool_launch *l, uint64_t *w)
{
    const struct conf *c = conf;
    w[word_mask] = ((uint64_t)1 << mg_cta_slot_shift(l->shape.grid, c->slots)) - 1;
}

/* ---- instrument ----------------------------------------------------------------------------------------
 *
 * Short CTAs feel every instruction here: what is said at the exit is read there, so that the kernel's own code has no
 * register less but for the times and the mask, and what only some warps do the others jump over. */

struct spots {
    uint32_t first;
    struct cells c;
    mg_id time, clock, mask; /* registers of the kernel */
    bool at_once;
};

static mg_id sreg(struct mg_code_at *at, enum mg_sreg r, uint8_t axis)
{
    mg_id v = mg_code_temp(at, MG_TYPE_b32);
    MG_CODE(at, "mov.u32", v, mg_o_sreg(r, axis));
    return v;
}

static mg_id complement(struct mg_code_at *at, mg_id v)
{
    mg_id r = mg_code_temp(at, MG_TYPE_b64);
    MG_CODE(at, "not.b64", r, v);
    return r;
}

static mg_id jump_unless(struct mg_code_at *at, mg_id p)
{
    mg_id to = mg_code_label(at);
    mg_code_push_guard(at, p, true);
    MG_CODE(at, "bra", mg_o_label(to)); /* what is jumped over is rare: it would cost every warp as much as the rest */
    mg_code_pop_guard(at);
    return to;
}

static mg_id is_first_thread(struct mg_code_at *at)
{
    mg_id x = sreg(at, MG_SREG_tid, 1), y = sreg(at, MG_SREG_tid, 2), z = sreg(at, MG_SREG_tid, 3),
          p = mg_code_temp(at, MG_TYPE_pred);
    MG_CODE(at, "or.b32", x, x, y);
    MG_CODE(at, "or.b32", x, x, z);
    MG_CODE(at, "setp.eq.u32", p, x, 0);
    return p;
}

/* The first thread tells when its CTA began, and where, if it has a slot. */
static void tell_begin(struct mg_code_at *at, const struct spots *s, mg_id mask, mg_id time, mg_id clock)
{
    mg_id first = is_first_thread(at), others = jump_unless(at, first), sm = sreg(at, MG_SREG_smid, 0),
          one = mg_code_temp(at, MG_TYPE_b32), slot;
    mg_cell_update_at(at, s->first + s->c.begin, n_sms, sm, mg_o_reg(complement(at, time)), MG_ALONE);
    MG_CODE(at, "add.u32", one, sreg(at, MG_SREG_laneid, 0),
            1); /* of a constant the assembler makes a sum over the warp */
    mg_cell_update_at(at, s->first + s->c.ctas, n_sms, sm, mg_o_reg(one), MG_ALONE);
    mg_id without = mg_cta_slot_find(at, mask, &slot);
    MG_CODE(at, "add.u32", one, sm, 1);
    mg_cell_update_at(at, s->first + s->c.cta_sm, s->c.slots, slot, mg_o_reg(one), MG_ALONE);
    mg_cell_update_at(at, s->first + s->c.cta_begin, s->c.slots, slot, mg_o_reg(complement(at, clock)), MG_ALONE);
    mg_code_place(at, without);
    mg_code_place(at, others);
}

/* Here clocks are only read: whatever stands in front of the first load of short CTAs is waited for. Where threads end
 * in callees, which do not have the kernel's registers, all is told at once. */
static void at_entry(struct mg_code_at *at, struct spots *s)
{
    mg_id word = mg_value_word(at, word_mask), time = mg_value_globaltimer(at), clock = mg_value_clock(at);
    s->time = mg_code_reg(at, MG_TYPE_b64), s->clock = mg_code_reg(at, MG_TYPE_b64),
    s->mask = mg_code_reg(at, MG_TYPE_b32);
    MG_CODE(at, "cvt.u32.u64", s->mask, word);
    MG_CODE(at, "mov.b64", s->time, time);
    MG_CODE(at, "mov.b64", s->clock, clock);
    if (s->at_once) tell_begin(at, s, s->mask, time, clock);
}

/* Which of its multiprocessor's ends: by the time, so that a store that comes late finds none that was stored much
 * later. */
static mg_id end_place(struct mg_code_at *at, mg_id time)
{
    mg_id sm = sreg(at, MG_SREG_smid, 0), which = mg_code_temp(at, MG_TYPE_b32);
    MG_CODE(at, "cvt.u32.u64", which, time);
    MG_CODE(at, "shr.u32", which, which, 10); /* the timer may go by steps of 1,024 ns */
    MG_CODE(at, "and.b32", which, which, mg_o_imm(n_ends - 1));
    MG_CODE(at, "and.b32", sm, sm, mg_o_imm(n_sms - 1));
    MG_CODE(at, "mad.lo.u32", which, sm, mg_o_imm(n_ends), which);
    return which;
}

static void at_exit(struct mg_code_at *at, void *user)
{
    const struct spots *s = user;
    mg_id time = mg_value_globaltimer(at), mask = s->mask, slot;
    mg_cell_set_at(at, s->first + s->c.end, n_ends * n_sms, end_place(at, time), mg_o_reg(time));
    if (mg_at_func(at)) {
        mask = mg_code_temp(at, MG_TYPE_b32);
        MG_CODE(at, "cvt.u32.u64", mask, mg_value_word(at, word_mask));
    }
    mg_id without = mg_cta_slot_find(at, mask, &slot);
    mg_cell_update_at(at, s->first + s->c.cta_end, s->c.slots, slot, mg_o_reg(mg_value_clock(at)), MG_ONCE);
    mg_code_place(at, without);
    if (!s->at_once) tell_begin(at, s, mask, s->time, s->clock);
}

static enum mg_err clock_analyze(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    (void)conf, (void)d;
    mg_patch_words(p, words);
    return MG_ERR_OK;
}

static enum mg_err clock_instrument(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    struct spots s = {.c = cells_of(conf)};
    (void)d;
    s.first = mg_patch_site(p, MG_SITE_KERNEL, 0, 0, s.c.ctas, MG_MERGE_MAX, 0);
    mg_patch_cells(p, n_sms, MG_MERGE_SUM);
    mg_patch_cells(p, 3 * s.c.slots, MG_MERGE_MAX);
    s.at_once = mg_patch_ends_in_callee(p);
    mg_patch_one_copy(p);
    at_entry(mg_at_entry(p, 0), &s);
    mg_at_exits(p, 0, at_exit, &s);
    return MG_ERR_OK;
}

/* ---- profile ------------------------------------------------------------------------------------------- */

struct times { /* of one kernel, over its launches */
    const struct mg_result_kernel *k;
    uint32_t n_sms;
    uint64_t launches, span, ctas; /* span: ns from the first beginning to the last end, summed */
    uint64_t busy[n_sms], sm_ctas[n_sms],
        tail; /* tail: ns that multiprocessors waited for the last one, summed over them */
    uint64_t *cycles;
    uint64_t n_cycles; /* of CTAs with a slot, sorted */
    double resident;   /* CTAs at once on a multiprocessor, mean over launches */
    uint64_t n_resident;
    bool sampled;
};

static int by_size(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void add_slots(struct times *x, const struct mg_result_launch *l, const struct cells *c, uint32_t shift)
{
    uint64_t first[n_sms], last[n_sms], sum[n_sms];
    for (uint32_t i = 0; i < n_sms; i++) first[i] = UINT64_MAX, last[i] = sum[i] = 0;
    for (uint32_t i = 0; i < c->slots; i++) {
        uint64_t begin = ~l->cells[c->cta_begin + i], end = l->cells[c->cta_end + i], sm = l->cells[c->cta_sm + i];
        if (!sm || sm > n_sms || end < begin) continue;
        x->cycles[x->n_cycles++] = end - begin;
        sum[sm - 1] += end - begin;
        first[sm - 1] = MG_MIN(first[sm - 1], begin);
        last[sm - 1] = MG_MAX(last[sm - 1], end);
    }
    double resident = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_sms; i++)
        if (last[i] > first[i]) resident += (double)sum[i] / (double)(last[i] - first[i]), n++;
    if (n && !shift) x->resident += resident / n, x->n_resident++;
    x->sampled = x->sampled || shift;
}

static uint64_t end_of(const struct mg_result_launch *l, const struct cells *c, uint32_t sm)
{
    uint64_t end = 0;
    for (uint32_t i = 0; i < n_ends; i++) end = MG_MAX(end, l->cells[c->end + sm * n_ends + i]);
    return end;
}

static void add_launch(struct times *x, const struct mg_result_launch *l, const struct conf *conf)
{
    struct cells c = cells_of(conf);
    uint64_t begin = UINT64_MAX, end = 0;
    for (uint32_t i = 0; i < n_sms; i++) {
        if (!l->cells[c.ctas + i]) continue;
        begin = MG_MIN(begin, ~l->cells[c.begin + i]);
        end = MG_MAX(end, end_of(l, &c, i));
    }
    if (end < begin) return;
    x->launches++;
    x->span += end - begin;
    for (uint32_t i = 0; i < n_sms; i++) {
        uint64_t from = ~l->cells[c.begin + i], to = end_of(l, &c, i);
        if (i < x->n_sms) x->tail += l->cells[c.ctas + i] ? end - to : end - begin;
        if (!l->cells[c.ctas + i] || to < from) continue;
        x->busy[i] += to - from;
        x->sm_ctas[i] += l->cells[c.ctas + i];
        x->ctas += l->cells[c.ctas + i];
    }
    add_slots(x, l, &c, mg_cta_slot_shift(l->grid, conf->slots));
}

static void times_init(struct times *x, const struct mg_result_kernel *k, const struct mg_tool_result *r,
                       const struct conf *conf)
{
    struct cells c = cells_of(conf);
    *x = (struct times){.k = k, .n_sms = MG_MIN(r->sms, (uint32_t)n_sms)};
    x->cycles = mg_xcalloc(k->n_of_launch * c.slots + 1, sizeof *x->cycles);
    for (uint64_t i = 0; i < k->n_of_launch && k->n_cells == c.n; i++)
        if (k->of_launch[i].complete) add_launch(x, &k->of_launch[i], conf);
    if (x->n_cycles) qsort(x->cycles, x->n_cycles, sizeof *x->cycles, by_size);
}

/* Busiest multiprocessor over the mean of all: 1 is even. */
static double imbalance(const struct times *x)
{
    uint64_t sum = 0, most = 0;
    for (uint32_t i = 0; i < x->n_sms; i++) sum += x->busy[i], most = MG_MAX(most, x->busy[i]);
    return sum ? (double)most * x->n_sms / (double)sum : 0;
}

/* Longest CTA over the mean of all with a slot. */
static double cta_imbalance(const struct times *x)
{
    double sum = 0;
    for (uint64_t i = 0; i < x->n_cycles; i++) sum += (double)x->cycles[i];
    return sum > 0 ? (double)x->cycles[x->n_cycles - 1] * (double)x->n_cycles / sum : 0;
}

static double waves(const struct times *x)
{
    double resident = x->n_resident ? x->resident / (double)x->n_resident : 0;
    return resident > 0 && x->n_sms ? (double)x->ctas / (double)x->launches / x->n_sms / resident : 0;
}

static void times_json(const struct times *x, bool device, struct mg_json *j)
{
    bool any = x->n_cycles > 0;
    mg_json_obj(j);
    mg_json_key_u64(j, "kernel", x->k->id);
    mg_json_key_u64(j, "launches", x->launches);
    mg_json_key_u64(j, "ctas", x->ctas);
    mg_json_key_u64_if(j, "span_ns", x->launches > 0, x->span);
    mg_json_key(j, "cycles");
    mg_json_obj(j);
    mg_json_key_u64_if(j, "min", any, any ? x->cycles[0] : 0);
    mg_json_key_u64_if(j, "median", any, any ? x->cycles[x->n_cycles / 2] : 0);
    mg_json_key_u64_if(j, "max", any, any ? x->cycles[x->n_cycles - 1] : 0);
    mg_json_key_u64(j, "ctas", x->n_cycles);
    mg_json_key_bool(j, "estimate", x->sampled);
    mg_json_end(j, '}');
    mg_json_key_f64_if(j, "imbalance", device && x->launches > 0, imbalance(x));
    mg_json_key_f64_if(j, "cta_imbalance", device && any, cta_imbalance(x));
    mg_json_key_f64_if(j, "tail", device && x->span > 0 && x->n_sms,
                       x->n_sms ? mg_kit_share(x->tail, x->span * x->n_sms) : 0);
    mg_json_key_f64_if(j, "waves", device && x->n_resident > 0, waves(x));
    mg_json_key(j, "sms");
    if (!device) { /* threads of the host took the CTAs */
        mg_json_null(j);
        mg_json_end(j, '}');
        return;
    }
    mg_json_arr(j);
    for (uint32_t i = 0; i < x->n_sms; i++) {
        mg_json_obj(j);
        mg_json_key_u64(j, "sm", i);
        mg_json_key_u64(j, "ctas", x->sm_ctas[i]);
        mg_json_key_f64(j, "busy", mg_kit_share(x->busy[i], x->span));
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
    mg_json_end(j, '}');
}

static void times_row(struct mg_table *t, const struct times *x, bool device)
{
    bool any = x->n_cycles > 0;
    const struct mg_site_block *b = x->k->n_blocks && x->k->blocks ? &x->k->blocks[0] : NULL;
    struct mg_result_site place = {
        .file = b ? b->file : NULL, .line = b ? b->line : 0, .ptx_line = b ? b->ptx_line : 0};
    if (!x->launches) return;
    mg_table_row(t);
    mg_table_place(t, &place);
    mg_table_text(t, x->k->demangled);
    mg_table_u64(t, x->span);
    if (device) {
        mg_table_f64(t, imbalance(x));
        mg_table_f64(t, cta_imbalance(x));
        mg_table_f64(t, x->n_sms ? mg_kit_percent(x->tail, x->span * x->n_sms) : 0);
    } else {
        mg_table_null(t), mg_table_null(t), mg_table_null(t);
    }
    mg_table_u64(t, x->ctas);
    if (any)
        mg_table_u64(t, x->cycles[0]), mg_table_u64(t, x->cycles[x->n_cycles / 2]),
            mg_table_u64(t, x->cycles[x->n_cycles - 1]);
    else
        mg_table_null(t), mg_table_null(t), mg_table_null(t);
    if (device && x->n_resident)
        mg_table_f64(t, waves(x));
    else
        mg_table_null(t);
}

static void times_chart(struct mg_table *t, const struct times *x, uint32_t ix)
{
    double shares[n_sms];
    struct mg_buf svg = MG_BUF_INIT, title = MG_BUF_INIT;
    for (uint32_t i = 0; i < x->n_sms; i++) shares[i] = mg_kit_share(x->busy[i], x->span);
    mg_kit_kernel_name(x->k, 60, &title);
    mg_buf_adds(&title, ": time each multiprocessor was busy, per cent of the kernel's");
    mg_chart_strip(&svg, title.at, "multiprocessor", shares, x->n_sms);
    mg_kit_chart(t, "clock", ix, &title, &svg);
}

static void clock_profile(const void *conf, const struct mg_tool_result *r, struct mg_table *t, struct mg_json *j)
{
    /* Without a GPU nobody knows how multiprocessors were loaded. */
    const char *title =
        r->host_times
            ? "kernels by span, first CTA to last; min to max: cycles of a CTA"
            : "kernels by span, first CTA to last: how evenly multiprocessors and CTAs were loaded; min to max: cycles of a CTA";
    mg_kit_times_table(t, r, "clock", title);
    mg_table_column(t, "line", MG_COL_PLACE, NULL);
    mg_table_column(t, "kernel", MG_COL_TEXT, NULL);
    mg_table_column(t, "span", MG_COL_TIME_NS, NULL);
    mg_table_column(t, "SM imbalance", MG_COL_REAL, NULL);
    mg_table_column(t, "CTA imbalance", MG_COL_REAL, NULL);
    mg_table_column(t, "tail", MG_COL_PERCENT, NULL);
    mg_table_column(t, "CTAs", MG_COL_COUNT, NULL);
    mg_table_column(t, "min", MG_COL_CYCLES, NULL);
    mg_table_column(t, "median", MG_COL_CYCLES, NULL);
    mg_table_column(t, "max", MG_COL_CYCLES, NULL);
    mg_table_column(t, "waves", MG_COL_REAL, NULL);
    mg_json_key(j, "kernels");
    mg_json_arr(j);
    for (uint32_t k = 0, n = 0; k < r->n_kernels; k++) {
        struct times *x = mg_xcalloc(1, sizeof *x);
        times_init(x, &r->kernels[k], r, conf);
        times_json(x, !r->host_times, j);
        times_row(t, x, !r->host_times);
        if (x->n_cycles) mg_kit_sampled(t, x->k, x->n_cycles, x->ctas);
        if (!r->host_times && x->launches && x->n_sms && n < charts) times_chart(t, x, n++);
        free(x->cycles);
        free(x);
    }
    mg_json_end(j, ']');
    mg_table_sort(t, 2);
}

extern const struct mg_tool mg_tool_clock;
const struct mg_tool mg_tool_clock = {
    .name = "clock",
    .summary = "cycles of CTAs, busy time of multiprocessors, imbalance",
    .cost = "kernel time on an H200, geometric mean of 20 kernels: 1.05 (docs/measured.md)",
    .opts = clock_opts,
    .configure = clock_configure,
    .release = free,
    .analyze = clock_analyze,
    .instrument = clock_instrument,
    .initialize = clock_initialize,
    .profile = clock_profile,
    .flags = MG_TOOL_PER_LAUNCH | MG_TOOL_NO_LOADS | MG_TOOL_CLOCKS,
};
