/* Reading accesses: see access.h. Steps and sites are read once, from the chunks that have a time. Accesses of a
 * launch
 * are found by the index: launches that share chunks are read together and kept, a large one is read each time.
 *
 *   mg_accesses_open   steps, sites
 *   mg_accesses_begin  the launch's packs: in memory (batch), or a cursor (stream)
 *   mg_accesses_next   the next access of the pack that is open, or the next pack */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "base/map.h"
#include "base/search.h"
#include "trace/access_code.h"
#include "trace/access_records.h"
#include "trace/load.h"

enum { BATCH_PACKED = 8 << 20 /* bytes of chunks as stored */, BATCH_MOST = 256 << 20 /* bytes of packs */ };
#define MOST_SITES_BYTES  4096u
#define MOST_INSTRUCTIONS (1u << 24)

struct sites {
    uint32_t id, n, n_list;
    struct mg_access_site *at; /* by number in packs */
    uint32_t *bytes;
    struct mg_access_site *list; /* instructions of blocks, by their number */
    bool linked;                 /* blocks have theirs */
};
struct mark { /* of a file that grows: chunks before this one are of steps up to `begun` alone */
    uint64_t number, begun;
};
struct pack {
    uint64_t launch, replay, at;
    uint32_t sites, sm, bytes, order;
};
struct mg_accesses {
    struct mg_trace_reader *r;
    struct mg_trace_loaded *file;
    struct mg_intern texts;
    MG_VEC(struct mg_trace_step) steps;
    MG_VEC(struct sites) sites;
    struct mg_map live; /* allocations to their sizes */
    bool left;          /* something was left out on purpose */
    /* a file that grows */
    uint64_t whole, given; /* steps up to this order are there; and were given */
    uint64_t n_given;      /* of those in the list */
    uint64_t read;         /* chunks whose steps and sites were */
    MG_VEC(struct mark) marks;
    uint64_t marked; /* number of the chunk behind the last mark's; 0: there was none */
    /* launches first to last are kept, of steps up to kept_whole; tried, and not kept: the first is too large */
    uint64_t first, last, kept_whole;
    bool tried, kept;
    MG_VEC(struct pack) packs; /* by launch and replay */
    uint8_t *data;
    size_t n_data, room;
    /* the launch that is read */
    bool one; /* a record alone is read, not a launch */
    const struct mg_trace_step *launch;
    uint64_t number, replay;        /* of the pack's launch */
    uint32_t next, end;             /* its packs */
    struct mg_trace_cursor *cursor; /* or where they come from; NULL: they are kept */
    struct mg_unpacker unpacker;
    const struct sites *of; /* the pack's */
    uint32_t sm;
    struct mg_packed_access packed;
    struct mg_trace_access access;
    uint64_t damaged;
    char why[512];
};

static bool is_ours(void *user, const struct mg_trace_file *f)
{
    return f == &((const struct mg_accesses *)user)->file->file;
}

static void note_damage(struct mg_accesses *a, uint64_t n, const char *why)
{
    if (n && !a->damaged) snprintf(a->why, sizeof a->why, "%s", why);
    a->damaged += n;
}

static void close_cursor(struct mg_accesses *a, struct mg_trace_cursor *c)
{
    const char *why;
    if (!c) return;
    uint64_t n = mg_trace_damaged(c, &why);
    note_damage(a, n, why);
    mg_trace_cursor_close(c);
}

/* ---- steps and sites ----------------------------------------------------------------------------------- */

static const char *text_of(struct mg_accesses *a, const struct mg_trace_record *r, const char *field)
{
    uint32_t ix = mg_trace_field_ix(r->kind, field), bytes = 0;
    const char *text = ix == UINT32_MAX ? NULL : mg_trace_text(r, ix, &bytes);
    return mg_intern_text(&a->texts, mg_intern_add(&a->texts, text ? text : "", text ? bytes : 0));
}

static uint64_t number_of(const struct mg_trace_record *r, const char *field)
{
    return mg_trace_u64(r, mg_trace_field_ix(r->kind, field));
}

