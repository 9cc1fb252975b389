// One kernel: findings, source, blocks with their graph, instructions, launches, the rows of every tool.
import {allTables, core, kernels, launchesOf, launchesLeftOut, nameOf, ptxLeftOut, ptxLines, ranked, rowKernel, rowsByBlock, runsOf, mainLines, endOfRun, shareOf, firstRank, ranks, onGpu, tablesOf} from './data.js';
import {grade, grades, h, numeral, picture, shareBar} from './dom.js';
import {exact, number, percent, plural} from './format.js';
import {checkTable, checksOf, findingList, findingsOf, judged} from './findings.js';
import {flameGraph} from './flame.js';
import {blocksAtMost, flowGraph} from './graph.js';
import {blockHash, kernelHash, kernelName, placeLink, placeText} from './links.js';
import {SourceView, bulk} from './source.js';
import {Table, hostTime} from './table.js';
import {tableSection, tells, toolTable} from './tooltable.js';

const lanesOf = (b) => percent(number(b.thread_entries), 32 * number(b.warp_entries));

const functionName = (k, b) => (b.function === k.name ? nameOf(k) : k.functions[b.function] || b.function);

// ---- blocks ------------------------------------------------------------------------------------------------------

function blockDetail(k, id) {
  const b = k.blocks[id], out = h('div.detail');
  out.append(h('p', b.succ.length ? ['leads to ', b.succ.map((t, i) => [i ? ', ' : '', h('a', {href: blockHash(k, t)}, `block ${t}`)])] : 'leaves the function',
    b.function !== k.name ? [' · in ', h('code', functionName(k, b))] : null, b.timing_dependent ? ' · its count may depend on timing' : null));
  const runs = runsOf(k).filter((r) => r.block === id);
  const lines = [];
  for (const r of runs) {
    const ptx = k.hasPtx ? ptxLines(k, r.ptx, endOfRun(k, r)) : [];
    if (ptx.length) lines.push(h('div.run', h('span.blockno', r.file ? placeLink(k, [r.file, r.line, r.ptx, id]) : ''), h('pre', ptx.map(([n, text]) => h('div', h('span.ln', String(n)), text)))));
  }
  if (!lines.length) out.append(h('p.note', ptxLeftOut() ? 'Its PTX is left out: the page would become too large (--kernel makes one of fewer kernels).' : 'The profile keeps no PTX of it.'));
  if (lines.length) out.append(h('div.ptx', {role: 'group', 'aria-label': `PTX of block ${id}`}, lines));
  const byTable = new Map();
  for (const {table, row} of rowsByBlock(k).get(id) || []) if (!bulk.has(table.tool.name)) byTable.has(table) ? byTable.get(table).push(row) : byTable.set(table, [row]);
  for (const [table, rows] of byTable) out.append(h('h5', `${table.tool.name}: ${table.title || table.name}`), toolTable({...table, rows}, k, {limit: 12, zero: null, leftOut: 0}).element);
  return out;
}

