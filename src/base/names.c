#include "base/names.h"

#include <stdio.h>
#include <string.h>

bool mg_names_have(const char *list, char between, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = list; *at; at++) {
        if (!strncmp(at, name, n) && (!at[n] || at[n] == between)) return true;
        at = strchr(at, between);
        if (!at || !*++at) break; /* the space */
    }
    return false;
}

void mg_names_add(char *list, size_t room, const char *name)
{
    static const char more[] = ", ...";
    size_t used = strlen(list), n = strlen(name);
    bool is_cut = used >= sizeof more - 1 && !strcmp(list + used - (sizeof more - 1), more);
    if (is_cut || mg_names_have(list, ',', name)) return;
    if (used + 2 + n + sizeof more <= room)
        snprintf(list + used, room - used, "%s%s", used ? ", " : "", name);
    else if (used && used + sizeof more <= room)
        memcpy(list + used, more, sizeof more);
}
