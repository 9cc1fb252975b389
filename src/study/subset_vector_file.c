/* Feature vectors as files: SimPoint's frequency vectors in and out, and a table of what intervals do. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/number.h"
#include "base/vec.h"
#include "study/subset_vector.h"

/* ---- SimPoint's format ------------------------------------------------------------------------------ */

void mg_vectors_print(const struct mg_vectors *v, struct mg_buf *out)
{
    struct mg_map numbers = MG_MAP_INIT;
    for (uint32_t i = 0; i < v->n; i++) {
        mg_buf_addc(out, 'T');
        for (uint32_t j = 0; j < v->vectors[i].n; j++) {
            uint64_t number;
            if (!mg_map_get(&numbers, v->vectors[i].keys[j], &number)) {
                number = numbers.n + 1;
                mg_map_set(&numbers, v->vectors[i].keys[j], number);
            }
            mg_buf_printf(out, "%s:%llu:%.17g", j ? " " : "", (unsigned long long)number, v->vectors[i].values[j]);
        }
        mg_buf_addc(out, '\n');
    }
    mg_map_release(&numbers);
}

/* ":key:count" at *at; false: something else stands there. */
static bool read_entry(const char **at, const char *end, struct mg_feature_value *e)
{
    char text[64], *stop;
    size_t n = 0;
    while (*at + n < end && !strchr(" \t\r\n", (*at)[n]) && n < sizeof text - 1) n++;
    memcpy(text, *at, n);
    text[n] = 0;
    *at += n;
    if (text[0] != ':' || text[1] < '0' || text[1] > '9') return false;
    e->key = strtoull(text + 1, &stop, 10);
    if (*stop != ':') return false;
    e->value = mg_number_plain(stop + 1, &stop);
    return !*stop && isfinite(e->value) && e->value >= 0;
}

static bool read_line(struct mg_vectors *v, const char *at, const char *end, struct mg_vector *out)
{
    struct mg_feature_values e = {0};
    bool ok = true;
    while (ok && at < end) {
        if (strchr(" \t\r", *at))
            at++;
        else
            ok = read_entry(&at, end, mg_vec_push(&e.list));
    }
    const uint32_t n = e.list.n;
    mg_vector_store(v, &e, out);
    ok = ok && out->n == n; /* a key stands once in a vector */
    mg_vec_release(&e.list);
    return ok && isfinite(out->sum) && out->sum > 0;
}

enum mg_err mg_vectors_parse(struct mg_vectors *v, const char *text, size_t bytes, const char *path, struct mg_diag *d)
{
    MG_VEC(struct mg_vector) vectors = {0};
    const char *end = text + bytes;
    uint32_t line = 0;
    enum mg_err err = MG_ERR_OK;
    *v = (struct mg_vectors){.time_ns = NAN};
    for (const char *at = text; at < end && !err;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop) stop = end;
        line++;
        if (stop > at && *at == 'T') {
            struct mg_vector *x = mg_vec_push(&vectors);
            *x = (struct mg_vector){0};
            if (memchr(at, 0, (size_t)(stop - at)) || !read_line(v, at + 1, stop, x))
                err = mg_diag_add(d, MG_ERR_INPUT, MG_SEV_ERROR, path, line, 0, NULL,
                                  "not a frequency vector: T:key:count :key:count ...");
        } else if (stop > at && *at != '#' && *at != '\r') {
            err = mg_diag_add(d, MG_ERR_INPUT, MG_SEV_ERROR, path, line, 0, NULL, "a vector begins with T");
        }
        at = stop + 1;
    }
    if (!err && !vectors.n) err = mg_diag_err(d, MG_ERR_INPUT, "%s: it has no vectors", path);
    v->n = err ? 0 : vectors.n;
    v->intervals = mg_arena_array(&v->arena, struct mg_interval, v->n + 1);
    v->vectors = mg_arena_array(&v->arena, struct mg_vector, v->n + 1);
    v->members = mg_arena_array(&v->arena, uint64_t, v->n + 1);
    for (uint32_t i = 0; i < v->n; i++) {
        v->vectors[i] = vectors.at[i];
        v->members[i] = i;
        v->intervals[i] = (struct mg_interval){
            .first = i, .last = i, .member = i, .n_launches = 1, .insts = vectors.at[i].sum, .time_ns = NAN};
        v->insts += vectors.at[i].sum;
        v->n_launches++;
    }
    mg_vec_release(&vectors);
    if (err) mg_vectors_release(v);
    return err;
}

/* ---- the table ---------------------------------------------------------------------------------------- */

static void add_cell(struct mg_buf *out, double v)
{
    if (!isnan(v)) mg_buf_printf(out, "%.17g", v);
    mg_buf_addc(out, ',');
}

static void add_name(struct mg_buf *out, const char *s)
{
    mg_buf_addc(out, '"');
    for (; *s; s++) {
        if (*s == '"') mg_buf_addc(out, '"');
        mg_buf_addc(out, *s);
    }
    mg_buf_adds(out, "\",");
}

void mg_vectors_print_csv(const struct mg_vectors *v, const struct mg_subset_program *s, struct mg_buf *out)
{
    mg_buf_adds(out, "interval,first_launch,last_launch,launches,kernel,ctas,threads,thread_instructions,warp_"
                     "instructions,active_lanes,"
                     "read_bytes,written_bytes,");
    for (int c = 0; c < MG_OPCLASS_COUNT; c++) mg_buf_printf(out, "%s,", mg_opclass_name((enum mg_opclass)c));
    mg_buf_adds(out, "time_ns\r\n");
    for (uint32_t i = 0; i < v->n; i++) {
        const struct mg_interval *x = &v->intervals[i];
        double threads = 0, read = 0, written = 0;
        for (uint64_t j = x->member; j < x->member + x->n_launches; j++) {
            const struct mg_subset_launch *l = &s->launches[v->members[j]];
            threads += mg_launch_ctas(l->l) * l->l->block[0] * l->l->block[1] * l->l->block[2];
            read += l->read_bytes;
            written += l->written_bytes;
        }
        mg_buf_printf(out, "%u,%llu,%llu,%llu,", i, (unsigned long long)s->launches[x->first].l->id,
                      (unsigned long long)s->launches[x->last].l->id, (unsigned long long)x->n_launches);
        add_name(out, s->p->kernels[x->kernel].demangled);
        add_cell(out, x->ctas);
        add_cell(out, threads);
        add_cell(out, x->insts);
        add_cell(out, x->warp_insts);
        add_cell(out, x->insts / x->warp_insts);
        add_cell(out, read);
        add_cell(out, written);
        for (int c = 0; c < MG_OPCLASS_COUNT; c++) add_cell(out, x->ops[c]);
        add_cell(out, x->time_ns);
        out->at[--out->n] = 0;
        mg_buf_adds(out, "\r\n");
    }
}
