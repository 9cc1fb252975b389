// What the page knows, indexed: kernels, their lines and blocks, rows of tools by kernel.
import {apart, briefRest, number, splitName} from './format.js';
import {part} from './pack.js';
import {titles} from './words.js';

export const core = part('core');
export const report = core.report;
export const kernels = report.kernels;
export const onGpu = report.device.kind === 'nvidia';
// What ran it, so that nobody takes a device of software for the GPU whose properties it has.
export function deviceName() {
  const {kind, name} = report.device;
  return onGpu ? `on ${name}` : `on the ${kind === 'emu' ? 'emulator' : 'CPU'} as an ${name}, without a GPU`;
}
const byId = new Map(kernels.map((k) => [k.id, k]));
export const kernelOf = (id) => byId.get(Number(id));
export const kernelNamed = (name) => kernels.find((k) => k.name === name || k.demangled === name);
export const nameOf = (k) => core.page.kernel_names[k.id] || k.demangled || '';

for (const k of kernels) {
  [k.short, k.space, k.rest] = splitName(nameOf(k));
  k.instructions = number(k.thread_instructions);
  k.warps = number(k.warp_instructions);
  k.time = number(k.time_ns);
  [k.briefSpace, k.brief] = [k.space.length > 24 ? k.space.replace(/::.*/, '::…') : k.space, briefRest(k.rest)];
}
// Kernels whose short names are one keep where they differ.
for (const group of Map.groupBy(kernels, (k) => [k.space, k.short, k.brief].join('\n')).values()) {
  if (group.length < 2) continue;
  const shorts = apart(group.map((k) => k.rest));
  for (const k of group) k.brief = shorts.get(k.rest);
}
const sum = (f) => kernels.reduce((all, k) => all + (f(k) || 0), 0);
export const totals = {
  instructions: sum((k) => k.instructions), warps: sum((k) => k.warps), time: sum((k) => k.time),
  launches: sum((k) => k.launches),
};
export const measured = kernels.some((k) => !Number.isNaN(k.instructions));
export const timed = kernels.some((k) => !Number.isNaN(k.time));

// By what kernels are ranked: time where a GPU measured it, else instructions.
export const ranks = {
  time: {label: onGpu ? 'time' : 'time of the host', of: (k) => k.time, all: totals.time, known: timed},
  instructions: {label: 'thread instructions', of: (k) => k.instructions, all: totals.instructions, known: measured},
  warps: {label: 'warp instructions', of: (k) => k.warps, all: totals.warps, known: kernels.some((k) => !Number.isNaN(k.warps))},
};
export const firstRank = onGpu && timed ? 'time' : measured ? 'instructions' : 'time';
export const shareOf = (k, rank = firstRank) => 100 * ranks[rank].of(k) / ranks[rank].all;
const heat = (k) => ranks[firstRank].of(k) || 0;
export const ranked = [...kernels].sort((a, b) => heat(b) - heat(a) || a.id - b.id);

// ---- findings ------------------------------------------------------------------------------------------------

export const findings = report.findings || [];
// A finding's text, and apart from it what limits its gain.
export function textOf(f) {
  return f.limit && f.text.endsWith(f.limit) ? [f.text.slice(0, -f.limit.length), f.limit] : [f.text, ''];
}
export const checks = core.check.findings.flat();
export const wasChecked = core.check.findings.length > 0;
const mangled = new Map(kernels.map((k) => [k.name, k]));
// By its name: f.kernel is the number in the profile of one process.
export function kernelOfCheck(f) {
  const m = /^kernel ([^:]+):/.exec(f.text || '');
  return m ? mangled.get(m[1]) : undefined;
}

// ---- tools ---------------------------------------------------------------------------------------------------

export const tools = core.page.tools;
const numeric = new Set(['count', 'percent', 'real', 'bytes', 'cycles', 'ns']);

// Passes of bank conflicts move no bytes of the device's memory: a column of their own beside what sectors waste.
function splitWasted(t) {
  const [wasted, sectors, conflicts, requests] = ['wasted', 'sectors', 'conflicts', 'requests'].map((name) => t.columns.findIndex(([n]) => n === name));
  t.columns.splice(wasted + 1, 0, ['extra passes', 'count', null, 'sum']);
  t.rows = t.rows.map((row) => {
    const passes = row[conflicts] === null ? null : row[sectors] === null ? number(row[wasted]) / 128 : Math.round(number(row[conflicts]) * number(row[requests]));
    return row.toSpliced(wasted, 1, row[sectors] === null ? null : number(row[wasted]) - 128 * (passes || 0), passes);
  });
}

