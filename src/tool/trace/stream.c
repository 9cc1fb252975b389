/* trace: what arrives. Workers read segments of channels, code their accesses anew (trace/access_code.h) and put them
 * into the trace of the process: one record for what came together of one launch and one multiprocessor. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/json.h"
#include "base/search.h"
#include "patch/layout.h"
#include "tool/host.h"
#include "tool/trace/trace.h"
#include "trace/access_code.h"
#include "trace/writer.h"

enum { PACK_ROOM = 128 << 10 };
enum { KIND_SITE, KIND_PACK, KIND_LEFT };

struct mg_trace_place { /* the sites of a kernel's twin, as the trace numbers them */
    struct mg_trace_place *next;
    const struct mg_layout_site *sites;
    uint32_t n_sites;
    uint32_t number;
    uint32_t *counts; /* by site: of a block its instructions; NULL: no blocks are recorded */
};
struct mg_trace_part { /* of a worker */
    struct mg_trace_stream *stream;
    const struct mg_stream_launch *launch;
    uint32_t number; /* the last one that was met */
    const struct mg_trace_place *place;
    bool begun;        /* a pack is, of that launch */
    uint64_t in_loops; /* accesses of the pack that stand in loops */
    uint32_t sm;
    struct mg_pack_record head;
    struct mg_trace_sums sums;                            /* of the pack */
    struct mg_packed_access round[MG_CHANNEL_MOST_GROUP]; /* the first one of the loop that comes */
    int64_t strides[MG_CHANNEL_MOST_GROUP];
    struct mg_packer packer;
    uint8_t data[PACK_ROOM];
};

/* ---- once a process, a kernel, a worker ------------------------------------------------------------------ */

static bool add_kinds(struct mg_trace_conf *c, struct mg_trace_writer *w)
{
    static const struct mg_trace_kind *const kinds[] = {&mg_site_record_kind, &mg_pack_record_kind,
                                                        &mg_left_record_kind};
    for (int i = 0; i < 3; i++) c->step_kinds[i] = mg_trace_kind_add(w, kinds[i]);
    return c->step_kinds[KIND_SITE] && c->step_kinds[KIND_PACK];
}

static bool wants_all(const struct mg_trace_limits *o)
{
    return !o->cta_first && o->cta_last == UINT64_MAX && !o->line_last && o->buffer == UINT64_MAX && o->one_of == 1;
}

static void tell_left(struct mg_trace_conf *c, struct mg_trace_writer *w, struct mg_trace_stream *s)
{
    const struct mg_trace_limits *o = &c->limits;
    if (wants_all(o) || c->left_told) return;
    struct mg_left_record r = {.time = mg_now_ns(), .why = mg_trace_name(w, o->one_of > 1 ? "sample" : "selection")};
    c->left_told = mg_trace_put(s, c->step_kinds[KIND_LEFT], &r, sizeof r, NULL, 0);
}

static struct mg_trace_part *find_part(struct mg_trace_conf *c, uint32_t worker)
{
    struct mg_trace_part *p = c->parts[worker];
    if (p) return p;
    struct mg_trace_writer *w = c->host->trace();
    pthread_mutex_lock(&c->lock);
    p = w && add_kinds(c, w) ? calloc(1, sizeof *p) : NULL;
    if (p && (p->stream = mg_trace_stream_open(w, "accesses"))) {
        mg_trace_stream_policy(p->stream, MG_TRACE_BLOCK); /* what the kernel does then, its channel's policy says */
        tell_left(c, w, p->stream);
    }
    if (p && !p->stream) {
        free(p);
        p = NULL;
    }
    c->parts[worker] = p;
    pthread_mutex_unlock(&c->lock);
    return p;
}

static enum mg_access_kind kind_of(const struct mg_layout_site *s)
{
    return (enum mg_access_kind)(s->note & MG_TRACE_NOTE_KIND);
}

/* Instructions of each block: those behind its first that are listed with the same block. */
static uint32_t *count_instructions(const struct mg_stream_launch *l)
{
    uint32_t *counts = calloc(l->n_sites + 1, sizeof *counts), *of_block, most = 0;
    for (uint32_t i = 0; i < l->n_sites; i++) most = MG_MAX(most, l->sites[i].block);
    of_block = calloc((size_t)most + 1, sizeof *of_block);
    for (uint32_t i = 0; of_block && i < l->n_sites; i++)
        of_block[l->sites[i].block] += kind_of(&l->sites[i]) == MG_ACCESS_INSTRUCTION;
    for (uint32_t i = 0; counts && of_block && i < l->n_sites; i++)
        if (kind_of(&l->sites[i]) == MG_ACCESS_BLOCK) counts[i] = of_block[l->sites[i].block];
    free(of_block);
    return counts;
}

