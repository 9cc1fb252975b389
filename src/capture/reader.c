#include "capture/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "base/crc.h"
#include "base/vec.h"

#define MOST_OP_BYTES (UINT64_C(4) << 30)
#define MOST_CONTENT  (UINT64_C(1) << 40)

struct chunk {
    uint64_t off;
    uint32_t raw, packed;
};
struct mg_cap_reader {
    const uint8_t *file;
    uint64_t bytes;
    uint8_t *ops;
    uint64_t n_ops_bytes, cap_ops;
    MG_VEC(struct chunk) chunks; /* from number 1 */
    struct mg_cap_end end;
    uint32_t version, chain; /* the crc of the frame before */
    ZSTD_DCtx *zstd;
};

/* ---- frames ------------------------------------------------------------------------------------------ */

static bool unpack(struct mg_cap_reader *r, const uint8_t *from, uint32_t packed, uint8_t *to, uint32_t raw)
{
    if (packed == raw) {
        memcpy(to, from, raw);
        return true;
    }
    return ZSTD_decompressDCtx(r->zstd, to, raw, from, packed) == raw;
}

static const char *add_ops(struct mg_cap_reader *r, const uint8_t *from, const struct mg_cap_frame *f)
{
    uint64_t need = r->n_ops_bytes + f->raw_bytes;
    if (need > MOST_OP_BYTES) return "its list of operations is too long";
    if (need > r->cap_ops) {
        uint64_t cap = MG_MAX(need, 2 * r->cap_ops);
        void *more = realloc(r->ops, cap);
        if (!more) return "there is no memory for its list of operations";
        r->ops = more;
        r->cap_ops = cap;
    }
    if (!unpack(r, from, f->packed_bytes, r->ops + r->n_ops_bytes, f->raw_bytes)) return "a frame does not unpack";
    r->n_ops_bytes = need;
    return NULL;
}

static const char *read_frame(struct mg_cap_reader *r, uint64_t *at, bool *ended)
{
    struct mg_cap_frame f;
    if (r->bytes - *at < sizeof f) return "it ends within a frame; the program may have been killed";
    memcpy(&f, r->file + *at, sizeof f);
    const uint8_t *payload = r->file + *at + sizeof f;
    if (f.magic != MG_CAP_FRAME_MAGIC || f.crc != mg_crc32c(r->chain, &f, offsetof(struct mg_cap_frame, crc)))
        return "a frame's head is damaged, or the frame is not in its place";
    if (r->version > MG_CAP_OLDEST) r->chain = f.crc;
    if (f.raw_bytes > MG_CAP_FRAME_MOST || f.packed_bytes > f.raw_bytes)
        return "a frame claims more than frames may have";
    if (f.packed_bytes > r->bytes - *at - sizeof f) return "it ends within a frame; the program may have been killed";
    if (f.payload_crc != mg_crc32c(0, payload, f.packed_bytes)) return "a frame is damaged";
    if (f.type == MG_CAP_DATA) {
        if (!f.raw_bytes || f.raw_bytes > MG_CAP_CHUNK) return "a chunk has the wrong size";
        *mg_vec_push(&r->chunks) = (struct chunk){*at + sizeof f, f.raw_bytes, f.packed_bytes};
    } else if (f.type == MG_CAP_OPS) {
        const char *why = add_ops(r, payload, &f);
        if (why) return why;
    } else if (f.type == MG_CAP_END && f.raw_bytes == sizeof r->end && f.packed_bytes == f.raw_bytes) {
        memcpy(&r->end, payload, sizeof r->end);
        *ended = true;
    } else {
        return "it has a frame of no known type";
    }
    *at += sizeof f + f.packed_bytes;
    return NULL;
}

/* ---- operations ---------------------------------------------------------------------------------------- */

static bool number(const struct mg_cap_reader *r, uint64_t *off, uint64_t *v)
{
    *v = 0;
    for (unsigned shift = 0; shift < 64 && *off < r->n_ops_bytes; shift += 7) {
        uint8_t b = r->ops[(*off)++];
        *v |= (uint64_t)(b & 127) << shift;
        if (!(b & 128)) return true;
    }
    return false;
}