function blocksSection(k) {
  const share = (b) => percent(number(b.thread_entries) * b.instructions, k.instructions);
  const lines = mainLines(k); // names of functions come with them
  const placeOf = (b) => lines.get(b.id) || {file: b.file, line: b.line, ptx: b.ptx_line};
  const rows = new Map();
  const functions = new Set(k.blocks.map((b) => b.function)).size > 1, counted = k.blocks.some((b) => b.thread_entries !== null), inWarps = k.blocks.some((b) => b.warp_entries !== null);
  const columns = [
    {label: 'block', kind: 'id', value: (b) => b.id, cell: (b) => h('a', {href: blockHash(k, b.id)}, String(b.id))},
    counted && {label: 'share', kind: 'percent', value: share, cell: (b) => shareBar(share(b))},
    {label: 'instructions', kind: 'id', value: (b) => b.instructions},
    counted && {label: 'thread entries', kind: 'count', value: (b) => b.thread_entries},
    inWarps && {label: 'warp entries', kind: 'count', value: (b) => b.warp_entries},
    counted && inWarps && {label: 'lanes', kind: 'percent', value: lanesOf, good: (v, b) => (share(b) < 0.05 ? NaN : v / 100)},
    functions && {label: 'function', kind: 'text', value: (b) => functionName(k, b)},
    {label: 'place', kind: 'place', title: 'where most of its instructions come from', value: (b) => placeText(placeOf(b).file, placeOf(b).line, placeOf(b).ptx), cell: (b) => placeLink(k, [placeOf(b).file, placeOf(b).line, placeOf(b).ptx, b.id])},
    {label: 'note', kind: 'text', value: (b) => (b.timing_dependent ? 'timing' : ''), title: 'timing: the count may differ in another run'},
  ].filter(Boolean).filter((c) => c.label !== 'note' || k.blocks.some((b) => b.timing_dependent));
  const table = new Table(columns, {caption: 'blocks', words: 'blocks', rows: k.blocks, sort: {at: counted ? 1 : 0, down: counted}, zero: counted ? (b) => !(number(b.thread_entries) > 0) : null, zeroText: 'never entered', limit: 30,
    row: (b, tr) => { tr.dataset.block = b.id; rows.set(b.id, tr); }});
  const detail = h('div.blockdetail', {'aria-live': 'polite'});
  const graphBox = h('div.graphbox', {tabindex: '0', role: 'group', 'aria-label': 'control flow'});
  const ran = k.blocks.filter((b) => !counted || number(b.thread_entries) > 0).length;
  if (ran > blocksAtMost) graphBox.append(h('p.note', `${ran} blocks${counted ? ' ran' : ''}: too many for a picture that helps. The table has them all.`));
  else if (k.blocks.length > 1) graphBox.append(flowGraph(k, {hash: (b) => blockHash(k, b.id), label: (b) => placeText(placeOf(b).file, placeOf(b).line, placeOf(b).ptx)}));
  // A high picture begins cut, with a word about the rest.
  const high = graphBox.firstChild && graphBox.firstChild.getAttribute('height') > 740;
  const whole = high ? h('button.link', {type: 'button', 'data-print': '', onclick: () => { graphBox.classList.remove('cut'); whole.remove(); }}, `show all ${plural(graphBox.querySelectorAll('.node').length, 'block')} of the picture`) : null;
  graphBox.classList.toggle('cut', !!high);
  const element = h('section', {id: 'blocks', 'aria-labelledby': 'blocks-title'}, h('h2', {id: 'blocks-title'}, 'Blocks'),
    counted ? null : h('p.note', 'How often they ran was not counted: ', h('code', '-t blocks'), ' does.'),
    h('div.split', h('div', table.element, detail), k.blocks.length > 1 ? h('div.graphside', graphBox, whole) : null));
  const open = (id) => {
    if (!k.blocks[id]) return null;
    element.querySelectorAll('.here').forEach((e) => e.classList.remove('here'));
    if (!rows.has(id)) table.unfolded = true, table.showAll();
    rows.get(id)?.classList.add('here');
    const node = element.querySelector(`.node[data-block="${id}"]`);
    node?.classList.add('here');
    node?.scrollIntoView({block: 'nearest', inline: 'nearest'});
    detail.replaceChildren(h('h3', `Block ${id}`), blockDetail(k, id));
    return rows.get(id) || element;
  };
  return {element, open};
}

// ---- instructions, launches --------------------------------------------------------------------------------------

function opcodesSection(k) {
  const rows = Object.entries(k.opcodes).map(([op, o]) => ({op, ...o}));
  if (!rows.length) return null;
  const share = (o) => percent(number(o.thread), k.instructions);
  const table = new Table([
    {label: 'opcode', kind: 'text', value: (o) => o.op, cell: (o) => h('code', o.op)},
    {label: 'share', kind: 'percent', value: share, cell: (o) => shareBar(share(o))},
    {label: 'threads', kind: 'count', value: (o) => o.thread},
    {label: 'warps', kind: 'count', value: (o) => o.warp},
    {label: 'guard true', kind: 'count', value: (o) => o.lanes},
  ], {caption: 'instructions by opcode', words: 'instructions', rows, sort: {at: 1, down: true}, limit: 15, zero: (o) => !number(o.thread), zeroText: 'never executed'});
  const mix = new Map();
  for (const o of rows) mix.set(core.op_kinds[o.op], (mix.get(core.op_kinds[o.op]) || 0) + (number(o.thread) || 0));
  const parts = [...mix].filter(([, n]) => n > 0).sort((a, b) => b[1] - a[1]).map(([kind, n]) => `${kind} ${percent(n, k.instructions).toFixed(1)} %`);
  return h('section', {id: 'instructions', 'aria-labelledby': 'instructions-title'}, h('h2', {id: 'instructions-title'}, 'Instructions'), parts.length ? h('p.note', parts.join(' · ')) : null, table.element);
}

