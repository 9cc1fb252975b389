/* Disassemblers' text, and block counts of PTX carried over to machine blocks. */
#include "image/sass.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/io.h"
#include "test.h"
#include "tool/opcodes/sass_map.h"

static struct mg_sass *parse_file(const char *name)
{
    char path[200], *text;
    size_t bytes;
    snprintf(path, sizeof path, "tests/fuzz/corpus/sass/%s", name);
    if (mg_io_read(path, &text, &bytes, NULL)) return NULL;
    struct mg_sass *s = mg_sass_parse(text, bytes);
    free(text);
    return s;
}

MG_TEST(sass_of_nvdisasm)
{
    struct mg_sass *s = parse_file("nvdisasm.txt");
    MG_CHECK(s && s->n_funcs == 1);
    const struct mg_sass_func *f = s ? mg_sass_find(s, "shapes") : NULL;
    MG_CHECK(f && f->n_insts == 13 && !mg_sass_find(s, "shape"));
    if (!f || f->n_insts != 13) return;
    const struct mg_sass_inst *i = f->insts;
    MG_CHECK(i[1].addr == 0x10 && !strcmp(i[1].op, "ISETP.GE.AND") && i[1].line == 13 && !i[1].guarded);
    MG_CHECK(i[2].guarded && i[2].line == 14 && i[2].n_targets == 1 && f->targets[i[2].targets] == 7);
    MG_CHECK(i[3].n_targets == 2 && f->targets[i[3].targets] == 4 && f->targets[i[3].targets + 1] == 7 &&
             mg_sass_flow_of(&i[3]) == MG_SASS_BRANCH);
    MG_CHECK(i[5].n_targets == 1 && f->targets[i[5].targets] == 9 && mg_sass_flow_of(&i[5]) == MG_SASS_ON); /* a call */
    MG_CHECK(!i[7].guarded && i[8].guarded && mg_sass_flow_of(&i[7]) == MG_SASS_LEAVE);
    MG_CHECK(i[9].guarded && i[9].n_targets == 1); /* by a predicate among its operands */
    MG_CHECK(mg_sass_flow_of(&i[10]) == MG_SASS_LEAVE && f->targets[i[11].targets] == 11);
    mg_sass_free(s);
}

MG_TEST(sass_of_cuobjdump)
{
    struct mg_sass *s = parse_file("cuobjdump.txt");
    const struct mg_sass_func *f = s ? mg_sass_find(s, "shapes") : NULL;
    MG_CHECK(s && s->n_funcs == 2 && f && f->n_insts == 5 && mg_sass_find(s, "other"));
    if (!f || f->n_insts != 5) return;
    MG_CHECK(f->targets[f->insts[1].targets] == 3 && f->targets[f->insts[4].targets] == 4 &&
             !strcmp(f->insts[2].op, "IADD") && !f->insts[0].line);
    mg_sass_free(s);
    s = mg_sass_parse("nothing of it\n/*", 16);
    MG_CHECK_EQ(s->n_funcs, 0);
    mg_sass_free(s);
}

/* ---- mapping -------------------------------------------------------------------------------------------- */

enum { MOST = 64 };
static struct mg_result_site sites[MOST];
static struct mg_site_block blocks[8];
static uint64_t threads[8];
static uint32_t succs[8][2];

/* PTX: block b has lines 10 * b + 1 .. 10 * b + n, the last one loads. */
static void ptx_block(struct mg_result_kernel *k, uint32_t n, uint64_t entered, uint32_t a, uint32_t b)
{
    uint32_t id = k->n_blocks++;
    succs[id][0] = a, succs[id][1] = b;
    blocks[id] = (struct mg_site_block){.id = id,
                                        .function = "k",
                                        .label = "",
                                        .n_insts = n,
                                        .succs = succs[id],
                                        .n_succs = (a != UINT32_MAX) + (b != UINT32_MAX)};
    threads[id] = entered;
    for (uint32_t i = 0; i < n; i++)
        sites[k->n_sites++] = (struct mg_result_site){.kind = MG_SITE_INST,
                                                      .block = id,
                                                      .ptx_line = 10 * id + i + 1,
                                                      .op = i + 1 == n ? "ld.global.u32" : "add.u32"};
}

