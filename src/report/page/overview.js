// The first view: what the run was, findings, kernels by their share.
import {checks, core, findings, firstRank, kernels, measured, onGpu, ranked, ranks, report, shareOf, timed, totals, wasChecked} from './data.js';
import {grade, grades, h, numeral, say, shareBar} from './dom.js';
import {command, exact, plural} from './format.js';
import {allFindings, cardsOf} from './findings.js';
import {kernelHash, kernelLink} from './links.js';
import {Table, hostTime} from './table.js';
import {coverageLine} from './run.js';
import {words} from './words.js';

function fact(label, value, note) {
  return h('div.fact', h('div.label', label), h('div.value', value), note ? h('div.dim', note) : null);
}

function facts() {
  const c = report.coverage, lanes = totals.warps ? 100 * totals.instructions / (32 * totals.warps) : NaN;
  const share = c.launches ? 100 * c.instrumented / c.launches : NaN;
  return h('div.facts-row',
    fact('kernels', numeral(kernels.length, 'count')),
    fact('launches', numeral(c.launches, 'count'), c.device_launches ? `and ${exact(c.device_launches)} by kernels` : null),
    timed && onGpu ? fact(ranks.time.label, numeral(totals.time, 'ns')) : null,
    measured ? fact('thread instructions', numeral(totals.instructions, 'count')) : null,
    Number.isNaN(lanes) ? null : fact('lanes in use', h('span', {class: grade(lanes / 100), title: grades}, numeral(lanes, 'percent'))),
    fact('instrumented', Number.isNaN(share) ? '–' : h('span', {class: grade(share / 100), title: grades}, numeral(share, 'percent')), h('a', {href: '#/run'}, 'coverage')),
    wasChecked ? fact('--check', h('a', {href: '#/checks', class: checks.length ? 'bad' : 'good'}, plural(checks.length, 'finding'))) : null);
}

function badges(k) {
  const out = [];
  const badge = (text, title, kind = '') => out.push(h('span', {class: 'badge ' + kind, title}, text));
  const cards = cardsOf(k);
  if (cards.length) out.push(h('a.badge.warn', {href: kernelHash(k), title: 'to its findings'}, plural(cards.length, 'finding')));
  if (!k.instrumented) badge('not instrumented', 'see coverage', 'warn');
  else if (k.instrumented < k.launches) badge(`${k.instrumented} of ${k.launches}`, 'launches instrumented');
  if (k.incomplete) badge(`${k.incomplete} incomplete`, 'launches that did not complete', 'bad');
  if (k.spoilt) badge(`${k.spoilt} spoilt`, 'the program wrote into the counts', 'bad');
  if (k.estimate) badge('scaled', 'counts are scaled from one CTA or warp a launch');
  if (k.timing_dependent) badge('timing', 'counts of some blocks may differ in another run');
  return out;
}

// The table of kernels outlives the view: a reader who comes back finds filter, order and place as they were.
let list = null;
function kernelList() {
  const several = kernels.length > 1;
  let rank = firstRank;
  let most = 0;
  const measure = () => { most = Math.max(...kernels.map((k) => shareOf(k, rank) || 0)); };
  measure();
  const columns = [
    {label: 'kernel', kind: 'kernel', value: (k) => k.short, cell: (k) => h('div.kernelcell', kernelLink(k), badges(k))},
    several && {label: 'share', kind: 'percent', title: 'of all kernels, of what is chosen above', value: (k) => shareOf(k, rank), cell: (k) => shareBar(shareOf(k, rank), most)},
    timed && onGpu && {label: 'time', kind: 'ns', value: (k) => k.time_ns, title: 'measured on the GPU'},
    {label: 'launches', kind: 'count', title: words.launch, value: (k) => k.launches},
    measured && {label: 'thread instructions', kind: 'count', title: words['thread instructions'], value: (k) => k.thread_instructions},
    ranks.warps.known && {label: 'warp instructions', kind: 'count', title: words['warp instructions'], value: (k) => k.warp_instructions},
    ranks.warps.known && {label: 'lanes', kind: 'percent', value: (k) => (k.lane_use === null ? null : 100 * k.lane_use), good: (v) => (v === null ? NaN : v / 100), title: 'of a warp\'s 32 lanes, how many are active'},
    {label: 'registers', kind: 'id', title: words.registers, value: (k) => k.registers.native},
    timed && !onGpu && hostTime,
  ].filter(Boolean);
  const table = new Table(columns, {caption: 'kernels', className: 'kernels', rows: ranked, sort: several ? {at: 1, down: true} : null, limit: 60,
    zero: (k) => !(ranks[firstRank].of(k) > 0), zeroText: measured ? 'not measured' : 'without a time', empty: 'no kernel was launched'});
  const filter = h('input', {type: 'search', id: 'filter', placeholder: 'filter kernels  ( / )', 'aria-label': 'filter kernels by name', autocomplete: 'off', spellcheck: 'false',
    oninput: () => {
      const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
      table.filter(words.length ? (k) => words.every((w) => k.demangled.toLowerCase().includes(w) || k.name.toLowerCase().includes(w)) : null);
      say(plural(table.count, 'kernel'));
      count.textContent = words.length ? `${table.count} of ${kernels.length}` : '';
    }});
  const count = h('span.dim');
  const known = Object.entries(ranks).filter(([, r]) => r.known);
  const by = several && known.length > 1 ? h('label.by', 'share of ', h('select', {onchange: (e) => { rank = e.target.value; measure(); table.show(); }}, known.map(([id, r]) => h('option', {value: id, selected: id === rank}, r.label))))
    : several && known.length ? h('span.by', `share of ${known[0][1].label}`) : null;
  return h('section', {'aria-labelledby': 'kernels-title'}, h('div.bar', h('h2', {id: 'kernels-title'}, 'Kernels'), several ? [filter, count, by] : null), table.element,
    measured || !kernels.some((k) => k.instrumented) ? null : h('p.note', 'No tool of this run counts instructions: ', h('code', '-t blocks'), ' does.'));
}

export function overview() {
  list ??= kernelList();
  return h('div', h('h1.command', {tabindex: '-1'}, h('code', command(report.command))), facts(),
    measured || findings.length ? h('section', {'aria-labelledby': 'findings-title'}, h('h2', {id: 'findings-title'}, 'Findings'), allFindings()) : null,
    list, coverageLine(), core.page.only_kernels ? h('p.note', `Only kernels that match ${core.page.only_kernels} are on this page.`) : null);
}
