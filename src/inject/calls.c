#include "inject/calls.h"

#include <stddef.h>
#include <string.h>

#include "abi/calls.h"
#include "base/compiler.h"
#include "base/io.h"
#include "inject/capture/capture.h"
#include "inject/memory_calls.h"
#include "inject/nvidia/gpu.h"
#include "inject/nvidia/gpu_cupti.h"
#include "inject/range.h"
#include "inject/steps.h"
#include "inject/streams.h"
#include "inject/timeline.h"

#define NUMBERS 4096u /* of correlation, that a thread takes at a time */

static __thread struct mg_call_frame *now;
static __thread uint64_t next_number, last_number;
static bool recorded; /* mg_traced is in front of entries */
/* Which work an entry asks for, waits for, or marks by an event. */
enum asks { ASKS_NOTHING, ASKS_FIRST_STREAM, ASKS_SECOND_STREAM, ASKS_DEFAULT, ASKS_CURRENT, ASKS_FIRST_CONTEXT };
static uint8_t asks_of[MG_FN_COUNT];

static uint64_t number(void)
{
    static uint64_t taken;
    if (next_number == last_number) {
        next_number = __atomic_fetch_add(&taken, NUMBERS, __ATOMIC_RELAXED);
        last_number = next_number + NUMBERS;
    }
    return ++next_number;
}

static void *target(uint32_t entry)
{
    void *ours = mg_capture_target(entry);
    if (ours) return ours;
    return mg_hook_table[entry] ? mg_hook_table[entry] : mg_slots[entry];
}

static enum asks find_asks(uint32_t entry)
{
    const struct mg_cu_call *c = mg_call_of_entry(entry);
    if (!strcmp(c->base, "cuEventRecord") || !strcmp(c->base, "cuEventRecordWithFlags")) return ASKS_SECOND_STREAM;
    bool named = !strcmp(c->base, "cuCtxDestroy") || !strcmp(c->base, "cuCtxDetach");
    if (named || !strcmp(mg_cu_entries[entry].name, "cuCtxSynchronize_v2")) return ASKS_FIRST_CONTEXT;
    if (c->waits == MG_WAITS_stream || !strcmp(c->base, "cuStreamQuery")) return ASKS_FIRST_STREAM;
    return c->waits == MG_WAITS_copy ? ASKS_DEFAULT : c->waits == MG_WAITS_context ? ASKS_CURRENT : ASKS_NOTHING;
}

void mg_calls_fill(bool record)
{
    recorded = record;
    for (uint32_t i = 0; record && i < MG_FN_COUNT; i++) asks_of[i] = (uint8_t)find_asks(i);
    for (uint32_t i = 0; i < MG_FN_COUNT; i++) mg_targets[i] = record ? mg_traced_table[i] : target(i);
}

/* Numbers are given by work: what has none yet has nothing to ask for. */
static void find_asked(struct mg_call_frame *f, const uint64_t registers[6])
{
    enum asks asks = asks_of[f->entry];
    void *ctx = NULL;
    f->stream = f->context = UINT32_MAX;
    if (asks == ASKS_NOTHING || !mg_session.active) return;
    uint64_t handle = asks == ASKS_FIRST_STREAM ? registers[0] : asks == ASKS_SECOND_STREAM ? registers[1] : 0;
    if (asks != ASKS_CURRENT && asks != ASKS_FIRST_CONTEXT)
        f->stream = mg_stream_find(mg_stream_of((cu_stream)(uintptr_t)handle, mg_cu_entries[f->entry].per_thread));
    if (asks == ASKS_FIRST_CONTEXT)
        ctx = (void *)(uintptr_t)registers[0];
    else
        MG_REAL_AS(cuCtxGetCurrent, void **)(&ctx);
    f->context = mg_ctx_find(ctx);
}

void mg_calls_choose(const bool wanted[MG_FN_COUNT])
{
    for (uint32_t i = 0; i < MG_FN_COUNT; i++)
        if (!wanted[i] && !mg_call_work(i) && !mg_steps_rows[i])
            __atomic_store_n(&mg_targets[i], target(i), __ATOMIC_RELAXED);
}

