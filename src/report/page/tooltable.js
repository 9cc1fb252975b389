// A table of a tool, of the whole program or of one kernel: typed columns, links, good-to-bad colours.
import {blockHash, kernelLink, placeLink, placeText} from './links.js';
import {findings, kernelNamed, kernels, lineSeen, nameOf, onGpu, rowBlock, rowKernel, runsOf} from './data.js';
import {add, h, numeral, say, shareBar} from './dom.js';
import {exact, number, plural} from './format.js';
import {Table} from './table.js';
import {patterns, wordOf} from './words.js';

// How good a value is, 1 to 0, by the column's name: what a reader would fix is red.
const goods = {
  efficiency: (v) => v / 100,
  'lane use': (v) => v / 100,
  conflicts: (v) => 1 / (1 + v),
  'SM imbalance': (v) => 1 / Math.max(1, v),
  'CTA imbalance': (v) => 1 / Math.max(1, v),
  tail: (v) => 1 - v / 100,
  redundant: (v) => (v < 30 ? NaN : 1 - v / 100), // few of them say nothing good
};
export const goodOf = (column) => (goods[column.name] ? (v) => (v === null ? NaN : goods[column.name](number(v))) : null);
const shares = new Set(['share', 'of kernel']);

// Rows that stand as one (report/rows.c): counts are summed, of other numbers the range is told.
function asOne(table, group) {
  const one = [...group[0]];
  one.group = group;
  one.spans = new Map(); // column -> [least, most]
  for (const c of table.columns.filter((x) => x.merge)) {
    const values = group.map((row) => row[c.at]).filter((v) => v !== null).map(number);
    if (!values.length) continue;
    if (c.merge === 'sum') one[c.at] = values.reduce((a, b) => a + b, 0);
    else {
      one[c.at] = Math.max(...values);
      if (Math.min(...values) < one[c.at]) one.spans.set(c.at, [Math.min(...values), one[c.at]]);
    }
  }
  return one;
}

// k: of that kernel alone.
function groupedRows(table, k) {
  if (!table.grouped) {
    const behind = new Map(table.together), rows = table.rows;
    table.grouped = [];
    for (let at = 0, n; at < rows.length; at += n) {
      n = behind.get(at) || 1;
      table.grouped.push(n > 1 ? asOne(table, rows.slice(at, at + n)) : rows[at]);
    }
  }
  return k ? table.grouped.filter((row) => rowKernel(table, row) === k) : table.grouped;
}

// Where a branch leads to when it jumps (or not): its line in the function of the branch, behind blocks that the compiler made.
function goesTo(table, row, jumps) {
  const k = rowKernel(table, row), from = k && k.blocks[rowBlock(table, row)];
  if (!from || from.succ.length !== 2) return null; // what follows stands before what is jumped to
  const at = from.succ[jumps ? 1 : 0], [file, line] = row[table.place] || [];
  const branch = runsOf(k).find((r) => r.block === from.id && r.file === file && r.line === line);
  const to = lineSeen(k, at, branch ? branch.inlined : []);
  return [' → ', to ? placeLink(k, [to.file, to.line, to.ptx, to.block]) : h('a', {href: blockHash(k, at)}, `block ${at}`)];
}

// Places that several rows name, of tables whose rows nothing else tells apart.
function placesTwice(table) {
  const seen = new Set(), twice = new Set();
  if (table.place < 0 || table.columns.some((c) => c.name === 'instruction' || c.name === 'block')) return twice;
  for (const row of table.rows) {
    const text = placeText(...(row[table.place] || []));
    seen.has(text + row[table.kernel]) ? twice.add(text) : seen.add(text + row[table.kernel]);
  }
  return twice;
}

// Texts like "0 .. 4290430017" with the digits of long numbers in groups.
const spaced3 = (text) => String(text).replace(/(?<![.\w])\d{5,}(?![.\w])/g, exact);

