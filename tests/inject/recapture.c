/* recapture IN OUT WHAT: writes a capture again with one thing changed.
 *   content    the first byte of the first content that is written to memory
 *   left       the first byte of what a launch left beside other threads
 *   arguments  the byte at 8 of the first launch's arguments
 *   launch     the first launch is left out, and the others' numbers count from it
 *   checks     all checks are left out
 *   waits      all waits are left out
 *   randomN    words of one operation in eight, by the seed N
 *   KIND.N=V   word N of the first operation of that kind, which may follow its last one; more by N=V behind commas
 *   reason     the first launch names a reason why it cannot be replayed */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/reader.h"
#include "capture/writer.h"

/* Some other number. */
static uint64_t other(uint64_t w)
{
    switch (rand() % 7) {
    case 0:
        return 0;
    case 1:
        return w + 1;
    case 2:
        return w ^ UINT64_C(1) << rand() % 64;
    case 3:
        return UINT64_MAX - (uint64_t)(rand() % 9);
    case 4:
        return w * 2;
    case 5:
        return (uint64_t)rand() % 64;
    default:
        return w + 4096;
    }
}

/* "launch.2=7,3=8"; how many words there are then. 0: it is no such change, or of another kind. */
static uint32_t set_words(const char *what, uint32_t kind, uint64_t *words, uint32_t n)
{
    const char *at = strchr(what, '.');
    char *end;
    if (!at || strlen(mg_cap_op_name(kind)) != (size_t)(at - what) ||
        strncmp(what, mg_cap_op_name(kind), (size_t)(at - what)))
        return 0;
    do {
        uint32_t k = (uint32_t)strtoul(at + 1, &end, 10);
        if (k >= 64 || *end != '=') return 0;
        words[k] = strtoull(end + 1, &end, 10);
        n = n > k ? n : k + 1;
        at = end;
    } while (*at == ',');
    return n;
}

int main(int argc, char **argv)
{
    struct mg_cap_reader *r;
    struct mg_cap_writer w;
    struct mg_cap_op op = {0};
    const char *why;
    bool done = false;
    if (argc != 4 || mg_cap_reader_open(argv[1], &r, NULL) || mg_cap_writer_open(&w, argv[2], NULL)) return 2;
    bool random = !strncmp(argv[3], "random", 6);
    srand(random ? (unsigned)atoi(argv[3] + 6) : 0);
    done = random;
    while (mg_cap_next(r, &op)) {
        uint64_t words[64];
        uint32_t n = mg_cap_op_words(op.kind);
        size_t bytes = mg_cap_content_bytes(&op);
        char *content = malloc(bytes + 1), payload[65536];
        if (op.payload_bytes > sizeof payload || op.n_words > 64 + bytes || !mg_cap_content(r, &op, content, &why))
            return 3;
        bool has_content =
            op.kind == MG_CAP_write || op.kind == MG_CAP_left || op.kind == MG_CAP_image || op.kind == MG_CAP_copy3d;
        n = has_content ? n : op.n_words;
        memcpy(words, op.words, n * sizeof *words);
        memcpy(payload, op.payload, op.payload_bytes);
        if (random && n && rand() % 8 == 0) {
            uint32_t k = (uint32_t)rand() % n;
            bool numbers = has_content && (op.kind == MG_CAP_copy3d ? k == MG_CAP_C_HOST_BYTES
                                                                    : k == 1); /* the reader sees to these */
            if (!numbers && !(op.kind == MG_CAP_launch && k == MG_CAP_L_NUMBER)) words[k] = other(words[k]);
        }
        if (!done && !strcmp(argv[3], "content") && op.kind == MG_CAP_write) content[0] ^= 1, done = true;
        if (!done && !strcmp(argv[3], "left") && op.kind == MG_CAP_left) content[0] ^= 1, done = true;
        if (!done && !strcmp(argv[3], "arguments") && op.kind == MG_CAP_launch) payload[8] ^= 1, done = true;
        if (!done && !strcmp(argv[3], "reason") && op.kind == MG_CAP_launch) {
            mg_cap_put(&w, &(struct mg_cap_op_in){MG_CAP_uncaptured, (uint64_t[]){1}, 1, "it is a test", 12});
            words[MG_CAP_L_WHY] = 1, done = true;
        }
        uint32_t set = done ? 0 : set_words(argv[3], op.kind, words, n);
        if (set) n = set, done = true;
        if (!strcmp(argv[3], "checks") && op.kind == MG_CAP_check && (done = true)) goto next;
        if (!strcmp(argv[3], "waits") && op.kind == MG_CAP_wait && (done = true)) goto next;
        if (!strcmp(argv[3], "launch") && op.kind == MG_CAP_launch) {
            if (!done && (done = true)) continue;
            words[MG_CAP_L_NUMBER]--;
        }
        if (!strcmp(argv[3], "launch") && op.kind == MG_CAP_check && words[0]) words[0]--;
        struct mg_cap_op_in in = {op.kind, words, n, payload, op.payload_bytes};
        if (has_content)
            mg_cap_put_content(&w, &in, content, bytes);
        else
            mg_cap_put(&w, &in);
    next:
        free(content);
    }
    return done && mg_cap_writer_close(&w) ? 0 : 4;
}
