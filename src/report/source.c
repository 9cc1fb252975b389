/* Lines of source files and of modules' PTX, for the text report. A file that cannot be read, or is
 * too large to be a source file, gives no lines: the report then shows the place alone. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/vec.h"
#include "report/priv.h"

#define MAX_SOURCE_BYTES ((off_t)64 << 20)

struct file {
    char *name;
    char *text;
    size_t bytes;
    bool changed; /* since the run began */
    bool newer;   /* than the program or library that has its kernels */
};
struct mg_sources {
    const struct mg_recording *p;
    MG_VEC(struct file) files;
};

struct mg_sources *mg_sources_new(const struct mg_recording *p)
{
    struct mg_sources *s = mg_xcalloc(1, sizeof *s);
    s->p = p;
    return s;
}

void mg_sources_free(struct mg_sources *s)
{
    for (uint32_t i = 0; i < s->files.n; i++) {
        free(s->files.at[i].name);
        free(s->files.at[i].text);
    }
    mg_vec_release(&s->files);
    free(s);
}

static const struct file *find(const struct mg_sources *s, const char *name)
{
    for (uint32_t i = 0; i < s->files.n; i++)
        if (!strcmp(s->files.at[i].name, name)) return &s->files.at[i];
    return NULL;
}

static struct file *add_file(struct mg_sources *s, const char *name, char *text, size_t bytes)
{
    struct file *f = mg_vec_push(&s->files);
    *f = (struct file){.name = mg_xstrdup(name), .text = text, .bytes = bytes};
    return f;
}

static const char *line_of(const struct file *f, uint32_t line, size_t *bytes)
{
    if (!f->text || !line) return NULL;
    const char *at = f->text, *end = at + f->bytes;
    while (--line) {
        const char *nl = memchr(at, '\n', (size_t)(end - at));
        if (!nl) return NULL;
        at = nl + 1;
    }
    const char *nl = memchr(at, '\n', (size_t)(end - at));
    size_t n = (size_t)((nl ? nl : end) - at);
    while (n && (*at == ' ' || *at == '\t')) at++, n--;
    while (n && (at[n - 1] == '\r' || at[n - 1] == ' ')) n--;
    *bytes = n;
    return n ? at : NULL;
}

static bool has_file(const struct mg_pkernel *k, const char *name)
{
    for (uint32_t b = 0; b < k->n_blocks; b++)
        if (k->blocks[b].file && !strcmp(k->blocks[b].file, name)) return true;
    return false;
}

/* When the last program or library was written that has kernels of the file, or any kernels, if the file's lines are
 * inlined ones alone; 0: not known of one. */
static uint64_t built_ns(const struct mg_recording *p, const char *name)
{
    uint64_t last = 0;
    bool any = false, known = true;
    for (uint32_t i = 0; i < p->n_kernels && !any; i++) any = has_file(&p->kernels[i], name);
    for (uint32_t i = 0; i < p->n_kernels; i++) {
        if (any && !has_file(&p->kernels[i], name)) continue;
        known &= p->kernels[i].built_unix_ns != 0;
        last = MG_MAX(last, p->kernels[i].built_unix_ns);
    }
    return known ? last : 0;
}

static const struct file *read_source(struct mg_sources *s, const char *name)
{
    const struct file *f = find(s, name);
    struct stat st;
    char *text = NULL;
    size_t n = 0;
    if (f) return f;
    bool readable = !stat(name, &st) && S_ISREG(st.st_mode) && st.st_size <= MAX_SOURCE_BYTES;
    if (readable && mg_io_read(name, &text, &n, NULL)) text = NULL;
    struct file *new = add_file(s, name, text, n);
    uint64_t began = s->p->n_processes ? s->p->processes[0].start_unix_ns : 0, built = built_ns(s->p, name);
    uint64_t written = readable ? mg_io_written_ns(&st) : 0;
    new->changed = began > 0 && written > began;
    new->newer = built > 0 && written > built;
    return new;
}

const char *mg_sources_doubt(struct mg_sources *s, const char *file)
{
    const struct file *f = read_source(s, file);
    return !f->text       ? "cannot be read here"
           : f->changed   ? "was changed since the run: its lines may not be those that ran"
           : f->newer     ? "was changed since the program was built: its lines may not be those that ran"
           : *file != '/' ? "is a name without a folder: the file of that name here may be another one"
                          : NULL;
}

const char *mg_sources_line(struct mg_sources *s, const char *file, uint32_t line, size_t *bytes)
{
    return file ? line_of(read_source(s, file), line, bytes) : NULL;
}

const char *mg_sources_text(struct mg_sources *s, const char *file, size_t *bytes)
{
    const struct file *f = read_source(s, file);
    *bytes = f->bytes;
    return f->text;
}

const char *mg_sources_ptx(struct mg_sources *s, const char *module, uint32_t line, size_t *bytes)
{
    const struct file *f = find(s, module);
    if (!*module) return NULL;
    if (!f) {
        size_t n = 0;
        char *text = mg_recording_module(s->p->dir, module, &n);
        f = add_file(s, module, text, n);
    }
    return line_of(f, line, bytes);
}
