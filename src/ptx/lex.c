/* Characters, space, names, strings, errors and recovery: what every part of the parser stands on. */
#include <stdarg.h>

#include "ptx/priv.h"

#define ID (CH_IDENT | CH_START)
#define HX (CH_IDENT | CH_START | CH_HEX)
#define DG (CH_IDENT | CH_DIGIT | CH_HEX)
const uint8_t mg_ptx_class[256] = {
    [' '] = CH_SPACE, ['\t'] = CH_SPACE, ['\n'] = CH_SPACE, ['\r'] = CH_SPACE, ['\v'] = CH_SPACE, ['\f'] = CH_SPACE,
    ['0'] = DG,       ['1'] = DG,        ['2'] = DG,        ['3'] = DG,        ['4'] = DG,        ['5'] = DG,
    ['6'] = DG,       ['7'] = DG,        ['8'] = DG,        ['9'] = DG,        ['A'] = HX,        ['B'] = HX,
    ['C'] = HX,       ['D'] = HX,        ['E'] = HX,        ['F'] = HX,        ['a'] = HX,        ['b'] = HX,
    ['c'] = HX,       ['d'] = HX,        ['e'] = HX,        ['f'] = HX,        ['G'] = ID,        ['H'] = ID,
    ['I'] = ID,       ['J'] = ID,        ['K'] = ID,        ['L'] = ID,        ['M'] = ID,        ['N'] = ID,
    ['O'] = ID,       ['P'] = ID,        ['Q'] = ID,        ['R'] = ID,        ['S'] = ID,        ['T'] = ID,
    ['U'] = ID,       ['V'] = ID,        ['W'] = ID,        ['X'] = ID,        ['Y'] = ID,        ['Z'] = ID,
    ['g'] = ID,       ['h'] = ID,        ['i'] = ID,        ['j'] = ID,        ['k'] = ID,        ['l'] = ID,
    ['m'] = ID,       ['n'] = ID,        ['o'] = ID,        ['p'] = ID,        ['q'] = ID,        ['r'] = ID,
    ['s'] = ID,       ['t'] = ID,        ['u'] = ID,        ['v'] = ID,        ['w'] = ID,        ['x'] = ID,
    ['y'] = ID,       ['z'] = ID,        ['_'] = ID,        ['$'] = ID,        ['%'] = CH_START,
};

void mg_ptx_skip_slow(struct parser *p)
{
    for (;;) {
        char c = *p->at;
        if (c == '\n') {
            p->line++;
            p->line_start = ++p->at;
        } else if (mg_ptx_class[(uint8_t)c] & CH_SPACE) {
            p->at++;
        } else if (c == '/' && p->at[1] == '/') {
            const char *nl = memchr(p->at, '\n', (size_t)(p->end - p->at));
            p->at = nl ? nl : p->end;
        } else if (c == '/' && p->at[1] == '*') {
            uint32_t line = p->line, col = mg_ptx_col(p);
            p->at += 2;
            while (p->at < p->end && !(p->at[0] == '*' && p->at[1] == '/')) {
                if (*p->at++ != '\n') continue;
                p->line++;
                p->line_start = p->at;
            }
            if (p->at >= p->end) {
                p->at = p->end;
                (void)mg_ptx_fail_at(p, line, col, "close it with */", "comment is never closed");
                return;
            }
            p->at += 2;
        } else {
            return;
        }
    }
}

/* ---- errors -------------------------------------------------------------------------------- */

static void add_error(struct parser *p, uint32_t line, uint32_t col, const char *hint, const char *fmt, va_list ap)
{
    p->n_errors++;
    if (!p->d) return;
    struct mg_buf b = MG_BUF_INIT;
    mg_buf_vprintf(&b, fmt, ap);
    (void)mg_diag_add(p->d, MG_ERR_INPUT, MG_SEV_ERROR, p->file, line, col, hint, "%s", b.at);
    mg_buf_release(&b);
}

bool mg_ptx_fail_at(struct parser *p, uint32_t line, uint32_t col, const char *hint, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    add_error(p, line, col, hint, fmt, ap);
    va_end(ap);
    return false;
}

bool mg_ptx_fail(struct parser *p, const char *hint, const char *fmt, ...)
{
    va_list ap;
    skip_space(p);
    va_start(ap, fmt);
    add_error(p, p->line, mg_ptx_col(p), hint, fmt, ap);
    va_end(ap);
    return false;
}

