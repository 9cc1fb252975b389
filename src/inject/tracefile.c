/* Records of tools on their way to DIR/trace: what a channel's readers hand over becomes records of named fields, with
 * the place that each is of. One file a process, opened with the first record. Without memory, or without a file,
 * records are counted as missed; the program never waits for the disk but as the channel's policy says. */
#include "inject/tracefile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "inject/session.h"
#include "patch/layout.h"
#include "record/frame.h"
#include "tool/tool.h"
#include "trace/writer.h"

struct text {
    uint32_t op, file;
};             /* of a site: numbers in the trace */
struct place { /* what is known of a kernel's sites: found once, for all launches of equal sites */
    struct place *next;
    const struct mg_layout_site *sites;
    uint32_t kernel;
    uint32_t *kinds; /* in the trace, by site */
    struct text *texts;
};
struct part { /* of a tool and a worker */
    struct mg_trace_stream *stream;
    const struct mg_stream_launch *launch;
    uint32_t number; /* the last one that was met */
    const struct place *place;
    uint64_t missed, written;
    uint64_t lost; /* of bounded records: there was no room */
};
enum { FRAMES = MG_STREAM_MOST_WORKERS /* the part of those */ };
static struct {
    pthread_mutex_t lock;
    struct mg_trace_writer *writer;
    bool tried;
    struct place *places[MG_MAX_USES];
    struct part *parts[MG_MAX_USES][MG_STREAM_MOST_WORKERS + 1];
} file = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void say_line(void *user, const char *line)
{
    (void)user;
    mg_session_say_line(line);
}

/* ---- once a process, a kernel, a worker ---------------------------------------------------------------- */

/* Under the lock. */
static struct mg_trace_writer *open_writer(struct mg_trace_opts o)
{
    struct mg_diag d = MG_DIAG_INIT;
    if (file.tried) return file.writer;
    file.tried = true;
    o.size = sizeof o;
    o.dir = mg_session.config.dir;
    o.rank = mg_session.rank;
    o.say = say_line;
    enum mg_err err = mg_trace_open(&o, &file.writer, &d);
    if (err) mg_session_error("there is no trace: %s", mg_diag_first(&d, err));
    mg_diag_release(&d);
    return file.writer;
}

struct mg_trace_writer *mg_tracefile_writer(struct mg_trace_opts wants)
{
    pthread_mutex_lock(&file.lock);
    struct mg_trace_writer *w = open_writer(wants);
    pthread_mutex_unlock(&file.lock);
    return w;
}

static const char *last_part(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path;
}

/* Name of the tool's kinds: a shared object's without its folder and end. */
static void tool_name(const struct mg_use *use, char out[64])
{
    snprintf(out, 64, "%s", last_part(use->name));
    if (strlen(out) > 3 && !strcmp(out + strlen(out) - 3, ".so")) out[strlen(out) - 3] = 0;
}

struct kernel { /* whose records these are, and what its sites write */
    const char *name;
    const struct mg_layout_site *sites;
    uint32_t n_sites;
    const struct mg_record_type *const *types;
    uint32_t n_types;
    bool bounded;
};

static void free_place(struct place *p)
{
    if (!p) return;
    free(p->kinds);
    free(p->texts);
    free(p);
}

/* Under the lock. */
static struct place *new_place(uint32_t use, const struct kernel *k)
{
    struct place *p = calloc(1, sizeof *p);
    struct mg_record_trace *kind = malloc(sizeof *kind);
    char tool[64];
    if (p) p->kinds = calloc(k->n_sites + 1, sizeof *p->kinds);
    if (p) p->texts = calloc(k->n_sites + 1, sizeof *p->texts);
    if (!kind || !p || !p->kinds || !p->texts) {
        free_place(p);
        free(kind);
        return NULL;
    }
    tool_name(&mg_session.uses[use], tool);
    p->sites = k->sites;
    p->kernel = mg_trace_name(file.writer, k->name);
    for (uint32_t i = 0; i < k->n_sites && i < k->n_types; i++) {
        if (!k->types[i]) continue;
        mg_record_trace_kind(tool, k->types[i], k->bounded, kind);
        p->kinds[i] = mg_trace_kind_add(file.writer, &kind->kind);
        p->texts[i] =
            (struct text){mg_trace_name(file.writer, k->sites[i].op), mg_trace_name(file.writer, k->sites[i].file)};
    }
    free(kind);
    p->next = file.places[use];
    return file.places[use] = p;
}

/* Under the lock. */
static const struct place *find_place(uint32_t use, const struct kernel *k)
{
    struct place *p = file.places[use];
    while (p && p->sites != k->sites) p = p->next;
    return p ? p : new_place(use, k);
}

static struct part *find_part(uint32_t use, uint32_t worker)
{
    struct part *p = file.parts[use][worker];
    if (p) return p;
    pthread_mutex_lock(&file.lock);
    p = open_writer((struct mg_trace_opts){0}) ? calloc(1, sizeof *p) : NULL;
    if (p) p->stream = mg_trace_stream_open(file.writer, mg_session.uses[use].name);
    if (p && p->stream)
        mg_trace_stream_policy(p->stream, MG_TRACE_BLOCK); /* what the kernel does then, its channel's policy says */
    file.parts[use][worker] = p;
    pthread_mutex_unlock(&file.lock);
    return p;
}

/* ---- records ------------------------------------------------------------------------------------------- */

struct reading {
    const struct mg_stream *s;
    struct part *part;
    uint32_t use;
};

