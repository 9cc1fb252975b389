#include "inject/range.h"

#include <stdlib.h>
#include <string.h>

/* "S" in seconds, a fraction allowed, up to the comma or the end. NULL: it is none. */
static const char *parse_seconds(const char *text, uint64_t *ns)
{
    char *end;
    double s = strtod(text, &end);
    if (end == text || (*end && *end != ',') || !(s >= 0) || s > 1e9 || *text == '-' || *text == '+' || *text == ' ')
        return NULL;
    *ns = (uint64_t)(s * 1e9);
    return end;
}

static enum mg_err parse_time(const char *spec, struct mg_range *out, struct mg_diag *d)
{
    bool delay = false, duration = false;
    out->kind = MG_RANGE_TIME;
    for (const char *at = spec; at;) {
        bool is_delay = !strncmp(at, "delay=", 6), is_duration = !strncmp(at, "duration=", 9);
        const char *end = is_delay && !delay         ? parse_seconds(at + 6, &out->delay_ns)
                          : is_duration && !duration ? parse_seconds(at + 9, &out->duration_ns)
                                                     : NULL;
        if (!end || (is_duration && !out->duration_ns))
            return mg_diag_err(d, MG_ERR_INPUT, "%s is no range: delay=SECONDS,duration=SECONDS, each once", spec);
        delay |= is_delay;
        duration |= is_duration;
        at = *end ? end + 1 : NULL;
    }
    return MG_ERR_OK;
}

enum mg_err mg_range_parse(const char *spec, struct mg_range *out, struct mg_diag *d)
{
    *out = (struct mg_range){.kind = MG_RANGE_ALL};
    if (!spec) return MG_ERR_OK;
    if (!strcmp(spec, "profiler")) {
        out->kind = MG_RANGE_PROFILER;
        return MG_ERR_OK;
    }
    if (!strncmp(spec, "nvtx:", 5)) {
        out->kind = MG_RANGE_NVTX;
        if (!spec[5] || strlen(spec + 5) >= sizeof out->glob)
            return mg_diag_err(d, MG_ERR_INPUT, "%s is no range: nvtx:GLOB, of up to %zu bytes", spec,
                               sizeof out->glob - 1);
        strcpy(out->glob, spec + 5);
        return MG_ERR_OK;
    }
    if (!strncmp(spec, "delay=", 6) || !strncmp(spec, "duration=", 9)) return parse_time(spec, out, d);
    return mg_diag_err(d, MG_ERR_INPUT, "%s is no range: profiler, nvtx:GLOB or delay=SECONDS,duration=SECONDS", spec);
}
