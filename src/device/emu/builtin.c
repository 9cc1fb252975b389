/* Functions that PTX calls but nobody defines: vprintf, malloc, free, __assertfail.
 * Output of vprintf is formatted here and handed to the device's print callback when the launch
 * has ended; when more than printf_bytes wait, the oldest go, as in CUDA. */
#include "device/emu/emu.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "device/defined.h"
#include "device/mem.h"

enum emu_builtin emu_builtin_find(const char *name)
{
    if (!strcmp(name, "vprintf")) return EMU_BUILTIN_VPRINTF;
    if (!strcmp(name, "malloc")) return EMU_BUILTIN_MALLOC;
    if (!strcmp(name, "free")) return EMU_BUILTIN_FREE;
    if (!strcmp(name, "__assertfail")) return EMU_BUILTIN_ASSERT;
    return emu_child_find(name);
}

static char *local_at(struct emu_frame *f, uint32_t lane, uint32_t off)
{
    return (char *)(f->local_va + f->local_stride * lane + f->local_at + off);
}

uint64_t emu_argument(struct emu_frame *f, const struct emu_call *call, uint32_t k, uint32_t lane, void *out,
                      uint32_t bytes)
{
    uint64_t v = 0;
    if (k >= call->n_in) return 0;
    const struct emu_arg *a = &call->actual_in[k];
    if (out && !a->from_reg)
        memcpy(out, local_at(f, lane, a->from), MG_MIN(a->bytes, bytes));
    else if (!a->from_reg)
        memcpy(&v, local_at(f, lane, a->from), MG_MIN(a->bytes, 8));
    else if (a->from_class == EMU_D)
        v = ((const uint64_t *)(f->regs + a->from))[lane];
    else
        v = ((const uint32_t *)(f->regs + a->from))[lane];
    return v;
}

void emu_result(struct emu_frame *f, const struct emu_call *call, uint32_t lane, uint64_t v)
{
    if (!call->n_out) return;
    const struct emu_arg *a = &call->actual_out[0];
    if (!a->to_reg)
        memcpy(local_at(f, lane, a->to), &v, MG_MIN(a->bytes, 8));
    else if (a->to_class == EMU_D)
        ((uint64_t *)(f->regs + a->to))[lane] = v;
    else
        ((uint32_t *)(f->regs + a->to))[lane] = (uint32_t)v;
}

/* A readable range for a generic address of a lane: how many bytes follow, 0: none. */
static uint64_t readable(struct emu_frame *f, uint32_t lane, uint64_t ea)
{
    struct mg_alloc a;
    uint64_t lv = f->local_va + f->local_stride * lane;
    if (ea - lv < f->local_bytes) return f->local_bytes - (ea - lv);
    if (ea - (uint64_t)f->shared < f->shared_bytes) return f->shared_bytes - (ea - (uint64_t)f->shared);
    if (ea - (uint64_t)f->params < f->param_bytes) return f->param_bytes - (ea - (uint64_t)f->params);
    if (mg_mem_find(ea, &a)) return a.base + a.bytes - ea;
    return 0;
}

static bool read_text(struct emu_frame *f, uint32_t lane, uint64_t ea, struct mg_buf *out)
{
    uint64_t n = readable(f, lane, ea);
    const char *p = (const char *)ea, *end = n ? memchr(p, 0, n) : NULL;
    if (!end) return false;
    mg_buf_add(out, p, (size_t)(end - p));
    return true;
}

/* ---- printf --------------------------------------------------------------------------------------- */

struct args {
    struct emu_frame *f;
    uint32_t lane;
    uint64_t at, end;
};

static bool next_argument(struct args *a, unsigned bytes, void *out)
{
    a->at = (a->at + bytes - 1) & ~(uint64_t)(bytes - 1);
    if (a->at + bytes > a->end) return false;
    memcpy(out, (const void *)a->at, bytes);
    a->at += bytes;
    return true;
}

/* One conversion, from after '%'; appends its text and returns what follows it. The argument buffer
 * holds values at their natural alignment: int 4 bytes, long, pointer and double 8. */
