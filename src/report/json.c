/* `margay report DIR --json`, documented field by field in docs/json.md.
 * Fields are only ever added. What was not measured is null, never 0. */
#include "base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/advice/advice.h"
#include "report/priv.h"
#include "store/sample.h"

static void key_i64_or_null(struct mg_json *j, const char *key, int64_t v)
{
    mg_json_key(j, key);
    if (v >= 0)
        mg_json_i64(j, v);
    else
        mg_json_null(j);
}

/* 1, 0 or unknown (-1) */
static void key_maybe(struct mg_json *j, const char *key, int v)
{
    mg_json_key(j, key);
    if (v < 0)
        mg_json_null(j);
    else
        mg_json_bool(j, v != 0);
}

static void key_argv(struct mg_json *j, const char *key, const char *const *argv, uint32_t argc)
{
    int indent = j->indent;
    mg_json_key(j, key);
    mg_json_arr(j);
    j->indent = 0;
    for (uint32_t i = 0; i < argc; i++) mg_json_str(j, argv[i]);
    mg_json_end(j, ']');
    j->indent = indent;
}

/* Objects of a list go on one line each: what is inside is written compact. */
static int one_line(struct mg_json *j)
{
    int indent = j->indent;
    mg_json_obj(j);
    j->indent = 0;
    return indent;
}

static void end_line(struct mg_json *j, int indent)
{
    mg_json_end(j, '}');
    j->indent = indent;
}

static void write_device(struct mg_json *j, const struct mg_pprocess *p)
{
    static const struct mg_pprocess none;
    if (!p) p = &none;
    mg_json_key(j, "device");
    int indent = one_line(j);
    mg_json_key_str(j, "kind", p->device_kind);
    mg_json_key_str(j, "name", p->device_name);
    mg_json_key_u64_if(j, "sms", p->sms != 0, p->sms);
    mg_json_key_u64_if(j, "sm", p->sm != 0, p->sm);
    mg_json_key_str(j, "properties", p->properties);
    end_line(j, indent);
}

static void write_processes(struct mg_json *j, const struct mg_recording *p)
{
    mg_json_key(j, "processes");
    mg_json_arr(j);
    for (uint32_t i = 0; i < p->n_processes; i++) {
        const struct mg_pprocess *q = &p->processes[i];
        int indent = one_line(j);
        mg_json_key_u64(j, "id", i);
        mg_json_key_u64(j, "pid", q->pid);
        key_i64_or_null(j, "rank", q->rank);
        key_argv(j, "command", q->argv, q->argc);
        key_i64_or_null(j, "exit", q->exit_code);
        mg_json_key_bool(j, "closed", q->closed);
        mg_json_key_str(j, "device", q->device_name);
        mg_json_key_str(j, "tools", q->tools);
        mg_json_key_u64(j, "start_unix_ns", q->start_unix_ns);
        mg_json_key_str(j, "host", q->host);
        mg_json_key_str(j, "version", q->version);
        end_line(j, indent);
    }
    mg_json_end(j, ']');
}

