/* The words of Accel-Sim's pseudo form (export/accelsim.h) from the PTX that the profile keeps: an opcode of its map,
 * the destination and up to four sources as virtual registers; predicates are no registers there. */
#include "cli/trace_pseudo.h"

#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "base/names.h"
#include "export/accelsim.h"
#include "ir/ir.h"
#include "report/lines.h"
#include "store/store.h"

enum { FIRST_REG = 8, MOST_SOURCES = 4, MOST_REGS = 32 };

struct names {
    const char *integer, *f32, *f64, *f16;
};
static const struct names names[MG_OP_COUNT] = {
#define NAME(op, i, f, d, h) [MG_OP_##op] = {i, f, d, h},
#include "cli/accelsim.def"
#undef NAME
};

struct pseudo {
    struct mg_recording *p;
    struct mg_lines *modules;
    struct mg_map words, regs; /* by site: the words; by register of the module: its number */
    const struct mg_module *m; /* that regs is of */
    uint32_t n_regs;
    struct mg_arena arena;
    uint64_t stand_ins; /* instructions, not executions, that no name fits */
    char stand_in_ops[160];
};

static bool is_float(uint8_t type)
{
    return type == MG_TYPE_f32 || type == MG_TYPE_f64 || type == MG_TYPE_f16 || type == MG_TYPE_f16x2 ||
           type == MG_TYPE_bf16 || type == MG_TYPE_bf16x2;
}

static const char *name_by_type(const struct names *n, uint8_t type)
{
    const char *name = type == MG_TYPE_f32 ? n->f32 : type == MG_TYPE_f64 ? n->f64 : is_float(type) ? n->f16 : NULL;
    return name ? name : n->integer;
}

static const char *name_conversion(const struct mg_form *f)
{
    bool to = is_float(f->types[0]), from = f->n_types > 1 && is_float(f->types[1]);
    return to ? from ? "F2F" : "I2F" : from ? "F2I" : "I2I";
}

/* Instructions that reach memory: by the space where the trace has no record of it. */
static const char *name_access(const struct mg_form *f, const char *global, const char *shared, const char *local)
{
    switch ((enum mg_space)f->space) {
    case MG_SPACE_shared:
        return shared;
    case MG_SPACE_local:
        return local;
    case MG_SPACE_const:
    case MG_SPACE_param:
        return f->op == MG_OP_ld ? "LDC" : "MOV";
    default:
        return global;
    }
}

static bool reads_special(const struct mg_module *m, const struct mg_node *n)
{
    return n->n_opnds > 1 && m->opnds.at[n->opnd + 1].kind == MG_OPND_sreg;
}

static const char *name_of(const struct mg_module *m, const struct mg_node *n, bool leaves)
{
    const struct mg_form *f = mg_node_form(m, n);
    switch ((enum mg_op)f->op) {
    case MG_OP_ld:
    case MG_OP_ldu:
        return name_access(f, "LDG.E", "LDS", "LDL");
    case MG_OP_st:
        return name_access(f, "STG.E", "STS", "STL");
    case MG_OP_atom:
        return name_access(f, "ATOMG.E", "ATOMS", "ATOMS");
    case MG_OP_red:
        return name_access(f, "RED.E", "ATOMS", "ATOMS");
    case MG_OP_cp:
        return "LDG.E"; /* one access of the copy's source */
    case MG_OP_ldmatrix:
        return "LDSM";
    case MG_OP_stmatrix:
        return "STS";
    case MG_OP_cvt:
        return name_conversion(f);
    case MG_OP_mov:
        return reads_special(m, n) ? "S2R" : "MOV";
    case MG_OP_ret:
        return leaves ? "EXIT" : "RET";
    default:
        return f->types[0] == MG_TYPE_pred && (f->op == MG_OP_and || f->op == MG_OP_or || f->op == MG_OP_xor ||
                                               f->op == MG_OP_not || f->op == MG_OP_mov)
                   ? "PLOP3"
                   : name_by_type(&names[f->op], f->n_types ? f->types[f->n_types - 1] : MG_TYPE_none);
    }
}

/* ---- registers ---------------------------------------------------------------------------------------------- */

static uint32_t number_of(struct pseudo *p, mg_id reg)
{
    uint64_t number = 0;
    if (!mg_map_get(&p->regs, reg, &number)) mg_map_set(&p->regs, reg, number = FIRST_REG + p->n_regs++);
    return (uint32_t)number;
}

/* Those that are no predicates, the first `most`. */
static uint32_t put_regs(struct pseudo *p, const mg_id *regs, uint32_t n, uint32_t most, char text[64])
{
    uint32_t put = 0;
    size_t at = 0;
    text[0] = 0;
    for (uint32_t i = 0; i < n && put < most; i++) {
        if (p->m->regs.at[regs[i]].type == MG_TYPE_pred) continue;
        at += (size_t)snprintf(text + at, 64 - at, " R%u", number_of(p, regs[i]));
        put++;
    }
    return put;
}

/* ---- words -------------------------------------------------------------------------------------------------- */

