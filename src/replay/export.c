/* A capture as a C program (stand_alone.c is its first part) and a file with all content: for a kernel that is to be
 * sent to someone. It has what such launches need: modules, memory, copies in one dimension, memsets, launches,
 * comparisons. */
#include "base/io.h"
#include "replay/replay.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char runtime[] =
#include "stand-alone.h"
    ;

struct out {
    FILE *c, *data;
    uint64_t at;
    uint64_t n_launches;
    uint64_t context, of_launches; /* that follows, and that of the launches so far; 0: none */
};

#define U(v) ((unsigned long long)(v))

/* Behind what is there, aligned as images are. */
static uint64_t add_data(struct out *o, const void *p, uint64_t bytes)
{
    static const char zeros[16];
    uint64_t at = o->at;
    fwrite(p, 1, bytes, o->data);
    fwrite(zeros, 1, (16 - bytes % 16) % 16, o->data);
    o->at += bytes + (16 - bytes % 16) % 16;
    return at;
}

/* Names of C and of PTX share their letters; others could end the text. */
static bool is_plain(const struct mg_cap_op *op)
{
    for (size_t k = 0; k < op->payload_bytes; k++)
        if (!memchr("_$%.", op->payload[k], 4) && (op->payload[k] > 127 || !isalnum(op->payload[k]))) return false;
    return true;
}

static int put_image(struct mg_replay *r, struct out *o, const struct mg_cap_op *op)
{
    if (mg_replay_image(r, op)) return r->status;
    const struct mg_image_bytes *im = &r->images.at[r->images.n - 1];
    for (uint32_t k = 0; k < im->unpacked.n; k++)
        fprintf(o->c, "    void *image%llu_%u = data + %llu;\n", U(im->number), k,
                U(add_data(o, im->unpacked.parts[k], im->unpacked.sizes[k])));
    if (im->unpacked.image == im->unpacked.parts[0]) {
        fprintf(o->c, "    void *image%llu = image%llu_0; (void)image%llu;\n", U(im->number), U(im->number),
                U(im->number));
        return 0;
    }
    fprintf(o->c, "    void *list%llu[] = {", U(im->number));
    for (uint32_t k = 1; k < im->unpacked.n; k++) fprintf(o->c, "image%llu_%u, ", U(im->number), k);
    uint32_t words[2];
    memcpy(words, im->unpacked.image, sizeof words);
    fprintf(
        o->c,
        "NULL};\n    struct { unsigned magic, version; void *first, *list; } wrapper%llu = {%#x, %u, image%llu_0, NULL};\n    void *image%llu = &wrapper%llu;\n",
        U(im->number), words[0], words[1], U(im->number), U(im->number), U(im->number));
    if (im->unpacked.n > 1)
        fprintf(o->c, "    wrapper%llu.list = list%llu;\n", U(im->number), U(im->number));
    else
        fprintf(o->c, "    (void)list%llu;\n", U(im->number));
    return 0;
}

static int put_load(struct mg_replay *r, struct out *o, const struct mg_cap_op *op)
{
    const uint64_t *w = op->words;
    uint32_t n = (op->n_words - 3) / 2;
    if (!mg_replay_image_of(r, w[1]))
        return mg_replay_fail(r, MG_REPLAY_INPUT, "%s: it names an image that it lacks", r->path);
    fprintf(o->c, "    int options%llu[] = {", U(w[0]));
    for (uint32_t k = 0; k < n; k++) fprintf(o->c, "%llu, ", U(w[3 + 2 * k]));
    fprintf(o->c, "0};\n    void *values%llu[] = {", U(w[0]));
    for (uint32_t k = 0; k < n; k++) fprintf(o->c, "(void *)%lluu, ", U(w[4 + 2 * k]));
    fprintf(o->c,
            "NULL};\n    handle module%llu = load(image%llu, %d, options%llu, values%llu, %u); (void)module%llu;\n",
            U(w[0]), U(w[1]), w[2] != 0, U(w[0]), U(w[0]), n, U(w[0]));
    *mg_vec_push(&r->loads) = (struct mg_load){.number = w[0], .library = w[2] != 0, .live = true};
    return 0;
}

static int put_name(struct mg_replay *r, struct out *o, const struct mg_cap_op *op, bool kernel)
{
    const uint64_t *w = op->words;
    const struct mg_load *l = mg_replay_load_of(r, kernel ? w[1] : w[0]);
    if (!l || !is_plain(op) || op->payload_bytes > INT_MAX)
        return mg_replay_fail(r, MG_REPLAY_INPUT, "%s: it has a name that cannot be one", r->path);
    int n = (int)op->payload_bytes;
    const char *name = (const char *)op->payload;
    if (kernel)
        fprintf(o->c, "    handle kernel%llu = find(module%llu, %d, \"%.*s\"); (void)kernel%llu;\n", U(w[0]), U(w[1]),
                l->library, n, name, U(w[0]));
    else
        fprintf(o->c, "    variable(module%llu, %d, \"%.*s\", 0x%llx, %llu);\n", U(w[0]), l->library, n, name, U(w[1]),
                U(w[2]));
    if (kernel) *mg_vec_push(&r->kernels) = (struct mg_kernel){.number = w[0], .load = w[1]};
    return 0;
}