static void put_sites(struct mg_trace_conf *c, struct mg_trace_part *p, const struct mg_stream_launch *l,
                      const struct mg_trace_place *place)
{
    struct mg_trace_writer *w = c->host->trace();
    uint32_t kernel = mg_trace_name(w, l->kernel);
    for (uint32_t i = 0; i < l->n_sites; i++) {
        const struct mg_layout_site *s = &l->sites[i];
        struct mg_site_record r = {.time = mg_now_ns(),
                                   .sites = place->number,
                                   .number = i,
                                   .instruction = s->note >> MG_TRACE_NOTE_SHIFT,
                                   .bytes = s->note & MG_TRACE_NOTE_BULK ? MG_TRACE_BULK_BYTES
                                            : i < l->n_widths            ? l->widths[i]
                                                                         : 0,
                                   .kernel = kernel,
                                   .function = mg_trace_name(w, s->function),
                                   .op = mg_trace_name(w, s->op),
                                   .file = mg_trace_name(w, s->file),
                                   .line = s->file ? s->line : 0,
                                   .ptx_line = s->ptx_line,
                                   .kind = (uint8_t)kind_of(s),
                                   .count = place->counts ? place->counts[i] : 0};
        mg_trace_put(p->stream, c->step_kinds[KIND_SITE], &r, sizeof r, NULL, 0);
    }
}

/* The number of the sites of a launch's kernel, told to the trace when they are met first; NULL: no memory. */
static const struct mg_trace_place *find_place(struct mg_trace_conf *c, struct mg_trace_part *p,
                                               const struct mg_stream_launch *l)
{
    pthread_mutex_lock(&c->lock);
    struct mg_trace_place *place = c->places;
    while (place && place->sites != l->sites) place = place->next;
    if (!place && (place = calloc(1, sizeof *place))) {
        *place = (struct mg_trace_place){c->places, l->sites, l->n_sites, ++c->n_places,
                                         c->limits.instructions ? count_instructions(l) : NULL};
        c->places = place;
        put_sites(c, p, l, place);
    }
    pthread_mutex_unlock(&c->lock);
    return place;
}

/* ---- sums of launches ------------------------------------------------------------------------------------- */

/* Under the lock. */
static struct mg_trace_sums *sums_of(struct mg_trace_conf *c, uint64_t launch)
{
    uint32_t k;
    MG_FIND_FIRST(k, c->launches.n, c->launches.at[k].launch < launch);
    if (k < c->launches.n && c->launches.at[k].launch == launch) return &c->launches.at[k];
    mg_vec_push(&c->launches);
    memmove(c->launches.at + k + 1, c->launches.at + k, (c->launches.n - 1 - k) * sizeof *c->launches.at);
    c->launches.at[k] = (struct mg_trace_sums){.launch = launch};
    return &c->launches.at[k];
}

void mg_trace_finalize(struct mg_trace_conf *c, uint64_t launch, uint64_t replays, bool complete, const uint64_t *cells,
                       uint32_t n)
{
    const uint32_t each = c->limits.sum ? MG_TRACE_N_CELLS : 1;
    pthread_mutex_lock(&c->lock);
    struct mg_trace_sums *s = sums_of(c, launch);
    s->replays += replays;
    s->incomplete += complete ? 0 : replays;
    for (uint32_t i = 0; i < n; i++) *(i % each == MG_TRACE_CELL_SUM ? &s->counted_sum : &s->lanes) += cells[i];
    pthread_mutex_unlock(&c->lock);
}

