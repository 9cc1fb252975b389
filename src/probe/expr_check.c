/* What a one-liner may say: types, where values stand, shapes of maps. Also the words the language
 * shares with those who place it: names of values, and which instructions a pattern means. */
#include "probe/expr_priv.h"

#include <fnmatch.h>
#include <string.h>

static const struct {
    const char *text;
    unsigned flags;
} values[] = {
    {NULL, 0},
#define VALUE(name, text, flags, help) {text, flags},
#include "probe/expr_values.def"
#undef VALUE
};

const char *mg_expr_value_text(enum mg_expr_value v)
{
    return values[v].text;
}
unsigned mg_expr_value_flags(enum mg_expr_value v)
{
    return values[v].flags;
}

uint32_t mg_expr_lhist_buckets(const struct mg_expr_map *m)
{
    return (uint32_t)((m->hi - m->lo + m->step - 1) / m->step) + 2;
}

uint32_t mg_expr_map_cells(const struct mg_expr_map *m)
{
    if (m->agg == MG_EA_hist) return MG_EXPR_HIST;
    if (m->agg == MG_EA_lhist) return mg_expr_lhist_buckets(m);
    return m->agg == MG_EA_avg ? 2 : 1;
}

/* One word of a pattern: a glob over the word of an instruction. */
static bool word_fits(const char *glob, size_t n_glob, const char *word, size_t n_word)
{
    char g[64], w[64];
    if (n_glob >= sizeof g || n_word >= sizeof w) return false;
    memcpy(g, glob, n_glob);
    memcpy(w, word, n_word);
    g[n_glob] = w[n_word] = 0;
    return !fnmatch(g, w, 0);
}

bool mg_expr_fits(const char *pattern, const char *op)
{
    for (bool first = true;; first = false) {
        size_t n = strcspn(pattern, ".");
        for (;;) {
            size_t w = strcspn(op, ".");
            bool fits = word_fits(pattern, n, op, w);
            if (!fits && (first || !op[w])) return false;
            op += w;
            if (fits) break;
            op++;
        }
        pattern += n;
        if (!*pattern) return true;
        if (!*op) return false;
        pattern++;
        op++;
    }
}

/* ---- expressions ----------------------------------------------------------------------------------- */

static void check_op(struct mg_expr_parser *p, struct mg_expr_node *n)
{
    bool strings = false, all = true;
    for (unsigned i = 0; i < n->n_args; i++) {
        strings |= n->args[i]->type == MG_ET_STR;
        all &= n->args[i]->type == MG_ET_STR;
    }
    bool compares = n->op >= MG_EO_EQ && n->op <= MG_EO_GE;
    n->type =
        compares || n->op == MG_EO_AND_ALSO || n->op == MG_EO_OR_ELSE || n->op == MG_EO_NOT ? MG_ET_BOOL : MG_ET_INT;
    if (!strings) return;
    if (n->op != MG_EO_EQ && n->op != MG_EO_NE)
        mg_expr_err(p, n->line, n->col, "a string can only be compared, with == and !=");
    else if (!all)
        mg_expr_err(p, n->line, n->col, "a string is compared with a number");
}

void mg_expr_check_node(struct mg_expr_parser *p, struct mg_expr_node *n)
{
    for (unsigned i = 0; i < n->n_args; i++) mg_expr_check_node(p, n->args[i]);
    switch (n->kind) {
    case MG_EK_STR:
        n->type = MG_ET_STR;
        return;
    case MG_EK_VALUE:
        n->type = values[n->value].flags & MG_EVF_STR ? MG_ET_STR : MG_ET_INT;
        return;
    case MG_EK_OP:
        check_op(p, n);
        return;
    case MG_EK_FUNC:
        n->type = MG_ET_INT;
        for (unsigned i = 0; i < n->n_args; i++)
            if (n->args[i]->type == MG_ET_STR) mg_expr_err(p, n->line, n->col, "a string is no number");
        return;
    default:
        n->type = MG_ET_INT;
    }
}

