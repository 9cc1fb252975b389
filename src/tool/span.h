/* A launch by its device's own clock: the cells, and the code that fills them. */
#ifndef MG_TOOL_SPAN_H
#define MG_TOOL_SPAN_H

#include "tool/tool.h"

/* Of tools with MG_TOOL_SPAN, both merged by maximum: the complement of the first CTA's %globaltimer at entry, the last
 * warp's at exit. */
enum { MG_SPAN_BEGIN, MG_SPAN_END, MG_SPAN_CELLS };
void mg_span_place(struct mg_patch *p);

#endif
