/* Which buffer a memory instruction accesses: its address is followed back through the PTX that the profile keeps, to
 * the kernel's argument or the variable that it is a sum with. What an argument pointed to, the launches say.
 *
 * Nothing is said where several arguments take part, or where the address was loaded from memory. */
#include "report/buffers.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/same.h"
#include "base/demangle.h"
#include "base/map.h"
#include "base/search.h"
#include "ir/ir.h"
#include "report/priv.h"

enum { MOST_PARAMS = 64, MOST_ALLOCATIONS = 8 };

enum adding { ADDING_NEVER, ADDING_IF_FULL, ADDING_ALWAYS }; /* lanes of a warp, by the assembler */
struct known {
    const struct mg_pkernel *k;
    const char *function;
    uint32_t ptx_line;
    struct mg_buffer_name *name; /* owner: the arena; text NULL: not known */
    uint32_t base;               /* register of the address; 0: none, or several */
    int64_t offset;
    enum adding adding;
    uint32_t next; /* of the same kernel and line, + 1; 0: none */
};
struct line_node {
    uint32_t line;
    mg_id node;
};
struct def {
    mg_id node;
    uint32_t next; /* another of the same register, + 1; 0: none */
};
struct mg_buffers {
    const struct mg_recording *p;
    /* Definitions of the function that was looked at last: sites come function by function. */
    const struct mg_module *m;
    mg_id func;
    uint32_t *first;       /* by register: in defs, + 1 */
    uint32_t *seen, round; /* by register: the walk that came by last */
    mg_id *next;           /* room for a walk's list */
    struct mg_same *same;  /* NULL: not asked for yet */
    MG_VEC(struct def) defs;
    MG_VEC(struct line_node) insts; /* in order of lines */
    struct mg_lines *modules;
    struct mg_arena arena;
    const struct mg_jval *allocations; /* as the process recorded them; NULL: not yet */
    MG_VEC(struct known) known;        /* what was asked before */
    struct mg_map known_at;            /* kernel and line -> the last of known there */
};

struct mg_buffers *mg_buffers_new(const struct mg_recording *p, struct mg_lines *modules)
{
    struct mg_buffers *b = mg_xcalloc(1, sizeof *b);
    b->p = p;
    b->modules = modules;
    return b;
}

void mg_buffers_free(struct mg_buffers *b)
{
    mg_vec_release(&b->known);
    mg_map_release(&b->known_at);
    mg_vec_release(&b->defs);
    mg_vec_release(&b->insts);
    free(b->first);
    free(b->seen);
    free(b->next);
    mg_same_free(b->same);
    mg_arena_release(&b->arena);
    free(b);
}

/* ---- back through the code --------------------------------------------------------------------------------------- */

static int by_line(const void *a, const void *b)
{
    const struct line_node *x = a, *y = b;
    return x->line != y->line ? (x->line > y->line) - (x->line < y->line) : (x->node > y->node) - (x->node < y->node);
}

static void index_function(struct mg_buffers *b, const struct mg_module *m, mg_id func)
{
    mg_id defs[8];
    if (b->m == m && b->func == func) return;
    free(b->first);
    free(b->seen);
    free(b->next);
    mg_same_free(b->same);
    b->same = NULL;
    b->next = mg_xcalloc(m->regs.n + 1, sizeof *b->next);
    b->first = mg_xcalloc(m->regs.n + 1, sizeof *b->first);
    b->seen = mg_xcalloc(m->regs.n + 1, sizeof *b->seen);
    b->round = 0;
    b->defs.n = b->insts.n = 0;
    b->m = m;
    b->func = func;
    MG_EACH_NODE(m, &m->funcs.at[func], id)
    {
        if (m->nodes.at[id].kind != MG_NODE_inst) continue;
        *mg_vec_push(&b->insts) = (struct line_node){m->nodes.at[id].line, id};
        uint32_t n = MG_MIN(mg_node_defs(m, id, defs, MG_COUNT_OF(defs)), MG_COUNT_OF(defs));
        for (uint32_t i = 0; i < n; i++) {
            *mg_vec_push(&b->defs) = (struct def){id, b->first[defs[i]]};
            b->first[defs[i]] = b->defs.n;
        }
    }
    if (b->insts.n) qsort(b->insts.at, b->insts.n, sizeof *b->insts.at, by_line);
}

