/* export otf2: an archive of the Open Trace Format 2, written by its own library (otf2_library.h). A thread and a row
 * of a stream or of a multiprocessor are locations; a process and each of its devices are location groups; names are
 * regions, entered and left in order of time at each location. Definitions follow the events, when all are known. The
 * archive is written in a folder inside of its own and moves up when it is whole, so that half an archive is never
 * taken for one. */
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "export/format.h"
#include "export/otf2_library.h"
#include "export/otf2_mpi.h"

struct region {
    const char *name, *symbol;
    uint8_t role, paradigm;
};
struct open_region {
    uint64_t end_ns;
    uint32_t region;
    uint32_t n_messages; /* that are told at its end: the last of its location's */
    struct mg_otf2_collective collective;
};
struct location {
    struct OTF2_EvtWriter_struct *writer;
    uint64_t n_events;
    MG_VEC(struct mg_message_end) messages;
    MG_VEC(struct open_region) open; /* the innermost last */
};
struct group {
    uint32_t process, device;
    bool accelerator;
};
enum { CORRELATION, CTA, WARP, LANES }; /* attributes of events */
static const struct {
    const char *name, *what;
} attributes[] = {{"correlation", "number of the call, or of the call that enqueued the work"},
                  {"cta", "number of the CTA"},
                  {"warp", "number of the warp in its CTA"},
                  {"lanes", "mask of the lanes that began and ended together"}};
struct otf2 {
    struct mg_otf2 lib;
    struct mg_otf2_mpi mpi;
    struct OTF2_Archive_struct *archive;
    struct OTF2_AttributeList_struct *attributes;
    struct mg_buf part;                /* where it is written; empty: nowhere, or it has moved */
    MG_VEC(struct location) locations; /* by id of the track; 0: none */
    MG_VEC(struct region) regions;
    MG_VEC(struct group) groups;
    struct mg_map region_of; /* hash of name and role -> region */
    uint32_t n_strings;
    uint64_t last_ns;
    int failed; /* the library's first error */
    char why[256];
};

static void note(struct otf2 *s, int code)
{
    if (code && !s->failed) s->failed = code;
}

/* The library would print on stderr. */
static int on_error(void *ctx, const char *file, uint64_t line, const char *function, int code, const char *fmt,
                    va_list ap)
{
    struct otf2 *s = ctx;
    (void)file, (void)line, (void)function;
    if (!s->failed) vsnprintf(s->why, sizeof s->why, fmt, ap);
    note(s, code);
    return code;
}

static uint8_t flush_always(void *ctx, uint8_t type, uint64_t location, void *caller, bool final)
{
    (void)ctx, (void)type, (void)location, (void)caller, (void) final;
    return 1;
}

static const struct {
    uint8_t (*before)(void *, uint8_t, uint64_t, void *, bool);
    uint64_t (*after)(void *, uint8_t, uint64_t);
} flushes = {.before = flush_always};

/* Without these the library keeps up to 128 MiB of each location before it writes. */
#define MOST_CHUNKS 2
struct chunks {
    uint32_t n;
    void *at[MOST_CHUNKS];
};

static void *take_chunk(void *ctx, uint8_t type, uint64_t location, void **buffer, uint64_t bytes)
{
    (void)ctx, (void)type, (void)location;
    struct chunks *c = *buffer = *buffer ? *buffer : mg_xcalloc(1, sizeof *c);
    return c->n == MOST_CHUNKS ? NULL : (c->at[c->n++] = mg_xmalloc(bytes));
}

static void give_chunks(void *ctx, uint8_t type, uint64_t location, void **buffer, bool final)
{
    struct chunks *c = *buffer;
    (void)ctx, (void)type, (void)location;
    while (c && c->n) free(c->at[--c->n]);
    if (!final) return;
    free(c);
    *buffer = NULL;
}

static const struct {
    void *(*take)(void *, uint8_t, uint64_t, void **, uint64_t);
    void (*give)(void *, uint8_t, uint64_t, void **, bool);
} memory = {take_chunk, give_chunks};

