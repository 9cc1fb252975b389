#include "view/unseen.h"

#include <string.h>

#include "base/json.h"
#include "isa/isa.h"
#include "view/kit.h"

static bool has(const char *op, const char *word) /* between dots */
{
    size_t n = strlen(word);
    for (const char *at = strchr(op, '.'); at; at = strchr(at + 1, '.'))
        if (!strncmp(at + 1, word, n) && (!at[n + 1] || at[n + 1] == '.')) return true;
    return false;
}

const char *mg_unseen_kind(const char *op)
{
    enum mg_op ix = mg_op_find(op, strcspn(op, "."));
    switch (ix) {
    case MG_OP_tex:
    case MG_OP_tld4:
        return "texture read";
    case MG_OP_suld:
    case MG_OP_sust:
    case MG_OP_sured:
        return "surface access";
    case MG_OP_ldmatrix:
        return "matrix load";
    case MG_OP_stmatrix:
        return "matrix store";
    case MG_OP_wmma:
        return has(op, "load") ? "matrix load" : has(op, "store") ? "matrix store" : NULL;
    case MG_OP_wgmma:
        return has(op, "mma_async") ? "matrix operands in shared memory" : NULL;
    case MG_OP_tcgen05:
        return "tensor memory";
    case MG_OP_multimem:
        return "multicast access";
    case MG_OP_mbarrier:
        return "barrier in memory";
    case MG_OP_tensormap:
        return "tensor map";
    case MG_OP_st:
        return has(op, "bulk") ? "bulk store" : NULL;
    case MG_OP_cp:
        return has(op, "bulk") && !has(op, "commit_group") && !has(op, "wait_group") && !has(op, "prefetch")
                   ? "bulk copy"
                   : NULL;
    case MG_OP_ld: /* mg_access_of sees them */
    case MG_OP_ldu:
    case MG_OP_atom:
    case MG_OP_red:
    case MG_OP_discard: /* moves nothing */
        return NULL;
    default:
        return mg_op_flags(ix) & (MG_OPF_READS | MG_OPF_WRITES) ? "memory access" : NULL;
    }
}

struct unseen {
    const char *op, *kind;
    uint64_t instructions, executions;
    bool known;
};
typedef MG_VEC(struct unseen) unseen_vec;

static void add_unseen(unseen_vec *v, const struct mg_result_kernel *k, uint32_t b, const struct mg_site_op *op,
                       bool bulk)
{
    const char *kind = mg_unseen_kind(op->op);
    if (!kind || (bulk && !strncmp(op->op, "cp.", 3) && !strstr(op->op, ".tensor"))) return;
    size_t i = 0;
    while (i < v->n && strcmp(v->at[i].op, op->op)) i++;
    if (i == v->n) *mg_vec_push(v) = (struct unseen){.op = op->op, .kind = kind, .known = true};
    v->at[i].instructions += op->n;
    v->at[i].known &= k->threads && !op->n_guarded; /* lanes whose guard is false do nothing */
    if (k->threads) v->at[i].executions += k->threads[b] * op->n;
}

static void note(struct mg_table *t, const struct mg_result_kernel *k, const unseen_vec *v)
{
    struct mg_buf line = MG_BUF_INIT, name = MG_BUF_INIT;
    mg_kit_kernel_name(k, 60, &name);
    for (size_t i = 0; i < v->n; i++) {
        mg_buf_printf(&line, "%s%llu %s (%s", i ? ", " : "", (unsigned long long)v->at[i].instructions, v->at[i].op,
                      v->at[i].kind);
        if (v->at[i].known) mg_buf_printf(&line, ", %llu executions", (unsigned long long)v->at[i].executions);
        mg_buf_addc(&line, ')');
    }
    mg_table_note_first(t, "not looked at in %s: %s", name.at, line.at);
    mg_buf_release(&line);
    mg_buf_release(&name);
}

static void write(struct mg_json *j, const struct mg_result_kernel *k, const unseen_vec *v)
{
    for (size_t i = 0; i < v->n; i++) {
        mg_json_obj(j);
        mg_json_key_u64(j, "kernel", k->id);
        mg_json_key_str(j, "op", v->at[i].op);
        mg_json_key_str(j, "kind", v->at[i].kind);
        mg_json_key_u64(j, "instructions", v->at[i].instructions);
        mg_json_key_u64_if(j, "executions", v->at[i].known, v->at[i].executions);
        mg_json_end(j, '}');
    }
}

void mg_unseen_tell(const struct mg_tool_result *r, struct mg_table *t, struct mg_json *j, bool bulk)
{
    mg_json_key(j, "not_looked_at");
    mg_json_arr(j);
    for (uint32_t x = 0; x < r->n_kernels; x++) {
        const struct mg_result_kernel *k = &r->kernels[x];
        unseen_vec v = {0};
        for (uint32_t b = 0; k->blocks && b < k->n_blocks; b++)
            for (uint32_t i = 0; i < k->blocks[b].n_ops; i++) add_unseen(&v, k, b, &k->blocks[b].ops[i], bulk);
        if (v.n) {
            note(t, k, &v);
            write(j, k, &v);
        }
        mg_vec_release(&v);
    }
    mg_json_end(j, ']');
}
