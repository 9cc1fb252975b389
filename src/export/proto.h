/* Writing protocol buffers: fields at the end of a buffer. A nested message is built in a buffer of its own. */
#ifndef MG_EXPORT_PROTO_H
#define MG_EXPORT_PROTO_H

#include "base/buf.h"

void mg_proto_u64(struct mg_buf *b, uint32_t field, uint64_t v);
void mg_proto_i64(struct mg_buf *b, uint32_t field, int64_t v); /* int32 and int64; not sint */
void mg_proto_fixed64(struct mg_buf *b, uint32_t field, uint64_t v);
void mg_proto_text(struct mg_buf *b, uint32_t field, const char *text); /* invalid UTF-8 becomes U+FFFD */
void mg_proto_message(struct mg_buf *b, uint32_t field, const struct mg_buf *message);

#endif
