// The source of a kernel with what its lines cost. Each line opens: the blocks it is in, its PTX, the rows of tools.
import {chargedTo, checks, endOfRun, fileByPath, findings, kernelOf, kernelOfCheck, linesOf, onGpu, ptxLines, rowsByLine, runsOf, textOf} from './data.js';
import {grade, h, numeral, paperWidth, shareBar} from './dom.js';
import {baseName, number, percent, plural} from './format.js';
import {blockHash, lineHash, placeLink, placeText} from './links.js';
import {definitionLines, launchLines, statementEnd} from './code.js';
import {tells, toolTable} from './tooltable.js';
import {wordOf, words} from './words.js';

// Gutter columns from tools' tables: how the rows of one line become one number.
//   weight: the mean by that column, else the sum; of: what all of it would be, of which a line's part is shaded (else the column's sum)
const known = () => [
  {table: 'memory', column: 'wasted', label: 'wasted', kind: 'bytes', of: (k, all) => rowSum(all, 'memory', (v) => 32 * v('requests') * (v('sectors') || 0))},
  {table: 'memory', column: 'extra passes', label: 'extra passes', kind: 'count', of: (k, all) => rowSum(all, 'memory', (v) => (v('conflicts') === null ? 0 : v('requests') * (1 + v('conflicts'))))},
  {table: 'memory', column: 'sectors', label: 'sectors', unit: '/request', kind: 'real', weight: 'requests'},
  {table: 'memory', column: 'efficiency', label: 'efficiency', kind: 'percent', weight: 'requests', good: (v) => v / 100},
  {table: 'memory', column: 'conflicts', label: 'conflicts', unit: '/request', kind: 'real', weight: 'requests', good: (v) => 1 / (1 + v)},
  {table: 'branches', column: 'idle slots', label: 'idle slots', kind: 'count', of: (k) => 32 * k.warps},
  {table: 'latency', column: 'cycles', label: 'waited', kind: 'count', unit: onGpu ? 'cycles' : 'cycles of the host', title: 'cycles that warps waited for loads'},
  {table: 'values', column: 'redundant', label: 'redundant', kind: 'percent', weight: 'values', good: (v) => (v < 30 ? NaN : 1 - v / 100)},
  {table: 'bounds', column: 'times', label: 'out of bounds', kind: 'count', good: (v) => (v ? 0 : NaN), title: 'accesses outside of allocations'},
];
const ownTables = new Set(known().map((g) => g.table).concat(['lanes', 'opcodes', 'lines', 'block-opcodes', 'hot', 'clock', 'functions', 'guards', 'bytes', 'types', 'classes', 'machine-code']));

export const bulk = new Set(['opcodes', 'hot']); // their rows say again what lines and blocks show

// Sum over rows of a table; f gets a row's values by the names of their columns.
function rowSum(rows, name, f) {
  let sum = 0;
  for (const {table, row} of rows) if (table.name === name) sum += f((column) => { const c = table.columns.find((x) => x.name === column), v = c ? row[c.at] : null; return v === null ? null : number(v); }) || 0;
  return sum;
}

// A line as it stands; what does not fit goes on below it, further in.
function codeText(text) {
  const indent = text.match(/^\s*/)[0].replace(/\t/g, '    ').length;
  return h('code', {style: {'--in': `${Math.min(indent, 24) + 2}ch`}}, text.replace(/\t/g, '    '));
}

function gutters(k) {
  const rows = [...rowsByLine(k).values()].flat();
  const out = known().filter((g) => rows.some(({table, row}) => table.name === g.table && number(row[(table.columns.find((c) => c.name === g.column) || {}).at]) > 0));
  for (const table of new Set(rows.map((r) => r.table))) {
    const m = table.measure;
    if (ownTables.has(table.name) || !m || m.kind === 'percent' || m.kind === 'real') continue;
    out.push({table: table.name, column: m.name, label: `${table.name}: ${m.name}`, kind: m.kind === 'cycles' ? 'count' : m.kind});
  }
  for (const g of out) g.all = (g.of && g.of(k, rows)) || [...rowsByLine(k).values()].reduce((sum, r) => sum + (gutterValue(g, r) ?? 0), 0);
  return out;
}

function gutterValue(g, rows) {
  let sum = 0, weights = 0, any = false;
  for (const {table, row} of rows) {
    const c = table.name === g.table ? table.columns.find((x) => x.name === g.column) : null, v = c ? number(row[c.at]) : NaN;
    if (Number.isNaN(v)) continue;
    const w = g.weight ? number(row[table.columns.find((x) => x.name === g.weight).at]) || 0 : 1;
    sum += v * w;
    weights += w;
    any = true;
  }
  if (!any) return null;
  return g.weight ? (weights ? sum / weights : null) : sum;
}

