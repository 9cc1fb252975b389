/* image: containers made here byte by byte, whole and broken. */
#include "test.h"

#include <stdlib.h>
#include <zstd.h>

#include "base/buf.h"
#include "image/image.h"
#include "image/known.h"
#include "image/packed.h"

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n";

static void put(struct mg_buf *b, uint64_t v, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++) mg_buf_addc(b, (char)(v >> 8 * i));
}

static void put_entry(struct mg_buf *b, unsigned kind, unsigned sm, uint64_t flags, const void *data, size_t n,
                      size_t unpacked)
{
    size_t padded = (n + 7) & ~(size_t)7;
    put(b, kind, 2), put(b, 0x101, 2), put(b, 64, 4), put(b, padded, 8), put(b, n, 4), put(b, 0, 4);
    put(b, 0, 2), put(b, 7, 2), put(b, sm, 4), put(b, 0, 8), put(b, flags, 8), put(b, 0, 8), put(b, unpacked, 8);
    mg_buf_add(b, data, n);
    put(b, 0, (unsigned)(padded - n));
}

/* A fatbin with the same PTX raw (sm_70), as LZ4 (sm_80) and as zstd (sm_90a). */
static void make_fatbin(struct mg_buf *b)
{
    struct mg_buf body = MG_BUF_INIT, lz4 = MG_BUF_INIT;
    char z[256];
    size_t n = sizeof ptx, zn = ZSTD_compress(z, sizeof z, ptx, n, 1);
    mg_buf_addc(&lz4, (char)0xf0); /* literals only */
    mg_buf_addc(&lz4, (char)(n - 15));
    mg_buf_add(&lz4, ptx, n);
    put_entry(&body, 1, 70, 0x11, ptx, n, 0);
    put_entry(&body, 1, 80, 0x2011, lz4.at, lz4.n, n);
    put_entry(&body, 1, 90, 0x108011, z, zn, n);
    put(b, 0xba55ed50, 4), put(b, 1, 2), put(b, 16, 2), put(b, body.n, 8);
    mg_buf_add(b, body.at, body.n);
    mg_buf_release(&body);
    mg_buf_release(&lz4);
}

MG_TEST(image_fatbin_entries_of_every_packing)
{
    struct mg_buf b = MG_BUF_INIT;
    struct mg_image *im = NULL;
    make_fatbin(&b);
    MG_CHECK_EQ(mg_image_open_bytes(b.at, b.n, "x", &im, NULL), MG_ERR_OK);
    MG_CHECK_EQ(im->n_entries, 3);
    for (uint32_t i = 0; i < im->n_entries; i++) {
        MG_CHECK_STR(im->entries[i].data, ptx);
        MG_CHECK_EQ(im->entries[i].bytes, strlen(ptx));
    }
    MG_CHECK_EQ(im->entries[2].suffix, 'a');
    MG_CHECK_EQ(mg_image_best_ptx(im, 0, 75)->sm, 70);
    MG_CHECK_EQ(mg_image_best_ptx(im, 0, 90)->sm, 90);
    MG_CHECK_EQ(mg_image_best_ptx(im, 0, 100)->sm, 80); /* sm_90a runs on 9.0 alone */
    MG_CHECK(!mg_image_best_ptx(im, 0, 60));
    MG_CHECK(!mg_image_best_ptx(im, 1, 90));
    mg_image_free(im);
    MG_CHECK_EQ(mg_image_open_memory(b.at, &im, NULL), MG_ERR_OK);
    MG_CHECK_EQ(im->kind, MG_IMAGE_FATBIN);
    mg_image_free(im);
    struct {
        uint32_t magic, version;
        const void *data, *list;
    } w = {0x466243b1, 1, b.at, NULL};
    MG_CHECK_EQ(mg_image_open_memory(&w, &im, NULL), MG_ERR_OK);
    MG_CHECK_EQ(im->n_entries, 3);
    mg_image_free(im);
    const void *list[] = {b.at, NULL};
    w.version = 2;
    w.list = list;
    MG_CHECK_EQ(mg_image_open_memory(&w, &im, NULL), MG_ERR_OK);
    MG_CHECK_EQ(im->n_entries, 6);
    MG_CHECK(im->entries[3].relocatable && im->entries[3].group == 1);
    mg_image_free(im);
    mg_buf_release(&b);
}

MG_TEST(image_broken_fatbins_are_refused_not_followed)
{
    struct mg_buf b = MG_BUF_INIT;
    make_fatbin(&b);
    for (size_t n = 0; n < b.n; n++) { /* every truncation */
        struct mg_image *im = NULL;
        struct mg_diag d = MG_DIAG_INIT;
        char *copy = malloc(n ? n : 1);
        memcpy(copy, b.at, n);
        MG_CHECK(mg_image_open_bytes(copy, n, "x", &im, &d) != MG_ERR_OK);
        MG_CHECK(d.n_errors);
        mg_diag_release(&d);
        free(copy);
    }
    for (size_t at = 0; at < b.n; at++) { /* every byte turned over: whatever comes, no crash */
        struct mg_image *im = NULL;
        b.at[at] = (char)~b.at[at];
        if (!mg_image_open_bytes(b.at, b.n, "x", &im, NULL)) mg_image_free(im);
        b.at[at] = (char)~b.at[at];
    }
    mg_buf_release(&b);
}

