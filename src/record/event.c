/* Events in a tool: sites and tables when a kernel is instrumented, entries when a launch has ended, tables and
 * JSON in a report. See event.h. */
#include "record/event.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "view/kit.h"
#include "patch/layout.h"

/* Notes of sites: no others of a tool that uses events are as high. */
#define NOTE_FRAME 0xff800000u /* and 1 where its clock is %globaltimer */
#define NOTE_EVENT 0xff000000u /* and the event's number */

enum { N_SUMS = sizeof(struct mg_event_sums) / sizeof(uint64_t), FRAME_RECORDS = 0, FRAME_LOST, FRAME_CELLS };

/* ---- in a kernel --------------------------------------------------------------------------------------------- */

void mg_events_reserve(struct mg_patch *p, uint32_t records)
{
    mg_frame_reserve(p, records, 0);
}

static uint32_t number_of(struct mg_events *e, const char *name, mg_id node)
{
    for (uint32_t i = 0; i < e->n; i++)
        if (!strcmp(e->names[i], name)) return i;
    if (e->n == MG_EVENTS_MOST) {
        mg_patch_refuse(e->p, MG_ERR_LIMIT, "more than %d events in a kernel", (int)MG_EVENTS_MOST);
        return 0;
    }
    if (!e->n) {
        mg_frame_begin(&e->frame, e->p, e->records, e->staged);
        e->frame.global = e->global;
        mg_patch_site(e->p, MG_SITE_KERNEL, 0, 0, 0, MG_MERGE_SUM, NOTE_FRAME | e->global);
        mg_patch_table(e->p, 1, FRAME_CELLS, MG_MERGE_SUM, 0);
    }
    mg_patch_site(e->p, node ? MG_SITE_INST : MG_SITE_KERNEL, node, 0, 0, MG_MERGE_SUM, NOTE_EVENT | e->n);
    mg_patch_name(e->p, name);
    mg_patch_table(e->p, 1, N_SUMS, MG_MERGE_SUM, 0); /* by multiprocessor */
    mg_patch_table(e->p, 1, N_SUMS, MG_MERGE_SUM, 0); /* by CTA << 5 | warp */
    e->names[e->n] = name;
    return e->n++;
}

void mg_event_write(struct mg_events *e, struct mg_code_at *at, const char *name, bool end, mg_id node)
{
    uint32_t event = number_of(e, name, node);
    mg_frame_write(&e->frame, at, mg_event_site(event, end), !end);
}

void mg_events_end(struct mg_events *e)
{
    if (e->n) mg_frame_end(&e->frame);
}

/* ---- what a launch has written ------------------------------------------------------------------------------- */

static bool is_frame(uint32_t note)
{
    return (note | 1) == (NOTE_FRAME | 1);
}

bool mg_events_are_inside(const struct mg_region *g)
{
    for (uint32_t i = 0; !g->reason && g->n_frame && i < g->n_sites; i++)
        if (is_frame(g->sites[i].note)) return g->sites[i].note & 1;
    return false;
}

struct reading {
    const struct mg_tool_list *list;
    const char *names[MG_EVENTS_MOST];
    uint32_t tables[MG_EVENTS_MOST]; /* the first of each event; 0: none such */
    struct mg_event_sums all[MG_EVENTS_MOST];
};

struct collected {
    MG_VEC(struct mg_event_record) at;
};

static void collect(void *user, const struct mg_record *r)
{
    struct collected *c = user;
    *mg_vec_push(&c->at) = (struct mg_event_record){.clock = r->words[0],
                                                    .where = r->cta << 5 | r->warp,
                                                    .sm = r->launch,
                                                    .mask = r->mask,
                                                    .site = r->site,
                                                    .order = r->number};
}

static void add_row(void *user, const struct mg_event_row *row)
{
    struct reading *x = user;
    const uint64_t *from = (const void *)&row->s, sm = row->sm, warp = row->cta << 5 | row->warp;
    uint64_t *to = (void *)&x->all[row->event];
    for (int i = 0; i < N_SUMS; i++) to[i] += from[i];
    if (x->list->running || !x->tables[row->event]) return;
    x->list->add(x->list, x->tables[row->event], &sm, from);
    x->list->add(x->list, x->tables[row->event] + 1, &warp, from);
}