static uint64_t executed(const struct mg_sass_func *f, const struct mg_sass_map *m, const char *op)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < f->n_insts; i++) n += !strcmp(f->insts[i].op, op) ? m->threads[i] : 0;
    return n;
}

/* Entry, a loop of 3 blocks of which the middle one is taken at times, an end: 64 threads, 5 rounds, the middle 100
 * times. */
static void begin(struct mg_result_kernel *k)
{
    *k = (struct mg_result_kernel){.name = "k", .sites = sites, .threads = threads, .blocks = blocks};
    ptx_block(k, 2, 64, 1, UINT32_MAX);
    ptx_block(k, 3, 320, 2, 3);
    ptx_block(k, 2, 100, 3, UINT32_MAX);
    ptx_block(k, 2, 320, 1, 4);
    ptx_block(k, 2, 64, UINT32_MAX, UINT32_MAX);
}

#define LINE(n) "//## File \"x\", line " #n "\n"
static const char merged[] = /* the middle became predicates; one of its instructions was taken out of the loop; the end
                                has no line */
    ".section .text.k,\"ax\"\n" LINE(1) "/*0000*/ IADD3 R1 ;\n" LINE(2) "/*0010*/ LDG.E R1 ;\n" LINE(
        21) "/*0020*/ MOV R1 ;\n"
            ".L_1:\n" LINE(11) "/*0030*/ IADD3 R1 ;\n" LINE(13) "/*0040*/ LDG.E R1 ;\n" LINE(22) "/*0050*/ @P0 LDS R1 ;\n" LINE(
                32) "/*0060*/ LDG.E R1 ;\n/*0070*/ @P1 BRA `(.L_1) ;\n"
                    "//## File \"x\"\n" LINE(
                        0) "/*0080*/ FADD R1 ;\n/*0090*/ EXIT ;\n.L_2:\n/*00a0*/ BRA `(.L_2);\n/*00b0*/ NOP;\n";

MG_TEST(sass_map_by_line_and_shape)
{
    struct mg_result_kernel k;
    struct mg_sass *s = mg_sass_parse(merged, sizeof merged - 1);
    begin(&k);
    const struct mg_sass_func *f = mg_sass_find(s, "k");
    struct mg_sass_map *m = mg_sass_map_new(f, &k);
    MG_CHECK_EQ(m->n_blocks, 5);
    MG_CHECK_EQ(m->mapped_blocks, 5);
    MG_CHECK_EQ(m->known_insts, f->n_insts);
    MG_CHECK(m->entered[0] == 64 && m->entered[1] == 320 && m->entered[2] == 64 && m->entered[3] == 0 &&
             m->entered[4] == 0);
    MG_CHECK_EQ(executed(f, m, "LDS"), 320); /* issued, whatever its predicate says */
    MG_CHECK_EQ(executed(f, m, "MOV"), 64);
    MG_CHECK_EQ(executed(f, m, "FADD"), 64);
    MG_CHECK(m->seen[0] && m->seen[1] && m->seen[2] && m->seen[3] && !m->seen[4]);
    mg_sass_map_free(m);
    k.threads = NULL; /* nothing was counted */
    m = mg_sass_map_new(f, &k);
    MG_CHECK_EQ(m->known_insts, 0);
    mg_sass_map_free(m);
    mg_sass_free(s);
}

