/* Any bytes as JSON: what is read stays inside the text, and the values make sense. */
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "fuzz.h"

static void walk(const struct mg_jval *v, int depth)
{
    uint32_t n = 0;
    if (depth > 70) abort();
    if (v->kind == MG_JVAL_TEXT && !v->text) abort();
    if (v->kind != MG_JVAL_ARRAY && v->kind != MG_JVAL_OBJECT) return;
    for (const struct mg_jval *e = mg_jval_first(v); e; e = e->next, n++) {
        if ((e->key != NULL) != (v->kind == MG_JVAL_OBJECT)) abort();
        if (e->key && !mg_jval_get(v, e->key)) abort();
        walk(e, depth + 1);
    }
    if (n != v->n) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct mg_arena arena = MG_ARENA_INIT;
    char *copy = malloc(bytes + !bytes); /* exactly as long as the input: reading beyond it is seen */
    if (!copy) return 0;
    memcpy(copy, data, bytes);
    const struct mg_jval *v = mg_jval_parse(&arena, copy, bytes);
    if (v) walk(v, 0);
    mg_arena_release(&arena);
    free(copy);
    return 0;
}
