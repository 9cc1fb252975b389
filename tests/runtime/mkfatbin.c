/* mkfatbin FILE.ptx SM OUT.S: an assembler source that holds the PTX uncompressed in the container
 * that nvcc puts into host objects: a header, one PTX entry, and the wrapper under the name `fatbin`. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct header {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t bytes; /* after the header */
};
struct entry {
    uint16_t kind, version;
    uint32_t header_bytes;
    uint64_t bytes; /* of the payload, padded to 8 */
    uint32_t compressed_bytes, options_off;
    uint16_t ptx_minor, ptx_major;
    uint32_t sm, name_off, name_bytes;
    uint64_t flags, zero, uncompressed_bytes;
};

static void put(FILE *f, const void *p, size_t bytes)
{
    const unsigned char *b = p;
    for (size_t i = 0; i < bytes; i++) fprintf(f, i % 16 ? ",%u" : "\n.byte %u", b[i]);
}

int main(int argc, char **argv)
{
    FILE *in = argc == 4 ? fopen(argv[1], "rb") : NULL, *out = in ? fopen(argv[3], "w") : NULL;
    if (!out) return fprintf(stderr, "usage: mkfatbin FILE.ptx SM OUT.S\n"), 2;
    char *text = calloc(1, 1 << 24);
    size_t n = fread(text, 1, (1 << 24) - 8, in), padded = (n + 8) / 8 * 8; /* at least one NUL */
    unsigned major = 0, minor = 0;
    const char *version = strstr(text, ".version");
    if (!version || sscanf(version, ".version %u.%u", &major, &minor) != 2) return fprintf(stderr, "no .version\n"), 3;
    struct entry e = {.kind = 1,
                      .version = 0x101,
                      .header_bytes = sizeof e,
                      .bytes = padded,
                      .ptx_major = (uint16_t)major,
                      .ptx_minor = (uint16_t)minor,
                      .sm = (uint32_t)atoi(argv[2]),
                      .flags = 0x11};
    struct header h = {.magic = 0xba55ed50, .version = 1, .header_bytes = sizeof h, .bytes = sizeof e + padded};
    _Static_assert(sizeof h == 16 && sizeof e == 64, "as the container has it");
    fprintf(out, ".section .nv_fatbin, \"a\"\n.align 8\nfatbin_data:");
    put(out, &h, sizeof h);
    put(out, &e, sizeof e);
    put(out, text, padded);
    fprintf(out, "\n.section .nvFatBinSegment, \"aw\"\n.align 8\n.globl fatbin\n.hidden fatbin\nfatbin:\n"
                 ".long 0x466243b1, 1\n.quad fatbin_data, 0\n.section .note.GNU-stack,\"\",@progbits\n");
    return fclose(out) ? 3 : 0;
}
