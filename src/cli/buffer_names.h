/* What the buffers are called that the instructions of a trace access: as tool memory names them, from the profile's
 * PTX and the arguments of its launches. */
#ifndef MG_CLI_BUFFER_NAMES_H
#define MG_CLI_BUFFER_NAMES_H

#include "store/store.h"
#include "trace/access.h"

struct mg_buffer_names;
/* p: the profile at dir, where it is open already; it outlives the names. A dir without one gives no names. */
struct mg_buffer_names *mg_buffer_names_open(const char *dir, const struct mg_recording *p);
void mg_buffer_names_free(struct mg_buffer_names *b);
const char *mg_buffer_names_find(void *names, const struct mg_access_site *s); /* NULL: not known */
/* What of that does not depend on launches. */
const char *mg_buffer_names_place(void *names, const struct mg_access_site *s);

#endif
