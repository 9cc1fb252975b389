/* Finding PTX in what a program or a driver call holds: plain text, fatbin wrappers and headers,
 * ELF files with .nv_fatbin sections, cubins with .nv_debug_ptx_txt. Every read is checked against
 * the bytes given; payloads are decompressed into the image's arena.
 *
 *   wrapper  u32 0x466243b1, u32 version 1|2, void *header, void *list of headers (version 2)
 *   header   u32 0xba55ed50, u16 1, u16 header bytes, u64 bytes behind the header
 *   entry    u16 kind, u16 0x101, u32 header bytes, u64 payload bytes (padded), u32 compressed bytes,
 *            u32 options at, u16 ISA minor, u16 major, u32 sm, u32 name at, u32 name bytes,
 *            u64 flags, u64 0, u64 unpacked bytes
 */
#include "image/image.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "image/beside.h"
#include "image/known.h"

#define WRAPPER_MAGIC 0x466243b1u
#define HEADER_MAGIC  0xba55ed50u
#define HEADER_BYTES  16
#define ENTRY_BYTES   64
#define MAX_UNPACKED  (1ull << 31)

enum entry_flags { FLAG_LZ4 = 0x2000, FLAG_ZSTD = 0x8000, FLAG_ARCH_SPECIFIC = 0x100000 };

struct bytes { /* what may be read */
    const uint8_t *p;
    size_t n;
};

struct reader {
    struct mg_image *im;
    struct mg_diag *d;
    const char *file;
    MG_VEC(struct mg_image_entry) entries;
    uint32_t groups;
    enum mg_err err;
};

static uint64_t get(const uint8_t *p, unsigned bytes)
{
    uint64_t v = 0;
    for (unsigned i = bytes; i; i--) v = v << 8 | p[i - 1];
    return v;
}

static void complain(struct reader *r, const char *what, uint64_t at)
{
    r->err = mg_diag_add(r->d, MG_ERR_INPUT, MG_SEV_ERROR, r->file, 0, 0, NULL, "%s (at byte %llu)", what,
                         (unsigned long long)at);
}

/* ---- fatbins --------------------------------------------------------------------------------------- */

static const char *text_at(struct reader *r, struct bytes h, uint64_t at, uint64_t len)
{
    if (!at || at >= h.n) return NULL;
    if (len > h.n - at) len = h.n - at;
    size_t n = strnlen((const char *)h.p + at, len);
    return n ? mg_arena_strndup(r->im->arena, (const char *)h.p + at, n) : NULL;
}

/* The options stand behind {u32 offset, u32 length} at opt_off. */
static const char *options_of(struct reader *r, struct bytes h, uint32_t opt_off)
{
    if (!opt_off || opt_off > h.n) return NULL;
    const char *plain = text_at(r, h, opt_off, h.n - opt_off);
    if (plain && (*plain == '-' || *plain == ' ')) return plain;
    if (h.n - opt_off < 8) return plain;
    return text_at(r, h, get(h.p + opt_off, 4), get(h.p + opt_off + 4, 4));
}

static bool payload(struct reader *r, struct bytes body, uint64_t flags, uint64_t packed, uint64_t unpacked,
                    struct mg_image_entry *e)
{
    char *out;
    if (!(flags & (FLAG_LZ4 | FLAG_ZSTD))) {
        out = mg_arena_try(r->im->arena, body.n + 1);
        if (!out) return false;
        memcpy(out, body.p, body.n);
        e->bytes = body.n;
    } else {
        if (packed > body.n || unpacked > MAX_UNPACKED) return false;
        if (flags & FLAG_LZ4 ? unpacked / 256 > packed : !mg_zstd_may_hold(body.p, packed, unpacked)) return false;
        out = mg_arena_try(r->im->arena, unpacked + 1);
        if (!out) return false;
        int64_t n = flags & FLAG_LZ4 ? mg_lz4_block(body.p, packed, (uint8_t *)out, unpacked)
                                     : mg_zstd_frame(body.p, packed, (uint8_t *)out, unpacked);
        if (n < 0) return false;
        e->bytes = (size_t)n;
    }
    out[e->bytes] = 0;
    if (e->kind == MG_ENTRY_PTX)
        while (e->bytes && !out[e->bytes - 1]) e->bytes--;
    e->data = out;
    return true;
}

