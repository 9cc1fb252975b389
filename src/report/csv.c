/* `margay report DIR --csv`: one table, RFC 4180, first line the names of the columns. A cell that was
 * not measured is empty. Which table: kernels, blocks (default), opcodes, launches. */
#include <string.h>

#include "report/advice/advice.h"
#include "report/priv.h"

void mg_add_csv_text(struct mg_buf *out, const char *s)
{
    if (!s) s = "";
    if (!strpbrk(s, ",\"\r\n")) {
        mg_buf_adds(out, s);
        return;
    }
    mg_buf_addc(out, '"');
    for (; *s; s++) {
        if (*s == '"') mg_buf_addc(out, '"');
        mg_buf_addc(out, *s);
    }
    mg_buf_addc(out, '"');
}

static void text(struct mg_buf *out, const char *s)
{
    mg_add_csv_text(out, s);
    mg_buf_addc(out, ',');
}

static void number(struct mg_buf *out, bool has, uint64_t v)
{
    if (has) mg_buf_addu(out, v);
    mg_buf_addc(out, ',');
}

static void end_row(struct mg_buf *out)
{
    out->at[--out->n] = 0; /* the last cell's comma */
    mg_buf_adds(out, "\r\n");
}

static void kernel_columns(struct mg_buf *out, const struct mg_pkernel *k)
{
    number(out, true, k->id);
    text(out, k->name);
    text(out, k->module);
}

static void write_kernels(const struct mg_recording *p, const struct mg_report_opts *o, struct mg_buf *out)
{
    mg_buf_adds(
        out,
        "kernel,name,module,demangled,launches,instrumented,incomplete,threads,time_ns,thread_instructions,warp_instructions,estimate\r\n");
    for (uint32_t i = 0; i < p->n_kernels; i++) {
        const struct mg_pkernel *k = &p->kernels[i];
        struct mg_kernel_sums s;
        if (!mg_report_shows(o, k)) continue;
        mg_kernel_sums_init(&s, k);
        kernel_columns(out, k);
        text(out, k->demangled);
        number(out, true, k->launches);
        number(out, true, k->instrumented);
        number(out, true, k->incomplete);
        number(out, true, k->threads_launched);
        number(out, k->timed_launches != 0, k->time_ns);
        number(out, s.measured, s.thread_insts);
        number(out, s.has_warps, s.warp_insts);
        number(out, true, k->estimated);
        end_row(out);
        mg_kernel_sums_release(&s);
    }
}

static void write_blocks(const struct mg_recording *p, const struct mg_report_opts *o, struct mg_buf *out)
{
    mg_buf_adds(
        out,
        "kernel,name,module,block,function,label,ptx_line,file,line,instructions,thread_entries,warp_entries,estimate\r\n");
    for (uint32_t i = 0; i < p->n_kernels; i++) {
        const struct mg_pkernel *k = &p->kernels[i];
        for (uint32_t b = 0; mg_report_shows(o, k) && b < k->n_blocks; b++) {
            const struct mg_pblock *x = &k->blocks[b];
            kernel_columns(out, k);
            number(out, true, x->id);
            text(out, x->function);
            text(out, x->label);
            number(out, true, x->ptx_line);
            text(out, x->file);
            number(out, x->line != 0, x->line);
            number(out, true, x->n_insts);
            number(out, x->has_threads, x->threads);
            number(out, x->has_warps, x->warps);
            number(out, true, k->estimated);
            end_row(out);
        }
    }
}

static void write_opcodes(const struct mg_recording *p, const struct mg_report_opts *o, struct mg_buf *out)
{
    mg_buf_adds(out, "kernel,name,module,opcode,thread,warp,lanes,estimate\r\n");
    for (uint32_t i = 0; i < p->n_kernels; i++) {
        const struct mg_pkernel *k = &p->kernels[i];
        struct mg_kernel_sums s;
        if (!mg_report_shows(o, k)) continue;
        mg_kernel_sums_init(&s, k);
        for (uint32_t j = 0; j < s.n_ops; j++) {
            kernel_columns(out, k);
            text(out, s.ops[j].op);
            number(out, s.measured, s.ops[j].threads);
            number(out, s.has_warps, s.ops[j].warps);
            number(out, s.measured && !s.ops[j].guarded, s.ops[j].threads);
            number(out, true, k->estimated);
            end_row(out);
        }
        mg_kernel_sums_release(&s);
    }
}

