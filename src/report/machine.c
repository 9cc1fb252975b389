/* Machine code of kernels for tools that ask for it: the program's own for the device, out of its executable, else what
 * ptxas makes of the PTX that the profile keeps; both through a disassembler. nvdisasm says which PTX line an
 * instruction comes from, where the code has line tables; cuobjdump, taken where nvdisasm is not there, does not.
 *
 * Native code without line tables gets the lines of freshly assembled code where the two are the same, instruction by
 * instruction. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/child.h"
#include "base/hash.h"
#include "base/io.h"
#include "image/image.h"
#include "image/sass.h"
#include "report/priv.h"

#define TOOLS "/usr/local/cuda/bin" /* after PATH */

struct opened {
    struct opened *next;
    const char *path;
    struct mg_image *image;
};
struct assembled {
    struct assembled *next;
    const char *module;
    char *code;
    size_t bytes;
}; /* code NULL: ptxas made nothing */
struct told {
    struct told *next;
    char key[17];
    struct mg_sass *text;
}; /* by hash of the code */
struct mg_machines {
    const struct mg_recording *p;
    struct mg_arena arena;
    struct opened *images;
    struct assembled *assembled;
    struct told *told;
    char disassembler[PATH_MAX], ptxas[PATH_MAX];
    bool looked, lines, has_disassembler, has_ptxas; /* what is installed */
};

struct mg_machines *mg_machines_new(const struct mg_recording *p)
{
    struct mg_machines *m = mg_xcalloc(1, sizeof *m);
    m->p = p;
    return m;
}

static void find_disassembler(struct mg_machines *m)
{
    if (m->looked) return;
    m->looked = true;
    m->lines = mg_child_find("nvdisasm", TOOLS, m->disassembler, sizeof m->disassembler);
    m->has_disassembler = m->lines || mg_child_find("cuobjdump", TOOLS, m->disassembler, sizeof m->disassembler);
    m->has_ptxas = mg_child_find("ptxas", TOOLS, m->ptxas, sizeof m->ptxas);
}

void mg_machines_free(struct mg_machines *m)
{
    if (!m) return;
    for (struct opened *o = m->images; o; o = o->next)
        if (o->image) mg_image_free(o->image);
    for (struct assembled *a = m->assembled; a; a = a->next) free(a->code);
    for (struct told *t = m->told; t; t = t->next) mg_sass_free(t->text);
    mg_arena_release(&m->arena);
    free(m);
}

/* ---- the code ------------------------------------------------------------------------------------------------ */

static const struct mg_image *open_image(struct mg_machines *m, const char *path)
{
    struct mg_diag d = MG_DIAG_INIT;
    char *data;
    size_t bytes;
    for (struct opened *o = m->images; o; o = o->next)
        if (!strcmp(o->path, path)) return o->image;
    struct opened *o = mg_arena_array(&m->arena, struct opened, 1);
    *o = (struct opened){m->images, mg_arena_strndup(&m->arena, path, strlen(path)), NULL};
    m->images = o;
    if (!mg_io_read(path, &data, &bytes, &d)) {
        if (mg_image_open_bytes(data, bytes, path, &o->image, &d)) o->image = NULL;
        free(data);
    }
    mg_diag_release(&d);
    return o->image;
}

struct wanted {
    const char *kernel;
    bool found;
};
static void note_kernel(void *user, const char *name)
{
    struct wanted *w = user;
    w->found |= !strcmp(name, w->kernel);
}

static bool holds(const struct mg_image_entry *e, const char *kernel)
{
    struct wanted w = {kernel, false};
    if (e->kind == MG_ENTRY_CUBIN) mg_cubin_kernels(e->data, e->bytes, note_kernel, &w);
    return w.found;
}

/* Is the PTX with this identity in the same fatbin? Kernels of one name may be in several. */
static bool is_of_module(const struct mg_image *im, uint32_t group, const char *module)
{
    bool any = false;
    for (uint32_t i = 0; i < im->n_entries; i++) {
        const struct mg_image_entry *e = &im->entries[i];
        uint8_t sum[32];
        char id[33];
        if (e->kind != MG_ENTRY_PTX || e->group != group) continue;
        any = true;
        mg_sha256_of(e->data, strlen(e->data), sum);
        mg_sha256_hex(sum, 16, id);
        if (!strcmp(id, module)) return true;
    }
    return !any && !*module;
}

/* Machine code runs on devices of its own major version, from its own minor on. */
static const struct mg_image_entry *find_native(struct mg_machines *m, const struct mg_result_kernel *k)
{
    const struct mg_image_entry *best = NULL;
    for (uint32_t i = 0; i < m->p->n_processes; i++) {
        const struct mg_pprocess *q = &m->p->processes[i];
        const struct mg_image *im = q->exe ? open_image(m, q->exe) : NULL;
        for (uint32_t e = 0; im && e < im->n_entries; e++) {
            const struct mg_image_entry *at = &im->entries[e];
            if (at->kind != MG_ENTRY_CUBIN || at->sm / 10 != q->sm / 10 || at->sm > q->sm ||
                (best && best->sm >= at->sm))
                continue;
            if ((!*k->module || is_of_module(im, at->group, k->module)) && holds(at, k->name)) best = at;
        }
    }
    return best;
}

struct of_kernel {
    const char *name;
    uint32_t registers;
};
static void note_registers(void *user, const char *name, uint32_t registers)
{
    struct of_kernel *k = user;
    if (!strcmp(name, k->name)) k->registers = registers;
}

/* ---- through the programs ---------------------------------------------------------------------------------------- */

/* A folder of two files for a program that we run: what it reads, what it leaves. */
struct scratch {
    char dir[32], in[64], out[64];
};

