#include "export/proto.h"

#include <string.h>

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2 };

static void add_varint(struct mg_buf *b, uint64_t v)
{
    for (; v >= 0x80; v >>= 7) mg_buf_addc(b, (char)(v | 0x80));
    mg_buf_addc(b, (char)v);
}

static void add_tag(struct mg_buf *b, uint32_t field, int wire)
{
    add_varint(b, (uint64_t)field << 3 | (uint64_t)wire);
}

void mg_proto_u64(struct mg_buf *b, uint32_t field, uint64_t v)
{
    add_tag(b, field, WIRE_VARINT);
    add_varint(b, v);
}

void mg_proto_i64(struct mg_buf *b, uint32_t field, int64_t v)
{
    mg_proto_u64(b, field, (uint64_t)v);
}

void mg_proto_fixed64(struct mg_buf *b, uint32_t field, uint64_t v)
{
    add_tag(b, field, WIRE_FIXED64);
    for (int i = 0; i < 8; i++) mg_buf_addc(b, (char)(v >> 8 * i));
}

/* Bytes of the UTF-8 sequence at `at`; 0: invalid. */
static size_t sequence_bytes(const unsigned char *at)
{
    size_t n = *at < 0x80                  ? 1
               : *at >= 0xc2 && *at < 0xe0 ? 2
               : (*at & 0xf0) == 0xe0      ? 3
               : *at >= 0xf0 && *at < 0xf5 ? 4
                                           : 0;
    for (size_t i = 1; i < n; i++)
        if ((at[i] & 0xc0) != 0x80) return 0;
    bool overlong = (n == 3 && at[0] == 0xe0 && at[1] < 0xa0) || (n == 4 && at[0] == 0xf0 && at[1] < 0x90);
    bool beyond = (n == 3 && at[0] == 0xed && at[1] >= 0xa0) || (n == 4 && at[0] == 0xf4 && at[1] >= 0x90);
    return overlong || beyond ? 0 : n;
}

void mg_proto_text(struct mg_buf *b, uint32_t field, const char *text)
{
    struct mg_buf valid = MG_BUF_INIT;
    for (const char *at = text; *at;) {
        size_t n = sequence_bytes((const unsigned char *)at);
        if (n)
            mg_buf_add(&valid, at, n);
        else
            mg_buf_adds(&valid, "\xef\xbf\xbd");
        at += n ? n : 1;
    }
    mg_proto_message(b, field, &valid);
    mg_buf_release(&valid);
}

void mg_proto_message(struct mg_buf *b, uint32_t field, const struct mg_buf *message)
{
    add_tag(b, field, WIRE_BYTES);
    add_varint(b, message->n);
    if (message->n) mg_buf_add(b, message->at, message->n);
}
