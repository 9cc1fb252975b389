/* What a tool may ask of the measured process, given to tool.begin. Valid until tool.end; any thread may
 * call it. Callbacks must not call back into it. */
#ifndef MG_TOOL_HOST_H
#define MG_TOOL_HOST_H

#include "base/compiler.h"

enum mg_host_kind { MG_HOST_DEVICE, MG_HOST_MANAGED, MG_HOST_PINNED, MG_HOST_VARIABLE /* of a module */ };
struct mg_host_allocation {
    uint64_t address, bytes, id; /* id: as arguments of launches name it in the profile */
    enum mg_host_kind kind;
};
struct mg_host_module {
    const char *id; /* as in the profile */
    const char *ptx;
    size_t bytes;
};
struct mg_host_symbol {
    const char *module, *name;
    uint64_t bytes;
    bool is_const, is_kernel;
};
enum mg_host_object_kind { MG_HOST_ARRAY, MG_HOST_MIPMAP, MG_HOST_TEXTURE, MG_HOST_SURFACE };
struct mg_host_object { /* sizes and format (of cuda.h) of arrays; of: handle of the array or address that a texture or
                           surface looks at */
    uint64_t handle, id, of;
    enum mg_host_object_kind kind;
    size_t width, height, depth;
    unsigned channels, levels;
    int format;
};
struct mg_trace_writer; /* trace/writer.h */
struct mg_tool_host {
    size_t size;
    const char *device_kind; /* "nvidia" "cpu" "emu" */
    uint32_t sm;             /* 90 */
    bool timeline;           /* calls and device work are recorded (-t timeline) */
    const char *folder;      /* of the profile: a tool may keep files of its own there; NULL: none */
    /* Live allocations, in order of address; modules that were loaded, their variables and kernels. */
    void (*allocations)(void (*fn)(const struct mg_host_allocation *a, void *user), void *user);
    void (*modules)(void (*fn)(const struct mg_host_module *m, void *user), void *user);
    void (*objects)(void (*fn)(const struct mg_host_object *o, void *user),
                    void *user); /* arrays, textures, surfaces, in order of creation */
    void (*symbols)(void (*fn)(const struct mg_host_symbol *s, void *user), void *user);
    /* One line on stderr, "margay: " in front; nothing with -q. */
    void (*say)(const char *line);
    /* Keeps JSON under tools.<tool>.<key>: the last one stays. */
    void (*result)(const char *tool, const char *key, const char *json);
    /* The trace file of the process, opened now; NULL: there is none, which was said. */
    struct mg_trace_writer *(*trace)(void);
};

#endif
