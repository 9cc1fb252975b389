/* One-liners: sites, clauses, statements and maps. After an error it goes on behind the next ';' or
 * '}', so that one run tells of all of them. */
#include "probe/expr_priv.h"

#include <stdlib.h>
#include <string.h>

#include "record/channel.h"
#include "record/event.h"

enum { MAX_TEXT = 16 << 10, MAX_MAPS = 64, MAX_VARS = 64, MAX_ERRORS = 20 };

void mg_expr_err(struct mg_expr_parser *p, uint32_t line, uint32_t col, const char *fmt, ...)
{
    struct mg_buf text = MG_BUF_INIT;
    va_list ap;
    va_start(ap, fmt);
    mg_buf_vprintf(&text, fmt, ap);
    va_end(ap);
    if (p->n_errors++ < MAX_ERRORS)
        (void)mg_diag_add(p->d, MG_ERR_INPUT, MG_SEV_ERROR, p->name, line, col, NULL, "%s", text.at);
    mg_buf_release(&text);
}

static bool is(const struct mg_expr_parser *p, const char *text)
{
    return mg_tok_is(&p->lex.tok, text);
}

static bool eat(struct mg_expr_parser *p, const char *text)
{
    if (!is(p, text)) return false;
    mg_lex_next(&p->lex);
    return true;
}

static bool want(struct mg_expr_parser *p, const char *text, const char *where)
{
    if (eat(p, text)) return true;
    mg_expr_err(p, p->lex.tok.line, p->lex.tok.col, "expected '%s' %s", text, where);
    return false;
}

static void skip_statement(struct mg_expr_parser *p)
{
    while (p->lex.tok.kind != MG_TOK_END && !is(p, ";") && !is(p, "}")) mg_lex_next(&p->lex);
}

/* ---- sites -------------------------------------------------------------------------------------- */

static const struct {
    const char *word;
    uint8_t where;
} places[] = {{"block", MG_EW_BLOCK},
              {"edge", MG_EW_EDGE},
              {"edge:back", MG_EW_BACK_EDGE},
              {"loop", MG_EW_LOOP},
              {"kernel:entry", MG_EW_KERNEL_ENTRY},
              {"kernel:exit", MG_EW_KERNEL_EXIT},
              {"function:entry", MG_EW_FUNC_ENTRY},
              {"function:exit", MG_EW_FUNC_EXIT},
              {"cta:entry", MG_EW_CTA_ENTRY}};

static const char *parse_glob(struct mg_expr_parser *p)
{
    mg_lex_pattern(&p->lex);
    const struct mg_tok t = p->lex.tok;
    if (t.kind != MG_TOK_PATTERN && t.kind != MG_TOK_STR) {
        mg_expr_err(p, t.line, t.col, "expected a name or a pattern here");
        return NULL;
    }
    mg_lex_next(&p->lex);
    return mg_arena_strndup(&p->e->arena, t.text, t.len);
}

static void parse_lines(struct mg_expr_parser *p, struct mg_expr_site *s)
{
    struct mg_tok t = p->lex.tok;
    if (t.kind != MG_TOK_NUM || t.num <= 0 || t.num > UINT32_MAX) {
        mg_expr_err(p, t.line, t.col, "expected a line or a range like 12-20");
        return;
    }
    s->line_lo = s->line_hi = (uint32_t)t.num;
    mg_lex_next(&p->lex);
    if (!eat(p, "-")) return;
    t = p->lex.tok;
    if (t.kind != MG_TOK_NUM || t.num < s->line_lo || t.num > UINT32_MAX)
        mg_expr_err(p, t.line, t.col, "expected the last line of the range");
    else
        s->line_hi = (uint32_t)t.num;
    mg_lex_next(&p->lex);
}

/* name=GLOB behind a site; false: something else stands here. */
static bool parse_filter(struct mg_expr_parser *p, struct mg_expr_site *s)
{
    struct {
        const char *name;
        const char **to;
    } names[] = {{"kernel", &s->kernel}, {"function", &s->function}, {"file", &s->file}, {"type", &s->type}};
    if (p->lex.tok.kind != MG_TOK_NAME) return false;
    struct mg_tok t = p->lex.tok;
    mg_lex_next(&p->lex);
    unsigned i = 0;
    while (i < MG_COUNT_OF(names) && !mg_tok_is(&t, names[i].name)) i++;
    bool line = mg_tok_is(&t, "line");
    if (i == MG_COUNT_OF(names) && !line) {
        mg_expr_err(
            p, t.line, t.col,
            "'%.*s' is no filter: kernel=, function=, file=, line= and type= are, before and after stand in front of the pattern",
            (int)t.len, t.text);
        return true;
    }
    if (!want(p, "=", "behind the filter's name")) return true;
    if (line)
        parse_lines(p, s);
    else
        *names[i].to = parse_glob(p);
    return true;
}

