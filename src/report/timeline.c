/* The time line (tool timeline) as JSON and tables. Its spans lie in trace files of the profile directory; one pass
 * over them (span/sum.h) gives all figures. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/demangle.h"
#include "report/priv.h"
#include "span/sum.h"

/* ---- JSON ------------------------------------------------------------------------------------------------ */

static void write_call(struct mg_json *j, const struct mg_sum_call *c)
{
    mg_json_obj(j);
    mg_json_key_str(j, "layer", mg_span_layer_name(c->layer));
    mg_json_key_str(j, "name", c->name);
    mg_json_key_str(j, "class", mg_call_class_name(c->class_));
    mg_json_key_str(j, "waits", c->waits == MG_WAITS_nothing ? NULL : mg_call_waits_name(c->waits));
    mg_json_key_u64(j, "count", c->count);
    mg_json_key_u64(j, "failed", c->failed);
    mg_json_key_u64(j, "time_ns", c->time_ns);
    mg_json_key_u64(j, "longest_ns", c->longest_ns);
    mg_json_end(j, '}');
}

static void write_rank(struct mg_json *j, const char *key, int32_t rank)
{
    mg_json_key(j, key);
    if (rank < 0)
        mg_json_null(j);
    else
        mg_json_u64(j, (uint64_t)rank);
}

static void write_work(struct mg_json *j, const struct mg_sum_work *w)
{
    mg_json_obj(j);
    mg_json_key_str(j, "kind", mg_span_kind_name(w->kind));
    mg_json_key_str(j, "name", w->name);
    mg_json_key_str(j, "direction", w->direction ? mg_span_direction_name(w->direction) : NULL);
    write_rank(j, "rank", w->rank);
    mg_json_key_u64(j, "process", w->process);
    mg_json_key_u64(j, "device", w->device);
    mg_json_key_u64(j, "context", w->context);
    mg_json_key_u64(j, "stream", w->stream);
    mg_json_key_u64(j, "count", w->count);
    mg_json_key_u64_if(j, "bytes", w->has_bytes, w->bytes);
    mg_json_key_u64_if(j, "time_ns", w->count > w->untimed, w->time_ns);
    mg_json_key_u64(j, "untimed", w->untimed);
    mg_json_key_u64_if(j, "uncertainty_ns", w->count > w->untimed + w->unstated && w->uncertainty_ns != MG_SPAN_NONE,
                       w->uncertainty_ns);
    mg_json_end(j, '}');
}

static void write_device(struct mg_json *j, const struct mg_sum_device *d)
{
    mg_json_obj(j);
    write_rank(j, "rank", d->rank);
    mg_json_key_u64(j, "process", d->process);
    mg_json_key_u64(j, "device", d->device);
    mg_json_key_u64(j, "busy_ns", d->busy_ns);
    mg_json_key_u64(j, "span_ns", d->last_ns - d->first_ns);
    mg_json_key_u64(j, "overlap_ns", d->overlap_ns);
    mg_json_key_u64(j, "copy_overlap_ns", d->copy_overlap_ns);
    mg_json_end(j, '}');
}

