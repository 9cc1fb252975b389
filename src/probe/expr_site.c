/* Finds the places that a one-liner's clauses name. Instructions are the application's own; a pattern
 * that names a state space also means generic accesses that provably go there. */
#include "probe/expr_site.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "analysis/dom.h"
#include "analysis/loop.h"
#include "analysis/space.h"
#include "base/demangle.h"

struct finder {
    const struct mg_expr *e;
    struct mg_patch *p;
    const struct mg_sites *sites;
    const struct mg_expr_clause *clause;
    void (*fn)(const struct mg_expr_spot *s, void *user);
    void *user;
    struct {
        const char *file;
        uint32_t line;
    } * source; /* by instruction, as in mg_patch_insts */
};

static void set_num(struct mg_expr_env *env, enum mg_expr_value v, int64_t num)
{
    env->values[v] = (struct mg_expr_const){.known = true, .num = num};
}

static void set_str(struct mg_expr_env *env, enum mg_expr_value v, const char *str)
{
    env->values[v] = (struct mg_expr_const){.known = true, .is_str = true, .str = str ? str : ""};
}

uint32_t mg_expr_op_width(const char *op)
{
    struct mg_form f;
    mg_form_parse(&f, op, strlen(op));
    if (f.op != MG_OP_ld && f.op != MG_OP_ldu && f.op != MG_OP_st && f.op != MG_OP_atom && f.op != MG_OP_red) return 0;
    return f.n_types ? mg_type_bits((enum mg_type)f.types[f.n_types - 1]) / 8 * (f.vec ? f.vec : 1) : 0;
}

void mg_expr_env_fill(struct mg_expr_env *env, const char *kernel, const char *function, const char *file,
                      const char *op, uint32_t line, uint32_t ptx_line, uint32_t block, uint32_t to)
{
    memset(env, 0, sizeof *env);
    set_str(env, MG_EV_kernel, kernel);
    set_str(env, MG_EV_function, function);
    set_str(env, MG_EV_file, file);
    set_str(env, MG_EV_op, op);
    set_num(env, MG_EV_line, line);
    set_num(env, MG_EV_ptx, ptx_line);
    set_num(env, MG_EV_block, block);
    if (to != UINT32_MAX) set_num(env, MG_EV_to, to);
    uint32_t width = op ? mg_expr_op_width(op) : 0;
    if (width) set_num(env, MG_EV_width, width);
}

/* ---- filters ------------------------------------------------------------------------------------- */

static bool file_fits(const char *glob, const char *file)
{
    const char *base = file ? strrchr(file, '/') : NULL;
    return file && (!fnmatch(glob, file, 0) || (base && !fnmatch(glob, base + 1, 0)));
}

static bool filters_fit(const struct finder *f, const struct mg_expr_site *s, const char *function, const char *file,
                        uint32_t line)
{
    if (s->kernel && !mg_name_matches(s->kernel, f->sites->kernel)) return false;
    if (s->function && !mg_name_matches(s->function, function)) return false;
    if (s->file && !file_fits(s->file, file)) return false;
    return !s->line_hi || (line >= s->line_lo && line <= s->line_hi);
}

static bool type_fits(const struct mg_form *form, const char *type)
{
    for (unsigned i = 0; i < form->n_types; i++)
        if (!fnmatch(type, mg_type_name((enum mg_type)form->types[i]), 0)) return true;
    return false;
}

/* Classes of instructions beside the opcodes; their modifiers follow as with an opcode. */
enum { CLASS_LOAD, CLASS_STORE, CLASS_ATOMIC, CLASS_ACCESS, N_CLASSES };

static unsigned class_of(const char *word, size_t n)
{
    static const char *const names[N_CLASSES] = {"load", "store", "atomic", "access"};
    unsigned i = 0;
    while (i < N_CLASSES && (strlen(names[i]) != n || memcmp(names[i], word, n))) i++;
    return i;
}

