#include "capture/writer.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#include <zstd.h>

#include "base/crc.h"

enum { OPS_FRAME = 1 << 20, ZSTD_LEVEL = 1, PACK_LEAST = 128 };

static void fail(struct mg_cap_writer *w, int error)
{
    if (!w->failed) w->error = error;
    w->failed = true;
}

/* The threads are the application's: a file size limit fails the write instead of killing it. */
static ssize_t write_some(struct mg_cap_writer *w, struct iovec *v, int n)
{
    sigset_t limit, before, pending;
    sigemptyset(&limit);
    sigaddset(&limit, SIGXFSZ);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &limit, &before);
    ssize_t done = writev(w->fd, v, n);
    int error = errno;
    if (done < 0 && error == EFBIG && !sigismember(&pending, SIGXFSZ))
        sigtimedwait(&limit, NULL, &(struct timespec){0, 0});
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return done;
}

static void write_all(struct mg_cap_writer *w, struct iovec *v, int n)
{
    while (n && !w->failed) {
        ssize_t done = write_some(w, v, n);
        if (done < 0 && errno != EINTR) fail(w, errno);
        for (; n && done >= (ssize_t)v->iov_len; v++, n--) done -= (ssize_t)v->iov_len;
        if (n && done > 0) {
            v->iov_base = (char *)v->iov_base + done;
            v->iov_len -= (size_t)done;
        }
    }
}

static void write_frame(struct mg_cap_writer *w, enum mg_cap_frame_type type, const void *data, size_t bytes)
{
    struct mg_cap_frame f = {
        .magic = MG_CAP_FRAME_MAGIC, .type = type, .raw_bytes = (uint32_t)bytes, .packed_bytes = (uint32_t)bytes};
    const void *payload = data;
    if (bytes >= PACK_LEAST) {
        size_t n =
            ZSTD_compressCCtx(w->zstd, w->packed, ZSTD_compressBound(MG_CAP_FRAME_MOST), data, bytes, ZSTD_LEVEL);
        if (!ZSTD_isError(n) && n < bytes) {
            payload = w->packed;
            f.packed_bytes = (uint32_t)n;
        }
    }
    f.payload_crc = mg_crc32c(0, payload, f.packed_bytes);
    f.crc = w->chain = mg_crc32c(w->chain, &f, offsetof(struct mg_cap_frame, crc));
    write_all(w, (struct iovec[]){{&f, sizeof f}, {(void *)payload, f.packed_bytes}}, 2);
}

static void flush_ops(struct mg_cap_writer *w)
{
    if (w->ops.n) write_frame(w, MG_CAP_OPS, w->ops.at, w->ops.n);
    mg_buf_reset(&w->ops);
}

enum mg_err mg_cap_writer_open(struct mg_cap_writer *w, const char *path, struct mg_diag *d)
{
    struct mg_cap_head h = {.version = MG_CAP_VERSION};
    memcpy(h.magic, MG_CAP_MAGIC, sizeof h.magic);
    h.crc = mg_crc32c(0, &h, offsetof(struct mg_cap_head, crc));
    *w = (struct mg_cap_writer){.fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666)};
    if (w->fd < 0) return mg_diag_err(d, MG_ERR_IO, "%s: %s", path, strerror(errno));
    w->zstd = ZSTD_createCCtx();
    w->packed = malloc(ZSTD_compressBound(MG_CAP_FRAME_MOST));
    if (!w->zstd || !w->packed)
        fail(w, ENOMEM);
    else
        write_all(w, (struct iovec[]){{&h, sizeof h}}, 1);
    if (!w->failed) return MG_ERR_OK;
    mg_cap_writer_abandon(w);
    return mg_diag_err(d, MG_ERR_IO, "%s: %s", path, strerror(w->error));
}

static void add_number(struct mg_buf *b, uint64_t v)
{
    char *at = mg_buf_room(b, 10);
    size_t n = 0;
    for (; v >= 128; v >>= 7) at[n++] = (char)(v | 128);
    at[n++] = (char)v;
    b->n += n;
}

