#include "image/packed.h"
#include "image/image.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC         "MGIMAGE1"
#define WRAPPER_MAGIC 0x466243b1u
#define FATBIN_MAGIC  0xba55ed50u

enum { PLAIN = 0, MOST_PARTS = 4096, ALIGN = 16 };
struct head {
    char magic[8];
    uint32_t version, n;
}; /* version: of the wrapper, PLAIN: none; then n sizes, then the parts */
struct wrapper {
    uint32_t magic, version;
    const void *header;
    const void *const *list;
};

static uint32_t word_of(const void *p)
{
    uint32_t w;
    memcpy(&w, p, sizeof w);
    return w;
}

static size_t fatbin_bytes(const uint8_t *p)
{
    uint16_t head;
    uint64_t body;
    memcpy(&head, p + 6, sizeof head);
    memcpy(&body, p + 8, sizeof body);
    return head + body;
}

static size_t elf_bytes(const uint8_t *p)
{
    Elf64_Ehdr h;
    Elf64_Shdr s;
    memcpy(&h, p, sizeof h);
    uint64_t end =
        MG_MAX(h.e_shoff + (uint64_t)h.e_shnum * h.e_shentsize, h.e_phoff + (uint64_t)h.e_phnum * h.e_phentsize);
    for (uint32_t i = 0; i < h.e_shnum && h.e_shentsize >= sizeof s; i++) {
        memcpy(&s, p + h.e_shoff + (size_t)i * h.e_shentsize, sizeof s);
        if (s.sh_type != SHT_NOBITS) end = MG_MAX(end, s.sh_offset + s.sh_size);
    }
    return end;
}

static size_t part_bytes(const void *p)
{
    size_t n = strnlen(p, 4);
    if (n == 4 && !memcmp(p, ELFMAG, SELFMAG)) return elf_bytes(p);
    if (n && *(const uint8_t *)p == (FATBIN_MAGIC & 255) && word_of(p) == FATBIN_MAGIC) return fatbin_bytes(p);
    return strlen(p) + 1;
}

static void add_padded(struct mg_buf *out, const void *p, size_t bytes)
{
    static const char zeros[ALIGN];
    mg_buf_add(out, p, bytes);
    mg_buf_add(out, zeros, (ALIGN - bytes % ALIGN) % ALIGN);
}

bool mg_image_pack(const void *image, struct mg_buf *out)
{
    const void *parts[MOST_PARTS] = {image};
    struct head h = {.magic = MAGIC, .version = PLAIN, .n = 1};
    if (*(const uint8_t *)image == (WRAPPER_MAGIC & 255) && word_of(image) == WRAPPER_MAGIC) {
        struct wrapper w;
        memcpy(&w, image, sizeof w);
        h.version = w.version;
        parts[0] = w.header;
        for (; w.version == 2 && w.list && *w.list; w.list++) {
            if (h.n == MOST_PARTS) return false;
            parts[h.n++] = *w.list;
        }
    }
    mg_buf_add(out, &h, sizeof h);
    for (uint32_t k = 0; k < h.n; k++) {
        uint64_t bytes = parts[k] ? part_bytes(parts[k]) : 0;
        if (!bytes) return false;
        mg_buf_add(out, &bytes, sizeof bytes);
    }
    if (h.n % 2) /* so that parts are aligned */
        mg_buf_add(out, &(uint64_t){0}, 8);
    for (uint32_t k = 0; k < h.n; k++) add_padded(out, parts[k], part_bytes(parts[k]));
    return true;
}

struct fatbin_head {
    uint32_t magic;
    uint16_t version, head_bytes;
    uint64_t body_bytes;
};
struct fatbin_entry { /* as fatbinary writes them */
    uint16_t kind, version;
    uint32_t head_bytes;
    uint64_t bytes; /* up to the next entry */
    uint32_t packed_bytes, options, minor_major, sm, name, name_bytes;
    uint64_t flags, zero, unpacked_bytes;
};
_Static_assert(sizeof(struct fatbin_head) == 16 && sizeof(struct fatbin_entry) == 64, "the file's");

