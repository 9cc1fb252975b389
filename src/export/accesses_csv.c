/* CSV: a line for each lane of each access, in the order of launches and, inside of one, of the trace. */
#include <inttypes.h>

#include "export/accesses.h"

struct csv {
    struct mg_accesses *a;
    struct mg_converted *sums;
    FILE *f;
};

static const char *const kinds[] = {"load", "store", "atomic", "barrier"};

/* A text with its quotes doubled. */
static void put_text(FILE *f, const char *s)
{
    fputc('"', f);
    for (; *s; s++) {
        if (*s == '"') fputc('"', f);
        fputc(*s, f);
    }
    fputc('"', f);
}

static enum mg_err put_launch(void *user, const struct mg_trace_step *s, struct mg_diag *d)
{
    struct csv *x = user;
    const struct mg_trace_access *a;
    uint64_t request = 0;
    (void)d;
    mg_accesses_begin(x->a, s);
    while ((a = mg_accesses_next(x->a))) {
        uint32_t cta[3];
        if (!a->site->bytes) continue;
        mg_convert_cta(s, a->cta, cta);
        x->sums->accesses++;
        request++;
        for (uint32_t m = a->mask; m; m &= m - 1) {
            uint32_t lane = (uint32_t)__builtin_ctz(m);
            fprintf(x->f, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",", s->launch, s->replay, s->stream);
            put_text(x->f, s->name);
            fprintf(x->f, ",%u,%u,%u,%u,%u,%u,%u,%s,%s,", cta[0], cta[1], cta[2], a->warp, lane, a->sm, a->number,
                    kinds[a->site->kind], a->site->op);
            put_text(x->f, a->site->file);
            fprintf(x->f, ",%u,%u,0x%" PRIx64 ",%" PRIu64 "\n", a->site->line, a->site->bytes, a->address[lane],
                    request);
            x->sums->lanes++;
        }
    }
    return MG_ERR_OK;
}

static enum mg_err write_csv(struct mg_accesses *a, const struct mg_convert_opts *o, struct mg_converted *out,
                             struct mg_diag *d)
{
    struct mg_io_part part;
    enum mg_err err = mg_convert_create(&part, NULL, o->out, d);
    if (err) return err;
    struct csv x = {a, out, part.file};
    fputs(
        "launch,replay,stream,kernel,cta_x,cta_y,cta_z,warp,lane,sm,number,access,op,file,line,bytes,address,request\n",
        x.f);
    err = mg_convert_each(a, o, out, false, put_launch, &x, d);
    long at = ftell(x.f);
    out->bytes = at > 0 ? (uint64_t)at : 0;
    return mg_convert_finish(&part, err, d);
}

const struct mg_convert_format mg_convert_csv = {"csv", "a line for each lane of each access", false, write_csv};
