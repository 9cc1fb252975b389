/* What --check found, one entry for each pair of instructions of a kernel (docs/checks.md): into the profile
 * as tools/check/findings. Written when something is new, so that a killed run keeps it, and with the
 * final numbers when the session ends; an empty list says that the check ran. */
#include "inject/findings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/vec.h"
#include "device/defined.h"
#include "inject/backend.h"
#include "inject/session.h"

enum { MOST_ENTRIES = 1024 };
struct entry {
    uint64_t kernel, launch, address;
    const char *kind;
    struct mg_finding f;
    char *file, *other_file;
    bool stopped;
};

struct unseen {
    uint64_t kernel, launches;
    struct mg_unseen what;
}; /* not looked at for undefined values */

static struct {
    pthread_mutex_t lock;
    MG_VEC(struct entry) list;
    MG_VEC(struct unseen) unseen;
} checked = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void write_at(struct mg_json *j, const struct mg_finding_at *at, const char *file)
{
    mg_json_key_str(j, "access", at->access);
    mg_json_key_u64(j, "ptx_line", at->ptx_line);
    mg_json_key_str(j, "file", file);
    mg_json_key_u64_if(j, "line", at->line, at->line);
    mg_json_key_dim(j, "thread", at->thread);
}

static void write_entry(struct mg_json *j, const struct entry *e)
{
    const struct mg_finding *f = &e->f;
    bool memory = f->use ? f->address != 0 || f->other.ptx_line : f->bytes != 0;
    mg_json_obj(j);
    mg_json_key_u64(j, "kernel", e->kernel);
    mg_json_key_u64(j, "launch", e->launch);
    mg_json_key_str(j, "kind", e->kind);
    if (f->use) {
        mg_json_key_str(j, "use", f->use);
        mg_json_key_str(j, "space", f->space);
    }
    write_at(j, &f->at, e->file);
    mg_json_key_dim(j, "cta", f->cta);
    mg_json_key(j, "other");
    if (f->other.ptx_line) {
        mg_json_obj(j);
        write_at(j, &f->other, e->other_file);
        mg_json_key_dim(j, "cta", f->other_cta);
        mg_json_end(j, '}');
    } else {
        mg_json_null(j);
    }
    if (memory)
        mg_json_key_hex(j, "address", e->address);
    else
        mg_json_key_str(j, "address", NULL);
    mg_json_key_u64(j, "bytes", f->bytes);
    mg_json_key(j, "allocation");
    if (f->allocation[0] && (memory || f->use)) {
        mg_json_obj(j);
        mg_json_key_str(j, "name", f->allocation);
        mg_json_key_hex(j, "address", f->allocation_address);
        mg_json_key_u64(j, "bytes", f->allocation_bytes);
        mg_json_end(j, '}');
    } else {
        mg_json_null(j);
    }
    mg_json_key_u64(j, "times", f->times);
    mg_json_key_bool(j, "stopped", e->stopped);
    if (f->what[0]) mg_json_key_str(j, "what", f->what);
    mg_json_key_str(j, "text", f->text);
    mg_json_end(j, '}');
}

/* A store of undefined values counts once they were copied to the host. */
static bool is_told(const struct entry *e)
{
    return !e->f.copied || mg_defined_copied(e->f.copied);
}

static void write_one(struct mg_json *j, uint32_t i)
{
    uint32_t k = 0;
    for (;; k++)
        if (is_told(&checked.list.at[k]) && !i--) break;
    write_entry(j, &checked.list.at[k]);
}

static void write_unseen(void)
{
    struct mg_buf b = MG_BUF_INIT;
    struct mg_json j;
    if (!checked.unseen.n) return;
    mg_json_init(&j, &b, 0);
    mg_json_arr(&j);
    for (uint32_t i = 0; i < checked.unseen.n; i++) {
        const struct unseen *u = &checked.unseen.at[i];
        mg_json_obj(&j);
        mg_json_key_u64(&j, "kernel", u->kernel);
        mg_json_key_str(&j, "name", u->what.name);
        mg_json_key_u64(&j, "instructions", u->what.instructions);
        mg_json_key_u64(&j, "launches", u->launches);
        mg_json_end(&j, '}');
    }
    mg_json_end(&j, ']');
    mg_store_tool_json(mg_session.store, "check", "not_looked_at", b.at);
    mg_buf_release(&b);
}

