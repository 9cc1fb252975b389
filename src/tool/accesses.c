/* accesses: every access to memory as a record that the host receives while the kernel runs, through a
 * channel (record/channel.h). What arrives is added up, checked for order and compared with what the kernel
 * counted itself; out=FILE keeps it as text. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/channel.h"
#include "tool/host.h"
#include "patch/layout.h"
#include "tool/tool.h"
#include "view/kit.h"

static const struct mg_tool_opt accesses_opts[] = {
    {"form", "coded", "coded: 8 bytes for a coalesced access of a warp; lanes: 64 bytes for every lane"},
    {"out", "", "file that gets each access as a line: launch kernel cta warp number ptx-line address..."},
    {"raw", "", "files FILE.0, FILE.1, ... that get the segments as they come, one for each worker"},
    {0},
};

enum {
    RECENT_BITS = 10,
    RECENT = 1 << RECENT_BITS /* a worker reads a few multiprocessors, of at most 64 warps each; all of a reader's stay
                                 in its cache */
    ,
    GROUPS = 8,
    LANE_WORDS = 8,
    AT_ONCE = 16
};

struct part { /* of one worker */
    FILE *raw;
    uint64_t records, lanes, bytes, disorder, sum;
    uint32_t n_taken;
    struct taken {
        const uint64_t *words;
        uint64_t cta, key;
        uint32_t site, n, mask;
        int32_t number;
    } taken[AT_ONCE + 1]; /* records that are looked at together; then one of no lanes */
    uint64_t key[RECENT]; /* warps */
    struct recent {
        uint32_t mask[GROUPS];
        int32_t next[GROUPS];
    } recent[RECENT]; /* and from what groups of their lanes should number on: a lane is in one at most */
};
struct conf {
    bool by_lane;
    char *out, *raw;
    FILE *file;
    pthread_mutex_t lock;
    struct part *parts[MG_STREAM_MOST_WORKERS];
    uint64_t expected;
    const struct mg_tool_host *host;
};

static enum mg_err accesses_configure(const char *args, void **conf, struct mg_diag *d)
{
    struct conf *c = mg_xcalloc(1, sizeof *c);
    char *copy = mg_xstrdup(args ? args : ""), *save = NULL;
    enum mg_err err = MG_ERR_OK;
    pthread_mutex_init(&c->lock, NULL);
    for (char *kv = strtok_r(copy, ",", &save); kv && !err; kv = strtok_r(NULL, ",", &save)) {
        if (!strcmp(kv, "form=lanes") || !strcmp(kv, "form=coded"))
            c->by_lane = kv[5] == 'l';
        else if (!strncmp(kv, "out=", 4) && kv[4]) {
            free(c->out);
            c->out = mg_xstrdup(kv + 4);
        } else if (!strncmp(kv, "raw=", 4) && kv[4]) {
            free(c->raw);
            c->raw = mg_xstrdup(kv + 4);
        } else
            err = mg_diag_err(d, MG_ERR_INPUT, "tool accesses: bad option \"%s\"", kv);
    }
    free(copy);
    *conf = c;
    return err;
}

static void accesses_release(void *conf)
{
    struct conf *c = conf;
    if (!c) return;
    for (unsigned i = 0; i < MG_COUNT_OF(c->parts); i++) free(c->parts[i]);
    free(c->out);
    free(c->raw);
    free(c);
}

static enum mg_err accesses_analyze(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    (void)conf, (void)d;
    mg_patch_channel(p);
    return MG_ERR_OK;
}