const dim = (v) => v.map(exact).join(' × ').replace(/( × 1)+$/, '');
function launchesSection(k) {
  const rows = launchesOf(k);
  if (!rows.length) return null;
  const has = (f) => rows.some(f);
  const table = new Table([
    {label: 'launches', kind: 'count', title: 'launches of this geometry', value: (g) => g.launches},
    {label: 'CTAs', kind: 'count', title: 'CTAs of a launch', value: (g) => g.grid[0] * g.grid[1] * g.grid[2], cell: (g) => dim(g.grid)},
    {label: 'threads', kind: 'count', title: 'threads of a CTA', value: (g) => g.block[0] * g.block[1] * g.block[2], cell: (g) => dim(g.block)},
    has((g) => g.cluster[0]) && {label: 'cluster', kind: 'count', value: (g) => g.cluster[0], cell: (g) => dim(g.cluster)},
    has((g) => g.shared_bytes) && {label: 'shared memory', kind: 'bytes', value: (g) => g.shared_bytes},
    has((g) => g.time_ns !== null) && (onGpu ? {label: 'time', kind: 'ns', value: (g) => g.time_ns} : hostTime),
    has((g) => g.time_ns !== null && g.launches > 1) && {label: 'shortest', kind: 'ns', className: onGpu ? null : 'host', value: (g) => g.least_ns},
    has((g) => g.time_ns !== null && g.launches > 1) && {label: 'longest', kind: 'ns', className: onGpu ? null : 'host', value: (g) => g.most_ns},
    {label: 'ran', kind: 'text', value: (g) => (g.repeat ? `${g.ran} (--repeat)` : g.ran) + (g.incomplete ? `, ${g.incomplete} incomplete` : '')},
    has((g) => g.reason) && {label: 'reason', kind: 'text', value: (g) => g.reason},
  ].filter(Boolean), {caption: 'launches by geometry', rows, sort: {at: 0, down: true}, limit: 15});
  return h('section', {id: 'launches', 'aria-labelledby': 'launches-title'}, h('h2', {id: 'launches-title'}, 'Launches'), table.element,
    launchesLeftOut() && rows.length >= 100 ? h('p.note', 'Launches of further geometries are left out; margay report --json --per-launch has all.') : null);
}

// ---- tools -------------------------------------------------------------------------------------------------------

function chartsOf(k, table) {
  if (kernels.length === 1) return table.charts;
  return table.charts.filter((c) => c.title && (c.title === k.demangled || c.title.startsWith(k.short + ':') || c.title === k.short || c.title.startsWith(k.demangled + ':')));
}

// To all that the tool tells, where that is more.
function elsewhere(tool) {
  const notes = tablesOf(tool).some((t) => t.notes.length);
  return kernels.length > 1 || notes ? h('a.elsewhere', {href: `#/tool/${tool.id}`}, kernels.length > 1 ? 'of all kernels' : 'with its notes') : null;
}

function toolSections(k) {
  const out = new Map();
  for (const table of allTables()) {
    const has = table.kernel >= 0 ? table.rows.some((row) => rowKernel(table, row) === k) : kernels.length === 1 && table.rows.length;
    const folded = out.has(table.tool) || table.tool.name === 'opcodes';
    const section = has ? tableSection(table, k, folded) : null, charts = chartsOf(k, table);
    if (!section && !charts.length) continue;
    if (!out.has(table.tool)) out.set(table.tool, []);
    out.get(table.tool).push(section, charts.map(picture));
  }
  return [...out].map(([tool, parts]) => {
    const title = h('h2', {id: `tool-${tool.id}-title`}, tool.name, elsewhere(tool)), attributes = {id: `tool-${tool.id}`, 'aria-labelledby': `tool-${tool.id}-title`};
    if (tablesOf(tool).some((t) => tells(t, t.rows.filter((row) => rowKernel(t, row) === k), k))) return h('section', attributes, title, parts);
    return h('section', attributes, title, h('details.silent', h('summary', tool.name === 'clock' && !onGpu ? 'times of the host: nothing of a GPU' : 'nothing to look at'), parts));
  });
}

// ---- all ---------------------------------------------------------------------------------------------------------