/* Words of an instruction's pattern that are no globs are PTX's: one that is misspelt would fire nowhere. */
static void check_words(struct mg_expr_parser *p, const struct mg_tok *t, const char *pattern)
{
    for (const char *w = pattern; *w;) {
        size_t n = strcspn(w, ".");
        bool glob = memchr(w, '*', n) || memchr(w, '?', n) || memchr(w, '[', n), first = w == pattern;
        if (!glob && !(first ? mg_expr_is_class(w, n) || mg_op_find(w, n) : mg_mod_find(w, n) != 0)) {
            mg_expr_err(
                p, t->line, t->col, "PTX has no %s '%.*s'%s", first ? "instruction" : "modifier", (int)n, w,
                first ? "; sites are instructions, load, store, atomic, access, block, edge, loop, kernel:entry ..."
                      : "; a glob fits words that are not known here");
            return;
        }
        w += n + (w[n] == '.');
    }
}

static void parse_pattern(struct mg_expr_parser *p, struct mg_expr_site *s)
{
    mg_lex_pattern(&p->lex);
    const struct mg_tok t = p->lex.tok;
    if (t.kind != MG_TOK_PATTERN) {
        mg_expr_err(p, t.line, t.col,
                    t.kind == MG_TOK_END
                        ? "the text ends where a site is expected"
                        : "expected a site: an opcode like ld.global, block, edge, loop, kernel:entry ...");
        s->pattern = "";
        if (t.kind != MG_TOK_END && !is(p, "{")) mg_lex_next(&p->lex);
        return;
    }
    s->pattern = mg_arena_strndup(&p->e->arena, t.text, t.len);
    for (unsigned i = 0; i < MG_COUNT_OF(places); i++)
        if (!strcmp(s->pattern, places[i].word)) s->where = places[i].where;
    if (s->where == MG_EW_INST && strchr(s->pattern, ':'))
        mg_expr_err(
            p, t.line, t.col,
            "there is no site '%s'; with a colon there are kernel:entry, kernel:exit, function:entry, function:exit, cta:entry and edge:back",
            s->pattern);
    else if (s->where == MG_EW_INST)
        check_words(p, &t, s->pattern);
    mg_lex_next(&p->lex);
}

static struct mg_expr_site *parse_site(struct mg_expr_parser *p)
{
    struct mg_expr_site *s = mg_arena_new(&p->e->arena, struct mg_expr_site);
    for (;;) {
        s->line = p->lex.tok.line;
        s->col = p->lex.tok.col;
        if (eat(p, "before"))
            s->position = MG_EP_BEFORE;
        else if (eat(p, "after"))
            s->position = MG_EP_AFTER;
        else if (eat(p, "issued"))
            s->issued = true;
        else
            break;
    }
    parse_pattern(p, s);
    while (parse_filter(p, s)) {
    }
    return s;
}

/* ---- statements ------------------------------------------------------------------------------------ */

static const char *const aggs[] = {NULL, "count", "sum", "min", "max", "avg", "hist", "lhist", "topk"};
_Static_assert(MG_COUNT_OF(aggs) == MG_EA_COUNT, "one name each");

const char *mg_expr_agg_text(enum mg_expr_agg a)
{
    return aggs[a];
}

static int64_t parse_constant(struct mg_expr_parser *p)
{
    static const struct mg_expr_env nothing;
    struct mg_tok t = p->lex.tok;
    struct mg_expr_const c = mg_expr_eval(mg_expr_parse_node(p), &nothing);
    if (!c.known || c.is_str) mg_expr_err(p, t.line, t.col, "expected a number that is known beforehand");
    return c.known && !c.is_str ? c.num : 0;
}