static bool is_zero(const char *p, size_t bytes)
{
    return !bytes || (!*p && !memcmp(p, p + 1, bytes - 1));
}

/* Number of the chunk with these bytes. Content is known by its 128 bits of hash. */
static uint32_t chunk_of(struct mg_cap_writer *w, const char *data, size_t bytes)
{
    uint64_t hash[2], at;
    if (is_zero(data, bytes)) return 0;
    mg_cap_hash(data, bytes, hash);
    if (mg_map_get(&w->chunks, hash[0], &at) && w->keys[at].second == hash[1]) return (uint32_t)at;
    if (w->n_chunks + 2 > w->cap) {
        uint32_t cap = w->cap ? 2 * w->cap : 1024;
        void *more = realloc(w->keys, cap * sizeof *w->keys);
        if (!more) {
            fail(w, ENOMEM);
            return 0;
        }
        w->keys = more;
        w->cap = cap;
    }
    uint32_t number = ++w->n_chunks;
    w->keys[number] = (struct chunk_key){hash[1]};
    mg_map_set(&w->chunks, hash[0], number);
    write_frame(w, MG_CAP_DATA, data, bytes);
    return number;
}

static void put_head(struct mg_cap_writer *w, const struct mg_cap_op_in *op, uint32_t more)
{
    mg_assert(op->n_words >= mg_cap_op_words(op->kind));
    add_number(&w->ops, op->kind);
    add_number(&w->ops, op->n_words + more);
    for (uint32_t k = 0; k < op->n_words; k++) add_number(&w->ops, op->words[k]);
}

static void put_payload(struct mg_cap_writer *w, const void *p, size_t bytes)
{
    add_number(&w->ops, bytes);
    if (bytes) mg_buf_add(&w->ops, p, bytes);
    w->end.n_ops++;
}

static void count(struct mg_cap_writer *w, const struct mg_cap_op_in *op, size_t before)
{
    w->end.op_bytes += w->ops.n - before;
    w->end.n_launches += op->kind == MG_CAP_launch;
    if (w->ops.n >= OPS_FRAME) flush_ops(w);
}

void mg_cap_put(struct mg_cap_writer *w, const struct mg_cap_op_in *op)
{
    size_t before = w->ops.n;
    if (w->failed) return;
    put_head(w, op, 0);
    put_payload(w, op->payload, op->payload_bytes);
    count(w, op, before);
}

void mg_cap_put_content(struct mg_cap_writer *w, const struct mg_cap_op_in *op, const void *data, uint64_t bytes)
{
    size_t before = w->ops.n;
    uint64_t n = bytes <= MG_CAP_INLINE ? 0 : (bytes + MG_CAP_CHUNK - 1) / MG_CAP_CHUNK;
    if (w->failed) return;
    if (!n) {
        put_head(w, op, 0);
        put_payload(w, data, bytes);
        count(w, op, before);
        return;
    }
    put_head(w, op, (uint32_t)n);
    for (uint64_t k = 0; k < n; k++)
        add_number(&w->ops, chunk_of(w, (const char *)data + k * MG_CAP_CHUNK,
                                     MG_MIN(bytes - k * MG_CAP_CHUNK, (uint64_t)MG_CAP_CHUNK)));
    put_payload(w, NULL, 0);
    count(w, op, before);
}

static void release(struct mg_cap_writer *w)
{
    if (w->fd >= 0) close(w->fd);
    ZSTD_freeCCtx(w->zstd);
    free(w->packed);
    free(w->keys);
    mg_map_release(&w->chunks);
    mg_buf_release(&w->ops);
    w->fd = -1;
}

bool mg_cap_writer_close(struct mg_cap_writer *w)
{
    flush_ops(w);
    w->end.n_chunks = w->n_chunks;
    write_frame(w, MG_CAP_END, &w->end, sizeof w->end);
    bool ok = !w->failed;
    release(w);
    return ok;
}

void mg_cap_writer_abandon(struct mg_cap_writer *w)
{
    w->failed = true;
    release(w);
}
