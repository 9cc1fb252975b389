/* Tensor maps and tensor copies, wgmma with its descriptors: tiles and matrices are laid out here by
 * the formulas of the CUDA driver's manual and PTX ISA, element by element. */
#include <stdlib.h>

#include "analysis/space.h"
#include "base/buf.h"
#include "device/device.h"
#include "device/mem.h"
#include "device/tensormap.h"
#include "driver/driver.h"
#include "ptx/ptx.h"
#include "test.h"

typedef int (*encode_fn)(void *, int, uint32_t, void *, const uint64_t *, const uint64_t *, const uint32_t *,
                         const uint32_t *, int, int, int, int);

/* p: tensor map, buffer for a dump of shared memory, coordinates; the tile is loaded, dumped, stored
 * 16 rows further, and added there once more. */
static const char tensor_ptx[] =
    ".version 8.0\n.target sm_90a\n.address_size 64\n.shared .align 1024 .b8 s[8192];\n.shared .align 8 .b64 bar;\n"
    ".visible .entry tile2(.param .align 64 .b8 map[128], .param .u64 out, .param .s32 x, .param .s32 y, .param .u32 bytes, .param .u32 back)\n{\n"
    " .reg .b64 %d<9>; .reg .b32 %r<9>; .reg .pred %p<4>;\n mov.b64 %d1, map;\n cvta.param.u64 %d1, %d1;\n ld.param.u64 %d2, [out];\n ld.param.s32 %r1, [x];\n ld.param.s32 %r2, [y];\n"
    " ld.param.u32 %r3, [bytes];\n mov.u32 %r4, %tid.x;\n setp.ne.u32 %p1, %r4, 0;\n @%p1 bra WAIT;\n mbarrier.init.shared::cta.b64 [bar], 1;\n fence.proxy.async.shared::cta;\n"
    " mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], %r3;\n"
    " cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%d1, {%r1, %r2}], [bar];\n"
    "WAIT:\n bar.sync 0;\nAGAIN:\n mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0;\n @!%p2 bra AGAIN;\n"
    " mul.wide.u32 %d3, %r4, 4;\n add.u64 %d2, %d2, %d3;\n mov.u32 %r5, s;\n cvt.u32.u64 %r6, %d3;\n add.u32 %r5, %r5, %r6;\n mov.u32 %r7, 0;\n"
    "COPY:\n ld.shared.u32 %r8, [%r5];\n st.global.u32 [%d2], %r8;\n add.u32 %r5, %r5, 128;\n add.u64 %d2, %d2, 128;\n add.u32 %r7, %r7, 128;\n setp.lt.u32 %p3, %r7, 8192;\n @%p3 bra COPY;\n"
    " @%p1 bra END;\n ld.param.u32 %r7, [back];\n setp.eq.u32 %p3, %r7, 0;\n @%p3 bra END;\n add.u32 %r2, %r2, 16;\n"
    " cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%d1, {%r1, %r2}], [s];\n"
    " cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%d1, {%r1, %r2}], [s];\n cp.async.bulk.commit_group;\n cp.async.bulk.wait_group 0;\nEND:\n ret;\n}\n"
    ".visible .entry tile3(.param .align 64 .b8 map[128], .param .u64 out)\n{\n .reg .b64 %d<9>; .reg .b32 %r<9>; .reg .pred %p<4>;\n mov.b64 %d1, map;\n cvta.param.u64 %d1, %d1;\n ld.param.u64 %d2, [out];\n"
    " mov.u32 %r1, -1;\n mov.u32 %r2, 1;\n mov.u32 %r4, %tid.x;\n setp.ne.u32 %p1, %r4, 0;\n @%p1 bra WAIT;\n mbarrier.init.shared::cta.b64 [bar], 1;\n"
    " mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 256;\n cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [s], [%d1, {%r1, %r1, %r2}], [bar];\n"
    "WAIT:\n bar.sync 0;\nAGAIN:\n mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0;\n @!%p2 bra AGAIN;\n mul.wide.u32 %d3, %r4, 8;\n add.u64 %d2, %d2, %d3;\n mov.u32 %r5, s;\n cvt.u32.u64 %r6, %d3;\n"
    " add.u32 %r5, %r5, %r6;\n ld.shared.v2.u32 {%r7, %r8}, [%r5];\n st.global.v2.u32 [%d2], {%r7, %r8};\n ret;\n}\n";

struct world {
    struct mg_device *dev;
    struct mg_dmod *mod;
    struct mg_diag diag;
};