// The tables of a tool, their columns as objects.
export function tablesOf(tool) {
  const t = part('tool-' + tool.id);
  if (!t || t.ready) return t ? t.tables : [];
  for (const table of t.tables) {
    table.tool = tool;
    if (tool.name === 'memory' && table.name === 'memory') splitWasted(table);
    table.title = titles[table.name] || table.title;
    table.columns = table.columns.map(([name, kind, unit, merge], at) => ({
      name, kind, unit, at, merge, numeric: numeric.has(kind), fixed: numeric.has(kind) && !merge,
    }));
    table.kernel = table.columns.findIndex((c) => c.kind === 'kernel');
    table.place = table.columns.findIndex((c) => c.kind === 'place');
    table.block = table.columns.findIndex((c) => c.name === 'block');
    table.measure = table.columns.find((c) => c.numeric && !c.fixed) || null;
    table.measures = table.columns.filter((c) => c === table.measure || ['extra passes', 'written'].includes(c.name));
  }
  t.ready = true;
  return t.tables;
}
export const allTables = () => tools.flatMap(tablesOf);

export const rowKernel = (table, row) => (table.kernel >= 0 ? kernelOf(row[table.kernel]) : kernels.length === 1 ? kernels[0] : undefined);
export function rowBlock(table, row) {
  if (table.block >= 0 && typeof row[table.block] === 'number') return row[table.block];
  const place = table.place >= 0 ? row[table.place] : null;
  return place && place[2] ? place[3] : null;
}

// ---- lines ---------------------------------------------------------------------------------------------------

let lineIndex = null;
function lines() {
  if (lineIndex) return lineIndex;
  const source = part('source') || {kernels: [], files: []};
  lineIndex = {kernels: new Map(source.kernels.map((k) => [k.kernel, k])), files: source.files};
  for (const f of source.files) {
    f.text = new Map();
    for (const [first, text] of f.parts) text.split('\n').forEach((line, i) => f.text.set(first + i, line));
  }
  return lineIndex;
}

export const files = () => lines().files;
export function fileByPath(path) {
  return lines().files.find((f) => f.path === path);
}

// Runs of instructions of a kernel in text order: {block, file, line, ptx, n, inlined}. Without the PTX: a block each, by its first line.
//   inlined: calls that the place was inlined through, outermost first: {function (null: not told), file, line (of the call)}
export function runsOf(k) {
  if (k.runs) return k.runs;
  const source = lines().kernels.get(k.id), path = (file) => (file < 0 ? null : lines().files[file].path);
  k.runs = [];
  k.functions = source ? source.functions : {};
  if (source) {
    const rows = source.rows, calls = [[]];
    for (const [name, file, line, outer] of source.inlined) calls.push([...calls[outer], {function: name, file: path(file), line}]);
    for (let i = 0; i < rows.length; i += 6) {
      const [block, file, line, ptx, n, inlined] = rows.slice(i, i + 6);
      k.runs.push({block, file: path(file), line, ptx, n, inlined: calls[inlined]});
    }
  } else {
    for (const b of k.blocks) k.runs.push({block: b.id, file: b.file, line: b.line || 0, ptx: b.ptx_line, n: b.instructions, inlined: [], whole: true});
  }
  k.hasPtx = !!source;
  return k.runs;
}

// Where most instructions of each block come from: Map of block -> {file, line, ptx, n}. Its first is often left over from the line above.
export function mainLines(k) {
  if (k.mains) return k.mains;
  const best = k.mains = new Map(), sums = new Map();
  for (const r of runsOf(k)) {
    const key = `${r.block}\n${r.file}\n${r.line}`, sum = sums.get(key) || {file: r.file, line: r.line, ptx: r.ptx, n: 0};
    sum.n += r.n;
    sums.set(key, sum);
  }
  for (const [key, sum] of sums) {
    const block = parseInt(key, 10), b = k.blocks[block];
    if (!best.has(block)) best.set(block, {file: b.file, line: b.line, ptx: b.ptx_line, n: 0});
    if (sum.file && sum.line && sum.n > best.get(block).n) best.set(block, sum);
  }
  return best;
}

// The line of a block as it is seen where the calls `calls` have led: of what was inlined deeper, the call; behind blocks that the
// compiler made the next one. null: none has a line.
export function lineSeen(k, block, calls) {
  k.byBlock ??= Map.groupBy(runsOf(k), (r) => r.block);
  for (let n = 0; n < 5; n++) {
    const sums = new Map();
    for (const r of k.byBlock.get(block) || []) {
      const inside = calls.every((c, i) => r.inlined[i] && r.inlined[i].file === c.file && r.inlined[i].line === c.line), at = inside && r.inlined[calls.length] ? r.inlined[calls.length] : r;
      if (!at.file || !at.line) continue;
      const key = `${at.file}\n${at.line}`, sum = sums.get(key) || {file: at.file, line: at.line, ptx: r.ptx, block, n: 0};
      sum.n += r.n;
      sums.set(key, sum);
    }
    if (sums.size) return [...sums.values()].sort((a, b) => b.n - a.n)[0];
    if (k.blocks[block].succ.length !== 1) return null;
    [block] = k.blocks[block].succ;
  }
  return null;
}

