/* Fuzz target: the bytes are launches and host events for the analysis of communication. Whatever they are, it refuses
 * a launch or takes it; what communicates is a part of what was accessed, and one
 * worker, three, and two processes of two find the same. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "study/comm.h"
#include "study/comm_metrics.h"
#include "study/comm_part.h"

enum { ACCESSES = 24, ADDRESSES = ACCESSES * 32 };
static const uint64_t base = ((uint64_t)0x7f << 32) - 512; /* around a page's end */

struct input {
    const uint8_t *at;
    size_t n;
};

static uint32_t take_byte(struct input *in)
{
    if (!in->n) return 0;
    in->n--;
    return *in->at++;
}

static uint32_t take_word(struct input *in)
{
    uint32_t v = take_byte(in);
    return v | take_byte(in) << 8;
}

static void make_access(struct input *in, struct mg_comm_access *a, uint64_t *addresses, uint32_t *used)
{
    uint32_t how = take_byte(in);
    *a = (struct mg_comm_access){.base = base + take_word(in) % 1024,
                                 .mask = take_word(in) | take_word(in) << 16,
                                 .cta = take_byte(in) % 9,
                                 .order = take_byte(in),
                                 .phase = take_byte(in) % 4,
                                 .bytes = take_byte(in),
                                 .warp = (uint16_t)(take_byte(in) % 3),
                                 .sm = (uint16_t)(take_byte(in) % 5),
                                 .kind = (uint8_t)(how % 3)};
    a->stride = (int32_t)(int8_t)take_byte(in);
    if (how & 64) a->base = (uint64_t)take_word(in) << 48; /* no address at all */
    if (!(how & 128)) return;
    a->stride = MG_COMM_LISTED;
    a->first = *used;
    for (uint32_t left = a->mask; left; left &= left - 1) addresses[(*used)++] = base + take_word(in) % 1024;
}

/* All of a launch that stays in the caller's memory. */
static struct mg_comm_launch make_launch(struct input *in, struct mg_comm_access *a, uint64_t *addresses)
{
    uint32_t used = 0, n = take_byte(in) % (ACCESSES + 1);
    for (uint32_t i = 0; i < n; i++) make_access(in, &a[i], addresses, &used);
    return (struct mg_comm_launch){.kernel = take_byte(in) & 1 ? "one" : "two",
                                   .stream = take_byte(in) % 2,
                                   .grid = {take_byte(in) % 4, 3, 1},
                                   .block = {take_byte(in), 1, 1},
                                   .accesses = a,
                                   .n_accesses = n,
                                   .addresses = addresses};
}

static void host_event(struct mg_comm *c, uint32_t kind, uint64_t address, uint64_t bytes)
{
    switch (kind % 5) {
    case 0:
        mg_comm_add_copy_in(c, address, bytes);
        break;
    case 1:
        mg_comm_add_copy_out(c, address, bytes);
        break;
    case 2:
        mg_comm_add_copy_within(c, address, base, bytes);
        break;
    case 3:
        mg_comm_add_memset(c, address, bytes);
        break;
    default:
        mg_comm_add_allocation(c, address, bytes);
    }
}

static void check(const struct mg_comm_result *r)
{
    struct mg_comm_metrics m;
    mg_comm_metrics_init(&m, r);
    if (m.used.load > m.total.load || m.used.store > m.total.store || m.used.atomic > m.total.atomic) abort();
    uint64_t sizes = 0, fresh = 0;
    for (uint32_t i = 0; i < r->n_edges; i++) {
        const struct mg_comm_edge *e = &r->edges[i];
        if (e->source_step >= e->target_step || e->target_step >= r->n_steps || e->fresh > e->bytes ||
            e->bytes > e->executed)
            abort();
        sizes += e->bytes;
        fresh += e->fresh;
    }
    if (sizes != m.bytes || fresh > sizes) abort();
    mg_comm_metrics_release(&m);
}

static void compare(const struct mg_comm_result *a, const struct mg_comm_result *b)
{
    if (a->n_edges != b->n_edges || a->n_steps != b->n_steps || a->load_gaps.n != b->load_gaps.n ||
        a->store_gaps.n != b->store_gaps.n)
        abort();
    if (a->n_edges && memcmp(a->edges, b->edges, a->n_edges * sizeof *a->edges)) abort();
    for (uint32_t i = 0; i < a->n_steps; i++)
        if (memcmp(a->steps[i].used, b->steps[i].used, a->steps[i].n_ctas * sizeof *a->steps[i].used)) abort();
    for (uint32_t i = 0; i < a->load_gaps.n; i++)
        if (a->load_gaps.at[i].count != b->load_gaps.at[i].count) abort();
    for (uint32_t i = 0; i < a->store_gaps.n; i++)
        if (a->store_gaps.at[i].count != b->store_gaps.at[i].count) abort();
}

/* What the second rank found, added to the first one's; the same bytes with one changed are refused and change nothing.
 */
static void join(struct mg_comm *to, struct mg_comm *from, uint32_t changed)
{
    struct mg_buf part = MG_BUF_INIT;
    mg_comm_part_print(from, &part);
    part.at[changed % part.n] ^= 1;
    if (!mg_comm_part_add(to, part.at, part.n, NULL)) abort();
    part.at[changed % part.n] ^= 1;
    if (!mg_comm_part_add(to, part.at, changed % part.n, NULL) || mg_comm_part_add(to, part.at, part.n, NULL)) abort();
    mg_buf_release(&part);
}

enum { ONE, THREE_WORKERS, RANK_0, RANK_1, ANALYSES };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct input in = {data, bytes};
    struct mg_comm_access a[ACCESSES];
    uint64_t addresses[ADDRESSES];
    struct mg_comm_opts o = {.size = sizeof o, .entity = (enum mg_comm_entity)(take_byte(&in) % 5)};
    struct mg_comm *c[ANALYSES];
    o.match = take_byte(&in) % 4 ? MG_COMM_BYTE : MG_COMM_START;
    o.keep_addresses = take_byte(&in) & 1;
    for (uint32_t i = 0; i < ANALYSES; i++) {
        o.workers = i == ONE ? 1 : i == THREE_WORKERS ? 3 : 2;
        o.ranks = i >= RANK_0 ? 2 : 1;
        o.rank = i == RANK_1;
        c[i] = mg_comm_new(&o);
    }
    while (in.n) {
        if (take_byte(&in) & 1) {
            uint32_t kind = take_byte(&in);
            uint64_t address = base + take_word(&in) % 1024, n = take_word(&in);
            if (kind & 128) address <<= 24, n <<= 45;
            for (uint32_t i = 0; i < ANALYSES; i++) host_event(c[i], kind, address, n);
            continue;
        }
        struct mg_comm_launch l = make_launch(&in, a, addresses);
        enum mg_err err = mg_comm_add_launch(c[ONE], &l, NULL);
        for (uint32_t i = 1; i < ANALYSES; i++)
            if (mg_comm_add_launch(c[i], &l, NULL) != err) abort();
    }
    join(c[RANK_0], c[RANK_1], (uint32_t)bytes * 7919);
    check(mg_comm_finish(c[ONE]));
    compare(mg_comm_finish(c[ONE]), mg_comm_finish(c[THREE_WORKERS]));
    compare(mg_comm_finish(c[ONE]), mg_comm_finish(c[RANK_0]));
    for (uint32_t i = 0; i < ANALYSES; i++) mg_comm_free(c[i]);
    return 0;
}