static void write_coverage(struct mg_json *j, const struct mg_recording *p)
{
    struct mg_coverage c;
    bool nvidia = p->n_processes && !strcmp(p->processes[0].device_kind, "nvidia");
    mg_coverage_init(&c, p);
    mg_json_key(j, "coverage");
    mg_json_obj(j);
    mg_json_key_u64(j, "launches", c.launches);
    mg_json_key_u64(j, "instrumented", c.instrumented);
    mg_json_key_u64(j, "failed", c.failed);
    mg_json_key_u64(j, "unknown", c.unknown);
    mg_json_key_u64(j, "repeats", c.repeats);
    mg_json_key_u64(j, "not_written", c.not_written);
    mg_json_key_u64(j, "no_end", c.no_end);
    mg_json_key_u64(j, "incomplete", c.incomplete);
    mg_json_key_u64(j, "open_processes", c.open);
    mg_json_key_u64(j, "empty_processes", c.empty);
    mg_json_key_u64(j, "spoilt", c.spoilt);
    mg_json_key_u64_if(j, "device_launches", !nvidia, c.device_launches); /* on a GPU nobody counts them */
    mg_json_key_f64_if(j, "time_pct", c.timed, c.time_pct);
    mg_json_key_f64_if(j, "timed_pct", c.launches != 0, c.timed ? c.timed_pct : 0);
    mg_json_key(j, "native");
    mg_json_arr(j);
    for (uint32_t i = 0; i < c.n_rows; i++) {
        int indent = one_line(j);
        mg_json_key(j, "kernel");
        mg_json_str(j, c.rows[i].kernel);
        mg_json_key_u64(j, "launches", c.rows[i].launches);
        mg_json_key(j, "ran");
        mg_json_str(j, mg_ran_text(c.rows[i].ran));
        mg_json_key(j, "reason");
        mg_json_str(j, c.rows[i].reason);
        end_line(j, indent);
    }
    mg_json_end(j, ']');
    mg_json_key(j, "unwritten_registers");
    mg_write_unwritten(j, p);
    mg_json_end(j, '}');
    mg_coverage_release(&c);
}

static void write_hex(struct mg_json *j, const uint8_t *p, uint32_t bytes)
{
    struct mg_buf text = MG_BUF_INIT;
    mg_buf_adds(&text, "0x");
    for (uint32_t i = bytes; i > 0; i--) mg_buf_printf(&text, "%02x", p[i - 1]);
    mg_json_str(j, text.at);
    mg_buf_release(&text);
}