struct walk {
    uint32_t *seen, round;
    const struct mg_module *m;
    const struct mg_func *f;
    uint64_t params; /* that take part */
    mg_id var;       /* variable that takes part; 0: none */
    bool loaded;     /* something from memory does */
    bool wide;       /* the address has 64 bits: what has fewer is an index */
    mg_id *next;
    uint32_t n_next; /* registers to follow; each is followed once */
};

/* Puts a register on the list, once. */
static void follow(struct walk *w, mg_id reg)
{
    if (w->seen[reg] == w->round) return;
    w->seen[reg] = w->round;
    w->next[w->n_next++] = reg;
}

static void follow_operand(struct walk *w, const struct mg_opnd *o)
{
    if (o->kind == MG_OPND_reg || (o->kind == MG_OPND_addr && o->sub == MG_OPND_reg))
        follow(w, o->id);
    else if (o->kind == MG_OPND_var || (o->kind == MG_OPND_addr && o->sub == MG_OPND_var))
        w->var = o->id;
}

static void follow_load(struct walk *w, const struct mg_node *n)
{
    const struct mg_form *form = mg_node_form(w->m, n);
    if (w->wide && form->n_types && mg_type_bits((enum mg_type)form->types[0]) < 64) return;
    const struct mg_opnd *a = &w->m->opnds.at[n->opnd + 1];
    bool param =
        n->n_opnds == 2 && a->kind == MG_OPND_addr && a->sub == MG_OPND_var && w->m->vars.at[a->id].is_param && !a->val;
    uint32_t k = param ? a->id - w->f->first_param : MOST_PARAMS;
    if (k < w->f->n_params && k < MOST_PARAMS)
        w->params |= 1ull << k;
    else
        w->loaded = true;
}

/* What the instruction gives its destination is a sum with these. */
static void follow_node(struct walk *w, const struct mg_node *n)
{
    const struct mg_opnd *o = &w->m->opnds.at[n->opnd];
    switch ((enum mg_op)mg_node_form(w->m, n)->op) {
    case MG_OP_ld:
        if (n->n_opnds > 1) follow_load(w, n);
        return;
    case MG_OP_add:
    case MG_OP_sub:
    case MG_OP_selp:
    case MG_OP_min:
    case MG_OP_max:
        if (n->n_opnds > 2) follow_operand(w, &o[1]), follow_operand(w, &o[2]);
        return;
    case MG_OP_mad:
    case MG_OP_fma:
        if (n->n_opnds > 3) follow_operand(w, &o[3]);
        return;
    case MG_OP_mov:
    case MG_OP_cvta:
    case MG_OP_cvt:
    case MG_OP_and:
        if (n->n_opnds > 1) follow_operand(w, &o[1]);
        return;
    default:
        return;
    }
}

/* ---- atomics that lanes add up ------------------------------------------------------------------------ */

static bool is_read(const struct mg_buffers *b, mg_id reg)
{
    mg_id uses[32];
    for (uint32_t i = 0; i < b->insts.n; i++) {
        uint32_t n = mg_node_uses(b->m, b->insts.at[i].node, uses, MG_COUNT_OF(uses));
        if (n > MG_COUNT_OF(uses)) return true;
        for (uint32_t k = 0; k < n; k++)
            if (uses[k] == reg) return true;
    }
    return false;
}

static const struct mg_same *same_values(struct mg_buffers *b)
{
    if (b->same) return b->same;
    struct mg_cfg *cfg = mg_cfg_new(b->m, b->func);
    b->same = mg_same_new(cfg, MG_SAME_LANES);
    mg_cfg_free(cfg);
    return b->same;
}

/* Does ptxas make one atomic a warp of it? Seen in its code for sm_90, of integers alone: REDUX, or a population count
 * where all lanes add one value, and an elected lane; of a sum whose result is read with a scan, if all lanes are
 * there. */
