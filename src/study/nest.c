#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "study/nest.h"

/* Opcodes of pickles, as pickletools names them. */
enum {
    PROTO = 0x80,
    STOP = '.',
    MARK = '(',
    EMPTY_DICT = '}',
    SETITEMS = 'u',
    EMPTY_LIST = ']',
    APPENDS = 'e',
    BINUNICODE = 'X',
    BININT = 'J',
    LONG1 = 0x8a
};

void mg_nest_begin(struct mg_nest *n, struct mg_buf *out, bool is_pickle)
{
    n->out = out;
    n->is_pickle = is_pickle;
    if (!is_pickle) {
        mg_json_init(&n->json, out, 1);
        return;
    }
    mg_buf_addc(out, (char)PROTO);
    mg_buf_addc(out, 2);
}

void mg_nest_end(struct mg_nest *n)
{
    mg_buf_addc(n->out, n->is_pickle ? STOP : '\n');
}

static void open_pickle(struct mg_nest *n, char what)
{
    mg_buf_addc(n->out, what);
    mg_buf_addc(n->out, MARK);
}

void mg_nest_dict(struct mg_nest *n)
{
    if (n->is_pickle)
        open_pickle(n, EMPTY_DICT);
    else
        mg_json_obj(&n->json);
}

void mg_nest_list(struct mg_nest *n)
{
    if (n->is_pickle)
        open_pickle(n, EMPTY_LIST);
    else
        mg_json_arr(&n->json);
}

void mg_nest_close_dict(struct mg_nest *n)
{
    if (n->is_pickle)
        mg_buf_addc(n->out, SETITEMS);
    else
        mg_json_end(&n->json, '}');
}

void mg_nest_close_list(struct mg_nest *n)
{
    if (n->is_pickle)
        mg_buf_addc(n->out, APPENDS);
    else
        mg_json_end(&n->json, ']');
}

static void add_little_endian(struct mg_buf *out, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++) mg_buf_addc(out, (char)(v >> 8 * i & 0xff));
}

void mg_nest_text(struct mg_nest *n, const char *v)
{
    if (!n->is_pickle) {
        mg_json_str(&n->json, v);
        return;
    }
    mg_buf_addc(n->out, BINUNICODE);
    add_little_endian(n->out, strlen(v), 4);
    mg_buf_adds(n->out, v);
}

void mg_nest_u64(struct mg_nest *n, uint64_t v)
{
    if (!n->is_pickle) {
        mg_json_u64(&n->json, v);
    } else if (v <= INT32_MAX) {
        mg_buf_addc(n->out, BININT);
        add_little_endian(n->out, v, 4);
    } else { /* signed, so that the top bit needs a byte more */
        mg_buf_addc(n->out, (char)LONG1);
        mg_buf_addc(n->out, 9);
        add_little_endian(n->out, v, 8);
        mg_buf_addc(n->out, 0);
    }
}

void mg_nest_key(struct mg_nest *n, const char *key)
{
    if (n->is_pickle)
        mg_nest_text(n, key);
    else
        mg_json_key(&n->json, key);
}

void mg_nest_key_u64(struct mg_nest *n, uint64_t key)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, key);
    if (n->is_pickle)
        mg_nest_u64(n, key);
    else
        mg_json_key(&n->json, text);
}
