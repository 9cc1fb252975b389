/* timeline: the calls of the program and the work of its devices, as spans of one time line. It instruments
 * nothing: kernels run native. The records are made in inject/timeline.c, read by span/ and summed up by
 * report/timeline.c; here are the options. */
#include "tool/timeline.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/option.h"
#include "view/kit.h"
#include "tool/span.h"

/* ORDER CLASSES: as in abi/calls.h, which tools do not know; tests/unit/test_span.c compares them. */
const char *const mg_timeline_classes[] = {"kernel", "copy",   "memset", "memory", "synchronisation", "event", "stream",
                                           "graph",  "module", "other",  NULL};

static const struct mg_tool_opt timeline_opts[] = {
    {"calls", "on", "record calls of the driver"},
    {"runtime", "auto",
     "record calls of the CUDA runtime, where it is a shared library: auto (without a GPU, or if the program is linked with it), on, off"},
    {"arguments", "on", "keep the arguments of calls"},
    {"work", "on", "record kernels, copies and memsets of the devices"},
    {"times", "events",
     "on a GPU: events, an event pair around each; off, device work has no times; twin (any device), kernels are instrumented and read %globaltimer"},
    {"source", "own",
     "on a GPU: own, what times says; cupti, NVIDIA's CUPTI times kernels, copies and memsets, where it is installed and nobody else uses it"},
    {"sample", "1", "with events: time each so manyth launch only; the others have no times"},
    {"class", "all",
     "calls of these classes alone, joined by '+': kernel copy memset memory synchronisation event stream graph module other"},
    {"name", "*", "calls alone whose name fits this glob"},
    {"clocks", "day",
     "times of other hosts: day, by the time of day; mpi, by messages behind MPI_Init and in front of MPI_Finalize (all ranks run under margay)"},
    {"stacks", "off",
     "the host's call stack of launches and of calls that wait: on, of all; N, of about each N-th, by a hash; off"},
    {"tau", "off", "report what TAUcuda would measure around every launch"},
    {"memory", "64", "MiB of buffers for records that are not on disk yet"},
    {"full", "drop", "what a thread does that finds no buffer: drop (and count) its record, or wait"},
    {0},
};

/* Cuts "key=value" out of the list; the value, or NULL. */
static bool cut_option(char *list, const char *key, char *value, size_t room)
{
    size_t n;
    const char *found = mg_option_value(list, strlen(list), key, &n);
    if (found && n >= room) return false;
    if (found) {
        memcpy(value, found, n);
        char *at = list + (found - list) - strlen(key) - 1, *end = list + (found - list) + n;
        memmove(at, *end ? end + 1 : end, strlen(*end ? end + 1 : end) + 1);
        size_t left = strlen(list);
        if (left && list[left - 1] == ',') list[left - 1] = 0;
    }
    value[found ? n : 0] = 0;
    return true;
}

static enum mg_err parse_classes(const char *text, uint32_t *classes, struct mg_diag *d)
{
    for (const char *at = text; *at; at += strcspn(at, "+"), at += *at == '+') {
        size_t n = strcspn(at, "+");
        uint32_t c = 0;
        while (mg_timeline_classes[c] && (strlen(mg_timeline_classes[c]) != n || memcmp(mg_timeline_classes[c], at, n)))
            c++;
        bool all = n == 3 && !memcmp(at, "all", 3);
        if (!mg_timeline_classes[c] && !all)
            return mg_diag_err(d, MG_ERR_INPUT, "tool timeline: no class of calls is named %.*s", (int)n, at);
        *classes |= all ? UINT32_MAX : 1u << c;
    }
    return MG_ERR_OK;
}

static enum mg_err parse_stacks(const char *text, uint64_t *every, struct mg_diag *d)
{
    char *end = NULL;
    *every = !strcmp(text, "on") ? 1 : 0;
    if (!*text || !strcmp(text, "on") || !strcmp(text, "off")) return MG_ERR_OK;
    if (*text >= '0' && *text <= '9') *every = strtoull(text, &end, 10);
    if (!end || *end || *every < 1 || *every > 1000000)
        return mg_diag_err(d, MG_ERR_INPUT, "tool timeline: stacks is on, off, or a number from 1 to 1000000");
    return MG_ERR_OK;
}