static enum mg_err accesses_instrument(const void *conf, struct mg_patch *p, struct mg_diag *d)
{
    const struct conf *c = conf;
    const struct mg_module *m = mg_patch_module(p);
    const struct mg_patch_inst *insts;
    uint32_t n = mg_patch_insts(p, &insts), site = 0;
    struct mg_access a;
    (void)d;
    for (uint32_t i = 0; i < n; i++) {
        mg_id node = insts[i].node;
        if (!mg_access_of(m, node, &a) || (a.space != MG_SPACE_global && a.space != MG_SPACE_generic)) continue;
        bool negated;
        mg_id guard = mg_node_guard(m, node, &negated);
        uint32_t cell = mg_patch_site(p, MG_SITE_INST, node, 0, 1, MG_MERGE_SUM, site);
        struct mg_code_at *at = mg_at_before(p, node);
        mg_code_push_guard(at, guard, negated);
        mg_sum_add(at, mg_patch_sum(p, cell), mg_o_imm(1));
        if (c->by_lane) {
            mg_id words[LANE_WORDS] = {mg_value_address(at, node), mg_value_cta(at), mg_value_clock(at)};
            for (unsigned k = 3; k < LANE_WORDS; k++) words[k] = mg_code_temp(at, MG_TYPE_b64);
            MG_CODE(at, "cvt.u64.u32", words[3], mg_value_tid(at));
            MG_CODE(at, "cvt.u64.u32", words[4], mg_value_sm(at));
            MG_CODE(at, "cvt.u64.u32", words[5], mg_value_active(at));
            MG_CODE(at, "add.u64", words[6], words[0], words[1]);
            MG_CODE(at, "add.u64", words[6], words[6], words[2]);
            MG_CODE(at, "add.u64", words[6], words[6], words[3]); /* a checksum */
            MG_CODE(at, "mov.u64", words[7], mg_o_imm(site));
            mg_channel_lanes(at, site, words, LANE_WORDS);
        } else {
            mg_channel_access(at, site, node);
        }
        mg_code_pop_guard(at);
        site++;
    }
    return MG_ERR_OK;
}

/* ---- what arrives ----------------------------------------------------------------------------------- */

struct reading { /* of segments that came together */
    struct conf *c;
    const struct mg_stream *s;
    struct part *p;
    uint32_t number;
    const struct mg_stream_launch *launch; /* of that number */
    const char *kernel;                    /* its name, as its sites have it */
};

static const struct mg_stream_launch *launch_of(struct reading *x, const struct mg_record *r)
{
    if (!x->launch || x->number != r->launch) x->launch = x->s->launch(x->s, x->number = r->launch);
    return x->launch;
}

static void write_line(struct reading *x, const struct mg_record *r)
{
    struct conf *c = x->c;
    const struct mg_stream_launch *l = launch_of(x, r);
    uint64_t address[32];
    if (mg_record_is_access(r->kind)) mg_record_addresses(r, address);
    for (unsigned lane = 0, i = 0; lane < 32 && r->kind == MG_RECORD_LANES; lane++)
        if (r->mask >> lane & 1) address[lane] = r->words[r->n_words * i++];
    pthread_mutex_lock(&c->lock);
    fprintf(c->file, "%llu %s %llu %u %u %u", (unsigned long long)l->id, l->kernel, (unsigned long long)r->cta,
            (unsigned)r->warp, (unsigned)r->number, r->site < l->n_sites ? (unsigned)l->sites[r->site].ptx_line : 0u);
    for (unsigned lane = 0; lane < 32; lane++)
        if (r->mask >> lane & 1) fprintf(c->file, " %u:0x%llx", lane, (unsigned long long)address[lane]);
    fputc('\n', c->file);
    pthread_mutex_unlock(&c->lock);
}

/* Is it the kernel's own? Functions that stay calls number their records anew. */
static bool is_kernel(struct reading *x, const struct mg_record *r)
{
    const struct mg_stream_launch *l = launch_of(x, r);
    const char *function = r->site < l->n_sites ? l->sites[r->site].function : "";
    if (function != x->kernel && strcmp(function, l->kernel)) return false;
    x->kernel = function;
    return true;
}

static uint32_t slot_of(uint64_t key)
{
    return (uint32_t)(key * 0x9e3779b97f4a7c15u >> (64 - RECENT_BITS));
}

/* Makes one of the two groups that number on from the least; returns the place that is free then. */
static uint32_t join_lowest(struct recent *w)
{
    uint32_t least = w->next[1] < w->next[0], second = !least;
    for (uint32_t i = 2; i < GROUPS; i++) {
        if (w->next[i] < w->next[least])
            second = least, least = i;
        else if (w->next[i] < w->next[second])
            second = i;
    }
    w->mask[least] |= w->mask[second];
    return second;
}

/* A record's number is higher than any that its lanes took part in. A warp begins anew with 0 where a graph's node runs
 * again; one that is not remembered any more is not compared. */
static void check_order(struct part *p, const struct taken *r)
{
    uint32_t at = slot_of(r->key), early = 0, into = GROUPS;
    struct recent *w = &p->recent[at];
    if (p->key[at] != r->key || !r->number) {
        p->key[at] = r->key;
        memset(w, 0, sizeof *w);
    }
    for (int i = 0; i < GROUPS; i++) { /* all alike: several at a time */
        early |= w->mask[i] & r->mask & -(uint32_t)(r->number < w->next[i]);
        w->mask[i] &= ~r->mask;
    }
    p->disorder += early != 0;
    for (uint32_t i = 0; i < GROUPS; i++) into = w->mask[i] ? into : i;
    if (into == GROUPS) into = join_lowest(w);
    w->mask[into] = r->mask;
    w->next[into] = r->number + 1;
}