static int put_launch(struct mg_replay *r, struct out *o, const struct mg_cap_op *op)
{
    const uint64_t *w = op->words, *g = w + MG_CAP_L_GRID;
    if (w[MG_CAP_L_WHY])
        return mg_replay_fail(r, MG_REPLAY_INPUT, "launch %llu cannot be replayed: %s", U(w[MG_CAP_L_NUMBER]),
                              r->reasons.at[w[MG_CAP_L_WHY] - 1]);
    if (!mg_replay_kernel_of(r, w[MG_CAP_L_KERNEL]))
        return mg_replay_fail(r, MG_REPLAY_INPUT, "%s: launch %llu names what is not there", r->path,
                              U(w[MG_CAP_L_NUMBER]));
    if (o->n_launches && o->of_launches != o->context)
        return mg_replay_fail(r, MG_REPLAY_INPUT,
                              "the capture has launches in several contexts, which a C program cannot have; take out "
                              "those of one (--extract)");
    o->of_launches = o->context;
    fprintf(o->c, "    launch(\"launch %llu\", kernel%llu, (unsigned[]){", U(w[MG_CAP_L_NUMBER]),
            U(w[MG_CAP_L_KERNEL]));
    for (int k = 0; k < 10; k++) /* grid, block, cluster, shared memory: they follow each other */
        fprintf(o->c, "%llu%s", U(g[k]), k < 9 ? ", " : "");
    fprintf(o->c, "}, %d, data + %llu, %zu);\n", (w[MG_CAP_L_FLAGS] & MG_CAP_COOPERATIVE) != 0,
            U(add_data(o, op->payload, op->payload_bytes)), op->payload_bytes);
    o->n_launches++;
    return 0;
}

static int put_write(struct mg_replay *r, struct out *o, const struct mg_cap_op *op)
{
    const char *why = "there is no memory";
    void *room = mg_replay_room(r, op->words[1]);
    if (!room || !mg_cap_content(r->reader, op, room, &why))
        return mg_replay_fail(r, MG_REPLAY_INPUT, "%s: %s", r->path, why);
    fprintf(o->c, "    write_at(0x%llx, data + %llu, %llu);\n", U(op->words[0]), U(add_data(o, room, op->words[1])),
            U(op->words[1]));
    return 0;
}

static void put_words(struct out *o, const uint64_t *w, uint32_t n)
{
    fputs("(uint64_t[]){", o->c);
    for (uint32_t k = 0; k < n; k++) fprintf(o->c, "%llu%s", U(w[k]), k + 1 < n ? "u, " : "u}");
}

static int put_object(struct out *o, const struct mg_cap_op *op)
{
    fputs("    object(", o->c);
    put_words(o, op->words, 10);
    fprintf(o->c, ", data + %llu, %zu);\n", U(add_data(o, op->payload, op->payload_bytes)), op->payload_bytes);
    return 0;
}

static int put_copy3d(struct mg_replay *r, struct out *o, const struct mg_cap_op *op)
{
    const char *why = "there is no memory";
    uint64_t bytes = op->words[MG_CAP_C_HOST_BYTES], at = 0;
    void *room = bytes ? mg_replay_room(r, bytes) : NULL;
    if (bytes && (!room || !mg_cap_content(r->reader, op, room, &why)))
        return mg_replay_fail(r, MG_REPLAY_INPUT, "%s: %s", r->path, why);
    if (bytes) at = add_data(o, room, bytes);
    fputs("    copy3d(", o->c);
    put_words(o, op->words, MG_CAP_C_HOST_BYTES);
    fprintf(o->c, bytes ? ", data + %llu);\n" : ", NULL);\n", U(at));
    return 0;
}