static bool scratch_make(struct scratch *s, const char *in, const char *out)
{
    snprintf(s->dir, sizeof s->dir, "/tmp/margay-code-XXXXXX");
    if (!mkdtemp(s->dir)) return false;
    snprintf(s->in, sizeof s->in, "%s/%s", s->dir, in);
    snprintf(s->out, sizeof s->out, "%s/%s", s->dir, out);
    return true;
}

static void scratch_remove(const struct scratch *s)
{
    unlink(s->in);
    unlink(s->out);
    rmdir(s->dir);
}

static const struct mg_sass *disassemble(struct mg_machines *m, const void *code, size_t bytes)
{
    struct scratch f;
    char key[17], *text;
    size_t n;
    snprintf(key, sizeof key, "%016llx", (unsigned long long)mg_hash64(code, bytes, 0));
    for (struct told *t = m->told; t; t = t->next)
        if (!strcmp(t->key, key)) return t->text;
    struct told *t = mg_arena_array(&m->arena, struct told, 1);
    *t = (struct told){.next = m->told};
    memcpy(t->key, key, sizeof key);
    m->told = t;
    if (!scratch_make(&f, "code.cubin", "code.sass")) return NULL;
    char *with_lines[] = {m->disassembler, "-gp", "-c", f.in, NULL},
         *without[] = {m->disassembler, "-sass", f.in, NULL};
    if (!mg_io_write(f.in, code, bytes, NULL) && mg_child_run(m->lines ? with_lines : without, f.out) &&
        !mg_io_read(f.out, &text, &n, NULL)) {
        t->text = mg_sass_parse(text, n);
        free(text);
    }
    scratch_remove(&f);
    return t->text;
}

static char *run_ptxas(struct mg_machines *m, const struct mg_result_kernel *k, uint32_t sm, size_t *bytes)
{
    struct scratch f;
    char arch[32], *code = NULL;
    size_t n;
    char *ptx = m->has_ptxas && *k->module ? mg_recording_module(m->p->dir, k->module, &n) : NULL;
    if (!ptx || !scratch_make(&f, "code.ptx", "code.cubin")) {
        free(ptx);
        return NULL;
    }
    const char *target = strstr(ptx, ".target sm_");
    size_t digits = target ? strspn(target + 11, "0123456789") : 0;
    char suffix = digits ? target[11 + digits] : 0; /* sm_90a stays so */
    snprintf(arch, sizeof arch, "-arch=sm_%u%s", sm, suffix == 'a' ? "a" : suffix == 'f' ? "f" : "");
    char *argv[] = {m->ptxas, arch, "-lineinfo", "-o", f.out, f.in, NULL};
    if (mg_io_write(f.in, ptx, n, NULL) || !mg_child_run(argv, "/dev/null") || mg_io_read(f.out, &code, bytes, NULL))
        code = NULL;
    scratch_remove(&f);
    free(ptx);
    return code;
}

/* What ptxas makes of the module's PTX; NULL: nothing. */
static const char *assemble(struct mg_machines *m, const struct mg_result_kernel *k, uint32_t sm, size_t *bytes)
{
    struct assembled *a = m->assembled;
    while (a && strcmp(a->module, k->module)) a = a->next;
    if (!a) {
        a = mg_arena_array(&m->arena, struct assembled, 1);
        *a = (struct assembled){.next = m->assembled, .module = k->module};
        a->code = run_ptxas(m, k, sm, &a->bytes);
        m->assembled = a;
    }
    *bytes = a->bytes;
    return a->code;
}

static bool has_lines(const struct mg_sass *s, const char *kernel)
{
    const struct mg_sass_func *f = s ? mg_sass_find(s, kernel) : NULL;
    for (uint32_t i = 0; f && i < f->n_insts; i++)
        if (f->insts[i].line) return true;
    return false;
}

static bool same_code(const struct mg_sass_func *a, const struct mg_sass_func *b)
{
    if (!a || !b || a->n_insts != b->n_insts) return false;
    for (uint32_t i = 0; i < a->n_insts; i++)
        if (a->insts[i].addr != b->insts[i].addr || a->insts[i].guarded != b->insts[i].guarded ||
            strcmp(a->insts[i].op, b->insts[i].op))
            return false;
    return true;
}

struct mg_result_machine mg_machine_of(void *user, const struct mg_result_kernel *k)
{
    struct mg_machines *m = user;
    struct mg_result_machine r = {0};
    const struct mg_sass *again = NULL;
    struct of_kernel of = {k->name, 0};
    uint32_t sm = m->p->n_processes ? m->p->processes[0].sm : 0;
    find_disassembler(m);
    if (!m->has_disassembler) {
        r.why = "no disassembler: neither nvdisasm nor cuobjdump is in PATH or " TOOLS;
        return r;
    }
    const struct mg_image_entry *native = find_native(m, k);
    if (native) {
        r.text = disassemble(m, native->data, native->bytes);
        r.native = true;
        mg_cubin_registers(native->data, native->bytes, note_registers, &of);
    }
    if (!r.text || (m->lines && *k->module && !has_lines(r.text, k->name))) {
        size_t bytes;
        const char *code = assemble(m, k, sm, &bytes);
        again = code ? disassemble(m, code, bytes) : NULL;
        if (again && (!r.text || same_code(mg_sass_find(r.text, k->name), mg_sass_find(again, k->name))))
            r.text = again;
        if (again && !native) mg_cubin_registers(code, bytes, note_registers, &of);
    }
    r.registers = of.registers;
    if (r.text && !mg_sass_find(r.text, k->name)) r.text = NULL;
    if (!r.text)
        r.why = native         ? "the disassembler does not know its machine code"
                : m->has_ptxas ? "no machine code for this device, and ptxas takes none of its PTX"
                               : "no machine code for this device, and no ptxas to make it";
    return r;
}
