/* Runs a tool of the list over a kernel on the emulator and gives what its profile says, without a driver
 * and without a profile on disk. */
#ifndef MG_TESTS_UNIT_TOOL_RUN_H
#define MG_TESTS_UNIT_TOOL_RUN_H

#include <stdbool.h>
#include <stdint.h>

#define TOOL_HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"
#define TOOL_REGS ".reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .pred %p<8>; .reg .f32 %f<8>;\n"
/* %r1: thread in the grid; %rd1: [o]; %r9: [n] */
#define TOOL_ENTRY                                                                                                     \
    ".visible .entry k (.param .u64 o, .param .u32 n)\n{\n" TOOL_REGS                                                  \
    "ld.param.u64 %rd1, [o]; ld.param.u32 %r9, [n]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mad.lo.u32 %r1, %r2, %r3, %r1;\n"

struct tool_shape {
    uint32_t grid, block, n;
    uint32_t sm; /* 0: as the PTX says; > 0: code as for a GPU, 4 copies of cells */
    bool faulty; /* the kernel alone is not run */
};
/* What `profile` writes: "{...}", malloc'd; NULL when it failed (the test, too). Outputs of the twin and of
 * the kernel as it was must be equal. `out` is 256 KiB of zeroes,
 * the only live allocation. */
char *tool_run_json(const char *tool, const char *args, const char *ptx, const struct tool_shape *s);
/* The same as CSV-like text: "table|value|value...\n" for each row, in order. */
char *tool_run_rows(const char *tool, const char *args, const char *ptx, const struct tool_shape *s);

#endif
