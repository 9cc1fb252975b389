/* The operations of a capture, one after the other. */
#include "replay/replay.h"

#include <stdio.h>
#include <string.h>

#define MOST_TRANSLATED 4096 /* bytes of a write: larger ones are data, and may hold words that look like addresses */

int mg_replay_call(struct mg_replay *r, cu_result rc, const char *fmt, ...)
{
    char what[300];
    va_list ap;
    if (rc == CUE_SUCCESS) return 0;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    const char *name = mg_cu_result_name(rc);
    bool lacks = r->taken_out && r->n_launches && (rc == CUE_ILLEGAL_ADDRESS || rc == CUE_LAUNCH_FAILED);
    return mg_replay_fail(
        r, MG_REPLAY_DEVICE, "%s: %s, behind %llu launches%s", what, name ? name : "an unknown error",
        (unsigned long long)r->n_launches,
        lacks ? "; memory that kernels allocate themselves (malloc) is not taken out with a launch that reads it" : "");
}

/* ---- launches ---------------------------------------------------------------------------------------------- */

static const char *why_not(const struct mg_replay *r, const uint64_t *w)
{
    for (uint32_t k = 0; k + 1 < r->doubts.n; k += 2)
        if (r->doubts.at[k] == w[MG_CAP_L_NUMBER]) return r->reasons.at[r->doubts.at[k + 1] - 1];
    return w[MG_CAP_L_WHY] ? r->reasons.at[w[MG_CAP_L_WHY] - 1] : NULL;
}

/* Bytes of arguments that the kernel takes: a capture may not make the driver read more than there is. */
static size_t argument_bytes(const struct mg_kernel *k)
{
    size_t off, bytes, most = 0;
    for (size_t n = 0; n < 4096 && mg_cu.cuFuncGetParamInfo(k->handle, n, &off, &bytes) == CUE_SUCCESS; n++)
        most = MG_MAX(most, off + bytes);
    return most;
}

static int send(struct mg_replay *r, const struct mg_cap_op *op, struct mg_kernel *k)
{
    const uint64_t *w = op->words, *g = w + MG_CAP_L_GRID, *b = w + MG_CAP_L_BLOCK, *c = w + MG_CAP_L_CLUSTER;
    struct cu_launch_attribute attrs[3] = {0};
    struct cu_launch_config config = {(unsigned)g[0],
                                      (unsigned)g[1],
                                      (unsigned)g[2],
                                      (unsigned)b[0],
                                      (unsigned)b[1],
                                      (unsigned)b[2],
                                      (unsigned)w[MG_CAP_L_SHARED],
                                      mg_replay_enter(r, w[MG_CAP_L_STREAM]),
                                      attrs,
                                      0};
    uint64_t args[4096 / 8 + 4096];
    size_t bytes = op->payload_bytes;
    cu_function f = mg_replay_function(r, k);
    void *extra[] = {CULAUNCH_PARAM_BUFFER_POINTER, args, CULAUNCH_PARAM_BUFFER_SIZE, &bytes, CULAUNCH_PARAM_END};
    if (!f) return r->status;
    if (bytes > sizeof args || bytes != argument_bytes(k))
        return mg_replay_fail(r, MG_REPLAY_INPUT, "%s: launch %llu has %zu bytes of arguments, %s takes %zu", r->path,
                              (unsigned long long)w[MG_CAP_L_NUMBER], bytes, k->name, argument_bytes(k));
    memcpy(args, op->payload, bytes);
    mg_replay_translate(r, args, bytes, false);
    if (w[MG_CAP_L_FLAGS] & MG_CAP_COOPERATIVE)
        attrs[config.n_attrs++] = (struct cu_launch_attribute){.id = CULAUNCH_COOPERATIVE, .value.cooperative = 1};
    if (c[0])
        attrs[config.n_attrs++] = (struct cu_launch_attribute){
            .id = CULAUNCH_CLUSTER_DIMENSION, .value.cluster = {(unsigned)c[0], (unsigned)c[1], (unsigned)c[2]}};
    cu_result rc = r->status ? CUE_SUCCESS : mg_cu.cuLaunchKernelEx(&config, f, NULL, bytes ? extra : NULL);
    return mg_replay_call(r, rc, "launch %llu (%s)", (unsigned long long)w[MG_CAP_L_NUMBER], k->name);
}

