/* The gate in front of launches: `margay sched` decides when they pass (gate.c). Without a scheduler it costs one load.
 */
#ifndef MG_INJECT_GATE_H
#define MG_INJECT_GATE_H

#include "abi/cu.h"
#include "base/compiler.h"
#include "margay/control.h"

#define MG_GATE_UNKNOWN UINT64_MAX /* a device time that nobody measured */

extern struct mg_control_gate *mg_gate;
/* When the session begins. scheduler: whose turn the first launch waits for, 0: nobody's. */
void mg_gate_begin(struct mg_control_gate *gate, uint32_t scheduler);
static inline bool mg_gate_is_on(void)
{
    return __atomic_load_n(&mg_gate->daemon, __ATOMIC_RELAXED) != 0;
}
/* Before a launch, under no lock of ours: waits for the process' turn, and never for ever. True: the launch is in
 * flight until mg_gate_ended, or mg_gate_undo where the driver refused it. */
bool mg_gate_pass(void);
/* On the thread that passed. refused: else nobody follows it. */
void mg_gate_undo(bool refused);
/* Any thread; takes no lock. Returns the device time that was charged, 1 at least. estimated: nobody has measured it
 * yet. */
uint64_t mg_gate_ended(uint64_t device_ns, bool estimated);
void mg_gate_correct(uint64_t charged_ns, uint64_t device_ns); /* what it was after all */
void mg_gate_charge(uint64_t device_ns);                       /* a kernel of a graph has ended */
/* Does somebody wait for what is in flight? Then its end should be seen at once. */
bool mg_gate_hurries(void);
/* Does the process take turns with others, or may it soon? */
bool mg_gate_has_turns(void);
/* Our own driver: tells the end of all that is in this stream now. */
void mg_gate_follow(cu_stream stream, bool per_thread);

#endif