static enum adding find_adding(struct mg_buffers *b, mg_id node)
{
    const struct mg_node *n = &b->m->nodes.at[node];
    const struct mg_form *form = mg_node_form(b->m, n);
    static const enum mg_mod ops[] = {MG_MOD_min, MG_MOD_max, MG_MOD_and, MG_MOD_or, MG_MOD_xor};
    bool add = mg_form_has(form, MG_MOD_add), other = false;
    uint32_t at = form->op == MG_OP_atom;
    if ((form->op != MG_OP_atom && form->op != MG_OP_red) || !form->n_types || n->n_opnds < at + 2) return ADDING_NEVER;
    for (size_t i = 0; i < MG_COUNT_OF(ops); i++) other |= mg_form_has(form, ops[i]);
    enum mg_type type = (enum mg_type)form->types[0];
    bool narrow = type == MG_TYPE_u32 || type == MG_TYPE_s32 || type == MG_TYPE_b32,
         wide = type == MG_TYPE_u64 || type == MG_TYPE_s64 || type == MG_TYPE_b64;
    const struct mg_opnd *o = &b->m->opnds.at[n->opnd];
    bool read = at && o->kind != MG_OPND_sink && (o->kind != MG_OPND_reg || is_read(b, o->id));
    bool one_value = mg_same_operand(same_values(b), b->m, &o[at + 1]);
    if (!(add && (narrow || wide)) && !(other && narrow && !read)) return ADDING_NEVER;
    if (form->space == MG_SPACE_shared && add && narrow && !read && o[at + 1].kind == MG_OPND_imm && o[at + 1].val == 1)
        return ADDING_ALWAYS; /* ATOMS.POPC.INC, at any address */
    if (!mg_same_operand(same_values(b), b->m, &o[at])) return ADDING_NEVER;
    if (wide || (read && !one_value)) return one_value ? ADDING_ALWAYS : wide ? ADDING_NEVER : ADDING_IF_FULL;
    return ADDING_ALWAYS;
}

/* ---- in words ---------------------------------------------------------------------------------------------------- */

/* The allocations that the argument at this offset pointed into, over all launches of the kernel: those that swap their
 * buffers have two. 0: none, or too many. */
static uint32_t find_allocations(const struct mg_buffers *b, const struct mg_pkernel *k, uint64_t offset,
                                 uint64_t found[MOST_ALLOCATIONS])
{
    uint32_t n = 0, last = 0;
    for (uint64_t i = 0; i < b->p->n_launches; i++) {
        const struct mg_plaunch *l = &b->p->launches[i];
        if (l->kernel != k->id) continue;
        for (uint32_t a = 0; a < l->n_args; a++) {
            const struct mg_store_arg *arg = &l->args[a];
            if (arg->offset != offset || arg->kind != MG_ARG_POINTER) continue;
            for (last = 0; last < n && found[last] != arg->allocation; last++) {
            }
            if (last < n) continue;
            if (n == MOST_ALLOCATIONS) return 0;
            found[n++] = arg->allocation;
        }
    }
    return n;
}

/* Launches that are given one part of an allocation after the other: how far apart the parts begin. */
static uint64_t find_shift(const struct mg_buffers *b, const struct mg_pkernel *k, uint64_t offset)
{
    uint64_t least = UINT64_MAX, most = 0;
    for (uint64_t i = 0; i < b->p->n_launches; i++) {
        const struct mg_plaunch *l = &b->p->launches[i];
        for (uint32_t a = 0; l->kernel == k->id && a < l->n_args; a++) {
            if (l->args[a].offset != offset || l->args[a].kind != MG_ARG_POINTER) continue;
            least = MG_MIN(least, l->args[a].allocation_off);
            most = MG_MAX(most, l->args[a].allocation_off);
        }
    }
    return most > least ? most - least : 0;
}