static bool open_world(struct world *w, const char *ptx)
{
    struct mg_device_opts opts = {.size = sizeof opts, .workers = 1};
    struct mg_module *m;
    w->diag = (struct mg_diag)MG_DIAG_INIT;
    bool ok = !mg_emu_ops.open(&w->dev, &opts, &w->diag) && !mg_ptx_parse(ptx, strlen(ptx), "test", &m, &w->diag) &&
              !mg_emu_ops.module_load(w->dev, m, &w->mod, &w->diag);
    if (!ok) mg_test_fail(__FILE__, __LINE__, "%s", mg_diag_first(&w->diag, MG_ERR_INPUT));
    return ok;
}

static void close_world(struct world *w)
{
    mg_emu_ops.module_unload(w->mod);
    mg_emu_ops.close(w->dev);
    mg_diag_release(&w->diag);
}

static bool run(struct world *w, const char *kernel, uint32_t threads, const void *params, uint32_t bytes)
{
    struct mg_fault fault = {0};
    struct mg_launch l = {.kernel = mg_emu_ops.kernel(w->mod, kernel),
                          .grid = {1, 1, 1},
                          .block = {threads, 1, 1},
                          .params = params,
                          .param_bytes = bytes,
                          .time_limit_ns = 300000000000u};
    mg_emu_ops.launch(w->dev, &l, NULL, &fault);
    if (fault.kind) mg_test_fail(__FILE__, __LINE__, "%s", fault.text);
    return !fault.kind;
}

/* 16-byte pieces of 128-byte rows change places: piece index XOR row number, within 2, 4 or 8 pieces. */
static uint32_t swizzled(uint32_t offset, uint32_t width)
{
    uint32_t row = offset / 128, piece = offset / 16 % 8, pieces = width / 16;
    return width ? row * 128 + (piece / pieces * pieces + ((piece ^ row) % pieces)) * 16 + offset % 16 : offset;
}