// ---- notes at lines: findings and what --check found -----------------------------------------------------------

function notesOf(k) {
  const notes = new Map();
  const put = (file, line, note) => {
    if (!file || !line) return;
    const key = file + '\n' + line;
    notes.has(key) ? notes.get(key).push(note) : notes.set(key, [note]);
  };
  for (const f of findings) if (kernelOf(f.kernel) === k && number(f.gain_pct) > 0) put(f.file, f.line, {kind: 'finding', label: f.rule.replace(/_/g, ' '), text: textOf(f)[0]});
  for (const f of checks) {
    if (kernelOfCheck(f) !== k) continue;
    const kind = f.kind === 'note' ? 'finding' : 'error', text = (f.text || '').replace(/^kernel [^:]*: (\w+: )?/, '');
    put(f.file, f.line, {kind, label: f.kind, text});
    if (f.other && f.other.line !== f.line) put(f.other.file, f.other.line, {kind, label: f.kind, text: `with the ${f.access} at ${placeText(f.file, f.line, f.ptx_line)}`});
  }
  return notes;
}

// ---- one file --------------------------------------------------------------------------------------------------

function fileCost(k) {
  const cost = new Map();
  for (const at of linesOf(k).values()) cost.set(at.file, (cost.get(at.file) || 0) + at.threads);
  for (const key of rowsByLine(k).keys()) {
    const file = key.slice(0, key.indexOf('\n'));
    if (!cost.has(file)) cost.set(file, 0);
  }
  return [...cost].sort((a, b) => b[1] - a[1]);
}

// The calls that a run was inlined through, innermost first.
function inlinedText(k, run) {
  return run.inlined.length ? h('p.inlined', [...run.inlined].reverse().map((c, i) => [i ? ', ' : '', c.function ? [h('code', c.function), ' '] : null, 'inlined at ', placeLink(k, [c.file, c.line, 0, run.block])])) : null;
}

// Lines of functions that were inlined through a call on this line, hottest first: [{file, line, ptx, block, function, threads}]
function inlinedAt(k, key) {
  const found = new Map();
  for (const run of runsOf(k)) {
    const call = run.inlined.find((c) => c.file + '\n' + c.line === key), to = run.file + '\n' + run.line;
    if (!call || to === key) continue;
    if (!found.has(to)) found.set(to, {file: run.file, line: run.line, ptx: run.ptx, block: run.block, function: call.function, threads: 0});
    found.get(to).threads += run.n * (number(k.blocks[run.block].thread_entries) || 0);
  }
  return [...found.values()].sort((a, b) => b.threads - a.threads);
}

function detail(k, key, at, columns) {
  const out = h('div.detail');
  const through = inlinedAt(k, key);
  if (through.length) out.append(h('p', h('strong', at.runs.length ? 'Inlined through here' : 'All its instructions are inlined'), ': ', through.slice(0, 12).map((x) => h('span.chip', placeLink(k, [x.file, x.line, x.ptx, x.block]), x.function ? [' ', h('code', x.function)] : null, ` ${percent(x.threads, k.instructions).toFixed(1)} %`)), through.length > 12 ? `and ${plural(through.length - 12, 'more line')}` : null));
  if (at && at.runs.length) {
    out.append(h('p', h('strong', plural(at.blocks.size, 'block')), ': ', [...at.blocks].map((id) => {
      const b = k.blocks[id], lanes = percent(number(b.thread_entries), 32 * number(b.warp_entries));
      return h('a.chip', {href: blockHash(k, id)}, `block ${id}`, b.thread_entries === null ? '' : [' · ', numeral(b.thread_entries, 'count'), ' entries'], Number.isNaN(lanes) ? '' : ` · ${lanes.toFixed(0)} % of lanes`);
    })));
    const ptx = k.hasPtx ? at.runs.map((run) => ptxLines(k, run.ptx, endOfRun(k, run))) : [];
    if (ptx.some((lines) => lines.length)) {
      out.append(h('div.ptx', {role: 'group', 'aria-label': 'PTX'}, at.runs.map((run, i) => (ptx[i].length ? h('div.run', h('a.blockno', {href: blockHash(k, run.block)}, `block ${run.block}`), inlinedText(k, run), h('pre', ptx[i].map(([n, text]) => h('div', h('span.ln', String(n)), text)))) : null))));
    }
  }
  const byTable = new Map();
  for (const {table, row} of rowsByLine(k).get(key) || []) if (!bulk.has(table.tool.name) || table.name === 'machine-code') byTable.has(table) ? byTable.get(table).push(row) : byTable.set(table, [row]);
  const silent = h('details.silent');
  for (const [table, rows] of byTable) {
    const t = toolTable({...table, rows}, k, {limit: 12, zero: null, leftOut: 0});
    (tells(table, rows, k) ? out : silent).append(h('h5', `${table.tool.name}: ${table.title || table.name}`), t.element);
  }
  if (silent.children.length) {
    const names = [...byTable].filter(([table, rows]) => !tells(table, rows, k)).map(([table]) => (table.name === table.tool.name ? table.name : `${table.tool.name} (${table.name})`));
    silent.prepend(h('summary', `nothing to look at: ${names.join(', ')}`));
    out.append(silent);
  }
  if (!out.children.length) out.append(h('p.note', 'nothing was counted here'));
  return h('tr.open', h('td', {colspan: columns}, out));
}

