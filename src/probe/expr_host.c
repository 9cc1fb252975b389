/* One-liners and probes in C in the measured process: records that they emit go to a file of the profile's folder while
 * kernels run, events of a kernel that runs to the report. */
#include <stdlib.h>
#include <unistd.h>

#include "probe/expr_place.h"
#include "record/channel.h"
#include "record/event.h"
#include "tool/host.h"

void mg_expr_host_begin(void *conf, const struct mg_tool_host *host)
{
    struct mg_expr_conf *c = conf;
    c->host = host;
    c->global = host->timeline;
}

static void open_file(struct mg_expr_conf *c) /* under the lock, like what follows */
{
    struct mg_buf path = MG_BUF_INIT, name = MG_BUF_INIT;
    mg_buf_printf(&name, "records.%d.csv", (int)getpid());
    if (c->host->folder) {
        mg_buf_printf(&path, "%s/%s", c->host->folder, name.at);
        c->file = fopen(path.at, "we");
    }
    if (!c->file) {
        c->cannot_write = true;
        c->host->say("records of emit cannot be written to the profile's folder");
        mg_buf_release(&name);
    } else {
        fputs("from,launch,kernel,cta,warp,lane,number,values\n", c->file);
        c->file_name = mg_buf_take(&name);
    }
    mg_buf_release(&path);
}

struct writing {
    struct mg_expr_conf *c;
    const struct mg_stream *s;
};

static void write_record(void *user, const struct mg_record *r)
{
    struct mg_expr_conf *c = ((const struct writing *)user)->c;
    const struct mg_stream *s = ((const struct writing *)user)->s;
    const struct mg_stream_launch *l = s->launch(s, r->launch);
    const uint64_t *words = r->words;
    if (r->kind != MG_RECORD_LANES || r->site >= c->e->n_emits || !l) return;
    for (unsigned lane = 0; lane < 32; lane++) {
        if (!(r->mask >> lane & 1)) continue;
        fprintf(c->file, "%s,%llu,%s,%llu,%u,%u,%u", c->e->emits[r->site], (unsigned long long)l->id, l->kernel,
                (unsigned long long)r->cta, (unsigned)r->warp, lane, (unsigned)r->number);
        for (uint32_t i = 0; i < r->n_words; i++) fprintf(c->file, ",%lld", (long long)*words++);
        fputc('\n', c->file);
        c->received++;
    }
}

void mg_expr_host_stream(void *conf, const struct mg_stream *s, const uint64_t *segment, uint32_t bytes)
{
    struct mg_expr_conf *c = conf;
    pthread_mutex_lock(&c->lock);
    if (!c->file && !c->cannot_write) open_file(c);
    if (c->file) mg_stream_read(s, segment, bytes, write_record, &(struct writing){c, s});
    pthread_mutex_unlock(&c->lock);
}

void mg_expr_host_read(void *conf, const struct mg_tool_launch *l, const struct mg_tool_list *list)
{
    struct mg_expr_conf *c = conf;
    char *running = mg_events_read(l, list);
    if (!running) return;
    __atomic_store_n(&c->told, true, __ATOMIC_RELAXED);
    c->host->result("expr", "running", running);
    free(running);
}

void mg_expr_host_end(void *conf)
{
    struct mg_expr_conf *c = conf;
    struct mg_buf b = MG_BUF_INIT;
    struct mg_json j;
    if (c->told) c->host->result("expr", "running", "null");
    pthread_mutex_lock(&c->lock);
    if (c->file) {
        bool ok = !ferror(c->file) & !fclose(c->file);
        c->file = NULL;
        mg_json_init(&j, &b, 0);
        mg_json_obj(&j);
        mg_json_key_str(&j, "file", c->file_name);
        mg_json_key_u64(&j, "received", c->received);
        mg_json_end(&j, '}');
        c->host->result("expr", "emitted", b.at);
        if (!ok) c->host->say("records of emit could not all be written");
        c->cannot_write = true; /* what comes now is too late */
    }
    pthread_mutex_unlock(&c->lock);
    mg_buf_release(&b);
}
