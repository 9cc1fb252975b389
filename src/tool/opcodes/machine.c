/* opcodes, level=sass: the machine instructions of each kernel and how often they were executed.
 *
 * Static: what the disassembler lists for the kernel and, in the same image, for functions that were not inlined.
 * Dynamic: block counts of the PTX, carried over to machine code (sass_map.h); instructions that do not map have none,
 * and their share is told. The charts of tool opcodes stay those of the PTX. */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/vec.h"
#include "view/kit.h"
#include "tool/opcodes/sass_map.h"

struct op {
    const char *name;
    size_t n; /* up to the first dot */
    uint64_t n_static, n_guarded, threads;
};
enum { MOST_CODE = 50000 }; /* instructions that are listed one by one, of all kernels together */
struct placed {             /* an instruction that says which PTX it comes from */
    const struct mg_sass_inst *of;
    const struct mg_result_site *site;
    bool known; /* how often it was executed; of copies of one loop only their sum is known, which table sass has */
    uint64_t threads;
};
struct machine { /* of one kernel */
    const struct mg_result_kernel *k;
    struct mg_result_machine code;
    MG_VEC(struct op) ops;
    MG_VEC(struct placed) placed;
    uint64_t insts, known_insts, blocks, mapped_blocks, threads, spill_loads, spill_stores;
    bool measured, has_lines;
    double ptx_left; /* share of the PTX's thread instructions in blocks that no mapped machine block comes from */
};

static struct op *op_of(struct machine *m, const char *name)
{
    size_t n = strcspn(name, ".");
    for (uint32_t i = 0; i < m->ops.n; i++)
        if (m->ops.at[i].n == n && !memcmp(m->ops.at[i].name, name, n)) return &m->ops.at[i];
    *mg_vec_push(&m->ops) = (struct op){.name = name, .n = n};
    return &m->ops.at[m->ops.n - 1];
}

/* PTX line -> number of its site: instructions have one each. */
static struct mg_map sites_by_line(const struct mg_result_kernel *k)
{
    struct mg_map map = MG_MAP_INIT;
    for (uint32_t i = 0; i < k->n_sites; i++)
        if (k->sites[i].ptx_line && *k->sites[i].op) mg_map_set(&map, k->sites[i].ptx_line, i);
    return map;
}

static void place_code(struct machine *m, const struct mg_sass_func *f, const struct mg_sass_map *map)
{
    struct mg_map sites = sites_by_line(m->k);
    for (uint32_t i = 0; i < f->n_insts; i++) {
        uint64_t site;
        if (f->insts[i].line && mg_map_get(&sites, f->insts[i].line, &site))
            *mg_vec_push(&m->placed) =
                (struct placed){&f->insts[i], &m->k->sites[site], map->mapped[map->block_of[i]], map->threads[i]};
    }
    mg_map_release(&sites);
}

static void add_function(struct machine *m, const struct mg_sass_func *f, bool *seen)
{
    struct mg_sass_map *map = mg_sass_map_new(f, m->k);
    m->insts += f->n_insts;
    m->blocks += map->n_blocks;
    m->known_insts += map->known_insts;
    m->mapped_blocks += map->mapped_blocks;
    m->has_lines |= map->has_lines;
    for (uint32_t b = 0; b < m->k->n_blocks; b++) seen[b] |= map->seen[b];
    for (uint32_t i = 0; i < f->n_insts; i++) {
        struct op *o = op_of(m, f->insts[i].op);
        uint64_t threads = map->threads[i];
        o->n_static++;
        o->n_guarded += f->insts[i].guarded;
        o->threads += threads;
        m->threads += threads;
        m->spill_loads += !strncmp(o->name, "LDL", o->n) && o->n == 3;
        m->spill_stores += !strncmp(o->name, "STL", o->n) && o->n == 3;
    }
    place_code(m, f, map);
    mg_sass_map_free(map);
}

static int by_use(const void *a, const void *b)
{
    const struct op *x = a, *y = b;
    if (x->threads != y->threads) return x->threads > y->threads ? -1 : 1;
    if (x->n_static != y->n_static) return x->n_static > y->n_static ? -1 : 1;
    return strcmp(x->name, y->name);
}