bool mg_expr_is_class(const char *word, size_t n)
{
    return class_of(word, n) < N_CLASSES;
}

static bool class_fits(const char *pattern, const struct mg_access *a, const char *op, bool *is_class)
{
    const bool fits[N_CLASSES] = {a && a->reads && !a->atomic, a && a->writes && !a->atomic, a && a->atomic, a != NULL};
    size_t n = strcspn(pattern, ".");
    unsigned i = class_of(pattern, n);
    char any[80];
    *is_class = i < N_CLASSES;
    return *is_class && fits[i] && snprintf(any, sizeof any, "*%s", pattern + n) < (int)sizeof any &&
           mg_expr_fits(any, op);
}

/* As the application has it: in the twin some instructions read otherwise (loads of constants). */
static const struct mg_module *app_of(const struct finder *f)
{
    return mg_patch_cfg(f->p, 0)->m;
}

static bool pattern_fits(const struct finder *f, const char *pattern, const struct mg_patch_inst *in)
{
    const struct mg_module *m = app_of(f);
    const struct mg_form *form = mg_node_form(m, &m->nodes.at[in->node]);
    const char *op = mg_name(m, form->text);
    struct mg_access a;
    bool accesses = mg_access_of(m, in->node, &a), is_class;
    char named[160];
    if (class_fits(pattern, accesses ? &a : NULL, op, &is_class)) return true;
    if (!is_class && mg_expr_fits(pattern, op)) return true;
    if (!accesses || form->space != MG_SPACE_generic || !strchr(pattern, '.')) return false;
    enum mg_space space = mg_spaces_one(mg_spaces_of(mg_patch_spaces(f->p, in->func_ix), in->node));
    size_t n = strcspn(op, ".");
    if (space == MG_SPACE_generic ||
        snprintf(named, sizeof named, "%.*s.%s%s", (int)n, op, mg_space_name(space), op + n) >= (int)sizeof named)
        return false;
    return is_class ? class_fits(pattern, &a, named, &is_class) : mg_expr_fits(pattern, named);
}

/* ---- spots ------------------------------------------------------------------------------------------ */

static void fire(struct finder *f, const struct mg_expr_site *s, mg_id node, uint32_t inst, uint32_t block,
                 uint32_t succ)
{
    const struct mg_module *m = app_of(f);
    const struct mg_site_block *b = &f->sites->blocks[block];
    const char *file = node ? f->source[inst].file : b->file,
               *op = node ? mg_name(m, mg_node_form(m, &m->nodes.at[node])->text) : "";
    uint32_t line = node ? f->source[inst].line : b->line;
    if (!filters_fit(f, s, b->function, file, line)) return;
    struct mg_expr_spot spot = {
        .clause = f->clause, .site = s, .node = node, .func_ix = b->func_ix, .block = block, .succ = succ};
    uint32_t to = succ == UINT32_MAX ? succ : b->succs[succ];
    uint32_t ptx = node ? m->nodes.at[node].line : b->ptx_line;
    struct mg_access a;
    mg_expr_env_fill(&spot.env, f->sites->kernel, b->function, file, op, line, ptx, block, to);
    bool accesses = node && mg_access_of(m, node, &a);
    if (accesses) set_num(&spot.env, MG_EV_width, a.bytes * a.vec);
    for (unsigned v = 1; v < MG_EV_COUNT; v++) /* what is not there cannot be looked at */
        if (f->clause->uses[v] && mg_expr_value_flags((enum mg_expr_value)v) & MG_EVF_ACCESS && !accesses) return;
    f->fn(&spot, f->user);
}

static void find_insts(struct finder *f, const struct mg_expr_site *s)
{
    const struct mg_patch_inst *insts;
    uint32_t n = mg_patch_insts(f->p, &insts);
    const struct mg_module *m = app_of(f);
    for (uint32_t i = 0; i < n; i++)
        if (pattern_fits(f, s->pattern, &insts[i]) &&
            (!s->type || type_fits(mg_node_form(m, &m->nodes.at[insts[i].node]), s->type)))
            fire(f, s, insts[i].node, i, insts[i].id, UINT32_MAX);
}