static int launch(struct mg_replay *r, const struct mg_cap_op *op)
{
    struct mg_kernel *k = mg_replay_kernel_of(r, op->words[MG_CAP_L_KERNEL]);
    const char *why = why_not(r, op->words);
    if (!k || !mg_replay_load_of(r, k->load)->live)
        return mg_replay_fail(r, MG_REPLAY_INPUT, "%s: launch %llu names what is not there", r->path,
                              (unsigned long long)r->n_launches);
    if (why)
        return mg_replay_fail(r, MG_REPLAY_INPUT, "launch %llu (%s) and what follows cannot be replayed: %s",
                              (unsigned long long)r->n_launches, k->name, why);
    bool wanted = r->extract && mg_extract_wants(r, r->n_launches);
    int status = wanted ? mg_extract_before(r, op) : 0;
    if (!status) status = mg_replay_before(r, op);
    if (!status) status = send(r, op, k);
    if (status) return status;
    r->n_launches++;
    r->last_kernel = k->name;
    return wanted ? mg_extract_after(r, op) : 0;
}

/* ---- the others ---------------------------------------------------------------------------------------------- */

/* Do these bytes lie in an allocation or a variable? */
bool mg_replay_is_there(struct mg_replay *r, uint64_t at, uint64_t bytes)
{
    struct mg_live *l = mg_replay_live_at(r, at);
    for (uint32_t k = 0; !l && k < r->variables.n; k++)
        if (at - r->variables.at[k].was < r->variables.at[k].bytes)
            return bytes <= r->variables.at[k].bytes - (at - r->variables.at[k].was);
    for (; l && bytes > l->bytes - (at - l->at);
         l = mg_replay_live_at(r, at)) { /* mappings in a row may be copied as one */
        uint64_t n = l->bytes - (at - l->at);
        bytes -= n;
        at += n;
    }
    return l != NULL;
}

static int not_there(struct mg_replay *r, uint64_t at)
{
    return mg_replay_fail(r, MG_REPLAY_INPUT, "%s: it names memory that is not there: 0x%llx", r->path,
                          (unsigned long long)at);
}

static int write_content(struct mg_replay *r, const struct mg_cap_op *op)
{
    uint64_t at = op->words[0], bytes = op->words[1];
    const char *why = "there is no memory for it";
    if (!mg_replay_is_there(r, at, bytes)) return not_there(r, at);
    char *room = mg_replay_room(r, bytes);
    if (!room || !mg_cap_content(r->reader, op, room, &why))
        return mg_replay_fail(r, MG_REPLAY_INPUT, "%s: %s", r->path, why);
    if (bytes <= MOST_TRANSLATED) mg_replay_translate(r, room, bytes, false);
    return mg_replay_call(r, mg_cu.cuMemcpyHtoDAsync_v2(mg_replay_here(r, at), room, bytes, mg_replay_last(r)),
                          "writing memory");
}

static int copy(struct mg_replay *r, const uint64_t *w)
{
    if (!mg_replay_is_there(r, w[0], w[2]) || !mg_replay_is_there(r, w[1], w[2])) return not_there(r, w[0]);
    return mg_replay_call(
        r, mg_cu.cuMemcpyDtoDAsync_v2(mg_replay_here(r, w[0]), mg_replay_here(r, w[1]), w[2], mg_replay_enter(r, w[3])),
        "a copy");
}

static int set(struct mg_replay *r, const uint64_t *w)
{
    uint64_t at = mg_replay_here(r, w[0]), pitch = w[1], width = w[2], height = w[3];
    if (!mg_replay_is_there(r, w[0], (height - 1) * pitch + width * w[4])) return not_there(r, w[0]);
    cu_stream s = mg_replay_enter(r, w[6]);
    cu_result rc = CUE_INVALID_VALUE;
    if (height == 1)
        rc = w[4] == 1   ? mg_cu.cuMemsetD8Async(at, (uint8_t)w[5], width, s)
             : w[4] == 2 ? mg_cu.cuMemsetD16Async(at, (uint16_t)w[5], width, s)
             : w[4] == 4 ? mg_cu.cuMemsetD32Async(at, (uint32_t)w[5], width, s)
                         : rc;
    else
        rc = w[4] == 1   ? mg_cu.cuMemsetD2D8Async(at, pitch, (uint8_t)w[5], width, height, s)
             : w[4] == 2 ? mg_cu.cuMemsetD2D16Async(at, pitch, (uint16_t)w[5], width, height, s)
             : w[4] == 4 ? mg_cu.cuMemsetD2D32Async(at, pitch, (uint32_t)w[5], width, height, s)
                         : rc;
    return mg_replay_call(r, rc, "a memset");
}

