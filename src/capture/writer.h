/* Writing a capture (writer.c). Not for several threads at once. Errors stay: after the first nothing more is written,
 * and the file has no END, so that readers refuse it. */
#ifndef MG_CAPTURE_WRITER_H
#define MG_CAPTURE_WRITER_H

#include "base/buf.h"
#include "base/diag.h"
#include "base/map.h"
#include "capture/format.h"

struct mg_cap_writer {
    int fd;
    bool failed;
    int error;            /* errno of the first failure */
    struct mg_buf ops;    /* not yet written */
    struct mg_map chunks; /* first word of the hash -> number */
    struct chunk_key {
        uint64_t second;
    } * keys; /* by number */
    uint32_t n_chunks, cap;
    struct mg_cap_end end;
    uint32_t chain; /* the crc of the frame before */
    char *packed;   /* room of a frame */
    void *zstd;     /* its context */
};
struct mg_cap_op_in { /* one operation to append */
    enum mg_cap_op_kind kind;
    const uint64_t *words;
    uint32_t n_words;
    const void *payload;
    size_t payload_bytes;
};
enum mg_err mg_cap_writer_open(struct mg_cap_writer *w, const char *path, struct mg_diag *d) MG_MUST_CHECK;
void mg_cap_put(struct mg_cap_writer *w, const struct mg_cap_op_in *op);
/* An operation whose content these bytes are. */
void mg_cap_put_content(struct mg_cap_writer *w, const struct mg_cap_op_in *op, const void *data, uint64_t bytes);
/* Writes what is left and the END. False: something could not be written (w->error). */
bool mg_cap_writer_close(struct mg_cap_writer *w);
void mg_cap_writer_abandon(struct mg_cap_writer *w); /* frees; the file stays torn */

#endif
