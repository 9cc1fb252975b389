// What words of tables and findings mean: over heads of columns, in the list behind the key ?, under pictures. A word of one table
// alone is "table: word".

export const words = {
  'affine': 'of the executions by a warp, those whose lanes have values with one step between neighbours, not 0',
  'block': 'a basic block: instructions that run one after another, with no way in or out between; numbered in the order of the PTX',
  'buffer': 'the argument of the kernel, or the variable, whose memory is accessed; empty where the address comes from memory',
  'clock: time': 'from the first CTA\'s begin to the last one\'s end, summed over launches',
  'clock: span': 'from the first CTA\'s begin to the last one\'s end, summed over launches',
  'conflicts': 'bank conflicts: passes through shared memory beyond the first of each group of lanes that are served together: all 32 up to 4 bytes a lane, halves at 8 bytes, quarters at 16. 32 passes where 4 would do are 28 conflicts',
  'CTA': 'a block of threads (thread block) that runs on one multiprocessor',
  'CTA imbalance': 'the longest CTA over the mean, in cycles; 1 is even',
  'divergent': 'executions of a branch by a warp in which some lanes jumped and some did not; a warp that comes again counts again',
  'efficiency': 'bytes that the accesses ask for, of the bytes of the sectors that they touch',
  'exclusive': 'cycles of threads in the function without the calls made from it',
  'guard true': 'threads whose guard (the predicate before a PTX instruction, as in @%p1 bra) was true, so that it had an effect',
  'idle slots': 'lanes that do nothing while their warp executes an instruction, one for each instruction and lane, charged to the innermost branch that split the warp',
  'lanes: idle slots': 'lanes that do nothing while their warp executes an instruction, one for each instruction and lane',
  'imbalance': 'the longest CTA over the mean, in instructions; 1 is even. What equal CTAs would save stands beside it',
  'inclusive': 'cycles of threads from the function\'s entry to its return',
  'instruction': 'the PTX instruction: operation, memory, type',
  'lane use': 'of a warp\'s 32 lanes, how many are active, over the block\'s instructions',
  'lanes': 'the threads of a warp, 32; as a share: how many of them are active',
  'launch': 'one start of a kernel by the program',
  'mostly': 'the most frequent pattern of a request\'s addresses. one address: of all lanes; in order, aligned: from a multiple of 128 bytes on; in order: from elsewhere; steps: all lanes as many bytes apart; no one step: all else, also steps of parts of a warp. In JSON: same, aligned, unit, stride_32, stride_128, stride_more, irregular',
  'NaN': 'values that are not a number',
  'not taken': 'threads that went on behind the jump of the PTX: often the body of an if, since compilers jump past it',
  'taken': 'threads for which the PTX jumped: often those for which the condition of an if does not hold, since compilers jump past its body',
  'of kernel': 'of all lane slots of the kernel\'s instructions',
  'range': 'least and greatest value, in the order of the type',
  'bits': 'how many bits the range needs',
  'redundant': 'values that are, bit for bit, what this thread loaded or stored by this instruction the time before. A constant that each thread loads once is uniform, not redundant',
  'registers': 'registers of a thread',
  'requests': 'executions of the instruction by a warp with at least one active lane',
  'equal CTAs save': 'share of the time of instructions that as many CTAs of equal work would save, when multiprocessors take CTAs in order: the counts are exact, the order is a model. The finding counts waits, too',
  'sectors': 'aligned 32 bytes of global memory that a warp\'s request touches; 4 do for 32 lanes of 4 bytes in order',
  'share': 'of the kernel\'s thread instructions',
  'SM imbalance': 'the busiest multiprocessor over the mean of all; 1 is even',
  'exact': 'of a finding\'s measure: it is a count. What fixing gains is an estimate all the same',
  'by a model': 'of a finding\'s measure: it needs a model of the device (its registers and shared memory, its peaks), or times. What fixing gains is an estimate in any case',
  'by the model': 'how long a kernel takes by what was counted: between the largest of its parts on a multiprocessor (instructions, sectors, passes, atomics) and their sum, and no less than a warp by itself takes (docs/findings.md)',
  'a warp by itself': 'cycles of one warp from begin to end if no other is in its way: most of them it waits for memory',
  'definition': 'a line that defines a name which lines with instructions use',
  'launch (at a line)': 'a line that launches this kernel; of a template, it may be another instance',
  'verdict': 'what holds a kernel up (its bytes, its instructions, too few CTAs). It has no line to fix and no estimate of a gain: it says which findings matter, and what else to change',
  'gain': 'estimate of what fixing the whole of a finding saves, of all kernels\' time where a GPU measured it, else of their work as counted: warp instructions, sectors, passes through shared memory, atomics (docs/findings.md)',
  'tail': 'share of the multiprocessors\' time spent waiting for the last one',
  'thread entries': 'how often threads entered the block',
  'thread instructions': 'instructions times the active threads that executed them',
  'uniform': 'of the executions by a warp, those with one value in all lanes',
  'values': 'values loaded or stored: lanes times elements times executions',
  'warp': '32 threads that execute instructions together',
  'warp entries': 'how often warps entered the block, with any number of lanes',
  'warp instructions': 'instructions times the warps that executed them',
  'wasted': 'bytes that sectors carry and nobody asked for: 32 for each sector beyond what the bytes would fill',
  'extra passes': 'passes through shared memory that bank conflicts cost, summed over requests. They move no bytes of the device\'s memory',
  'waves': 'how many CTAs a multiprocessor ran one after another',
  'zero': 'values that are 0',
  'min': 'cycles of the shortest CTA', 'median': 'cycles of the CTA in the middle', 'max': 'cycles of the longest CTA',
  'latency: mean': 'cycles until a value was there, of one load by a warp', 'latency: median': 'half of the loads took no longer', 'latency: 95 %': '95 of 100 loads took no longer',
  'latency: cycles': 'cycles that warps waited, summed', 'latency: executions': 'executions by a warp',
  'ctas: least': 'thread instructions of the CTA with the fewest', 'ctas: mean': 'thread instructions of a CTA, the mean', 'ctas: most': 'thread instructions of the CTA with the most',
  'ctas: longest': 'number of the CTA with the most instructions', 'ctas: shape': 'how instructions are spread over CTAs. even; few long: few have far more than the others; rising, falling: they grow or shrink with the CTA\'s number; spread: all else',
  'CTAs': 'CTAs that were counted', 'clock: CTAs': 'CTAs that ran; of more than a launch has room for, every nth has its cycles taken: a note says so', 'launches': 'launches that were counted',
  'calls': 'threads that entered the function', 'a call': 'cycles of one thread\'s call, the mean', 'function': 'a function that was not inlined',
  'read': 'bytes that threads read', 'written': 'bytes that threads wrote', 'accesses': 'threads that executed it with a true guard', 'space': 'the kind of memory',
  'instructions': 'PTX instructions of the block', 'static': 'as they stand in the PTX, each once', 'opcode': 'the operation of PTX instructions, with type', 'threads': 'executions by active threads', 'warps': 'executions by warps', 'thread': 'executions by active threads',
  'heat': 'how much of the kernel\'s instructions, as a bar', 'leads to': 'blocks that can come next; ^: the edge leads back',
  'guards: lanes': 'active lanes at the instruction, summed over its executions', 'true': 'of the active lanes, those whose guard was true', 'none true': 'executions by a warp in which no lane\'s guard was true',
  '+-': 'bound of the figure beside it at 95 %, as some launches alone were counted',
  'times': 'how often', 'address': 'the first that was accessed', 'kind': 'read, write or atomic', 'by': 'who accessed it first: thread and CTA', 'where': 'the allocation next to it',
  'line': 'source line; PTX n: a line of the PTX, where there is no line information', 'place': 'source line; PTX n: a line of the PTX, where there is no line information',
  'opcodes: lanes': 'executions by threads whose guard was true', 'functions: of kernel': 'of the kernel\'s cycles', 'hot: threads': 'how often threads entered the block',
  'type': 'of the operands', 'class': 'kind of instruction', 'width': 'lanes times the width of the operands', 'latency: warps': 'executions by a warp', 'latency: note': 'serialised: loads that would overlap wait for one another here',
  'kernel': 'a function that the program starts on the device',
  'pass': 'one access of all 32 banks of shared memory at once. A request whose lanes want different words of one bank takes several, one after another',
  'work': 'what a kernel executes and moves, as the counts say: warp instructions, sectors, passes, atomics, each weighed by what the device does of it in a cycle (docs/findings.md)',
  'lane slot': 'room for one lane in one warp instruction: each warp instruction has 32, which are busy or idle',
  'with inlined': 'share of the kernel\'s thread instructions, of the line and of all that was inlined through calls on it; empty where nothing was',
  'warp executions': 'how often warps executed an instruction, with any number of lanes',
  'instrumented': 'of a launch: it ran with probes, so that it has counts. Of registers: those of the kernel with its probes',
  'host time': 'how long the host took in place of a GPU: says nothing about a GPU',
  'PTX left': 'of the PTX instructions that ran, those without machine code of their own', 'unmapped': 'machine instructions that belong to no PTX instruction', 'local loads': 'loads of the machine code from local memory (spills)', 'local stores': 'stores of the machine code to local memory (spills)',
};