/* Bytes of an allocation, where the process recorded them (inject/buffers.c). 0: not known. */
static uint64_t find_bytes(struct mg_buffers *b, uint64_t allocation)
{
    if (b->p->n_processes != 1) return 0; /* ids are a process' own */
    for (uint32_t i = 0; i < b->p->n_tools && !b->allocations; i++) {
        const struct mg_ptool *t = &b->p->tools[i];
        if (strcmp(t->tool, "margay") || strcmp(t->key, "allocations")) continue;
        b->allocations = mg_jval_parse(&b->arena, t->json, strlen(t->json));
    }
    for (const struct mg_jval *v = mg_jval_first(b->allocations); v; v = v->next) {
        const struct mg_jval *id = mg_jval_get(v, "allocation");
        if (id && id->kind == MG_JVAL_U64 && id->u == allocation) return mg_jval_u64(v, "bytes");
    }
    return 0;
}

/* ", buffer of 4,096 bytes", of launches that swap them ", buffers of 4,096 bytes": the allocation's number differs
 * from device to device. */
static void tell_bytes(struct mg_buffers *b, const struct mg_pkernel *k, uint64_t offset, struct mg_buffer_name *out,
                       struct mg_buf *text)
{
    uint64_t found[MOST_ALLOCATIONS], least = 0, most = 0;
    uint32_t n = find_allocations(b, k, offset, found);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t bytes = find_bytes(b, found[i]);
        if (!bytes) return;
        least = i ? MG_MIN(least, bytes) : bytes;
        most = MG_MAX(most, bytes);
    }
    if (!n) return;
    out->bytes = most;
    out->shift = n == 1 ? find_shift(b, k, offset) : 0;
    mg_buf_printf(text, ", buffer%s of %s", n > 1 ? "s" : "", least < most ? "up to " : "");
    mg_add_grouped(text, most);
    mg_buf_adds(text, " bytes");
}

/* Is it one that the program's text has, or one that a compiler made? */
static bool is_readable(const char *name)
{
    return *name && !strstr(name, "_param_") && !strchr(name, '$');
}

static void tell_argument(struct mg_buffers *b, const struct walk *w, uint32_t ix, struct known *out)
{
    const struct mg_pkernel *k = out->k;
    struct mg_buf text = MG_BUF_INIT;
    const char *name = mg_name(w->m, w->m->vars.at[w->f->first_param + ix].name);
    const char *named = is_readable(name) ? mg_arena_printf(&b->arena, " `%s`", name) : "";
    out->name->place = mg_arena_printf(&b->arena, "argument %u%s", ix, named);
    out->name->brief = mg_arena_printf(&b->arena, "arg %u%s", ix, named);
    mg_buf_adds(&text, out->name->place);
    tell_bytes(b, k, mg_func_param_offset(w->f, w->m->vars.at, ix), out->name, &text);
    out->name->text = mg_arena_strndup(&b->arena, text.at, text.n);
    mg_buf_release(&text);
}

static void tell_variable(struct mg_buffers *b, const struct mg_module *m, mg_id id, struct known *out)
{
    const struct mg_var *v = &m->vars.at[id];
    char *plain = mg_demangle(mg_name(m, v->name));
    const char *name = plain ? plain : mg_name(m, v->name), *part = strrchr(name, ':');
    if (part) name = part + 1;
    const char *space = mg_space_name((enum mg_space)v->space),
               *text = mg_arena_printf(&b->arena, "%s variable %s", space, name);
    uint64_t bytes = mg_var_bytes(v);
    bool is_shared = v->space == MG_SPACE_shared;
    if (bytes) text = mg_arena_printf(&b->arena, "%s of %llu bytes", text, (unsigned long long)bytes);
    *out->name = (struct mg_buffer_name){
        .text = text,
        .place = text,
        .brief = mg_arena_printf(&b->arena, "%s%s%s", is_shared ? "" : space, is_shared ? "" : " ", name),
        .bytes = bytes,
        .is_shared = is_shared,
    };
    free(plain);
}