static uint64_t wrong_in(const struct taken *r, const uint64_t *w)
{
    return (w[6] ^ (w[0] + w[1] + w[2] + w[3])) | (w[7] ^ r->site) | (w[1] ^ r->cta);
}

/* What lanes wrote in form=lanes: lane by lane through all records, since a loop of few rounds for each is a jump that
 * the processor foretells wrongly each time. */
static void check_lanes(struct part *p, uint32_t lanes)
{
    const struct taken *r = p->taken;
    const uint64_t *w = r->words;
    uint64_t sum = 0, wrong = 0;
    for (uint32_t left = r->n; lanes; lanes--) {
        wrong |= wrong_in(r, w);
        sum += w[0];
        bool last = !--left;
        r += last;
        const uint64_t *words = r->words;
        uint32_t n = r->n;
        w = last ? words : w + LANE_WORDS;
        left = last ? n : left;
    }
    p->sum += sum;
    if (!wrong) return;
    for (r = p->taken; r < p->taken + p->n_taken; r++) {
        for (wrong = 0, w = r->words; w < r->words + (size_t)r->n * LANE_WORDS; w += LANE_WORDS)
            wrong |= wrong_in(r, w);
        p->disorder += wrong != 0;
    }
}

static void check_taken(struct part *p)
{
    uint32_t lanes = 0;
    for (uint32_t i = 0; i < p->n_taken; i++) lanes += p->taken[i].n;
    if (lanes) check_lanes(p, lanes);
    for (uint32_t i = 0; i < p->n_taken; i++)
        if (p->taken[i].key) check_order(p, &p->taken[i]);
    p->n_taken = 0;
}

/* Of the addresses of a coded record. */
static uint64_t sum_of(const struct mg_record *r, uint32_t n)
{
    uint64_t sum = r->first * n;
    const int32_t *near = (const void *)r->words;
    switch (r->kind) {
    case MG_RECORD_SAME:
        return sum;
    case MG_RECORD_NEAR:
        for (uint32_t i = 0; i < n; i++) sum += (uint64_t)(int64_t)near[i];
        return sum;
    case MG_RECORD_FAR:
        sum = 0;
        for (uint32_t i = 0; i < n; i++) sum += r->words[i];
        return sum;
    case MG_RECORD_ROWS: {
        uint64_t address[32];
        mg_record_addresses(r, address);
        sum = 0;
        for (uint32_t m = r->mask; m; m &= m - 1) sum += address[__builtin_ctz(m)];
        return sum;
    }
    default:
        return sum + (uint64_t)r->width * (n * (n - 1) / 2);
    }
}

static void read_access_record(void *user, const struct mg_record *r)
{
    struct reading *x = user;
    struct part *p = x->p;
    bool lanes = r->kind == MG_RECORD_LANES, damaged = lanes && r->n_words != LANE_WORDS;
    p->records++;
    p->lanes += r->n_lanes;
    p->disorder += damaged;
    if (!r->n_lanes || damaged) return;
    struct taken *t = &p->taken[p->n_taken++];
    *t = (struct taken){
        .words = r->words, .cta = r->cta, .site = r->site, .mask = r->mask, .number = (int32_t)r->number};
    if (is_kernel(x, r)) {
        t->key = ((uint64_t)r->launch << 40 ^ r->cta << 8 ^ r->warp) + 1;
        __builtin_prefetch(&p->recent[slot_of(t->key)], 1);
    }
    if (lanes)
        t->n = r->n_lanes;
    else
        p->sum += sum_of(r, r->n_lanes);
    if (x->c->file) write_line(x, r);
    if (p->n_taken == AT_ONCE) check_taken(p);
}

static struct part *new_part(const struct conf *c, uint32_t worker)
{
    struct part *p = calloc(1, sizeof *p);
    char name[4096];
    if (!p || !c->raw || snprintf(name, sizeof name, "%s.%u", c->raw, (unsigned)worker) >= (int)sizeof name) return p;
    if (!(p->raw = fopen(name, "we"))) c->host->say("tool accesses: a file of raw= cannot be written");
    return p;
}

