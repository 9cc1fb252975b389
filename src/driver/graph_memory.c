/* Physical memory of graphs: which bytes their allocations occupy, as cuDeviceGetGraphMemAttribute
 * tells it. Addresses belong to nodes from their creation on (graph.c); bytes are counted from a launch:
 * blocks of a pool back the allocations of a launch, a block whose launch has ended or precedes in the
 * same stream is taken again, an allocation that nobody has freed keeps its own, and
 * cuDeviceGraphMemTrim gives back what is idle. This is accounting: the software devices' memory lies
 * at the nodes' addresses all the time. */
#include "driver/graph.h"

#define CHECK(cond)                                                                                                    \
    do {                                                                                                               \
        if (!(cond)) return CUE_INVALID_VALUE;                                                                         \
    } while (0)
#define PAGE (2ull << 20) /* blocks are multiples of it, as pages of an H200 are */

struct block {
    uint64_t bytes;
    cu_device device;
    uint64_t base;               /* allocation it backs or backed last */
    const struct CUstream_st *s; /* of that launch; only compared */
    struct mg_task *end;         /* of that launch */
    bool taken;                  /* by the launch being made */
};
static MG_VEC(struct block) blocks;
static struct {
    uint64_t in_use, used_high, reserved_high;
} totals[MG_DEVICES_MAX];

static bool idle(const struct block *b)
{
    const struct mg_graph_mem *m = mg_graph_mem_of(b->base);
    return !(m && m->live) && b->end->done;
}

static bool may_back(const struct block *b, const struct mg_graph_mem *m, const struct CUstream_st *s)
{
    const struct mg_graph_mem *before = mg_graph_mem_of(b->base);
    if (b->taken || b->bytes < m->bytes || b->device != m->device) return false;
    if (before && before != m && before->live) return false;
    return b->end->done || b->s == s;
}

static struct block *find_block(const struct mg_graph_mem *m, const struct CUstream_st *s)
{
    struct block *best = NULL; /* the smallest */
    for (uint32_t i = 0; i < blocks.n; i++) {
        struct block *b = &blocks.at[i];
        if (may_back(b, m, s) && (!best || b->bytes < best->bytes)) best = b;
    }
    if (best) return best;
    best = mg_vec_push(&blocks);
    *best = (struct block){.bytes = (m->bytes + PAGE - 1) & ~(PAGE - 1), .device = m->device};
    __typeof__(totals[0]) *t = &totals[m->device];
    t->in_use += best->bytes;
    t->used_high = MG_MAX(t->used_high, t->in_use);
    t->reserved_high = MG_MAX(t->reserved_high, t->in_use);
    return best;
}

void mg_graph_mem_launch(const struct CUgraphExec_st *x, const struct CUstream_st *s, struct mg_task *end)
{
    for (uint32_t i = 0; i < x->nodes.n; i++) {
        const struct mg_exec_node *e = &x->nodes.at[i];
        bool again = false; /* an address that nodes allocate one after the other has one block */
        for (uint32_t k = 0; k < i; k++)
            again |= x->nodes.at[k].type == CUNODE_MEM_ALLOC && x->nodes.at[k].mem == e->mem;
        if (e->type != CUNODE_MEM_ALLOC || !e->mem || again) continue;
        struct block *b = find_block(e->mem, s);
        mg_task_ref(end);
        mg_task_unref(b->end);
        b->base = e->mem->base;
        b->s = s;
        b->end = end;
        b->taken = true;
    }
    for (uint32_t i = 0; i < blocks.n; i++) blocks.at[i].taken = false;
}

static cu_result cuDeviceGetGraphMemAttribute(cu_device dev, int attr, void *value)
{
    cu_result r = mg_device_check(dev);
    if (r) return r;
    CHECK(value && attr >= 0 && attr <= 3);
    mg_lock();
    *(uint64_t *)value = attr == 1 ? totals[dev].used_high : attr == 3 ? totals[dev].reserved_high : totals[dev].in_use;
    mg_unlock();
    return CUE_SUCCESS;
}

static cu_result cuDeviceSetGraphMemAttribute(cu_device dev, int attr, void *value)
{
    cu_result r = mg_device_check(dev);
    if (r) return r;
    CHECK(value && (attr == 1 || attr == 3) && !*(uint64_t *)value); /* high marks are only set back */
    mg_lock();
    *(attr == 1 ? &totals[dev].used_high : &totals[dev].reserved_high) = totals[dev].in_use;
    mg_unlock();
    return CUE_SUCCESS;
}

static cu_result cuDeviceGraphMemTrim(cu_device dev)
{
    cu_result r = mg_device_check(dev);
    if (r) return r;
    mg_lock();
    uint32_t kept = 0;
    for (uint32_t i = 0; i < blocks.n; i++) {
        struct block *b = &blocks.at[i];
        if (b->device == dev && idle(b)) {
            totals[dev].in_use -= b->bytes;
            mg_task_unref(b->end);
        } else {
            blocks.at[kept++] = *b;
        }
    }
    blocks.n = kept;
    mg_unlock();
    return CUE_SUCCESS;
}

const struct mg_entry mg_entries_graph_memory[] = {
    MG_ENTRY(cuDeviceGetGraphMemAttribute),
    MG_ENTRY(cuDeviceSetGraphMemAttribute),
    MG_ENTRY(cuDeviceGraphMemTrim),
    {0},
};
