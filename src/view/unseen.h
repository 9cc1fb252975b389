/* Memory instructions that tools which look at accesses (patch.h, mg_access_of) do not see: textures and surfaces, bulk
 * and tensor copies, matrix loads and stores, barriers in memory. They are named and counted, never silently absent.
 * From the blocks' opcodes alone, in the process that reports. */
#ifndef MG_VIEW_UNSEEN_H
#define MG_VIEW_UNSEEN_H

#include "view/result.h"

/* What an instruction of this dotted text is, in words; NULL: it reaches no memory, or as an access that is seen. */
const char *mg_unseen_kind(const char *op);
/* Member "not_looked_at" of an open object, and a line at the first table for each kernel that has such instructions.
 * bulk: the tool sees bulk copies. */
void mg_unseen_tell(const struct mg_tool_result *r, struct mg_table *t, struct mg_json *j, bool bulk);

#endif