export class SourceView {
  constructor(k) {
    this.k = k;
    this.gutters = gutters(k);
    this.notes = notesOf(k);
    this.rows = new Map(); // "file\nline" -> tr
    this.opened = new Map(); // the same -> the row of its details
    this.files = fileCost(k);
    this.body = h('div');
    this.tabs = h('div.files', {role: 'tablist', 'aria-label': 'source files'});
    this.element = h('div.source', this.tabs, this.body);
    if (!this.files.length) {
      this.body.append(h('p.note', 'The PTX of this kernel has no line information (nvcc -lineinfo gives it): its blocks below are by PTX line.'));
      return;
    }
    this.show(this.files[0][0]);
  }

  show(path) {
    this.path = path;
    this.opened.clear();
    this.tabs.replaceChildren(...this.files.map(([file, cost]) => {
      const share = percent(cost, this.k.instructions);
      return h('button.tab', {type: 'button', role: 'tab', 'aria-selected': String(file === path), title: file, onclick: () => this.show(file)}, baseName(file), Number.isNaN(share) ? null : h('span.dim', ` ${share.toFixed(1)} %`));
    }));
    const doubt = (fileByPath(path) || {}).doubt;
    this.body.replaceChildren(...(doubt ? [h('p.note', `${baseName(path)} ${doubt}`)] : []), this.table(path));
  }

  table(path) {
    const f = fileByPath(path), lines = linesOf(this.k), used = new Set();
    for (const at of lines.values()) if (at.file === path) used.add(at.line);
    for (const key of [...rowsByLine(this.k).keys(), ...this.notes.keys()]) if (key.startsWith(path + '\n')) used.add(Number(key.slice(path.length + 1)));
    used.delete(0);
    const known = f && f.text.size > 0, most = Math.max(0, ...[...lines.values()].map((at) => at.threads));
    const near = new Set();
    for (const line of used) for (let i = line - 3; i <= line + 3; i++) if (!known || (i > 0 && f.text.has(i))) if (known || i === line) near.add(i);
    this.mark(path, f, known, near);
    const shown = [...new Set([...near, ...this.roles.keys(), ...this.found])].sort((a, b) => a - b);
    this.through = [...lines.values()].some((at) => at.file === path && at.through > at.threads);
    this.counted = [...lines.values()].some((at) => at.counted), this.inWarps = [...lines.values()].some((at) => at.warps);
    this.columns = 2 + this.gutters.length + [this.through, this.counted, this.inWarps].filter(Boolean).length;
    const head = h('tr', h('th.num', {scope: 'col'}, 'line'), this.through ? h('th', {scope: 'col', title: 'share of the kernel\'s thread instructions, of the line and of what was inlined through calls on it'}, 'with inlined') : null, this.counted ? h('th', {scope: 'col', title: 'share of the kernel\'s thread instructions'}, 'instructions') : null, this.inWarps ? h('th', {scope: 'col', title: 'of a warp\'s 32 lanes, how many are active'}, 'lanes') : null,
      this.gutters.map((g) => h('th', {scope: 'col', title: g.title || wordOf(g.column, g.table, g.table)}, g.label, g.unit ? h('span.unit', ' ' + g.unit) : null)), h('th.left.code', {scope: 'col'}, known ? 'source' : ''));
    const body = h('tbody');
    let last = known ? 0 : (shown[0] || 1) - 1;
    for (const line of shown) {
      if (known && (line > last + 2 || (line === last + 2 && !f.text.has(last + 1)))) body.append(this.gap(f, path, last + 1, line - 1, lines, most, last ? '' : 'above'));
      else if (known && line === last + 2 && f.text.has(last + 1)) body.append(this.line(f, path, last + 1, lines, most)); // one line says more than a gap
      body.append(this.line(f, path, line, lines, most));
      last = line;
    }
    if (known && f.lines > last) body.append(this.gap(f, path, last + 1, f.lines, lines, most, 'below'));
    const table = h('table.code', h('caption.unseen', `${path}: instructions by line`), h('thead', head), body), box = h('div.codebox', table);
    this.stackWhereNarrow(box, table, head);
    const children = [box];
    if (!known) children.unshift(h('p.note', f && f.lines !== null ? `${path} is left out: the page would become too large. Lines are shown by number.` : `${path} could not be read when the page was made: lines are shown by number.`));
    const none = lines.get(path + '\n0');
    if (none && none.threads) children.push(h('p.note', `${percent(none.threads, this.k.instructions).toFixed(1)} % of the instructions belong to no line of ${baseName(path)}: the compiler made them.`));
    return h('div', children);
  }

