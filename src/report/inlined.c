/* A place that was inlined has a .loc with the call's place. Where the call was inlined itself, its own .loc stands
 * before: the last one of that file, line and column. Names are texts of .debug_str, where the label of function_name
 * stands. */
#include "report/inlined.h"

#include <stdlib.h>
#include <string.h>

#include "base/demangle.h"
#include "base/hash.h"
#include "base/map.h"
#include "ir/ir.h"

enum { NAME_BYTES = 4096, MOST_DEPTH = 32 };

/* ---- names ---------------------------------------------------------------------------------------------------- */

static bool is_label(const char *line, const char *label)
{
    size_t n = strlen(label);
    return !strncmp(line, label, n) && line[n] == ':';
}

/* The bytes of ".b8 95,90,...,0" lines behind a label, up to the first 0; false: not such a text. */
static bool read_text(const struct mg_module *m, const struct mg_section *s, uint32_t from, char *out)
{
    size_t n = 0;
    for (uint32_t i = from; i < s->n_lines; i++) {
        const char *at = mg_name(m, m->strs.at[s->first_line + i]);
        if (strncmp(at, ".b8", 3)) return false;
        for (at += 3; *at;) {
            char *end;
            unsigned long v = strtoul(at, &end, 10);
            if (end == at || v > 255 || n + 1 >= NAME_BYTES) return false;
            out[n++] = (char)v;
            if (!v) return n > 1;
            at = end + strspn(end, " \t,");
        }
    }
    return false;
}

static const char *name_at(struct mg_inlined *x, const struct mg_module *m, const char *label)
{
    char text[NAME_BYTES];
    for (uint32_t i = 0; i < m->sections.n; i++) {
        const struct mg_section *s = &m->sections.at[i];
        if (strcmp(mg_name(m, s->name), ".debug_str")) continue;
        for (uint32_t k = 0; k < s->n_lines; k++) {
            if (!is_label(mg_name(m, m->strs.at[s->first_line + k]), label)) continue;
            if (!read_text(m, s, k + 1, text)) return NULL;
            char *plain = mg_demangle(text);
            const char *kept = mg_arena_strndup(&x->arena, plain ? plain : text, strlen(plain ? plain : text));
            free(plain);
            return kept;
        }
    }
    return NULL;
}

/* Each label once. */
static const char *find_name(struct mg_inlined *x, const struct mg_module *m, struct mg_map *names, mg_str label)
{
    uint64_t at;
    if (!label) return NULL;
    if (!mg_map_get(names, label, &at)) {
        at = (uint64_t)(uintptr_t)name_at(x, m, mg_name(m, label));
        mg_map_set(names, label, at);
    }
    return (const char *)(uintptr_t)at;
}

/* ---- frames ---------------------------------------------------------------------------------------------------- */

static uint64_t key_of(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t words[3] = {a, b, c};
    return mg_hash64(words, sizeof words, 0);
}

static bool same_frame(const struct mg_inline_frame *a, const struct mg_inline_frame *b)
{
    return a->function == b->function && a->file == b->file && a->line == b->line && a->outer == b->outer;
}

/* Frames are equal by hash and by what they say; of two with one hash the second gets a frame of its own each time. */
static uint32_t frame_of(struct mg_inlined *x, struct mg_map *known, const struct mg_inline_frame *f)
{
    uint64_t key = key_of((uint64_t)(uintptr_t)f->function, (uint64_t)(uintptr_t)f->file,
                          (uint64_t)f->line << 32 | f->outer),
             at;
    if (mg_map_get(known, key, &at) && same_frame(&x->frames.at[at], f)) return (uint32_t)at;
    *mg_vec_push(&x->frames) = *f;
    mg_map_set(known, key, x->frames.n - 1);
    return x->frames.n - 1;
}

void mg_inlined_init(struct mg_inlined *x, const struct mg_module *m)
{
    struct mg_map names = MG_MAP_INIT, known = MG_MAP_INIT,
                  places = MG_MAP_INIT; /* places: an inlined place -> its last loc */
    *x = (struct mg_inlined){0};
    x->of_loc = mg_xcalloc(m->locs.n + 1, sizeof *x->of_loc);
    *mg_vec_push(&x->frames) = (struct mg_inline_frame){0};
    for (uint32_t i = 1; i < m->locs.n; i++) {
        const struct mg_loc *l = &m->locs.at[i];
        uint64_t outer = 0;
        if (!l->has_inlined) continue;
        if (mg_map_get(&places, key_of(l->inl_file, l->inl_line, l->inl_col), &outer)) {
            const struct mg_loc *o = &m->locs.at[outer];
            if (o->file != l->inl_file || o->line != l->inl_line || o->col != l->inl_col) outer = 0;
        }
        struct mg_inline_frame f = {find_name(x, m, &names, l->function), mg_module_path(m, l->inl_file), l->inl_line,
                                    outer ? x->of_loc[outer] : 0, 1};
        if (f.outer && x->frames.at[f.outer].depth >= MOST_DEPTH)
            f.outer = 0; /* a damaged text: a place inside itself */
        if (f.outer) f.depth = x->frames.at[f.outer].depth + 1;
        x->of_loc[i] = frame_of(x, &known, &f);
        mg_map_set(&places, key_of(l->file, l->line, l->col), i);
    }
    mg_map_release(&names);
    mg_map_release(&known);
    mg_map_release(&places);
}

void mg_inlined_release(struct mg_inlined *x)
{
    mg_vec_release(&x->frames);
    free(x->of_loc);
    mg_arena_release(&x->arena);
    *x = (struct mg_inlined){0};
}
