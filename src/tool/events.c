/* events: what the program's own markers (include/margay/event.h) begin and end: how often, how long, on which
 * multiprocessors, in which warps.
 *
 * A marker is an instruction of the PTX that writes to a register whose name says what it is, "__mg_event_begin_load".
 * Nobody reads the register, so no machine code is made of it. */
#include <stdlib.h>
#include <string.h>

#include "record/event.h"
#include "tool/host.h"
#include "tool/tool.h"
#include "view/kit.h"

enum times { TIME_AUTO, TIME_CLOCK, TIME_GLOBAL };
struct conf {
    uint64_t records, stage;
    uint32_t time; /* enum times */
    bool global;   /* records have %globaltimer */
    const struct mg_tool_host *host;
    bool told; /* of a launch that ran */
};
static const struct mg_tool_opt events_opts[] = {
    {"records", "16384", "beginnings and ends that a launch has room for, 32 bytes each"},
    {"stage", "0", "of each warp so many wait in shared memory until it leaves, where the kernel leaves room"},
    {"time", "auto",
     "clock, cycles of each multiprocessor; global, ns of one clock for all, with which events stand on the time line; auto: global beside -t timeline, unless they are staged"},
    {0}};
static const char *const times[] = {"auto", "clock", "global", NULL};
static const struct mg_field events_fields[] = {
    {"records", MG_FIELD_NUMBER, offsetof(struct conf, records), 1, MG_EVENT_MOST_RECORDS, NULL},
    {"stage", MG_FIELD_NUMBER, offsetof(struct conf, stage), 0, MG_EVENT_MOST_STAGED, NULL},
    {"time", MG_FIELD_CHOICE, offsetof(struct conf, time), 0, 0, times},
    {0}};

static enum mg_err events_configure(const char *args, void **conf, struct mg_diag *d)
{
    const struct conf defaults = {.records = MG_EVENT_RECORDS};
    enum mg_err err = mg_fields_parse("events", events_fields, &defaults, sizeof defaults, args, conf, d);
    if (err) return err;
    struct conf *c = *conf;
    c->global = c->time == TIME_GLOBAL;
    if (!c->global || !c->stage) return MG_ERR_OK;
    free(c);
    *conf = NULL;
    return mg_diag_err(d, MG_ERR_INPUT,
                       "events: stage= with time=global: ticks of that clock do not tell the order of what is staged");
}

/* Name of the event that an instruction marks; NULL: it is none. */
static const char *marker(const struct mg_module *m, mg_id node, bool *end)
{
    static const char begins[] = "__mg_event_begin_", ends[] = "__mg_event_end_";
    const struct mg_node *n = &m->nodes.at[node];
    const struct mg_opnd *o = n->n_opnds ? &m->opnds.at[n->opnd] : NULL;
    if (mg_node_form(m, n)->op != MG_OP_mov || !o || o->kind != MG_OPND_reg) return NULL;
    const char *name = mg_name(m, m->regs.at[o->id].name);
    *end = !strncmp(name, ends, sizeof ends - 1);
    if (*end) return name + sizeof ends - 1;
    return strncmp(name, begins, sizeof begins - 1) ? NULL : name + sizeof begins - 1;
}

static bool has_markers(struct mg_patch *p)
{
    const struct mg_patch_inst *insts;
    bool end;
    uint32_t n = mg_patch_insts(p, &insts);
    for (uint32_t i = 0; i < n; i++)
        if (marker(mg_patch_module(p), insts[i].node, &end)) return true;
    return false;
}

static enum mg_err events_analyze(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    (void)d;
    if (has_markers(p)) mg_events_reserve(p, (uint32_t)((const struct conf *)conf)->records);
    return MG_ERR_OK;
}

static enum mg_err events_instrument(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    struct mg_events *e = mg_arena_new(mg_patch_scratch(p), struct mg_events);
    const struct mg_patch_inst *insts;
    uint32_t n = mg_patch_insts(p, &insts);
    bool end;
    (void)d;
    const struct conf *c = conf;
    *e = (struct mg_events){.p = p, .records = (uint32_t)c->records, .staged = (uint32_t)c->stage, .global = c->global};
    for (uint32_t i = 0; i < n; i++) {
        const char *name = marker(mg_patch_module(p), insts[i].node, &end);
        if (name) mg_event_write(e, mg_at_before(p, insts[i].node), name, end, insts[i].node);
    }
    mg_events_end(e);
    return MG_ERR_OK;
}

static void events_begin(void *conf, const struct mg_tool_host *host)
{
    struct conf *c = conf;
    c->host = host;
    if (c->time == TIME_AUTO) c->global = host->timeline && !c->stage;
    if (host->timeline && !c->global)
        host->say(c->stage ? "events are not on the time line: they are staged (stage=)"
                           : "events are not on the time line: their clock is each multiprocessor's (time=clock)");
}

static void events_read(void *conf, const struct mg_tool_launch *l, const struct mg_tool_list *list)
{
    char *running = mg_events_read(l, list);
    struct conf *c = conf;
    if (!running) return;
    __atomic_store_n(&c->told, true, __ATOMIC_RELAXED);
    c->host->result("events", "running", running);
    free(running);
}

static void events_end(void *conf)
{
    struct conf *c = conf;
    if (c->told) c->host->result("events", "running", "null"); /* nothing runs any more */
}

static void events_profile(const void *conf, const struct mg_tool_result *r, struct mg_table *t, struct mg_json *j)
{
    (void)conf;
    if (mg_events_profile(r, t, j)) return;
    mg_table_begin(t, "events", "events");
    mg_table_note(t, "no kernel that ran has a marker of <margay/event.h>");
}

extern const struct mg_tool mg_tool_events;
const struct mg_tool mg_tool_events = {
    .name = "events",
    .summary = "what a program's own markers begin and end inside its kernels: <margay/event.h>",
    .opts = events_opts,
    .configure = events_configure,
    .release = free,
    .begin = events_begin,
    .analyze = events_analyze,
    .instrument = events_instrument,
    .read = events_read,
    .end = events_end,
    .profile = events_profile,
    .flags = MG_TOOL_FRAME,
};