/* ---- events -------------------------------------------------------------------------------------------- */

static uint8_t role_of(const struct mg_span *p)
{
    switch (p->kind) {
    case MG_SPAN_KERNEL:
        return OTF2_ROLE_FUNCTION;
    case MG_SPAN_COPY:
    case MG_SPAN_MEMSET:
    case MG_SPAN_PREFETCH:
        return OTF2_ROLE_TRANSFER;
    case MG_SPAN_GRAPH:
        return OTF2_ROLE_ARTIFICIAL;
    case MG_SPAN_MARK:
    case MG_SPAN_INSIDE:
        return OTF2_ROLE_CODE;
    default:
        return OTF2_ROLE_WRAPPER;
    }
}

static uint32_t region_of(struct mg_export *x, const struct mg_span *p)
{
    struct otf2 *s = x->state;
    uint8_t role = role_of(p);
    uint64_t at, key = mg_mix64((uint64_t)(uintptr_t)p->name ^ (uint64_t)role << 56);
    for (; mg_map_get(&s->region_of, key, &at); key++)
        if (s->regions.at[at].symbol == p->name && s->regions.at[at].role == role) return (uint32_t)at;
    mg_map_set(&s->region_of, key, s->regions.n);
    uint8_t paradigm = role == OTF2_ROLE_CODE   ? OTF2_PARADIGM_OF_USER
                       : p->kind == MG_SPAN_MPI ? OTF2_PARADIGM_OF_MPI
                                                : OTF2_PARADIGM_OF_CUDA;
    *mg_vec_push(&s->regions) = (struct region){mg_export_name(x, p), p->name, role, paradigm};
    return s->regions.n - 1;
}

static void write_message(struct mg_export *x, struct location *l, uint64_t time_ns, const struct mg_message_end *e,
                          bool begins)
{
    struct otf2 *s = x->state;
    uint32_t written = 0;
    note(s, mg_otf2_mpi_message(&s->mpi, x, &s->lib, l->writer, time_ns, e, begins, &written));
    l->n_events += written;
}

static void leave_until(struct mg_export *x, struct location *l, uint64_t time_ns)
{
    struct otf2 *s = x->state;
    while (l->open.n && l->open.at[l->open.n - 1].end_ns <= time_ns) {
        struct open_region r = l->open.at[--l->open.n];
        const struct mg_otf2_collective *c = &r.collective;
        for (; r.n_messages; r.n_messages--) write_message(x, l, r.end_ns, &l->messages.at[--l->messages.n], false);
        if (c->is) {
            note(s, s->lib.EvtWriter_MpiCollectiveEnd(l->writer, NULL, r.end_ns, c->operation, c->communicator, c->root,
                                                      c->sent, c->received));
            l->n_events++;
        }
        note(s, s->lib.EvtWriter_Leave(l->writer, NULL, r.end_ns, r.region));
        l->n_events++;
    }
}

/* Begins of messages and collective operations stand behind the begin of their call, ends in front of its end. */
static void write_mpi(struct mg_export *x, struct location *l, const struct mg_span *p, struct open_region *r)
{
    struct otf2 *s = x->state;
    uint32_t n = mg_export_messages(x, p);
    for (uint32_t i = n; i-- > 0;) {
        const struct mg_message_end *e = &x->messages.taken.at[i];
        write_message(x, l, p->begin_ns, e, true);
    }
    for (uint32_t i = 0; i < n; i++) *mg_vec_push(&l->messages) = x->messages.taken.at[i];
    r->n_messages = n;
    if (!mg_otf2_mpi_collective(&s->mpi, x, p, &r->collective)) return;
    note(s, s->lib.EvtWriter_MpiCollectiveBegin(l->writer, NULL, p->begin_ns));
    l->n_events++;
}