static void add_step(struct mg_accesses *a, const struct mg_trace_record *r)
{
    static const char axes[] = "xyz";
    struct mg_trace_step s = {
        .kind = (enum mg_step_kind)number_of(r, "kind"),
        .flags = (unsigned)number_of(r, "flags"),
        .order = number_of(r, "order"),
        .time_ns = r->time,
        .device = (uint32_t)number_of(r, "device"),
        .thread = (uint32_t)number_of(r, "thread"),
        .context = number_of(r, "context"),
        .stream = number_of(r, "stream"),
        .name = text_of(a, r, "name"),
        .launch = number_of(r, "launch"),
        .replay = number_of(r, "replay"),
        .shared_bytes = (uint32_t)number_of(r, "shared"),
        .graph = number_of(r, "graph"),
        .dst = number_of(r, "dst"),
        .src = number_of(r, "src"),
        .bytes = number_of(r, "bytes"),
        .width = number_of(r, "width"),
        .height = number_of(r, "height"),
        .depth = number_of(r, "depth"),
        .dst_pitch = number_of(r, "dst_pitch"),
        .src_pitch = number_of(r, "src_pitch"),
        .dst_slice = number_of(r, "dst_slice"),
        .src_slice = number_of(r, "src_slice"),
    };
    for (int i = 0; i < 3; i++) {
        char grid[] = "grid_?", block[] = "block_?", cluster[] = "cluster_?";
        grid[5] = block[6] = cluster[8] = axes[i];
        s.grid[i] = (uint32_t)number_of(r, grid);
        s.block[i] = (uint32_t)number_of(r, block);
        s.cluster[i] = (uint32_t)number_of(r, cluster);
    }
    if ((unsigned)s.kind < MG_STEP_KIND_COUNT)
        *mg_vec_push(&a->steps) = s;
    else
        note_damage(a, 1, "a step of an unknown kind");
}

static struct sites *find_sites(struct mg_accesses *a, uint32_t id)
{
    uint32_t k;
    MG_FIND_FIRST(k, a->sites.n, a->sites.at[k].id < id);
    return k < a->sites.n && a->sites.at[k].id == id ? &a->sites.at[k] : NULL;
}

static struct sites *get_sites(struct mg_accesses *a, uint32_t id)
{
    struct sites *found = find_sites(a, id);
    uint32_t at = a->sites.n;
    if (found) return found;
    mg_vec_push(&a->sites);
    for (; at && a->sites.at[at - 1].id > id; at--) a->sites.at[at] = a->sites.at[at - 1];
    a->sites.at[at] = (struct sites){.id = id};
    return &a->sites.at[at];
}

/* A list of sites with room for number; *n: of them. */
static struct mg_access_site *grow(struct mg_access_site *list, uint32_t *n, uint64_t number)
{
    if (number < *n) return list;
    list = mg_xrealloc(list, (number + 1) * sizeof *list);
    for (; *n <= number; ++*n) list[*n] = (struct mg_access_site){.kernel = "", .function = "", .op = "", .file = ""};
    return list;
}

static void add_site(struct mg_accesses *a, const struct mg_trace_record *r)
{
    struct sites *s = get_sites(a, (uint32_t)number_of(r, "sites"));
    unsigned kind = (unsigned)number_of(r, "kind");
    const bool listed = kind == MG_ACCESS_INSTRUCTION;
    uint64_t number = number_of(r, listed ? "instruction" : "number"), bytes = number_of(r, "bytes");
    if (number > (listed ? MOST_INSTRUCTIONS : MG_PACK_MOST_SITES) || bytes > MOST_SITES_BYTES ||
        kind >= MG_ACCESS_KIND_COUNT || (kind > MG_ACCESS_ATOMIC && bytes)) {
        note_damage(a, 1, "an instruction that is none");
        return;
    }
    if (listed) {
        s->list = grow(s->list, &s->n_list, number);
    } else {
        uint32_t n = s->n;
        s->at = grow(s->at, &s->n, number);
        if (n < s->n) s->bytes = mg_xrealloc(s->bytes, s->n * sizeof *s->bytes);
        for (; n < s->n; n++) s->bytes[n] = 0;
        s->bytes[number] = (uint32_t)bytes;
    }
    (listed ? s->list : s->at)[number] = (struct mg_access_site){.kind = (enum mg_access_kind)kind,
                                                                 .number = (uint32_t)number_of(r, "instruction"),
                                                                 .bytes = (uint32_t)bytes,
                                                                 .n_instructions = (uint32_t)number_of(r, "count"),
                                                                 .kernel = text_of(a, r, "kernel"),
                                                                 .function = text_of(a, r, "function"),
                                                                 .op = text_of(a, r, "op"),
                                                                 .file = text_of(a, r, "file"),
                                                                 .line = (uint32_t)number_of(r, "line"),
                                                                 .ptx_line = (uint32_t)number_of(r, "ptx_line")};
}