static void write_messages(struct mg_json *j, const struct mg_sum *s)
{
    mg_json_key(j, "messages");
    mg_json_arr(j);
    for (uint32_t i = 0; i < s->messages.n; i++) {
        const struct mg_sum_message *m = &s->messages.at[i];
        mg_json_obj(j);
        write_rank(j, "from", m->from);
        write_rank(j, "to", m->to);
        mg_json_key_u64(j, "count", m->count);
        mg_json_key_u64(j, "bytes", m->bytes);
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
}

static void write_memory(struct mg_json *j, const struct mg_sum *s)
{
    mg_json_key(j, "memory");
    mg_json_arr(j);
    for (uint32_t i = 0; i < s->memory.devices.n; i++) {
        const struct mg_memory_device *m = &s->memory.devices.at[i];
        mg_json_obj(j);
        write_rank(j, "rank", m->rank);
        mg_json_key_u64(j, "process", m->process);
        mg_json_key_u64(j, "device", m->device);
        mg_json_key_u64(j, "allocations", m->allocations);
        mg_json_key_u64(j, "frees", m->frees);
        mg_json_key_u64(j, "most_bytes", m->most);
        mg_json_key_u64(j, "left_bytes", m->in_use);
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
}

/* CUPTI's times of kernels are not compared with what lies inside. */
static bool has_share(const struct mg_sum_inside *r)
{
    return r->kernel_ns && r->compared;
}

static void write_inside(struct mg_json *j, const struct mg_sum *s)
{
    mg_json_key(j, "inside");
    mg_json_arr(j);
    for (uint32_t i = 0; i < s->inside.n; i++) {
        const struct mg_sum_inside *r = &s->inside.at[i];
        mg_json_obj(j);
        mg_json_key_str(j, "event", r->name);
        mg_json_key_str(j, "kernel", r->kernel);
        write_rank(j, "rank", r->rank);
        mg_json_key_u64(j, "process", r->process);
        mg_json_key_u64(j, "device", r->device);
        mg_json_key_u64(j, "count", r->count);
        mg_json_key_u64(j, "time_ns", r->time_ns);
        mg_json_key_u64(j, "longest_ns", r->longest_ns);
        mg_json_key_u64(j, "covered_ns", r->covered_ns);
        mg_json_key_u64_if(j, "kernel_ns", r->kernel_ns, r->kernel_ns);
        mg_json_key_u64_if(j, "kernel_covered_ns", has_share(r), r->kernel_covered_ns);
        mg_json_key_u64_if(j, "uncertainty_ns", r->uncertainty_ns != MG_SPAN_NONE, r->uncertainty_ns);
        mg_json_key_u64(j, "outside", r->outside);
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
}

static void write_site(struct mg_json *j, const struct mg_sum_site *r)
{
    const struct mg_frame *f = r->frame;
    mg_json_obj(j);
    mg_json_key_str(j, "function", f->symbol->function);
    mg_json_key_str(j, "file", f->symbol->file);
    mg_json_key_u64_if(j, "line", f->symbol->file, f->symbol->line);
    mg_json_key_str(j, "module", f->path);
    mg_json_key_u64(j, "address", f->address);
    mg_json_key_u64(j, "launches", r->launches);
    mg_json_key_u64(j, "kernels", r->kernels);
    mg_json_key_u64(j, "device_ns", r->device_ns);
    mg_json_key_u64(j, "waits", r->waits);
    mg_json_key_u64(j, "wait_ns", r->wait_ns);
    mg_json_end(j, '}');
}

static void write_sites(struct mg_json *j, const struct mg_sum *s)
{
    const struct mg_symbols *y = &mg_spans_stacks(s->spans)->symbols;
    mg_json_key(j, "sites");
    mg_json_arr(j);
    for (uint32_t i = 0; i < s->sites.n; i++) write_site(j, &s->sites.at[i]);
    mg_json_end(j, ']');
    mg_json_key(j, "stacks");
    mg_json_obj(j);
    mg_json_key_u64(j, "launches", s->stacked_launches);
    mg_json_key_u64(j, "all_launches", s->all_launches);
    mg_json_key_u64(j, "waits", s->stacked_waits);
    mg_json_key_u64(j, "all_waits", s->waits);
    mg_json_key_u64(j, "changed_files", y->changed);
    mg_json_key_u64(j, "missing_files", y->missing);
    mg_json_end(j, '}');
}

static void write_range(struct mg_json *j, const struct mg_sum_range *r)
{
    mg_json_obj(j);
    mg_json_key(j, "name");
    mg_json_str(j, r->name);
    mg_json_key_str(j, "domain", r->domain);
    mg_json_key_str(j, "layer", mg_span_layer_name(r->layer));
    mg_json_key_u64(j, "count", r->count);
    mg_json_key_u64(j, "time_ns", r->time_ns);
    mg_json_key_u64(j, "launches", r->launches);
    mg_json_key_u64(j, "own_launches", r->own_launches);
    mg_json_key_u64(j, "device_ns", r->device_ns);
    mg_json_end(j, '}');
}

static void write_latency(struct mg_json *j, const struct mg_sum_times *t)
{
    mg_json_key(j, "launch_latency");
    mg_json_obj(j);
    mg_json_key_u64(j, "count", t->n);
    mg_json_key_u64_if(j, "min_ns", t->n, t->least_ns);
    mg_json_key_u64_if(j, "median_ns", t->n, mg_sum_quantile(t, 0.5));
    mg_json_key_u64_if(j, "p95_ns", t->n, mg_sum_quantile(t, 0.95));
    mg_json_key_u64_if(j, "max_ns", t->n, t->most_ns);
    mg_json_end(j, '}');
}

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void write_classes(struct mg_json *j, const struct mg_sum *s)
{
    mg_json_key(j, "classes");
    mg_json_arr(j);
    for (int c = 0; c < MG_CLASS_COUNT; c++) {
        mg_json_obj(j);
        mg_json_key_str(j, "class", mg_call_class_name(c));
        mg_json_key_u64(j, "count", s->class_count[c]);
        mg_json_key_u64(j, "time_ns", s->class_time_ns[c]);
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
    uint64_t all = s->gtpin[0] + s->gtpin[1] + s->gtpin[2];
    static const char *const keys[] = {"kernel", "synchronisation", "other"};
    mg_json_key(j, "call_percent"); /* GT-Pin's figure 3a */
    mg_json_obj(j);
    for (int i = 0; i < 3; i++) {
        mg_json_key_f64_if(j, keys[i], all, percent(s->gtpin[i], all));
    }
    mg_json_end(j, '}');
}

/* ORDER: as enum mg_trace_clock_source. */
static const char *const clocks[] = {"same", "time of day", "messages"};

static void write_processes(struct mg_json *j, const struct mg_sum *s)
{
    mg_json_key(j, "processes");
    mg_json_arr(j);
    for (uint32_t i = 0; i < s->processes; i++) {
        struct mg_span_process p = mg_spans_process(s->spans, i);
        mg_json_obj(j);
        mg_json_key_u64(j, "pid", p.pid);
        mg_json_key(j, "rank");
        if (p.rank < 0)
            mg_json_null(j);
        else
            mg_json_i64(j, p.rank);
        mg_json_key_u64(j, "records", p.records);
        mg_json_key_u64(j, "dropped", p.dropped);
        mg_json_key_bool(j, "closed", p.closed);
        mg_json_key_u64(j, "start_ns", p.start_ns);
        mg_json_key_u64(j, "start_unix_ns", p.start_unix_ns);
        mg_json_key_str(j, "clock", clocks[p.clock]);
        mg_json_key_f64(j, "clock_drift_ppm", p.clock_drift_ppm);
        mg_json_key_u64_if(j, "clock_uncertainty_ns", p.clock_uncertainty_ns != MG_SPAN_NONE, p.clock_uncertainty_ns);
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
}

static void write_json(struct mg_json *j, const struct mg_sum *s)
{
    mg_json_key_str(j, "clock", "monotonic_ns");
    mg_json_key_u64(j, "events", s->events);
    mg_json_key_u64(j, "dropped", s->dropped);
    mg_json_key(j, "calls");
    mg_json_arr(j);
    for (uint32_t i = 0; i < s->calls.n; i++) write_call(j, &s->calls.at[i]);
    mg_json_end(j, ']');
    write_classes(j, s);
    mg_json_key(j, "device");
    mg_json_arr(j);
    for (uint32_t i = 0; i < s->work.n; i++) write_work(j, &s->work.at[i]);
    mg_json_end(j, ']');
    mg_json_key(j, "utilisation");
    mg_json_arr(j);
    for (uint32_t i = 0; i < s->devices.n; i++) write_device(j, &s->devices.at[i]);
    mg_json_end(j, ']');
    write_latency(j, &s->latency);
    mg_json_key(j, "ranges");
    mg_json_arr(j);
    for (uint32_t i = 0; i < s->ranges.n; i++) write_range(j, &s->ranges.at[i]);
    mg_json_end(j, ']');
    write_messages(j, s);
    write_sites(j, s);
    write_memory(j, s);
    write_inside(j, s);
    mg_json_key(j, "totals");
    mg_json_obj(j);
    uint64_t calls = 0;
    for (int i = 0; i < 3; i++) calls += s->gtpin[i];
    mg_json_key_u64(j, "driver_calls", calls);
    mg_json_key_u64(j, "launches", s->launches);
    mg_json_key_u64(j, "kernels", s->kernels);
    mg_json_key_u64(j, "untimed", s->untimed);
    mg_json_key_u64(j, "waits", s->waits);
    mg_json_key_u64(j, "wait_ns", s->wait_ns);
    mg_json_key_u64(j, "marks", s->marks);
    mg_json_key_u64(j, "threads", s->threads);
    mg_json_end(j, '}');
    write_processes(j, s);
}

/* ---- tables ------------------------------------------------------------------------------------------------ */

/* Processes whose clocks are one are named together. */
static void add_clocks(struct mg_table *t, const struct mg_sum *s)
{
    struct mg_buf who = MG_BUF_INIT;
    for (uint32_t i = 0; i < s->processes; i++) {
        struct mg_span_process p = mg_spans_process(s->spans, i), next = {.clock = MG_TRACE_SAME_CLOCK};
        if (p.clock == MG_TRACE_SAME_CLOCK) continue;
        mg_buf_printf(&who, "%s%u", who.n ? ", " : "", p.rank < 0 ? p.pid : (uint32_t)p.rank);
        if (i + 1 < s->processes) next = mg_spans_process(s->spans, i + 1);
        if (next.clock == p.clock && next.clock_uncertainty_ns == p.clock_uncertainty_ns &&
            (next.rank < 0) == (p.rank < 0))
            continue;
        const char *of = p.rank < 0 ? "processes" : "ranks";
        if (p.clock == MG_TRACE_MESSAGES)
            mg_table_note(t, "clock of %s %s: by messages, %.1f ppm off, known to %.1f us", of, who.at,
                          p.clock_drift_ppm, (double)p.clock_uncertainty_ns * 1e-3);
        else
            mg_table_note(t, "clock of %s %s: by the time of day, as good as that is kept", of, who.at);
        mg_buf_reset(&who);
    }
    mg_buf_release(&who);
}

static void add_overview(struct mg_table *t, const struct mg_sum *s)
{
    mg_table_begin(t, "timeline", "time line: calls of the driver by class");
    MG_TABLE_COLUMNS(t, {"class", MG_COL_TEXT}, {"calls", MG_COL_COUNT}, {"time", MG_COL_TIME_NS});
    for (int c = 0; c < MG_CLASS_COUNT; c++) {
        if (!s->class_count[c]) continue;
        mg_table_row(t);
        mg_table_text(t, mg_call_class_name(c));
        mg_table_u64(t, s->class_count[c]);
        mg_table_u64(t, s->class_time_ns[c]);
    }
    mg_table_empty(t, "no call was recorded");
    uint64_t all = s->gtpin[0] + s->gtpin[1] + s->gtpin[2];
    if (all)
        mg_table_note(t,
                      "calls: %.1f %% kernel, %.1f %% synchronisation, %.1f %% other; %.3f ms in %llu calls that wait",
                      percent(s->gtpin[0], all), percent(s->gtpin[1], all), percent(s->gtpin[2], all),
                      (double)s->wait_ns * 1e-6, (unsigned long long)s->waits);
    for (uint32_t i = 0; i < s->devices.n; i++) {
        const struct mg_sum_device *d = &s->devices.at[i];
        bool ranked = d->rank >= 0;
        mg_table_note(
            t,
            "device %u of %s %u: busy %.1f %% of %.3f ms; two and more at once %.1f %%, copies beside kernels "
            "%.1f %%",
            d->device, ranked ? "rank" : "process", ranked ? (uint32_t)d->rank : d->process,
            percent(d->busy_ns, d->last_ns - d->first_ns), (double)(d->last_ns - d->first_ns) * 1e-6,
            percent(d->overlap_ns, d->busy_ns), percent(d->copy_overlap_ns, d->busy_ns));
    }
    for (uint32_t i = 0; i < s->memory.devices.n; i++) {
        const struct mg_memory_device *m = &s->memory.devices.at[i];
        bool ranked = m->rank >= 0;
        mg_table_note(t, "device %u of %s %u: %llu allocations, %.3f MiB at most, %.3f MiB not freed", m->device,
                      ranked ? "rank" : "process", ranked ? (uint32_t)m->rank : m->process,
                      (unsigned long long)m->allocations, (double)m->most / 1048576, (double)m->in_use / 1048576);
    }
    if (s->latency.n)
        mg_table_note(t,
                      "from the call to the kernel's begin, %llu launches (not of graphs): median %.1f us, 95 %% below "
                      "%.1f us (both to 1/32), at most %.1f us",
                      (unsigned long long)s->latency.n, (double)mg_sum_quantile(&s->latency, 0.5) * 1e-3,
                      (double)mg_sum_quantile(&s->latency, 0.95) * 1e-3, (double)s->latency.most_ns * 1e-3);
    if (s->untimed)
        mg_table_note(t, "%llu pieces of device work have no time (table device)", (unsigned long long)s->untimed);
    if (s->dropped) mg_table_note(t, "%llu records were dropped", (unsigned long long)s->dropped);
    add_clocks(t, s);
}

static void add_calls(struct mg_table *t, const struct mg_sum *s)
{
    mg_table_begin(t, "calls", "calls by time");
    MG_TABLE_COLUMNS(t, {"call", MG_COL_TEXT}, {"layer", MG_COL_TEXT}, {"calls", MG_COL_COUNT},
                     {"failed", MG_COL_COUNT}, {"time", MG_COL_TIME_NS}, {"longest", MG_COL_TIME_NS},
                     {"waits for", MG_COL_TEXT});
    for (uint32_t i = 0; i < s->calls.n; i++) {
        const struct mg_sum_call *c = &s->calls.at[i];
        mg_table_row(t);
        mg_table_text(t, c->name);
        mg_table_text(t, mg_span_layer_name(c->layer));
        mg_table_u64(t, c->count);
        mg_table_u64(t, c->failed);
        mg_table_u64(t, c->time_ns);
        mg_table_u64(t, c->longest_ns);
        if (c->waits != MG_WAITS_nothing)
            mg_table_text(t, mg_call_waits_name(c->waits));
        else
            mg_table_null(t);
    }
}

static void add_rank(struct mg_table *t, int32_t rank)
{
    if (rank < 0)
        mg_table_null(t);
    else
        mg_table_u64(t, (uint64_t)rank);
}

static void add_device(struct mg_table *t, const struct mg_sum *s)
{
    mg_table_begin(t, "device", "work of devices by stream");
    MG_TABLE_COLUMNS(t, {"work", MG_COL_TEXT}, {"kind", MG_COL_TEXT});
    if (s->processes > 1) mg_table_column(t, "rank", MG_COL_COUNT, NULL);
    MG_TABLE_COLUMNS(t, {"device", MG_COL_COUNT}, {"context", MG_COL_COUNT}, {"stream", MG_COL_COUNT},
                     {"count", MG_COL_COUNT}, {"time", MG_COL_TIME_NS}, {"bytes", MG_COL_BYTES},
                     {"untimed", MG_COL_COUNT});
    for (uint32_t i = 0; i < s->work.n; i++) {
        const struct mg_sum_work *w = &s->work.at[i];
        char *plain = w->kind == MG_SPAN_KERNEL ? mg_demangle(w->name) : NULL;
        mg_table_row(t);
        mg_table_text(t, plain ? plain : w->name);
        mg_table_text(t, mg_span_kind_name(w->kind));
        free(plain);
        if (s->processes > 1) add_rank(t, w->rank);
        mg_table_u64(t, w->device);
        mg_table_u64(t, w->context);
        mg_table_u64(t, w->stream);
        mg_table_u64(t, w->count);
        if (w->count > w->untimed)
            mg_table_u64(t, w->time_ns);
        else
            mg_table_null(t);
        if (w->has_bytes)
            mg_table_u64(t, w->bytes);
        else
            mg_table_null(t);
        mg_table_u64(t, w->untimed);
    }
}

static void add_inside(struct mg_table *t, const struct mg_sum *s)
{
    uint64_t outside = 0;
    mg_table_begin(t, "inside", "what kernels began and ended");
    MG_TABLE_COLUMNS(t, {"event", MG_COL_TEXT}, {"kernel", MG_COL_TEXT});
    if (s->processes > 1) mg_table_column(t, "rank", MG_COL_COUNT, NULL);
    MG_TABLE_COLUMNS(t, {"device", MG_COL_COUNT}, {"count", MG_COL_COUNT}, {"time", MG_COL_TIME_NS},
                     {"longest", MG_COL_TIME_NS}, {"any warp", MG_COL_TIME_NS}, {"of the kernel", MG_COL_PERCENT},
                     {"uncertainty", MG_COL_TIME_NS});
    for (uint32_t i = 0; i < s->inside.n; i++) {
        const struct mg_sum_inside *r = &s->inside.at[i];
        mg_table_row(t);
        mg_table_text(t, r->name);
        mg_table_text(t, r->kernel);
        if (s->processes > 1) add_rank(t, r->rank);
        mg_table_u64(t, r->device);
        mg_table_u64(t, r->count);
        mg_table_u64(t, r->time_ns);
        mg_table_u64(t, r->longest_ns);
        mg_table_u64(t, r->covered_ns);
        if (has_share(r))
            mg_table_f64(t, percent(r->kernel_covered_ns, r->kernel_ns));
        else
            mg_table_null(t);
        if (r->uncertainty_ns != MG_SPAN_NONE)
            mg_table_u64(t, r->uncertainty_ns);
        else
            mg_table_null(t);
        outside += r->outside;
    }
    if (outside)
        mg_table_note(t, "%llu of them lie outside of their kernel's span, by more than both may be off",
                      (unsigned long long)outside);
}

static void add_ranges(struct mg_table *t, const struct mg_sum *s)
{
    mg_table_begin(t, "ranges", "ranges that the program marked");
    MG_TABLE_COLUMNS(t, {"range", MG_COL_TEXT}, {"domain", MG_COL_TEXT}, {"count", MG_COL_COUNT},
                     {"time", MG_COL_TIME_NS}, {"launches", MG_COL_COUNT}, {"own", MG_COL_COUNT},
                     {"device time", MG_COL_TIME_NS});
    for (uint32_t i = 0; i < s->ranges.n; i++) {
        const struct mg_sum_range *r = &s->ranges.at[i];
        mg_table_row(t);
        mg_table_text(t, r->name);
        if (*r->domain)
            mg_table_text(t, r->domain);
        else
            mg_table_null(t);
        mg_table_u64(t, r->count);
        mg_table_u64(t, r->time_ns);
        mg_table_u64(t, r->launches);
        mg_table_u64(t, r->own_launches);
        mg_table_u64(t, r->device_ns);
    }
    mg_table_sort(t, 6);
}

static void add_site(struct mg_table *t, const struct mg_sum_site *r)
{
    const struct mg_symbol *y = r->frame->symbol;
    struct mg_buf place = MG_BUF_INIT;
    mg_frame_print(r->frame, &place);
    const char *file = y->file ? y->file : r->frame->path, *slash = file ? strrchr(file, '/') : NULL;
    if (y->file)
        mg_buf_printf(&place, " (%s:%u)", slash ? slash + 1 : file, y->line);
    else if (y->function && file) /* two places of one function are told apart */
        mg_buf_printf(&place, " (%s+0x%" PRIx64 ")", slash ? slash + 1 : file, r->frame->address);
    mg_table_row(t);
    mg_table_text(t, place.at);
    mg_table_u64(t, r->launches);
    mg_table_u64(t, r->device_ns);
    mg_table_u64(t, r->waits);
    mg_table_u64(t, r->wait_ns);
    mg_buf_release(&place);
}

static void add_sites(struct mg_table *t, const struct mg_sum *s)
{
    struct mg_symbols *y = &mg_spans_stacks(s->spans)->symbols;
    mg_table_begin(t, "sites", "where the program launches and waits");
    mg_table_column(t, "place", MG_COL_TEXT, NULL);
    mg_table_column(t, "launches", MG_COL_COUNT, NULL);
    mg_table_column(t, "device time", MG_COL_TIME_NS, NULL);
    mg_table_column(t, "waits", MG_COL_COUNT, NULL);
    mg_table_column(t, "wait time", MG_COL_TIME_NS, NULL);
    for (uint32_t i = 0; i < s->sites.n; i++) add_site(t, &s->sites.at[i]);
    if (s->stacked_launches < s->all_launches || s->stacked_waits < s->waits)
        mg_table_note(t, "of %llu of %llu launches and %llu of %llu calls that wait, whose stacks were taken",
                      (unsigned long long)s->stacked_launches, (unsigned long long)s->all_launches,
                      (unsigned long long)s->stacked_waits, (unsigned long long)s->waits);
    if (!mg_symbols_has_library(y)) mg_table_note(t, "names need elfutils' libdw.so.1 (Debian: libdw1)");
    if (y->changed + y->missing)
        mg_table_note(t, "%u files are gone and %u have changed since the run: no names of theirs, %s first",
                      y->missing, y->changed, y->first);
}

static void add_messages(struct mg_table *t, const struct mg_sum *s)
{
    mg_table_begin(t, "messages", "messages of MPI by rank");
    MG_TABLE_COLUMNS(t, {"from", MG_COL_COUNT}, {"to", MG_COL_COUNT}, {"messages", MG_COL_COUNT},
                     {"bytes", MG_COL_BYTES});
    for (uint32_t i = 0; i < s->messages.n; i++) {
        const struct mg_sum_message *m = &s->messages.at[i];
        mg_table_row(t);
        add_rank(t, m->from);
        add_rank(t, m->to);
        mg_table_u64(t, m->count);
        mg_table_u64(t, m->bytes);
    }
}

/* Is tau=on among the tool's options? */
static bool wants_tau(const char *args)
{
    bool on = false;
    for (const char *at = args; at && *at; at += strcspn(at, ","), at += *at == ',')
        if (!strncmp(at, "tau=", 4)) on = !strncmp(at + 4, "on", 2) && (!at[6] || at[6] == ',');
    return on;
}

static void tell_tau(const struct mg_recording *p, const char *args, struct mg_table *t, struct mg_json *j)
{
    bool events = wants_tau(args);
    mg_tau_tell(p->dir, events, events || mg_tau_has_files(p->dir) ? t : NULL, j);
}

void mg_timeline_tell(const struct mg_recording *p, const char *args, struct mg_table *t, struct mg_json *j)
{
    struct mg_sum s;
    struct mg_diag d = MG_DIAG_INIT;
    if (mg_sum_init(&s, p->dir, &d)) {
        mg_table_begin(t, "timeline", "time line");
        mg_table_empty(t, "its trace files cannot be read");
        mg_json_key_str(j, "clock", "monotonic_ns");
        mg_json_key(j, "events");
        mg_json_null(j);
        tell_tau(p, args, t, j);
        mg_diag_release(&d);
        return;
    }
    write_json(j, &s);
    add_overview(t, &s);
    add_calls(t, &s);
    add_device(t, &s);
    if (s.inside.n) add_inside(t, &s);
    if (s.ranges.n) add_ranges(t, &s);
    if (s.sites.n) add_sites(t, &s);
    if (s.messages.n) add_messages(t, &s);
    tell_tau(p, args, t, j);
    mg_sum_release(&s);
    mg_diag_release(&d);
}