/* One entry at b.p; returns its whole size or 0 when nothing more can be read. */
static uint64_t read_entry(struct reader *r, struct bytes b, bool relocatable)
{
    if (b.n < ENTRY_BYTES || get(b.p + 2, 2) != 0x101) {
        complain(r, "fatbin: malformed entry", 0);
        return 0;
    }
    uint64_t head = get(b.p + 4, 4), size = get(b.p + 8, 8), flags = get(b.p + 40, 8);
    if (head < ENTRY_BYTES || head > b.n || size > b.n - head) {
        complain(r, "fatbin: entry is larger than its fatbin", 0);
        return 0;
    }
    struct bytes h = {b.p, head}, body = {b.p + head, size};
    struct mg_image_entry e = {.kind = (enum mg_entry_kind)get(b.p, 2),
                               .sm = (uint32_t)get(b.p + 28, 4),
                               .flags = flags,
                               .group = r->groups,
                               .relocatable = relocatable};
    if (flags & FLAG_ARCH_SPECIFIC) e.suffix = 'a';
    e.options = options_of(r, h, (uint32_t)get(b.p + 20, 4));
    if (e.options && strstr(e.options, "--compile-only")) e.relocatable = true;
    e.name = text_at(r, h, get(b.p + 32, 4), get(b.p + 36, 4));
    bool keep = e.kind == MG_ENTRY_PTX || e.kind == MG_ENTRY_CUBIN;
    if (keep && !payload(r, body, flags, get(b.p + 16, 4), get(b.p + 56, 8), &e)) {
        r->err = mg_diag_add(r->d, MG_ERR_INPUT, MG_SEV_ERROR, r->file, 0, 0, NULL,
                             "fatbin: %s for sm_%u cannot be unpacked", e.kind == MG_ENTRY_PTX ? "PTX" : "machine code",
                             e.sm);
    } else {
        *mg_vec_push(&r->entries) = e;
    }
    return head + size;
}

/* A fatbin at b.p of which b.n bytes may be read. Returns its size, 0 when it is none. */
static uint64_t read_fatbin(struct reader *r, struct bytes b, bool relocatable)
{
    if (b.n < HEADER_BYTES || get(b.p, 4) != HEADER_MAGIC) return 0;
    uint64_t head = get(b.p + 6, 2), size = get(b.p + 8, 8);
    if (get(b.p + 4, 2) != 1 || head < HEADER_BYTES || head > b.n || size > b.n - head) {
        complain(r, "fatbin: header claims more bytes than there are", 0);
        return 0;
    }
    for (uint64_t at = head, end = head + size; at + ENTRY_BYTES <= end;) {
        uint64_t step = read_entry(r, (struct bytes){b.p + at, end - at}, relocatable);
        if (!step) break;
        at += step;
    }
    r->groups++;
    return head + size;
}

/* Fatbins one behind the other, as the linker joins a section. */
static void read_fatbin_section(struct reader *r, struct bytes b, bool relocatable)
{
    while (b.n >= HEADER_BYTES) {
        uint64_t used = read_fatbin(r, b, relocatable);
        if (!used) used = 8; /* padding, or a broken one: look for the next header */
        if (used > b.n) return;
        b.p += used;
        b.n -= used;
    }
}

/* ---- ELF --------------------------------------------------------------------------------------------- */

struct elf {
    struct bytes b;
    const uint8_t *sections;
    uint32_t n_sections, entry_bytes;
    struct bytes names;
};

static bool section_bytes(const struct elf *e, uint32_t ix, Elf64_Shdr *sh, struct bytes *out)
{
    if (ix >= e->n_sections) return false;
    memcpy(sh, e->sections + (size_t)ix * e->entry_bytes, sizeof *sh);
    *out = (struct bytes){e->b.p, 0};
    if (sh->sh_type == SHT_NOBITS) return true;
    if (sh->sh_offset > e->b.n || sh->sh_size > e->b.n - sh->sh_offset) return false;
    *out = (struct bytes){e->b.p + sh->sh_offset, sh->sh_size};
    return true;
}

static bool open_elf(struct elf *e, struct bytes b)
{
    Elf64_Ehdr h;
    Elf64_Shdr sh;
    if (b.n < sizeof h) return false;
    memcpy(&h, b.p, sizeof h);
    if (memcmp(h.e_ident, ELFMAG, SELFMAG) || h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_ident[EI_DATA] != ELFDATA2LSB)
        return false;
    if (h.e_shentsize < sizeof sh || h.e_shoff > b.n || (uint64_t)h.e_shnum * h.e_shentsize > b.n - h.e_shoff)
        return false;
    *e = (struct elf){.b = b, .sections = b.p + h.e_shoff, .n_sections = h.e_shnum, .entry_bytes = h.e_shentsize};
    return !h.e_shnum || section_bytes(e, h.e_shstrndx, &sh, &e->names);
}