static void add_entry(struct mg_buf *out, enum mg_entry_kind kind, uint32_t sm, uint32_t minor_major, const void *data,
                      size_t bytes)
{
    enum { WORDS_OF_64_AND_LINUX = 0x11, VERSION = 0x101 };
    size_t padded = (bytes + 7) & ~(size_t)7;
    struct fatbin_entry e = {.kind = (uint16_t)kind,
                             .version = VERSION,
                             .head_bytes = sizeof e,
                             .bytes = padded,
                             .minor_major = minor_major,
                             .sm = sm,
                             .flags = WORDS_OF_64_AND_LINUX};
    mg_buf_add(out, &e, sizeof e);
    mg_buf_add(out, data, bytes);
    mg_buf_add(out, &(uint64_t){0}, padded - bytes);
}

void mg_image_pack_pair(const struct mg_image_entry *cubin, const struct mg_image_entry *ptx, struct mg_buf *out)
{
    struct mg_buf body = MG_BUF_INIT, fatbin = MG_BUF_INIT;
    uint32_t abi = ((const uint8_t *)cubin->data)[EI_ABIVERSION];
    add_entry(&body, MG_ENTRY_CUBIN, cubin->sm, 1u << 16 | abi, cubin->data, cubin->bytes);
    add_entry(&body, MG_ENTRY_PTX, ptx->sm, 0, ptx->data, ptx->bytes + 1);
    struct fatbin_head h = {FATBIN_MAGIC, 1, sizeof h, body.n};
    mg_buf_add(&fatbin, &h, sizeof h);
    mg_buf_add(&fatbin, body.at, body.n);
    mg_image_pack(fatbin.at, out);
    mg_buf_release(&fatbin);
    mg_buf_release(&body);
}

static bool find_parts(const uint8_t *p, size_t bytes, const struct head *h, struct mg_image_unpacked *out)
{
    size_t at = (sizeof *h + 8 * (size_t)h->n + ALIGN - 1) / ALIGN * ALIGN;
    for (uint32_t k = 0; k < h->n; k++) {
        uint64_t size;
        memcpy(&size, p + sizeof *h + 8 * (size_t)k, sizeof size);
        if (at > bytes || !size || size > bytes - at) return false;
        const uint8_t *part = p + at;
        bool fatbin = size >= 16 && word_of(part) == FATBIN_MAGIC,
             elf = size >= sizeof(Elf64_Ehdr) && !memcmp(part, ELFMAG, SELFMAG);
        /* what the driver takes for its size must lie within; text ends */
        if (fatbin ? fatbin_bytes(part) > size : elf ? false : part[size - 1] != 0) return false;
        out->parts[k] = part;
        out->sizes[k] = size;
        at += (size + ALIGN - 1) / ALIGN * ALIGN;
    }
    return true;
}

bool mg_image_unpack(const void *p, size_t bytes, struct mg_image_unpacked *out)
{
    struct head h;
    *out = (struct mg_image_unpacked){0};
    if (bytes < sizeof h) return false;
    memcpy(&h, p, sizeof h);
    if (memcmp(h.magic, MAGIC, sizeof h.magic) || !h.n || h.n > MOST_PARTS || bytes < sizeof h + 8 * (size_t)h.n ||
        (h.version == PLAIN && h.n > 1))
        return false;
    struct wrapper *w = calloc(1, sizeof *w);
    out->room = w;
    out->parts = calloc(h.n + 1, sizeof *out->parts);
    out->sizes = calloc(h.n, sizeof *out->sizes);
    out->n = h.n;
    if (!w || !out->parts || !out->sizes || !find_parts(p, bytes, &h, out)) {
        mg_image_unpacked_release(out);
        return false;
    }
    *w = (struct wrapper){.magic = WRAPPER_MAGIC,
                          .version = h.version,
                          .header = out->parts[0],
                          .list = h.n > 1 ? (const void *const *)out->parts + 1 : NULL};
    out->image = h.version == PLAIN ? out->parts[0] : w;
    return true;
}

void mg_image_unpacked_release(struct mg_image_unpacked *u)
{
    free(u->room);
    free(u->parts);
    free(u->sizes);
    *u = (struct mg_image_unpacked){0};
}
