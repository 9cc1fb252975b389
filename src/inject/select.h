/* The user's choice of launches and tools (select.c). */
#ifndef MG_INJECT_SELECT_H
#define MG_INJECT_SELECT_H

#include "margay/control.h"
#include "inject/run.h"

/* The user's choice (select.c). NULL: instrument it; else why not. `number`: of the launch. */
void mg_select_begin(void);
void mg_select_end(void);
void mg_select_name(uint32_t at, const char *name); /* tells the control page of a tool */
void mg_select_known(uint32_t at);                  /* it can be switched from now on */
/* In which tool the process is: `margay run` names it when the process dies there. */
void mg_select_opening(const char *path);
void mg_select_enter(uint32_t tool, enum mg_control_call call);
void mg_select_leave(uint32_t tool);
bool mg_select_is_on(uint32_t tool);
uint32_t mg_select_tools(void); /* those that are switched on; adds what somebody wishes first */
enum mg_reason mg_select_why_not(const struct mg_run *r, uint64_t number);
/* --repeat: what the next launch shall be, whatever was chosen. */
enum mg_select_turn { MG_TURN_ANY, MG_TURN_NATIVE, MG_TURN_TWIN };
void mg_select_taken(void); /* the driver has taken a launch */
void mg_select_force(enum mg_select_turn turn);
void mg_select_ended(const struct mg_run *r, uint64_t hash, bool timed,
                     uint64_t time_ns); /* hash: of all that it counted */

#endif