static void accesses_stream(void *conf, const struct mg_stream *s, const uint64_t *segment, uint32_t bytes)
{
    struct conf *c = conf;
    struct reading x = {.c = c, .s = s};
    if (s->worker >= MG_COUNT_OF(c->parts)) return;
    if (!c->parts[s->worker] && !(c->parts[s->worker] = new_part(c, s->worker))) return;
    x.p = c->parts[s->worker];
    x.p->bytes += bytes;
    if (x.p->raw) fwrite(segment, 1, bytes, x.p->raw);
    if (!mg_stream_read(s, segment, bytes, read_access_record, &x)) x.p->disorder++;
    check_taken(x.p);
}

static void accesses_begin(void *conf, const struct mg_tool_host *host)
{
    struct conf *c = conf;
    c->host = host;
    if (c->out && !(c->file = fopen(c->out, "we"))) host->say("tool accesses: the file of out= cannot be written");
}

static void accesses_finalize(void *conf, const struct mg_tool_launch *l, const uint64_t *cells, uint32_t n)
{
    uint64_t sum = 0;
    (void)l;
    for (uint32_t i = 0; i < n; i++) sum += cells[i];
    __atomic_fetch_add(&((struct conf *)conf)->expected, sum, __ATOMIC_RELAXED);
}

static void accesses_end(void *conf)
{
    struct conf *c = conf;
    char text[400];
    struct part all = {0};
    bool failed = false;
    for (unsigned i = 0; i < MG_COUNT_OF(c->parts); i++) {
        struct part *p = c->parts[i];
        if (!p) continue;
        all.records += p->records;
        all.lanes += p->lanes;
        all.bytes += p->bytes;
        all.disorder += p->disorder;
        all.sum += p->sum;
        failed |= p->raw && (ferror(p->raw) | fclose(p->raw));
        p->raw = NULL;
    }
    if (failed) c->host->say("tool accesses: the files of raw= are not whole");
    if (c->file && (ferror(c->file) | fclose(c->file))) c->host->say("tool accesses: the file of out= is not whole");
    c->file = NULL;
    snprintf(
        text, sizeof text,
        "{\"accesses\": %llu, \"received\": %llu, \"records\": %llu, \"bytes\": %llu, \"out_of_order\": %llu, \"address_sum\": %llu}",
        (unsigned long long)c->expected, (unsigned long long)all.lanes, (unsigned long long)all.records,
        (unsigned long long)all.bytes, (unsigned long long)all.disorder, (unsigned long long)all.sum);
    c->host->result("accesses", "stream", text);
}

/* ---- profile ------------------------------------------------------------------------------------------- */

/* What was handed to the reader: each site counts its accesses. */
static void accesses_profile(const void *conf, const struct mg_tool_result *r, struct mg_table *t, struct mg_json *j)
{
    static const struct mg_column columns[] = {{"line", MG_COL_PLACE, NULL},
                                               {"instruction", MG_COL_TEXT, NULL},
                                               {"accesses", MG_COL_COUNT, NULL},
                                               {"kernel", MG_COL_TEXT, NULL}};
    (void)conf;
    mg_table_begin(t, "accesses", "accesses of threads that were handed to the reader");
    mg_table_columns(t, columns, MG_COUNT_OF(columns));
    mg_json_key(j, "sites");
    mg_json_arr(j);
    for (uint32_t k = 0; k < r->n_kernels; k++)
        for (uint32_t i = 0; i < r->kernels[k].n_sites; i++) {
            const struct mg_result_site *s = &r->kernels[k].sites[i];
            uint64_t n = s->n_cells ? r->kernels[k].cells[s->cell] : 0;
            mg_json_obj(j);
            mg_kit_site_json(j, &r->kernels[k], s);
            mg_json_key_u64(j, "accesses", n);
            mg_json_end(j, '}');
            mg_table_row(t);
            mg_table_place(t, s);
            mg_table_text(t, s->op);
            mg_table_u64(t, n);
            mg_table_text(t, r->kernels[k].demangled);
        }
    mg_json_end(j, ']');
    mg_table_sort(t, 2);
}

extern const struct mg_tool mg_tool_accesses;
const struct mg_tool mg_tool_accesses = {
    .name = "accesses",
    .summary = "hand every access to global memory to the host while the kernel runs",
    .opts = accesses_opts,
    .configure = accesses_configure,
    .release = accesses_release,
    .analyze = accesses_analyze,
    .instrument = accesses_instrument,
    .begin = accesses_begin,
    .finalize = accesses_finalize,
    .end = accesses_end,
    .stream = accesses_stream,
    .profile = accesses_profile,
    .flags = MG_TOOL_ACCESSES,
};
