#include "export/otf2_library.h"

#include <dlfcn.h>
#include <string.h>

static enum mg_err find_functions(struct mg_otf2 *o, struct mg_diag *d)
{
    const struct {
        const char *name;
        void *at;
    } functions[] = {
#define OTF2(result, name, arguments) {"OTF2_" #name, &o->name},
        OTF2_FUNCTIONS(OTF2)
#undef OTF2
    };
    for (size_t i = 0; i < MG_COUNT_OF(functions); i++) {
        void *f = dlsym(o->library, functions[i].name);
        if (!f)
            return mg_diag_err(d, MG_ERR_UNSUPPORTED, "OTF2's library lacks %s: version 3 is needed",
                               functions[i].name);
        memcpy(functions[i].at, &f, sizeof f);
    }
    return MG_ERR_OK;
}

enum mg_err mg_otf2_open(struct mg_otf2 *o, struct mg_diag *d)
{
    static const char *const names[] = {"libopen-trace-format2.so.10", "libotf2.so.10"};
    *o = (struct mg_otf2){0};
    for (size_t i = 0; i < MG_COUNT_OF(names) && !o->library; i++) o->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!o->library)
        return mg_diag_err(
            d, MG_ERR_UNSUPPORTED,
            "needs OTF2's library: libopen-trace-format2.so.10 (Debian: libopen-trace-format2-10) is not here");
    enum mg_err err = find_functions(o, d);
    if (err) mg_otf2_close(o);
    return err;
}

void mg_otf2_close(struct mg_otf2 *o)
{
    if (o->library) dlclose(o->library);
    o->library = NULL;
}
