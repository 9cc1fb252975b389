/* Selected launches as a capture of their own, written while all launches are replayed: before each the memory that it
 * finds, as far as the new capture does not have it, then the launch, then hashes of what it left. */
#include "replay/replay.h"

#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "image/image.h"
#include "ir/ir.h"
#include "ptx/ptx.h"

struct shadow {
    uint64_t at, bytes;
    bool variable, seen;
    uint64_t *hash;
}; /* memory as the new capture has it, by chunks */
struct range {
    uint64_t from, to;
}; /* of launches, both included */
struct object_out {
    uint64_t serial, handle;
    bool surface;
}; /* a texture or surface that the new capture has */
struct mg_extract {
    struct mg_cap_writer out;
    MG_VEC(struct range) wanted;
    MG_VEC(struct shadow) shadows;
    MG_VEC(uint64_t) images, loads, kernels, arrays; /* that it has already, by number */
    MG_VEC(uint64_t) variables;                      /* load and context whose variables it has */
    MG_VEC(struct object_out) objects;
    uint32_t sets_done;
    uint64_t n;       /* launches */
    uint64_t context; /* that it was told last, by its number; 0: none */
};

#define PUT(x, kind, payload_, bytes_, ...)                                                                            \
    mg_cap_put(&(x)->out, &(struct mg_cap_op_in){kind, (const uint64_t[]){__VA_ARGS__},                                \
                                                 sizeof((const uint64_t[]){__VA_ARGS__}) / 8, payload_, bytes_})
#define HAS(list, v) has((list).at, (list).n, v)
static bool has(const uint64_t *list, uint32_t n, uint64_t v)
{
    while (n && list[n - 1] != v) n--;
    return n != 0;
}

/* ---- which --------------------------------------------------------------------------------------------- */

/* N, A-B, A-, joined by commas. */
static bool parse_ranges(struct mg_extract *x, const char *spec)
{
    while (*spec) {
        char part[64];
        size_t n = strcspn(spec, ",");
        struct range g = {0, UINT64_MAX};
        char *dash;
        if (!n || n >= sizeof part) return false;
        memcpy(part, spec, n);
        part[n] = 0;
        if ((dash = strchr(part, '-'))) *dash = 0;
        if (!mg_number_u64(part, false, 0, UINT64_MAX, &g.from) ||
            (dash && dash[1] && !mg_number_u64(dash + 1, false, 0, UINT64_MAX, &g.to)))
            return false;
        if (!dash) g.to = g.from;
        *mg_vec_push(&x->wanted) = g;
        spec += n + (spec[n] == ',');
    }
    return x->wanted.n != 0;
}

/* A launch that is asked for by its number must be there. */
static bool all_there(const struct mg_extract *x, uint64_t n_launches)
{
    for (uint32_t k = 0; k < x->wanted.n; k++)
        if (x->wanted.at[k].from >= n_launches ||
            (x->wanted.at[k].to >= n_launches && x->wanted.at[k].to != UINT64_MAX))
            return false;
    return true;
}

bool mg_extract_wants(const struct mg_replay *r, uint64_t launch)
{
    for (uint32_t k = 0; k < r->extract->wanted.n; k++)
        if (launch >= r->extract->wanted.at[k].from && launch <= r->extract->wanted.at[k].to) return true;
    return false;
}

bool mg_extract_is_over(const struct mg_replay *r)
{
    for (uint32_t k = 0; k < r->extract->wanted.n; k++)
        if (r->extract->wanted.at[k].to >= r->n_launches) return false;
    return true;
}

int mg_extract_open(struct mg_replay *r, const char *path, const char *spec)
{
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_extract *x = calloc(1, sizeof *x);
    if (!x) return mg_replay_fail(r, MG_REPLAY_INPUT, "there is no memory");
    if (!parse_ranges(x, spec))
        return mg_replay_fail(r, MG_REPLAY_USAGE, "--launches wants N, A-B or A-, joined by commas, not '%s'", spec);
    uint64_t n = mg_cap_totals(r->reader)->n_launches;
    if (!all_there(x, n))
        return mg_replay_fail(r, MG_REPLAY_INPUT, "--launches %s: the capture has %llu launches, numbered from 0", spec,
                              (unsigned long long)n);
    if (mg_cap_writer_open(&x->out, path, &d))
        return mg_replay_fail(r, MG_REPLAY_INPUT, "%s", mg_diag_first(&d, MG_ERR_IO));
    r->extract = x;
    return 0;
}

