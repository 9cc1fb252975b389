/* What the formats of this folder share: the run of an export, its output file, tracks and arrows. */
#ifndef MG_EXPORT_FORMAT_H
#define MG_EXPORT_FORMAT_H

#include <stdio.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/map.h"
#include "base/vec.h"
#include "export/arrows.h"
#include "export/export.h"
#include "export/messages.h"
#include "export/tracks.h"
#include "span/memory.h"
#include "span/span.h"

struct mg_export;
struct mg_export_format {
    const char *name, *summary;
    const char *file; /* its name where OUT is a folder; NULL: OUT is a folder always */
    bool messages;    /* it shows messages of MPI: at their calls, or: */
    void (*memory)(struct mg_export *x, const struct mg_span *p,
                   uint32_t device); /* device: of x->memory; NULL: none */
    bool inside;                     /* span shows what kernels began and ended */
    void (*message)(struct mg_export *x, const struct mg_span *end, uint64_t arrow); /* each end by itself */
    const char *suffix; /* OUT without it is a folder; NULL: OUT is a file unless it is an existing folder */
    enum mg_err (*open)(struct mg_export *x, struct mg_diag *d);
    void (*span)(struct mg_export *x, const struct mg_span *p);
    enum mg_err (*close)(struct mg_export *x, struct mg_diag *d);
    void (*release)(struct mg_export *x); /* also after an error; NULL: nothing to release */
};
extern const struct mg_export_format mg_export_perfetto, mg_export_chrome, mg_export_csv, mg_export_otf2, mg_export_tau,
    mg_export_sqlite;

struct mg_export {
    const struct mg_export_format *format;
    const struct mg_export_opts *o;
    struct mg_spans *spans;
    uint64_t base_ns;      /* begin of the first span */
    uint64_t base_unix_ns; /* the same as time of day */
    struct mg_tracks tracks;
    MG_VEC(struct mg_span) waiting; /* work of unknown time at one time: their call may come */
    struct mg_arrows arrows;
    struct mg_messages messages; /* if the format shows them */
    struct mg_memory memory;     /* the same */
    struct mg_map demangled;     /* address of a name -> char * */
    struct mg_buf buf;           /* what is not written yet */
    struct mg_buf text;          /* the format's own */
    FILE *file;                  /* NULL: the format writes its files itself */
    struct mg_io_part part;      /* of the file */
    const char *path;            /* of the file or folder */
    bool made;                   /* the folder was not there before */
    int failed;                  /* errno of the first write that failed */
    struct mg_export_result result;
    void *state; /* the format's own */
};

/* Writes the buffer out when it is large. */
void mg_export_drain(struct mg_export *x);
/* A span's name as the export shows it; lives as long as the export. */
const char *mg_export_name(struct mg_export *x, const struct mg_span *p);
/* The host's stack of a call as one text, the outermost frame first, parted by ';'; nothing where it has none. */
void mg_export_stack(struct mg_export *x, const struct mg_span *p, struct mg_buf *out);
/* "main", a thread's own name, "stream 2 of context 1", ... */
void mg_export_track_name(struct mg_export *x, struct mg_track *t, struct mg_buf *out);
/* Describes again the threads whose names came after their first span. */
void mg_export_name_threads(struct mg_export *x, void (*describe)(struct mg_export *x, struct mg_track *t));
/* "process 17", "rank 3, process 17" */
void mg_export_process_name(const struct mg_track_process *p, struct mg_buf *out);
/* Moves the ends of messages of a call to x->messages.taken; how many. */
uint32_t mg_export_messages(struct mg_export *x, const struct mg_span *call);
/* True for work whose times were measured, and for calls and marks. */
static inline bool mg_export_is_timed(const struct mg_span *p)
{
    return p->source != MG_SOURCE_none;
}
/* CUPTI states none of its times. */
static inline bool mg_export_has_uncertainty(const struct mg_span *p)
{
    return p->source != MG_SOURCE_none && p->source != MG_SOURCE_cupti && p->uncertainty_ns != MG_SPAN_NONE;
}
static inline bool mg_export_is_work(const struct mg_span *p)
{
    return p->kind >= MG_SPAN_KERNEL && p->kind <= MG_SPAN_GRAPH;
}
static inline bool mg_export_is_instant(const struct mg_span *p)
{
    return p->kind == MG_SPAN_MARK && p->mark == MG_MARK_INSTANT;
}

#endif