static const char *section_name(const struct elf *e, const Elf64_Shdr *sh)
{
    if (sh->sh_name >= e->names.n || !memchr(e->names.p + sh->sh_name, 0, e->names.n - sh->sh_name)) return "";
    return (const char *)e->names.p + sh->sh_name;
}

/* sm and suffix from the text's own .target */
static void note_target(struct mg_image_entry *e)
{
    const char *t = strstr(e->data, ".target");
    for (t = t ? t + 7 : NULL; t && *t && *t != '\n'; t++) {
        if (strncmp(t, "sm_", 3) && strncmp(t, "compute_", 8)) continue;
        char *rest;
        e->sm = (uint32_t)strtoul(t + (*t == 's' ? 3 : 8), &rest, 10);
        if (*rest == 'a' || *rest == 'f') e->suffix = *rest;
        return;
    }
}

/* .nv_debug_ptx_txt: lines separated by NULs. */
static void read_debug_ptx(struct reader *r, struct bytes s)
{
    if (!s.n) return;
    char *text = mg_arena_alloc(r->im->arena, s.n + 1);
    for (size_t i = 0; i < s.n; i++) text[i] = s.p[i] ? (char)s.p[i] : '\n';
    size_t n = s.n;
    while (n && text[n - 1] == '\n') n--;
    text[n] = 0;
    struct mg_image_entry e = {.kind = MG_ENTRY_PTX, .group = r->groups++, .data = text, .bytes = n};
    note_target(&e);
    *mg_vec_push(&r->entries) = e;
}

/* The size a cubin in memory claims by its section and program headers. */
static uint64_t elf_extent(const uint8_t *p)
{
    Elf64_Ehdr h;
    memcpy(&h, p, sizeof h);
    if (h.e_ident[EI_CLASS] != ELFCLASS64) return 0;
    uint64_t end = sizeof h, at = h.e_shoff + (uint64_t)h.e_shnum * h.e_shentsize;
    if (at > end) end = at;
    at = h.e_phoff + (uint64_t)h.e_phnum * h.e_phentsize;
    if (at > end) end = at;
    for (uint32_t i = 0; i < h.e_shnum && h.e_shentsize >= sizeof(Elf64_Shdr); i++) {
        Elf64_Shdr sh;
        memcpy(&sh, p + h.e_shoff + (size_t)i * h.e_shentsize, sizeof sh);
        if (sh.sh_type != SHT_NOBITS && sh.sh_offset + sh.sh_size > end) end = sh.sh_offset + sh.sh_size;
    }
    return end;
}

/* The machine code itself, behind PTX that it carries or that its compiler left: in this process, or
 * on disk. */
static void add_cubin(struct reader *r, struct bytes b, const Elf64_Ehdr *h)
{
    uint32_t sm = h->e_ident[EI_ABIVERSION] >= 8 ? h->e_flags >> 8 & 0xff : h->e_flags & 0xff;
    uint64_t extent = elf_extent(b.p);
    b.n = MG_MIN(b.n, extent);
    size_t n;
    const char *text = r->entries.n ? NULL : mg_known_ptx_find(b.p, b.n, &n);
    char *found = r->entries.n || text || r->im->kind != MG_IMAGE_CUBIN ? NULL : mg_beside_find(b.p, b.n, &n);
    if (found) text = found;
    if (text) {
        struct mg_image_entry e = {.kind = MG_ENTRY_PTX, .data = mg_arena_strndup(r->im->arena, text, n), .bytes = n};
        note_target(&e);
        *mg_vec_push(&r->entries) = e;
    }
    free(found);
    *mg_vec_push(&r->entries) = (struct mg_image_entry){.kind = MG_ENTRY_CUBIN,
                                                        .sm = sm,
                                                        .data = mg_arena_copy(r->im->arena, b.p, b.n),
                                                        .bytes = b.n,
                                                        .relocatable = h->e_type == ET_REL};
}

static bool read_elf(struct reader *r, struct bytes b)
{
    struct elf e;
    Elf64_Ehdr h;
    if (!open_elf(&e, b)) return false;
    memcpy(&h, b.p, sizeof h);
    bool cubin = h.e_machine == EM_CUDA;
    r->im->kind = cubin ? MG_IMAGE_CUBIN : MG_IMAGE_ELF;
    for (uint32_t i = 0; i < e.n_sections; i++) {
        Elf64_Shdr sh;
        struct bytes s;
        if (!section_bytes(&e, i, &sh, &s)) {
            complain(r, "ELF: section lies outside the file", i);
            continue;
        }
        const char *name = section_name(&e, &sh);
        if (!strcmp(name, ".nv_fatbin"))
            read_fatbin_section(r, s, false);
        else if (!strcmp(name, "__nv_relfatbin"))
            read_fatbin_section(r, s, true);
        else if (cubin && !strcmp(name, ".nv_debug_ptx_txt"))
            read_debug_ptx(r, s);
    }
    if (cubin) add_cubin(r, b, &h);
    return true;
}