bool mg_ptx_expect(struct parser *p, char c, const char *after)
{
    if (take(p, c)) return true;
    if (p->at >= p->end)
        return mg_ptx_fail(p, "the text is cut off here", "expected '%c' after %s, found the end", c, after);
    unsigned char found = (unsigned char)*p->at;
    if (found < 0x20 || found >= 0x7f)
        return mg_ptx_fail(p, NULL, "expected '%c' after %s, found byte 0x%02x", c, after, found);
    return mg_ptx_fail(p, NULL, "expected '%c' after %s, found '%c'", c, after, found);
}

/* ---- words ----------------------------------------------------------------------------------- */

const char *mg_ptx_ident(struct parser *p, size_t *len)
{
    skip_space(p);
    const char *s = p->at;
    *len = 0;
    if (!is_start(*s)) return s;
    const char *e = s + 1;
    while (is_ident(*e)) e++;
    if (*s == '%' && e == s + 1) return s;
    p->at = e;
    *len = (size_t)(e - s);
    return s;
}

const char *mg_ptx_dot_word(struct parser *p, size_t *len)
{
    skip_space(p);
    *len = 0;
    if (*p->at != '.' || !is_ident(p->at[1])) return p->at;
    const char *s = ++p->at;
    while (is_ident(*p->at) || (p->at[0] == ':' && p->at[1] == ':' && is_ident(p->at[2])))
        p->at += *p->at == ':' ? 2 : 1;
    *len = (size_t)(p->at - s);
    return s;
}

bool mg_ptx_name(struct parser *p, const char *what, mg_str *out)
{
    size_t len;
    const char *s = mg_ptx_ident(p, &len);
    if (!len) return mg_ptx_fail(p, NULL, "expected the name of %s", what);
    *out = mg_intern_add(&p->m->names, s, len);
    return true;
}

bool mg_ptx_string(struct parser *p, mg_str *out)
{
    skip_space(p);
    if (*p->at != '"') return mg_ptx_fail(p, NULL, "expected a string in double quotes");
    uint32_t col = mg_ptx_col(p);
    const char *s = ++p->at;
    for (; *p->at != '"'; p->at++) {
        if (p->at >= p->end || *p->at == '\n')
            return mg_ptx_fail_at(p, p->line, col, NULL, "string is not closed on its line");
        if (*p->at == '\\' && p->at[1] && p->at[1] != '\n') p->at++;
    }
    *out = mg_intern_add(&p->m->names, s, (size_t)(p->at - s));
    p->at++;
    return true;
}

bool mg_ptx_u32(struct parser *p, const char *what, uint32_t *out)
{
    int64_t v;
    if (!mg_ptx_int(p, what, &v)) return false;
    if (v < 0 || v > UINT32_MAX) return mg_ptx_fail(p, NULL, "%s is out of range", what);
    *out = (uint32_t)v;
    return true;
}

mg_str mg_ptx_rest_of_line(struct parser *p)
{
    const char *s = p->at, *e = memchr(s, '\n', (size_t)(p->end - s));
    if (!e) e = p->end;
    p->at = e;
    for (const char *c = s; c + 1 < e; c++)
        if (c[0] == '/' && c[1] == '/') e = c;
    while (s < e && mg_ptx_class[(uint8_t)*s] & CH_SPACE) s++;
    while (s < e && mg_ptx_class[(uint8_t)e[-1]] & CH_SPACE) e--;
    return mg_intern_add(&p->m->names, s, (size_t)(e - s));
}

/* ---- recovery ---------------------------------------------------------------------------------- */

static bool begins_item(const char *s)
{
    static const char *const words[] = {".visible", ".entry", ".func",    ".weak", ".extern",
                                        ".global",  ".file",  ".section", ".const"};
    for (size_t i = 0; i < MG_COUNT_OF(words); i++)
        if (!strncmp(s, words[i], strlen(words[i]))) return true;
    return false;
}

/* A brace that stands first on its line is a block's, one inside a line most likely a vector's. */
static bool first_on_line(const struct parser *p)
{
    const char *s = p->at;
    while (s > p->line_start && mg_ptx_class[(uint8_t)s[-1]] & CH_SPACE) s--;
    return s == p->line_start;
}

void mg_ptx_recover(struct parser *p, bool in_body)
{
    uint32_t braces = 0;
    for (;;) {
        skip_space(p);
        if (p->at >= p->end) return;
        char c = *p->at;
        if (!in_body && !braces && p->at == p->line_start && begins_item(p->at)) return;
        if (in_body && (c == '{' || c == '}') && first_on_line(p)) return;
        if (c == '"') {
            const char *q = p->at + 1;
            while (q < p->end && *q != '"' && *q != '\n') q++;
            p->at = *q == '"' ? q + 1 : q;
            continue;
        }
        p->at++;
        if (c == '{')
            braces++;
        else if (c == '}' && braces && !--braces)
            return;
        else if (c == ';' && !braces)
            return;
    }
}