static const char *conversion(const char *p, struct args *a, struct mg_buf *out)
{
    char spec[64] = "%";
    size_t n = 1;
    unsigned bytes = 4;
    while (*p && strchr("-+ #0", *p) && n < 20) spec[n++] = *p++;
    for (int part = 0; part < 2; part++) {
        if (*p == '*') {
            int v = 0;
            if (!next_argument(a, 4, &v)) return NULL;
            n += (size_t)snprintf(spec + n, sizeof spec - n - 8, "%d", v);
            p++;
        } else
            while (*p >= '0' && *p <= '9' && n < 40) spec[n++] = *p++;
        if (part == 0) {
            if (*p != '.') break;
            spec[n++] = *p++;
        }
    }
    while (*p && strchr("hlLjzt", *p)) {
        if (*p == 'l' || *p == 'j' || *p == 'z' || *p == 't' || *p == 'L') bytes = 8;
        p++;
    }
    char c = *p;
    uint64_t v = 0;
    double x = 0;
    switch (c) {
    case 'd':
    case 'i':
    case 'u':
    case 'x':
    case 'X':
    case 'o': {
        int64_t sv;
        if (!next_argument(a, bytes, &v)) return NULL;
        sv = bytes == 4 ? (int32_t)v : (int64_t)v;
        spec[n++] = 'l', spec[n++] = 'l', spec[n++] = c, spec[n] = 0;
        if (c == 'd' || c == 'i')
            mg_buf_printf(out, spec, (long long)sv);
        else
            mg_buf_printf(out, spec, (unsigned long long)v);
        break;
    }
    case 'c':
        if (!next_argument(a, 4, &v)) return NULL;
        spec[n++] = 'c', spec[n] = 0;
        mg_buf_printf(out, spec, (int)v);
        break;
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
    case 'a':
    case 'A':
        if (!next_argument(a, 8, &x)) return NULL;
        spec[n++] = c, spec[n] = 0;
        mg_buf_printf(out, spec, x);
        break;
    case 'p':
        if (!next_argument(a, 8, &v)) return NULL;
        spec[n++] = 'p', spec[n] = 0;
        mg_buf_printf(out, spec, (void *)v);
        break;
    case 's': {
        struct mg_buf text = MG_BUF_INIT;
        if (!next_argument(a, 8, &v)) return NULL;
        spec[n++] = 's', spec[n] = 0;
        if (!v)
            mg_buf_adds(&text, "(null)");
        else if (!read_text(a->f, a->lane, v, &text))
            mg_buf_adds(&text, "(bad pointer)");
        mg_buf_printf(out, spec, text.at ? text.at : "");
        mg_buf_release(&text);
        break;
    }
    case '%':
        mg_buf_addc(out, '%');
        break;
    default:
        return NULL;
    }
    return p + 1;
}

static int print_lane(struct emu_frame *f, const struct emu_op *op, uint32_t lane, uint64_t format, uint64_t buffer,
                      struct mg_buf *out)
{
    struct mg_buf text = MG_BUF_INIT;
    if (!read_text(f, lane, format, &text)) emu_fault_access(f, op, (int)lane, format, 1);
    struct args a = {f, lane, buffer, buffer + readable(f, lane, buffer)};
    int n = 0;
    for (const char *p = text.at ? text.at : ""; *p;) {
        if (*p != '%') {
            mg_buf_addc(out, *p++);
            continue;
        }
        const char *next = conversion(p + 1, &a, out);
        if (!next) { /* as CUDA: what cannot be converted is printed as it stands */
            mg_buf_addc(out, *p++);
            continue;
        }
        if (p[1] != '%') n++;
        p = next;
    }
    mg_buf_release(&text);
    return n;
}

static void append(struct mg_device *dev, const struct mg_buf *b)
{
    pthread_mutex_lock(&dev->lock);
    mg_buf_add(&dev->print, b->at, b->n);
    if (dev->print.n > dev->opts.printf_bytes) { /* the oldest lines go */
        size_t drop = dev->print.n - dev->opts.printf_bytes;
        const char *nl = memchr(dev->print.at + drop, '\n', dev->print.n - drop);
        if (nl) drop = (size_t)(nl + 1 - dev->print.at);
        memmove(dev->print.at, dev->print.at + drop, dev->print.n - drop);
        dev->print.n -= drop;
        dev->print.at[dev->print.n] = 0;
    }
    pthread_mutex_unlock(&dev->lock);
}

void emu_print_flush(struct mg_device *dev)
{
    pthread_mutex_lock(&dev->lock);
    struct mg_buf b = dev->print;
    dev->print = (struct mg_buf)MG_BUF_INIT;
    pthread_mutex_unlock(&dev->lock);
    if (b.n) {
        if (dev->opts.print)
            dev->opts.print(dev->opts.print_user, b.at, b.n);
        else
            for (size_t at = 0; at < b.n;) {
                ssize_t w = write(STDOUT_FILENO, b.at + at, b.n - at);
                if (w <= 0) break;
                at += (size_t)w;
            }
    }
    mg_buf_release(&b);
}