uint32_t mg_cubin_kernels(const void *cubin, size_t bytes, void (*fn)(void *user, const char *name), void *user)
{
    static const char own[] = ".nv.constant0."; /* the parameters: kernels have it, functions do not */
    struct elf e;
    uint32_t n = 0;
    if (!open_elf(&e, (struct bytes){cubin, bytes})) return 0;
    for (uint32_t i = 0; i < e.n_sections; i++) {
        Elf64_Shdr sh;
        struct bytes s;
        if (!section_bytes(&e, i, &sh, &s)) continue;
        const char *name = section_name(&e, &sh);
        if (strncmp(name, own, sizeof own - 1)) continue;
        fn(user, name + sizeof own - 1);
        n++;
    }
    return n;
}

static bool find_section(const struct elf *e, const char *name, struct bytes *out)
{
    Elf64_Shdr sh;
    for (uint32_t i = 0; i < e->n_sections; i++)
        if (section_bytes(e, i, &sh, out) && !strcmp(section_name(e, &sh), name)) return true;
    return false;
}

/* Section .nv.info is a list of attributes {format, id, 16 bits}; format 4 is followed by that many
 * bytes, of which REGCOUNT has two words: index of the symbol, registers. */
uint32_t mg_cubin_registers(const void *cubin, size_t bytes,
                            void (*fn)(void *user, const char *name, uint32_t registers), void *user)
{
    enum { SIZED = 4, REGCOUNT = 0x2f };
    struct elf e;
    struct bytes info, symbols, names;
    uint32_t n = 0;
    if (!open_elf(&e, (struct bytes){cubin, bytes}) || !find_section(&e, ".nv.info", &info) ||
        !find_section(&e, ".symtab", &symbols) || !find_section(&e, ".strtab", &names))
        return 0;
    for (size_t at = 0; at + 4 <= info.n;) {
        uint8_t format = info.p[at], id = info.p[at + 1];
        uint16_t size;
        uint32_t words[2];
        Elf64_Sym sym;
        memcpy(&size, info.p + at + 2, 2);
        at += 4;
        if (format != SIZED) continue;
        if (size > info.n - at) break;
        if (id == REGCOUNT && size >= sizeof words) {
            memcpy(words, info.p + at, sizeof words);
            if (words[0] < symbols.n / sizeof sym) {
                memcpy(&sym, symbols.p + words[0] * sizeof sym, sizeof sym);
                if (sym.st_name < names.n && memchr(names.p + sym.st_name, 0, names.n - sym.st_name)) {
                    fn(user, (const char *)names.p + sym.st_name, words[1]);
                    n++;
                }
            }
        }
        at += size;
    }
    return n;
}

/* ---- opening ------------------------------------------------------------------------------------------- */

static void begin(struct reader *r, const char *file, struct mg_diag *d)
{
    *r = (struct reader){.d = d, .file = file};
    r->im = mg_xcalloc(1, sizeof *r->im);
    r->im->arena = mg_xcalloc(1, sizeof *r->im->arena);
}

static enum mg_err finish(struct reader *r, struct mg_image **out)
{
    r->im->n_entries = r->entries.n;
    if (r->entries.n) r->im->entries = mg_arena_copy(r->im->arena, r->entries.at, r->entries.n * sizeof *r->entries.at);
    mg_vec_release(&r->entries);
    bool ok = r->im->kind != MG_IMAGE_UNKNOWN && (!r->err || r->im->n_entries);
    if (ok) {
        *out = r->im;
        return MG_ERR_OK;
    }
    mg_image_free(r->im);
    if (r->err) return r->err;
    return mg_diag_add(r->d, MG_ERR_INPUT, MG_SEV_ERROR, r->file, 0, 0,
                       "PTX text, a fatbin, a cubin or an ELF file is expected", "this is no CUDA image");
}

static bool looks_like_ptx(struct bytes b)
{
    size_t at = 0, end = b.n;
    while (at < end) {
        if (b.p[at] == ' ' || (b.p[at] >= '\t' && b.p[at] <= '\r')) {
            at++;
        } else if (end - at >= 2 && b.p[at] == '/' && b.p[at + 1] == '/') {
            while (at < end && b.p[at] != '\n') at++;
        } else if (end - at >= 2 && b.p[at] == '/' && b.p[at + 1] == '*') {
            for (at += 2; at + 1 < end && !(b.p[at] == '*' && b.p[at + 1] == '/'); at++) continue;
            at += 2;
        } else {
            return b.p[at] == '.' || b.p[at] == '@';
        }
    }
    return false;
}