// A column's word: tools that are not here, and probes, name theirs as they like.
const wordTools = new Set(['opcodes', 'lanes', 'memory', 'clock', 'functions', 'values', 'hot', 'ctas', 'latency', 'bounds']);
const familyOf = {types: 'opcodes', classes: 'opcodes', gtpin: 'opcodes', widths: 'opcodes', lines: 'opcodes', 'block-opcodes': 'opcodes'};
export const wordOf = (name, table, tool) => (!tool || wordTools.has(tool) ? words[`${familyOf[table] || table}: ${name}`] || words[name] : undefined);

// Of patterns of addresses, as the picture has them (tool/memory/report.c).
export const patterns = {same: 'one address', aligned: 'in order, aligned', unit: 'in order', stride_32: 'steps up to 32 B', stride_128: 'steps up to 128 B', stride_more: 'larger steps', irregular: 'no one step'};

// Of tables whose columns are others here than in the text, or whose title says there what a column's head says here.
export const titles = {
  memory: 'memory instructions, the most wasteful first',
  branches: 'branches by the lane slots that they leave idle',
  ctas: 'thread instructions of CTAs, and the time that equal CTAs would save',
};

// Under a picture, by its name.
export const captions = {
  'memory-patterns': 'Of each request by a warp, how its lanes\' addresses lie. In order, aligned: from a multiple of 128 bytes on; steps: all lanes as many bytes apart. Blue and green move at most one sector more than they need.',
};
