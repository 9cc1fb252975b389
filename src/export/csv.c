/* export csv: one line a span (docs/man/export.md has the columns). A column that does not apply is empty. */
#include <inttypes.h>
#include <string.h>

#include "export/format.h"

static enum mg_err open_csv(struct mg_export *x, struct mg_diag *d)
{
    (void)d;
    mg_buf_adds(
        &x->buf,
        "start_ns,end_ns,kind,name,process,thread,device,context,stream,correlation,bytes,source,uncertainty_ns,stack,done,peer,"
        "tag,communicator,message,launch,replay,kernel,cta,warp,sm,lanes\n");
    return MG_ERR_OK;
}

static void add_text(struct mg_buf *b, const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        mg_buf_adds(b, text);
        return;
    }
    mg_buf_addc(b, '"');
    for (; *text; text++) {
        if (*text == '"') mg_buf_addc(b, '"');
        mg_buf_addc(b, *text);
    }
    mg_buf_addc(b, '"');
}

static void add_number(struct mg_buf *b, bool has, uint64_t v)
{
    mg_buf_addc(b, ',');
    if (has) mg_buf_addu(b, v);
}

static void write_span(struct mg_export *x, const struct mg_span *p)
{
    struct mg_buf *b = &x->buf;
    bool inside = p->kind == MG_SPAN_INSIDE, work = mg_export_is_work(p) || inside;
    mg_buf_addu(b, p->begin_ns);
    mg_buf_addc(b, ',');
    mg_buf_addu(b, p->end_ns);
    mg_buf_printf(b, ",%s,", p->kind == MG_SPAN_CALL ? "api" : mg_span_kind_name(p->kind));
    add_text(b, mg_export_name(x, p));
    add_number(b, true, p->process);
    add_number(b, !work, p->thread);
    add_number(b, work, p->device);
    add_number(b, work, p->context);
    add_number(b, work, p->stream);
    add_number(b, p->correlation != 0, p->correlation);
    add_number(b, p->bytes != MG_SPAN_NONE, p->bytes);
    mg_buf_printf(b, ",%s", mg_span_source_name(p->source));
    add_number(b, mg_export_has_uncertainty(p), p->uncertainty_ns);
    mg_buf_addc(b, ',');
    mg_buf_reset(&x->text);
    mg_export_stack(x, p, &x->text);
    if (x->text.n) add_text(b, x->text.at);
    mg_buf_adds(b, ",,,,,");
    add_number(b, p->launch != MG_SPAN_NONE, p->launch);
    add_number(b, p->replay != MG_SPAN_NONE, p->replay);
    mg_buf_addc(b, ',');
    add_text(b, p->kernel);
    add_number(b, inside, p->cta);
    add_number(b, inside, p->warp);
    add_number(b, inside, p->sm);
    add_number(b, inside, p->lanes);
    mg_buf_addc(b, '\n');
}

/* At the time when it was posted. */
static void write_message(struct mg_export *x, const struct mg_span *p, uint64_t arrow)
{
    struct mg_buf *b = &x->buf;
    mg_buf_printf(b, "%" PRIu64 ",%" PRIu64 ",message,%s,%u,,,,,", p->begin_ns, p->begin_ns, p->name, p->process);
    if (p->correlation) mg_buf_addu(b, p->correlation);
    add_number(b, p->bytes != MG_SPAN_NONE, p->bytes);
    mg_buf_adds(b, ",host,0,");
    add_number(b, p->outer != 0, p->outer);
    add_number(b, p->peer >= 0, (uint64_t)p->peer);
    mg_buf_printf(b, ",%" PRId64, p->tag);
    add_number(b, true, p->communicator);
    add_number(b, arrow != 0, arrow);
    mg_buf_adds(b, ",,,,,,,\n");
}

static enum mg_err close_csv(struct mg_export *x, struct mg_diag *d)
{
    (void)x, (void)d;
    return MG_ERR_OK;
}

const struct mg_export_format mg_export_csv = {
    .name = "csv",
    .summary = "every span of the time line, one a line",
    .file = "spans.csv",
    .messages = true,
    .inside = true,
    .message = write_message,
    .suffix = ".csv",
    .open = open_csv,
    .span = write_span,
    .close = close_csv,
};