// Instructions by line: Map of "file\nline" to {file, line, threads, warps, blocks: Set, runs, through}; through: thread instructions
// of the line and of all that was inlined through calls on it.
export function linesOf(k) {
  if (k.lines) return k.lines;
  k.lines = new Map();
  const atLine = (file, line) => {
    const key = file + '\n' + line;
    if (!k.lines.has(key)) k.lines.set(key, {file, line, threads: 0, warps: 0, counted: false, blocks: new Set(), runs: [], through: 0});
    return k.lines.get(key);
  };
  for (const run of runsOf(k)) {
    if (!run.file) continue;
    const b = k.blocks[run.block], at = atLine(run.file, run.line);
    const calls = new Set([at, ...run.inlined.filter((c) => c.file).map((c) => atLine(c.file, c.line))]);
    for (const x of calls) x.through += run.n * (number(b.thread_entries) || 0);
    at.blocks.add(run.block);
    at.runs.push(run);
    if (b.thread_entries === null) continue;
    at.counted = true;
    at.threads += run.n * number(b.thread_entries);
    at.warps += run.n * (number(b.warp_entries) || 0);
  }
  return k.lines;
}

// Not shown: places, comments, labels of debug information.
const silent = /^\s*(\.loc|\.pragma|\/\/|[$]?L_*(tmp|func_|info|set|pcr)\w*:)/;
let ptxIndex = null;
// PTX lines first..last of a kernel's module as [[number, text], ...]; what the page does not hold is left out.
export function ptxLines(k, first, last) {
  if (!ptxIndex) {
    ptxIndex = new Map();
    for (const m of (part('ptx') || {modules: []}).modules) {
      const text = new Map();
      for (const [from, t] of m.parts) t.split('\n').forEach((line, i) => text.set(from + i, line));
      ptxIndex.set(m.module, text);
    }
  }
  const text = ptxIndex.get(k.module), out = [];
  for (let i = first; text && i <= last; i++) {
    const line = text.get(i);
    if (line === undefined && out.length) break; // the function ends here
    if (line !== undefined && line.trim() && !silent.test(line)) out.push([i, line.replace(/\t/g, '  ').trimEnd()]);
  }
  while (out.length && /^\s*[$%\w]+:\s*$/.test(out[out.length - 1][1])) out.pop(); // a label begins the next block
  return out;
}

export const ptxLeftOut = () => (part('ptx') || {left_out: 0}).left_out > 0;

// The last PTX line of a run: before the next run begins, or where its block's function ends.
export function endOfRun(k, run) {
  const runs = runsOf(k), at = runs.indexOf(run), next = runs[at + 1];
  if (next && next.ptx > run.ptx) return next.ptx - 1;
  return run.ptx + run.n * 3 + 8;
}

// ---- rows of tools at a line or block of a kernel ------------------------------------------------------------

// Map of "file\nline" to [{table, row}] of a kernel, made once.
export function rowsByLine(k) {
  if (k.toolRows) return k.toolRows;
  k.toolRows = new Map();
  k.blockRows = new Map();
  const put = (map, key, value) => (map.has(key) ? map.get(key).push(value) : map.set(key, [value]));
  for (const table of allTables()) {
    for (const row of table.rows) {
      if (rowKernel(table, row) !== k) continue;
      const place = table.place >= 0 ? row[table.place] : null;
      if (place && place[0]) put(k.toolRows, place[0] + '\n' + place[1], {table, row});
      const block = rowBlock(table, row);
      if (block !== null) put(k.blockRows, block, {table, row});
    }
  }
  return k.toolRows;
}
export function rowsByBlock(k) {
  rowsByLine(k);
  return k.blockRows;
}

// By block: the place of the innermost branch that split its warps, to which idle lanes are charged.
export function chargedTo(k) {
  if (k.charged) return k.charged;
  const sizes = new Map();
  k.charged = new Map();
  const reached = (from, without) => {
    const seen = new Set(), left = [from];
    for (let at; (at = left.pop()) !== undefined;) if (at !== without && !seen.has(at)) seen.add(at), left.push(...k.blocks[at].succ);
    return seen;
  };
  for (const table of allTables()) {
    const idle = table.name === 'branches' ? table.columns.find((c) => c.name === 'idle slots') : null;
    if (!idle) continue;
    for (const row of table.rows) {
      const at = rowKernel(table, row) === k && number(row[idle.at]) > 0 ? rowBlock(table, row) : null;
      if (at === null || !k.blocks[at] || k.blocks[at].succ.length !== 2) continue;
      const [a, b] = k.blocks[at].succ.map((to) => reached(to, at)), apart = [...a].filter((x) => !b.has(x)).concat([...b].filter((x) => !a.has(x)));
      for (const x of apart) if (!(sizes.get(x) <= apart.length)) sizes.set(x, apart.length), k.charged.set(x, row[table.place]);
    }
  }
  return k.charged;
}

// ---- launches ------------------------------------------------------------------------------------------------

let launchIndex = null;
export const launchesLeftOut = () => (part('launches') || {left_out: 0}).left_out;
export function launchesOf(k) {
  if (!launchIndex) {
    launchIndex = new Map();
    for (const g of (part('launches') || {groups: []}).groups) {
      if (!launchIndex.has(g.kernel)) launchIndex.set(g.kernel, []);
      launchIndex.get(g.kernel).push(g);
    }
  }
  return launchIndex.get(k.id) || [];
}