/* True: it is new. */
static bool add_unseen(uint64_t kernel, const struct mg_unseen *what)
{
    for (uint32_t i = 0; i < checked.unseen.n; i++) {
        struct unseen *u = &checked.unseen.at[i];
        if (u->kernel == kernel && !strcmp(u->what.name, what->name)) {
            u->launches++;
            u->what.instructions = MG_MAX(u->what.instructions, what->instructions);
            return false;
        }
    }
    *mg_vec_push(&checked.unseen) = (struct unseen){kernel, 1, *what};
    return true;
}

static void write_all(void) /* under the lock, while the store is open */
{
    write_unseen();
    uint32_t n = 0;
    for (uint32_t i = 0; i < checked.list.n; i++) n += is_told(&checked.list.at[i]);
    mg_findings_tell("check", n, write_one);
}

static bool same(const struct entry *e, uint64_t kernel, const char *kind, const struct mg_finding *f)
{
    const struct mg_finding *o = &e->f;
    if (e->kernel != kernel || strcmp(e->kind, kind) || strcmp(o->what, f->what)) return false;
    return (o->at.ptx_line == f->at.ptx_line && o->other.ptx_line == f->other.ptx_line) ||
           (o->at.ptx_line == f->other.ptx_line && o->other.ptx_line == f->at.ptx_line);
}

/* True: it is new. */
static bool add_checked(uint64_t kernel, uint64_t launch, const char *kind, const struct mg_finding *f,
                        uint64_t address, bool stopped)
{
    for (uint32_t i = 0; i < checked.list.n; i++) {
        struct entry *e = &checked.list.at[i];
        if (same(e, kernel, kind, f)) {
            e->f.times += f->times;
            return false;
        }
    }
    if (checked.list.n == MOST_ENTRIES) return false;
    *mg_vec_push(&checked.list) = (struct entry){kernel,
                                                 launch,
                                                 address,
                                                 kind,
                                                 *f,
                                                 f->at.file ? strdup(f->at.file) : NULL,
                                                 f->other.file ? strdup(f->other.file) : NULL,
                                                 stopped};
    return true;
}

/* What stopped the launch is a finding as well. */
static bool add_fault(uint64_t kernel, uint64_t launch, const struct mg_fault *x)
{
    const char *kind = x->kind == MG_FAULT_ADDRESS      ? "bounds"
                       : x->kind == MG_FAULT_MISALIGNED ? "misaligned"
                       : x->kind == MG_FAULT_DEADLOCK   ? "deadlock"
                                                        : NULL;
    struct mg_finding f = {.times = 1,
                           .bytes = x->kind == MG_FAULT_DEADLOCK ? 0 : x->bytes,
                           .at = {.ptx_line = x->ptx_line,
                                  .line = x->line,
                                  .file = x->file,
                                  .access = x->kind == MG_FAULT_DEADLOCK ? "barrier"
                                            : x->write                   ? "write"
                                                                         : "read"}};
    if (!kind) return false;
    memcpy(f.cta, x->cta, sizeof f.cta);
    memcpy(f.at.thread, x->thread, sizeof f.at.thread);
    snprintf(f.text, sizeof f.text, "%s", x->text);
    return add_checked(kernel, launch, kind, &f, x->address, true);
}

/* The software devices check; a GPU does not. */
static bool runs(void)
{
    return mg_session.config.check && !mg_session_can(MG_BACKEND_HARDWARE);
}

void mg_checked_add(uint64_t kernel, uint64_t launch, const struct mg_launch_done *d)
{
    bool changed = false;
    if (!runs() || (!d->n_findings && !d->fault.kind && !d->n_unseen)) return;
    pthread_mutex_lock(&checked.lock);
    for (uint32_t i = 0; i < d->n_findings; i++)
        changed |= add_checked(kernel, launch, mg_finding_kind_text(d->findings[i].kind), &d->findings[i],
                               d->findings[i].address, false);
    for (uint32_t i = 0; i < d->n_unseen; i++) changed |= add_unseen(kernel, &d->unseen[i]);
    if (d->fault.kind) changed |= add_fault(kernel, launch, &d->fault);
    if (changed) write_all();
    pthread_mutex_unlock(&checked.lock);
}

void mg_checked_write(void)
{
    if (!runs()) return;
    pthread_mutex_lock(&checked.lock);
    write_all();
    for (uint32_t i = 0; i < checked.list.n; i++) {
        free(checked.list.at[i].file);
        free(checked.list.at[i].other_file);
    }
    mg_vec_release(&checked.list);
    mg_vec_release(&checked.unseen);
    pthread_mutex_unlock(&checked.lock);
}
