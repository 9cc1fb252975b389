/* Channels: what a kernel on the emulator writes into its segments, read back and compared with what each
 * thread does by closed form. */
#include <stdlib.h>

#include "base/buf.h"
#include "device/device.h"
#include "device/mem.h"
#include "ptx/ptx.h"
#include "test.h"
#include "record/channel.h"
#include "tool/host.h"
#include "patch/layout.h"
#include "tool/instrument.h"

#define R(r) mg_o_reg(r)

enum { RINGS = 2, PAGES = 64, THREADS = 4 * 80, MOST = 64, OUT_BYTES = 1 << 20 };

/* Thread t stores to o + 4t, o + 4t + 4096 * 1, ... in round i of t % 11 + 1 rounds (alike within a warp or not), lanes
 * with an odd number of rounds left also load from o + 8 * (t ^ i); then all store 8 bytes at o + 16 * (t / 3). */
static const char kernel[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry k (.param .u64 o, .param .u32 n)\n{\n.reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .pred %p<8>;\n"
    "ld.param.u64 %rd1, [o]; ld.param.u32 %r9, [n]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mad.lo.u32 %r1, %r2, %r3, %r1;\n"
    "rem.u32 %r4, %r1, %r9; mov.u32 %r5, 0;\n"
    "LOOP: mad.lo.u32 %r6, %r5, 1024, %r1; mul.wide.u32 %rd2, %r6, 4; add.u64 %rd3, %rd1, %rd2;\n"
    "st.global.u32 [%rd3], %r5;\n"
    "sub.u32 %r7, %r4, %r5; and.b32 %r7, %r7, 1; setp.eq.u32 %p1, %r7, 1; xor.b32 %r8, %r1, %r5; mul.wide.u32 %rd4, %r8, 8; add.u64 %rd4, %rd4, %rd1;\n"
    "@!%p1 bra NEXT;\n ld.global.u32 %r10, [%rd4];\n"
    "NEXT: add.u32 %r5, %r5, 1; setp.le.u32 %p2, %r5, %r4; @%p2 bra LOOP;\n"
    "div.u32 %r11, %r1, 3; mul.wide.u32 %rd5, %r11, 16; add.u64 %rd5, %rd5, %rd1; st.global.u64 [%rd5], %rd5;\n"
    "setp.ge.u32 %p3, %r1, 0; @!%p3 bra END; ret;\nEND: exit;\n}\n";

static enum mg_err wants(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    (void)d;
    (void)conf;
    mg_patch_channel(p);
    return MG_ERR_OK;
}

/* Sites: accesses in text order; then 8: lanes' thread number and clock at the loop's store, 9: once at its load. */
static enum mg_err records(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    (void)conf, (void)d;
    const struct mg_patch_inst *insts;
    uint32_t n = mg_patch_insts(p, &insts), site = 0;
    struct mg_access a;
    for (uint32_t i = 0; i < n; i++) {
        if (!mg_access_of(mg_patch_module(p), insts[i].node, &a) || a.space == MG_SPACE_param) continue;
        struct mg_code_at *at = mg_at_before(p, insts[i].node);
        bool negated;
        mg_id guard = mg_node_guard(mg_patch_module(p), insts[i].node, &negated);
        mg_code_push_guard(at, guard, negated);
        mg_channel_access(at, site, insts[i].node);
        if (!site) {
            mg_id words[2] = {mg_value_cta(at), mg_code_reg(at, MG_TYPE_b64)};
            MG_CODE(at, "cvt.u64.u32", R(words[1]), R(mg_value_tid(at)));
            mg_channel_lanes(at, 8, words, 2);
        }
        if (site == 1) {
            mg_id words[1] = {mg_value_cta(at)};
            mg_channel_once(at, 9, words, 1);
        }
        mg_code_pop_guard(at);
        site++;
    }
    return MG_ERR_OK;
}
static const struct mg_tool records_tool = {.name = "records", .analyze = wants, .instrument = records};

struct seen {
    uint64_t out;
    uint32_t n[THREADS]; /* records of accesses, by thread */
    struct {
        uint32_t number, site;
        uint64_t address;
    } at[THREADS][MOST];
    uint64_t lanes, once, accesses, wrong, kinds[16];
    uint32_t block;
};

static const uint8_t *widths(void *user, uint32_t launch, uint32_t *n)
{
    static const uint8_t width[16] = {4, 4, 8};
    (void)user;
    *n = launch == 0 || launch == 77 ? 16 : 0;
    return *n ? width : NULL;
}

static void see(void *user, const struct mg_record *r)
{
    struct seen *s = user;
    s->kinds[r->kind]++;
    if (r->launch != 77) s->wrong++;
    if (r->kind == MG_RECORD_ONCE) {
        s->once++;
        if (r->n_words != 1 || r->words[0] != r->cta || r->site != 9) s->wrong++;
        return;
    }
    uint32_t rank = 0;
    uint64_t address[32];
    if (mg_record_is_access(r->kind)) mg_record_addresses(r, address);
    for (uint32_t lane = 0; lane < 32; lane++) {
        if (!(r->mask >> lane & 1)) continue;
        uint32_t tid = 32 * r->warp + lane, thread = (uint32_t)r->cta * s->block + tid;
        if (r->kind == MG_RECORD_LANES) {
            if (r->words[2 * rank] != r->cta || r->words[2 * rank + 1] != tid || r->site != 8) s->wrong++;
            s->lanes++;
        } else if (thread >= THREADS || s->n[thread] == MOST) {
            s->wrong++;
        } else {
            s->at[thread][s->n[thread]].number = r->number;
            s->at[thread][s->n[thread]].site = r->site;
            s->at[thread][s->n[thread]++].address = address[lane] - s->out;
            s->accesses++;
        }
        rank++;
    }
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Every thread's accesses, in the order of their numbers, are what it does. */
static void check_thread(struct seen *s, uint32_t t, uint32_t n)
{
    uint32_t k = 0, rounds = t % n;
    qsort(s->at[t], s->n[t], sizeof s->at[t][0], by_number);
#define IS(what, where)                                                                                                \
    (k < s->n[t] && s->at[t][k].site == (what) && s->at[t][k].address == (where) &&                                    \
     (!k || s->at[t][k].number > s->at[t][k - 1].number))
    for (uint32_t i = 0; i <= rounds; i++) {
        if (!IS(0, 4 * (t + 1024ull * i))) s->wrong++;
        k++;
        if (!((rounds - i) & 1)) continue;
        if (!IS(1, 8ull * (t ^ i))) s->wrong++;
        k++;
    }
    if (!IS(2, 16ull * (t / 3))) s->wrong++;
    if (k + 1 != s->n[t]) s->wrong++;
}

struct channel {
    struct mg_channel_control *c;
    uint64_t *free, *done;
    char *pool;
};

static struct mg_channel_ring *ring_of(const struct channel *ch, uint32_t r)
{
    return (void *)((char *)ch->c + mg_channel_ring_at(r));
}

static struct channel new_channel(uint32_t pages, uint32_t drops)
{
    size_t bytes = mg_channel_ring_at(RINGS);
    struct channel ch = {.c = (void *)(uintptr_t)mg_mem_alloc(bytes, 256, MG_ALLOC_INTERNAL),
                         .free = (void *)(uintptr_t)mg_mem_alloc(16 * PAGES, 256, MG_ALLOC_INTERNAL)};
    ch.done = ch.free + PAGES;
    ch.pool = (void *)(uintptr_t)mg_mem_alloc((size_t)PAGES * MG_CHANNEL_PAGE, MG_CHANNEL_PAGE, MG_ALLOC_INTERNAL);
    memset(ch.c, 0, bytes);
    memset(ch.free, 0, 16 * PAGES);
    memset(ch.pool, 0xee, (size_t)PAGES * MG_CHANNEL_PAGE);
    *ch.c = (struct mg_channel_control){.pool = (uintptr_t)ch.pool,
                                        .free = (uintptr_t)ch.free,
                                        .done = (uintptr_t)ch.done,
                                        .queue_mask = PAGES - 1,
                                        .ring_mask = RINGS - 1,
                                        .patience_ns = drops ? 1000 : MG_CHANNEL_PATIENCE_NS};
    for (uint32_t r = 0; r < RINGS; r++) ring_of(&ch, r)->now = MG_CHANNEL_NO_PAGE;
    for (uint32_t k = 0; k < pages; k++) ch.free[k] = mg_channel_entry(k, PAGES - 1 - k);
    return ch;
}

/* One page, as far as it was taken: all closed, and all that was taken is committed. */
static void read_page(const struct channel *ch, uint32_t page, uint32_t taken, uint32_t number[RINGS], struct seen *s)
{
    const uint64_t *at = (uint64_t *)(ch->pool + (size_t)page * MG_CHANNEL_PAGE);
    uint32_t open = 0, ring = (uint32_t)at[0];
    if (ring >= RINGS || at[0] >> 32 != number[ring]++ || (uint32_t)at[1] != taken) s->wrong++;
    if (mg_channel_whole(at + 2, taken, &open) != taken || open ||
        !mg_channel_read(at + 2, taken, widths, NULL, see, s))
        s->wrong++;
}

static uint32_t drain(const struct channel *ch, struct seen *s, uint64_t *dropped)
{
    uint32_t number[RINGS] = {0};
    *dropped = 0;
    for (uint32_t k = 0; k < ch->c->n_done; k++) {
        if (!mg_channel_entry_is(ch->done[k], k)) s->wrong++;
        read_page(ch, (uint32_t)ch->done[k], MG_CHANNEL_ROOM, number, s);
    }
    for (uint32_t r = 0; r < RINGS; r++) {
        const struct mg_channel_ring *ring = ring_of(ch, r);
        *dropped += ring->dropped;
        if (ring->now >> 32 != UINT32_MAX)
            read_page(ch, (uint32_t)(ring->now >> 32), MG_MIN((uint32_t)ring->now, (uint32_t)MG_CHANNEL_ROOM), number,
                      s);
        if (number[r] != ring->pages) s->wrong++;
    }
    return number[0] + number[1];
}

static void run(uint32_t grid, uint32_t block, uint32_t n, uint32_t every, const struct channel *ch, struct seen *s)
{
    static struct mg_device *dev;
    struct mg_diag d = MG_DIAG_INIT;
    struct mg_device_opts o = {.size = sizeof o, .properties = "h200", .workers = 2};
    mg_mem_init(0);
    if (!dev && mg_emu_ops.open(&dev, &o, &d)) mg_test_fail(__FILE__, __LINE__, "%s", mg_diag_first(&d, MG_ERR_DEVICE));
    struct mg_module *m = NULL, *again = NULL;
    struct mg_twin *t = NULL;
    struct mg_layout layout = {0};
    struct mg_dmod *mod = NULL;
    if (mg_ptx_parse(kernel, strlen(kernel), "k.ptx", &m, &d))
        mg_test_fail(__FILE__, __LINE__, "%s", mg_diag_first(&d, MG_ERR_INPUT));
    mg_id k = mg_module_find_func(m, "k");
    struct mg_sites *sites = mg_sites_new(m, k);
    struct mg_pass_opts passes = {.size = sizeof passes, .verify = true};
    struct mg_tools_opts to = {.size = sizeof to, .sm = 90, .max_copies = 1, .channel_every = every, .passes = &passes};
    struct mg_tool_use use = {&records_tool, NULL};
    if (mg_twin_new(m, k, &t, &d) || mg_tools_instrument(&use, 1, sites, t, &to, &layout, &d) ||
        layout.regions[0].reason)
        mg_test_fail(__FILE__, __LINE__, "%s",
                     layout.regions && layout.regions[0].reason ? layout.regions[0].reason
                                                                : mg_diag_first(&d, MG_ERR_STATE));
    struct mg_buf text = MG_BUF_INIT;
    t->m->marked = true;
    mg_ptx_print(t->m, &text);
    if (mg_ptx_parse(text.at, text.n, "twin.ptx", &again, &d) || mg_emu_ops.module_load(dev, again, &mod, &d))
        mg_test_fail(__FILE__, __LINE__, "%s\n%s", mg_diag_first(&d, MG_ERR_INPUT), text.at);
    uint64_t ctx = mg_mem_alloc(MG_CTX_BYTES + 4096, 256, MG_ALLOC_INTERNAL), *c = (uint64_t *)(uintptr_t)ctx;
    memset(c, 0, MG_CTX_BYTES + 4096);
    c[MG_CTX_WORDS / 8 + layout.regions[0].first_word + layout.regions[0].channel_word] = (uintptr_t)ch->c;
    c[MG_CTX_WORDS / 8 + layout.regions[0].first_word + layout.regions[0].channel_word + 1] = 77;
    s->out = mg_mem_alloc(OUT_BYTES, 256, MG_ALLOC_DEVICE);
    s->block = block;
    memset((void *)(uintptr_t)s->out, 0, OUT_BYTES);
    struct {
        uint64_t out;
        uint32_t n, pad;
        uint64_t ctx;
    } params = {s->out, n, 0, ctx};
    struct mg_launch l = {.kernel = mg_emu_ops.kernel(mod, "k"),
                          .grid = {grid, 1, 1},
                          .block = {block, 1, 1},
                          .params = &params,
                          .param_bytes = 24,
                          .time_limit_ns = 10000000000u};
    struct mg_launch_stats stats;
    struct mg_fault f;
    mg_emu_ops.launch(dev, &l, &stats, &f);
    if (f.kind) mg_test_fail(__FILE__, __LINE__, "%s", f.text);
    mg_emu_ops.module_unload(mod);
    mg_mem_free(ctx);
    mg_mem_free(s->out);
    mg_buf_release(&text);
    mg_layout_release(&layout);
    mg_twin_free(t);
    mg_sites_free(sites);
    mg_module_free(m);
    mg_diag_release(&d);
}

static void free_channel(struct channel *ch)
{
    mg_mem_free((uintptr_t)ch->c);
    mg_mem_free((uintptr_t)ch->free);
    mg_mem_free((uintptr_t)ch->pool);
}

MG_TEST(channel_records)
{
    static const uint32_t shapes[][3] = {{4, 80, 11}, {2, 160, 1}, {10, 32, 7}, {5, 1, 3}};
    for (unsigned i = 0; i < MG_COUNT_OF(shapes); i++) {
        uint32_t threads = shapes[i][0] * shapes[i][1], n = shapes[i][2];
        struct seen *s = calloc(1, sizeof *s);
        mg_mem_init(0);
        struct channel ch = new_channel(PAGES, 0);
        uint64_t dropped, expect = 0, stores = 0;
        run(shapes[i][0], shapes[i][1], n, 1, &ch, s);
        drain(&ch, s, &dropped);
        for (uint32_t t = 0; t < threads; t++) {
            check_thread(s, t, n);
            expect += t % n + 2 + (t % n + 1) / 2;
            stores += t % n + 1;
        }
        MG_CHECK_EQ(s->wrong, 0);
        MG_CHECK_EQ(dropped, 0);
        MG_CHECK_EQ(s->accesses, expect);
        MG_CHECK_EQ(s->lanes, stores);
        if (n == 1) MG_CHECK(s->kinds[MG_RECORD_FULL] >= threads / 32);
        if (n > 1 && threads > 32) MG_CHECK(s->once && s->kinds[MG_RECORD_NEAR]);
        free_channel(&ch);
        free(s);
    }
}

/* No room: records are dropped and counted, those that are there are right. Sampling: every third number of a warp. */
MG_TEST(channel_drops_and_samples)
{
    struct seen *s = calloc(1, sizeof *s);
    uint64_t dropped;
    mg_mem_init(0);
    struct channel ch = new_channel(1, 1);
    run(4, 80, 11, 1, &ch, s);
    MG_CHECK_EQ(drain(&ch, s, &dropped), 1);
    MG_CHECK_EQ(s->wrong, 0);
    MG_CHECK(dropped > 0);
    free_channel(&ch);
    memset(s, 0, sizeof *s);
    ch = new_channel(PAGES, 0);
    run(2, 160, 1, 3, &ch, s);
    drain(&ch, s, &dropped);
    MG_CHECK_EQ(s->wrong, 0);
    MG_CHECK_EQ(s->accesses + s->lanes, 320); /* numbers 0 (store), 1 (its lanes), 2 (the last store): one of three */
    free_channel(&ch);
    free(s);
}

struct counted {
    uint64_t lanes, accesses, wrong;
};

static void count(void *user, const struct mg_record *r)
{
    struct counted *c = user;
    uint64_t n = (uint64_t)__builtin_popcount(r->mask);
    if (r->kind == MG_RECORD_LANES)
        c->lanes += n;
    else if (r->kind != MG_RECORD_ONCE)
        c->accesses += n;
}

static void count_page(const struct channel *ch, uint32_t page, uint32_t to, bool *seen, struct counted *c)
{
    const uint64_t *at = (uint64_t *)(ch->pool + (size_t)page * MG_CHANNEL_PAGE);
    uint32_t open = 0;
    if (page >= PAGES || seen[page] || (uint32_t)at[1] != to || mg_channel_whole(at + 2, to, &open) != to || open ||
        !mg_channel_read(at + 2, to, widths, NULL, count, c))
        c->wrong++;
    seen[page] = true;
}

/* Several launches fill pages: each is in the queue, or where nobody sent it on its ring's list, or a ring fills it. */
MG_TEST(channel_full_pages)
{
    enum { LAUNCHES = 40 };
    struct seen *s = calloc(1, sizeof *s);
    struct counted c = {0};
    bool seen[PAGES] = {false};
    uint64_t expect = 0, stores = 0;
    uint32_t full = 0;
    mg_mem_init(0);
    struct channel ch = new_channel(PAGES, 0);
    for (uint32_t i = 0; i < LAUNCHES; i++) run(4, 80, 11, 1, &ch, s);
    for (uint32_t t = 0; t < 320; t++) {
        expect += t % 11 + 2 + (t % 11 + 1) / 2;
        stores += t % 11 + 1;
    }
    for (; full < ch.c->n_done; full++) count_page(&ch, (uint32_t)ch.done[full], MG_CHANNEL_ROOM, seen, &c);
    for (uint32_t r = 0; r < RINGS; r++) {
        const struct mg_channel_ring *ring = ring_of(&ch, r);
        uint32_t n = (uint32_t)(ring->full >> 32), page = (uint32_t)ring->full;
        for (; page && n; n--, full++) {
            count_page(&ch, page - 1, MG_CHANNEL_ROOM, seen, &c);
            page = (uint32_t)(((uint64_t *)(ch.pool + (size_t)(page - 1) * MG_CHANNEL_PAGE))[1] >> 32);
        }
        if (page || n) c.wrong++;
        if (ring->now >> 32 != UINT32_MAX)
            count_page(&ch, (uint32_t)(ring->now >> 32), MG_MIN((uint32_t)ring->now, (uint32_t)MG_CHANNEL_ROOM), seen,
                       &c);
    }
    MG_CHECK(full > 20);
    MG_CHECK_EQ(c.wrong, 0);
    MG_CHECK_EQ(c.accesses, LAUNCHES * expect);
    MG_CHECK_EQ(c.lanes, LAUNCHES * stores);
    free_channel(&ch);
    free(s);
}

/* What is not a segment is told. */
MG_TEST(channel_damaged)
{
    struct seen s = {0};
    uint64_t seg[9] = {0};
    uint32_t open = 0;
#define SEGMENT(words, used)                                                                                           \
    ((uint64_t)MG_SEGMENT_OPENED << 62 | (uint64_t)(words) << MG_SEGMENT_WORDS_SHIFT |                                 \
     (uint64_t)(used) << MG_SEGMENT_USED_SHIFT)
    MG_CHECK(!mg_channel_read(seg, 24, widths, NULL, see, &s)); /* nothing */
    seg[0] = SEGMENT(4, 3);
    MG_CHECK(!mg_channel_read(seg, 24, widths, NULL, see, &s)); /* cut off */
    seg[0] = SEGMENT(3, 4);
    MG_CHECK(!mg_channel_read(seg, 24, widths, NULL, see, &s)); /* more in use than it has */
    seg[0] = SEGMENT(3, 3);
    seg[2] = (uint64_t)MG_RECORD_FULL << 60 | 16ull << 49;
    MG_CHECK(!mg_channel_read(seg, 24, widths, NULL, see, &s)); /* a site beyond the last */
    seg[2] = (uint64_t)MG_RECORD_LANES << 60 | 9ull << 32 | 1;
    MG_CHECK(!mg_channel_read(seg, 24, widths, NULL, see, &s)); /* more words than a lane can have */
    seg[2] = 0;
    MG_CHECK(!mg_channel_read(seg, 24, widths, NULL, see, &s));
    seg[0] = SEGMENT(3, 3) | 5;
    seg[2] = (uint64_t)MG_RECORD_FULL << 60;
    MG_CHECK(!mg_channel_read(seg, 24, widths, NULL, see, &s)); /* of no launch */
    const uint64_t group = (uint64_t)MG_RECORD_GROUP << 60 | 1ull << 49 | 3ull << 32 | 1,
                   full = (uint64_t)MG_RECORD_FULL << 60;
    for (uint32_t how = 0; how < 6; how++) { /* loops: of one as it should be, 0 rounds, no lanes, longer than its
                                                segment, of a bad site or kind */
        memcpy(seg, (uint64_t[]){SEGMENT(6, 6) | 77, 0, group, 5, full, 8}, 48);
        if (how == 1) seg[3] = 0;
        if (how == 2) seg[2] &= ~(uint64_t)UINT32_MAX;
        if (how == 3) seg[2] += 1ull << 32;
        if (how == 4) seg[4] |= 16ull << 49;
        if (how == 5) seg[4] = (uint64_t)MG_RECORD_LANES << 60;
        s = (struct seen){0};
        MG_CHECK_EQ(mg_channel_read(seg, 48, widths, NULL, see, &s), how == 0);
        MG_CHECK_EQ(s.kinds[MG_RECORD_FULL], how == 0);
    }
    /* side by side: sites 2 to 6, 4 bytes behind one another in units of 4; too few, too many, cut off, a bad site */
    const uint64_t side = (uint64_t)MG_RECORD_SIDE << 60 | 2ull << 49 | 4096;
    for (uint32_t how = 0; how < 5; how++) {
        memcpy(seg, (uint64_t[]){SEGMENT(5, 5) | 77, 0, side, 5 | 1ull << 4 | 2ull << 34, 3 | 4ull << 30}, 40);
        if (how == 1) seg[3] ^= 5 ^ 1;
        if (how == 2) seg[3] ^= 5 ^ 9;
        if (how == 3) seg[3] ^= 5 ^ 7;
        if (how == 4) seg[2] ^= (2ull ^ 12ull) << 49;
        s = (struct seen){0};
        MG_CHECK_EQ(mg_channel_read(seg, 40, widths, NULL, see, &s), how == 0);
        MG_CHECK_EQ(s.kinds[MG_RECORD_FULL], how ? 0 : 5);
    }
    s = (struct seen){0};
    seg[0] = SEGMENT(3, 2);
    MG_CHECK(mg_channel_read(seg, 24, widths, NULL, see, &s));
    seg[3] = SEGMENT(2, 0);
    MG_CHECK(mg_channel_read(seg, 40, widths, NULL, see, &s));
    MG_CHECK_EQ(mg_channel_whole(seg, 72, &open), 40);
    MG_CHECK_EQ(open, 1);
    MG_CHECK_EQ(s.accesses + s.lanes + s.once, 0);
}

/* ---- the tool `accesses`, which reads them ----------------------------------------------------------------- */

static char told[400];
static void keep(const char *tool, const char *key, const char *json)
{
    snprintf(told, sizeof told, "%s %s %s", tool, key, json);
}

static const struct mg_stream_launch *launch_of(const struct mg_stream *s, uint32_t number)
{
    static const struct mg_layout_site sites[2] = {{.function = "k"}, {.function = "f"}};
    static const uint8_t width[2] = {4, 4};
    static const struct mg_stream_launch l = {
        .kernel = "k", .sites = sites, .n_sites = 2, .widths = width, .n_widths = 2};
    (void)s;
    return number ? NULL : &l;
}

/* A record's number is higher than any that one of its lanes took part in, in the kernel itself. */
MG_TEST(channel_order_is_checked)
{
    extern const struct mg_tool mg_tool_accesses;
    static const struct {
        uint32_t mask, number, site;
        bool wrong;
    } r[] = {
        {UINT32_MAX, 0, 0, false}, {0xf, 1, 0, false},        {0xf0, 1, 0, false},
        {0xff, 2, 0, false},       {0xf00, 1, 0, false},      {0xf, 1, 0, true}, /* these lanes were in 2 */
        {0x1000, 0, 1, false},                                                   /* functions begin with 0 */
        {UINT32_MAX, 2, 0, true},  {UINT32_MAX, 3, 0, false}, {0x80000000, 3, 0, true},
        {0x80000000, 4, 0, false}, {0xf0, 0, 0, false},       {UINT32_MAX, 1, 0, false}, /* a graph's node runs again */
    };
    const struct mg_tool *t = &mg_tool_accesses;
    const struct mg_tool_host host = {.size = sizeof host, .result = keep};
    const struct mg_stream s = {.n_workers = 1, .launch = launch_of};
    struct mg_diag d = MG_DIAG_INIT;
    uint64_t lanes = 0, wrong = 0;
    void *conf = NULL;
    char want[100];
    MG_CHECK(!t->configure("", &conf, &d));
    t->begin(conf, &host);
    for (unsigned i = 0; i < MG_COUNT_OF(r); i++) {
        uint64_t seg[4] = {SEGMENT(4, 4), (uint64_t)r[i].number << MG_SEGMENT_CTA_BITS | 9,
                           (uint64_t)MG_RECORD_SAME << 60 | (uint64_t)r[i].site << 49 | 0x1000, r[i].mask};
        t->stream(conf, &s, seg, sizeof seg);
        lanes += (uint64_t)__builtin_popcount(r[i].mask);
        wrong += r[i].wrong;
    }
    t->end(conf);
    t->release(conf);
    snprintf(want, sizeof want, "\"received\": %llu,", (unsigned long long)lanes);
    MG_CHECK(strstr(told, want) != NULL);
    snprintf(want, sizeof want, "\"out_of_order\": %llu, \"address_sum\": %llu", (unsigned long long)wrong,
             0x1000ull * (unsigned long long)lanes);
    if (!strstr(told, want)) mg_test_fail(__FILE__, __LINE__, "%s is not in %s", want, told);
}