static struct location *location_of(struct otf2 *s, const struct mg_track *t)
{
    while (s->locations.n <= t->id) *mg_vec_push(&s->locations) = (struct location){0};
    struct location *l = &s->locations.at[t->id];
    if (!l->writer) l->writer = s->lib.Archive_GetEvtWriter(s->archive, t->id - 1);
    return l;
}

static void add_attribute(struct otf2 *s, uint32_t attribute, uint64_t value)
{
    note(s, s->lib.AttributeList_AddUint64(s->attributes, attribute, value));
}

static void write_span(struct mg_export *x, const struct mg_span *p)
{
    struct otf2 *s = x->state;
    uint64_t end_ns = MG_MAX(p->end_ns, p->begin_ns + 1);
    struct location *l = location_of(s, mg_tracks_find(&x->tracks, p, end_ns));
    uint32_t region = region_of(x, p);
    if (s->failed || !l->writer) return;
    leave_until(x, l, p->begin_ns);
    if (p->correlation) add_attribute(s, CORRELATION, p->correlation);
    if (p->kind == MG_SPAN_INSIDE) {
        add_attribute(s, CTA, p->cta);
        add_attribute(s, WARP, p->warp);
        add_attribute(s, LANES, p->lanes);
    }
    note(s, s->lib.EvtWriter_Enter(l->writer, s->attributes, p->begin_ns, region));
    l->n_events++;
    struct open_region r = {.end_ns = end_ns, .region = region};
    if (p->kind == MG_SPAN_MPI) write_mpi(x, l, p, &r);
    *mg_vec_push(&l->open) = r;
    s->last_ns = MG_MAX(s->last_ns, end_ns);
}

/* ---- definitions ----------------------------------------------------------------------------------------- */

static uint32_t add_string(struct otf2 *s, struct OTF2_GlobalDefWriter_struct *w, const char *text)
{
    note(s, s->lib.GlobalDefWriter_WriteString(w, s->n_strings, text));
    return s->n_strings++;
}

static uint32_t find_group(struct otf2 *s, uint32_t process, uint32_t device, bool accelerator)
{
    for (uint32_t i = 0; i < s->groups.n; i++)
        if (s->groups.at[i].process == process && s->groups.at[i].accelerator == accelerator &&
            s->groups.at[i].device == device)
            return i;
    *mg_vec_push(&s->groups) = (struct group){process, device, accelerator};
    return s->groups.n - 1;
}

static bool is_host(const struct mg_track_key *k)
{
    return k->kind == MG_TRACK_THREAD || k->kind == MG_TRACK_RANGES;
}

/* A process before its devices: they name it. */
static void write_groups(struct mg_export *x, struct OTF2_GlobalDefWriter_struct *w, uint32_t node)
{
    struct otf2 *s = x->state;
    struct mg_buf name = MG_BUF_INIT;
    for (uint32_t i = 1; i < x->tracks.at.n; i++) {
        const struct mg_track_key *k = &x->tracks.at.at[i]->key;
        find_group(s, k->process, 0, false);
        if (!is_host(k)) find_group(s, k->process, k->device, true);
    }
    for (uint32_t i = 0; i < s->groups.n; i++) {
        const struct group *g = &s->groups.at[i];
        mg_buf_reset(&name);
        if (g->accelerator) mg_buf_printf(&name, "device %u, ", g->device);
        mg_export_process_name(&x->tracks.processes.at[g->process], &name);
        uint32_t creator = g->accelerator ? find_group(s, g->process, 0, false) : OTF2_NONE;
        note(s, s->lib.GlobalDefWriter_WriteLocationGroup(w, i, add_string(s, w, name.at),
                                                          g->accelerator ? OTF2_GROUP_ACCELERATOR : OTF2_GROUP_PROCESS,
                                                          node, creator));
    }
    mg_buf_release(&name);
}

