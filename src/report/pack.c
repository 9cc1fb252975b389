/* Parts of a page's data: JSON as an LZ4 block in base 64. The page's script unpacks them (page/pack.js). */
#include <lz4hc.h>
#include <stdlib.h>

#include "report/page.h"

enum { LEVEL = 9 };

static void add_base64(struct mg_buf *out, const uint8_t *p, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *at = mg_buf_room(out, (n + 2) / 3 * 4 + 1);
    for (size_t i = 0; i < n; i += 3) {
        uint32_t v = (uint32_t)p[i] << 16 | (i + 1 < n ? (uint32_t)p[i + 1] << 8 : 0) | (i + 2 < n ? p[i + 2] : 0);
        *at++ = digits[v >> 18];
        *at++ = digits[v >> 12 & 63];
        *at++ = i + 1 < n ? digits[v >> 6 & 63] : '=';
        *at++ = i + 2 < n ? digits[v & 63] : '=';
    }
    *at = 0;
    out->n += (n + 2) / 3 * 4;
}

void mg_pack_part(struct mg_buf *out, const char *name, const char *text, size_t bytes)
{
    mg_assert(bytes <= LZ4_MAX_INPUT_SIZE);
    int room = LZ4_compressBound((int)bytes);
    char *packed = mg_xmalloc((size_t)room);
    int n = LZ4_compress_HC(text, packed, (int)bytes, room, LEVEL);
    mg_assert(n > 0);
    mg_buf_printf(out, "<script type=\"application/octet-stream\" id=\"data-%s\" data-bytes=\"%zu\">", name, bytes);
    add_base64(out, (const uint8_t *)packed, (size_t)n);
    mg_buf_adds(out, "</script>\n");
    free(packed);
}
