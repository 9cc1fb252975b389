#include "export/messages.h"

#include <string.h>

#include "base/hash.h"

static struct mg_message_channel *channel_of(struct mg_messages *m, const struct mg_span *p)
{
    uint64_t from = (uint32_t)(p->received ? p->peer : p->rank), to = (uint32_t)(p->received ? p->rank : p->peer);
    struct mg_message_channel c = {
        .from_to = from << 32 | to, .communicator = p->communicator, .tag = (uint64_t)p->tag};
    uint64_t at, key = mg_hash64(&c, offsetof(struct mg_message_channel, n), 5) | 1;
    for (; mg_map_get(&m->channel_of, key, &at); key += 2)
        if (!memcmp(&m->channels.at[at], &c, offsetof(struct mg_message_channel, n))) return &m->channels.at[at];
    mg_map_set(&m->channel_of, key, m->channels.n);
    *mg_vec_push(&m->channels) = c;
    return &m->channels.at[m->channels.n - 1];
}

static bool has_ends(const struct mg_span *p)
{
    return p->rank >= 0 && p->peer >= 0;
}

enum mg_err mg_messages_init(struct mg_messages *m, const char *dir, struct mg_diag *d)
{
    struct mg_span_query q = {.size = sizeof q, .kinds = 1u << MG_SPAN_MESSAGE};
    struct mg_spans *s;
    enum mg_err err = mg_spans_open(dir, &q, &s, d);
    if (err) return err;
    bool ranks = false;
    for (uint32_t i = 0; i < mg_spans_n_processes(s); i++) ranks = ranks || mg_spans_process(s, i).rank >= 0;
    for (const struct mg_span *p; ranks && (p = mg_spans_next(s));)
        if (has_ends(p)) channel_of(m, p)->n[p->received]++;
    mg_spans_close(s);
    for (uint32_t i = 0; i < m->channels.n; i++) {
        const uint64_t *n = m->channels.at[i].n;
        m->arrows += MG_MIN(n[0], n[1]);
        m->alone += MG_MAX(n[0], n[1]) - MG_MIN(n[0], n[1]);
    }
    *mg_vec_push(&m->ends) = (struct mg_message_end){0};
    return MG_ERR_OK;
}

void mg_messages_release(struct mg_messages *m)
{
    mg_map_release(&m->channel_of);
    mg_map_release(&m->of_call);
    mg_vec_release(&m->channels);
    mg_vec_release(&m->ends);
    mg_vec_release(&m->taken);
}

static uint64_t key_of(uint32_t process, uint64_t correlation)
{
    return (uint64_t)(process + 1) << 44 | (correlation & ((1ull << 44) - 1));
}

static void attach(struct mg_messages *m, uint32_t process, uint64_t correlation, struct mg_message_end e)
{
    uint64_t first, key = key_of(process, correlation);
    uint32_t ix = m->ends.at[0].next;
    if (!correlation) return;
    if (ix)
        m->ends.at[0].next = m->ends.at[ix].next;
    else
        ix = (uint32_t)(mg_vec_push(&m->ends) - m->ends.at);
    if (mg_map_get(&m->of_call, key, &first)) e.next = (uint32_t)first;
    m->ends.at[ix] = e;
    mg_map_set(&m->of_call, key, ix);
}

uint64_t mg_messages_arrow(struct mg_messages *m, const struct mg_span *p)
{
    if (!has_ends(p)) return 0;
    struct mg_message_channel *c = channel_of(m, p);
    uint64_t n = c->met[p->received]++;
    return n < MG_MIN(c->n[0], c->n[1]) ? ((uint64_t)(c - m->channels.at) << 32 | n) + 1 : 0;
}

void mg_messages_add(struct mg_messages *m, uint32_t process, const struct mg_span *p)
{
    struct mg_message_end e = {
        .received = p->received,
        .completed = p->outer != 0,
        .peer = p->peer,
        .tag = p->tag,
        .bytes = p->bytes,
        .communicator = p->communicator,
        .number = ++m->numbers,
        .arrow = mg_messages_arrow(m, p),
    };
    e.posts = true;
    e.completes = p->correlation == p->outer;
    attach(m, process, p->correlation, e);
    if (e.completes) return;
    e.posts = false;
    e.completes = true;
    attach(m, process, p->outer, e);
}

uint32_t mg_messages_take(struct mg_messages *m, uint32_t process, uint64_t correlation)
{
    uint64_t at, key = key_of(process, correlation);
    m->taken.n = 0;
    if (!m->of_call.n || !mg_map_get(&m->of_call, key, &at)) return 0;
    mg_map_del(&m->of_call, key);
    for (uint32_t ix = (uint32_t)at, next; ix; ix = next) {
        *mg_vec_push(&m->taken) = m->ends.at[ix];
        next = m->ends.at[ix].next;
        m->ends.at[ix].next = m->ends.at[0].next;
        m->ends.at[0].next = ix;
    }
    return m->taken.n;
}