  // Where the numbers leave little room for the source, they stand below each line.
  stackWhereNarrow(box, table, head) {
    const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
    let printing = false;
    const fit = (width) => {
      if (!table.classList.contains('stacked')) this.numbersWide = [...head.children].slice(0, -1).reduce((sum, th) => sum + th.offsetWidth, 0);
      if (width) table.classList.toggle('stacked', width - this.numbersWide < 24 * rem);
    };
    new ResizeObserver(() => { if (!printing) fit(box.clientWidth); }).observe(box);
    for (const type of ['beforeprint', 'afterprint']) addEventListener(type, () => {
      printing = type === 'beforeprint';
      if (box.isConnected) fit(printing ? paperWidth : box.clientWidth);
    });
  }

  // What lines mean beside their instructions: roles of definitions and launches, notes by the line behind which they stand, lines of statements with notes.
  mark(path, f, known, shown) {
    this.roles = new Map();
    this.found = new Set();
    this.notesBehind = new Map();
    for (const [key, notes] of this.notes) {
      if (!key.startsWith(path + '\n')) continue;
      const line = Number(key.slice(path.length + 1)), end = known ? statementEnd(f.text, line) : line;
      for (let i = line; i <= end; i++) this.found.add(i);
      this.notesBehind.set(end, [...(this.notesBehind.get(end) || []), ...notes.map((n) => ({...n, at: end === line ? 0 : line}))]);
    }
    if (!known) return;
    for (const line of definitionLines(f.text, new Set([...shown, ...this.found]))) this.roles.set(line, 'definition');
    for (const line of launchLines(f.text, this.k.short)) this.roles.set(line, 'launch');
  }

  // Lines between those that are shown; of those above and below all of them some at a time.
  gap(f, path, first, last, lines, most, where) {
    const has = [], all = last - first + 1, word = where || 'without instructions';
    for (let i = first; i <= last; i++) if (f.text.has(i)) has.push(i);
    const take = has.length <= 60 ? has : where === 'above' ? has.slice(-40) : has.slice(0, 40);
    const show = () => {
      const rows = take.map((i) => this.line(f, path, i, lines, most)), rest = take.length === has.length ? [] : [where === 'above' ? this.gap(f, path, first, take[0] - 1, lines, most, where) : this.gap(f, path, take[take.length - 1] + 1, last, lines, most, where)];
      tr.replaceWith(...(where === 'above' ? [...rest, ...rows] : [...rows, ...rest]));
    };
    const tr = h('tr.gap', h('td', {colspan: this.columns}, has.length
      ? h('button.link', {type: 'button', 'data-print': `${plural(all, 'line')} ${word}`, onclick: show}, take.length < all ? `show ${take.length} of ${plural(all, 'line')} ${word}` : `show ${plural(all, 'line')} ${word}`)
      : `${plural(all, 'line')} left out`));
    return tr;
  }

  // Where a line's idle lanes are charged, when that is not the line itself.
  charged(at, lanes) {
    if (!at || !(lanes < 90)) return null;
    const place = [...at.blocks].map((b) => chargedTo(this.k).get(b)).find((p) => p && !(p[0] === at.file && p[1] === at.line));
    return place ? h('span.dim', {title: 'lanes that idle here are counted at the branch that split the warp'}, 'at ', place[0] === this.path ? h('a', {href: lineHash(this.k, place[0], place[1])}, `line ${place[1]}`) : placeLink(this.k, place)) : null;
  }