/* ---- where ------------------------------------------------------------------------------------------------ */

static void put_context(struct mg_replay *r, uint32_t context)
{
    const struct mg_context *c = &r->contexts.at[context];
    if (!c->number || r->extract->context == c->number) return;
    r->extract->context = c->number;
    PUT(r->extract, MG_CAP_context, NULL, 0, c->number, c->device);
}

/* ---- what its kernel needs -------------------------------------------------------------------------------- */

static struct shadow *shadow_of(struct mg_extract *x, uint64_t at)
{
    for (uint32_t k = 0; k < x->shadows.n; k++)
        if (x->shadows.at[k].at == at) return &x->shadows.at[k];
    return NULL;
}

static struct shadow *add_shadow(struct mg_extract *x, uint64_t at, uint64_t bytes, bool variable)
{
    static const char zeros[MG_CAP_CHUNK];
    uint64_t n = (bytes + MG_CAP_CHUNK - 1) / MG_CAP_CHUNK, hash[2];
    struct shadow s = {at, bytes, variable, true, calloc(n, sizeof *s.hash)};
    if (!s.hash) return NULL;
    for (uint64_t k = 0; k < n && !variable; k++) { /* fresh memory is zero */
        mg_cap_hash(zeros, MG_MIN(bytes - k * MG_CAP_CHUNK, (uint64_t)MG_CAP_CHUNK), hash);
        s.hash[k] = hash[0];
    }
    *mg_vec_push(&x->shadows) = s;
    return &x->shadows.at[x->shadows.n - 1];
}

static void put_variable(struct mg_replay *r, const struct mg_load *l, const char *name)
{
    cu_ptr at = 0;
    size_t bytes = 0;
    cu_result rc = l->library ? mg_cu.cuLibraryGetGlobal(&at, &bytes, l->handle, name)
                              : mg_cu.cuModuleGetGlobal_v2(&at, &bytes, l->handle, name);
    if (rc != CUE_SUCCESS && l->library) rc = mg_cu.cuLibraryGetManaged(&at, &bytes, l->handle, name);
    if (rc != CUE_SUCCESS || !bytes || shadow_of(r->extract, at)) return; /* one that the linker has dropped */
    PUT(r->extract, MG_CAP_variable, name, strlen(name), l->number, at, bytes);
    add_shadow(r->extract, at, bytes, true);
}

/* All variables of a module: kernels may read what nobody has asked for. */
static void put_variables(struct mg_replay *r, const struct mg_load *l, const struct mg_image_bytes *im)
{
    for (uint32_t part = 0; part < im->unpacked.n; part++) {
        struct mg_image *file = NULL;
        if (mg_image_open_bytes(im->unpacked.parts[part], im->unpacked.sizes[part], NULL, &file, NULL)) continue;
        uint32_t groups = 0;
        for (uint32_t k = 0; k < file->n_entries; k++) groups = MG_MAX(groups, file->entries[k].group + 1);
        for (uint32_t g = 0; g < groups; g++) {
            struct mg_module *m = NULL;
            const struct mg_image_entry *e = mg_image_best_ptx(file, g, (uint32_t)r->run.words[1]);
            if (!e || mg_ptx_parse(e->data, e->bytes, NULL, &m, NULL) || !m) continue;
            for (mg_id v = 1; v < m->vars.n; v++)
                if (!m->vars.at[v].func &&
                    (m->vars.at[v].space == MG_SPACE_global || m->vars.at[v].space == MG_SPACE_const))
                    put_variable(r, l, mg_name(m, m->vars.at[v].name));
            mg_module_free(m);
        }
        mg_image_free(file);
    }
}

static void put_sets(struct mg_replay *r, uint64_t kernel, uint32_t from)
{
    struct mg_extract *x = r->extract;
    for (uint32_t k = from; k < r->sets.n; k++) {
        const struct mg_set *s = &r->sets.at[k];
        if (s->kernel == kernel) put_context(r, s->context);
        if (s->kernel && s->kernel == kernel)
            PUT(x, MG_CAP_attribute, NULL, 0, s->kernel, s->attribute, s->value);
        else if (!s->kernel && !kernel)
            PUT(x, MG_CAP_limit, NULL, 0, s->attribute, s->value);
    }
}