static int put_op(struct mg_replay *r, struct out *o, const struct mg_cap_op *op)
{
    const uint64_t *w = op->words;
    switch ((enum mg_cap_op_kind)op->kind) {
    case MG_CAP_image:
        return put_image(r, o, op);
    case MG_CAP_load:
        return put_load(r, o, op);
    case MG_CAP_kernel:
        return put_name(r, o, op, true);
    case MG_CAP_variable:
        return put_name(r, o, op, false);
    case MG_CAP_launch:
        return put_launch(r, o, op);
    case MG_CAP_write:
        return put_write(r, o, op);
    case MG_CAP_alloc:
        return fprintf(o->c, "    allocate(0x%llx, %llu);\n", U(w[0]), U(w[1])), 0;
    case MG_CAP_copy:
        return fprintf(o->c, "    copy(0x%llx, 0x%llx, %llu);\n", U(w[0]), U(w[1]), U(w[2])), 0;
    case MG_CAP_set:
        return fprintf(o->c, "    set(0x%llx, %llu, %llu, %llu, %llu, %llu);\n", U(w[0]), U(w[1]), U(w[2]), U(w[3]),
                       U(w[4]), U(w[5] & 0xffffffffu)),
               0;
    case MG_CAP_left:
        return mg_replay_fail(
            r, MG_REPLAY_INPUT,
            "launch %llu ran beside another thread that may have stored to its memory: export single launches (--launches)",
            U(o->n_launches ? o->n_launches - 1 : 0));
    case MG_CAP_check:
        return fprintf(o->c, "    compare(\"launch %llu\", 0x%llx, %llu, 0x%llxu, 0x%llxu);\n", U(w[0] ? w[0] - 1 : 0),
                       U(w[1]), U(w[2]), U(w[3]), U(w[4])),
               0;
    case MG_CAP_attribute:
        if (!mg_replay_kernel_of(r, w[0]))
            return mg_replay_fail(r, MG_REPLAY_INPUT, "%s: it names a kernel that it lacks", r->path);
        return fprintf(o->c, "    check(cuFuncSetAttribute(kernel%llu, %d, %d), \"an attribute\");\n", U(w[0]),
                       (int)w[1], (int)w[2]),
               0;
    case MG_CAP_limit:
        return fprintf(o->c, "    cuCtxSetLimit(%d, %llu);\n", (int)w[0], U(w[1])), 0;
    case MG_CAP_context:
        o->context = w[0];
        return 0;
    case MG_CAP_unload:
    case MG_CAP_free: /* memory stays: what comes there next clears it */
    case MG_CAP_run:
    case MG_CAP_origin:
    case MG_CAP_uncaptured:
    case MG_CAP_wait:
    case MG_CAP_array_free:
    case MG_CAP_OP_COUNT:
        return 0;
    case MG_CAP_copy3d:
        return put_copy3d(r, o, op);
    case MG_CAP_array:
        return fprintf(o->c, "    array(%llu, (struct array_desc){%llu, %llu, %llu, %llu, %llu, %llu}, %llu);\n",
                       U(w[0]), U(w[1]), U(w[2]), U(w[3]), U(w[4]), U(w[5]), U(w[6]), U(w[7])),
               0;
    case MG_CAP_level:
        return fprintf(o->c, "    level(%llu, %llu, %llu);\n", U(w[0]), U(w[1]), U(w[2])), 0;
    case MG_CAP_object:
        return put_object(o, op);
    case MG_CAP_object_free:
        return fprintf(o->c, "    object_free(%lluu, %d);\n", U(w[0]), w[1] != 0), 0;
    }
    return 0;
}

static FILE *open_in(struct mg_replay *r, struct mg_io_part *part, const char *folder, const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (mg_io_part_open(part, path, NULL)) mg_replay_fail(r, MG_REPLAY_INPUT, "%s: %s", path, strerror(errno));
    return part->file;
}

int mg_export(struct mg_replay *r, const char *folder)
{
    struct mg_cap_op op = {0};
    struct out o = {0};
    bool made = !mkdir(folder, 0777);
    if (!made && errno != EEXIST) return mg_replay_fail(r, MG_REPLAY_INPUT, "%s: %s", folder, strerror(errno));
    struct mg_io_part c = {0}, data = {0};
    o.c = open_in(r, &c, folder, "replay.c");
    o.data = o.c ? open_in(r, &data, folder, "data.bin") : NULL;
    int status = r->status;
    if (!status) {
        fprintf(o.c, "%s\nint main(void)\n{\n    start();\n", runtime);
        for (uint32_t k = 0; k < r->ranges.n; k++)
            fprintf(o.c, "    reserve(0x%llx, 0x%llx);\n", U(r->ranges.at[k].lo), U(r->ranges.at[k].hi));
    }
    while (!status && mg_cap_next(r->reader, &op)) status = put_op(r, &o, &op);
    mg_cap_op_release(&op);
    if (!status) fprintf(o.c, "    return end(%llu);\n}\n", U(o.n_launches));
    enum mg_err err = mg_io_part_close(&c, status ? MG_ERR_STATE : MG_ERR_OK, NULL);
    err = mg_io_part_close(&data, err, NULL);
    if (err && !status) return mg_replay_fail(r, MG_REPLAY_INPUT, "%s: %s", folder, strerror(errno));
    if (status && made) rmdir(folder);
    if (!status)
        fprintf(stderr, "%s/replay.c has %llu launch%s; next: cd %s && gcc replay.c -lcuda && ./a.out\n", folder,
                U(o.n_launches), o.n_launches == 1 ? "" : "es", folder);
    return status;
}
