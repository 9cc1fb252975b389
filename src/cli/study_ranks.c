#include "cli/study_ranks.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/rank.h"
#include "study/comm_part.h"

enum { LOOK_NS = 20 * 1000 * 1000, MOST_LOOKS = 50 * 1800 /* half an hour behind our own end */ };

/* Named by what is asked of what: processes on several hosts agree on that, and a part that an earlier run of the same
 * left behind is the same. */
static enum mg_err part_path(const char *trace, const struct mg_comm *c, uint32_t of, char path[PATH_MAX],
                             struct mg_diag *d)
{
    int n = snprintf(path, PATH_MAX, "%s.%llx.%lu", trace, (unsigned long long)mg_comm_part_of(c), (unsigned long)of);
    return n < PATH_MAX ? MG_ERR_OK : mg_diag_err(d, MG_ERR_INPUT, "%s: the path is too long", trace);
}

static enum mg_err hand_over(const char *trace, uint32_t rank, struct mg_comm *c, struct mg_diag *d)
{
    char path[PATH_MAX];
    struct mg_buf part = MG_BUF_INIT;
    enum mg_err err = part_path(trace, c, rank, path, d);
    mg_comm_part_print(c, &part);
    if (!err) err = mg_io_write(path, part.at, part.n, d); /* whole, or not there */
    mg_buf_release(&part);
    return err;
}

static enum mg_err add_part(const char *trace, uint32_t rank, struct mg_comm *c, struct mg_diag *d)
{
    char path[PATH_MAX], *part = NULL;
    size_t bytes = 0;
    enum mg_err err = part_path(trace, c, rank, path, d);
    for (int i = 0; !err && access(path, F_OK); i++) {
        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
        if (i == MOST_LOOKS)
            err = mg_diag_err(d, MG_ERR_IO, "rank %lu has not answered for half an hour: %s is not there",
                              (unsigned long)rank, path);
    }
    if (!err) err = mg_io_read(path, &part, &bytes, d);
    if (!err) err = mg_comm_part_add(c, part, bytes, d);
    unlink(path);
    free(part);
    return err;
}

enum mg_err study_join_ranks(const char *trace, const struct mg_rank *rank, struct mg_comm *c, struct mg_diag *d)
{
    enum mg_err err = MG_ERR_OK;
    if (rank->rank) return hand_over(trace, (uint32_t)rank->rank, c, d);
    for (uint32_t i = 1; i < rank->size && !err; i++) err = add_part(trace, i, c, d);
    return err;
}
