/* What programs used over time: samples of every adjustment, rows of a second or so, and JSON (docs/json.md). */
#include "sched/sched.h"

#include <math.h>
#include <stdlib.h>

#include "base/json.h"

void mg_sched_sample(struct mg_sched *s, uint64_t now_ns)
{
    if (!s->begin_ns) return;
    *mg_vec_push(&s->sample_ns) = now_ns;
    *mg_vec_push(&s->sample_programs) = s->programs.n;
    for (uint32_t i = 0; i < s->programs.n; i++) {
        const struct mg_sched_use *u = &s->programs.at[i].use;
        *mg_vec_push(&s->samples) = (struct mg_sched_sample){u->device_ns, u->instructions};
    }
}

uint32_t mg_sched_rows(const struct mg_sched *s, uint64_t step_ns, struct mg_sched_row **rows,
                       struct mg_sched_sample **use)
{
    uint32_t n = s->programs.n, n_rows = 0;
    *rows = calloc(s->sample_ns.n + 1, sizeof **rows);
    *use = calloc((size_t)(s->sample_ns.n + 1) * (n + 1), sizeof **use);
    struct mg_sched_sample *before = calloc(n + 1, sizeof *before);
    uint64_t from_ns = s->begin_ns;
    for (uint32_t i = 0, at = 0; *rows && *use && before && i < s->sample_ns.n; at += s->sample_programs.at[i++]) {
        if (s->sample_ns.at[i] - from_ns < step_ns) continue;
        struct mg_sched_sample *u = *use + (size_t)n_rows * n;
        for (uint32_t k = 0; k < s->sample_programs.at[i]; k++) {
            const struct mg_sched_sample *now = &s->samples.at[at + k];
            u[k] = (struct mg_sched_sample){MG_MAX(now->device_ns, before[k].device_ns) - before[k].device_ns,
                                            now->instructions - before[k].instructions};
            before[k] = (struct mg_sched_sample){MG_MAX(now->device_ns, before[k].device_ns), now->instructions};
        }
        (*rows)[n_rows++] = (struct mg_sched_row){from_ns - s->begin_ns, s->sample_ns.at[i] - from_ns, u};
        from_ns = s->sample_ns.at[i];
    }
    free(before);
    return n_rows;
}

static void print_share(struct mg_json *j, const char *key, uint64_t part, uint64_t all)
{
    mg_json_key_f64(j, key, all ? round(1e5 * (double)part / (double)all) / 1e3 : NAN);
}

static void print_row(const struct mg_sched *s, const struct mg_sched_row *r, struct mg_json *j)
{
    struct mg_sched_sample all = {0};
    for (uint32_t i = 0; i < s->programs.n; i++)
        all.device_ns += r->use[i].device_ns, all.instructions += r->use[i].instructions;
    mg_json_obj(j);
    mg_json_key_u64(j, "start_ns", r->start_ns);
    mg_json_key_u64(j, "length_ns", r->length_ns);
    mg_json_key(j, "programs");
    mg_json_arr(j);
    for (uint32_t i = 0; i < s->programs.n; i++) {
        bool counted = s->programs.at[i].counted;
        mg_json_obj(j);
        mg_json_key_u64(j, "device_ns", r->use[i].device_ns);
        mg_json_key_u64_if(j, "thread_instructions", counted, r->use[i].instructions);
        print_share(j, "device_share_pct", r->use[i].device_ns, all.device_ns);
        print_share(j, "instruction_share_pct", r->use[i].instructions, counted ? all.instructions : 0);
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
    mg_json_end(j, '}');
}

static void print_program(const struct mg_sched *s, uint32_t i, struct mg_json *j)
{
    const struct mg_sched_program *p = &s->programs.at[i];
    uint64_t device_ns = 0, instructions = 0;
    double shares = 0;
    for (uint32_t k = 0; k < s->programs.n; k++) {
        device_ns += s->programs.at[k].use.device_ns;
        instructions += s->programs.at[k].use.instructions;
        shares += s->programs.at[k].share;
    }
    mg_json_obj(j);
    mg_json_key_str(j, "name", p->name);
    mg_json_key_str(j, "profile", p->dir);
    mg_json_key_f64(j, "share_pct", round(1e5 * p->share / shares) / 1e3);
    mg_json_key(j, "priority");
    mg_json_i64(j, p->priority);
    mg_json_key_bool(j, "adopted", p->adopted);
    mg_json_key_u64_if(j, "exit", p->status >= 0, (uint64_t)MG_MAX(p->status, 0));
    mg_json_key_u64(j, "device_ns", p->use.device_ns);
    mg_json_key_u64_if(j, "thread_instructions", p->counted, p->use.instructions);
    print_share(j, "device_share_pct", p->use.device_ns, device_ns);
    print_share(j, "instruction_share_pct", p->use.instructions, p->counted ? instructions : 0);
    mg_json_key_u64(j, "launches", p->use.launches);
    mg_json_key_u64(j, "forced", p->use.forced);
    mg_json_key_u64(j, "lapses", p->lapses);
    mg_json_key_u64(j, "attached", p->attached);
    mg_json_key_u64(j, "longest_ns", p->use.longest_ns);
    mg_json_key_u64(j, "waited_ns", p->use.waited_ns);
    mg_json_end(j, '}');
}

void mg_sched_json(const struct mg_sched *s, struct mg_buf *out)
{
    struct mg_json j;
    struct mg_sched_row *rows;
    struct mg_sched_sample *use;
    uint32_t n = mg_sched_rows(s, 1000000000u, &rows, &use);
    mg_json_init(&j, out, 2);
    mg_json_obj(&j);
    mg_json_key_u64(&j, "margay_json", 1);
    mg_json_key_str(&j, "policy", s->policy->name);
    mg_json_key_u64(&j, "period_ns", MG_SCHED_PERIOD_NS);
    mg_json_key_u64(&j, "adjust_ns", MG_SCHED_ADJUST_NS);
    mg_json_key_u64(&j, "turns", s->turns);
    mg_json_key(&j, "programs");
    mg_json_arr(&j);
    for (uint32_t i = 0; i < s->programs.n; i++) print_program(s, i, &j);
    mg_json_end(&j, ']');
    mg_json_key(&j, "seconds");
    mg_json_arr(&j);
    for (uint32_t i = 0; i < n; i++) print_row(s, &rows[i], &j);
    mg_json_end(&j, ']');
    mg_json_end(&j, '}');
    mg_buf_addc(out, '\n');
    free(rows);
    free(use);
}