void *mg_calls_pointer(int entry, void *p)
{
    if (entry < 0) return p;
    if (recorded) return mg_traced_table[entry];
    void *ours = mg_capture_target((unsigned)entry);
    return ours ? ours : mg_hook_table[entry] ? mg_hook_table[entry] : p;
}

static void keep_arguments(struct mg_call_frame *f, const uint64_t registers[6], const uint64_t *stack)
{
    const char *letters = mg_call_arguments(f->entry);
    uint32_t n = 0, integers = 0;
    for (; *letters && *letters != '?' && n < MG_CALL_MOST_ARGUMENTS; letters++) {
        if (*letters == 'f') { /* in a vector register */
            f->args[n++] = 0;
            continue;
        }
        uint64_t word = integers < 6 ? registers[integers] : stack[integers - 6];
        f->args[n++] = *letters == 'u' || *letters == 'i' ? (uint32_t)word : word;
        integers++;
    }
    f->n_args = n;
}

void *mg_calls_enter(struct mg_call_frame *f, uint32_t entry, const uint64_t registers[6], const uint64_t *stack)
{
    f->entry = entry;
    f->function = NULL;
    f->outer = now;
    f->caller = (const void *)(uintptr_t)stack[-1];
    f->wanted = !mg_inside && mg_timeline_wants(entry) && mg_window_is_open();
    f->n_args = 0;
    f->correlation = 0;
    f->work = NULL;
    f->step = mg_steps_on && !mg_inside && mg_steps_rows[entry];
    f->order = f->step ? mg_steps_take() : 0;
    bool pair = mg_timeline.pairs && !mg_inside && mg_call_work(entry) && mg_window_is_open();
    if (f->wanted) f->correlation = number();
    if (pair || f->step || (f->wanted && (mg_timeline.arguments || mg_memory_calls[entry])))
        keep_arguments(f, registers, stack);
    if (f->wanted) find_asked(f, registers);
    f->stack = f->wanted && mg_timeline.stacks ? mg_timeline_stack(f) : 0;
    now = f;
    f->begin_ns = f->wanted || pair ? mg_now_ns() : 0;
    if (pair) f->work = mg_gpu_work_begin(f);
    return target(entry);
}

void mg_calls_leave(struct mg_call_frame *f, cu_result result)
{
    if (mg_timeline.cupti && result && f->correlation && !f->function) mg_cupti_failed(f);
    if (f->work) mg_gpu_work_end(f, result);
    if (f->step) mg_steps_call(f, result);
    if (f->wanted) mg_timeline_call(f, result, mg_now_ns());
    now = f->outer;
}

static void enter_runtime(struct mg_call_frame *f, struct mg_runtime_function *function)
{
    f->outer = now;
    f->function = function;
    f->step = false;
    f->layer = function->layer ? function->layer : MG_LAYER_runtime;
    f->work = NULL;
    f->n_args = 0;
    f->correlation = f->stack = 0;
    f->wanted = !mg_inside && mg_timeline_wants_runtime(function) && mg_window_is_open();
    f->class_ = function->class_;
    f->stream = f->context = UINT32_MAX;
    if (f->wanted) f->correlation = number();
    now = f;
    f->begin_ns = f->wanted ? mg_now_ns() : 0;
}

const struct mg_runtime_link mg_runtime_link = {sizeof mg_runtime_link, enter_runtime, mg_calls_leave,
                                                mg_timeline_wants_runtime, mg_timeline_link};

/* Of the driver's call; where those are not recorded, of the runtime's around it. */
uint64_t mg_calls_correlation(void)
{
    const struct mg_call_frame *f = now;
    while (f && !f->correlation) f = f->outer;
    return f ? f->correlation : 0;
}

const struct mg_call_frame *mg_calls_recorded(void)
{
    return now && now->correlation && !now->function ? now : NULL;
}

uint64_t mg_calls_begin_ns(void)
{
    return now ? now->begin_ns : 0;
}

void mg_calls_forget(void)
{
    if (now) now->wanted = false;
}

void *mg_calls_caller(void *found)
{
    return now ? (void *)(uintptr_t)now->caller : found;
}