static void tell_clock(const struct mg_tool_list *list, const struct collected *c)
{
    uint64_t first = UINT64_MAX, last = 0;
    for (uint32_t i = 0; i < c->at.n; i++) {
        first = MG_MIN(first, c->at.at[i].clock);
        last = MG_MAX(last, c->at.at[i].clock);
    }
    if (c->at.n) list->clock(list, first, last);
}

static void add_pair(void *user, const struct mg_event_pair *p)
{
    const struct reading *x = user;
    const char *name = x->names[mg_event_of(p->begin->site)];
    if (!name) return;
    x->list->inside(x->list, &(struct mg_inside){.name = name,
                                                 .begin = p->begin->clock,
                                                 .end = MG_MAX(p->begin->clock, p->end->clock),
                                                 .cta = p->begin->where >> 5,
                                                 .warp = p->begin->where & 31,
                                                 .sm = p->begin->sm,
                                                 .lanes = p->lanes,
                                                 .depth = p->depth});
}

static void sums_json(struct mg_json *j, const struct mg_event_sums *s, bool global)
{
    mg_json_key_u64(j, "groups", s->groups);
    mg_json_key_u64(j, "threads", s->threads);
    mg_json_key_u64(j, global ? "inclusive_ns" : "inclusive_cycles", s->inclusive);
    mg_json_key_u64(j, global ? "exclusive_ns" : "exclusive_cycles", s->exclusive);
    mg_json_key_u64(j, "stray_ends", s->stray);
    mg_json_key_u64(j, "open", s->open);
}

static char *running_json(const struct mg_tool_launch *l, const struct reading *x, const struct mg_frame_head *h,
                          uint64_t records, bool global)
{
    static const char *const states[] = {"new", "written", "full"};
    const struct mg_region *g = x->list->region;
    struct mg_buf b = MG_BUF_INIT;
    struct mg_json j;
    mg_json_init(&j, &b, 0);
    mg_json_obj(&j);
    mg_json_key_str(&j, "kernel", l->kernel);
    mg_json_key_u64(&j, "launch", l->id);
    mg_json_key_bool(&j, "on", !h->off);
    mg_json_key_str(&j, "status", states[MG_MIN(h->status, (uint32_t)MG_FRAME_FULL)]);
    mg_json_key_u64(&j, "records", records);
    mg_json_key_u64(&j, "lost", h->lost);
    mg_json_key(&j, "events");
    mg_json_arr(&j);
    for (uint32_t i = 0; i < g->n_sites; i++) {
        uint32_t event = g->sites[i].note - NOTE_EVENT;
        if (event >= MG_EVENTS_MOST) continue;
        mg_json_obj(&j);
        mg_json_key_str(&j, "event", g->sites[i].op);
        sums_json(&j, &x->all[event], global);
        mg_json_end(&j, '}');
    }
    mg_json_end(&j, ']');
    mg_json_end(&j, '}');
    return mg_buf_take(&b);
}

char *mg_events_read(const struct mg_tool_launch *l, const struct mg_tool_list *list)
{
    const struct mg_region *g = list->region;
    const struct mg_frame_head h = mg_frame_sums(list->words, list->region->n_frame);
    struct reading *x = mg_xcalloc(1, sizeof *x);
    struct collected records = {0};
    uint32_t frame = 0;
    bool global = false;
    char *text = NULL;
    x->list = list;
    for (uint32_t i = g->n_tables; i-- > 0;) {
        uint32_t note = g->sites[g->tables[i].site].note, event = note - NOTE_EVENT;
        if (is_frame(note)) {
            frame = i + 1;
            global = note & 1;
        } else if (event < MG_EVENTS_MOST) {
            x->tables[event] = i;
            x->names[event] = g->sites[g->tables[i].site].op;
        }
    }
    uint64_t n = mg_frame_read(list->words, list->region->n_frame, list->before, collect, &records);
    bool on_time_line = global && !list->running && list->inside;
    if (on_time_line) tell_clock(list, &records);
    mg_events_match(records.at.at, records.at.n, &(struct mg_event_sinks){add_row, on_time_line ? add_pair : NULL, x});
    mg_vec_release(&records.at);
    if (list->running && frame)
        text = running_json(l, x, &h, n, global);
    else if (frame && !list->running)
        list->add(list, frame - 1, &(const uint64_t){0},
                  (const uint64_t[]){
                      n, h.lost - (list->before ? mg_frame_sums(list->before, list->region->n_frame).lost : 0)});
    free(x);
    return text;
}