static void machine_init(struct machine *m, const struct mg_tool_result *r, const struct mg_result_kernel *k)
{
    *m = (struct machine){.k = k, .measured = k->threads != NULL};
    if (r->machine)
        m->code = r->machine(r->user, k);
    else
        m->code.why = "machine code is looked at in a report";
    if (!m->code.text) return;
    bool *seen = mg_xcalloc(k->n_blocks + 1, 1);
    const struct mg_sass_func *f = mg_sass_find(m->code.text, k->name);
    if (f) add_function(m, f, seen);
    for (uint32_t b = 0; b < k->n_blocks; b++) { /* functions, each at its first block */
        const char *name = k->blocks[b].function;
        if (!strcmp(name, k->name) || (b && !strcmp(name, k->blocks[b - 1].function)) ||
            !(f = mg_sass_find(m->code.text, name)))
            continue;
        add_function(m, f, seen);
    }
    uint64_t all = 0, left = 0;
    for (uint32_t b = 0; b < k->n_blocks && k->threads; b++) {
        all += k->threads[b] * k->blocks[b].n_insts;
        left += seen[b] ? 0 : k->threads[b] * k->blocks[b].n_insts;
    }
    m->ptx_left = mg_kit_share(left, all);
    if (m->ops.n) qsort(m->ops.at, m->ops.n, sizeof *m->ops.at, by_use);
    free(seen);
}

/* At most so many; returns how many there were. */
static uint32_t code_json(const struct machine *m, struct mg_json *j, uint32_t most)
{
    uint32_t n = MG_MIN(m->placed.n, most);
    mg_json_key(j, "code_at");
    mg_json_arr(j);
    for (uint32_t i = 0; i < n; i++) {
        const struct placed *c = &m->placed.at[i];
        mg_json_obj(j);
        mg_kit_site_json(j, m->k, c->site);
        mg_json_key_hex(j, "address", c->of->addr);
        mg_json_key_str(j, "instruction", c->of->op);
        mg_json_key_bool(j, "guarded", c->of->guarded);
        mg_json_key_u64_if(j, "executions", m->measured && c->known, c->threads);
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
    mg_json_key_u64(j, "code_left_out", m->placed.n - n);
    return n;
}

static uint32_t machine_json(const struct machine *m, struct mg_json *j, uint32_t most_code)
{
    struct mg_buf name = MG_BUF_INIT;
    bool has = m->code.text != NULL;
    mg_json_obj(j);
    mg_json_key_u64(j, "kernel", m->k->id);
    mg_json_key_str(j, "reason", m->code.why);
    mg_json_key_str(j, "code", !has ? NULL : m->code.native ? "native" : "assembled");
    mg_json_key_u64_if(j, "registers", has && m->code.registers, m->code.registers);
    mg_json_key_u64_if(j, "instructions", has, m->insts);
    mg_json_key_u64_if(j, "local_loads", has, m->spill_loads);
    mg_json_key_u64_if(j, "local_stores", has, m->spill_stores);
    mg_json_key_u64_if(j, "blocks", has, m->blocks);
    mg_json_key_u64_if(j, "mapped_blocks", has && m->measured, m->mapped_blocks);
    mg_json_key_u64_if(j, "mapped_instructions", has && m->measured, m->known_insts);
    mg_json_key_u64_if(j, "thread", has && m->measured, m->threads);
    mg_json_key_f64_if(j, "ptx_unmapped_share", has && m->measured && m->has_lines, m->ptx_left);
    mg_json_key(j, "opcodes");
    mg_json_arr(j);
    for (uint32_t i = 0; i < m->ops.n; i++) {
        const struct op *o = &m->ops.at[i];
        mg_buf_reset(&name);
        mg_buf_add(&name, o->name, o->n);
        mg_json_obj(j);
        mg_json_key_str(j, "name", name.at);
        mg_json_key_u64(j, "static", o->n_static);
        mg_json_key_u64(j, "guarded", o->n_guarded);
        mg_json_key_u64_if(j, "thread", m->measured, o->threads);
        mg_json_end(j, '}');
    }
    mg_json_end(j, ']');
    uint32_t listed = code_json(m, j, most_code);
    mg_json_end(j, '}');
    mg_buf_release(&name);
    return listed;
}

/* Instruction by instruction, for the lines that they come from. */
static void code_table(struct mg_table *t, const struct machine *m, uint32_t n)
{
    struct mg_buf op = MG_BUF_INIT;
    uint64_t left = MOST_CODE, out = 0;
    mg_table_begin(t, "machine-code", "machine instructions by line");
    MG_TABLE_COLUMNS(t, {"line", MG_COL_PLACE}, {"address", MG_COL_HEX}, {"instruction", MG_COL_TEXT},
                     {"thread", MG_COL_COUNT}, {"kernel", MG_COL_TEXT});
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t c = 0; c < m[i].placed.n; c++) {
            const struct placed *at = &m[i].placed.at[c];
            if (!left) {
                out++;
                continue;
            }
            left--;
            mg_buf_reset(&op);
            mg_buf_printf(&op, "%s%s", at->of->guarded ? "@" : "", at->of->op);
            mg_table_row(t);
            mg_table_place(t, at->site);
            mg_table_u64(t, at->of->addr);
            mg_table_text(t, op.at);
            if (m[i].measured && at->known)
                mg_table_u64(t, at->threads);
            else
                mg_table_null(t);
            mg_table_text(t, m[i].k->demangled);
        }
    mg_table_empty(t, "no machine instruction says which PTX it comes from");
    if (out) mg_table_note(t, "and %llu more instructions", (unsigned long long)out);
    mg_buf_release(&op);
}