MG_TEST(tensor_copies)
{
    encode_fn encode = (encode_fn)mg_driver_symbol("cuTensorMapEncodeTiled");
    struct {
        _Alignas(64) char map[128];
        uint64_t out;
        int32_t x, y;
        uint32_t bytes, back;
    } p;
    struct world w;
    if (!encode || !open_world(&w, tensor_ptx)) {
        MG_CHECK(encode);
        return;
    }
    enum { COLS = 100, ROWS = 60, PITCH = 256 /* elements */ };
    uint64_t at = mg_mem_alloc(ROWS * PITCH * 2, 0, MG_ALLOC_DEVICE), out = mg_mem_alloc(8192, 0, MG_ALLOC_DEVICE);
    uint16_t *t = (uint16_t *)at;
    static const struct {
        int swizzle;
        uint32_t width, box_x, box_y;
        int32_t x, y;
    } cases[] = {{0, 0, 64, 16, 0, 0},    {1, 32, 16, 16, 20, 3},   {2, 64, 32, 16, 72, 5},
                 {3, 128, 64, 16, 60, 8}, {3, 128, 64, 16, -3, -2}, {0, 0, 8, 16, 95, 44}};
    for (unsigned c = 0; c < MG_COUNT_OF(cases); c++) {
        uint64_t dims[] = {COLS, ROWS}, strides[] = {PITCH * 2};
        uint32_t box[] = {cases[c].box_x, cases[c].box_y}, steps[] = {1, 1}, bad = 0;
        for (uint32_t i = 0; i < ROWS * PITCH; i++) t[i] = (uint16_t)(i * 7 + 1);
        MG_CHECK_EQ(encode(p.map, MG_TMAP_U16, 2, t, dims, strides, box, steps, 0, cases[c].swizzle, 0, 0), 0);
        p.out = out, p.x = cases[c].x, p.y = cases[c].y, p.bytes = box[0] * box[1] * 2, p.back = 0;
        if (!run(&w, "tile2", 32, &p, sizeof p)) continue;
        for (uint32_t y = 0; y < box[1]; y++)
            for (uint32_t x = 0; x < box[0]; x++) {
                int32_t gx = p.x + (int32_t)x, gy = p.y + (int32_t)y;
                uint16_t got,
                    want = gx < 0 || gy < 0 || gx >= COLS || gy >= ROWS ? 0 : (uint16_t)((gy * PITCH + gx) * 7 + 1);
                memcpy(&got, (char *)out + swizzled((y * box[0] + x) * 2, cases[c].width), 2);
                bad += got != want;
            }
        MG_CHECK_EQ(bad, 0);
    }
    /* back: what lies outside is not written; u32 elements, added to what was stored */
    uint32_t *t4 = (uint32_t *)at, bad = 0;
    uint64_t dims[] = {30, 40}, strides[] = {512};
    uint32_t box[] = {32, 16}, steps[] = {1, 1};
    for (uint32_t i = 0; i < 60 * 128; i++) t4[i] = i;
    MG_CHECK_EQ(encode(p.map, MG_TMAP_U32, 2, t4, dims, strides, box, steps, 0, MG_TMAP_SWIZZLE_128, 0, 0), 0);
    p.x = 4, p.y = 10, p.bytes = 2048, p.back = 1;
    if (run(&w, "tile2", 32, &p, sizeof p))
        for (uint32_t y = 0; y < 60; y++)
            for (uint32_t x = 0; x < 128; x++) {
                bool in = y >= 26 && y < 40 && x >= 4 && x < 30;
                bad += t4[y * 128 + x] != (in ? 2 * ((y - 16) * 128 + x) : y * 128 + x);
            }
    MG_CHECK_EQ(bad, 0);
    /* three dimensions, every second element of the middle one, NaN outside */
    uint64_t dims3[] = {6, 7, 2}, strides3[] = {32, 512};
    uint32_t box3[] = {4, 16, 2}, steps3[] = {1, 2, 1};
    float *f = (float *)at;
    for (uint32_t i = 0; i < 60 * 128; i++) f[i] = (float)i;
    bad = 0;
    MG_CHECK_EQ(encode(p.map, MG_TMAP_F32, 3, f, dims3, strides3, box3, steps3, 0, 0, 0, 1), 0);
    if (run(&w, "tile3", 32, &p, 136))
        for (uint32_t z = 0; z < 2; z++)
            for (uint32_t y = 0; y < 8; y++)
                for (uint32_t x = 0; x < 4; x++) {
                    int gx = (int)x - 1, gy = (int)(2 * y) - 1, gz = (int)z + 1;
                    bool in = gx >= 0 && gx < 6 && gy >= 0 && gy < 7 && gz < 2;
                    uint32_t got, want;
                    float v = (float)(gz * 128 + gy * 8 + gx);
                    memcpy(&want, &v, 4);
                    memcpy(&got, (char *)out + ((z * 8 + y) * 4 + x) * 4, 4);
                    bad += got != (in ? want : 0x7fffffffu);
                }
    MG_CHECK_EQ(bad, 0);
    /* what the manual forbids */
    uint32_t wide_box[] = {128, 16};
    MG_CHECK(encode(p.map, MG_TMAP_U16, 2, t, dims, strides, wide_box, steps, 0, MG_TMAP_SWIZZLE_128, 0, 0) != 0);
    MG_CHECK(encode(p.map + 16, MG_TMAP_U16, 2, t, dims, strides, box, steps, 0, 0, 0, 0) != 0);
    MG_CHECK(encode(p.map, MG_TMAP_U16, 6, t, dims, strides, box, steps, 0, 0, 0, 0) != 0);
    MG_CHECK(encode(p.map, MG_TMAP_U16, 2, t + 1, dims, strides, box, steps, 0, 0, 0, 0) != 0);
    mg_mem_free(at);
    mg_mem_free(out);
    close_world(&w);
}

/* A copy touches two state spaces, and the analysis says so. */
MG_TEST(copies_have_two_spaces)
{
    struct mg_diag diag = MG_DIAG_INIT;
    struct mg_module *m;
    unsigned both = 0, waits = 0;
    MG_CHECK(!mg_ptx_parse(tensor_ptx, strlen(tensor_ptx), "test", &m, &diag));
    struct mg_spaces *s = mg_spaces_new(m);
    for (mg_id id = 1; id < m->nodes.n; id++) {
        const struct mg_node *n = &m->nodes.at[id];
        if (n->kind != MG_NODE_inst) continue;
        if (mg_node_form(m, n)->op == MG_OP_cp)
            both += s->of_node[id] == (MG_SPACE_BIT(MG_SPACE_shared) | MG_SPACE_BIT(MG_SPACE_global));
        if (mg_node_form(m, n)->op == MG_OP_mbarrier) waits += s->of_node[id] == MG_SPACE_BIT(MG_SPACE_shared);
    }
    MG_CHECK_EQ(both, 4);
    MG_CHECK_EQ(waits, 6);
    mg_spaces_free(s);
    mg_module_free(m);
    mg_diag_release(&diag);
}

