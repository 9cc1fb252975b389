/* The tools of the session and what a launch hands them (tools.c, host.c, objects.c). */
#ifndef MG_INJECT_TOOLS_H
#define MG_INJECT_TOOLS_H

#include "inject/run.h"
#include "inject/twin.h"
#include "tool/host.h"

/* The set that launches run with from now on; 0: native, for this reason. */
uint32_t mg_tools_active(enum mg_reason *why);
bool mg_tools_any(void);   /* one that instruments was given */
void mg_tools_begin(void); /* those of the configuration, and those that announced themselves */
/* One more, as -t names it; effective from the next launch. False: `why` says why not. */
bool mg_tools_add(const char *spec, char *why, size_t room);
void mg_tools_end(void);
const struct mg_tool_host *mg_tools_host(void);                                           /* host.c */
void mg_objects_each(void (*fn)(const struct mg_host_object *o, void *user), void *user); /* objects.c */
uint32_t mg_tools_list(uint32_t set, struct mg_use *uses, uint32_t *at); /* of a set; at: number in the session */
void mg_tools_tell(struct mg_variant *v); /* to the store: what they placed; under the session's lock */
/* Fills the words of tools; per launch. */
bool mg_tools_words(const struct mg_run *r, uint64_t *words); /* false: nobody wants any */
void mg_host_variable(uint64_t at,
                      uint64_t bytes); /* a module's variable, or what a graph's node allocates, now known (host.c) */
void mg_tools_lists(struct mg_run *r, mg_write_fn write); /* the same of their lists */
void mg_tools_running(const struct mg_run *r, uint32_t region,
                      const uint64_t *list); /* the list of one that runs, for tool.read */
/* Cells of one launch, or of n replays since `before` was read (NULL: since they were 0). Their hash. k: its kernel on
 * the time line, NULL: it is not there. */
struct mg_timeline_kernel;
uint64_t mg_tools_ended(const struct mg_run *r, uint64_t launch, const uint64_t *raw, const uint64_t *before,
                        uint64_t replays, bool complete, struct mg_timeline_kernel *k);
/* The set without those tools whose sample the next launch of the kernel is not in (tools.c). */
uint32_t mg_tools_draw(struct mg_code *c, uint32_t set);

#endif
