/* From the name of a tool to its struct: the list of tools.def, or a shared object (plugin.h) whose
 * stamp says that it was built with the same headers. In the application as well: no message here. */
#include "tool/spec.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/plugin.h"

char *mg_tool_spec_next(const char **at)
{
    char *text = malloc(strlen(*at) + 1), *to = text;
    if (!text) {
        *at += strlen(*at);
        return NULL;
    }
    for (; **at && **at != ';'; ++*at) {
        if (**at == '\\' && (*at)[1]) ++*at;
        *to++ = **at;
    }
    *to = 0;
    *at += **at == ';';
    return text;
}

void mg_tool_spec_join(struct mg_buf *list, const char *spec)
{
    if (list->n) mg_buf_addc(list, ';');
    for (; *spec; spec++) {
        if (*spec == ';' || *spec == '\\') mg_buf_addc(list, '\\');
        mg_buf_addc(list, *spec);
    }
}

static bool is_path(const char *name)
{
    size_t n = strlen(name);
    return strchr(name, '/') || (n > 3 && !strcmp(name + n - 3, ".so"));
}

/* Opens our own shared core for tools that are linked with it. The loader then finds it by its name, which carries the
 * stamp. */
static bool open_core(void)
{
    static const char *const places[] = {"..", ".", "../lib/margay",
                                         "margay"}; /* from driver/, its own folder, bin/ and lib/ */
    char dir[PATH_MAX], path[PATH_MAX + 64];
    Dl_info info;
    if (!dladdr((const void *)(uintptr_t)open_core, &info) || !realpath(info.dli_fname, dir)) {
        ssize_t n = readlink("/proc/self/exe", dir, sizeof dir - 1);
        if (n <= 0) return false;
        dir[n] = 0;
    }
    char *slash = strrchr(dir, '/');
    if (slash) *slash = 0;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(path, sizeof path, "%s/%s/" MG_TOOL_CORE ".%.12s", dir, places[i], MG_TOOL_STAMP);
        if (dlopen(path, RTLD_NOW | RTLD_LOCAL)) return true; /* stays open */
    }
    return false;
}

static enum mg_err open_library(struct mg_tool_spec *t, struct mg_diag *d)
{
    t->library = dlopen(t->path, RTLD_NOW | RTLD_LOCAL);
    if (!t->library) {
        const char *why = dlerror(), *core = why ? strstr(why, MG_TOOL_CORE ".") : NULL;
        bool ours = core && !strncmp(core + sizeof MG_TOOL_CORE, MG_TOOL_STAMP, 12);
        if (core && !ours)
            return mg_diag_err(d, MG_ERR_INPUT, "tool %s was built with another margay (%.*s): build it again", t->path,
                               (int)strcspn(core, ": "), core);
        if (ours && open_core())
            t->library = dlopen(t->path, RTLD_NOW | RTLD_LOCAL);
        else if (ours)
            return mg_diag_err(d, MG_ERR_INPUT,
                               "tool %s needs " MG_TOOL_CORE ".%.12s, which is not installed beside this margay",
                               t->path, MG_TOOL_STAMP);
        else
            return mg_diag_err(d, MG_ERR_INPUT, "tool %s cannot be opened: %s", t->path, why ? why : "");
    }
    if (!t->library) return mg_diag_err(d, MG_ERR_INPUT, "tool %s cannot be opened: %s", t->path, dlerror());
    const struct mg_tool *const *tool = dlsym(t->library, "mg_tool");
    const char *stamp = dlsym(t->library, "mg_tool_stamp");
    if (!tool || !stamp)
        return mg_diag_err(d, MG_ERR_INPUT, "%s is no tool: it has no mg_tool and mg_tool_stamp (MG_TOOL_PLUGIN)",
                           t->path);
    if (strcmp(stamp, MG_TOOL_STAMP))
        return mg_diag_err(d, MG_ERR_INPUT,
                           "tool %s was built with other headers than this margay (%.32s, not %s): build it again",
                           t->path, stamp, MG_TOOL_STAMP);
    t->tool = *tool;
    return MG_ERR_OK;
}

enum mg_err mg_tool_spec_find(const char *name, const char *path, struct mg_tool_spec *out, struct mg_diag *d)
{
    *out = (struct mg_tool_spec){.name = strdup(name), .args = strdup(""), .path = path ? strdup(path) : NULL};
    enum mg_err err = MG_ERR_OK;
    if (!out->name || !out->args || (path && !out->path))
        err = mg_diag_err(d, MG_ERR_NO_MEMORY, "out of memory");
    else if (path)
        err = open_library(out, d);
    else if (!(out->tool = mg_tool_find(name)))
        err = mg_diag_err(d, MG_ERR_INPUT, "there is no tool named %s (margay tools)", name);
    if (err) mg_tool_spec_close(out);
    return err;
}

enum mg_err mg_tool_spec_open(const char *spec, struct mg_tool_spec *out, struct mg_diag *d)
{
    size_t n = strcspn(spec, ",");
    char *name = strndup(spec, n), *path = name && is_path(name) ? realpath(name, NULL) : NULL;
    if (name && is_path(name) && !path) path = strdup(name); /* dlopen says what is wrong with it */
    *out = (struct mg_tool_spec){0};
    enum mg_err err = name ? mg_tool_spec_find(name, path, out, d) : mg_diag_err(d, MG_ERR_NO_MEMORY, "out of memory");
    free(path);
    if (!err && out->path) { /* a plugin says how it is called */
        free(out->name);
        out->name = strdup(out->tool->name);
    }
    if (!err) {
        free(out->args);
        out->args = strdup(spec[n] ? spec + n + 1 : "");
    }
    if (!err && (!out->name || !out->args)) {
        mg_tool_spec_close(out);
        err = mg_diag_err(d, MG_ERR_NO_MEMORY, "out of memory");
    }
    free(name);
    return err;
}

enum mg_err mg_tool_configure(const struct mg_tool *tool, const char *args, uint32_t gpu_sm, void **conf,
                              struct mg_diag *d)
{
    *conf = NULL;
    if (!tool->configure)
        return *args ? mg_diag_err(d, MG_ERR_INPUT, "tool %s has no options, but got \"%s\"", tool->name, args)
                     : MG_ERR_OK;
    if (!gpu_sm || !tool->gpu_args) return tool->configure(args, conf, d);
    struct mg_buf b = MG_BUF_INIT;
    mg_buf_printf(&b, "%s,sm=%u%s%s", tool->gpu_args, (unsigned)gpu_sm, *args ? "," : "", args);
    enum mg_err err = tool->configure(b.at, conf, d);
    mg_buf_release(&b);
    return err;
}

void mg_tool_spec_close(struct mg_tool_spec *t)
{
    if (t->library) dlclose(t->library);
    free(t->name);
    free(t->args);
    free(t->path);
    *t = (struct mg_tool_spec){0};
}

bool mg_tool_spec_lists(const char *list, const char *name)
{
    size_t n = strlen(name);
    bool found = false;
    for (const char *at = list; at && *at;) {
        char *spec = mg_tool_spec_next(&at);
        found |= spec && !strncmp(spec, name, n) && (!spec[n] || spec[n] == ',');
        free(spec);
    }
    return found;
}