static int put_kernel(struct mg_replay *r, uint64_t number)
{
    struct mg_extract *x = r->extract;
    const struct mg_kernel *k = mg_replay_kernel_of(r, number);
    const struct mg_load *l = mg_replay_load_of(r, k->load);
    const struct mg_image_bytes *im = mg_replay_image_of(r, l->image);
    put_sets(r, 0, x->sets_done);
    for (uint32_t i = 0; i < x->kernels.n; i++) put_sets(r, x->kernels.at[i], x->sets_done);
    x->sets_done = r->sets.n;
    if (!HAS(x->images, l->image)) {
        uint64_t w[] = {l->image, im->bytes};
        mg_cap_put_content(&x->out, &(struct mg_cap_op_in){MG_CAP_image, w, 2, NULL, 0}, im->at, im->bytes);
        *mg_vec_push(&x->images) = l->image;
    }
    put_context(r, r->context);
    if (!HAS(x->loads, l->number)) {
        mg_cap_put(&x->out, &(struct mg_cap_op_in){MG_CAP_load, l->words, l->n_words, NULL, 0});
        *mg_vec_push(&x->loads) = l->number;
    }
    if (!HAS(x->variables, l->number | (uint64_t)r->context << 32)) { /* of a library every context has its own */
        put_variables(r, l, im);
        *mg_vec_push(&x->variables) = l->number | (uint64_t)r->context << 32;
    }
    if (HAS(x->kernels, number)) return 0;
    PUT(x, MG_CAP_kernel, k->name, strlen(k->name), k->number, k->load);
    *mg_vec_push(&x->kernels) = number;
    put_sets(r, number, 0);
    return 0;
}

/* ---- memory ------------------------------------------------------------------------------------------------ */

/* Words that are addresses of variables are written one by one, so that a replay changes them. */
static void put_addresses(struct mg_extract *x, uint64_t at, const char *data, uint64_t bytes)
{
    for (uint64_t k = 0; k + 8 <= bytes; k += 8) {
        uint64_t w;
        memcpy(&w, data + k, 8);
        for (uint32_t i = 0; w >> 32 && i < x->shadows.n; i++)
            if (x->shadows.at[i].variable && w - x->shadows.at[i].at < x->shadows.at[i].bytes)
                mg_cap_put_content(&x->out, &(struct mg_cap_op_in){MG_CAP_write, (uint64_t[]){at + k, 8}, 2, NULL, 0},
                                   data + k, 8);
    }
}

/* What has changed against what the new capture has; writes: goes into it. */
static int refresh(struct mg_replay *r, struct shadow *s, bool writes, bool *changed)
{
    struct mg_extract *x = r->extract;
    char *now = mg_replay_room(r, s->bytes);
    int status = now ? mg_replay_read(r, s->at, now, s->bytes) : r->status;
    for (uint64_t k = 0; !status && k * MG_CAP_CHUNK < s->bytes; k++) {
        uint64_t off = k * MG_CAP_CHUNK, n = MG_MIN(s->bytes - off, (uint64_t)MG_CAP_CHUNK), hash[2],
                 w[] = {s->at + off, n};
        mg_cap_hash(now + off, n, hash);
        if (hash[0] == s->hash[k]) continue;
        s->hash[k] = hash[0];
        *changed = true;
        if (!writes) continue;
        mg_cap_put_content(&x->out, &(struct mg_cap_op_in){MG_CAP_write, w, 2, NULL, 0}, now + off, n);
        put_addresses(x, s->at + off, now + off, n);
    }
    return status;
}