static void write_locations(struct mg_export *x, struct OTF2_GlobalDefWriter_struct *w)
{
    struct otf2 *s = x->state;
    struct mg_buf name = MG_BUF_INIT;
    for (uint32_t i = 1; i < x->tracks.at.n; i++) {
        struct mg_track *t = x->tracks.at.at[i];
        bool host = is_host(&t->key);
        mg_buf_reset(&name);
        mg_export_track_name(x, t, &name);
        note(s, s->lib.GlobalDefWriter_WriteLocation(
                    w, i - 1, add_string(s, w, name.at), host ? OTF2_LOCATION_THREAD : OTF2_LOCATION_STREAM,
                    s->locations.at[i].n_events, find_group(s, t->key.process, host ? 0 : t->key.device, !host)));
    }
    mg_buf_release(&name);
}

static void write_definitions(struct mg_export *x)
{
    struct otf2 *s = x->state;
    struct OTF2_GlobalDefWriter_struct *w = s->lib.Archive_GetGlobalDefWriter(s->archive);
    if (!w) return;
    note(s, s->lib.GlobalDefWriter_WriteClockProperties(w, 1000000000u, x->base_ns, s->last_ns - x->base_ns + 1,
                                                        x->base_unix_ns));
    uint32_t none = add_string(s, w, ""), host = add_string(s, w, "host"), class_name = add_string(s, w, "machine");
    for (uint32_t i = 0; i < MG_COUNT_OF(attributes); i++) {
        uint32_t name = add_string(s, w, attributes[i].name), what = add_string(s, w, attributes[i].what);
        note(s, s->lib.GlobalDefWriter_WriteAttribute(w, i, name, what, OTF2_UINT64));
    }
    note(s, s->lib.GlobalDefWriter_WriteSystemTreeNode(w, 0, host, class_name, OTF2_NONE));
    for (uint32_t i = 0; i < s->regions.n; i++) {
        const struct region *r = &s->regions.at[i];
        uint32_t name = add_string(s, w, r->name), symbol = r->symbol == r->name ? name : add_string(s, w, r->symbol);
        note(s, s->lib.GlobalDefWriter_WriteRegion(w, i, name, symbol, none, r->role, r->paradigm, 0, none, 0, 0));
    }
    write_groups(x, w, 0);
    write_locations(x, w);
    note(s, mg_otf2_mpi_define(&s->mpi, x, &s->lib, w, &s->n_strings));
}

/* ---- the archive --------------------------------------------------------------------------------------- */

static enum mg_err fail(struct mg_export *x, struct mg_diag *d)
{
    struct otf2 *s = x->state;
    return mg_diag_err(d, MG_ERR_IO, "%s: OTF2: %s%s%s", x->path,
                       s->failed ? s->lib.Error_GetDescription(s->failed) : "no archive", *s->why ? ": " : "", s->why);
}

static enum mg_err refuse_archive(const char *folder, struct mg_diag *d)
{
    struct mg_buf path = MG_BUF_INIT;
    struct stat st;
    mg_buf_printf(&path, "%s/traces.otf2", folder);
    bool there = !stat(path.at, &st);
    mg_buf_release(&path);
    return there ? mg_diag_err(d, MG_ERR_IO, "%s already holds an archive (traces.otf2)", folder) : MG_ERR_OK;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    remove(path);
    return 0;
}

