#include "span/stacks.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define NO_FILE UINT32_MAX

void mg_stacks_release(struct mg_stacks *s)
{
    for (uint32_t i = 0; i < s->at.n; i++) free(s->at.at[i].frames);
    mg_vec_release(&s->at);
    mg_vec_release(&s->modules);
    mg_vec_release(&s->places);
    mg_map_release(&s->by_id);
    mg_symbols_release(&s->symbols);
}

void mg_stacks_add_module(struct mg_stacks *s, const struct mg_stack_module *m)
{
    *mg_vec_push(&s->modules) = *m;
}

/* What was loaded last lies there now. */
static void add_place(struct mg_stacks *s, uint32_t process, uint64_t address)
{
    uint32_t file = NO_FILE;
    for (uint32_t i = s->modules.n; i-- > 0;) {
        const struct mg_stack_module *m = &s->modules.at[i];
        if (m->process != process || address < m->begin || address >= m->end) continue;
        file = m->file;
        if (file != NO_FILE) address -= m->bias;
        break;
    }
    *mg_vec_push(&s->places) = file;
    *mg_vec_push(&s->places) = address;
}

static uint64_t key_of(uint32_t process, uint64_t id)
{
    uint64_t words[] = {process, id};
    return mg_hash64(words, sizeof words, 5);
}

void mg_stacks_add(struct mg_stacks *s, uint32_t process, uint64_t id, const uint64_t *addresses, uint32_t n, bool cut)
{
    if (mg_map_get(&s->by_id, key_of(process, id), NULL)) return;
    mg_map_set(&s->by_id, key_of(process, id), s->at.n);
    *mg_vec_push(&s->at) = (struct mg_stack){.process = process, .first = s->places.n, .n = n, .cut = cut};
    for (uint32_t i = 0; i < n; i++) add_place(s, process, addresses[i]);
}

uint32_t mg_stacks_find(const struct mg_stacks *s, uint32_t process, uint64_t id)
{
    uint64_t ix;
    return id && mg_map_get(&s->by_id, key_of(process, id), &ix) ? (uint32_t)ix : UINT32_MAX;
}

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

const struct mg_frame *mg_stacks_frames(struct mg_stacks *s, uint32_t ix, uint32_t *n)
{
    static const struct mg_symbol nothing;
    struct mg_stack *k = &s->at.at[ix];
    *n = k->n;
    if (k->frames) return k->frames;
    k->frames = mg_xcalloc(k->n + 1, sizeof *k->frames);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < k->n; i++) {
        uint64_t file = s->places.at[k->first + 2 * i], address = s->places.at[k->first + 2 * i + 1];
        struct mg_frame *f = &k->frames[kept];
        f->address = address;
        f->path = file == NO_FILE ? NULL : mg_symbols_path(&s->symbols, (uint32_t)file);
        f->symbol = file == NO_FILE ? &nothing : mg_symbols_find(&s->symbols, (uint32_t)file, address);
        bool ours = f->path && !strncmp(base_of(f->path), "libmargay", 9); /* in front of the runtime or MPI */
        kept += !ours || (i + 1 == k->n && !kept);
    }
    *n = k->n = kept;
    return k->frames;
}

uint64_t mg_stack_name_key(const char *name)
{
    return mg_hash64(name, strlen(name), 6) | 1;
}

static bool is_between(const struct mg_frame *f, const struct mg_map *kernels)
{
    static const char *const libraries[] = {"libcuda.so", "libcudart"}, *const functions[] = {"cudart::", "__cudart",
                                                                                              "__cuda",
                                                                                              "__device_stub__"};
    const char *base = f->path ? base_of(f->path) : "", *symbol = f->symbol->symbol, *name = f->symbol->function;
    for (size_t i = 0; i < MG_COUNT_OF(libraries); i++)
        if (!strncmp(base, libraries[i], strlen(libraries[i]))) return true;
    if (!symbol) return false;
    for (size_t i = 0; i < MG_COUNT_OF(functions); i++)
        if (!strncmp(name, functions[i], strlen(functions[i])) || !strncmp(symbol, functions[i], strlen(functions[i])))
            return true;
    bool runtime = !strncmp(symbol, "cuda", 4) && symbol[4] >= 'A' && symbol[4] <= 'Z';
    return runtime || mg_map_get(kernels, mg_stack_name_key(symbol), NULL);
}

uint32_t mg_stacks_site(struct mg_stacks *s, uint32_t ix, const struct mg_map *kernels)
{
    uint32_t n, i = 0;
    const struct mg_frame *f = mg_stacks_frames(s, ix, &n);
    while (i < n && is_between(&f[i], kernels)) i++;
    return i < n ? i : 0;
}

/* ';' parts frames, a newline stacks. */
static void add_plain(struct mg_buf *out, const char *name)
{
    for (; *name; name++) mg_buf_addc(out, *name == ';' ? ':' : *name == '\n' ? ' ' : *name);
}

void mg_frame_print(const struct mg_frame *f, struct mg_buf *out)
{
    if (f->symbol->function)
        add_plain(out, f->symbol->function);
    else
        add_plain(out, f->path ? base_of(f->path) : "code of no file");
    if (!f->symbol->function && f->path) mg_buf_printf(out, "+0x%" PRIx64, f->address);
}

void mg_stack_print(struct mg_stacks *s, uint32_t ix, struct mg_buf *out)
{
    uint32_t n;
    const struct mg_frame *f = mg_stacks_frames(s, ix, &n);
    if (s->at.at[ix].cut) mg_buf_adds(out, "...;");
    for (uint32_t i = n; i-- > 0;) {
        mg_frame_print(&f[i], out);
        if (i) mg_buf_addc(out, ';');
    }
}
