/* Calls: what one call instruction names, and which functions a kernel reaches (struct
 * mg_callgraph, declared in analysis.h). An indirect call may reach every function whose address
 * the module takes and whose parameters have the shape that the call's prototype states. */
#ifndef MG_ANALYSIS_CALLGRAPH_H
#define MG_ANALYSIS_CALLGRAPH_H

#include "analysis/analysis.h"

#define MG_NO_OPND UINT32_MAX

struct mg_call {                         /* positions count from the node's first operand */
    uint32_t callee, rets, args, target; /* MG_NO_OPND: not there */
    mg_id func;    /* direct call: the function named, as named; 0: indirect or an undeclared name */
    bool indirect; /* the callee is a register */
};
void mg_call_read(const struct mg_module *m, mg_id node, struct mg_call *out);
/* The function with a body behind a name: through declarations and .alias; 0: none in this module. */
mg_id mg_func_body(const struct mg_module *m, mg_id func);
/* May an indirect call with this target list or prototype (0: none given) reach func? */
bool mg_call_may_reach(const struct mg_module *m, mg_id target, mg_id func);
/* May the call enter func, a function with a body? taken: functions whose address is taken (below); NULL: any may be.
 */
bool mg_call_enters(const struct mg_module *m, mg_id node, mg_id func, const bool *taken);
/* By func id: is the address of this function (with a body) taken anywhere in the module? To be freed. */
bool *mg_funcs_taken(const struct mg_module *m);
/* Functions every CUDA device provides, which return to their caller or end the launch. */
bool mg_func_is_builtin(const char *name);
/* The runtime's calls by which a kernel launches kernels. */
bool mg_func_is_device_launch(const char *name);

#endif