static void add_ptx_text(struct reader *r, struct bytes b)
{
    while (b.n && !b.p[b.n - 1]) b.n--;
    r->im->kind = MG_IMAGE_PTX;
    struct mg_image_entry e = {
        .kind = MG_ENTRY_PTX, .data = mg_arena_strndup(r->im->arena, (const char *)b.p, b.n), .bytes = b.n};
    note_target(&e);
    *mg_vec_push(&r->entries) = e;
}

enum mg_err mg_image_open_bytes(const void *p, size_t bytes, const char *file, struct mg_image **out, struct mg_diag *d)
{
    struct reader r;
    struct bytes b = {p, bytes};
    *out = NULL;
    begin(&r, file, d);
    if (bytes >= 4 && get(b.p, 4) == HEADER_MAGIC) {
        r.im->kind = MG_IMAGE_FATBIN;
        read_fatbin_section(&r, b, false);
        if (!r.groups && !r.err) complain(&r, "fatbin: cut off in its header", bytes);
    } else if (bytes >= SELFMAG && !memcmp(p, ELFMAG, SELFMAG)) {
        if (!read_elf(&r, b)) complain(&r, "ELF: malformed or not 64-bit little-endian", 0);
    } else if (looks_like_ptx(b)) {
        add_ptx_text(&r, b);
    }
    return finish(&r, out);
}

static void read_fatbin_memory(struct reader *r, const void *p, bool relocatable)
{
    const uint8_t *h = p;
    if (!h || get(h, 4) != HEADER_MAGIC) {
        complain(r, "fatbin: wrapper points at something else", 0);
        return;
    }
    (void)read_fatbin(r, (struct bytes){h, get(h + 6, 2) + get(h + 8, 8)}, relocatable);
}

enum mg_err mg_image_open_memory(const void *p, struct mg_image **out, struct mg_diag *d)
{
    struct reader r;
    const uint8_t *b = p;
    *out = NULL;
    if (!p) return mg_diag_err(d, MG_ERR_INPUT, "image is a null pointer");
    begin(&r, NULL, d);
    /* text may be as short as one byte: look at a character only when those before it are no NUL */
    size_t n = strnlen(p, 4);
    uint32_t magic = n == 4 || (n >= 1 && *b == 0x50) || (n >= 1 && *b == 0xb1) ? (uint32_t)get(b, 4) : 0;
    r.im->start = p;
    if (magic == WRAPPER_MAGIC) {
        struct {
            uint32_t magic, version;
            const void *header;
            const void *const *list;
        } w;
        memcpy(&w, p, sizeof w);
        r.im->kind = MG_IMAGE_FATBIN_WRAPPER;
        r.im->start = w.header;
        read_fatbin_memory(&r, w.header, false);
        for (; w.version == 2 && w.list && *w.list; w.list++) read_fatbin_memory(&r, *w.list, true);
    } else if (magic == HEADER_MAGIC) {
        r.im->kind = MG_IMAGE_FATBIN;
        read_fatbin_memory(&r, p, false);
    } else if (n == 4 && !memcmp(p, ELFMAG, SELFMAG)) {
        if (!read_elf(&r, (struct bytes){p, elf_extent(p)}))
            complain(&r, "ELF: malformed or not 64-bit little-endian", 0);
    } else {
        struct bytes text = {p, strlen(p)};
        if (looks_like_ptx(text)) add_ptx_text(&r, text);
    }
    return finish(&r, out);
}

void mg_image_free(struct mg_image *im)
{
    if (!im) return;
    mg_arena_release(im->arena);
    free(im->arena);
    free(im);
}

const struct mg_image_entry *mg_image_best_ptx(const struct mg_image *im, uint32_t group, uint32_t sm)
{
    const struct mg_image_entry *best = NULL;
    for (uint32_t i = 0; i < im->n_entries; i++) {
        const struct mg_image_entry *e = &im->entries[i];
        if (e->kind != MG_ENTRY_PTX || e->group != group || e->sm > sm) continue;
        if (e->suffix == 'a' && e->sm != sm) continue;
        if (e->suffix == 'f' && e->sm / 10 != sm / 10) continue;
        if (!best || e->sm > best->sm || (e->sm == best->sm && e->suffix && !best->suffix)) best = e;
    }
    return best;
}