static void parse_agg(struct mg_expr_parser *p, struct mg_expr_map *m, struct mg_expr_update *up)
{
    struct mg_tok t = p->lex.tok;
    for (unsigned i = 1; i < MG_EA_COUNT; i++)
        if (mg_tok_is(&t, aggs[i])) m->agg = (uint8_t)i;
    if (t.kind != MG_TOK_END) mg_lex_next(&p->lex);
    if (!m->agg) {
        mg_expr_err(p, t.line, t.col, "expected what the map does: count, sum, min, max, avg, hist, lhist or topk");
        skip_statement(p);
        return;
    }
    if (!want(p, "(", "behind the map's aggregate")) return;
    if (m->agg != MG_EA_count && !p->inputs)
        up->value = mg_expr_parse_node(p);
    else if (p->inputs && is(p, ")")) {
    }
    if (m->agg == MG_EA_lhist) {
        t = p->lex.tok;
        if (!p->inputs) want(p, ",", "and lowest, highest value, width of a bucket: lhist(x, 0, 100, 10)");
        m->lo = parse_constant(p);
        want(p, ",", "and the highest value");
        m->hi = parse_constant(p);
        want(p, ",", "and the width of a bucket");
        m->step = parse_constant(p);
        const int64_t far = (int64_t)1 << 60; /* sums of these stay in range */
        if (m->lo < -far || m->hi > far || m->hi <= m->lo || m->step <= 0 || m->step > m->hi - m->lo ||
            (m->hi - m->lo + m->step - 1) / m->step > MG_EXPR_BUCKETS - 2)
            mg_expr_err(p, t.line, t.col, "lhist needs a range and at most %d buckets in it", MG_EXPR_BUCKETS - 2);
    } else if (m->agg == MG_EA_topk && (p->inputs ? !is(p, ")") : eat(p, ","))) {
        t = p->lex.tok;
        int64_t n = parse_constant(p);
        if (n < 1 || n > 1000)
            mg_expr_err(p, t.line, t.col, "topk shows between 1 and 1000 values");
        else
            m->top = (uint32_t)n;
    }
    want(p, ")", "behind the aggregate");
}

static struct mg_expr_map *find_map(struct mg_expr_parser *p, const struct mg_tok *t)
{
    struct mg_expr *e = p->e;
    for (uint32_t i = 0; i < e->n_maps; i++)
        if (strlen(e->maps[i].name) == t->len && !memcmp(e->maps[i].name, t->text, t->len)) return &e->maps[i];
    if (e->n_maps == MAX_MAPS) {
        mg_expr_err(p, t->line, t->col, "more than %d maps", MAX_MAPS);
        return &e->maps[0];
    }
    e->maps[e->n_maps] = (struct mg_expr_map){
        .name = mg_arena_strndup(&e->arena, t->text, t->len), .n_keys = UINT32_MAX, .line = t->line, .col = t->col};
    return &e->maps[e->n_maps++];
}

/* The map and the update have the same shape whenever they meet. */
static void join_map(struct mg_expr_parser *p, struct mg_expr_map *m, const struct mg_expr_map *now,
                     const struct mg_expr_update *up, const struct mg_tok *at)
{
    if (m->n_keys == UINT32_MAX) {
        *m = *now;
        for (uint32_t i = 0; i < m->n_keys; i++)
            m->key_names[i] = up->keys[i]->kind == MG_EK_STR ? "\"\"" : up->keys[i]->text;
        return;
    }
    if (m->agg != now->agg || m->lo != now->lo || m->hi != now->hi || m->step != now->step || m->top != now->top)
        mg_expr_err(p, at->line, at->col, "%s is a %s on line %u: one map, one aggregate", m->name, aggs[m->agg],
                    m->line);
    else if (m->n_keys != now->n_keys)
        mg_expr_err(p, at->line, at->col, "%s has %u keys on line %u, %u here", m->name, m->n_keys, m->line,
                    now->n_keys);
}

