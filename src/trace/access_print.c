/* Accesses as text, one a line. */
#include <inttypes.h>

#include "base/json.h"
#include "trace/access.h"

static const char *const kinds[] = {"load", "store", "atomic", "barrier", "block", "instruction", "unseen"};
_Static_assert(MG_COUNT_OF(kinds) == MG_ACCESS_KIND_COUNT, "ORDER ACCESS_KINDS");

void mg_trace_access_print(const struct mg_trace_access *x, uint32_t pid, struct mg_buf *out)
{
    const struct mg_access_site *s = x->site;
    mg_buf_printf(out,
                  "trace.access pid=%u launch=%" PRIu64 " replay=%" PRIu64 " cta=%" PRIu64
                  " warp=%u sm=%u number=%u mask=0x%x",
                  pid, x->launch_number, x->replay, x->cta, x->warp, x->sm, x->number, x->mask);
    mg_buf_printf(out, " kernel=%s access=%s op=%s file=%s line=%u ptx_line=%u bytes=%u", s->kernel, kinds[s->kind],
                  s->op, *s->file ? s->file : "?", s->line, s->ptx_line, s->bytes);
    mg_buf_printf(out, " instruction=%u", s->number);
    if (s->kind == MG_ACCESS_BLOCK) mg_buf_printf(out, " instructions=%u", s->n_instructions);
    for (uint32_t lane = 0; lane < 32 && s->bytes; lane++)
        if (x->mask >> lane & 1) mg_buf_printf(out, " %u:0x%" PRIx64, lane, x->address[lane]);
}

void mg_trace_access_print_json(const struct mg_trace_access *x, uint32_t pid, struct mg_buf *out)
{
    const struct mg_access_site *s = x->site;
    struct mg_json j;
    mg_json_init(&j, out, 0);
    mg_json_obj(&j);
    mg_json_key_str(&j, "kind", "trace.access");
    mg_json_key_u64(&j, "pid", pid);
    mg_json_key(&j, "fields");
    mg_json_obj(&j);
    mg_json_key_u64(&j, "launch", x->launch_number);
    mg_json_key_u64(&j, "replay", x->replay);
    mg_json_key_u64(&j, "cta", x->cta);
    mg_json_key_u64(&j, "warp", x->warp);
    mg_json_key_u64(&j, "sm", x->sm);
    mg_json_key_u64(&j, "number", x->number);
    mg_json_key_u64(&j, "mask", x->mask);
    mg_json_key_str(&j, "kernel", s->kernel);
    mg_json_key_str(&j, "access", kinds[s->kind]);
    mg_json_key_str(&j, "op", s->op);
    mg_json_key_str(&j, "file", s->file);
    mg_json_key_u64(&j, "line", s->line);
    mg_json_key_u64(&j, "ptx_line", s->ptx_line);
    mg_json_key_u64(&j, "bytes", s->bytes);
    mg_json_key_u64(&j, "instruction", s->number);
    if (s->kind == MG_ACCESS_BLOCK) mg_json_key_u64(&j, "instructions", s->n_instructions);
    mg_json_key(&j, "addresses");
    mg_json_arr(&j);
    for (uint32_t lane = 0; lane < 32 && s->bytes; lane++)
        if (x->mask >> lane & 1) mg_json_u64(&j, x->address[lane]);
    mg_json_end(&j, ']');
    mg_json_end(&j, '}');
    mg_json_end(&j, '}');
}