/* False: the bytes are no operation. */
static bool read_op(const struct mg_cap_reader *r, struct mg_cap_op *op)
{
    uint64_t kind, n, bytes;
    if (!number(r, &op->off, &kind) || kind >= MG_CAP_OP_COUNT || !number(r, &op->off, &n) ||
        n < mg_cap_op_words((uint32_t)kind) || n > r->n_ops_bytes - op->off)
        return false;
    if (n > op->cap) {
        uint64_t *more = realloc(op->room, n * sizeof *more);
        if (!more) return false;
        op->room = more;
        op->cap = (uint32_t)n;
    }
    for (uint64_t k = 0; k < n; k++)
        if (!number(r, &op->off, &op->room[k])) return false;
    if (!number(r, &op->off, &bytes) || bytes > r->n_ops_bytes - op->off) return false;
    op->kind = (uint32_t)kind;
    op->n_words = (uint32_t)n;
    op->words = op->room;
    op->payload = r->ops + op->off;
    op->payload_bytes = bytes;
    op->off += bytes;
    return true;
}

uint64_t mg_cap_content_bytes(const struct mg_cap_op *op)
{
    switch (op->kind) {
    case MG_CAP_image:
    case MG_CAP_write:
    case MG_CAP_left:
        return op->words[1];
    case MG_CAP_copy3d:
        return op->words[MG_CAP_C_HOST_BYTES];
    default:
        return 0;
    }
}

/* Has the operation the chunks that its content takes, and do they fit? */
static const char *check_content(const struct mg_cap_reader *r, const struct mg_cap_op *op)
{
    uint64_t bytes = mg_cap_content_bytes(op);
    uint32_t fixed = mg_cap_op_words(op->kind), n = op->n_words - fixed;
    if (!mg_cap_has_content(op->kind)) return NULL;
    if (bytes > MOST_CONTENT) return "an operation's content is too long";
    if (bytes <= MG_CAP_INLINE)
        return n || op->payload_bytes != bytes ? "an operation has not the content that it claims" : NULL;
    if (n != (bytes + MG_CAP_CHUNK - 1) / MG_CAP_CHUNK || op->payload_bytes)
        return "an operation has not the content that it claims";
    for (uint32_t k = 0; k < n; k++) {
        uint64_t c = op->words[fixed + k], want = MG_MIN(bytes - (uint64_t)k * MG_CAP_CHUNK, (uint64_t)MG_CAP_CHUNK);
        if (c > r->chunks.n || (c && r->chunks.at[c - 1].raw != want))
            return "an operation names a chunk that is not there";
    }
    return NULL;
}

static const char *check_ops(const struct mg_cap_reader *r)
{
    struct mg_cap_op op = {0};
    uint64_t n = 0, launches = 0;
    const char *why = NULL;
    for (; !why && op.off < r->n_ops_bytes; n++) {
        why = read_op(r, &op) ? check_content(r, &op) : "an operation is malformed";
        if (!why && op.kind == MG_CAP_launch && op.words[MG_CAP_L_NUMBER] != launches++)
            why = "its launches are not numbered in order";
    }
    mg_cap_op_release(&op);
    if (!why && (n != r->end.n_ops || r->n_ops_bytes != r->end.op_bytes || r->chunks.n != r->end.n_chunks ||
                 launches != r->end.n_launches))
        why = "its parts do not add up to what its end says";
    return why;
}

bool mg_cap_next(const struct mg_cap_reader *r, struct mg_cap_op *op)
{
    if (op->off >= r->n_ops_bytes) return false;
    op->at += op->off != 0;
    return read_op(r, op);
}

void mg_cap_op_release(struct mg_cap_op *op)
{
    free(op->room);
    *op = (struct mg_cap_op){0};
}

const struct mg_cap_end *mg_cap_totals(const struct mg_cap_reader *r)
{
    return &r->end;
}

