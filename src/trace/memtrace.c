#include "trace/memtrace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"

enum { RECORD = MG_MEMTRACE_RECORD, TYPE_SHIFT = 28, MOST_SIZE = (1 << TYPE_SHIFT) - 1, PLAIN_VERSION = 0x19 };
const uint8_t mg_memtrace_head[MG_MEMTRACE_HEAD] = {0x1a, 'C', 'U', 'D', 'A', 'T', 'R', 'A', 'C', 'E'};
const char *const mg_memtrace_atomics[MG_MEMTRACE_ATOMICS] = {"add", "sub", "exch", "min", "max", "inc",
                                                              "dec", "cas", "and",  "or",  "xor"};

void mg_memtrace_pack(const struct mg_memtrace_record *r, uint8_t out[RECORD])
{
    uint64_t words[3] = {(uint64_t)r->sm << 32 | (uint64_t)(r->type & 15) << TYPE_SHIFT | (r->size & MOST_SIZE),
                         r->address,
                         (uint64_t)r->cta[0] << 32 | (uint64_t)(r->cta[1] & 0xffff) << 16 | (r->cta[2] & 0xffff)};
    memcpy(out, words, RECORD);
}

static struct mg_memtrace_record unpack(const uint8_t *at)
{
    uint64_t words[3];
    memcpy(words, at, RECORD);
    return (struct mg_memtrace_record){
        .sm = (uint32_t)(words[0] >> 32),
        .type = (uint32_t)(words[0] >> TYPE_SHIFT) & 15,
        .size = (uint32_t)words[0] & MOST_SIZE,
        .address = words[1],
        .cta = {(uint32_t)(words[2] >> 32), (uint32_t)(words[2] >> 16) & 0xffff, (uint32_t)words[2] & 0xffff}};
}

struct parser {
    const uint8_t *at, *end, *start;
    bool is_thesis;
    FILE *to;
    const char *kernel;
    size_t kernel_bytes;
    uint64_t launches, n;
};

static enum mg_err fail_at(const struct parser *p, const char *what, struct mg_diag *d)
{
    return mg_diag_err(d, MG_ERR_INPUT, "byte %zu: %s", (size_t)(p->at - p->start), what);
}

static void tell(struct parser *p, const struct mg_memtrace_record *r, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++, p->n++) {
        const char *name = p->is_thesis && r->type >= 3 && r->type - 3 < (uint32_t)MG_MEMTRACE_ATOMICS
                               ? mg_memtrace_atomics[r->type - 3]
                               : "atomic";
        uint32_t plain = r->type - p->is_thesis;
        if (!p->to) continue;
        fputc('"', p->to);
        for (size_t k = 0; k < p->kernel_bytes; k++) {
            if (p->kernel[k] == '"') fputc('"', p->to);
            fputc(p->kernel[k], p->to);
        }
        fprintf(p->to, "\",%" PRIu64 ",%u,%s,%u,0x%" PRIx64 ",%u,%u,%u\n", p->launches - 1, r->sm,
                plain == 0   ? "load"
                : plain == 1 ? "store"
                             : name,
                r->size, r->address + (uint64_t)r->size * i, r->cta[0], r->cta[1], r->cta[2]);
    }
}

static bool has(const struct parser *p, size_t bytes)
{
    return (size_t)(p->end - p->at) >= bytes;
}

static bool is_zero(const uint8_t *at)
{
    for (int i = 0; i < RECORD; i++)
        if (at[i]) return false;
    return true;
}

static enum mg_err parse_thesis(struct parser *p, struct mg_diag *d)
{
    if (!has(p, 2) || p->at[0] != RECORD || p->at[1] != '\n')
        return fail_at(p, "it does not begin with 24 and a newline", d);
    for (p->at += 2; p->at < p->end;) {
        const uint8_t *newline = memchr(p->at, '\n', (size_t)(p->end - p->at));
        if (!newline) return fail_at(p, "the name of a kernel does not end", d);
        p->kernel = (const char *)p->at;
        p->kernel_bytes = (size_t)(newline - p->at);
        p->launches++;
        for (p->at = newline + 1;; p->at += RECORD) {
            if (!has(p, RECORD)) return fail_at(p, "the records of a kernel do not end", d);
            if (is_zero(p->at)) break;
            struct mg_memtrace_record r = unpack(p->at);
            tell(p, &r, 1);
        }
        p->at += RECORD;
    }
    return MG_ERR_OK;
}