MG_TEST(image_text_and_other_things)
{
    struct mg_image *im = NULL;
    struct mg_diag d = MG_DIAG_INIT;
    MG_CHECK_EQ(mg_image_open_memory("// c\n/* d */ .version 7.0\n.target sm_86\n", &im, NULL), MG_ERR_OK);
    MG_CHECK_EQ(im->kind, MG_IMAGE_PTX);
    MG_CHECK_EQ(im->entries[0].sm, 86);
    mg_image_free(im);
    MG_CHECK_EQ(mg_image_open_memory("", &im, &d), MG_ERR_INPUT);
    MG_CHECK_EQ(mg_image_open_memory("int main;", &im, &d), MG_ERR_INPUT);
    MG_CHECK_EQ(mg_image_open_memory(NULL, &im, &d), MG_ERR_INPUT);
    MG_CHECK_EQ(mg_image_open_bytes("\x7f"
                                    "ELF",
                                    4, "x", &im, &d),
                MG_ERR_INPUT);
    MG_CHECK_EQ(d.n_errors, 4);
    MG_CHECK(!mg_image_is_static_cudart("/proc/self/exe"));
    MG_CHECK(!mg_image_is_static_cudart("/nonexistent"));
    mg_diag_release(&d);
}

MG_TEST(image_lz4_block)
{
    /* "abcd" then 12 bytes copied from 4 back, then "!" */
    static const uint8_t in[] = {0x48, 'a', 'b', 'c', 'd', 4, 0, 0x10, '!'};
    uint8_t out[32];
    MG_CHECK_EQ(mg_lz4_block(in, sizeof in, out, sizeof out), 17);
    MG_CHECK(!memcmp(out, "abcdabcdabcdabcd!", 17));
    MG_CHECK_EQ(mg_lz4_block(in, sizeof in, out, 16), -1);
    MG_CHECK_EQ(mg_lz4_block(in, 6, out, sizeof out), -1);
    static const uint8_t far[] = {0x10, 'a', 9, 0};
    MG_CHECK_EQ(mg_lz4_block(far, sizeof far, out, sizeof out), -1);
}

/* A cubin without sections: 64 bytes that only its hash tells from another. */
static void make_cubin(uint8_t out[64], uint8_t mark)
{
    memset(out, 0, 64);
    memcpy(out, "\177ELF\2\1\1", 7);
    out[18] = 190; /* e_machine: EM_CUDA */
    out[58] = 64;  /* e_shentsize */
    out[8] = 8;    /* ABI version: compute capability in the second byte of the flags */
    out[49] = 90;
    out[24] = mark;
}

/* As one image, packed, they are both there again. */
static void check_pair(const struct mg_image_entry *code, const struct mg_image_entry *text, const uint8_t *cubin,
                       size_t bytes)
{
    struct mg_buf packed = MG_BUF_INIT;
    struct mg_image_unpacked u = {0};
    struct mg_image *im = NULL;
    mg_image_pack_pair(code, text, &packed);
    MG_CHECK(mg_image_unpack(packed.at, packed.n, &u));
    MG_CHECK_EQ(mg_image_open_memory(u.image, &im, NULL), MG_ERR_OK);
    MG_CHECK_EQ(im->kind, MG_IMAGE_FATBIN);
    MG_CHECK_EQ(im->n_entries, 2);
    if (im->n_entries == 2) {
        MG_CHECK_EQ(im->entries[0].kind, MG_ENTRY_CUBIN);
        MG_CHECK_EQ(im->entries[0].sm, 90);
        MG_CHECK(im->entries[0].bytes == bytes && !memcmp(im->entries[0].data, cubin, bytes));
        MG_CHECK_STR(mg_image_best_ptx(im, 0, 90)->data, ptx);
    }
    mg_image_free(im);
    mg_image_unpacked_release(&u);
    mg_buf_release(&packed);
}

MG_TEST(image_cubin_whose_ptx_is_known)
{
    uint8_t cubin[64], other[64];
    struct mg_image *im = NULL;
    make_cubin(cubin, 1);
    make_cubin(other, 2);
    MG_CHECK(mg_known_ptx_add(cubin, sizeof cubin, ptx, sizeof ptx));
    MG_CHECK(mg_known_ptx_add(cubin, sizeof cubin, "not this", 9)); /* the first stays */
    for (int k = 0; k < 2; k++) {
        MG_CHECK_EQ(k ? mg_image_open_memory(cubin, &im, NULL)
                      : mg_image_open_bytes(cubin, sizeof cubin, "x", &im, NULL),
                    MG_ERR_OK);
        const struct mg_image_entry *e = mg_image_best_ptx(im, 0, 90);
        MG_CHECK(e != NULL);
        if (e) {
            MG_CHECK_STR(e->data, ptx);
            MG_CHECK_EQ(e->bytes, strlen(ptx));
            MG_CHECK_EQ(e->sm, 70);
        }
        MG_CHECK_EQ(im->n_entries, 2);
        if (k) check_pair(&im->entries[1], &im->entries[0], cubin, sizeof cubin);
        mg_image_free(im);
    }
    MG_CHECK_EQ(mg_image_open_bytes(other, sizeof other, "x", &im, NULL), MG_ERR_OK);
    MG_CHECK_EQ(im->n_entries, 1); /* the machine code alone */
    MG_CHECK(!mg_image_best_ptx(im, 0, 90));
    MG_CHECK_EQ(im->entries[0].sm, 90);
    mg_image_free(im);
}