/* ---- wgmma -------------------------------------------------------------------------------------- */

enum { A_AT = 0, B_AT = 16384, SHARED = 32768, N = 24, K = 16 };

static char *wgmma_ptx(bool a_regs, unsigned trans_a, unsigned trans_b, int scale_b)
{
    struct mg_buf b = MG_BUF_INIT;
    mg_buf_adds(
        &b,
        ".version 8.0\n.target sm_90a\n.address_size 64\n.shared .align 1024 .b8 s[32768];\n"
        ".visible .entry k(.param .u64 in, .param .u64 out, .param .u64 da, .param .u64 db, .param .u32 keep)\n{\n .reg .b64 %d<9>; .reg .b32 %r<12>; .reg .b32 %a<4>; .reg .f32 %f<12>; .reg .pred %p<4>;\n"
        " ld.param.u64 %d1, [in];\n ld.param.u64 %d2, [out];\n ld.param.u64 %d3, [da];\n ld.param.u64 %d4, [db];\n ld.param.u32 %r1, [keep];\n setp.ne.u32 %p1, %r1, 0;\n"
        " mov.u32 %r2, %tid.x;\n mul.wide.u32 %d5, %r2, 16;\n add.u64 %d1, %d1, %d5;\n mov.u32 %r3, s;\n cvt.u32.u64 %r4, %d5;\n add.u32 %r3, %r3, %r4;\n mov.u32 %r5, 0;\n"
        "COPY:\n ld.global.v4.u32 {%r6, %r7, %r8, %r9}, [%d1];\n st.shared.v4.u32 [%r3], {%r6, %r7, %r8, %r9};\n add.u64 %d1, %d1, 2048;\n add.u32 %r3, %r3, 2048;\n add.u32 %r5, %r5, 2048;\n setp.lt.u32 %p2, %r5, 32768;\n @%p2 bra COPY;\n"
        " fence.proxy.async;\n bar.sync 0;\n");
    for (int i = 0; i < 4 && a_regs; i++)
        mg_buf_printf(&b, " ld.global.u32 %%a%d, [%%d1+%d];\n", i, 4 * i); /* behind the image: by thread */
    for (int i = 0; i < 12; i++) mg_buf_printf(&b, " mov.f32 %%f%d, 0f40000000;\n", i);
    mg_buf_adds(
        &b,
        " wgmma.fence.sync.aligned;\n wgmma.mma_async.sync.aligned.m64n24k16.f32.f16.f16 {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8, %f9, %f10, %f11}, ");
    if (a_regs)
        mg_buf_printf(&b, "{%%a0, %%a1, %%a2, %%a3}, %%d4, %%p1, 1, %d, %u;\n", scale_b, trans_b);
    else
        mg_buf_printf(&b, "%%d3, %%d4, %%p1, 1, %d, %u, %u;\n", scale_b, trans_a, trans_b);
    mg_buf_adds(
        &b,
        " wgmma.commit_group.sync.aligned;\n wgmma.wait_group.sync.aligned 0;\n mul.wide.u32 %d5, %r2, 48;\n add.u64 %d2, %d2, %d5;\n");
    for (int i = 0; i < 12; i++) mg_buf_printf(&b, " st.global.f32 [%%d2+%d], %%f%d;\n", 4 * i, i);
    mg_buf_adds(&b, " ret;\n}\n");
    return mg_buf_take(&b);
}

static uint16_t half_of(int v) /* small integers */
{
    if (!v) return 0;
    int m = v < 0 ? -v : v, e = 31 - __builtin_clz((unsigned)m);
    return (uint16_t)((v < 0 ? 0x8000 : 0) | (e + 15) << 10 | ((m << (10 - e)) & 1023));
}

/* Where element (row, k) lies: PTX ISA's canonical layouts, width 0: no swizzle. */
static uint32_t place(uint32_t width, bool rows_inner, uint32_t row, uint32_t k, uint32_t lead, uint32_t stride)
{
    if (!rows_inner) {
        if (!width) return row % 8 * 16 + row / 8 * stride + k / 8 * lead + k % 8 * 2;
        return swizzled(row % 8 * width + row / 8 * stride + k * 2, width);
    }
    if (!width) return k % 8 * 16 + k / 8 * lead + row / 8 * stride + row % 8 * 2;
    return swizzled(k % 8 * width + k / 8 * stride + row / (width / 2) * lead + row % (width / 2) * 2, width);
}