function columnOf(table, c) {
  const value = (row) => row[c.at];
  const ofHost = !onGpu && (c.kind === 'cycles' || c.unit === 'cycles' || (table.tool.name === 'clock' && c.kind === 'ns')); // nothing of a GPU's
  const base = {label: c.name, unit: c.kind === 'bytes' ? null : c.unit || c.kind === 'cycles' ? [(c.unit ?? 'cycles') === c.name ? '' : c.unit ?? 'cycles', ofHost ? 'of the host' : ''].filter(Boolean).join(' ') || null : ofHost ? 'of the host' : null, className: ofHost ? 'host' : null, title: wordOf(c.name, table.name, table.tool.name), kind: c.kind, value, span: (row) => row.spans?.get(c.at)};
  if (c.kind === 'kernel') return {...base, value: (row) => (rowKernel(table, row) || {}).short ?? row[c.at], cell: (row) => { const k = rowKernel(table, row); return k && typeof row[c.at] === 'number' ? kernelLink(k) : String(row[c.at] ?? '–'); }};
  if (table.tool.name === 'timeline' && c.name === 'work') return {...base, cell: (row) => { const k = kernelNamed(row[c.at]); return k ? kernelLink(k) : String(row[c.at] ?? '–'); }};
  if (c.kind === 'place') return {...base, value: (row) => row[c.at] && placeText(...row[c.at]), cell: (row, shown) => [placeLink(rowKernel(table, row), row[c.at]),
    row.group ? [' ', h('button.link', {type: 'button', 'data-print': `× ${row.group.length}`, title: 'instructions of this line that differ in their numbers alone; counts are their sum', onclick: () => shown.ungroup(row)}, `× ${row.group.length}`)] : null,
    shown.apart.has(row) || table.twice?.has(placeText(...(row[c.at] || []))) ? h('span.dim', ` PTX ${row[c.at][2]}`) : null]};
  if (c.at === table.block && c.numeric) return {...base, kind: 'id', cell: (row) => { const k = rowKernel(table, row), b = rowBlock(table, row); return k && b !== null ? h('a', {href: blockHash(k, b)}, String(b)) : String(row[c.at] ?? '–'); }};
  if (c.kind === 'hex') return {...base, cell: (row) => (row[c.at] === null ? '–' : `0x${BigInt(row[c.at]).toString(16)}`)};
  if (c.kind === 'percent' && shares.has(c.name)) return {...base, cell: (row) => shareBar(number(row[c.at]))};
  if (table.name === 'branches' && (c.name === 'taken' || c.name === 'not taken')) return {...base, cell: (row) => [numeral(row[c.at], c.kind), goesTo(table, row, c.name === 'taken')]};
  if (c.name === 'mostly') return {...base, value: (row) => patterns[row[c.at]] || row[c.at]};
  if (c.name === 'range') return {...base, value: (row) => row[c.at] && spaced3(row[c.at])};
  if (c.fixed && c.kind === 'count') return {...base, kind: 'id'};
  return {...base, good: goodOf(c)};
}

// Whether rows of a table have something to look at; the page folds the others. k: whose rows they are.
const looks = {
  bytes: () => false,
  clock: () => onGpu,
  values: (v) => v('redundant') >= 30 || v('NaN') > 0,
  ctas: (v, k) => !findings.length || findings.some((f) => f.kernel === k.id && f.rule.startsWith('cta_imbalance')),
  lanes: (v) => v('lane use') < 90,
};
export function tells(table, rows, k) {
  const look = looks[table.name];
  return rows.some((row) => (!table.measures.length || table.measures.some((m) => number(row[m.at]) > 0)) && (!look || look((name) => number(row[table.columns.find((c) => c.name === name)?.at]), k)));
}

// k: only the rows of that kernel, without its column.
export function toolTable(table, k, options = {}) {
  const rows = groupedRows(table, k);
  table.twice ??= placesTwice(table);
  const columns = table.columns.filter((c) => !(k && c.kind === 'kernel'));
  // A column in which no row has a value says nothing.
  const told = columns.filter((c) => !rows.length || rows.some((row) => row[c.at] !== null));
  const m = table.measures;
  return new Table(told.map((c) => columnOf(table, c)), {
    caption: table.title, rows, leftOut: k ? 0 : table.left_out, empty: table.empty || undefined, limit: 25,
    zero: m.length ? (row) => !m.some((c) => number(row[c.at])) : null, zeroText: `without ${m.map((c) => c.name).join(' or ')}`, ...options,
  });
}

// A long table with a field that filters its rows by their texts and places.
function searched(shown, table) {
  if (shown.all.length <= 25) return shown.element;
  const said = (row) => table.columns.filter((c) => !c.numeric).map((c) => (c.kind === 'kernel' ? nameOf(rowKernel(table, row) || {}) : c.kind === 'place' ? placeText(...(row[c.at] || [])) : row[c.at])).join(' ').toLowerCase();
  const field = h('input', {type: 'search', placeholder: 'filter rows', 'aria-label': `filter rows of ${table.title || table.name}`, autocomplete: 'off', spellcheck: 'false', oninput: () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    shown.filter(words.length ? (row) => { const text = said(row); return words.every((w) => text.includes(w)); } : null);
    say(plural(shown.count, 'row'));
  }});
  return [field, shown.element];
}

// folded: only the title shows until the reader opens it; the table is made then.
export function tableSection(table, k, folded) {
  const rows = groupedRows(table, k).length, notes = k && kernels.length > 1 ? table.notes.filter((n) => n.endsWith(`: ${k.demangled}`)) : table.notes;
  if ((!table.columns.length && !notes.length) || (k && !rows)) return null;
  const content = () => [table.columns.length ? searched(toolTable(table, k), table) : null, notes.map((n) => h('p.note', n))];
  const title = table.title || table.name;
  if (!folded || !title) return h('section.tooltable', {'aria-label': title || 'notes'}, title ? h('h4', title) : null, content());
  const box = h('details.tooltable', {ontoggle: () => { if (box.open && box.children.length === 1) add(box, content()); }}, h('summary', title, h('span.dim', ` ${plural(rows, 'row')}`)));
  return box;
}
