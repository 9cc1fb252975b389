#include "cli/pictures.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/io.h"

struct mg_pictures mg_pictures_begin(const char *dir, struct mg_diag *d)
{
    struct mg_pictures p = {dir, d, MG_ERR_OK};
    if (mkdir(dir, 0777) && errno != EEXIST) p.err = mg_diag_err(d, MG_ERR_IO, "%s: %s", dir, strerror(errno));
    return p;
}

static void write_one(struct mg_pictures *p, const char *name, const char *kind, const char *text)
{
    struct mg_buf path = MG_BUF_INIT;
    mg_buf_printf(&path, "%s/%s.%s", p->dir, name, kind);
    if (!p->err) p->err = mg_io_write(path.at, text, strlen(text), p->d);
    mg_buf_release(&path);
}

void mg_pictures_write(const char *name, const char *svg, const char *dot, void *user)
{
    write_one(user, name, "svg", svg);
    if (dot) write_one(user, name, "dot", dot);
}