static int compare_steps(const void *a, const void *b)
{
    const struct mg_trace_step *x = a, *y = b;
    if (x->order != y->order) return x->order < y->order ? -1 : 1;
    return x->time_ns < y->time_ns ? -1 : x->time_ns > y->time_ns; /* of one graph: each thread told its own */
}

/* What is freed has the size that it was made with. The first n steps, in order. */
static void find_sizes(struct mg_accesses *a, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        struct mg_trace_step *s = &a->steps.at[i];
        uint64_t bytes;
        if (s->kind == MG_STEP_ALLOC) mg_map_set(&a->live, s->dst, s->bytes);
        if (s->kind != MG_STEP_FREE || !mg_map_get(&a->live, s->dst, &bytes)) continue;
        if (!s->bytes) s->bytes = s->width = bytes;
        mg_map_del(&a->live, s->dst);
    }
}

/* Blocks get their instructions, as far as these are there: all were told before the first access. */
static void find_instructions(struct sites *s)
{
    for (uint32_t k = 0; k < s->n && !s->linked; k++) {
        struct mg_access_site *b = &s->at[k];
        bool there = b->kind == MG_ACCESS_BLOCK && b->number < s->n_list;
        b->n_instructions = there ? MG_MIN(b->n_instructions, s->n_list - b->number) : 0;
        b->instructions = there ? s->list + b->number : NULL;
    }
    s->linked = true;
}

static void add_mark(struct mg_accesses *a, const struct mg_trace_record *r)
{
    const struct mg_trace_chunk *c = r->chunk;
    a->whole = MG_MAX(a->whole, number_of(r, "order"));
    if (a->marked) *mg_vec_push(&a->marks) = (struct mark){a->marked, number_of(r, "begun")};
    a->marked = c->head.number + 1;
}

static struct mg_trace_cursor *open_cursor(struct mg_accesses *a, const char *kinds, enum mg_trace_key key,
                                           uint64_t first, uint64_t last, uint64_t from_chunk)
{
    struct mg_trace_query q = {.size = sizeof q,
                               .kinds = kinds,
                               .with_keys = 1u << key,
                               .only = is_ours,
                               .only_user = a,
                               .from_chunk = from_chunk};
    q.keys[key - 1] = (struct mg_trace_range){first, last};
    return mg_trace_cursor_open(a->r, &q);
}

/* Of chunks that were not read yet. False: there is nothing in them. */
static bool read_steps(struct mg_accesses *a, const char *kinds)
{
    struct mg_trace_cursor *c = open_cursor(a, kinds, MG_TRACE_KEY_TIME, 0, UINT64_MAX, a->read);
    const struct mg_trace_record *r;
    bool any = false;
    for (; (r = mg_trace_next(c)); any = true) {
        if (!strcmp(r->kind->name, "trace.step"))
            add_step(a, r);
        else if (!strcmp(r->kind->name, "trace.site"))
            add_site(a, r);
        else if (!strcmp(r->kind->name, "trace.whole"))
            add_mark(a, r);
        else
            a->left = true;
    }
    close_cursor(a, c);
    a->read = a->file->n_entries;
    if (a->steps.n) qsort(a->steps.at, a->steps.n, sizeof *a->steps.at, compare_steps);
    return any;
}

#define STEP_KINDS "trace.step,trace.site,trace.left"
static struct mg_accesses *new_accesses(struct mg_trace_reader *r, uint32_t file)
{
    struct mg_accesses *a = mg_xcalloc(1, sizeof *a);
    a->r = r;
    a->file = r->files.at[file];
    mg_intern_init(&a->texts);
    return a;
}

