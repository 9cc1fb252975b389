/* Records of tools: each spot is a site, and the region keeps the kind of each site's records. See record.h. */
#include "record/record.h"

#include <stdio.h>
#include <string.h>

#include "patch/layout.h"
#include "patch/priv.h"
#include "record/frame.h"

void mg_records_open(struct mg_patch *p)
{
    mg_patch_channel(p);
}

void mg_records_open_bounded(struct mg_patch *p, uint32_t records, uint32_t fields)
{
    if (!records || records > MG_RECORDS_MOST || fields > MG_CHANNEL_MOST_WORDS) {
        mg_patch_refuse(p, MG_ERR_LIMIT, "room for %u records of %u fields", (unsigned)records, (unsigned)fields);
        return;
    }
    mg_frame_reserve(p, records, fields);
    p->frame_records = records;
}

static void write_bounded(struct mg_code_at *at, const struct mg_record_type *k, uint32_t site, const mg_id *values)
{
    struct mg_patch *p = at->p;
    if (k->form != MG_RECORD_PER_WARP) {
        mg_patch_refuse(p, MG_ERR_UNSUPPORTED, "bounded records are of a warp");
        return;
    }
    if (!p->frame) {
        p->frame = mg_arena_new(&p->scratch, struct mg_frame_code);
        mg_frame_begin(p->frame, p, p->frame_records, 0);
    }
    mg_frame_write_values(p->frame, at, site, values, k->n_fields);
}

static bool is_word(enum mg_trace_type t)
{
    return t == MG_TRACE_u64 || t == MG_TRACE_i64 || t == MG_TRACE_f64 || t == MG_TRACE_hex || t == MG_TRACE_time;
}

static bool is_wrong(const struct mg_record_type *k)
{
    bool wrong =
        !k->name || k->n_fields > MG_CHANNEL_MOST_WORDS || (k->form == MG_RECORD_PER_ACCESS) == (k->n_fields != 0);
    for (uint32_t i = 0; i < k->n_fields && !wrong; i++) wrong = !is_word(k->fields[i].type);
    return wrong;
}

void mg_record_write(struct mg_code_at *at, const struct mg_record_type *k, mg_id node, const mg_id *values)
{
    struct mg_patch *p = at->p;
    uint32_t site = p->sites.n;
    if (is_wrong(k)) {
        mg_patch_refuse(p, MG_ERR_STATE, "a kind of records that is none: 1 to %d fields of 64 bits",
                        (int)MG_CHANNEL_MOST_WORDS);
        return;
    }
    mg_patch_site(p, node ? MG_SITE_INST : MG_SITE_KERNEL, node, 0, 0, MG_MERGE_SUM, 0);
    if (p->frame_records)
        write_bounded(at, k, site, values);
    else
        switch (k->form) {
        case MG_RECORD_PER_WARP:
            mg_channel_once(at, site, values, k->n_fields);
            break;
        case MG_RECORD_PER_LANE:
            mg_channel_lanes(at, site, values, k->n_fields);
            break;
        case MG_RECORD_PER_ACCESS:
            mg_channel_access(at, site, node);
            break;
        }
    while (p->record_types.n <= site) *mg_vec_push(&p->record_types) = NULL;
    p->record_types.at[site] = k;
}

/* ---- in a trace ---------------------------------------------------------------------------------------- */

static const struct mg_trace_field head_fields[MG_RECORD_FIELD_COUNT] = {
    /* ORDER mg_record_field, mg_record_head */
    {"launch", MG_TRACE_u64, MG_TRACE_KEY_LAUNCH},
    {"cta", MG_TRACE_u64, MG_TRACE_KEY_CTA},
    {"warp", MG_TRACE_u32},
    {"number", MG_TRACE_u32},
    {"mask", MG_TRACE_hex},
    {"kernel", MG_TRACE_name},
    {"op", MG_TRACE_name},
    {"file", MG_TRACE_name},
    {"line", MG_TRACE_u32},
    {"ptx_line", MG_TRACE_u32},
};
_Static_assert(sizeof(struct mg_record_head) == 2 * 8 + 2 * 4 + 8 + 5 * 4, "as the fields say");

void mg_record_trace_kind(const char *tool, const struct mg_record_type *k, bool bounded, struct mg_record_trace *out)
{
    uint32_t n = MG_RECORD_FIELD_COUNT;
    memset(out, 0, sizeof *out);
    memcpy(out->fields, head_fields, sizeof head_fields);
    snprintf(out->name, sizeof out->name, "%s.%s", tool, k->name);
    if (bounded) out->fields[n++] = (struct mg_trace_field){"clock", MG_TRACE_u64};
    if (k->form == MG_RECORD_PER_WARP) {
        memcpy(out->fields + n, k->fields, k->n_fields * sizeof *k->fields);
        n += k->n_fields;
    } else if (k->form == MG_RECORD_PER_LANE) {
        for (uint32_t i = 0; i < k->n_fields; i++) {
            size_t at = strlen(out->columns);
            snprintf(out->columns + at, sizeof out->columns - at, "%s%s", i ? "|" : "", k->fields[i].name);
        }
        out->fields[n++] = (struct mg_trace_field){"lanes", MG_TRACE_words, .values = out->columns};
    } else {
        out->fields[n++] = (struct mg_trace_field){"width", MG_TRACE_u32};
        out->fields[n++] = (struct mg_trace_field){"addresses", MG_TRACE_words};
    }
    out->kind = (struct mg_trace_kind){.name = out->name, .version = 1, .fields = out->fields, .n_fields = n};
}
