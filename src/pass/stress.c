/* See stress.h. Names that a debug section mentions stay: sections are text and are not rewritten. */
#include "pass/stress.h"

#include <stdio.h>
#include <string.h>

struct probe_regs { /* of one function, made when first needed */
    mg_id b16, b32, b64, b128;
};

static bool is_word_char(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' ||
           c == '%';
}

/* Names that stand in debug sections or raw lines. */
static void note_pinned(const struct mg_module *m, struct mg_map *pinned)
{
    for (mg_id s = 1; s < m->sections.n; s++) {
        for (uint32_t i = 0; i < m->sections.at[s].n_lines; i++) {
            const char *t = mg_name(m, m->strs.at[m->sections.at[s].first_line + i]);
            while (*t) {
                const char *e = t;
                while (is_word_char(*e)) e++;
                mg_str id = e > t ? mg_intern_find(&m->names, t, (size_t)(e - t)) : 0;
                if (id) mg_map_set(pinned, id, 1);
                t = e > t ? e : t + 1;
            }
        }
    }
}

static mg_str numbered(struct mg_module *m, const char *fmt, uint32_t id)
{
    char text[32];
    return mg_intern_add(&m->names, text, (size_t)snprintf(text, sizeof text, fmt, id));
}

static void rename_all(struct mg_module *m)
{
    struct mg_map pinned = MG_MAP_INIT;
    note_pinned(m, &pinned);
    for (mg_id g = 1; g < m->groups.n; g++) {
        struct mg_reg_group *group = &m->groups.at[g];
        group->name = numbered(m, group->count ? "%%zq%u_" : "zq%ux", g);
        for (uint32_t i = 0; i < (group->count ? group->count : 1); i++)
            m->regs.at[group->first_reg + i].name = group->name;
    }
    for (mg_id v = 1; v < m->vars.n; v++) {
        struct mg_var *var = &m->vars.at[v];
        if (!var->func || !var->name || mg_map_get(&pinned, var->name, NULL)) continue;
        if (var->is_reg_param)
            m->regs.at[var->reg].name = var->name = numbered(m, "zp%ux", v);
        else if (!var->is_param && !var->is_ret)
            var->name = numbered(m, "zv%ux", v);
    }
    for (mg_id l = 1; l < m->labels.n; l++)
        if (!mg_map_get(&pinned, m->labels.at[l].name, NULL)) m->labels.at[l].name = numbered(m, "$zl%u", l);
    for (mg_id t = 1; t < m->targets.n; t++) m->targets.at[t].name = numbered(m, "zt%u", t);
    mg_map_release(&pinned);
}

static mg_id probe_reg(struct mg_module *m, mg_id func, unsigned bits, struct probe_regs *p)
{
    mg_id *r = bits == 16 ? &p->b16 : bits == 32 ? &p->b32 : bits == 64 ? &p->b64 : &p->b128;
    enum mg_type type = bits == 16 ? MG_TYPE_b16 : bits == 32 ? MG_TYPE_b32 : bits == 64 ? MG_TYPE_b64 : MG_TYPE_b128;
    if (!*r) *r = mg_module_add_reg(m, func, "zread", type);
    return *r;
}

/* An instruction that reads reg and changes nothing anyone sees; 0 when the type cannot be read. */
static mg_id new_probe(struct mg_module *m, mg_id func, mg_id reg, struct probe_regs *p)
{
    enum mg_type type = (enum mg_type)m->regs.at[reg].type;
    struct mg_opnd o[4] = {mg_o_reg(0), mg_o_reg(reg)};
    const char *form;
    unsigned bits = mg_type_bits(type), n = 2;
    if (m->regs.at[reg].vec) o[1].sub = 1;
    if (type == MG_TYPE_pred) {
        form = "selp.b32";
        bits = 32;
        o[1] = mg_o_imm(1);
        o[2] = mg_o_imm(0);
        o[3] = mg_o_reg(reg);
        n = 4;
    } else if (bits == 8) {
        form = "cvt.u32.u8";
        bits = 32;
    } else if (mg_type_kind(type) == MG_TK_OPAQUE) {
        return 0;
    } else {
        form = bits == 16 ? "mov.b16" : bits == 32 ? "mov.b32" : bits == 64 ? "mov.b64" : "mov.b128";
    }
    o[0] = mg_o_reg(probe_reg(m, func, bits, p));
    return mg_node_new(m, form, o, n);
}

static mg_id probe_defs(struct mg_module *m, mg_id func, mg_id node, struct probe_regs *p)
{
    mg_id defs[256], at = node;
    uint32_t n = mg_node_defs(m, node, defs, MG_COUNT_OF(defs));
    for (uint32_t i = 0; i < n && i < MG_COUNT_OF(defs); i++) {
        mg_id probe = new_probe(m, func, defs[i], p);
        if (!probe) continue;
        mg_node_insert_after(m, func, at, probe);
        at = probe;
    }
    return at;
}

/* `bra next; next:` behind node. */
static void split_behind(struct mg_module *m, mg_id func, mg_id node)
{
    mg_id label = mg_module_add_label(m, func, "$zsplit");
    struct mg_opnd o = mg_o_label(label);
    mg_id branch = mg_node_new(m, "bra", &o, 1), place = mg_node_new_kind(m, MG_NODE_label, label);
    m->labels.at[label].targeted = 1;
    mg_node_insert_after(m, func, node, branch);
    mg_node_insert_after(m, func, branch, place);
}

static void stress_body(struct mg_module *m, mg_id func)
{
    struct probe_regs regs = {0};
    uint32_t in_line = 0;
    for (mg_id id = m->funcs.at[func].first_node, next; id; id = next) {
        struct mg_node n = m->nodes.at[id];
        next = n.next;
        if (n.kind == MG_NODE_open || n.kind == MG_NODE_close) {
            mg_node_remove(m, func, id);
        } else if (n.kind == MG_NODE_label) {
            in_line = 0;
        } else if (n.kind == MG_NODE_inst) {
            bool ends = mg_node_form(m, &n)->op_flags & MG_OPF_ENDS_BLOCK;
            mg_id last = probe_defs(m, func, id, &regs);
            if (!ends && in_line++ == 0) split_behind(m, func, last);
            if (ends) in_line = 0;
        }
    }
}

void mg_stress(struct mg_module *m)
{
    rename_all(m);
    for (mg_id f = 1; f < m->funcs.n; f++)
        if (m->funcs.at[f].defined) stress_body(m, f);
}