MG_TEST(wgmma_descriptors)
{
    static const struct {
        uint32_t width;
        bool a_inner, b_inner, a_regs;
        uint32_t a_lead, a_stride, b_lead, b_stride, keep;
        int scale_b;
    } cases[] = {
        {0, false, false, false, 1024, 128, 384, 128, 1, 1}, {32, false, false, false, 16, 256, 16, 256, 0, 1},
        {64, false, false, true, 0, 0, 16, 512, 1, -1},      {128, false, false, false, 16, 1024, 16, 1024, 1, 1},
        {0, true, true, false, 1024, 128, 1024, 256, 1, 1},  {128, true, true, false, 8192, 1024, 8192, 2048, 1, -1},
        {64, true, false, false, 2048, 512, 16, 512, 1, 1},  {32, true, true, true, 1024, 256, 512, 256, 0, 1},
        {0, false, true, false, 2048, 256, 128, 512, 1, 1}};
    static const uint64_t modes[] = {[0] = 0, [32] = 3, [64] = 2, [128] = 1};
    for (unsigned c = 0; c < MG_COUNT_OF(cases); c++) {
        struct world w;
        char *ptx = wgmma_ptx(cases[c].a_regs, cases[c].a_inner, cases[c].b_inner, cases[c].scale_b);
        if (!open_world(&w, ptx)) return;
        uint64_t in = mg_mem_alloc(SHARED + 128 * 16 + 16, 0, MG_ALLOC_DEVICE),
                 out = mg_mem_alloc(128 * 48, 0, MG_ALLOC_DEVICE);
        char *image = (char *)in;
        memset(image, 0, SHARED);
        int a[64][K], b[N][K];
        for (int i = 0; i < 64; i++)
            for (int k = 0; k < K; k++) {
                a[i][k] = (i * 5 + k * 3) % 17 - 8;
                uint16_t h = half_of(a[i][k]);
                memcpy(image + A_AT +
                           place(cases[c].width, cases[c].a_inner, (uint32_t)i, (uint32_t)k, cases[c].a_lead,
                                 cases[c].a_stride),
                       &h, 2);
                /* registers: warp i / 16; the fragment of mma.m16n8k16 */
                int lane = i % 8 * 4 + k % 8 / 2, reg = i % 16 / 8 + k / 8 * 2, thread = i / 16 * 32 + lane;
                memcpy(image + SHARED + thread * 16 + reg * 4 + k % 2 * 2, &h, 2);
            }
        for (int j = 0; j < N; j++)
            for (int k = 0; k < K; k++) {
                b[j][k] = (j * 7 + k * 2) % 11 - 5;
                uint16_t h = half_of(b[j][k]);
                memcpy(image + B_AT +
                           place(cases[c].width, cases[c].b_inner, (uint32_t)j, (uint32_t)k, cases[c].b_lead,
                                 cases[c].b_stride),
                       &h, 2);
            }
        struct {
            uint64_t in, out, da, db;
            uint32_t keep;
        } p = {in, out, 0, 0, cases[c].keep};
        uint64_t mode = modes[cases[c].width] << 62;
        p.da = mode | A_AT >> 4 | (uint64_t)(cases[c].a_lead >> 4) << 16 | (uint64_t)(cases[c].a_stride >> 4) << 32;
        p.db = mode | B_AT >> 4 | (uint64_t)(cases[c].b_lead >> 4) << 16 | (uint64_t)(cases[c].b_stride >> 4) << 32;
        unsigned bad = 0;
        if (run(&w, "k", 128, &p, sizeof p))
            for (int i = 0; i < 64; i++)
                for (int j = 0; j < N; j++) {
                    float s = cases[c].keep ? 2.0f : 0.0f, got;
                    for (int k = 0; k < K; k++) s += (float)(a[i][k] * b[j][k] * cases[c].scale_b);
                    int thread = i / 16 * 32 + i % 8 * 4 + j % 8 / 2, reg = j / 8 * 4 + i % 16 / 8 * 2 + j % 2;
                    memcpy(&got, (char *)out + thread * 48 + reg * 4, 4);
                    bad += got != s;
                }
        if (bad) mg_test_fail(__FILE__, __LINE__, "case %u: %u wrong", c, bad);
        mg_mem_free(in);
        mg_mem_free(out);
        close_world(&w);
        free(ptx);
    }
}