/* ---- reports --------------------------------------------------------------------------------------------------- */

struct found {
    bool global;
    const struct mg_result_kernel *k;
    const struct mg_result_site *s;
    const struct mg_result_table *sms, *warps;
    struct mg_event_sums all;
};

static struct found find(const struct mg_result_kernel *k, uint32_t site)
{
    struct found f = {.k = k, .s = &k->sites[site]};
    uint64_t *to = (void *)&f.all;
    for (uint32_t i = 0; i < k->n_sites; i++) f.global |= k->sites[i].note == (NOTE_FRAME | 1);
    for (uint32_t i = k->n_tables; i-- > 0;)
        if (k->tables[i].site == site && k->tables[i].n_cells == N_SUMS)
            f.warps = f.sms ? f.sms : &k->tables[i], f.sms = &k->tables[i];
    for (uint64_t i = 0; f.sms && i < f.sms->n; i++)
        for (int c = 0; c < N_SUMS; c++) to[c] += f.sms->entries[i].cells[c];
    return f;
}

static struct mg_event_sums sums_of(const struct mg_result_entry *e)
{
    struct mg_event_sums s;
    memcpy(&s, e->cells, sizeof s);
    return s;
}

static void sums_row(struct mg_table *t, const struct mg_event_sums *s)
{
    uint64_t ended = s->threads > s->open ? s->threads - s->open : 0;
    mg_table_u64(t, s->exclusive);
    mg_table_u64(t, s->inclusive);
    mg_table_u64(t, s->groups);
    mg_table_u64(t, s->threads);
    if (ended)
        mg_table_f64(t, mg_kit_share(s->inclusive, ended));
    else
        mg_table_null(t);
}

static void columns(struct mg_table *t, bool global)
{
    mg_table_column(t, "exclusive", global ? MG_COL_TIME_NS : MG_COL_CYCLES, NULL);
    mg_table_column(t, "inclusive", global ? MG_COL_TIME_NS : MG_COL_CYCLES, NULL);
    mg_table_column(t, "groups", MG_COL_COUNT, NULL);
    mg_table_column(t, "threads", MG_COL_COUNT, NULL);
    mg_table_column(t, "a thread", MG_COL_REAL, global ? "ns" : "cycles");
}

static void event_row(struct mg_table *t, const struct found *f)
{
    mg_table_row(t);
    mg_table_text(t, f->s->op);
    sums_row(t, &f->all);
    mg_table_u64(t, f->all.stray);
    mg_table_u64(t, f->all.open);
    mg_table_place(t, f->s);
    mg_table_text(t, f->k->demangled);
}

static void parts_rows(struct mg_table *t, const struct found *f, const struct mg_result_table *parts, bool by_warp)
{
    for (uint64_t i = 0; parts && i < parts->n; i++) {
        struct mg_event_sums s = sums_of(&parts->entries[i]);
        uint64_t key = parts->entries[i].keys[0];
        mg_table_row(t);
        mg_table_text(t, f->s->op);
        mg_table_u64(t, by_warp ? key >> 5 : key);
        if (by_warp) mg_table_u64(t, key & 31);
        sums_row(t, &s);
        mg_table_text(t, f->k->demangled);
    }
}