static int put_memory(struct mg_replay *r)
{
    struct mg_extract *x = r->extract;
    int status = 0;
    bool changed;
    for (uint32_t k = 0; k < x->shadows.n; k++) {
        struct shadow *s = &x->shadows.at[k];
        const struct mg_live *l = mg_replay_live_at(r, s->at);
        if (s->variable || (l && l->at == s->at && l->bytes == s->bytes)) continue;
        PUT(x, MG_CAP_free, NULL, 0, s->at);
        free(s->hash);
        *s = x->shadows.at[--x->shadows.n];
        k--;
    }
    for (uint32_t k = 0; k < r->live.n; k++)
        if (!shadow_of(x, r->live.at[k].at)) {
            put_context(r, r->live.at[k].context);
            PUT(x, MG_CAP_alloc, NULL, 0, r->live.at[k].at, r->live.at[k].bytes, MG_CAP_DEVICE);
            if (!add_shadow(x, r->live.at[k].at, r->live.at[k].bytes, false))
                return mg_replay_fail(r, MG_REPLAY_INPUT, "there is no memory");
        }
    for (uint32_t k = 0; k < x->shadows.n && !status; k++) status = refresh(r, &x->shadows.at[k], true, &changed);
    return status;
}

static unsigned element_bytes(const struct cu_array3d_desc *d)
{
    unsigned one = d->format == CUAD_UINT8 || d->format == CUAD_SINT8                               ? 1
                   : d->format == CUAD_UINT16 || d->format == CUAD_SINT16 || d->format == CUAD_HALF ? 2
                                                                                                    : 4;
    return one * d->channels;
}

static int put_array(struct mg_replay *r, const struct mg_array *a)
{
    struct mg_extract *x = r->extract;
    const struct cu_array3d_desc *d = &a->desc;
    uint64_t width = d->width * element_bytes(d), height = MG_MAX(d->height, 1u), depth = MG_MAX(d->depth, 1u),
             bytes = width * height * depth;
    if (a->mipmap || a->level)
        return mg_replay_fail(r, MG_REPLAY_INPUT,
                              "launch %llu cannot be taken out: there is a mipmap, whose content cannot be read",
                              (unsigned long long)r->n_launches);
    put_context(r, a->context);
    if (!HAS(x->arrays, a->number)) {
        PUT(x, MG_CAP_array, NULL, 0, a->number, d->width, d->height, d->depth, (uint64_t)d->format, d->channels,
            d->flags, 0);
        *mg_vec_push(&x->arrays) = a->number;
    }
    char *room = mg_replay_room(r, bytes);
    if (!room) return r->status;
    struct cu_memcpy3d c = {.src_type = CUMEM_ARRAY,
                            .src_array = a->handle,
                            .dst_type = CUMEM_HOST,
                            .dst_host = room,
                            .dst_pitch = width,
                            .dst_height = height,
                            .width = width,
                            .height = height,
                            .depth = depth};
    uint32_t now = r->context;
    int status = mg_replay_go(r, a->context);
    if (!status) status = mg_replay_call(r, mg_cu.cuMemcpy3D_v2(&c), "reading an array");
    if (!status) status = mg_replay_go(r, now);
    uint64_t w[23] = {
        MG_CAP_FROM_HOST, 0,     0,     0, 0, 0, width, height, MG_CAP_IN_ARRAY, a->number, 0, 0, 0, 0, 0, 0, width,
        height,           depth, bytes, 0};
    if (!status)
        mg_cap_put_content(&x->out, &(struct mg_cap_op_in){MG_CAP_copy3d, w, MG_COUNT_OF(w), NULL, 0}, room, bytes);
    return status;
}

/* Memory that a texture was made over and that was freed since: no launch may read it, but the texture has its handle.
 * It is there while the texture is made, as far as other memory does not lie there now. */
static void put_gone(struct mg_replay *r, const struct mg_object *o, bool there)
{
    for (uint64_t at = o->at, end = o->at + o->bytes, to; at < end; at = to) {
        const struct mg_live *l = mg_replay_live_at(r, at);
        to = l ? l->at + l->bytes : end;
        for (uint32_t k = 0; k < r->live.n && !l; k++)
            if (r->live.at[k].at > at) to = MG_MIN(to, r->live.at[k].at);
        if (l) continue;
        if (there)
            PUT(r->extract, MG_CAP_alloc, NULL, 0, at, to - at, MG_CAP_DEVICE);
        else
            PUT(r->extract, MG_CAP_free, NULL, 0, at);
    }
}

static const struct mg_object *object_of(const struct mg_replay *r, uint64_t serial)
{
    for (uint32_t k = 0; k < r->objects.n; k++)
        if (r->objects.at[k].serial == serial) return &r->objects.at[k];
    return NULL;
}