enum mg_err mg_accesses_open(struct mg_trace_reader *r, uint32_t file, struct mg_accesses **out, struct mg_diag *d)
{
    *out = NULL;
    if (file >= r->files.n) return mg_diag_err(d, MG_ERR_INPUT, "there is no trace file %u", (unsigned)file);
    struct mg_accesses *a = new_accesses(r, file);
    if (a->file->repeated) {
        enum mg_err err =
            mg_diag_err(d, MG_ERR_INPUT, "%s: chunks stand in it twice: its accesses cannot be counted", a->file->path);
        mg_accesses_close(a);
        return err;
    }
    a->whole = UINT64_MAX;
    if (!read_steps(a, STEP_KINDS)) {
        enum mg_err err =
            mg_diag_err(d, MG_ERR_INPUT, "%s: %s", a->file->path,
                        a->damaged ? a->why : "it has no accesses: they are recorded by margay run -t trace");
        mg_accesses_close(a);
        return err;
    }
    find_sizes(a, a->steps.n);
    *out = a;
    return MG_ERR_OK;
}

/* ---- a file that grows --------------------------------------------------------------------------------- */

enum mg_err mg_accesses_follow(struct mg_trace_reader *r, struct mg_accesses **out, struct mg_diag *d)
{
    *out = NULL;
    if (r->files.n != 1 || !r->files.at[0]->growing)
        return mg_diag_err(d, MG_ERR_STATE, "the reader does not follow a file");
    *out = new_accesses(r, 0);
    return MG_ERR_OK;
}

/* Chunks that hold nothing but what was given; where those begin that may hold more. */
static uint64_t forget_chunks(struct mg_accesses *a)
{
    struct mg_trace_loaded *f = a->file;
    uint32_t n = 0;
    while (n < a->marks.n && a->marks.at[n].begun <= a->given) n++;
    uint64_t behind = n ? f->next_number - a->marks.at[n - 1].number : 0;
    if (n && behind <= f->n_entries) {
        a->read -= f->n_entries - behind;
        mg_trace_forget(f, f->n_entries - behind);
    }
    a->marks.n -= n;
    if (n) memmove(a->marks.at, a->marks.at + n, a->marks.n * sizeof *a->marks.at);
    return f->n_entries ? f->entries[0].at : 0;
}

const struct mg_trace_step *mg_accesses_more(struct mg_accesses *a, bool ended, uint64_t *n, uint64_t *done)
{
    mg_accesses_begin(a, NULL);
    if (a->n_given) a->given = a->steps.at[a->n_given - 1].order;
    a->steps.n -= (uint32_t)a->n_given;
    if (a->n_given) memmove(a->steps.at, a->steps.at + a->n_given, a->steps.n * sizeof *a->steps.at);
    a->given = MG_MAX(a->given, a->whole);
    *done = forget_chunks(a);
    mg_trace_grow(a->file, ended);
    read_steps(a, STEP_KINDS ",trace.whole");
    if (a->steps.n && a->steps.at[0].order <= a->given && a->given) note_damage(a, 1, "a step that came too late");
    if (ended) a->whole = UINT64_MAX;
    for (a->n_given = 0; a->n_given < a->steps.n && a->steps.at[a->n_given].order <= a->whole;) a->n_given++;
    find_sizes(a, a->n_given);
    *n = a->n_given;
    return a->steps.at;
}

void mg_accesses_close(struct mg_accesses *a)
{
    if (!a) return;
    mg_trace_cursor_close(a->cursor);
    for (uint32_t i = 0; i < a->sites.n; i++) {
        free(a->sites.at[i].at);
        free(a->sites.at[i].bytes);
        free(a->sites.at[i].list);
    }
    mg_vec_release(&a->sites);
    mg_vec_release(&a->steps);
    mg_vec_release(&a->packs);
    mg_vec_release(&a->marks);
    mg_map_release(&a->live);
    mg_intern_release(&a->texts);
    free(a->data);
    free(a);
}

const struct mg_trace_step *mg_accesses_steps(const struct mg_accesses *a, uint64_t *n)
{
    *n = a->steps.n;
    return a->steps.at;
}

uint64_t mg_accesses_damaged(const struct mg_accesses *a, const char **why)
{
    if (why) *why = a->damaged ? a->why : NULL;
    return a->damaged;
}

