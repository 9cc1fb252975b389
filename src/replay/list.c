/* What a capture holds, one operation a line. */
#include "replay/replay.h"

#include <stdio.h>

static void print_text(const struct mg_cap_op *op)
{
    printf(" \"");
    for (size_t k = 0; k < op->payload_bytes; k++)
        putchar(op->payload[k] == 0 ? ' ' : op->payload[k] < 32 || op->payload[k] > 126 ? '?' : op->payload[k]);
    printf("\"");
}

static void print_launch(const struct mg_replay *r, const struct mg_cap_op *op)
{
    const uint64_t *w = op->words;
    printf("launch %llu kernel=%llu grid=%llu,%llu,%llu block=%llu,%llu,%llu stream=%llu",
           (unsigned long long)w[MG_CAP_L_NUMBER], (unsigned long long)w[MG_CAP_L_KERNEL],
           (unsigned long long)w[MG_CAP_L_GRID], (unsigned long long)w[MG_CAP_L_GRID + 1],
           (unsigned long long)w[MG_CAP_L_GRID + 2], (unsigned long long)w[MG_CAP_L_BLOCK],
           (unsigned long long)w[MG_CAP_L_BLOCK + 1], (unsigned long long)w[MG_CAP_L_BLOCK + 2],
           (unsigned long long)w[MG_CAP_L_STREAM]);
    if (w[MG_CAP_L_WHY]) printf(" not replayed: %s", r->reasons.at[w[MG_CAP_L_WHY] - 1]);
    putchar('\n');
}

int mg_replay_list(struct mg_replay *r)
{
    struct mg_cap_op op = {0};
    while (mg_cap_next(r->reader, &op)) {
        uint32_t n = mg_cap_op_words(op.kind);
        if (op.kind == MG_CAP_launch) {
            print_launch(r, &op);
            continue;
        }
        printf("%s", mg_cap_op_name(op.kind));
        for (uint32_t k = 0; k < n; k++)
            printf(op.words[k] >> 32 ? " 0x%llx" : " %llu", (unsigned long long)op.words[k]);
        if (op.kind == MG_CAP_run || op.kind == MG_CAP_kernel || op.kind == MG_CAP_variable ||
            op.kind == MG_CAP_uncaptured)
            print_text(&op);
        putchar('\n');
    }
    mg_cap_op_release(&op);
    return MG_REPLAY_OK;
}