static int set_attribute(struct mg_replay *r, const uint64_t *w, bool limit)
{
    struct mg_kernel *k = limit ? NULL : mg_replay_kernel_of(r, w[0]);
    if (!limit && (!k || !mg_replay_load_of(r, k->load)->live))
        return mg_replay_fail(r, MG_REPLAY_INPUT, "%s: it names a kernel that it lacks", r->path);
    *mg_vec_push(&r->sets) = (struct mg_set){limit ? 0 : w[0], limit ? w[0] : w[1], limit ? w[1] : w[2], r->context};
    if (limit) /* another device may have other bounds */
        return mg_cu.cuCtxSetLimit((int)w[0], w[1]), 0;
    cu_function f = mg_replay_function(r, k);
    return f ? mg_replay_call(r, mg_cu.cuFuncSetAttribute(f, (int)w[1], (int)w[2]), "an attribute of %s", k->name)
             : r->status;
}

static int perform(struct mg_replay *r, const struct mg_cap_op *op)
{
    switch ((enum mg_cap_op_kind)op->kind) {
    case MG_CAP_image:
        return mg_replay_image(r, op);
    case MG_CAP_load:
        return mg_replay_load(r, op);
    case MG_CAP_unload:
        return mg_replay_unload(r, op);
    case MG_CAP_kernel:
        return mg_replay_kernel(r, op);
    case MG_CAP_variable:
        return mg_replay_variable(r, op);
    case MG_CAP_alloc:
        return mg_replay_alloc(r, op->words[0], op->words[1]);
    case MG_CAP_free:
        return mg_replay_free(r, op->words[0]);
    case MG_CAP_write:
        return write_content(r, op);
    case MG_CAP_copy:
        return copy(r, op->words);
    case MG_CAP_set:
        return set(r, op->words);
    case MG_CAP_copy3d:
        return mg_replay_copy3d(r, op);
    case MG_CAP_launch:
        return launch(r, op);
    case MG_CAP_left:
        return mg_replay_left(r, op);
    case MG_CAP_check:
        return mg_replay_check(r, op);
    case MG_CAP_attribute:
        return set_attribute(r, op->words, false);
    case MG_CAP_limit:
        return set_attribute(r, op->words, true);
    case MG_CAP_array:
    case MG_CAP_level:
    case MG_CAP_array_free:
        return mg_replay_array(r, op);
    case MG_CAP_object:
    case MG_CAP_object_free:
        return mg_replay_object(r, op);
    case MG_CAP_context:
        return mg_replay_context(r, op);
    case MG_CAP_wait:
        return mg_replay_settle(r);
    case MG_CAP_run:
        memcpy(r->run.words, op->words, sizeof r->run.words);
        r->run.line = op->payload;
        r->run.bytes = op->payload_bytes;
        return 0;
    case MG_CAP_uncaptured:
    case MG_CAP_origin:
    case MG_CAP_OP_COUNT:
        return 0;
    }
    return 0;
}

int mg_replay_run(struct mg_replay *r)
{
    struct mg_cap_op op = {0};
    int status = 0;
    for (uint32_t k = 0; k < r->ranges.n && !status; k++)
        status = mg_replay_reserve(r, r->ranges.at[k].lo, r->ranges.at[k].hi);
    while (!status && mg_cap_next(r->reader, &op)) {
        if (op.kind == MG_CAP_launch && r->extract && mg_extract_is_over(r)) break; /* what follows may fail */
        status = perform(r, &op);
    }
    mg_cap_op_release(&op);
    return status ? status : mg_replay_settle(r);
}