static enum mg_err parse_successor(struct parser *p, struct mg_diag *d)
{
    bool plain = has(p, (size_t)MG_MEMTRACE_HEAD) && p->at[0] == PLAIN_VERSION;
    if (!has(p, (size_t)MG_MEMTRACE_HEAD) || memcmp(p->at + 1, mg_memtrace_head + 1, (size_t)MG_MEMTRACE_HEAD - 1) ||
        (!plain && p->at[0] != mg_memtrace_head[0]))
        return fail_at(p, "it does not begin as a file of cuda-memtrace, version 2 or 3", d);
    for (p->at += (size_t)MG_MEMTRACE_HEAD; p->at < p->end;) {
        uint8_t what = *p->at;
        size_t bytes = what == MG_MEMTRACE_KERNEL ? 3 : what == MG_MEMTRACE_ONE ? 1 + RECORD : 1 + RECORD + 2;
        if (what != MG_MEMTRACE_KERNEL && what != MG_MEMTRACE_ONE && (what != MG_MEMTRACE_RUN || plain))
            return fail_at(p, "an entry of an unknown kind", d);
        if (!has(p, bytes)) return fail_at(p, "the last entry is torn", d);
        if (what == MG_MEMTRACE_KERNEL) {
            size_t name = (size_t)p->at[1] | (size_t)p->at[2] << 8;
            if (!has(p, bytes + name)) return fail_at(p, "the name of a kernel is torn", d);
            p->kernel = (const char *)p->at + 3;
            p->kernel_bytes = name;
            p->launches++;
            bytes += name;
        } else {
            if (!p->launches) return fail_at(p, "a record in front of the first kernel", d);
            struct mg_memtrace_record r = unpack(p->at + 1);
            tell(p, &r, what == MG_MEMTRACE_ONE ? 1 : (uint32_t)p->at[1 + RECORD] | (uint32_t)p->at[2 + RECORD] << 8);
        }
        p->at += bytes;
    }
    return MG_ERR_OK;
}

enum mg_err mg_memtrace_parse(const uint8_t *at, size_t bytes, bool is_thesis, FILE *to, uint64_t *n, struct mg_diag *d)
{
    struct parser p = {.at = at, .start = at, .end = at + bytes, .is_thesis = is_thesis, .to = to};
    enum mg_err err = is_thesis ? parse_thesis(&p, d) : parse_successor(&p, d);
    *n = p.n;
    return err;
}

enum mg_err mg_memtrace_read(const char *path, const char *format, const char *out, uint64_t *n, struct mg_diag *d)
{
    char *data;
    size_t bytes;
    *n = 0;
    enum mg_err err = mg_io_read(path, &data, &bytes, d);
    if (err) return err;
    struct mg_io_part part = {0};
    bool standard = !strcmp(out, "-");
    if (!standard) err = mg_io_part_open(&part, out, d);
    FILE *to = standard ? stdout : part.file;
    if (!err) fputs("kernel,launch,sm,type,bytes,address,cta_x,cta_y,cta_z\n", to);
    if (!err) err = mg_memtrace_parse((const uint8_t *)data, bytes, !strcmp(format, "thesis"), to, n, d);
    free(data);
    enum mg_err end =
        standard ? MG_ERR_OK : mg_io_part_close(&part, MG_ERR_OK, d); /* what stands before damage stays */
    if (!standard) return err ? err : end;
    if (!err && (fflush(to) || ferror(to)))
        err = mg_diag_err(d, MG_ERR_IO, "cannot write standard output: %s", strerror(errno));
    return err;
}