static void machine_table(struct mg_table *t, const struct machine *m, uint32_t n)
{
    const char *none = NULL;
    mg_table_begin(t, "machine", "machine code");
    mg_table_column(t, "kernel", MG_COL_TEXT, NULL);
    mg_table_column(t, "code", MG_COL_TEXT, NULL);
    mg_table_column(t, "registers", MG_COL_COUNT, NULL);
    mg_table_column(t, "instructions", MG_COL_COUNT, NULL);
    mg_table_column(t, "local loads", MG_COL_COUNT, NULL);
    mg_table_column(t, "local stores", MG_COL_COUNT, NULL);
    mg_table_column(t, "blocks", MG_COL_COUNT, NULL);
    mg_table_column(t, "unmapped", MG_COL_PERCENT, "instructions");
    mg_table_column(t, "PTX left", MG_COL_PERCENT, "executed");
    for (uint32_t i = 0; i < n; i++) {
        if (!m[i].code.text) {
            if (!none || strcmp(none, m[i].code.why)) mg_table_note(t, "%s: %s", m[i].k->demangled, m[i].code.why);
            none = m[i].code.why;
            continue;
        }
        mg_table_row(t);
        mg_table_text(t, m[i].k->demangled);
        mg_table_text(t, m[i].code.native ? "native" : "assembled");
        if (m[i].code.registers)
            mg_table_u64(t, m[i].code.registers);
        else
            mg_table_null(t);
        mg_table_u64(t, m[i].insts);
        mg_table_u64(t, m[i].spill_loads);
        mg_table_u64(t, m[i].spill_stores);
        mg_table_u64(t, m[i].blocks);
        if (m[i].measured)
            mg_table_f64(t, mg_kit_percent(m[i].insts - m[i].known_insts, m[i].insts));
        else
            mg_table_null(t);
        if (m[i].measured && m[i].has_lines)
            mg_table_f64(t, 100 * m[i].ptx_left);
        else
            mg_table_null(t);
    }
}

static void op_table(struct mg_table *t, const struct machine *m, uint32_t n)
{
    struct mg_buf name = MG_BUF_INIT;
    mg_table_begin(t, "sass", "machine instructions by opcode");
    mg_table_column(t, "kernel", MG_COL_TEXT, NULL);
    mg_table_column(t, "opcode", MG_COL_TEXT, NULL);
    mg_table_column(t, "static", MG_COL_COUNT, NULL);
    mg_table_column(t, "thread", MG_COL_COUNT, NULL);
    mg_table_column(t, "share", MG_COL_PERCENT, NULL);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t o = 0; o < m[i].ops.n; o++) {
            const struct op *op = &m[i].ops.at[o];
            mg_buf_reset(&name);
            mg_buf_add(&name, op->name, op->n);
            mg_table_row(t);
            mg_table_text(t, m[i].k->demangled);
            mg_table_text(t, name.at);
            mg_table_u64(t, op->n_static);
            if (m[i].measured)
                mg_table_u64(t, op->threads), mg_table_f64(t, mg_kit_percent(op->threads, m[i].threads));
            else
                mg_table_null(t), mg_table_null(t);
        }
    mg_table_sort(t, 3);
    mg_buf_release(&name);
}

void mg_opcodes_machine(const struct mg_tool_result *r, struct mg_table *t, struct mg_json *j)
{
    uint32_t n = r->n_kernels + r->n_bare;
    struct machine *m = mg_xcalloc(n + 1, sizeof *m);
    uint32_t code = MOST_CODE;
    mg_json_key(j, "machine");
    mg_json_arr(j);
    for (uint32_t i = 0; i < n; i++) {
        machine_init(&m[i], r, i < r->n_kernels ? &r->kernels[i] : &r->bare[i - r->n_kernels]);
        code -= machine_json(&m[i], j, code);
    }
    mg_json_end(j, ']');
    op_table(t, m, n);
    machine_table(t, m, n);
    code_table(t, m, n);
    for (uint32_t i = 0; i < n; i++) {
        mg_vec_release(&m[i].ops);
        mg_vec_release(&m[i].placed);
    }
    free(m);
}
