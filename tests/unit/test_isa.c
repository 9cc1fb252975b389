/* isa: table look-ups and the reading of forms. */
#include "test.h"

#include "isa/isa.h"

static struct mg_form form(const char *s)
{
    struct mg_form f = {0};
    mg_form_parse(&f, s, strlen(s));
    return f;
}

MG_TEST(isa_every_row_finds_itself)
{
    for (unsigned i = 1; i < MG_OP_COUNT; i++) MG_CHECK_EQ(mg_op_find(mg_op_name(i), strlen(mg_op_name(i))), i);
    for (unsigned i = 1; i < MG_MOD_COUNT; i++) MG_CHECK_EQ(mg_mod_find(mg_mod_text(i), strlen(mg_mod_text(i))), i);
    for (unsigned i = 1; i < MG_TYPE_COUNT; i++) MG_CHECK_EQ(mg_type_find(mg_type_name(i), strlen(mg_type_name(i))), i);
    for (unsigned i = 1; i < MG_SREG_COUNT; i++) MG_CHECK_EQ(mg_sreg_find(mg_sreg_text(i), strlen(mg_sreg_text(i))), i);
    MG_CHECK_EQ(mg_op_find("ad", 2), MG_OP_none);
    MG_CHECK_EQ(mg_op_find("", 0), MG_OP_none);
    MG_CHECK_EQ(mg_mod_find("f3", 2), MG_MOD_none);
}

MG_TEST(isa_form_of_a_load)
{
    struct mg_form f = form("ld.global.nc.L2::128B.v4.f32");
    MG_CHECK_EQ(f.op, MG_OP_ld);
    MG_CHECK_EQ(f.space, MG_SPACE_global);
    MG_CHECK_EQ(f.vec, 4);
    MG_CHECK_EQ(f.n_types, 1);
    MG_CHECK_EQ(f.types[0], MG_TYPE_f32);
    MG_CHECK_EQ(f.n_mods, 5);
    MG_CHECK(mg_form_has(&f, MG_MOD_L2__128B));
    MG_CHECK(!f.unknown);
    MG_CHECK_EQ(f.op_flags, MG_OPF_READS);
}

MG_TEST(isa_form_types_stand_in_text_order)
{
    struct mg_form f = form("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32");
    MG_CHECK_EQ(f.n_types, 4);
    MG_CHECK_EQ(f.types[0], MG_TYPE_f32);
    MG_CHECK_EQ(f.types[1], MG_TYPE_e4m3);
    MG_CHECK_EQ(f.types[2], MG_TYPE_e5m2);
    f = form("cvt.rzi.ftz.s32.f32");
    MG_CHECK_EQ(f.rounding, MG_MOD_rzi);
    MG_CHECK_EQ(f.types[0], MG_TYPE_s32);
}

MG_TEST(isa_flags_follow_the_modifiers)
{
    MG_CHECK(form("bar.sync").op_flags & MG_OPF_BARRIER);
    MG_CHECK(form("bar.sync").op_flags & MG_OPF_NO_DST);
    MG_CHECK(!(form("bar.red.popc.u32").op_flags & MG_OPF_NO_DST));
    MG_CHECK(!(form("bar.warp.sync").op_flags & MG_OPF_BARRIER));
    MG_CHECK(!(form("cp.async.commit_group").op_flags & (MG_OPF_READS | MG_OPF_WRITES)));
    MG_CHECK(form("wmma.store.d.sync.aligned.row.m16n16k16.global.f32").op_flags & MG_OPF_WRITES);
    MG_CHECK(form("ret.uni").op_flags & MG_OPF_ENDS_BLOCK);
}

MG_TEST(isa_unknown_words_are_marked_and_kept)
{
    struct mg_form f = form("frobnicate.f32");
    MG_CHECK_EQ(f.op, MG_OP_none);
    MG_CHECK(f.unknown);
    f = form("add.frob.f32");
    MG_CHECK_EQ(f.op, MG_OP_add);
    MG_CHECK(f.unknown);
    MG_CHECK_EQ(f.mods[0], MG_MOD_none);
    MG_CHECK_EQ(f.types[0], MG_TYPE_f32);
    f = form("add.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a");
    MG_CHECK_EQ(f.n_mods, MG_FORM_MAX_MODS);
    MG_CHECK(f.unknown);
}
