/* Few names as one text, each once: "cp.async, wgmma, ...", for messages and JSON. */
#ifndef MG_BASE_NAMES_H
#define MG_BASE_NAMES_H

#include "base/compiler.h"

/* Is the name one of the list's, with this character and a space between them? */
bool mg_names_have(const char *list, char between, const char *name);
/* Adds it, with a comma; behind the last that `room` bytes hold stands "...". */
void mg_names_add(char *list, size_t room, const char *name);

#endif