static bool is_loop_header(struct finder *f, const struct mg_site_block *b)
{
    const struct mg_loops *l = mg_patch_loops(f->p, b->func_ix);
    for (uint32_t i = 0; i < l->n_loops; i++)
        if (l->loops[i].header == b->block_ix) return true;
    return false;
}

static void find_edges(struct finder *f, const struct mg_expr_site *s, const struct mg_site_block *b)
{
    for (uint32_t i = 0; i < b->n_succs; i++) {
        const struct mg_site_block *to = &f->sites->blocks[b->succs[i]];
        if (s->where == MG_EW_EDGE || mg_dom_over(mg_patch_dom(f->p, b->func_ix), to->block_ix, b->block_ix))
            fire(f, s, 0, 0, b->id, i);
    }
}

static void find_site(struct finder *f, const struct mg_expr_site *s)
{
    const struct mg_sites *sites = f->sites;
    if (s->kernel && !mg_name_matches(s->kernel, sites->kernel)) return;
    if (s->where == MG_EW_INST) {
        find_insts(f, s);
        return;
    }
    for (uint32_t i = 0; i < sites->n_blocks; i++) {
        const struct mg_site_block *b = &sites->blocks[i];
        bool first = i == sites->first_block[b->func_ix], kernel = !b->func_ix;
        switch (s->where) {
        case MG_EW_BLOCK:
            fire(f, s, 0, 0, i, UINT32_MAX);
            break;
        case MG_EW_LOOP:
            if (is_loop_header(f, b)) fire(f, s, 0, 0, i, UINT32_MAX);
            break;
        case MG_EW_EDGE:
        case MG_EW_BACK_EDGE:
            find_edges(f, s, b);
            break;
        case MG_EW_FUNC_ENTRY:
        case MG_EW_FUNC_EXIT:
            if (first && !kernel) fire(f, s, 0, 0, i, UINT32_MAX);
            break;
        default:
            if (first && kernel) fire(f, s, 0, 0, i, UINT32_MAX);
        }
    }
}

/* Source line of every instruction: that of the .loc before it. */
static void read_lines(struct finder *f)
{
    const struct mg_patch_inst *insts;
    uint32_t n = mg_patch_insts(f->p, &insts);
    struct mg_module *m = mg_patch_module(f->p);
    f->source = mg_arena_zalloc(mg_patch_scratch(f->p), (n + 1) * sizeof *f->source);
    uint32_t at = 0;
    for (uint32_t fn = 0; fn < f->sites->n_funcs; fn++) {
        const char *file = NULL;
        uint32_t line = 0;
        MG_EACH_NODE(m, &m->funcs.at[mg_patch_twin(f->p)->funcs[fn]], id)
        {
            const struct mg_node *node = &m->nodes.at[id];
            if (node->kind == MG_NODE_loc) {
                const struct mg_loc *loc = &m->locs.at[node->ref];
                line = loc->line;
                file = NULL;
                for (uint32_t i = 1; i < m->files.n && line; i++)
                    if (m->files.at[i].index == loc->file) file = mg_name(m, m->files.at[i].path);
            } else if (at < n && insts[at].node == id) {
                f->source[at].file = file;
                f->source[at++].line = line;
            }
        }
    }
}

void mg_expr_each_spot(const struct mg_expr *e, struct mg_patch *p,
                       void (*fn)(const struct mg_expr_spot *s, void *user), void *user)
{
    struct finder f = {.e = e, .p = p, .sites = mg_patch_sites(p), .fn = fn, .user = user};
    read_lines(&f);
    for (f.clause = e->clauses; f.clause; f.clause = f.clause->next)
        for (const struct mg_expr_site *s = f.clause->sites; s; s = s->next) find_site(&f, s);
}
