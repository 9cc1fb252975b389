/* The one-liner language: what parses, what is refused and where, what patterns mean. */
#include <stdlib.h>

#include "test.h"
#include "probe/expr.h"

static struct mg_expr *parse(const char *text)
{
    struct mg_expr *e = NULL;
    struct mg_diag d = MG_DIAG_INIT;
    enum mg_err err = mg_expr_parse(text, strlen(text), "-e", &e, &d);
    if (err) mg_test_fail(__FILE__, __LINE__, "%s: %s", text, mg_diag_first(&d, err));
    mg_diag_release(&d);
    return e;
}

/* The first message with its place: "1:14: text". */
static const char *refusal(const char *text)
{
    static char out[300];
    struct mg_expr *e = NULL;
    struct mg_diag d = MG_DIAG_INIT;
    enum mg_err err = mg_expr_parse(text, strlen(text), "-e", &e, &d);
    if (err && d.n_items)
        snprintf(out, sizeof out, "%u:%u: %s", d.items[0].line, d.items[0].col, d.items[0].text);
    else
        snprintf(out, sizeof out, "accepted");
    mg_expr_free(e);
    mg_diag_release(&d);
    return out;
}

MG_TEST(expr_parses_clauses)
{
    struct mg_expr *e = parse(
        "before ld.global, issued st.* kernel=red* line=12-20 /lane < 16/ { @bytes[kernel, line] = sum(width); @h = lhist(addr, 0, 100, 10) }\n"
        "kernel:exit { @bytes[\"x\", 3] = sum(1) }");
    if (!e) return;
    const struct mg_expr_clause *c = e->clauses;
    MG_CHECK_STR(c->sites->pattern, "ld.global");
    MG_CHECK_EQ(c->sites->position, MG_EP_BEFORE);
    MG_CHECK(c->sites->next->issued);
    MG_CHECK_STR(c->sites->next->kernel, "red*");
    MG_CHECK_EQ(c->sites->next->line_lo, 12);
    MG_CHECK_EQ(c->sites->next->line_hi, 20);
    MG_CHECK(c->pred && c->uses[MG_EV_lane] && !c->uses[MG_EV_tid]);
    MG_CHECK_EQ(e->n_maps, 2);
    MG_CHECK_EQ(e->n_updates, 3);
    MG_CHECK_STR(e->maps[0].name, "@bytes");
    MG_CHECK_STR(e->maps[0].key_names[1], "line");
    MG_CHECK_EQ(mg_expr_map_cells(&e->maps[1]), 12);
    MG_CHECK_EQ(c->next->sites->where, MG_EW_KERNEL_EXIT);
    mg_expr_free(e);
}

MG_TEST(expr_entries)
{
    struct mg_expr *e = parse("entries 100k; ld { @[addr] = count() }");
    if (e) MG_CHECK_EQ(e->entries, 1 << 17);
    mg_expr_free(e);
    e = parse("ld { @[addr] = count() }");
    if (e) MG_CHECK_EQ(e->entries, MG_EXPR_ENTRIES);
    mg_expr_free(e);
    MG_CHECK_STR(refusal("entries 2M ld { @ = count() }"), "1:9: expected room for 1 to 1048576 entries");
}

MG_TEST(expr_predicate_may_divide)
{
    struct mg_expr *e = parse("ld /addr / 128 == 3/ { @ = count() }");
    if (e) MG_CHECK_EQ(e->clauses->pred->op, MG_EO_EQ);
    mg_expr_free(e);
}

static int64_t value_of(const char *text)
{
    char program[200];
    static const struct mg_expr_env nothing;
    snprintf(program, sizeof program, "ld { @ = sum(%s) }", text);
    struct mg_expr *e = parse(program);
    if (!e) return -12345;
    struct mg_expr_const c = mg_expr_eval(e->updates[0]->value, &nothing);
    mg_expr_free(e);
    return c.known ? c.num : -54321;
}

MG_TEST(expr_evaluates_like_c)
{
    MG_CHECK_EQ(value_of("1 + 2 * 3 - 8 / 2 % 3"), 1 + 2 * 3 - 8 / 2 % 3);
    MG_CHECK_EQ(value_of("-7 / 2 + -7 % 3"), -7 / 2 + -7 % 3);
    MG_CHECK_EQ(value_of("1 << 4 | 3 & 6 ^ 1"), (1 << 4) | ((3 & 6) ^ 1));
    MG_CHECK_EQ(value_of("1 < 2 == 2 > 1 && 0x10 != 15 || 0"), 1);
    MG_CHECK_EQ(value_of("3 > 2 ? 4k : 1M"), 4096);
    MG_CHECK_EQ(value_of("1 / 0 + 5 % 0"), 0);
    MG_CHECK_EQ(value_of("popc(255) + log2(4095) + min(3, -2) + max(1, 9) + abs(-4) + ~0 + !7"),
                8 + 11 - 2 + 9 + 4 - 1);
    MG_CHECK_EQ(value_of("0 && lane"), 0);
    MG_CHECK_EQ(value_of("lane || 1"), 1);
    MG_CHECK_EQ(value_of("lane + 1"), -54321);
    MG_CHECK_EQ(value_of("\"a\" == \"a\""), 1);
    MG_CHECK_EQ(value_of("\"a\" != \"b\""), 1);
}