static void find_text(struct mg_buffers *b, struct known *out)
{
    const struct mg_module *m = mg_lines_module(b->modules, out->k->module);
    mg_id func = m ? mg_module_find_func(m, out->function) : 0;
    if (!func || !m->funcs.at[func].defined) return;
    index_function(b, m, func);
    struct walk w = {.m = m, .f = &m->funcs.at[func], .seen = b->seen, .round = ++b->round, .next = b->next};
    uint32_t at, addresses = 0;
    MG_FIND_FIRST(at, b->insts.n, b->insts.at[at].line < out->ptx_line);
    for (; at < b->insts.n && b->insts.at[at].line == out->ptx_line; at++) {
        const struct mg_node *n = &m->nodes.at[b->insts.at[at].node];
        if (!strcmp(out->function, out->k->name)) out->adding = find_adding(b, b->insts.at[at].node);
        for (uint32_t i = 0; i < n->n_opnds; i++) {
            const struct mg_opnd *o = &m->opnds.at[n->opnd + i];
            if (o->kind != MG_OPND_addr) continue;
            follow_operand(&w, o);
            w.wide = o->sub == MG_OPND_reg && mg_type_bits((enum mg_type)m->regs.at[o->id].type) == 64;
            out->base = !addresses++ && o->sub == MG_OPND_reg ? o->id : 0;
            out->offset = (int64_t)o->val;
        }
    }
    for (uint32_t i = 0; i < w.n_next; i++)
        for (uint32_t d = b->first[w.next[i]]; d; d = b->defs.at[d - 1].next)
            follow_node(&w, &m->nodes.at[b->defs.at[d - 1].node]);
    bool one = w.params && !(w.params & (w.params - 1));
    if (w.loaded || (w.params && w.var) || (w.params && !one)) return;
    if (w.var && !m->vars.at[w.var].is_param) tell_variable(b, m, w.var, out);
    if (w.var || !one || strcmp(out->function, out->k->name)) return; /* arguments of a device function: the caller's */
    tell_argument(b, &w, (uint32_t)__builtin_ctzll(w.params), out);
}

static const struct known *find_known(struct mg_buffers *b, const struct mg_pkernel *k, const char *function,
                                      uint32_t ptx_line)
{
    uint64_t key = (uint64_t)(k - b->p->kernels) << 32 | ptx_line, last = 0;
    mg_map_get(&b->known_at, key, &last);
    for (uint64_t i = last; i; i = b->known.at[i - 1].next)
        if (!strcmp(b->known.at[i - 1].function, function)) return &b->known.at[i - 1];
    struct known x = {.k = k,
                      .function = mg_arena_strndup(&b->arena, function, strlen(function)),
                      .ptx_line = ptx_line,
                      .name = mg_arena_new(&b->arena, struct mg_buffer_name),
                      .next = (uint32_t)last};
    if (ptx_line) find_text(b, &x);
    struct known *kept = mg_vec_push(&b->known);
    *kept = x;
    mg_map_set(&b->known_at, key, b->known.n);
    return kept;
}

const struct mg_buffer_name *mg_buffer_name_at(struct mg_buffers *b, const struct mg_pkernel *k, const char *function,
                                               uint32_t ptx_line)
{
    const struct mg_buffer_name *name = find_known(b, k, function, ptx_line)->name;
    return name->text ? name : NULL;
}

const char *mg_buffer_at(struct mg_buffers *b, const struct mg_pkernel *k, const char *function, uint32_t ptx_line)
{
    return find_known(b, k, function, ptx_line)->name->text;
}

bool mg_buffer_base_at(struct mg_buffers *b, const struct mg_pkernel *k, const char *function, uint32_t ptx_line,
                       uint32_t *base, int64_t *offset)
{
    const struct known *x = find_known(b, k, function, ptx_line);
    *base = x->base;
    *offset = x->offset;
    return x->base != 0;
}

const char *mg_buffer_of(struct mg_buffers *b, const struct mg_fact *f)
{
    return f->kernel && f->ptx_line ? mg_buffer_at(b, f->kernel, f->function, f->ptx_line) : NULL;
}

bool mg_buffer_is_added_up(struct mg_buffers *b, const struct mg_pkernel *k, const char *function, uint32_t ptx_line,
                           bool full)
{
    return find_known(b, k, function, ptx_line)->adding >= (full ? ADDING_IF_FULL : ADDING_ALWAYS);
}

const struct mg_buffer_name *mg_buffer_of_site(struct mg_buffers *b, uint32_t kernel, const char *function,
                                               uint32_t ptx_line)
{
    return kernel < b->p->n_kernels && function ? mg_buffer_name_at(b, &b->p->kernels[kernel], function, ptx_line)
                                                : NULL;
}