static uint32_t bytes_of(const struct mg_form *f)
{
    uint32_t bytes = f->n_types ? mg_type_bits((enum mg_type)f->types[f->n_types - 1]) / 8 : 4;
    return MG_MAX(bytes, 1u) * MG_MAX(f->vec, (uint8_t)1);
}

static bool is_memory(const char *name)
{
    return !strncmp(name, "LD", 2) ? strcmp(name, "LDC") != 0
                                   : !strncmp(name, "ST", 2) || !strncmp(name, "ATOM", 4) || !strncmp(name, "RED.", 4);
}

static bool is_global(const char *name)
{
    static const char *const names_of[] = {"LDG.", "STG.", "ATOMG.", "RED."};
    for (unsigned k = 0; k < MG_COUNT_OF(names_of); k++)
        if (!strncmp(name, names_of[k], strlen(names_of[k]))) return true;
    return false;
}

static void note_stand_in(struct pseudo *p, const char *op)
{
    p->stand_ins++;
    mg_names_add(p->stand_in_ops, sizeof p->stand_in_ops, op);
}

static struct mg_accelsim_words *make_words(struct pseudo *p, const struct mg_access_site *s, mg_id node)
{
    const struct mg_node *n = &p->m->nodes.at[node];
    const struct mg_form *f = mg_node_form(p->m, n);
    mg_id regs[MOST_REGS];
    char to[64], from[64], width[8] = "";
    bool leaves = !strcmp(s->function, s->kernel);
    const char *name = name_of(p->m, n, leaves);
    struct mg_accelsim_words *x = mg_arena_alloc(&p->arena, sizeof *x);
    *x = (struct mg_accelsim_words){.is_exit = f->op == MG_OP_exit || (f->op == MG_OP_ret && leaves)};
    if (!name) note_stand_in(p, s->op);
    if (!name) name = "NOP";
    if (is_memory(name)) x->bytes = s->bytes ? s->bytes : bytes_of(f);
    x->is_global = is_global(name);
    if (x->bytes && x->bytes != 4) snprintf(width, sizeof width, x->bytes < 4 ? ".U%u" : ".%u", 8 * x->bytes);
    uint32_t n_to = put_regs(p, regs, MG_MIN(mg_node_defs(p->m, node, regs, MOST_REGS), (uint32_t)MOST_REGS), 1, to);
    uint32_t n_from =
        put_regs(p, regs, MG_MIN(mg_node_uses(p->m, node, regs, MOST_REGS), (uint32_t)MOST_REGS), MOST_SOURCES, from);
    snprintf(x->text, sizeof x->text, "%u%s %s%s %u%s", n_to, to, name, width, n_from, from);
    return x;
}

static const struct mg_module *find_module(const struct pseudo *p, const char *kernel)
{
    for (uint32_t i = 0; i < p->p->n_kernels; i++)
        if (!strcmp(p->p->kernels[i].name, kernel)) return mg_lines_module(p->modules, p->p->kernels[i].module);
    return NULL;
}

static mg_id find_node(const struct mg_module *m, const struct mg_access_site *s)
{
    mg_id func = m ? mg_module_find_func(m, s->function) : 0, found = 0;
    if (!func || !s->ptx_line) return 0;
    MG_EACH_NODE(m, &m->funcs.at[func], id)
    {
        const struct mg_node *n = &m->nodes.at[id];
        if (n->kind == MG_NODE_inst && n->line == s->ptx_line && !strcmp(mg_name(m, mg_node_form(m, n)->text), s->op))
            found = found ? found : id;
    }
    return found;
}

static const struct mg_accelsim_words *find_words(void *user, const struct mg_access_site *s)
{
    struct pseudo *p = user;
    uint64_t known;
    if (mg_map_get(&p->words, (uintptr_t)s, &known)) return (const void *)(uintptr_t)known;
    const struct mg_module *m = find_module(p, s->kernel);
    if (m != p->m) {
        mg_map_release(&p->regs);
        p->regs = (struct mg_map)MG_MAP_INIT;
        p->n_regs = 0;
        p->m = m;
    }
    mg_id node = find_node(m, s);
    struct mg_accelsim_words *x = node ? make_words(p, s, node) : NULL;
    mg_map_set(&p->words, (uintptr_t)s, (uintptr_t)x);
    return x;
}

enum mg_err mg_trace_convert_pseudo(const char *profile, struct mg_accesses *a, const struct mg_convert_opts *o,
                                    struct mg_converted *out, struct mg_diag *d)
{
    struct pseudo p = {0};
    enum mg_err err = mg_recording_open(profile, &p.p, d);
    if (err) return err;
    p.modules = mg_lines_new(p.p);
    err = mg_accelsim_pseudo(a, o, find_words, &p, out, d);
    fprintf(stderr, "margay: PTX instructions, not machine code: cycles of a simulation mean nothing; shared and local "
                    "memory without bank conflicts\n");
    if (p.stand_ins)
        fprintf(stderr, "margay: %llu instructions stand as NOP, the simulator has no name for them: %s\n",
                (unsigned long long)p.stand_ins, p.stand_in_ops);
    mg_lines_free(p.modules);
    mg_map_release(&p.words);
    mg_map_release(&p.regs);
    mg_arena_release(&p.arena);
    mg_recording_free(p.p);
    return err;
}
