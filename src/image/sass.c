/* The text of disassemblers, line by line:
 *
 *   .section .text.NAME,...      Function : NAME      a function begins
 *   //## File "...", line 12                          where what follows comes from
 *   .L_x_3:                                           a label
 *   0a10 (in a comment)  @!P0 BRA `(.L_x_3) ;         an instruction: address, guard, opcode, operands
 *
 * Everything else (directives, encodings) is passed over. */
#include "image/sass.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "base/search.h"

enum { longest_op = 63 };
struct span {
    const char *at;
    size_t n;
};
struct label {
    struct span name;
    uint32_t inst;
};
struct ref {
    uint32_t inst;
    struct span name;
    uint64_t addr; /* name.n 0: this address */
};
struct parsing {
    struct mg_sass *s;
    MG_VEC(struct mg_sass_func) funcs;
    MG_VEC(struct mg_sass_inst) insts; /* of the function under work */
    MG_VEC(struct label) labels;
    MG_VEC(struct ref) refs; /* in order of instructions */
    MG_VEC(uint32_t) targets;
    uint32_t line;
};

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
           c == '.';
}

static struct span trim(struct span s)
{
    while (s.n && (*s.at == ' ' || *s.at == '\t')) s.at++, s.n--;
    while (s.n && (s.at[s.n - 1] == ' ' || s.at[s.n - 1] == '\t' || s.at[s.n - 1] == '\r')) s.n--;
    return s;
}

static bool begins(struct span s, const char *with)
{
    size_t n = strlen(with);
    return s.n >= n && !memcmp(s.at, with, n);
}

static struct span after(struct span s, size_t n)
{
    return trim((struct span){s.at + n, s.n - n});
}

static struct span name_of(struct span s)
{
    size_t n = 0;
    while (n < s.n && is_name(s.at[n])) n++;
    return (struct span){s.at, n};
}

/* Hexadecimal digits without prefix; *n: how many. */
static uint64_t hex(struct span s, size_t *n)
{
    uint64_t v = 0;
    for (*n = 0; *n < s.n && *n < 15; ++*n) {
        char c = s.at[*n];
        int d = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (d < 0) break;
        v = v * 16 + (unsigned)d;
    }
    return v;
}

/* ---- a function ends: its branches find their targets ------------------------------------------------------ */

static bool find_target(const struct parsing *p, const struct ref *r, uint32_t *inst)
{
    for (uint32_t i = 0; r->name.n && i < p->labels.n; i++)
        if (p->labels.at[i].name.n == r->name.n && !memcmp(p->labels.at[i].name.at, r->name.at, r->name.n))
            return *inst = p->labels.at[i].inst, *inst < p->insts.n;
    uint32_t n = r->name.n ? 0 : p->insts.n;
    MG_FIND_FIRST(*inst, n, p->insts.at[*inst].addr < r->addr); /* addresses grow */
    return *inst < n && p->insts.at[*inst].addr == r->addr;
}

static void end_function(struct parsing *p)
{
    struct mg_sass_func *f = p->funcs.n ? &p->funcs.at[p->funcs.n - 1] : NULL;
    for (uint32_t i = 0; f && i < p->refs.n; i++) {
        uint32_t to, from = p->refs.at[i].inst;
        if (!find_target(p, &p->refs.at[i], &to)) continue;
        if (!p->insts.at[from].n_targets++) p->insts.at[from].targets = p->targets.n;
        *mg_vec_push(&p->targets) = to;
    }
    if (f) {
        f->n_insts = p->insts.n;
        f->insts = p->insts.n ? mg_arena_copy(&p->s->arena, p->insts.at, p->insts.n * sizeof *p->insts.at) : NULL;
        f->targets =
            p->targets.n ? mg_arena_copy(&p->s->arena, p->targets.at, p->targets.n * sizeof *p->targets.at) : NULL;
    }
    p->insts.n = p->labels.n = p->refs.n = p->targets.n = 0;
    p->line = 0;
}

static void begin_function(struct parsing *p, struct span name)
{
    end_function(p);
    if (name.n)
        *mg_vec_push(&p->funcs) = (struct mg_sass_func){.name = mg_arena_strndup(&p->s->arena, name.at, name.n)};
}

/* ---- lines ----------------------------------------------------------------------------------------------------- */

static void add_ref(struct parsing *p, struct ref r)
{
    r.inst = p->insts.n;
    *mg_vec_push(&p->refs) = r;
}

/* The targets of a branch: `(LABEL), the labels behind BRANCH_TARGETS, or the last address among the operands. */
static void read_targets(struct parsing *p, struct span operands)
{
    static const char many[] = "BRANCH_TARGETS";
    struct ref last = {0};
    bool found = false;
    for (size_t i = 0, n; i < operands.n; i++) {
        struct span at = {operands.at + i, operands.n - i};
        if (begins(at, many)) {
            for (at = after(at, sizeof many - 1); (n = name_of(at).n);
                 at = after(at, n + (n < at.n && at.at[n] == ',')))
                add_ref(p, (struct ref){.name = name_of(at)});
            return;
        }
        if (begins(at, "`(")) {
            last = (struct ref){.name = name_of(after(at, 2))};
            found = last.name.n > 0;
        } else if (begins(at, "0x") && (!i || !is_name(operands.at[i - 1]))) {
            last = (struct ref){.addr = hex((struct span){at.at + 2, at.n - 2}, &n)};
            found = n > 0;
        }
    }
    if (found) add_ref(p, last);
}