bool mg_cap_content(struct mg_cap_reader *r, const struct mg_cap_op *op, void *to, const char **why)
{
    uint64_t bytes = mg_cap_content_bytes(op);
    uint32_t fixed = mg_cap_op_words(op->kind);
    if (bytes <= MG_CAP_INLINE) {
        if (bytes) memcpy(to, op->payload, bytes);
        return true;
    }
    for (uint32_t k = fixed; k < op->n_words; k++) {
        uint64_t at = (uint64_t)(k - fixed) * MG_CAP_CHUNK, c = op->words[k];
        uint8_t *out = (uint8_t *)to + at;
        if (!c) {
            memset(out, 0, MG_MIN(bytes - at, (uint64_t)MG_CAP_CHUNK));
        } else if (!unpack(r, r->file + r->chunks.at[c - 1].off, r->chunks.at[c - 1].packed, out,
                           r->chunks.at[c - 1].raw)) {
            *why = "a chunk does not unpack";
            return false;
        }
    }
    return true;
}

/* ---- open ------------------------------------------------------------------------------------------------ */

static const char *read_file(struct mg_cap_reader *r)
{
    struct mg_cap_head h;
    uint64_t at = sizeof h;
    bool ended = false;
    if (r->bytes < sizeof h) return "it is too short";
    memcpy(&h, r->file, sizeof h);
    if (memcmp(h.magic, MG_CAP_MAGIC, sizeof h.magic) || h.crc != mg_crc32c(0, &h, offsetof(struct mg_cap_head, crc)))
        return "it does not begin as one";
    if (h.version < MG_CAP_OLDEST || h.version > MG_CAP_VERSION) return "another version of Margay wrote it";
    r->version = h.version;
    while (!ended) {
        const char *why = read_frame(r, &at, &ended);
        if (why) return why;
    }
    return at != r->bytes ? "something follows its end" : check_ops(r);
}

enum mg_err mg_cap_reader_open(const char *path, struct mg_cap_reader **out, struct mg_diag *d)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    *out = NULL;
    if (fd < 0 || fstat(fd, &st)) {
        int e = errno;
        if (fd >= 0) close(fd);
        return mg_diag_err(d, MG_ERR_IO, "%s: %s", path, strerror(e));
    }
    struct mg_cap_reader *r = calloc(1, sizeof *r);
    void *file = S_ISREG(st.st_mode) && st.st_size > 0 ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0)
                                                       : MAP_FAILED;
    close(fd);
    if (r && file != MAP_FAILED) {
        r->file = file;
        r->bytes = (uint64_t)st.st_size;
    }
    const char *why = !r || !(r->zstd = ZSTD_createDCtx()) ? "there is no memory"
                      : file == MAP_FAILED                 ? "it is empty or no file"
                                                           : read_file(r);
    if (why) {
        enum mg_err err = mg_diag_err(d, MG_ERR_INPUT, "%s: not a whole capture: %s", path, why);
        mg_cap_reader_close(r);
        return err;
    }
    *out = r;
    return MG_ERR_OK;
}

void mg_cap_reader_close(struct mg_cap_reader *r)
{
    if (!r) return;
    if (r->file) munmap((void *)(uintptr_t)r->file, r->bytes);
    ZSTD_freeDCtx(r->zstd);
    mg_vec_release(&r->chunks);
    free(r->ops);
    free(r);
}

int64_t mg_cap_launches(const char *path)
{
    struct last {
        struct mg_cap_frame f;
        struct mg_cap_end end;
    } last = {0};
    FILE *f = fopen(path, "rb");
    if (!f) return -1;
    bool read = !fseek(f, -(long)sizeof last, SEEK_END) && fread(&last, sizeof last, 1, f) == 1;
    fclose(f);
    bool ends = read && last.f.magic == MG_CAP_FRAME_MAGIC && last.f.type == MG_CAP_END &&
                last.f.payload_crc == mg_crc32c(0, &last.end, sizeof last.end);
    return ends && last.end.n_launches <= INT64_MAX ? (int64_t)last.end.n_launches : -1;
}
