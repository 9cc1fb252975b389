/* See live.h. */
#include "store/live.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/io.h"
#include "base/map.h"
#include "base/vec.h"
#include "store/store.h"

#define LEAST_ROOM ((uint64_t)64 << 20)

struct kernel_size {
    uint32_t *block_insts;
    uint32_t n_blocks;
    bool named;
};
struct running {
    uint32_t kernel, device, flags;
    uint64_t stream, ctx;
    uint32_t next_free;
};
struct mg_live {
    pthread_mutex_t lock;
    char path[4096];
    uint8_t *file; /* mapped */
    struct mg_live_head *head;
    MG_VEC(struct kernel_size) kernels;
    MG_VEC(struct running) running;
    uint32_t first_free;      /* of running, plus 1; 0: none */
    struct mg_map running_of; /* launch -> its place in running */
};

/* Not even for a moment is room taken that the database may need. */
static bool has_room(const char *dir)
{
    struct statvfs v;
    return !statvfs(dir, &v) && (uint64_t)v.f_bavail * v.f_frsize >= LEAST_ROOM;
}

static bool map_file(struct mg_live *l)
{
    int fd = open(l->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) return false;
    /* Room on the disk first: a page that cannot be written would be a signal in the application. */
    bool ok = !posix_fallocate(fd, 0, (off_t)MG_LIVE_BYTES);
    void *at = ok ? mmap(NULL, MG_LIVE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    close(fd);
    if (at == MAP_FAILED)
        unlink(l->path);
    else
        l->file = at;
    return at != MAP_FAILED;
}

struct mg_live *mg_live_open(const char *dir, uint32_t pid, uint64_t start_ns)
{
    struct mg_live *l = calloc(1, sizeof *l);
    if (!l) return NULL;
    if ((size_t)snprintf(l->path, sizeof l->path, "%s/live-%u.ring", dir, pid) >= sizeof l->path || !has_room(dir) ||
        !map_file(l)) {
        free(l);
        return NULL;
    }
    pthread_mutex_init(&l->lock, NULL);
    l->head = (struct mg_live_head *)l->file;
    l->head->pid = pid;
    l->head->entry_bytes = sizeof(struct mg_live_entry);
    l->head->start_ns = start_ns;
    __atomic_store_n(&l->head->magic, MG_LIVE_MAGIC, __ATOMIC_RELEASE);
    return l;
}

static void append_name(struct mg_live *l, uint32_t id, const char *name)
{
    size_t bytes = strlen(name), room = (sizeof(struct mg_live_name) + bytes + 7) & ~(size_t)7;
    if (l->head->names_used + room > MG_LIVE_NAMES_BYTES) return; /* readers find it in the database */
    uint8_t *at = l->file + MG_LIVE_NAMES_AT + l->head->names_used;
    struct mg_live_name n = {id, (uint32_t)bytes};
    memcpy(at, &n, sizeof n);
    memcpy(at + sizeof n, name, bytes);
    __atomic_store_n(&l->head->names_used, l->head->names_used + room, __ATOMIC_RELEASE);
}

void mg_live_kernel(struct mg_live *l, uint32_t id, const struct mg_store_kernel *k)
{
    if (!l) return;
    pthread_mutex_lock(&l->lock);
    while (l->kernels.n <= id) *mg_vec_push(&l->kernels) = (struct kernel_size){0};
    struct kernel_size *size = &l->kernels.at[id];
    if (k->sites && !size->n_blocks &&
        (size->block_insts = calloc(k->sites->n_blocks + 1u, sizeof *size->block_insts))) {
        size->n_blocks = k->sites->n_blocks;
        for (uint32_t i = 0; i < size->n_blocks; i++) size->block_insts[i] = k->sites->blocks[i].n_insts;
    }
    if (!size->named && k->name) append_name(l, id, k->name);
    size->named = size->named || k->name;
    pthread_mutex_unlock(&l->lock);
}

void mg_live_launch(struct mg_live *l, uint64_t id, const struct mg_store_launch *launch)
{
    if (!l) return;
    pthread_mutex_lock(&l->lock);
    uint32_t at = l->first_free;
    if (at)
        l->first_free = l->running.at[--at].next_free;
    else
        (void)mg_vec_push(&l->running), at = l->running.n - 1;
    unsigned flags =
        (launch->ran == MG_RAN_INSTRUMENTED ? MG_LIVE_INSTRUMENTED : 0) | (launch->graph ? MG_LIVE_GRAPH : 0);
    l->running.at[at] = (struct running){launch->kernel, launch->device, flags, launch->stream, launch->ctx, 0};
    mg_map_set(&l->running_of, id, at);
    pthread_mutex_unlock(&l->lock);
}

static void remove_running(struct mg_live *l, uint64_t id, uint32_t at)
{
    mg_map_del(&l->running_of, id);
    l->running.at[at].next_free = l->first_free;
    l->first_free = at + 1;
}

void mg_live_drop(struct mg_live *l, uint64_t id)
{
    uint64_t at;
    if (!l) return;
    pthread_mutex_lock(&l->lock);
    if (mg_map_get(&l->running_of, id, &at)) remove_running(l, id, (uint32_t)at);
    pthread_mutex_unlock(&l->lock);
}

static uint64_t count_instructions(const struct kernel_size *k, const uint64_t *counts, uint32_t n)
{
    if (!counts || n != k->n_blocks) return UINT64_MAX;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += counts[i] * k->block_insts[i];
    return sum;
}

void mg_live_wake(struct mg_live *l)
{
    if (!l || !__atomic_exchange_n(&l->head->sleepers, 0, __ATOMIC_SEQ_CST)) return;
    __atomic_fetch_add(&l->head->wake, 1, __ATOMIC_SEQ_CST);
    int saved = errno;
    syscall(SYS_futex, &l->head->wake, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
    errno = saved;
}

void mg_live_done(struct mg_live *l, uint64_t id, const struct mg_store_done *done)
{
    uint64_t at;
    if (!l) return;
    pthread_mutex_lock(&l->lock);
    if (!mg_map_get(&l->running_of, id, &at)) {
        pthread_mutex_unlock(&l->lock);
        return;
    }
    const struct running *r = &l->running.at[at];
    static const struct kernel_size unknown;
    const struct kernel_size *k = r->kernel < l->kernels.n ? &l->kernels.at[r->kernel] : &unknown;
    uint64_t n = l->head->n;
    struct mg_live_entry *e = (struct mg_live_entry *)(l->file + mg_live_entry_at(n));
    __atomic_store_n(&e->sequence, 0, __ATOMIC_RELEASE);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    e->launch = id;
    e->replays = done->replays ? done->replays : 1;
    e->thread_instructions = count_instructions(k, done->threads, done->n_blocks);
    e->warp_instructions = count_instructions(k, done->warps, done->n_blocks);
    e->start_ns = done->start_ns;
    e->time_ns = done->timed ? done->time_ns : UINT64_MAX;
    e->told_ns = mg_now_ns();
    e->stream = r->stream;
    e->ctx = r->ctx;
    e->kernel = r->kernel;
    e->device = r->device;
    e->flags = r->flags | (done->complete ? MG_LIVE_COMPLETE : 0);
    __atomic_store_n(&e->sequence, n + 1, __ATOMIC_RELEASE);
    __atomic_store_n(&l->head->n, n + 1, __ATOMIC_SEQ_CST);
    if (!(r->flags & MG_LIVE_GRAPH)) remove_running(l, id, (uint32_t)at); /* a node of a graph ends again */
    pthread_mutex_unlock(&l->lock);
    mg_live_wake(l);
}

void mg_live_close(struct mg_live *l)
{
    if (!l) return;
    __atomic_store_n(&l->head->closed, 1, __ATOMIC_SEQ_CST);
    mg_live_wake(l);
    unlink(l->path);
    munmap(l->file, MG_LIVE_BYTES);
    for (uint32_t i = 0; i < l->kernels.n; i++) free(l->kernels.at[i].block_insts);
    mg_vec_release(&l->kernels);
    mg_vec_release(&l->running);
    mg_map_release(&l->running_of);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

void mg_live_sweep(const char *dir)
{
    DIR *d = opendir(dir);
    for (const struct dirent *e; d && (e = readdir(d));) {
        unsigned pid;
        int end = 0;
        if (sscanf(e->d_name, "live-%u.ring%n", &pid, &end) != 1 || !end || e->d_name[end]) continue;
        if (kill((pid_t)pid, 0) && errno == ESRCH) unlinkat(dirfd(d), e->d_name, 0);
    }
    if (d) closedir(d);
}
