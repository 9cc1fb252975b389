/* The formats, and what their writers share: launches in order, files. */
#include "export/accesses.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

static const struct mg_convert_format *const formats[] = {&mg_convert_csv, &mg_convert_thesis, &mg_convert_cudamemtrace,
                                                          &mg_convert_accelsim};

const struct mg_convert_format *mg_convert_at(uint32_t ix)
{
    return ix < MG_COUNT_OF(formats) ? formats[ix] : NULL;
}

const struct mg_convert_format *mg_convert_find(const char *name)
{
    for (uint32_t i = 0; i < MG_COUNT_OF(formats); i++)
        if (!strcmp(formats[i]->name, name)) return formats[i];
    return NULL;
}

enum mg_err mg_convert_each(struct mg_accesses *a, const struct mg_convert_opts *o, struct mg_converted *out, bool all,
                            enum mg_err (*fn)(void *user, const struct mg_trace_step *s, struct mg_diag *d), void *user,
                            struct mg_diag *d)
{
    uint64_t n;
    const struct mg_trace_step *s = mg_accesses_steps(a, &n);
    enum mg_err err = MG_ERR_OK;
    for (uint64_t i = 0; i < n && !err; i++) {
        bool launch = s[i].kind == MG_STEP_LAUNCH;
        if (launch && (s[i].launch < o->first || s[i].launch > o->last)) continue;
        if (launch && !(s[i].flags & MG_STEP_TRACED))
            out->native++;
        else if (launch)
            out->launches++;
        if (launch || all) err = fn(user, &s[i], d);
    }
    return err;
}

enum mg_err mg_convert_create(struct mg_io_part *p, const char *folder, const char *name, struct mg_diag *d)
{
    struct mg_buf path = MG_BUF_INIT;
    *p = (struct mg_io_part){.file = stdout};
    if (!folder && !strcmp(name, "-")) return MG_ERR_OK;
    mg_buf_printf(&path, "%s%s%s", folder ? folder : "", folder ? "/" : "", name);
    enum mg_err err = mg_io_part_open(p, path.at, d);
    mg_buf_release(&path);
    return err;
}

enum mg_err mg_convert_finish(struct mg_io_part *p, enum mg_err err, struct mg_diag *d)
{
    if (p->path || !p->file) {
        enum mg_err end = mg_io_part_close(p, MG_ERR_OK, d);
        return err ? err : end;
    }
    bool bad = fflush(stdout) || ferror(stdout);
    return err || !bad ? err : mg_diag_err(d, MG_ERR_IO, "cannot write standard output: %s", strerror(errno));
}

/* Files of another run beside the new ones would be taken for the same trace. */
enum mg_err mg_convert_make_folder(const char *path, struct mg_diag *d)
{
    bool used = false;
    if (!mkdir(path, 0777)) return MG_ERR_OK;
    if (errno != EEXIST) return mg_diag_err(d, MG_ERR_IO, "cannot make %s: %s", path, strerror(errno));
    DIR *dir = opendir(path);
    if (!dir) return mg_diag_err(d, MG_ERR_IO, "cannot look into %s: %s", path, strerror(errno));
    for (struct dirent *e; !used && (e = readdir(dir));) used = strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
    closedir(dir);
    return used ? mg_diag_err(d, MG_ERR_IO, "%s holds files already: name a folder that is new or empty", path)
                : MG_ERR_OK;
}