bool mg_accesses_is_partial(const struct mg_accesses *a)
{
    const struct mg_trace_file *f = &a->file->file;
    return a->left || f->dropped || f->skipped || f->lost || !f->closed;
}

/* ---- packs --------------------------------------------------------------------------------------------- */

static bool is_launch(uint64_t first, uint64_t last, const struct mg_trace_entry *e)
{
    const struct mg_trace_range *have = &e->keys[MG_TRACE_KEY_LAUNCH - 1];
    return have->first <= have->last && have->first <= last && first <= have->last;
}

/* Launches from `first` on that are read together: their chunks are not too many. */
static uint64_t last_of_batch(const struct mg_accesses *a, uint64_t first)
{
    uint64_t last = UINT64_MAX, low = first, high = UINT64_MAX;
    for (;;) { /* the most, by bisection: what chunks take grows with the last launch */
        uint64_t packed = 0;
        for (uint64_t i = 0; i < a->file->n_entries && packed <= BATCH_PACKED; i++)
            if (is_launch(first, last, &a->file->entries[i])) packed += a->file->entries[i].packed_bytes;
        if (packed <= BATCH_PACKED)
            low = last;
        else
            high = last;
        if (high - low <= 1 || low == UINT64_MAX) return low;
        last = low + (high - low) / 2;
    }
}

static bool keep_data(struct mg_accesses *a, const void *data, uint32_t bytes)
{
    if (a->n_data + bytes > BATCH_MOST) return false;
    if (a->n_data + bytes > a->room) {
        a->room = MG_MAX(2 * a->room, a->n_data + bytes);
        a->data = mg_xrealloc(a->data, a->room);
    }
    if (bytes) memcpy(a->data + a->n_data, data, bytes);
    a->n_data += bytes;
    return true;
}