  line(f, path, line, lines, most) {
    const key = path + '\n' + line, at = lines.get(key), rows = rowsByLine(this.k).get(key) || [], notes = this.notesBehind.get(line) || [], role = this.roles.get(line);
    const share = at && at.counted ? percent(at.threads, this.k.instructions) : NaN;
    const lanes = at && at.warps ? percent(at.threads, 32 * at.warps) : NaN, laneGrade = Number.isNaN(lanes) || share < 0.05 ? '' : grade(lanes / 100);
    const active = at || rows.length || this.notes.has(key);
    const tr = h('tr' + (active ? '.used' : '') + (this.found.has(line) ? (this.notes.has(key) ? '.found' : '.found.rest') : '') + (role && !active ? '.context' : ''), {style: at && most ? {'--heat': (Math.sqrt(at.threads / most) * 0.3).toFixed(3)} : {}},
      h('td.num', active ? h('button.ln', {type: 'button', 'aria-expanded': 'false', 'aria-label': `line ${line}: details`, onclick: () => this.toggle(key, tr)}, String(line)) : h('span.ln', String(line))),
      this.through ? h('td', {'data-label': 'with inlined'}, at && at.through > at.threads ? numeral(percent(at.through, this.k.instructions), 'percent') : null) : null,
      this.counted ? h('td', {'data-label': 'instructions'}, at && at.counted ? shareBar(share) : null) : null,
      !this.inWarps ? null : h('td' + (laneGrade ? '.' + laneGrade : ''), {'data-label': 'lanes'}, Number.isNaN(lanes) ? null : numeral(lanes, 'percent')),
      this.gutters.map((g) => {
        const v = gutterValue(g, rows), good = g.good && v !== null ? grade(g.good(v)) : '';
        const elsewhere = g.column === 'idle slots' && !(v > 0) ? this.charged(at, lanes) : null;
        const part = !g.good && !g.weight && v > 0 ? Math.min(1, v / g.all) : 0;
        return h('td' + (good ? '.' + good : v === 0 && !elsewhere ? '.zero' : part >= 0.005 ? '.shaded' : ''), {style: part >= 0.005 ? {'--heat': (0.1 + 0.4 * part).toFixed(3)} : {}, 'data-label': g.label, 'data-unit': g.unit}, elsewhere || (v === null ? null : numeral(v, g.kind)));
      }),
      h('td.left.code', role ? h('span.role', {title: words[role] || words[`${role} (at a line)`]}, role) : null, codeText((f && f.text.get(line)) ?? ''), notes.map((n) => h('div.atline.' + n.kind, h('strong', n.label, n.at ? ` at line ${n.at}` : ''), ' ', n.text))));
    if (active) tr.addEventListener('click', (e) => { if (!e.target.closest('a, button') && !String(getSelection())) this.toggle(key, tr); });
    this.rows.set(key, tr);
    return tr;
  }

  toggle(key, tr, open) {
    const is = this.opened.has(key);
    if (is && open !== true) this.opened.get(key).remove(), this.opened.delete(key);
    if (!is && open !== false) {
      const made = detail(this.k, key, linesOf(this.k).get(key), this.columns), behind = this.lastOf(tr, key);
      if (behind !== tr) made.querySelector('.detail').prepend(h('h5', `line ${key.slice(key.lastIndexOf('\n') + 1)}`));
      this.opened.set(key, made);
      behind.after(made);
    }
    const button = tr.querySelector('button.ln');
    if (button) button.setAttribute('aria-expanded', String(!is || open === true));
  }

  // Details never stand inside a statement that has a note: the row behind which those of a line stand.
  lastOf(tr, key) {
    let line = Number(key.slice(key.lastIndexOf('\n') + 1)), end = tr;
    for (; this.found.has(line) && !this.notesBehind.has(line); line++) end = this.rows.get(`${this.path}\n${line + 1}`) || end;
    return end;
  }

  // Shows and opens a line.
  reach(path, line) {
    if (!this.files.some(([f]) => f === path)) return null;
    if (this.path !== path) this.show(path);
    const key = path + '\n' + line, tr = this.rows.get(key);
    if (!tr) return null;
    this.element.querySelectorAll('tr.here').forEach((e) => e.classList.remove('here'));
    tr.classList.add('here');
    this.toggle(key, tr, true);
    return tr;
  }
}