static void write_arguments(struct mg_json *j, const struct mg_plaunch *l)
{
    mg_json_key(j, "arguments");
    mg_json_arr(j);
    for (uint32_t i = 0; i < l->n_args; i++) {
        const struct mg_store_arg *a = &l->args[i];
        mg_json_obj(j);
        mg_json_key_u64(j, "offset", a->offset);
        mg_json_key_u64(j, "bytes", a->bytes);
        mg_json_key(j, "kind");
        mg_json_str(j, a->kind == MG_ARG_POINTER ? "pointer" : "value");
        if (a->kind == MG_ARG_POINTER) {
            mg_json_key_u64(j, "allocation", a->allocation);
            mg_json_key_u64(j, "allocation_offset", a->allocation_off);
        } else {
            mg_json_key(j, "value");
            write_hex(j, a->value, a->bytes);
        }
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
}

static void write_counts(struct mg_json *j, const char *key, const uint64_t *v, uint32_t n)
{
    mg_json_key(j, key);
    if (!v) {
        mg_json_null(j);
        return;
    }
    mg_json_arr(j);
    for (uint32_t i = 0; i < n; i++) mg_json_u64(j, v[i]);
    mg_json_end(j, ']');
}

static void write_launch_opcodes(struct mg_json *j, const struct mg_pkernel *k, const struct mg_plaunch *l)
{
    struct mg_kernel_sums s;
    mg_json_key(j, "opcodes");
    if (!l->threads) {
        mg_json_null(j);
        return;
    }
    mg_launch_sums_init(&s, k, l);
    mg_json_obj(j);
    for (uint32_t i = 0; i < s.n_ops; i++) {
        mg_json_key(j, s.ops[i].op);
        mg_json_obj(j);
        mg_json_key_u64(j, "thread", s.ops[i].threads);
        mg_json_key_u64_if(j, "warp", s.has_warps, s.ops[i].warps);
        mg_json_end(j, '}');
    }
    mg_json_end(j, '}');
    mg_kernel_sums_release(&s);
}

static void write_launches(struct mg_json *j, const struct mg_recording *p, const struct mg_report_opts *o)
{
    mg_json_key(j, "launches");
    mg_json_arr(j);
    for (uint64_t i = 0; i < p->n_launches; i++) {
        const struct mg_plaunch *l = &p->launches[i];
        if (!mg_report_shows(o, &p->kernels[l->kernel])) continue;
        bool ended = l->timed || l->start_ns;
        int indent = one_line(j);
        mg_json_key_u64(j, "id", l->id);
        mg_json_key_u64(j, "kernel", l->kernel);
        mg_json_key_dim(j, "grid", l->grid);
        mg_json_key_dim(j, "block", l->block);
        mg_json_key_dim(j, "cluster", l->cluster);
        mg_json_key_u64(j, "shared_bytes", (uint64_t)l->static_shared_bytes + l->dyn_shared_bytes);
        mg_json_key_u64(j, "dynamic_shared_bytes", l->dyn_shared_bytes);
        mg_json_key_u64(j, "process", l->process);
        mg_json_key_u64(j, "device", l->device);
        mg_json_key_u64(j, "stream", l->stream);
        mg_json_key_u64(j, "ctx", l->ctx);
        mg_json_key_u64(j, "graph", l->graph == MG_GRAPH_DEVICE ? 0 : l->graph);
        mg_json_key_bool(j, "by_kernel", l->graph == MG_GRAPH_DEVICE);
        mg_json_key_u64(j, "replays", l->replays);
        mg_json_key_bool(j, "cooperative", l->cooperative);
        mg_json_key_bool(j, "repeat", l->repeat);
        mg_json_key(j, "ran");
        mg_json_str(j, mg_ran_text(l->ran));
        mg_json_key_str(j, "reason", l->reason);
        mg_json_key_u64_if(j, "start_ns", ended, l->start_ns);
        mg_json_key_u64_if(j, "time_ns", l->timed, l->time_ns);
        mg_json_key_bool(j, "complete", l->complete);
        mg_json_key_str(j, "why", l->why);
        key_maybe(j, "schedule_dependent", l->complete ? l->schedule_dependent : -1);
        if (o->per_launch) {
            write_counts(j, "thread_entries", l->threads, l->n_counts);
            write_counts(j, "warp_entries", l->warps, l->n_counts);
            write_launch_opcodes(j, &p->kernels[l->kernel], l);
            write_arguments(j, l);
        }
        end_line(j, indent);
    }
    mg_json_end(j, ']');
}

static void write_opcodes(struct mg_json *j, const struct mg_kernel_sums *s)
{
    mg_json_key(j, "opcodes");
    mg_json_obj(j);
    for (uint32_t i = 0; i < s->n_ops; i++) {
        const struct mg_opcount *op = &s->ops[i];
        mg_json_key(j, op->op);
        int indent = one_line(j);
        mg_json_key_u64_if(j, "thread", s->measured, op->threads);
        mg_json_key_u64_if(j, "warp", s->has_warps, op->warps);
        mg_json_key_u64_if(j, "lanes", s->measured && !op->guarded, op->threads);
        end_line(j, indent);
    }
    mg_json_end(j, '}');
}

static void write_block(struct mg_json *j, const struct mg_pkernel *k, const struct mg_pblock *b)
{
    bool first = !b->id || strcmp(k->blocks[b->id - 1].function, b->function);
    int indent = one_line(j);
    mg_json_key_u64(j, "id", b->id);
    mg_json_key(j, "function");
    mg_json_str(j, b->function);
    mg_json_key_str(j, "label", *b->label || !first ? b->label : "entry");
    mg_json_key_u64(j, "ptx_line", b->ptx_line);
    mg_json_key_str(j, "file", b->file);
    mg_json_key_u64_if(j, "line", b->line != 0, b->line);
    mg_json_key_u64(j, "instructions", b->n_insts);
    mg_json_key_u64_if(j, "thread_entries", b->has_threads, b->threads);
    mg_json_key_u64_if(j, "warp_entries", b->has_warps, b->warps);
    key_maybe(j, "timing_dependent", b->timing_dependent);
    key_maybe(j, "lanes_may_be_apart", b->apart);
    mg_json_key(j, "succ");
    mg_json_arr(j);
    for (uint32_t i = 0; i < b->n_succs; i++) mg_json_u64(j, b->succs[i]);
    mg_json_end(j, ']');
    end_line(j, indent);
}

/* What an estimate rests on; null when every count is exact. */
static void write_scaled(struct mg_json *j, const struct mg_pkernel *k)
{
    mg_json_key(j, "scaled");
    if (!k->estimated) {
        mg_json_null(j);
        return;
    }
    int indent = one_line(j);
    mg_json_key(j, "scope");
    mg_json_str(j, k->scope == MG_COUNT_CTA ? "cta" : "warp");
    mg_json_key_u64(j, "measured_thread_instructions", k->measured_thread_insts);
    mg_json_key_f64_if(j, "error_pct", k->has_error, k->error_pct);
    end_line(j, indent);
}

static void key_estimate(struct mg_json *j, const char *name, struct mg_estimate e)
{
    mg_json_key_u64(j, name, (uint64_t)(e.value + 0.5));
    mg_json_key_u64_if(j, "bound", e.bound >= 0, e.bound >= 0 ? (uint64_t)ceil(e.bound) : 0);
}

/* What all launches would have counted, when only some were; else null. */
static void write_both_times(struct mg_json *j, const struct mg_recording *p, const struct mg_pkernel *k)
{
    struct mg_both_times t;
    mg_json_key(j, "both_times");
    if (!mg_sample_times(p, k, &t)) {
        mg_json_null(j);
        return;
    }
    int indent = one_line(j);
    mg_json_key_u64(j, "launches", t.launches);
    mg_json_key_u64(j, "native_ns", (uint64_t)(t.native_ns + 0.5));
    mg_json_key_u64(j, "instrumented_ns", (uint64_t)(t.instrumented_ns + 0.5));
    end_line(j, indent);
}

static void write_sampled(struct mg_json *j, const struct mg_recording *p, const struct mg_pkernel *k)
{
    struct mg_sample s;
    mg_json_key(j, "sampled");
    if (!mg_sample_of(p, k, &s)) {
        mg_json_null(j);
        return;
    }
    mg_json_obj(j);
    mg_json_key_bool(j, "estimate", true);
    mg_json_key_u64(j, "launches", s.launches);
    mg_json_key_u64(j, "counted", s.counted);
    mg_json_key_str(j, "method", s.method == MG_SAMPLE_GEOMETRY ? "geometry" : "threads");
    mg_json_key_f64_if(j, "confidence", true, 0.95);
    key_estimate(j, "thread_instructions", s.insts);
    mg_json_key(j, "blocks");
    mg_json_arr(j);
    for (uint32_t b = 0; b < k->n_blocks; b++) {
        int indent = one_line(j);
        mg_json_key_u64(j, "id", k->blocks[b].id);
        key_estimate(j, "thread_entries", s.blocks[b]);
        end_line(j, indent);
    }
    mg_json_end(j, ']');
    mg_json_end(j, '}');
    mg_sample_release(&s);
}

static void write_kernel(struct mg_json *j, const struct mg_recording *p, const struct mg_pkernel *k)
{
    struct mg_kernel_sums s;
    mg_kernel_sums_init(&s, k);
    mg_json_obj(j);
    mg_json_key_u64(j, "id", k->id);
    mg_json_key(j, "name");
    mg_json_str(j, k->name);
    mg_json_key(j, "demangled");
    mg_json_str(j, k->demangled);
    mg_json_key(j, "module");
    mg_json_str(j, k->module);
    mg_json_key_u64_if(j, "built_unix_ns", k->built_unix_ns != 0, k->built_unix_ns);
    mg_json_key_u64(j, "launches", k->launches);
    mg_json_key_u64(j, "repeats", k->repeats);
    mg_json_key_u64(j, "instrumented", k->instrumented);
    mg_json_key_u64(j, "incomplete", k->incomplete);
    mg_json_key_u64(j, "spoilt", k->spoilt);
    mg_json_key(j, "registers");
    int indent = one_line(j);
    key_i64_or_null(j, "native", k->regs_native);
    key_i64_or_null(j, "instrumented", k->regs_instrumented);
    mg_json_key_bool(j, "estimate", k->regs_estimated);
    end_line(j, indent);
    mg_json_key_u64(j, "threads", k->threads_launched);
    mg_json_key_u64_if(j, "time_ns", k->timed_launches != 0, k->time_ns);
    mg_json_key_u64_if(j, "thread_instructions", s.measured, s.thread_insts);
    mg_json_key_u64_if(j, "warp_instructions", s.has_warps, s.warp_insts);
    mg_json_key_f64_if(j, "lane_use", s.measured && s.has_warps && s.warp_insts,
                       (double)s.thread_insts / (32.0 * (double)(s.warp_insts ? s.warp_insts : 1)));
    mg_json_key_bool(j, "estimate", k->estimated);
    key_maybe(j, "schedule_dependent", k->schedule_dependent);
    key_maybe(j, "timing_dependent", !k->n_blocks || k->blocks[0].timing_dependent < 0 ? -1 : mg_timing_blocks(k) != 0);
    key_maybe(j, "lanes_may_be_apart", !k->n_blocks || k->blocks[0].apart < 0 ? -1 : mg_apart_blocks(k) != 0);
    write_scaled(j, k);
    write_sampled(j, p, k);
    write_both_times(j, p, k);
    write_opcodes(j, &s);
    mg_json_key(j, "blocks");
    mg_json_arr(j);
    for (uint32_t i = 0; i < k->n_blocks; i++) write_block(j, k, &k->blocks[i]);
    mg_json_end(j, ']');
    mg_json_end(j, '}');
    mg_kernel_sums_release(&s);
}

static void write_findings(struct mg_json *j, const struct mg_recording *p, const struct mg_report_opts *o)
{
    struct mg_facts facts;
    struct mg_findings list;
    mg_facts_init(&facts, p, o);
    mg_findings_init(&list, &facts);
    mg_write_findings(&list, j);
    mg_findings_release(&list);
    mg_facts_release(&facts);
}

void mg_write_report(struct mg_json *j, const struct mg_recording *p, const struct mg_report_opts *o, unsigned parts)
{
    const char *const *argv;
    uint32_t argc;
    int exit_code;
    mg_json_obj(j);
    mg_json_key_u64(j, "margay_json", 1);
    write_device(j, p->n_processes ? &p->processes[0] : NULL);
    mg_report_command(p, &argv, &argc, &exit_code);
    key_argv(j, "command", argv, argc);
    key_i64_or_null(j, "exit", exit_code);
    write_processes(j, p);
    write_coverage(j, p);
    if (parts & MG_PART_LAUNCHES) write_launches(j, p, o);
    mg_json_key(j, "kernels");
    mg_json_arr(j);
    for (uint32_t i = 0; i < p->n_kernels; i++)
        if (mg_report_shows(o, &p->kernels[i])) write_kernel(j, p, &p->kernels[i]);
    mg_json_end(j, ']');
    write_findings(j, p, o);
    if (parts & MG_PART_TOOLS) mg_report_tools_json(j, p, o);
    mg_json_end(j, '}');
}

void mg_report_json(const struct mg_recording *p, const struct mg_report_opts *o, struct mg_buf *out)
{
    static const struct mg_report_opts defaults = {.size = sizeof defaults};
    struct mg_json j;
    mg_json_init(&j, out, 1);
    mg_write_report(&j, p, o ? o : &defaults, MG_PART_LAUNCHES | MG_PART_TOOLS);
    mg_buf_addc(out, '\n');
}