static enum mg_err timeline_configure(const char *args, void **conf, struct mg_diag *d)
{
    static const char *const times[] = {"events", "off", "twin", NULL}, *const runtime[] = {"auto", "on", "off", NULL},
                             *const full[] = {"drop", "wait", NULL}, *const clocks[] = {"day", "mpi", NULL},
                             *const source[] = {"own", "cupti", NULL};
    static const struct mg_field fields[] = {
        {"calls", MG_FIELD_FLAG, offsetof(struct mg_timeline_conf, calls)},
        {"runtime", MG_FIELD_CHOICE, offsetof(struct mg_timeline_conf, runtime), .words = runtime},
        {"arguments", MG_FIELD_FLAG, offsetof(struct mg_timeline_conf, arguments)},
        {"work", MG_FIELD_FLAG, offsetof(struct mg_timeline_conf, work)},
        {"times", MG_FIELD_CHOICE, offsetof(struct mg_timeline_conf, times), .words = times},
        {"source", MG_FIELD_CHOICE, offsetof(struct mg_timeline_conf, source), .words = source},
        {"clocks", MG_FIELD_CHOICE, offsetof(struct mg_timeline_conf, clocks), .words = clocks},
        {"tau", MG_FIELD_FLAG, offsetof(struct mg_timeline_conf, tau)},
        {"sample", MG_FIELD_NUMBER, offsetof(struct mg_timeline_conf, sample), 1, 1000000},
        {"memory", MG_FIELD_NUMBER, offsetof(struct mg_timeline_conf, memory_mib), 1, 4096},
        {"full", MG_FIELD_CHOICE, offsetof(struct mg_timeline_conf, full), .words = full},
        {0},
    };
    const struct mg_timeline_conf defaults = {
        .calls = true,
        .arguments = true,
        .work = true,
        .sample = 1,
        .memory_mib = 64,
    };
    char rest[1024], classes[256], name[sizeof defaults.name], stacks[32];
    if (strlen(args ? args : "") >= sizeof rest)
        return mg_diag_err(d, MG_ERR_INPUT, "tool timeline: its options are too long");
    strcpy(rest, args ? args : "");
    if (!cut_option(rest, "class", classes, sizeof classes) || !cut_option(rest, "name", name, sizeof name) ||
        !cut_option(rest, "stacks", stacks, sizeof stacks))
        return mg_diag_err(d, MG_ERR_INPUT, "tool timeline: an option is too long");
    enum mg_err err = mg_fields_parse("timeline", fields, &defaults, sizeof defaults, rest, conf, d);
    if (err) return err;
    struct mg_timeline_conf *c = *conf;
    strcpy(c->name, name);
    err = parse_classes(classes, &c->classes, d);
    if (!err) err = parse_stacks(stacks, &c->stacks, d);
    bool whole = c->calls && c->times == MG_TIMES_EVENTS && !*classes && !*name;
    if (!err && c->source && !whole)
        err = mg_diag_err(
            d, MG_ERR_INPUT,
            "tool timeline: source=cupti goes with times=events and all calls: without calls=off, class and name");
    if (err) {
        free(*conf);
        *conf = NULL;
    }
    return err;
}

/* ---- times=twin: the kernel reads the device's clock ---- */

static bool timeline_instruments(const void *conf)
{
    const struct mg_timeline_conf *c = conf;
    return c->times == MG_TIMES_TWIN && c->work;
}

static enum mg_err timeline_instrument(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    (void)d;
    if (timeline_instruments(conf)) mg_span_place(p);
    return MG_ERR_OK;
}

extern const struct mg_tool mg_tool_timeline;
const struct mg_tool mg_tool_timeline = {
    .name = "timeline",
    .summary = "calls and device work on one time line",
    .opts = timeline_opts,
    .configure = timeline_configure,
    .release = free,
    .instrument = timeline_instrument,
    .flags = MG_TOOL_NATIVE | MG_TOOL_BESIDE | MG_TOOL_NO_LOADS | MG_TOOL_SPAN,
    .instruments = timeline_instruments,
};