static const char unrolled[] = /* the loop three times in a loop of its own, then once; its control once in each */
    ".section .text.k,\"ax\"\n" LINE(1) "/*0000*/ IADD3 R1 ;\n" LINE(
        2) "/*0010*/ LDG.E R1 ;\n/*0020*/ @P0 BRA `(.L_3) ;\n"
           ".L_1:\n" LINE(11) "/*0030*/ SHF R1 ;\n" LINE(12) "/*0040*/ IMAD R1 ;\n" LINE(11) "/*0050*/ SHF R1 ;\n" LINE(12) "/*0060*/ IMAD R1 ;\n" LINE(11) "/*0070*/ SHF R1 ;\n" LINE(
               12) "/*0080*/ IMAD R1 ;\n" LINE(13) "/*0090*/ ISETP R1 ;\n/*00a0*/ @P1 BRA `(.L_1) ;\n"
                                                   ".L_3:\n" LINE(11) "/*00b0*/ SHF R1 ;\n" LINE(12) "/*00c0*/ IMAD R1 ;\n" LINE(
                                                       13) "/*00d0*/ ISETP R1 ;\n/*00e0*/ @P2 BRA `(.L_3) ;\n" LINE(21) "/*00f0*/ STG R1 ;\n/*0100*/ EXIT ;\n";

MG_TEST(sass_map_of_an_unrolled_loop)
{
    struct mg_result_kernel k = {.name = "k", .sites = sites, .threads = threads, .blocks = blocks};
    struct mg_sass *s = mg_sass_parse(unrolled, sizeof unrolled - 1);
    ptx_block(&k, 2, 64, 1, UINT32_MAX);
    ptx_block(&k, 3, 1000, 1, 2);
    ptx_block(&k, 1, 64, UINT32_MAX, UINT32_MAX);
    const struct mg_sass_func *f = mg_sass_find(s, "k");
    struct mg_sass_map *m = mg_sass_map_new(f, &k);
    MG_CHECK_EQ(executed(f, m, "SHF"), 1000); /* in one copy or another */
    MG_CHECK_EQ(executed(f, m, "IMAD"), 1000);
    MG_CHECK(!m->mapped[1] && !m->mapped[2] && m->mapped[0] && m->mapped[3]);
    MG_CHECK_EQ(executed(f, m, "ISETP"), 0); /* once for three rounds, and once for one: not known */
    MG_CHECK_EQ(f->n_insts - m->known_insts, 4);
    MG_CHECK_EQ(executed(f, m, "STG"), 64);
    mg_sass_map_free(m);
    mg_sass_free(s);
}

static const char counted[] = /* unrolled by two: its load tells */
    ".section .text.k,\"ax\"\n" LINE(
        1) "/*0000*/ IADD3 R1 ;\n"
           ".L_1:\n" LINE(11) "/*0010*/ IMAD R1 ;\n/*0020*/ IMAD R1 ;\n" LINE(
               13) "/*0030*/ LDG.E R1 ;\n/*0040*/ LDG.E R1 ;\n/*0050*/ @P1 BRA `(.L_1) ;\n" LINE(21) "/*0060*/ EXIT ;\n";

MG_TEST(sass_map_of_a_loop_unrolled_in_place)
{
    struct mg_result_kernel k = {.name = "k", .sites = sites, .threads = threads, .blocks = blocks};
    struct mg_sass *s = mg_sass_parse(counted, sizeof counted - 1);
    ptx_block(&k, 1, 64, 1, UINT32_MAX);
    ptx_block(&k, 3, 640, 1, 2);
    ptx_block(&k, 1, 64, UINT32_MAX, UINT32_MAX);
    const struct mg_sass_func *f = mg_sass_find(s, "k");
    struct mg_sass_map *m = mg_sass_map_new(f, &k);
    MG_CHECK_EQ(m->known_insts, f->n_insts);
    MG_CHECK_EQ(executed(f, m, "LDG.E"), 640);
    MG_CHECK_EQ(executed(f, m, "BRA"), 320);
    mg_sass_map_free(m);
    mg_sass_free(s);
}