static int put_objects(struct mg_replay *r)
{
    struct mg_extract *x = r->extract;
    int status = 0;
    for (uint32_t k = 0; k < r->arrays.n && !status; k++) status = put_array(r, &r->arrays.at[k]);
    for (uint32_t k = 0; k < x->objects.n; k++) {
        struct object_out *o = &x->objects.at[k];
        if (object_of(r, o->serial)) continue;
        PUT(x, MG_CAP_object_free, NULL, 0, o->handle, o->surface);
        *o = x->objects.at[--x->objects.n];
        k--;
    }
    for (uint32_t k = 0; k < r->objects.n && !status; k++) {
        const struct mg_object *o = &r->objects.at[k];
        uint32_t i = 0;
        while (i < x->objects.n && x->objects.at[i].serial != o->serial) i++;
        if (i < x->objects.n) continue;
        put_context(r, o->context);
        put_gone(r, o, true);
        mg_cap_put(&x->out, &(struct mg_cap_op_in){MG_CAP_object, o->op, 10, o->payload, o->payload_bytes});
        put_gone(r, o, false);
        *mg_vec_push(&x->objects) = (struct object_out){o->serial, o->handle, o->surface};
    }
    return status;
}

/* ---- the launch ---------------------------------------------------------------------------------------------- */

int mg_extract_before(struct mg_replay *r, const struct mg_cap_op *op)
{
    struct mg_extract *x = r->extract;
    uint64_t w[MG_CAP_L_COUNT], args[4096];
    int status = mg_replay_settle(r);
    if (!x->n) mg_cap_put(&x->out, &(struct mg_cap_op_in){MG_CAP_run, r->run.words, 3, r->run.line, r->run.bytes});
    if (!status) status = put_kernel(r, op->words[MG_CAP_L_KERNEL]);
    if (!status) status = put_memory(r);
    if (!status) status = put_objects(r);
    if (status || op->payload_bytes > sizeof args)
        return mg_replay_fail(r, MG_REPLAY_INPUT, "launch %llu has too many arguments",
                              (unsigned long long)r->n_launches);
    memcpy(w, op->words, sizeof w);
    memcpy(args, op->payload, op->payload_bytes);
    mg_replay_translate(r, args, op->payload_bytes, false);
    w[MG_CAP_L_NUMBER] = x->n++;
    w[MG_CAP_L_GRAPH] = 0;
    put_context(r, r->context);
    PUT(x, MG_CAP_origin, NULL, 0, w[MG_CAP_L_NUMBER], r->n_launches);
    mg_cap_put(&x->out, &(struct mg_cap_op_in){MG_CAP_launch, w, MG_CAP_L_COUNT, args, op->payload_bytes});
    return 0;
}

int mg_extract_after(struct mg_replay *r, const struct mg_cap_op *op)
{
    struct mg_extract *x = r->extract;
    int status = mg_replay_settle(r);
    for (uint32_t k = 0; k < x->shadows.n && !status; k++) {
        struct shadow *s = &x->shadows.at[k];
        bool changed = false;
        uint64_t hash[2], arg;
        status = refresh(r, s, false, &changed);
        for (size_t i = 0; i + 8 <= op->payload_bytes && !changed; i += 8) {
            memcpy(&arg, op->payload + i, 8);
            changed = arg - s->at < s->bytes;
        }
        if (status || !changed || (s->variable && mg_cap_has_addresses(r->room, s->bytes))) continue;
        mg_cap_hash(r->room, s->bytes, hash); /* refresh has read it there */
        PUT(x, MG_CAP_check, NULL, 0, x->n, s->at, s->bytes, hash[0], hash[1]);
    }
    return status;
}

int mg_extract_close(struct mg_replay *r)
{
    struct mg_extract *x = r->extract;
    uint64_t n = x->n;
    for (uint32_t k = 0; k < x->shadows.n; k++) free(x->shadows.at[k].hash);
    bool ok = mg_cap_writer_close(&x->out);
    mg_vec_release(&x->shadows);
    free(x);
    r->extract = NULL;
    if (!ok) return mg_replay_fail(r, MG_REPLAY_INPUT, "the new capture cannot be written");
    return n ? 0
             : mg_replay_fail(r, MG_REPLAY_INPUT, "--launches selects none of the %llu launches",
                              (unsigned long long)r->n_launches);
}