static void check_number(struct mg_expr_parser *p, struct mg_expr_node *n)
{
    mg_expr_check_node(p, n);
    if (n->type == MG_ET_STR) mg_expr_err(p, n->line, n->col, "a number is wanted here, not a string");
}

/* ---- statements ------------------------------------------------------------------------------------- */

static bool shows_hex(const struct mg_expr_node *n)
{
    return n->kind == MG_EK_VALUE && values[n->value].flags & MG_EVF_HEX;
}

void mg_expr_check_update(struct mg_expr_parser *p, struct mg_expr_update *up)
{
    struct mg_expr_map *m = &p->e->maps[up->map];
    if (up->value) check_number(p, up->value);
    if (m->agg == MG_EA_topk && up->value && shows_hex(up->value)) m->value_flags |= MG_EVF_HEX;
    for (uint32_t i = 0; i < up->n_keys; i++) {
        struct mg_expr_node *k = up->keys[i];
        mg_expr_check_node(p, k);
        uint8_t str = k->type == MG_ET_STR ? MG_EVF_STR : 0;
        if (up->ix != m->first_update && (m->key_flags[i] & MG_EVF_STR) != str)
            mg_expr_err(p, k->line, k->col, "key %u of %s is a %s elsewhere", i + 1, m->name,
                        str ? "number" : "string");
        m->key_flags[i] |= str | (shows_hex(k) ? MG_EVF_HEX : 0);
    }
}

static void check_body(struct mg_expr_parser *p, struct mg_expr_stmt *s)
{
    for (; s; s = s->next) {
        if (s->kind == MG_ES_UPDATE) mg_expr_check_update(p, &s->up);
        for (uint32_t i = 0; s->kind == MG_ES_EMIT && i < s->up.n_keys; i++) check_number(p, s->up.keys[i]);
        if (s->expr) check_number(p, s->expr);
        check_body(p, s->then);
        check_body(p, s->other);
    }
}

/* ---- clauses ------------------------------------------------------------------------------------------ */

static void check_site(struct mg_expr_parser *p, const struct mg_expr_clause *c, const struct mg_expr_site *s)
{
    bool inst = s->where == MG_EW_INST, edge = s->where == MG_EW_EDGE || s->where == MG_EW_BACK_EDGE;
    for (unsigned v = 1; v < MG_EV_COUNT; v++) {
        if (!c->uses[v]) continue;
        if (values[v].flags & MG_EVF_INST && !inst)
            mg_expr_err(p, s->line, s->col, "'%s' is there at instructions only", values[v].text);
        if (v == MG_EV_to && !edge) mg_expr_err(p, s->line, s->col, "'to' is there at edges only");
        if (values[v].flags & MG_EVF_AFTER && s->position == MG_EP_BEFORE)
            mg_expr_err(p, s->line, s->col, "'%s' is not known before the instruction", values[v].text);
    }
    if (!inst && (s->position != MG_EP_AUTO || s->issued))
        mg_expr_err(p, s->line, s->col, "before, after and issued go with instructions only");
    if (!inst && s->type) mg_expr_err(p, s->line, s->col, "type= goes with instructions only");
    if (c->skips && (!inst || s->position == MG_EP_AFTER))
        mg_expr_err(p, s->line, s->col, "only an instruction can be skipped, and only before it");
    if (c->skips)
        for (unsigned v = 1; v < MG_EV_COUNT; v++)
            if (c->uses[v] && values[v].flags & MG_EVF_AFTER)
                mg_expr_err(p, s->line, s->col, "what skips an instruction cannot see its result '%s'", values[v].text);
}

void mg_expr_check(struct mg_expr_parser *p)
{
    for (struct mg_expr_clause *c = p->e->clauses; c; c = c->next) {
        for (const struct mg_expr_site *s = c->sites; s; s = s->next) check_site(p, c, s);
        if (c->pred) check_number(p, c->pred);
        check_body(p, c->body);
    }
}

enum mg_err mg_expr_recheck(struct mg_expr *e, const char *name, struct mg_diag *d)
{
    struct mg_expr_parser p = {.e = e, .name = name, .d = d};
    mg_expr_check(&p);
    return p.n_errors ? MG_ERR_INPUT : MG_ERR_OK;
}
