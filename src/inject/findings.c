/* Reads just before or behind an allocation that the device let pass (docs/schedule.md), one entry a place of a
 * kernel: into the profile as tools/bounds/findings. Written when a place is new, so that a killed run
 * keeps it, and with the final numbers when the session ends. */
#include "inject/findings.h"

#include <string.h>

#include "base/json.h"
#include "base/vec.h"
#include "inject/session.h"

struct finding {
    uint64_t kernel, launch;
    char *file;
    struct mg_stray stray;
};

static struct {
    pthread_mutex_t lock;
    MG_VEC(struct finding) list;
} findings = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void write_finding(struct mg_json *j, const struct finding *f)
{
    const struct mg_stray *s = &f->stray;
    mg_json_obj(j);
    mg_json_key_u64(j, "kernel", f->kernel);
    mg_json_key_u64(j, "launch", f->launch);
    mg_json_key_u64(j, "ptx_line", s->ptx_line);
    mg_json_key(j, "file");
    mg_json_str(j, f->file);
    mg_json_key_u64_if(j, "line", s->line, s->line);
    mg_json_key_dim(j, "cta", s->cta);
    mg_json_key_dim(j, "thread", s->thread);
    mg_json_key_str(j, "kind", "read");
    mg_json_key_hex(j, "address", s->address);
    mg_json_key_u64(j, "bytes", s->bytes);
    mg_json_key(j, "allocation");
    mg_json_obj(j);
    mg_json_key_hex(j, "address", s->allocation);
    mg_json_key_u64(j, "bytes", s->allocation_bytes);
    mg_json_end(j, '}');
    mg_json_key_u64(j, "times", s->times);
    mg_json_end(j, '}');
}

void mg_findings_tell(const char *tool, uint32_t n, void (*write)(struct mg_json *j, uint32_t i))
{
    struct mg_buf b = MG_BUF_INIT;
    struct mg_json j;
    mg_json_init(&j, &b, 0);
    mg_json_arr(&j);
    for (uint32_t i = 0; i < n; i++) write(&j, i);
    mg_json_end(&j, ']');
    mg_store_tool_json(mg_session.store, tool, "findings", b.at);
    mg_buf_release(&b);
}

static void write_one(struct mg_json *j, uint32_t i)
{
    write_finding(j, &findings.list.at[i]);
}
static void write_all(void)
{
    mg_findings_tell("bounds", findings.list.n, write_one);
} /* under the lock, while the store is open */

/* True: the place is new. */
static bool add_finding(uint64_t kernel, uint64_t launch, const struct mg_stray *s)
{
    for (uint32_t i = 0; i < findings.list.n; i++) {
        struct finding *f = &findings.list.at[i];
        if (f->kernel == kernel && f->stray.ptx_line == s->ptx_line) {
            f->stray.times += s->times;
            return false;
        }
    }
    *mg_vec_push(&findings.list) = (struct finding){kernel, launch, s->file ? strdup(s->file) : NULL, *s};
    return true;
}

void mg_findings_add(uint64_t kernel, uint64_t launch, const struct mg_launch_done *d)
{
    if (!d) return;
    mg_unwritten_write(false);
    mg_checked_add(kernel, launch, d);
    if (!d->n_strays) return;
    bool changed = false;
    pthread_mutex_lock(&findings.lock);
    for (uint32_t i = 0; i < d->n_strays; i++) changed |= add_finding(kernel, launch, &d->strays[i]);
    if (changed) write_all();
    pthread_mutex_unlock(&findings.lock);
}

void mg_findings_write(void)
{
    pthread_mutex_lock(&findings.lock);
    if (findings.list.n) write_all();
    for (uint32_t i = 0; i < findings.list.n; i++) free(findings.list.at[i].file);
    mg_vec_release(&findings.list);
    pthread_mutex_unlock(&findings.lock);
    mg_checked_write();
    mg_unwritten_write(true);
}