static bool find_launch(struct reading *x, uint32_t number)
{
    struct part *p = x->part;
    if (p->launch && p->number == number) return p->place;
    p->launch = x->s->launch(x->s, number);
    p->number = number;
    p->place = NULL;
    if (!p->launch) return false;
    const struct mg_stream_launch *l = p->launch;
    const struct kernel k = {l->kernel, l->sites, l->n_sites, l->kinds, l->n_kinds, false};
    pthread_mutex_lock(&file.lock);
    p->place = find_place(x->use, &k);
    pthread_mutex_unlock(&file.lock);
    return p->place;
}

/* Bytes behind the head. */
static uint32_t bytes_of(const struct mg_record *r)
{
    if (mg_record_is_access(r->kind)) return 4 + 8 * r->n_lanes;
    return 8 * r->n_words * (r->kind == MG_RECORD_LANES ? r->n_lanes : 1);
}

static void fill(const struct mg_record *r, uint8_t *to)
{
    uint64_t address[32];
    if (!mg_record_is_access(r->kind)) {
        memcpy(to, r->words, bytes_of(r));
        return;
    }
    mg_record_addresses(r, address);
    memcpy(to, &r->width, 4);
    to += 4;
    for (uint32_t lane = 0; lane < 32; lane++) {
        if (!(r->mask >> lane & 1)) continue;
        memcpy(to, &address[lane], 8);
        to += 8;
    }
}

static void put_record(struct part *p, const struct place *place, const struct mg_layout_site *s, uint32_t site,
                       uint64_t launch, const struct mg_record *r)
{
    uint32_t kind = place->kinds[site], bytes = bytes_of(r);
    uint8_t *to = kind ? mg_trace_reserve(p->stream, kind, (uint32_t)sizeof(struct mg_record_head) + bytes) : NULL;
    if (!to) {
        p->missed++;
        return;
    }
    const struct mg_record_head head = {.launch = launch,
                                        .cta = r->cta,
                                        .warp = r->warp,
                                        .number = r->number,
                                        .lanes = r->mask,
                                        .kernel = place->kernel,
                                        .op = place->texts[site].op,
                                        .file = place->texts[site].file,
                                        .line = s->file ? s->line : 0,
                                        .ptx_line = s->ptx_line};
    memcpy(to, &head, sizeof head);
    fill(r, to + sizeof head);
    mg_trace_commit(p->stream);
    p->written++;
}

static void put(void *user, const struct mg_record *r)
{
    struct reading *x = user;
    struct part *p = x->part;
    if (find_launch(x, r->launch) && r->site < p->launch->n_sites)
        put_record(p, p->place, &p->launch->sites[r->site], r->site, p->launch->id, r);
    else
        p->missed++;
}

void mg_tracefile_stream(uint32_t use, const struct mg_stream *s, const uint64_t *segments, uint32_t bytes)
{
    struct reading x = {
        .s = s, .use = use, .part = s->worker < MG_STREAM_MOST_WORKERS ? find_part(use, s->worker) : NULL};
    if (x.part && x.part->stream) mg_stream_read(s, segments, bytes, put, &x);
}

struct frame {
    struct part *part;
    const struct place *place;
    const struct mg_region *g;
    uint64_t launch;
};

static void put_bounded(void *user, const struct mg_record *r)
{
    const struct frame *x = user;
    struct mg_record one = *r;
    one.number = 0;
    if (r->site < x->g->n_sites)
        put_record(x->part, x->place, &x->g->sites[r->site], r->site, x->launch, &one);
    else
        x->part->missed++;
}

void mg_tracefile_frame(uint32_t use, const char *kernel, uint64_t launch, const struct mg_region *g,
                        const uint64_t *words, const uint64_t *before)
{
    const struct kernel k = {kernel, g->sites, g->n_sites, g->record_types, g->n_record_types, true};
    struct frame x = {.part = find_part(use, FRAMES), .g = g, .launch = launch};
    if (!x.part || !x.part->stream) return;
    uint64_t lost = mg_frame_sums_of(words, g->n_frame, g->frame_payload).lost;
    if (before) lost -= mg_frame_sums_of(before, g->n_frame, g->frame_payload).lost;
    pthread_mutex_lock(&file.lock); /* launches may end on several threads */
    x.part->lost += lost;
    x.place = find_place(use, &k);
    if (x.place) mg_frame_read_of(words, g->n_frame, g->frame_payload, before, put_bounded, &x);
    pthread_mutex_unlock(&file.lock);
}

/* ---- ends ---------------------------------------------------------------------------------------------- */

static void tell_sums(uint32_t use)
{
    uint64_t missed = 0, written = 0, lost = 0;
    bool any = false;
    for (uint32_t k = 0; k <= FRAMES; k++) {
        const struct part *p = file.parts[use][k];
        if (!p) continue;
        any = true;
        missed += p->missed;
        written += p->written;
        lost += p->lost;
    }
    if (!any) return;
    struct mg_buf b = MG_BUF_INIT;
    struct mg_json j;
    mg_json_init(&j, &b, 0);
    mg_json_obj(&j);
    mg_json_key_u64(&j, "records", written);
    mg_json_key_u64(&j, "missed", missed);
    mg_json_key_u64(&j, "lost", lost);
    mg_json_end(&j, '}');
    mg_store_tool_json(mg_session.store, mg_session.uses[use].name, "trace", b.at);
    mg_buf_release(&b);
    if (lost) mg_session_error("%s: %llu records found no room", mg_session.uses[use].name, (unsigned long long)lost);
    if (missed)
        mg_session_error("%s: %llu records are not in the trace", mg_session.uses[use].name,
                         (unsigned long long)missed);
}

void mg_tracefile_end(void)
{
    if (!file.writer) return;
    mg_trace_end(file.writer);
    for (uint32_t u = 0; u < mg_session.n_uses; u++) tell_sums(u);
}

void mg_tracefile_leave(void)
{
    mg_trace_flush(file.writer, 1000);
}

void mg_tracefile_forked(void)
{
    mg_trace_forked(file.writer);
}