function head(k) {
  const at = ranked.indexOf(k), prev = ranked[at - 1], next = ranked[at + 1], full = nameOf(k);
  const notes = [];
  if (k.scaled) notes.push(`Counts are scaled from one ${k.scaled.scope === 'cta' ? 'CTA' : 'warp'} a launch${k.scaled.error_pct !== null ? `: off by ${k.scaled.error_pct.toFixed(2)} % from launches counted in full` : ''}.`);
  if (k.sampled) notes.push(`${k.sampled.counted} of ${k.sampled.launches} launches were counted; all of them would have made about ${exact(k.sampled.thread_instructions)} thread instructions${k.sampled.bound === null ? '' : `, give or take ${exact(k.sampled.bound)}`}.`);
  if (k.both_times) notes.push(`Natively it takes ${(number(k.both_times.native_ns) / 1e6).toPrecision(3)} ms for ${plural(k.both_times.launches, 'launch', 'launches')}, ${(number(k.both_times.instrumented_ns) / number(k.both_times.native_ns)).toFixed(3)} times as long instrumented.`);
  if (k.incomplete) notes.push(`${plural(k.incomplete, 'launch', 'launches')} did not complete and are in no count.`);
  if (k.spoilt) notes.push(`${plural(k.spoilt, 'launch', 'launches')} have no counts, since the program wrote into them.`);
  const lanes = k.lane_use === null ? NaN : 100 * k.lane_use;
  const fact = (label, value) => h('div.fact', h('div.label', label), h('div.value', value));
  return h('div.kernelhead',
    h('p.crumbs', h('a', {href: '#/'}, 'Kernels'), kernels.length > 1 ? ` › ${at + 1} of ${kernels.length}` : '', prev ? h('a.step', {href: kernelHash(prev), rel: 'prev', title: 'hotter kernel ( [ )'}, '← hotter') : null, next ? h('a.step', {href: kernelHash(next), rel: 'next', title: 'next kernel ( ] )'}, 'next →') : null),
    h('h1', {tabindex: '-1'}, kernelName({...k, rest: k.rest.length > 160 ? '' : k.rest})),
    k.rest.length > 160 ? h('details', h('summary', `full name, ${full.length} characters`), h('code.wrap', full)) : null,
    h('div.facts-row',
      kernels.length > 1 ? fact(`share of ${ranks[firstRank].label}`, numeral(shareOf(k), 'percent')) : null,
      k.time_ns === null || !onGpu ? null : fact('time', numeral(k.time_ns, 'ns')),
      fact('launches', numeral(k.launches, 'count')),
      Number.isNaN(k.instructions) ? null : fact('thread instructions', numeral(k.thread_instructions, 'count')),
      Number.isNaN(lanes) ? null : fact('lanes in use', h('span', {class: grade(lanes / 100), title: grades}, numeral(lanes, 'percent'))),
      k.registers.native === null ? null : fact('registers', [k.registers.estimate ? 'about ' : '', String(k.registers.native), k.registers.instrumented === null ? null : h('span.dim', ` (${k.registers.instrumented} instrumented)`)])),
    notes.map((n) => h('p.note', n)));
}

export function kernelView(k) {
  const own = findingsOf(k), counted = !Number.isNaN(k.instructions), found = checksOf(k), source = new SourceView(k), instructions = counted ? opcodesSection(k) : null, launches = launchesSection(k), blocks = k.blocks.length ? blocksSection(k) : null;
  const flame = k.blocks.length && k.instructions ? flameGraph([k]) : null;
  const sections = [
    judged(k) ? h('section', {id: 'findings', 'aria-labelledby': 'f-title'}, h('h2', {id: 'f-title'}, 'Findings'), findingList(own, k)) : null,
    found.length ? h('section', {id: 'checks', 'aria-labelledby': 'c-title'}, h('h2', {id: 'c-title'}, '--check'), checkTable(found, k).element) : null,
    k.blocks.length ? h('section', {id: 'source', 'aria-labelledby': 's-title'}, h('h2', {id: 's-title'}, 'Source'), source.element) : h('p.note', 'No block of this kernel was counted: see coverage for the reason.'),
    flame && h('section', {id: 'flame', 'aria-labelledby': 'flame-title'}, h('h2', {id: 'flame-title'}, 'Flame graph'), flame),
    blocks && blocks.element, instructions, launches, ...toolSections(k),
  ].filter(Boolean);
  const beside = h('div.pair', instructions, launches);
  const parts = sections.filter((e) => e !== launches).map((e) => (e === instructions ? beside : e));
  if (!instructions && launches) parts.splice(sections.indexOf(launches), 0, launches);
  const jump = h('nav.jump', {'aria-label': 'parts of this kernel'}, sections.filter((e) => e.id).map((e) => h('button.link', {type: 'button', onclick: () => { for (const d of e.querySelectorAll(':scope > details')) d.open = true; e.scrollIntoView({block: 'start'}); }}, e.querySelector('h2').firstChild.textContent)));
  return {element: h('article', head(k), jump, parts), source, blocks};
}
