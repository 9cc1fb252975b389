/* Fuzz target: the bytes are a capture, or, behind a first byte that is odd, a list of operations for which head,
 * frame, sums and END are made, so that what lies behind these is reached, too. Whatever they hold, opening gives an
 * error that names the path, or a reader whose operations, contents and images can all be read. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/crc.h"
#include "base/io.h"
#include "capture/reader.h"
#include "fuzz.h"
#include "scratch.h"
#include "image/image.h"
#include "image/packed.h"

/* Returns the frame's crc, which goes on from that of the frame before. */
static uint32_t add_frame(struct mg_buf *out, uint32_t before, enum mg_cap_frame_type type, const void *data,
                          size_t bytes)
{
    struct mg_cap_frame f = {
        .magic = MG_CAP_FRAME_MAGIC, .type = type, .raw_bytes = (uint32_t)bytes, .packed_bytes = (uint32_t)bytes};
    f.payload_crc = mg_crc32c(0, data, bytes);
    f.crc = mg_crc32c(before, &f, offsetof(struct mg_cap_frame, crc));
    mg_buf_add(out, &f, sizeof f);
    if (bytes) mg_buf_add(out, data, bytes);
    return f.crc;
}

/* A file with these operations and one chunk; the first bytes say what its END claims. */
static void wrap(const uint8_t *data, size_t bytes, struct mg_buf *out)
{
    struct mg_cap_head h = {.version = MG_CAP_VERSION};
    static const char chunk[1000];
    if (bytes < 2) return;
    struct mg_cap_end end = {.n_ops = data[0], .n_launches = data[1], .op_bytes = bytes - 2, .n_chunks = 1};
    memcpy(h.magic, MG_CAP_MAGIC, sizeof h.magic);
    h.crc = mg_crc32c(0, &h, offsetof(struct mg_cap_head, crc));
    mg_buf_add(out, &h, sizeof h);
    uint32_t crc = add_frame(out, 0, MG_CAP_DATA, chunk, sizeof chunk);
    crc = add_frame(out, crc, MG_CAP_OPS, data + 2, bytes - 2);
    add_frame(out, crc, MG_CAP_END, &end, sizeof end);
}

static void read_image(const void *p, size_t bytes)
{
    struct mg_image_unpacked u;
    struct mg_image *im = NULL;
    if (!mg_image_unpack(p, bytes, &u)) return;
    for (uint32_t k = 0; k < u.n; k++)
        if (!mg_image_open_bytes(u.parts[k], u.sizes[k], NULL, &im, NULL)) mg_image_free(im);
    mg_image_unpacked_release(&u);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct mg_cap_reader *r = NULL;
    struct mg_cap_op op = {0};
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_buf made = MG_BUF_INIT;
    const char *why;
    if (!*path) prepare_file();
    if (bytes && data[0] & 1) wrap(data + 1, bytes - 1, &made);
    if (mg_io_write(path, made.n ? made.at : (const char *)data, made.n ? made.n : bytes, NULL)) abort();
    if (mg_cap_reader_open(path, &r, &d)) {
        if (!d.n_errors || !strstr(mg_diag_first(&d, MG_ERR_IO), path)) abort();
    } else {
        uint64_t n = 0;
        for (; mg_cap_next(r, &op); n++) {
            uint64_t room = mg_cap_content_bytes(&op);
            char *content = room < 1 << 20 ? malloc(room + 1) : NULL; /* more may be zeros alone */
            if (content && mg_cap_content(r, &op, content, &why) && op.kind == MG_CAP_image) read_image(content, room);
            free(content);
        }
        if (n != mg_cap_totals(r)->n_ops) abort();
    }
    mg_cap_op_release(&op);
    mg_cap_reader_close(r);
    mg_buf_release(&made);
    mg_diag_release(&d);
    return 0;
}