static void read_inst(struct parsing *p, struct span s, uint64_t addr)
{
    struct mg_sass_inst i = {.addr = (uint32_t)addr, .line = p->line};
    const char *end = memchr(s.at, ';', s.n);
    if (!p->funcs.n || addr > UINT32_MAX || (p->insts.n && p->insts.at[p->insts.n - 1].addr >= addr)) return;
    if (end) s.n = (size_t)(end - s.at);
    if (begins(s, "{")) s = after(s, 1);
    if (begins(s, "@")) {
        const char *blank = memchr(s.at, ' ', s.n);
        if (!blank) return;
        i.guarded = !begins(s, "@PT ") && !begins(s, "@UPT ");
        s = after(s, (size_t)(blank - s.at));
    }
    struct span op = name_of(s);
    if (!op.n || op.n > longest_op) return;
    i.op = mg_arena_strndup(&p->s->arena, op.at, op.n);
    struct span operands = after(s, op.n);
    if (begins(op, "BRA"))
        i.guarded |= memchr(operands.at, ',', operands.n) != NULL; /* by a predicate among its operands */
    if (begins(op, "BRA") || begins(op, "BRX") || begins(op, "JMP") || begins(op, "JMX") || begins(op, "CALL"))
        read_targets(p, operands);
    *mg_vec_push(&p->insts) = i;
}

static void read_line(struct parsing *p, struct span s)
{
    static const char section[] = ".section", text[] = ".text.", function[] = "Function :", file[] = "//## File",
                      line[] = ", line ";
    size_t n;
    s = trim(s);
    if (begins(s, section)) {
        s = after(s, sizeof section - 1);
        begin_function(p, begins(s, text) ? name_of(after(s, sizeof text - 1)) : (struct span){s.at, 0});
    } else if (begins(s, function)) {
        begin_function(p, name_of(after(s, sizeof function - 1)));
    } else if (begins(s, file)) {
        for (size_t i = 0; i + sizeof line - 1 < s.n; i++) {
            if (memcmp(s.at + i, line, sizeof line - 1)) continue;
            uint32_t v = 0;
            for (i += sizeof line - 1; i < s.n && s.at[i] >= '0' && s.at[i] <= '9' && v < 100000000; i++)
                v = v * 10 + (uint32_t)(s.at[i] - '0');
            p->line = v;
            break;
        }
    } else if (begins(s, "/*")) {
        uint64_t addr = hex((struct span){s.at + 2, s.n - 2}, &n);
        if (n && s.n >= n + 4 && !memcmp(s.at + 2 + n, "*/", 2)) read_inst(p, after(s, n + 4), addr);
    } else if ((n = name_of(s).n) && n + 1 == s.n && s.at[n] == ':' && !begins(s, text)) {
        *mg_vec_push(&p->labels) = (struct label){{s.at, n}, p->insts.n};
    }
}

struct mg_sass *mg_sass_parse(const char *text, size_t bytes)
{
    struct parsing p = {.s = mg_xcalloc(1, sizeof *p.s)};
    for (size_t at = 0; at < bytes;) {
        const char *end = memchr(text + at, '\n', bytes - at);
        size_t n = end ? (size_t)(end - (text + at)) : bytes - at;
        read_line(&p, (struct span){text + at, n});
        at += n + 1;
    }
    end_function(&p);
    p.s->n_funcs = p.funcs.n;
    p.s->funcs = p.funcs.n ? mg_arena_copy(&p.s->arena, p.funcs.at, p.funcs.n * sizeof *p.funcs.at) : NULL;
    mg_vec_release(&p.funcs);
    mg_vec_release(&p.insts);
    mg_vec_release(&p.labels);
    mg_vec_release(&p.refs);
    mg_vec_release(&p.targets);
    return p.s;
}

void mg_sass_free(struct mg_sass *s)
{
    if (!s) return;
    mg_arena_release(&s->arena);
    free(s);
}

const struct mg_sass_func *mg_sass_find(const struct mg_sass *s, const char *name)
{
    for (uint32_t i = 0; i < s->n_funcs; i++)
        if (s->funcs[i].n_insts && !strcmp(s->funcs[i].name, name)) return &s->funcs[i];
    return NULL;
}

static bool is_op(const char *op, const char *base)
{
    size_t n = strlen(base);
    return !strncmp(op, base, n) && (!op[n] || op[n] == '.');
}

enum mg_sass_flow mg_sass_flow_of(const struct mg_sass_inst *i)
{
    if (is_op(i->op, "EXIT") || is_op(i->op, "RET") || is_op(i->op, "KILL")) return MG_SASS_LEAVE;
    if (is_op(i->op, "BRA") || is_op(i->op, "BRX") || is_op(i->op, "JMP") || is_op(i->op, "JMX"))
        return i->n_targets ? MG_SASS_BRANCH : MG_SASS_ANYWHERE;
    return MG_SASS_ON;
}
