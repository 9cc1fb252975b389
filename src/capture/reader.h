/* Reading a capture (reader.c): everything is checked when the file is opened, so that what follows cannot fail for
 * the file's sake: checksums of all frames, their order, every operation's shape, every chunk's number. */
#ifndef MG_CAPTURE_READER_H
#define MG_CAPTURE_READER_H

#include "base/diag.h"
#include "capture/format.h"

struct mg_cap_reader;
struct mg_cap_op { /* words and payload stay until the reader is closed, or the next mg_cap_next with this struct */
    uint32_t kind, n_words;
    const uint64_t *words;
    const uint8_t *payload;
    size_t payload_bytes;
    uint64_t at;  /* number of the operation */
    uint64_t off; /* of what follows; 0 to begin with */
    uint64_t *room;
    uint32_t cap; /* of the words */
};
enum mg_err mg_cap_reader_open(const char *path, struct mg_cap_reader **out, struct mg_diag *d) MG_MUST_CHECK;
void mg_cap_reader_close(struct mg_cap_reader *r);
/* How many launches its end says that it has; -1: it has no end. Reads nothing else. */
int64_t mg_cap_launches(const char *path);
/* {0} to begin with. False: that was the last. */
bool mg_cap_next(const struct mg_cap_reader *r, struct mg_cap_op *op);
void mg_cap_op_release(struct mg_cap_op *op);
const struct mg_cap_end *mg_cap_totals(const struct mg_cap_reader *r);
/* Bytes of content that the operation has; behind its words of the kind. */
uint64_t mg_cap_content_bytes(const struct mg_cap_op *op);
/* Copies all of it. False: a chunk does not unpack (*why). */
bool mg_cap_content(struct mg_cap_reader *r, const struct mg_cap_op *op, void *to, const char **why) MG_MUST_CHECK;

#endif