/* CUDA Flux's table: opcodes by launch, as measured. */
static void write_launch_opcodes(const struct mg_recording *p, const struct mg_report_opts *o, struct mg_buf *out)
{
    mg_buf_adds(out, "launch,kernel,name,module,opcode,thread,warp\r\n");
    for (uint64_t i = 0; i < p->n_launches; i++) {
        const struct mg_plaunch *l = &p->launches[i];
        const struct mg_pkernel *k = &p->kernels[l->kernel];
        struct mg_kernel_sums s;
        if (!mg_report_shows(o, k) || !l->threads) continue;
        mg_launch_sums_init(&s, k, l);
        for (uint32_t j = 0; j < s.n_ops; j++) {
            number(out, true, l->id);
            kernel_columns(out, k);
            text(out, s.ops[j].op);
            number(out, true, s.ops[j].threads);
            number(out, s.has_warps, s.ops[j].warps);
            end_row(out);
        }
        mg_kernel_sums_release(&s);
    }
}

static void write_launches(const struct mg_recording *p, const struct mg_report_opts *o, struct mg_buf *out)
{
    mg_buf_adds(
        out,
        "launch,kernel,name,module,process,grid_x,grid_y,grid_z,block_x,block_y,block_z,shared_bytes,device,stream,ctx,graph,replays,ran,reason,complete,"
        "start_ns,time_ns,thread_instructions,warp_instructions\r\n");
    for (uint64_t i = 0; i < p->n_launches; i++) {
        const struct mg_plaunch *l = &p->launches[i];
        const struct mg_pkernel *k = &p->kernels[l->kernel];
        uint64_t threads = 0, warps = 0;
        if (!mg_report_shows(o, k)) continue;
        for (uint32_t b = 0; b < l->n_counts; b++) {
            if (l->threads) threads += l->threads[b] * k->blocks[b].n_insts;
            if (l->warps) warps += l->warps[b] * k->blocks[b].n_insts;
        }
        number(out, true, l->id);
        kernel_columns(out, k);
        number(out, true, l->process);
        for (int d = 0; d < 3; d++) number(out, true, l->grid[d]);
        for (int d = 0; d < 3; d++) number(out, true, l->block[d]);
        number(out, true, (uint64_t)l->static_shared_bytes + l->dyn_shared_bytes);
        number(out, true, l->device);
        number(out, true, l->stream);
        number(out, true, l->ctx);
        number(out, true, l->graph == MG_GRAPH_DEVICE ? 0 : l->graph);
        number(out, true, l->replays);
        text(out, mg_ran_text(l->ran));
        text(out, l->reason);
        number(out, true, l->complete);
        number(out, l->timed || l->start_ns, l->start_ns);
        number(out, l->timed, l->time_ns);
        number(out, l->threads != NULL, threads);
        number(out, l->warps != NULL, warps);
        end_row(out);
    }
}

static void write_findings(const struct mg_recording *p, const struct mg_report_opts *o, struct mg_buf *out)
{
    struct mg_facts facts;
    struct mg_findings list;
    mg_facts_init(&facts, p, o);
    mg_findings_init(&list, &facts);
    mg_add_findings_csv(&list, out);
    mg_findings_release(&list);
    mg_facts_release(&facts);
}

static bool is_own(const char *table)
{
    return !strcmp(table, "findings") || !strcmp(table, "kernels") || !strcmp(table, "opcodes") ||
           !strcmp(table, "launches") || !strcmp(table, "blocks");
}

bool mg_report_has_table(const struct mg_recording *p, const struct mg_report_opts *o)
{
    return !o->table || !strcmp(o->table, "list") || is_own(o->table) || mg_add_tools_csv(p, o, NULL);
}

/* Every table that --table takes, and of which tool it is. */
static void list_tables(const struct mg_recording *p, const struct mg_report_opts *o, struct mg_buf *out)
{
    mg_buf_adds(out, "table,tool\r\nkernels,\r\nblocks,\r\nopcodes,\r\nlaunches,\r\nfindings,\r\n");
    mg_list_tool_tables(p, o, out);
}

void mg_report_csv(const struct mg_recording *p, const struct mg_report_opts *o, struct mg_buf *out)
{
    bool advice = o && o->tool && !strcmp(o->tool, MG_ADVICE);
    const char *table = o && o->table ? o->table : advice ? "findings" : o && o->per_launch ? "launches" : "blocks";
    if (!strcmp(table, "list")) {
        list_tables(p, o, out);
        return;
    }
    if (o && (o->tool || !is_own(table)) && mg_add_tools_csv(p, o, out)) return;
    if (!strcmp(table, "findings"))
        write_findings(p, o, out);
    else if (!strcmp(table, "kernels"))
        write_kernels(p, o, out);
    else if (!strcmp(table, "opcodes") && o->per_launch)
        write_launch_opcodes(p, o, out);
    else if (!strcmp(table, "opcodes"))
        write_opcodes(p, o, out);
    else if (!strcmp(table, "launches"))
        write_launches(p, o, out);
    else
        write_blocks(p, o, out);
}