static void parts_json(struct mg_json *j, const char *name, const struct mg_result_table *parts, bool by_warp,
                       bool global)
{
    mg_json_key(j, name);
    mg_json_arr(j);
    for (uint64_t i = 0; parts && i < parts->n; i++) {
        struct mg_event_sums s = sums_of(&parts->entries[i]);
        uint64_t key = parts->entries[i].keys[0];
        mg_json_obj(j);
        mg_json_key_u64(j, by_warp ? "cta" : "sm", by_warp ? key >> 5 : key);
        if (by_warp) mg_json_key_u64(j, "warp", key & 31);
        sums_json(j, &s, global);
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
}

static void event_json(struct mg_json *j, const struct found *f)
{
    mg_json_obj(j);
    mg_json_key_str(j, "event", f->s->op);
    mg_json_key_u64(j, "kernel", f->k->id);
    mg_json_key_str(j, "file", f->s->file);
    mg_json_key_u64_if(j, "line", f->s->file != NULL, f->s->line);
    mg_json_key_u64_if(j, "ptx_line", f->s->ptx_line != 0, f->s->ptx_line);
    sums_json(j, &f->all, f->global);
    parts_json(j, "sms", f->sms, false, f->global);
    parts_json(j, "warps", f->warps, true, f->global);
    mg_json_end(j, '}');
}

/* Which events: of kernels whose clock was %globaltimer, of the others, of any. */
enum clock { CYCLES, NS, ANY };

/* Rows of all such events: what = 0 events, 1 by multiprocessor, 2 by warp. */
static uint32_t rows(const struct mg_tool_result *r, enum clock of, struct mg_table *t, struct mg_json *j, int what)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < r->n_kernels; k++)
        for (uint32_t i = 0; i < r->kernels[k].n_sites; i++) {
            if (r->kernels[k].sites[i].note - NOTE_EVENT >= MG_EVENTS_MOST) continue;
            const struct found f = find(&r->kernels[k], i);
            if (of != ANY && f.global != (of == NS)) continue;
            n++;
            if (t && what)
                parts_rows(t, &f, what == 1 ? f.sms : f.warps, what == 2);
            else if (t)
                event_row(t, &f);
            else if (j)
                event_json(j, &f);
        }
    return n;
}

static uint64_t frame_sum(const struct mg_tool_result *r, int cell)
{
    uint64_t sum = 0;
    for (uint32_t k = 0; k < r->n_kernels; k++)
        for (uint32_t i = 0; i < r->kernels[k].n_tables; i++) {
            const struct mg_result_table *p = &r->kernels[k].tables[i];
            if (!is_frame(r->kernels[k].sites[p->site].note)) continue;
            for (uint64_t e = 0; e < p->n; e++) sum += p->entries[e].cells[cell];
        }
    return sum;
}

static void add_tables(const struct mg_tool_result *r, enum clock of, struct mg_table *t, uint64_t lost)
{
    mg_table_begin(t, "events",
                   of == NS ? "events by ns of their own, summed over threads"
                            : "events by cycles of their own, summed over threads");
    mg_table_column(t, "event", MG_COL_TEXT, NULL);
    columns(t, of == NS);
    mg_table_column(t, "stray ends", MG_COL_COUNT, "threads");
    mg_table_column(t, "never ended", MG_COL_COUNT, "threads");
    mg_table_column(t, "line", MG_COL_PLACE, NULL);
    mg_table_column(t, "kernel", MG_COL_TEXT, NULL);
    rows(r, of, t, NULL, 0);
    mg_table_sort(t, 1);
    if (lost)
        mg_table_note(t, "%llu records found no room (records=N): what they began or ended is missing above",
                      (unsigned long long)lost);
    for (int what = 1; what <= 2; what++) {
        mg_table_begin(t, what == 1 ? "events_sms" : "events_warps",
                       what == 1 ? "events by multiprocessor" : "events by warp");
        mg_table_column(t, "event", MG_COL_TEXT, NULL);
        mg_table_column(t, what == 1 ? "sm" : "cta", MG_COL_COUNT, NULL);
        if (what == 2) mg_table_column(t, "warp", MG_COL_COUNT, NULL);
        columns(t, of == NS);
        mg_table_column(t, "kernel", MG_COL_TEXT, NULL);
        rows(r, of, t, NULL, what);
        mg_table_sort(t, what == 1 ? 2 : 3);
    }
}

/* Processes of one run may differ in their clock: only some record a time line. */
bool mg_events_profile(const struct mg_tool_result *r, struct mg_table *t, struct mg_json *j)
{
    uint64_t lost = frame_sum(r, FRAME_LOST);
    if (!rows(r, ANY, NULL, NULL, 0)) return false;
    mg_json_key_u64(j, "records", frame_sum(r, FRAME_RECORDS));
    mg_json_key_u64(j, "lost", lost);
    mg_json_key(j, "events");
    mg_json_arr(j);
    rows(r, ANY, NULL, j, 0);
    mg_json_end(j, ']');
    for (enum clock of = CYCLES; of <= NS; of++)
        if (rows(r, of, NULL, NULL, 0)) add_tables(r, of, t, lost);
    return true;
}
