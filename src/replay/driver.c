#include "replay/replay.h"

#include <dlfcn.h>

struct mg_replay_driver mg_cu;
void (*mg_replay_tell)(uint64_t at, uint64_t bytes);

bool mg_replay_driver_open(const char **missing)
{
    void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    *missing = "libcuda.so.1";
    if (!lib) return false;
#define E(name, args)                                                                                                  \
    *missing = #name;                                                                                                  \
    if (!(*(void **)&mg_cu.name = dlsym(lib, #name))) return false;
    MG_REPLAY_ENTRIES(E)
#undef E
    *(void **)&mg_replay_tell = dlsym(RTLD_DEFAULT, "margay_replay_memory");
    return true;
}
