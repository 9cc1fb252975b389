#include "cli/buffer_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/buffers.h"

struct mg_buffer_names {
    struct mg_recording *own; /* NULL: the caller's */
    const struct mg_recording *p;
    struct mg_lines *modules;
    struct mg_buffers *buffers;
};

struct mg_buffer_names *mg_buffer_names_open(const char *dir, const struct mg_recording *p)
{
    struct mg_buffer_names *b = mg_xcalloc(1, sizeof *b);
    struct mg_diag d = MG_DIAG_INIT;
    b->p = p;
    if (!p && !mg_recording_open(dir, &b->own, &d)) b->p = b->own;
    mg_diag_release(&d);
    if (!b->p) return b;
    b->modules = mg_lines_new(b->p);
    b->buffers = mg_buffers_new(b->p, b->modules);
    return b;
}

void mg_buffer_names_free(struct mg_buffer_names *b)
{
    if (b->buffers) mg_buffers_free(b->buffers);
    if (b->modules) mg_lines_free(b->modules);
    mg_recording_free(b->own);
    free(b);
}

static const struct mg_buffer_name *find_name(struct mg_buffer_names *b, const struct mg_access_site *s)
{
    for (uint32_t i = 0; b->p && i < b->p->n_kernels; i++)
        if (!strcmp(b->p->kernels[i].name, s->kernel))
            return mg_buffer_name_at(b->buffers, &b->p->kernels[i], s->function, s->ptx_line);
    return NULL;
}

const char *mg_buffer_names_find(void *names, const struct mg_access_site *s)
{
    const struct mg_buffer_name *name = find_name(names, s);
    return name ? name->text : NULL;
}

const char *mg_buffer_names_place(void *names, const struct mg_access_site *s)
{
    const struct mg_buffer_name *name = find_name(names, s);
    return name ? name->place : NULL;
}