static void end_pack(struct mg_trace_conf *c, struct mg_trace_part *p)
{
    if (!p->begun) return;
    p->begun = false;
    bool put = mg_trace_put(p->stream, c->step_kinds[KIND_PACK], &p->head, sizeof p->head, p->data, p->packer.n);
    pthread_mutex_lock(&c->lock);
    if (put) {
        struct mg_trace_sums *s = sums_of(c, p->head.launch);
        s->records += p->sums.records;
        s->received_lanes += p->sums.received_lanes;
        s->barriers += p->sums.barriers;
        s->unseen += p->sums.unseen;
        s->blocks += p->sums.blocks;
        s->instructions += p->sums.instructions;
        s->in_loops += p->in_loops;
        s->address_sum += p->sums.address_sum;
        s->bytes += 4 + sizeof p->head + p->packer.n;
    } else {
        __atomic_fetch_add(&c->missed, p->head.accesses, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&c->lock);
}

/* ---- records ------------------------------------------------------------------------------------------------ */

struct reading {
    struct mg_trace_conf *c;
    struct mg_trace_part *p;
    const struct mg_stream *s;
};

static bool begin_pack(struct reading *x, const struct mg_record *r)
{
    struct mg_trace_part *p = x->p;
    if (!p->launch || p->number != r->launch) {
        p->launch = x->s->launch(x->s, p->number = r->launch);
        p->place = p->launch ? find_place(x->c, p, p->launch) : NULL;
    }
    if (!p->place) return false;
    p->begun = true;
    p->in_loops = 0;
    p->sums = (struct mg_trace_sums){0};
    p->head = (struct mg_pack_record){.launch = p->launch->id,
                                      .replay = p->launch->replay,
                                      .cta_first = UINT64_MAX,
                                      .sites = p->place->number,
                                      .sm = x->s->sm};
    mg_packer_init(&p->packer, p->data, sizeof p->data);
    return true;
}

static bool is_adjacent(uint32_t mask)
{
    uint32_t row = mask >> __builtin_ctz(mask);
    return !(row & (row + 1));
}

/* Adds a record to the pack; *sum: of its addresses. */
static bool add(struct mg_packer *p, const struct mg_record *r, uint64_t *sum)
{
    struct mg_packed_access a = {
        .cta = r->cta, .warp = r->warp, .number = r->number, .site = r->site, .bytes = r->width, .mask = r->mask};
    bool run = r->kind == MG_RECORD_FULL || r->kind == MG_RECORD_UNIT;
    if (!mg_record_is_access(r->kind)) {
        a.bytes = 0;
        return mg_packer_add(p, &a);
    }
    if ((run || r->kind == MG_RECORD_SAME) && is_adjacent(r->mask)) {
        uint64_t n = r->n_lanes;
        *sum = r->first * n + (run ? r->width * (n * (n - 1) / 2) : 0);
        a.address[__builtin_ctz(r->mask)] = r->first;
        return mg_packer_add_run(p, &a, run ? (int32_t)r->width : 0);
    }
    mg_record_addresses(r, a.address);
    for (uint32_t m = r->mask; m; m &= m - 1) *sum += a.address[__builtin_ctz(m)];
    return mg_packer_add(p, &a);
}

static void count(struct mg_trace_part *p, const struct mg_record *r, uint64_t accesses, uint64_t lanes, uint64_t sum)
{
    p->head.cta_first = MG_MIN(p->head.cta_first, r->cta);
    p->head.cta_last = MG_MAX(p->head.cta_last, r->cta);
    p->head.accesses += (uint32_t)accesses;
    p->head.lanes += (uint32_t)lanes;
    p->sums.records += accesses;
    p->sums.received_lanes += lanes;
    p->sums.address_sum += sum;
}

static bool make_room(struct reading *x, const struct mg_record *r, uint32_t bytes);

/* A bulk copy of one lane: its pieces of 16 bytes, 32 at a time as the lanes of a warp, all with the copy's number. */
static void keep_bulk(struct reading *x, const struct mg_record *r, uint64_t address, uint64_t bytes)
{
    struct mg_packed_access a = {
        .cta = r->cta, .warp = r->warp, .number = r->number, .site = r->site, .bytes = MG_TRACE_BULK_BYTES};
    for (uint64_t left = bytes / MG_TRACE_BULK_BYTES, n; left && make_room(x, r, MG_PACK_MOST_ITEM);
         left -= n, address += n * MG_TRACE_BULK_BYTES) {
        n = MG_MIN(left, (uint64_t)32);
        a.mask = n == 32 ? UINT32_MAX : (1u << n) - 1;
        a.address[0] = address;
        if (!mg_packer_add_run(&x->p->packer, &a, MG_TRACE_BULK_BYTES)) return; /* there is room */
        count(x->p, r, 1, n, n * address + MG_TRACE_BULK_BYTES / 2 * n * (n - 1));
    }
}

/* What has no address, so often. */
static void count_once(struct mg_trace_part *p, const struct mg_record *r, uint64_t times)
{
    const struct mg_trace_place *place = p->place;
    count(p, r, 0, 0, 0);
    p->head.accesses += (uint32_t)times;
    if (r->site >= place->n_sites) return;
    switch (kind_of(&place->sites[r->site])) {
    case MG_ACCESS_BLOCK:
        p->sums.blocks += times;
        if (place->counts) p->sums.instructions += times * r->n_lanes * place->counts[r->site];
        break;
    case MG_ACCESS_UNSEEN:
        p->sums.unseen += times * r->n_lanes;
        break;
    default:
        p->sums.barriers += times;
    }
}

/* The loop whose first round is kept: in pieces, where it has more rounds than one item holds. */
static void put_loop(struct reading *x, const struct mg_record *r)
{
    struct mg_trace_part *p = x->p;
    const uint32_t n = r->items, most = MG_PACK_MOST_ROUNDS / n;
    for (uint32_t left = r->rounds, rounds; left; left -= rounds) {
        rounds = MG_MIN(left, most);
        if (!make_room(x, r, MG_PACK_LOOP_ROOM)) return;
        mg_packer_begin_loop(&p->packer, &p->round[0], n, rounds); /* there is room */
        for (uint32_t i = 0; i < n; i++) {
            struct mg_packed_access *a = &p->round[i];
            const struct mg_record one = {.cta = r->cta, .site = a->site, .n_lanes = r->n_lanes};
            const uint64_t stride = (uint64_t)p->strides[i], lanes = (uint64_t)rounds * r->n_lanes;
            uint64_t sum = 0;
            mg_packer_add_to_loop(&p->packer, a, p->strides[i]);
            for (uint32_t m = a->mask; a->bytes && m; m &= m - 1) {
                sum += a->address[__builtin_ctz(m)] * rounds;
                a->address[__builtin_ctz(m)] += stride * rounds;
            }
            a->number += n * rounds;
            if (a->bytes)
                count(p, r, rounds, lanes, sum + stride * r->n_lanes * ((uint64_t)rounds * (rounds - 1) / 2));
            else
                count_once(p, &one, rounds);
        }
        p->in_loops += (uint64_t)n * rounds;
    }
}

static void keep_round(struct reading *x, const struct mg_record *r)
{
    struct mg_packed_access *a = &x->p->round[r->item];
    const bool access = mg_record_is_access(r->kind);
    *a = (struct mg_packed_access){.cta = r->cta,
                                   .warp = r->warp,
                                   .number = r->number,
                                   .site = r->site,
                                   .bytes = access ? r->width : 0,
                                   .mask = r->mask};
    if (access) mg_record_addresses(r, a->address);
    x->p->strides[r->item] = r->stride;
    if (r->item + 1 == r->items) put_loop(x, r);
}

static void keep(void *user, const struct mg_record *r)
{
    struct reading *x = user;
    struct mg_trace_part *p = x->p;
    uint64_t sum = 0;
    if (!r->n_lanes) return;
    if (r->kind == MG_RECORD_LANES) {
        for (uint32_t i = 0; r->n_words == 2 && i < r->n_lanes; i++)
            keep_bulk(x, r, r->words[2 * i], r->words[2 * i + 1]);
        return;
    }
    if (r->rounds > 1) {
        keep_round(x, r);
        return;
    }
    if (!make_room(x, r, MG_PACK_MOST_ITEM) || !add(&p->packer, r, &sum)) return;
    if (mg_record_is_access(r->kind))
        count(p, r, 1, r->n_lanes, sum);
    else
        count_once(p, r, 1);
}

/* A pack of the record's launch with room for so many bytes more, or for a loop; false: its kernel is not known. */
static bool make_room(struct reading *x, const struct mg_record *r, uint32_t bytes)
{
    struct mg_trace_part *p = x->p;
    if (p->begun && (p->number != r->launch || p->sm != x->s->sm || p->packer.room - p->packer.n < bytes ||
                     p->in_loops + MG_PACK_MOST_ROUNDS > MG_PACK_MOST_LOOPS))
        end_pack(x->c, p);
    if (!p->begun && !begin_pack(x, r)) {
        __atomic_fetch_add(&x->c->missed, r->rounds > 1 ? (uint64_t)r->rounds * r->items : 1, __ATOMIC_RELAXED);
        return false;
    }
    p->sm = x->s->sm;
    return true;
}

void mg_trace_stream(void *conf, const struct mg_stream *s, const uint64_t *segment, uint32_t bytes)
{
    struct reading x = {.c = conf, .s = s, .p = s->worker < MG_STREAM_MOST_WORKERS ? find_part(conf, s->worker) : NULL};
    if (!x.p) return;
    mg_stream_read(s, segment, bytes, keep, &x);
    end_pack(x.c, x.p);
}

/* ---- ends ---------------------------------------------------------------------------------------------------- */

/* Else a fault ended it, or nobody knows how often its node ran. */
static bool is_complete(const struct mg_trace_sums *s)
{
    return s->replays && !s->incomplete;
}

static void write_launches(const struct mg_trace_conf *c, struct mg_json *j)
{
    mg_json_arr(j);
    for (uint32_t i = 0; i < c->launches.n; i++) {
        const struct mg_trace_sums *s = &c->launches.at[i];
        mg_json_obj(j);
        mg_json_key_u64(j, "launch", s->launch);
        mg_json_key_u64(j, "runs", s->replays);
        mg_json_key_u64(j, "records", s->records);
        mg_json_key_bool(j, "complete", is_complete(s));
        mg_json_key_u64_if(j, "lanes", is_complete(s), s->lanes);
        mg_json_key_u64(j, "received_lanes", s->received_lanes);
        mg_json_key_u64(j, "barriers", s->barriers);
        mg_json_key_u64(j, "unseen", s->unseen);
        mg_json_key_u64_if(j, "blocks", c->limits.instructions, s->blocks);
        mg_json_key_u64_if(j, "instructions", c->limits.instructions, s->instructions);
        mg_json_key_u64(j, "in_loops", s->in_loops);
        mg_json_key_u64(j, "bytes", s->bytes);
        mg_json_key_u64(j, "address_sum", s->address_sum);
        mg_json_key_u64_if(j, "counted_sum", c->limits.sum && is_complete(s), s->counted_sum);
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
}

/* What the sample says of all lanes, beside what was counted: how far it may be trusted. */
static void tell_sample(const struct mg_trace_conf *c, uint64_t lanes, uint64_t received)
{
    struct mg_buf b = MG_BUF_INIT;
    struct mg_json j;
    const double estimate = (double)received * c->limits.one_of;
    mg_json_init(&j, &b, 0);
    mg_json_obj(&j);
    mg_json_key_u64(&j, "one_of", c->limits.one_of);
    mg_json_key_bool(&j, "estimate", true);
    mg_json_key(&j, "estimated_lanes");
    mg_json_f64(&j, estimate);
    mg_json_key(&j, "error_pct");
    if (lanes)
        mg_json_f64(&j, 100 * (estimate - (double)lanes) / (double)lanes);
    else
        mg_json_null(&j);
    mg_json_end(&j, '}');
    c->host->result("trace", "sample", b.at);
    mg_buf_release(&b);
}

/* That accesses are not there, unless the selection has said so: for those who read the file alone. */
static void tell_missing(struct mg_trace_conf *c, const char *why)
{
    struct mg_trace_part *p = c->left_told ? NULL : find_part(c, 0);
    if (!p || c->left_told) return;
    struct mg_left_record r = {.time = mg_now_ns(), .why = mg_trace_name(c->host->trace(), why)};
    c->left_told = mg_trace_put(p->stream, c->step_kinds[KIND_LEFT], &r, sizeof r, NULL, 0);
}

void mg_trace_end_stream(struct mg_trace_conf *c)
{
    struct mg_buf b = MG_BUF_INIT;
    struct mg_json j;
    char text[40];
    uint64_t lanes = 0, received = 0;
    bool faults = false, uncounted = false;
    pthread_mutex_lock(&c->lock);
    for (uint32_t i = 0; i < c->launches.n; i++) {
        faults |= c->launches.at[i].incomplete > 0;
        uncounted |= !c->launches.at[i].replays;
        if (!is_complete(&c->launches.at[i])) continue;
        lanes += c->launches.at[i].lanes;
        received += c->launches.at[i].received_lanes;
    }
    mg_json_init(&j, &b, 0);
    write_launches(c, &j);
    c->host->result("trace", "launches", b.at);
    snprintf(text, sizeof text, "%llu", (unsigned long long)(lanes - received));
    c->host->result("trace", "dropped", text);
    if (c->limits.one_of > 1) tell_sample(c, lanes, received);
    snprintf(text, sizeof text, "%llu", (unsigned long long)c->missed);
    c->host->result("trace", "missed", text);
    mg_buf_release(&b);
    pthread_mutex_unlock(&c->lock);
    if (!wants_all(&c->limits)) find_part(c, 0); /* says so, also where nothing was selected */
    if (lanes != received || c->missed || faults || uncounted)
        tell_missing(c, faults ? "fault" : uncounted ? "uncounted" : "dropped");
}

void mg_trace_free_stream(struct mg_trace_conf *c)
{
    for (unsigned i = 0; i < MG_COUNT_OF(c->parts); i++) free(c->parts[i]);
    for (struct mg_trace_place *p = c->places, *next; p; p = next) {
        next = p->next;
        free(p->counts);
        free(p);
    }
    mg_vec_release(&c->launches);
}