MG_TEST(expr_refuses_with_a_place)
{
    MG_CHECK_STR(refusal(""), "1:1: no clause: SITE { @map = count() }");
    MG_CHECK_STR(refusal("ld.global"), "1:10: expected '{' and what to do");
    MG_CHECK_STR(refusal("ld { @x = frob(1) }"),
                 "1:11: expected what the map does: count, sum, min, max, avg, hist, lhist or topk");
    MG_CHECK_STR(refusal("ld {\n  @x = sum(widht)\n}"), "2:12: 'widht' is nothing that a probe sees");
    MG_CHECK_STR(refusal("block { @x = sum(addr) }"), "1:1: 'addr' is there at instructions only");
    MG_CHECK_STR(refusal("before atom { @x = sum(old) }"), "1:8: 'old' is not known before the instruction");
    MG_CHECK_STR(refusal("ld { @x = sum(op) }"), "1:15: a number is wanted here, not a string");
    MG_CHECK_STR(refusal("ld /op == 3/ { @x = count() }"), "1:8: a string is compared with a number");
    MG_CHECK_STR(refusal("ld { @x = count(); @x = sum(1) }"), "1:20: @x is a count on line 1: one map, one aggregate");
    MG_CHECK_STR(refusal("ld { @x[1] = count(); @x[1, 2] = count() }"), "1:23: @x has 1 keys on line 1, 2 here");
    MG_CHECK_STR(refusal("ld { @x[op] = count(); @x[line] = count() }"), "1:27: key 1 of @x is a string elsewhere");
    MG_CHECK_STR(refusal("ld { @x = sum($t) }"), "1:15: '$t' is read before any clause sets it");
    MG_CHECK_STR(
        refusal("kernel:begin { @x = count() }"),
        "1:1: there is no site 'kernel:begin'; with a colon there are kernel:entry, kernel:exit, function:entry, function:exit, cta:entry and edge:back");
    MG_CHECK_STR(
        refusal("st, ldd.global { @x = count() }"),
        "1:5: PTX has no instruction 'ldd'; sites are instructions, load, store, atomic, access, block, edge, loop, kernel:entry ...");
    MG_CHECK_STR(refusal("load.globall { @x = count() }"),
                 "1:1: PTX has no modifier 'globall'; a glob fits words that are not known here");
    MG_CHECK_STR(refusal("ld* { @x = sum(here) } "), "1:16: 'here' is nothing that a probe sees");
    MG_CHECK_STR(refusal("ld { @x = lhist(lane, 5, 5, 1) }"),
                 "1:21: lhist needs a range and at most 1022 buckets in it");
    MG_CHECK_STR(refusal("ld { @x = lhist(lane, 0, 0x7fffffffffffffff, 0x7fffffffffffffff) }"),
                 "1:21: lhist needs a range and at most 1022 buckets in it");
    MG_CHECK_STR(refusal("ld { @x = lhist(lane, 0, 5, 6) }"),
                 "1:21: lhist needs a range and at most 1022 buckets in it");
    MG_CHECK_STR(refusal("ld { @x = sum(0xffffffffffffffffff) }"), "1:15: expected a value here");
    MG_CHECK_STR(
        refusal("ld { while (1) {} }"),
        "1:6: expected a statement: @map[keys] = count(), $x = ..., if, skip, begin(name), end(name) or emit(values)");
    MG_CHECK_STR(refusal("ld { @x = sum(@y) }"),
                 "1:15: a map cannot be read: what it holds is known when the program has ended");
    MG_CHECK_STR(refusal("block { skip }"), "1:1: only an instruction can be skipped, and only before it");
    MG_CHECK_STR(refusal("ld { @x = count() "), "1:4: this '{' is never closed");
    MG_CHECK_STR(refusal("ld { @x = sum($0) }"),
                 "1:15: '$0' is for maps of probes in C; a variable begins with a letter");
    char deep[600] = "ld { @x = sum(";
    memset(deep + strlen(deep), '(', 400);
    MG_CHECK_STR(refusal(deep), "1:114: nested too deeply");
}

MG_TEST(expr_patterns)
{
    MG_CHECK(mg_expr_fits("ld", "ld.global.f32"));
    MG_CHECK(mg_expr_fits("ld.global", "ld.relaxed.gpu.global.u32"));
    MG_CHECK(mg_expr_fits("*.f64", "fma.rn.f64"));
    MG_CHECK(mg_expr_fits("atom.*", "atom.add.u32"));
    MG_CHECK(mg_expr_fits("ld.global.f?2", "ld.global.nc.f32"));
    MG_CHECK(mg_expr_fits("bar", "bar.sync"));
    MG_CHECK(!mg_expr_fits("bar", "barrier.sync"));
    MG_CHECK(!mg_expr_fits("ld.global", "ld.f32"));
    MG_CHECK(!mg_expr_fits("ld.f32.global", "ld.global.f32"));
    MG_CHECK(!mg_expr_fits("ld.*", "ld"));
    MG_CHECK(!mg_expr_fits("global", "ld.global"));
}
