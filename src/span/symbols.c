#include "span/symbols.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/demangle.h"
#include "base/hash.h"
#include "base/io.h"

/* The interface of libdw, as far as it is called. */
struct Dwfl;
struct Dwfl_Module;
struct Dwfl_Line;
struct Dwfl_Callbacks {
    void *find_elf, *find_debuginfo, *section_address;
    char **debuginfo_path;
};
#define DWFL_FUNCTIONS(F)                                                                                              \
    F(struct Dwfl *, dwfl_begin, (const struct Dwfl_Callbacks *))                                                      \
    F(void, dwfl_end, (struct Dwfl *))                                                                                 \
    F(void, dwfl_report_begin, (struct Dwfl *))                                                                        \
    F(int, dwfl_report_end, (struct Dwfl *, void *, void *))                                                           \
    F(struct Dwfl_Module *, dwfl_report_elf, (struct Dwfl *, const char *, const char *, int, uint64_t, bool))         \
    F(int, dwfl_module_build_id, (struct Dwfl_Module *, const unsigned char **, uint64_t *))                           \
    F(const char *, dwfl_module_addrname, (struct Dwfl_Module *, uint64_t))                                            \
    F(struct Dwfl_Line *, dwfl_module_getsrc, (struct Dwfl_Module *, uint64_t))                                        \
    F(const char *, dwfl_lineinfo, (struct Dwfl_Line *, uint64_t *, int *, int *, uint64_t *, uint64_t *))
static struct {
#define F(result, name, arguments) result(*name) arguments;
    DWFL_FUNCTIONS(F)
#undef F
} dwfl;
static struct Dwfl_Callbacks callbacks;

struct mg_symbol_file {
    char *path, *build_id;
    uint64_t then_unix_ns;
    bool tried;
    struct Dwfl *dwfl;
    struct Dwfl_Module *module;
};

bool mg_symbols_has_library(struct mg_symbols *s)
{
    const struct {
        const char *name;
        void *at;
    } functions[] = {
#define F(result, name, arguments) {#name, &dwfl.name},
        DWFL_FUNCTIONS(F)
#undef F
    };
    if (s->tried) return s->library;
    s->tried = true;
    void *lib = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; lib && i < MG_COUNT_OF(functions); i++) {
        void *f = dlsym(lib, functions[i].name);
        memcpy(functions[i].at, &f, sizeof f);
        if (!f) lib = NULL; /* it stays loaded */
    }
    if (lib) {
        callbacks.find_debuginfo = dlsym(lib, "dwfl_standard_find_debuginfo");
        callbacks.section_address = dlsym(lib, "dwfl_offline_section_address");
    }
    s->library = lib;
    return lib;
}

void mg_symbols_release(struct mg_symbols *s)
{
    for (uint32_t i = 0; i < s->found.n; i++) {
        struct mg_symbol *y = s->found.at[i];
        if (y->function != y->symbol) free((void *)(uintptr_t)y->function);
        free(y->symbol);
        free((void *)(uintptr_t)y->file);
        free(y);
    }
    for (uint32_t i = 0; i < s->files.n; i++) {
        if (s->files.at[i]->dwfl) dwfl.dwfl_end(s->files.at[i]->dwfl);
        free(s->files.at[i]->path);
        free(s->files.at[i]->build_id);
        free(s->files.at[i]);
    }
    mg_vec_release(&s->found);
    mg_vec_release(&s->files);
    mg_map_release(&s->by_address);
    if (s->library) dlclose(s->library);
}

uint32_t mg_symbols_file(struct mg_symbols *s, const char *path, const char *build_id, uint64_t then_unix_ns)
{
    for (uint32_t i = 0; i < s->files.n; i++)
        if (!strcmp(s->files.at[i]->path, path) && !strcmp(s->files.at[i]->build_id, build_id)) return i;
    struct mg_symbol_file *f = mg_xcalloc(1, sizeof *f);
    f->path = mg_xstrdup(path);
    f->build_id = mg_xstrdup(build_id);
    f->then_unix_ns = then_unix_ns;
    *mg_vec_push(&s->files) = f;
    return s->files.n - 1;
}

const char *mg_symbols_path(const struct mg_symbols *s, uint32_t file)
{
    return s->files.at[file]->path;
}

static bool is_same_build(const struct mg_symbol_file *f, const struct stat *st)
{
    const unsigned char *id;
    uint64_t at;
    char text[3];
    int n = dwfl.dwfl_module_build_id(f->module, &id, &at);
    uint64_t written_ns = mg_io_written_ns(st);
    if (!*f->build_id || n <= 0) return !*f->build_id && n <= 0 && written_ns <= f->then_unix_ns;
    if (strlen(f->build_id) != 2 * (size_t)n) return false;
    for (int i = 0; i < n; i++) {
        snprintf(text, sizeof text, "%02x", id[i]);
        if (memcmp(text, f->build_id + 2 * i, 2)) return false;
    }
    return true;
}

static void open_file(struct mg_symbols *s, struct mg_symbol_file *f)
{
    struct stat st;
    f->tried = true;
    if (*f->path != '/') return; /* the kernel's own: it has no file */
    if (!mg_symbols_has_library(s)) return;
    bool there = !stat(f->path, &st) && S_ISREG(st.st_mode);
    if (there && (f->dwfl = dwfl.dwfl_begin(&callbacks))) {
        dwfl.dwfl_report_begin(f->dwfl);
        f->module = dwfl.dwfl_report_elf(f->dwfl, f->path, f->path, -1, 0, true);
        dwfl.dwfl_report_end(f->dwfl, NULL, NULL);
    }
    bool same = f->module && is_same_build(f, &st);
    s->missing += !f->module;
    s->changed += f->module && !same;
    if (!same && !s->first) s->first = f->path;
    if (!same) f->module = NULL;
}

static struct mg_symbol *read_symbol(struct mg_symbol_file *f, uint64_t address)
{
    struct mg_symbol *y = mg_xcalloc(1, sizeof *y);
    if (!f->module) return y;
    const char *name = dwfl.dwfl_module_addrname(f->module, address);
    struct Dwfl_Line *line = dwfl.dwfl_module_getsrc(f->module, address);
    int number = 0;
    const char *file = line ? dwfl.dwfl_lineinfo(line, NULL, &number, NULL, NULL, NULL) : NULL;
    if (name) {
        y->symbol = mg_xstrdup(name);
        *strchrnul(y->symbol, '@') = 0; /* a version of the library's */
        y->function = mg_demangle(y->symbol);
        if (!y->function) y->function = y->symbol;
    }
    if (file && number > 0) {
        y->file = mg_xstrdup(file);
        y->line = (uint32_t)number;
    }
    return y;
}

const struct mg_symbol *mg_symbols_find(struct mg_symbols *s, uint32_t file, uint64_t address)
{
    uint64_t v, words[] = {file, address}, key = mg_hash64(words, sizeof words, 1);
    if (mg_map_get(&s->by_address, key, &v)) return s->found.at[v];
    struct mg_symbol_file *f = s->files.at[file];
    if (!f->tried) open_file(s, f);
    mg_map_set(&s->by_address, key, s->found.n);
    return *mg_vec_push(&s->found) = read_symbol(f, address);
}