static void parse_update(struct mg_expr_parser *p, struct mg_expr_stmt *s)
{
    struct mg_expr *e = p->e;
    struct mg_tok at = p->lex.tok;
    struct mg_expr_update *up = &s->up;
    s->kind = MG_ES_UPDATE;
    struct mg_expr_map *m = find_map(p, &at);
    struct mg_expr_map now = {.name = m->name, .top = 10, .first_update = e->n_updates, .line = at.line, .col = at.col};
    up->map = (uint32_t)(m - e->maps);
    mg_lex_next(&p->lex);
    if (eat(p, "[")) {
        do {
            struct mg_tok t = p->lex.tok;
            struct mg_expr_node *n = mg_expr_parse_node(p);
            if (up->n_keys == MG_EXPR_KEYS)
                mg_expr_err(p, t.line, t.col, "a map has at most %d keys", MG_EXPR_KEYS);
            else
                up->keys[up->n_keys++] = n;
        } while (eat(p, ","));
        want(p, "]", "behind the keys");
    }
    now.n_keys = up->n_keys;
    uint32_t before = p->n_errors;
    want(p, "=", "and what the map does: @x = count()");
    parse_agg(p, &now, up);
    if (p->n_errors == before) join_map(p, m, &now, up, &at);
    up->ix = e->n_updates;
    if (e->n_updates == MG_EXPR_UPDATES)
        mg_expr_err(p, at.line, at.col, "more than %d updates of maps", MG_EXPR_UPDATES);
    else
        e->updates[e->n_updates++] = up;
}

static void parse_set(struct mg_expr_parser *p, struct mg_expr_stmt *s)
{
    struct mg_tok t = p->lex.tok;
    struct mg_expr *e = p->e;
    s->kind = MG_ES_SET;
    mg_lex_next(&p->lex);
    if (t.len < 2 || (t.text[1] >= '0' && t.text[1] <= '9'))
        mg_expr_err(p, t.line, t.col, "a variable's name begins with a letter");
    for (s->var = 0; s->var < e->n_vars; s->var++)
        if (strlen(e->vars[s->var]) == t.len && !memcmp(e->vars[s->var], t.text, t.len)) break;
    if (s->var == e->n_vars && e->n_vars < MAX_VARS)
        e->vars[e->n_vars++] = mg_arena_strndup(&e->arena, t.text, t.len);
    else if (s->var == MAX_VARS)
        mg_expr_err(p, t.line, t.col, "more than %d variables", MAX_VARS);
    if (s->var == MAX_VARS) s->var = 0;
    want(p, "=", "and the variable's new value");
    s->expr = mg_expr_parse_node(p);
}

/* begin(name) and end(name) */
static void parse_event(struct mg_expr_parser *p, struct mg_expr_stmt *s)
{
    if (!want(p, "(", "and the event's name")) return;
    struct mg_tok t = p->lex.tok;
    if (t.kind != MG_TOK_NAME || t.len >= MG_EVENT_NAME)
        mg_expr_err(p, t.line, t.col, "expected the name of an event, shorter than %d letters", MG_EVENT_NAME);
    s->name = mg_arena_strndup(&p->e->arena, t.text, t.kind == MG_TOK_NAME ? t.len : 0);
    if (t.kind != MG_TOK_END) mg_lex_next(&p->lex);
    want(p, ")", "behind the event's name");
}

/* emit(value, ...) */
static void parse_emit(struct mg_expr_parser *p, struct mg_expr_stmt *s)
{
    struct mg_expr *e = p->e;
    s->kind = MG_ES_EMIT;
    if (!want(p, "(", "and the values of the record")) return;
    do {
        struct mg_tok t = p->lex.tok;
        struct mg_expr_node *n = mg_expr_parse_node(p);
        if (s->up.n_keys == MG_CHANNEL_MOST_WORDS)
            mg_expr_err(p, t.line, t.col, "a record has at most %d values", MG_CHANNEL_MOST_WORDS);
        else
            s->up.keys[s->up.n_keys++] = n;
    } while (eat(p, ","));
    want(p, ")", "behind the values");
    s->up.ix = e->n_emits;
    if (e->n_emits == MG_EXPR_EMITS)
        mg_expr_err(p, s->line, s->col, "more than %d emits", MG_EXPR_EMITS);
    else
        e->emits[e->n_emits++] = mg_arena_printf(&e->arena, "%u:%u", s->line, s->col);
}

static struct mg_expr_stmt *parse_body(struct mg_expr_parser *p);

