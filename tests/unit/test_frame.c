/* Frames: what a kernel on the emulator writes into the parts of one, with room for all, for some, and switched off. */
#include <stdlib.h>

#include "base/buf.h"
#include "device/device.h"
#include "device/mem.h"
#include "ptx/ptx.h"
#include "test.h"
#include "record/frame.h"
#include "patch/layout.h"
#include "tool/instrument.h"

enum { CTAS = 24, WARPS = 3, ROUNDS = 11, ALL = CTAS * WARPS * ROUNDS, RECORDS = 520 /* 4 parts of 130 */, PARTS = 4 };

static const char kernel[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry k (.param .u64 o)\n{\n.reg .b32 %r<4>; .reg .pred %p1;\n"
    "mov.u32 %r1, 0;\nLOOP: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 11; @%p1 bra LOOP;\nret;\n}\n";

static uint32_t records;

static enum mg_err reserve(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    (void)conf, (void)d;
    mg_frame_reserve(p, records, 0);
    return MG_ERR_OK;
}

/* One record a round. */
static enum mg_err write_records(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    struct mg_frame_code f;
    const struct mg_patch_inst *insts;
    (void)conf, (void)d;
    mg_frame_begin(&f, p, records, 0);
    for (uint32_t n = mg_patch_insts(p, &insts), i = 0; i < n; i++)
        if (mg_node_form(mg_patch_module(p), &mg_patch_module(p)->nodes.at[insts[i].node])->op == MG_OP_add)
            mg_frame_write(&f, mg_at_before(p, insts[i].node), 5, true);
    mg_frame_end(&f);
    return MG_ERR_OK;
}
static const struct mg_tool frame_tool = {.name = "frame", .analyze = reserve, .instrument = write_records};

/* The kernel's launch with what the host has written into each header. Owner of the list: the caller, free. */
static uint64_t *run(uint32_t room, uint64_t off, uint64_t less, uint32_t *words)
{
    static struct mg_device *dev;
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_device_opts o = {.size = sizeof o, .properties = "h200", .workers = 2};
    struct mg_module *m = NULL, *again = NULL;
    struct mg_twin *t = NULL;
    struct mg_layout layout = {0};
    struct mg_dmod *mod = NULL;
    struct mg_buf text = MG_BUF_INIT;
    mg_mem_init(0);
    records = room;
    if (!dev && mg_emu_ops.open(&dev, &o, &d)) mg_test_fail(__FILE__, __LINE__, "%s", mg_diag_first(&d, MG_ERR_DEVICE));
    if (mg_ptx_parse(kernel, strlen(kernel), "k.ptx", &m, &d))
        mg_test_fail(__FILE__, __LINE__, "%s", mg_diag_first(&d, MG_ERR_INPUT));
    mg_id k = mg_module_find_func(m, "k");
    struct mg_sites *sites = mg_sites_new(m, k);
    struct mg_pass_opts passes = {.size = sizeof passes, .verify = true};
    struct mg_tools_opts to = {.size = sizeof to, .sm = 90, .max_copies = 1, .passes = &passes};
    struct mg_tool_use use = {&frame_tool, NULL};
    if (mg_twin_new(m, k, &t, &d) || mg_tools_instrument(&use, 1, sites, t, &to, &layout, &d) ||
        layout.regions[0].reason)
        mg_test_fail(__FILE__, __LINE__, "%s",
                     layout.regions && layout.regions[0].reason ? layout.regions[0].reason
                                                                : mg_diag_first(&d, MG_ERR_STATE));
    t->m->marked = true;
    mg_ptx_print(t->m, &text);
    if (mg_ptx_parse(text.at, text.n, "twin.ptx", &again, &d) || mg_emu_ops.module_load(dev, again, &mod, &d))
        mg_test_fail(__FILE__, __LINE__, "%s\n%s", mg_diag_first(&d, MG_ERR_INPUT), text.at);
    const struct mg_region *g = &layout.regions[0];
    const uint64_t bytes = MG_CTX_BYTES + 8 * mg_layout_words(&layout, NULL);
    uint64_t ctx = mg_mem_alloc(bytes, 256, MG_ALLOC_INTERNAL),
             *list = (uint64_t *)(uintptr_t)(ctx + MG_CTX_BYTES) + g->at + g->list_at;
    memset((void *)(uintptr_t)ctx, 0, bytes);
    const struct mg_frame_shape s = mg_frame_shape(g->n_frame);
    for (uint32_t i = 0; i < s.parts; i++)
        *(struct mg_frame_head *)(void *)(list + (size_t)i * s.stride) =
            (struct mg_frame_head){.off = off, .less = less};
    struct {
        uint64_t out, ctx;
    } params = {0, ctx};
    struct mg_launch l = {.kernel = mg_emu_ops.kernel(mod, "k"),
                          .grid = {CTAS, 1, 1},
                          .block = {32 * WARPS, 1, 1},
                          .params = &params,
                          .param_bytes = 16,
                          .time_limit_ns = 300000000000u};
    struct mg_launch_stats stats;
    struct mg_fault fault;
    mg_emu_ops.launch(dev, &l, &stats, &fault);
    if (fault.kind) mg_test_fail(__FILE__, __LINE__, "%s", fault.text);
    uint64_t *copy = mg_xmalloc(8 * (size_t)g->n_frame);
    memcpy(copy, list, 8 * (size_t)g->n_frame);
    *words = g->n_frame;
    mg_emu_ops.module_unload(mod);
    mg_mem_free(ctx);
    mg_buf_release(&text);
    mg_layout_release(&layout);
    mg_twin_free(t);
    mg_sites_free(sites);
    mg_module_free(m);
    mg_diag_release(&d);
    return copy;
}

/* Records of each warp; what is wrong in any goes to the last. */
static void count_one(void *user, const struct mg_record *r)
{
    uint32_t *of = user;
    uint64_t warp = r->cta * WARPS + r->warp;
    bool ok =
        r->cta < CTAS && r->warp < WARPS && r->site == 5 && r->mask == UINT32_MAX && r->n_words == 1 && r->words[0];
    of[ok ? warp : CTAS * WARPS]++;
}

static uint64_t count(const uint64_t *list, uint32_t n, uint32_t of[CTAS * WARPS + 1])
{
    memset(of, 0, (CTAS * WARPS + 1) * sizeof *of);
    return mg_frame_read(list, n, NULL, count_one, of);
}

MG_TEST(frame_room_for_all)
{
    for (uint32_t room = 2 * ALL; room >= ALL;
         room -= ALL) { /* just enough: none is lost as long as any part has room */
        uint32_t n, of[CTAS * WARPS + 1];
        uint64_t *list = run(room, 0, 0, &n);
        MG_CHECK_EQ(count(list, n, of), ALL);
        for (uint32_t w = 0; w < CTAS * WARPS; w++) MG_CHECK_EQ(of[w], ROUNDS);
        const struct mg_frame_head h = mg_frame_sums(list, n);
        MG_CHECK(h.fill == ALL && !h.lost && h.status == MG_FRAME_WRITTEN);
        free(list);
    }
}

MG_TEST(frame_room_for_some)
{
    for (uint64_t less = 0; less <= 140; less += 70) { /* the host may take room away */
        uint32_t n, of[CTAS * WARPS + 1];
        uint64_t *list = run(RECORDS, 0, less, &n), room = PARTS * (less < 130 ? 130 - less : 0);
        const struct mg_frame_head h = mg_frame_sums(list, n);
        MG_CHECK_EQ(mg_frame_shape(n).parts, PARTS);
        MG_CHECK_EQ(count(list, n, of), room);
        MG_CHECK_EQ(of[CTAS * WARPS], 0);
        MG_CHECK_EQ(h.lost, ALL - room);
        MG_CHECK_EQ(h.status, MG_FRAME_FULL);
        free(list);
    }
}

MG_TEST(frame_switched_off)
{
    uint32_t n, of[CTAS * WARPS + 1];
    uint64_t *list = run(RECORDS, 1, 0, &n);
    const struct mg_frame_head h = mg_frame_sums(list, n);
    MG_CHECK_EQ(count(list, n, of), 0);
    MG_CHECK(!h.fill && !h.lost && h.status == MG_FRAME_NEW && h.off == 1);
    free(list);
}
