/* Launches by the clock of their device: what the twins of tools with MG_TOOL_SPAN read of it, and where that lies on
 * the host's clock. Software devices' clock is the host's. */
#ifndef MG_INJECT_DEVICE_CLOCK_H
#define MG_INJECT_DEVICE_CLOCK_H

#include "inject/run.h"

/* Will the launch's twin read it? */
bool mg_device_clock_is_read(const struct mg_run *r);
/* When the launch began and ended by it. False: its twin does not read it, or its end did not come. */
bool mg_device_clock_read(const struct mg_run *r, const uint64_t *raw, uint64_t *begin, uint64_t *end);
/* Host less device, modulo 2^64, from all launches so far, this one with its first and last reading included. */
uint64_t mg_device_clock_offset(const struct mg_run *r, uint64_t first, uint64_t last, uint64_t *uncertainty_ns);
/* d with the launch's time by that clock. False: that is not known, and nothing was written. */
bool mg_device_clock_time(const struct mg_run *r, const uint64_t *raw, const struct mg_launch_done *d,
                          struct mg_launch_done *by_clock);

/* How much of the launch's time lay in no other launch that was asked of before, 1 at least. 0: not known. */
uint64_t mg_device_clock_own(const struct mg_run *r, const uint64_t *raw);

#endif