static void parse_if(struct mg_expr_parser *p, struct mg_expr_stmt *s)
{
    s->kind = MG_ES_IF;
    mg_lex_next(&p->lex);
    want(p, "(", "behind if");
    s->expr = mg_expr_parse_node(p);
    want(p, ")", "behind the condition");
    s->then = parse_body(p);
    if (!eat(p, "else")) return;
    if (!is(p, "if")) {
        s->other = parse_body(p);
        return;
    }
    if (p->depth >= 100) {
        mg_expr_err(p, s->line, s->col, "nested too deeply");
        return;
    }
    s->other = mg_arena_new(&p->e->arena, struct mg_expr_stmt);
    s->other->line = p->lex.tok.line;
    s->other->col = p->lex.tok.col;
    p->depth++;
    parse_if(p, s->other);
    p->depth--;
}

static struct mg_expr_stmt *parse_stmt(struct mg_expr_parser *p)
{
    struct mg_expr_stmt *s = mg_arena_new(&p->e->arena, struct mg_expr_stmt);
    struct mg_tok t = p->lex.tok;
    uint32_t before = p->n_errors;
    s->line = t.line;
    s->col = t.col;
    if (t.kind == MG_TOK_MAP) {
        parse_update(p, s);
    } else if (t.kind == MG_TOK_VAR) {
        parse_set(p, s);
    } else if (is(p, "if")) {
        parse_if(p, s);
        return s;
    } else if (p->e->probe && eat(p, "call")) {
        s->kind = MG_ES_CALL;
        p->clause->calls = true;
        if (p->lex.tok.kind != MG_TOK_NAME) mg_expr_err(p, t.line, t.col, "expected the name of a probe");
        s->name = mg_arena_strndup(&p->e->arena, p->lex.tok.text, p->lex.tok.len);
        mg_lex_next(&p->lex);
    } else if (eat(p, "skip")) {
        s->kind = MG_ES_SKIP;
        p->clause->skips = true;
    } else if (eat(p, "begin")) {
        s->kind = MG_ES_BEGIN;
        parse_event(p, s);
    } else if (eat(p, "end")) {
        s->kind = MG_ES_END;
        parse_event(p, s);
    } else if (eat(p, "emit")) {
        parse_emit(p, s);
    } else {
        mg_expr_err(
            p, t.line, t.col,
            "expected a statement: @map[keys] = count(), $x = ..., if, skip, begin(name), end(name) or emit(values)");
        mg_lex_next(&p->lex);
    }
    if (p->n_errors > before) skip_statement(p);
    if (!is(p, "}") && p->lex.tok.kind != MG_TOK_END && !eat(p, ";")) {
        mg_expr_err(p, p->lex.tok.line, p->lex.tok.col, "expected ';' between statements");
        skip_statement(p);
        eat(p, ";");
    }
    return s;
}

/* { statements } */
static struct mg_expr_stmt *parse_body(struct mg_expr_parser *p)
{
    struct mg_expr_stmt *first = NULL, **to = &first;
    struct mg_tok t = p->lex.tok;
    if (!want(p, "{", "and what to do")) return NULL;
    if (p->depth >= 100) {
        mg_expr_err(p, t.line, t.col, "nested too deeply");
        return NULL;
    }
    p->depth++;
    for (;;) {
        while (eat(p, ";")) {
        }
        if (is(p, "}") || p->lex.tok.kind == MG_TOK_END) break;
        *to = parse_stmt(p);
        to = &(*to)->next;
    }
    p->depth--;
    if (!eat(p, "}")) mg_expr_err(p, t.line, t.col, "this '{' is never closed");
    return first;
}

static struct mg_expr_clause *parse_clause(struct mg_expr_parser *p)
{
    struct mg_expr_clause *c = mg_arena_new(&p->e->arena, struct mg_expr_clause);
    struct mg_expr_site **to = &c->sites;
    p->clause = c;
    c->line = p->lex.tok.line;
    c->col = p->lex.tok.col;
    do {
        *to = parse_site(p);
        to = &(*to)->next;
    } while (eat(p, ","));
    if (eat(p, "/")) {
        c->pred = mg_expr_parse_node(p);
        want(p, "/", "behind the predicate, and a body in braces");
    }
    return c;
}

/* What `margay run --probe` puts in front of the clauses that call probes in C:
 *   probe "FILE"        map @name[keys] = aggregate() */