/* ---- the rest -------------------------------------------------------------------------------------- */

uint64_t emu_heap_alloc(struct mg_device *dev, uint64_t bytes)
{
    uint64_t at = 0;
    pthread_mutex_lock(&dev->lock);
    uint64_t cost = (bytes + 255) & ~255ull;
    if (bytes && cost >= bytes && dev->heap_used + cost <= dev->opts.heap_bytes &&
        (at = mg_mem_alloc(bytes, 0, MG_ALLOC_HEAP)))
        dev->heap_used += cost;
    if (at) mg_defined_fresh(at, bytes);
    pthread_mutex_unlock(&dev->lock);
    return at;
}

bool emu_heap_free(struct mg_device *dev, uint64_t at)
{
    struct mg_alloc a;
    if (!mg_mem_find(at, &a) || a.base != at || a.kind != MG_ALLOC_HEAP || !mg_mem_free(at)) return false;
    pthread_mutex_lock(&dev->lock);
    dev->heap_used -= (a.bytes + 255) & ~255ull;
    pthread_mutex_unlock(&dev->lock);
    return true;
}

static void assert_fail(struct emu_frame *f, const struct emu_op *op, const struct emu_call *call, uint32_t lane)
{
    struct mg_buf b[3] = {MG_BUF_INIT, MG_BUF_INIT, MG_BUF_INIT}, line = MG_BUF_INIT;
    uint64_t message = emu_argument(f, call, 0, lane, NULL, 0), file = emu_argument(f, call, 1, lane, NULL, 0),
             number = emu_argument(f, call, 2, lane, NULL, 0), function = emu_argument(f, call, 3, lane, NULL, 0);
    const struct emu_warp *w = f->w;
    if (!read_text(f, lane, message, &b[0])) mg_buf_adds(&b[0], "?");
    if (!read_text(f, lane, file, &b[1])) mg_buf_adds(&b[1], "?");
    if (!read_text(f, lane, function, &b[2])) mg_buf_adds(&b[2], "?");
    mg_buf_printf(&line, "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.",
                  b[1].at ? b[1].at : "", (unsigned)number, b[2].at ? b[2].at : "", w->cta->id[0], w->cta->id[1],
                  w->cta->id[2], w->tid[0][lane], w->tid[1][lane], w->tid[2][lane], b[0].at ? b[0].at : "");
    char text[400];
    snprintf(text, sizeof text, "%s", line.at);
    mg_buf_addc(&line, '\n');
    if (write(STDERR_FILENO, line.at, line.n) < 0) {
    } /* CUDA prints it too; nothing to do when it cannot */
    mg_buf_release(&line);
    for (int i = 0; i < 3; i++) mg_buf_release(&b[i]);
    emu_fault(f, op, MG_FAULT_ASSERT, (int)lane, 0, 0, "%s", text);
}

void emu_builtin_run(struct emu_frame *f, const struct emu_op *op, uint32_t mask)
{
    const struct emu_call *call = op->ext;
    struct mg_device *dev = f->wk->dev;
    struct mg_buf out = MG_BUF_INIT;
    switch ((enum emu_builtin)op->sub) {
    case EMU_BUILTIN_VPRINTF:
        EMU_FOR_LANES(i, mask)
        {
            int n =
                print_lane(f, op, i, emu_argument(f, call, 0, i, NULL, 0), emu_argument(f, call, 1, i, NULL, 0), &out);
            emu_result(f, call, i, (uint64_t)(uint32_t)n);
        }
        if (out.n) append(dev, &out);
        break;
    case EMU_BUILTIN_MALLOC:
        EMU_FOR_LANES(i, mask) emu_result(f, call, i, emu_heap_alloc(dev, emu_argument(f, call, 0, i, NULL, 0)));
        emu_epoch(f->wk);
        break;
    case EMU_BUILTIN_FREE:
        EMU_FOR_LANES(i, mask)
        {
            uint64_t at = emu_argument(f, call, 0, i, NULL, 0);
            if (at && !emu_heap_free(dev, at))
                emu_fault(f, op, MG_FAULT_TRAP, (int)i, at, 0, "free of 0x%" PRIx64 ", which malloc did not return",
                          at);
        }
        emu_epoch(f->wk);
        break;
    case EMU_BUILTIN_ASSERT:
        assert_fail(f, op, call, (uint32_t)emu_first(mask));
        break;
    default:
        emu_child_builtin(f, op, mask);
        break;
    }
    mg_buf_release(&out);
}