static void remove_part(struct otf2 *s)
{
    if (s->part.n) nftw(s->part.at, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    mg_buf_release(&s->part);
}

/* The file that readers open goes last. */
static enum mg_err move_up(struct mg_export *x, struct mg_diag *d)
{
    static const char *const names[] = {"traces", "traces.def", "traces.otf2"};
    struct otf2 *s = x->state;
    struct mg_buf from = MG_BUF_INIT, to = MG_BUF_INIT;
    enum mg_err err = MG_ERR_OK;
    for (size_t i = 0; i < MG_COUNT_OF(names) && !err; i++) {
        mg_buf_reset(&from);
        mg_buf_reset(&to);
        mg_buf_printf(&from, "%s/%s", s->part.at, names[i]);
        mg_buf_printf(&to, "%s/%s", x->path, names[i]);
        if (rename(from.at, to.at)) err = mg_diag_err(d, MG_ERR_IO, "cannot write %s: %s", to.at, strerror(errno));
    }
    mg_buf_release(&from);
    mg_buf_release(&to);
    if (!err) remove_part(s);
    return err;
}

static enum mg_err open_otf2(struct mg_export *x, struct mg_diag *d)
{
    struct otf2 *s = x->state = mg_xcalloc(1, sizeof *s);
    enum mg_err err = refuse_archive(x->path, d);
    if (err || (err = mg_otf2_open(&s->lib, d))) return err;
    mg_buf_printf(&s->part, "%s/traces.%ld.part", x->path, (long)getpid());
    if (mkdir(s->part.at, 0777)) {
        err = mg_diag_err(d, MG_ERR_IO, "cannot create %s: %s", s->part.at, strerror(errno));
        mg_buf_release(&s->part);
        return err;
    }
    s->lib.Error_RegisterCallback((void *)(uintptr_t)on_error, s);
    s->archive = s->lib.Archive_Open(s->part.at, "traces", OTF2_MODE_WRITE, OTF2_CHUNK_BYTES, OTF2_DEFINITION_BYTES,
                                     OTF2_SUBSTRATE, OTF2_COMPRESSION);
    if (!s->archive) return fail(x, d);
    note(s, s->lib.Archive_SetFlushCallbacks(s->archive, (const struct OTF2_FlushCallbacks *)&flushes, s));
    note(s, s->lib.Archive_SetMemoryCallbacks(s->archive, (const struct OTF2_MemoryCallbacks *)&memory, s));
    note(s, s->lib.Archive_SetSerialCollectiveCallbacks(s->archive));
    note(s, s->lib.Archive_SetCreator(s->archive, "margay"));
    note(s, s->lib.Archive_OpenEvtFiles(s->archive));
    s->attributes = s->lib.AttributeList_New();
    return s->failed ? fail(x, d) : MG_ERR_OK;
}

static enum mg_err close_otf2(struct mg_export *x, struct mg_diag *d)
{
    struct otf2 *s = x->state;
    for (uint32_t i = 1; i < s->locations.n; i++) {
        struct location *l = &s->locations.at[i];
        if (!l->writer) continue;
        leave_until(x, l, UINT64_MAX);
        note(s, s->lib.Archive_CloseEvtWriter(s->archive, l->writer));
    }
    note(s, s->lib.Archive_CloseEvtFiles(s->archive));
    note(s, s->lib.Archive_OpenDefFiles(s->archive)); /* readers look for a file of each location, empty as it is */
    for (uint32_t i = 1; i < s->locations.n; i++)
        note(s, s->lib.Archive_CloseDefWriter(s->archive, s->lib.Archive_GetDefWriter(s->archive, i - 1)));
    note(s, s->lib.Archive_CloseDefFiles(s->archive));
    write_definitions(x);
    note(s, s->lib.Archive_Close(s->archive));
    s->archive = NULL;
    return s->failed ? fail(x, d) : move_up(x, d);
}

static void release(struct mg_export *x)
{
    struct otf2 *s = x->state;
    if (!s) return;
    if (s->archive) s->lib.Archive_Close(s->archive);
    remove_part(s);
    if (s->attributes) s->lib.AttributeList_Delete(s->attributes);
    for (uint32_t i = 0; i < s->locations.n; i++) {
        mg_vec_release(&s->locations.at[i].open);
        mg_vec_release(&s->locations.at[i].messages);
    }
    mg_vec_release(&s->locations);
    mg_vec_release(&s->regions);
    mg_vec_release(&s->groups);
    mg_map_release(&s->region_of);
    mg_otf2_mpi_release(&s->mpi);
    mg_otf2_close(&s->lib);
    free(s);
}

const struct mg_export_format mg_export_otf2 = {
    .name = "otf2",
    .summary = "the time line as an archive of the Open Trace Format 2",
    .messages = true,
    .inside = true,
    .open = open_otf2,
    .span = write_span,
    .close = close_otf2,
    .release = release,
};