static void parse_probe(struct mg_expr_parser *p)
{
    struct mg_expr *e = p->e;
    struct mg_tok t = p->lex.tok;
    if (eat(p, "map")) {
        struct mg_expr_stmt *s = mg_arena_new(&e->arena, struct mg_expr_stmt);
        p->inputs = true;
        t = p->lex.tok;
        if (t.kind == MG_TOK_MAP)
            parse_update(p, s);
        else
            mg_expr_err(p, t.line, t.col, "expected a map");
        p->inputs = false;
        if (!p->n_errors) mg_expr_check_update(p, &s->up);
        return;
    }
    mg_lex_next(&p->lex);
    if (p->lex.tok.kind != MG_TOK_STR) {
        mg_expr_err(p, t.line, t.col, "expected the file of a probe");
        return;
    }
    e->probe = mg_arena_strndup(&e->arena, p->lex.tok.text, p->lex.tok.len);
    for (unsigned i = 0; i < MG_EXPR_C_VARS; i++) e->vars[e->n_vars++] = mg_arena_printf(&e->arena, "$c%u", i);
    mg_lex_next(&p->lex);
}

/* entries N: room in each hash table, rounded up to a power of two; records N: in each launch's frame of events. */
static void parse_room(struct mg_expr_parser *p, uint32_t *room, uint32_t most, const char *what)
{
    mg_lex_next(&p->lex);
    struct mg_tok t = p->lex.tok;
    if (t.kind != MG_TOK_NUM || t.num < 1 || t.num > most)
        mg_expr_err(p, t.line, t.col, "expected room for 1 to %u %s", most, what);
    else
        for (*room = 16; *room < t.num;) *room *= 2;
    if (t.kind != MG_TOK_END) mg_lex_next(&p->lex);
    eat(p, ";");
}

static void parse_program(struct mg_expr_parser *p)
{
    struct mg_expr_clause **to = &p->e->clauses;
    if (mg_tok_is(&p->lex.tok, "probe")) parse_probe(p);
    while (p->e->probe && mg_tok_is(&p->lex.tok, "map") && !p->n_errors) parse_probe(p);
    if (p->lex.tok.kind == MG_TOK_END && !p->n_errors) mg_expr_err(p, 1, 1, "no clause: SITE { @map = count() }");
    while (p->lex.tok.kind != MG_TOK_END && p->n_errors < MAX_ERRORS) {
        uint32_t before = p->n_errors;
        if (mg_tok_is(&p->lex.tok, "entries")) {
            parse_room(p, &p->e->entries, MG_EXPR_MOST_ENTRIES, "entries");
            continue;
        }
        if (mg_tok_is(&p->lex.tok, "records")) {
            parse_room(p, &p->e->records, MG_EVENT_MOST_RECORDS, "records");
            continue;
        }
        struct mg_expr_clause *c = *to = parse_clause(p);
        to = &c->next;
        c->body = parse_body(p);
        if (p->n_errors == before) continue;
        while (p->lex.tok.kind != MG_TOK_END && !is(p, "}")) mg_lex_next(&p->lex); /* the next clause, perhaps */
        while (eat(p, "}")) {
        }
    }
}

enum mg_err mg_expr_parse(const char *text, size_t bytes, const char *name, struct mg_expr **out, struct mg_diag *d)
{
    struct mg_expr *e = mg_xcalloc(1, sizeof *e);
    struct mg_expr_parser p = {.e = e, .name = name, .d = d};
    *out = NULL;
    e->entries = MG_EXPR_ENTRIES;
    e->records = MG_EVENT_RECORDS;
    e->maps = mg_arena_array(&e->arena, struct mg_expr_map, MAX_MAPS);
    e->vars = mg_arena_array(&e->arena, const char *, MAX_VARS);
    e->updates = mg_arena_array(&e->arena, struct mg_expr_update *, MG_EXPR_UPDATES);
    if (bytes > MAX_TEXT) {
        mg_expr_err(&p, 1, 1, "more than %d bytes", MAX_TEXT);
    } else {
        mg_lex_init(&p.lex, text, bytes);
        parse_program(&p);
        if (!p.n_errors) mg_expr_check(&p);
    }
    if (p.n_errors) {
        mg_expr_free(e);
        return MG_ERR_INPUT;
    }
    *out = e;
    return MG_ERR_OK;
}

void mg_expr_free(struct mg_expr *e)
{
    if (!e) return;
    mg_arena_release(&e->arena);
    free(e);
}
