/* The documents of docs/ in the program: `margay help` prints them (docs.c). */
#ifndef MG_CLI_DOCS_H
#define MG_CLI_DOCS_H

#include "base/buf.h"

/* "docs/findings.md", "tools/ctas.md", "findings": its text; NULL: there is none. */
const char *mg_doc_find(const char *name);
void mg_doc_list(struct mg_buf *out);
/* What docs/findings.md says of a rule; false: nothing. */
bool mg_doc_rule(const char *rule, struct mg_buf *out);

#endif