static int compare_packs(const void *a, const void *b)
{
    const struct pack *x = a, *y = b;
    if (x->launch != y->launch) return x->launch < y->launch ? -1 : 1;
    if (x->replay != y->replay) return x->replay < y->replay ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static struct pack describe(const struct mg_trace_record *r, const uint8_t **data)
{
    uint32_t ix = mg_trace_field_ix(r->kind, "data"), bytes = 0;
    *data = ix == UINT32_MAX ? NULL : (const uint8_t *)mg_trace_text(r, ix, &bytes);
    return (struct pack){.launch = number_of(r, "launch"),
                         .replay = number_of(r, "replay"),
                         .sites = (uint32_t)number_of(r, "sites"),
                         .sm = (uint32_t)number_of(r, "sm"),
                         .bytes = *data ? bytes : 0};
}

/* Keeps the packs of launches first to last; false: they are too large. */
static bool keep_launches(struct mg_accesses *a, uint64_t first, uint64_t last)
{
    struct mg_trace_cursor *c = open_cursor(a, "trace.accesses", MG_TRACE_KEY_LAUNCH, first, last, 0);
    const struct mg_trace_record *r;
    const uint8_t *data;
    bool room = true;
    a->n_data = 0;
    a->packs.n = 0;
    while (room && (r = mg_trace_next(c))) {
        struct pack p = describe(r, &data);
        p.at = a->n_data;
        p.order = a->packs.n;
        *mg_vec_push(&a->packs) = p;
        room = keep_data(a, data, p.bytes);
    }
    if (room)
        close_cursor(a, c); /* else what is damaged is told when it is read again */
    else
        mg_trace_cursor_close(c);
    if (a->packs.n) qsort(a->packs.at, a->packs.n, sizeof *a->packs.at, compare_packs);
    a->first = first;
    a->last = last;
    a->kept_whole = a->whole;
    a->tried = true;
    return a->kept = room;
}

/* The first kept pack that is not before this launch. */
static uint32_t find_pack(const struct mg_accesses *a, uint64_t launch, uint64_t replay)
{
    uint32_t k;
    MG_FIND_FIRST(k, a->packs.n,
                  a->packs.at[k].launch < launch ||
                      (a->packs.at[k].launch == launch && a->packs.at[k].replay < replay));
    return k;
}

void mg_accesses_begin(struct mg_accesses *a, const struct mg_trace_step *launch)
{
    close_cursor(a, a->cursor);
    a->cursor = NULL;
    a->launch = launch;
    a->one = false;
    a->next = a->end = 0;
    mg_unpacker_init(&a->unpacker, NULL, 0);
    if (!launch || launch->kind != MG_STEP_LAUNCH || !(launch->flags & MG_STEP_TRACED)) return;
    const uint64_t n = launch->launch;
    bool too_large = !a->kept && a->tried && a->first == n;
    if (!too_large && (!a->kept || n < a->first || n > a->last || launch->order > a->kept_whole)) {
        uint64_t last = last_of_batch(a, n);
        while (!keep_launches(a, n, last) && last > n) last = n + (last - n) / 2;
    }
    if (a->kept) {
        a->next = find_pack(a, n, launch->replay);
        a->end = launch->replay == UINT64_MAX ? a->packs.n : find_pack(a, n, launch->replay + 1);
    } else {
        a->cursor = open_cursor(a, "trace.accesses", MG_TRACE_KEY_LAUNCH, n, n, 0);
    }
}

static void start_pack(struct mg_accesses *a, const struct pack *p, const uint8_t *data)
{
    mg_unpacker_init(&a->unpacker, data, p->bytes);
    a->sm = p->sm;
    a->number = p->launch;
    a->replay = p->replay;
}

/* Opens the next pack of the launch. */
static bool open_pack(struct mg_accesses *a)
{
    const struct mg_trace_record *r;
    const uint8_t *data = NULL;
    struct pack p;
    do {
        if (a->cursor) {
            if (!(r = mg_trace_next(a->cursor))) return false;
            p = describe(r, &data);
        } else {
            if (a->next >= a->end) return false;
            p = a->packs.at[a->next++];
            data = a->data + p.at;
        }
        a->of = p.replay == a->launch->replay ? find_sites(a, p.sites) : NULL;
        if (!a->of && p.replay == a->launch->replay)
            note_damage(a, 1, "accesses of instructions that are not in the trace");
    } while (!a->of);
    find_instructions(find_sites(a, p.sites));
    start_pack(a, &p, data);
    return true;
}

bool mg_accesses_begin_record(struct mg_accesses *a, const struct mg_trace_record *r)
{
    const uint8_t *data;
    mg_accesses_begin(a, NULL);
    if (strcmp(r->kind->name, "trace.accesses")) return false;
    struct pack p = describe(r, &data);
    a->one = true;
    a->of = find_sites(a, p.sites);
    if (a->of)
        find_instructions(find_sites(a, p.sites));
    else
        note_damage(a, 1, "accesses of instructions that are not in the trace");
    start_pack(a, &p, data);
    for (uint32_t i = 0; i < a->steps.n && !a->launch; i++) {
        const struct mg_trace_step *s = &a->steps.at[i];
        if (s->kind == MG_STEP_LAUNCH && s->launch == p.launch && s->replay == p.replay) a->launch = s;
    }
    return true;
}

/* The compiler's own is a call where the processor need not have the instruction. */
static uint32_t count(uint32_t mask)
{
    mask -= mask >> 1 & 0x55555555;
    mask = (mask & 0x33333333) + (mask >> 2 & 0x33333333);
    return ((mask + (mask >> 4)) & 0x0f0f0f0f) * 0x01010101 >> 24;
}

const struct mg_trace_access *mg_accesses_next(struct mg_accesses *a)
{
    if (!a->launch && !a->one) return NULL;
    while (!a->of || !mg_unpacker_next(&a->unpacker, a->of->bytes, a->of->n, &a->packed)) {
        if (a->unpacker.damaged) note_damage(a, 1, "a pack of accesses that is damaged");
        a->unpacker.damaged = false;
        if (a->one || !open_pack(a)) return NULL;
    }
    struct mg_trace_access *x = &a->access;
    const struct mg_packed_access *p = &a->packed;
    *x = (struct mg_trace_access){.launch = a->launch,
                                  .launch_number = a->number,
                                  .replay = a->replay,
                                  .site = &a->of->at[p->site],
                                  .cta = p->cta,
                                  .warp = p->warp,
                                  .sm = a->sm,
                                  .number = p->number,
                                  .mask = p->mask,
                                  .n_lanes = count(p->mask),
                                  .address = p->address};
    return x;
}
