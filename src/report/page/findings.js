// Findings in words (report.findings), and what --check found.
import {checks, core, findings, kernelOf, kernelOfCheck, kernels, nameOf, onGpu, report, textOf, timed, tools, wasChecked} from './data.js';
import {followsLink, h, numeral} from './dom.js';
import {exact, number, plural} from './format.js';
import {kernelHash, kernelLink, placeLink, placeText} from './links.js';
import {Table} from './table.js';
import {words} from './words.js';

export const spaced = (rule) => rule.replace(/_/g, ' ');

// A finding that says what holds a kernel up has nothing to gain: it has neither a rank nor a place to fix.
export const isVerdict = (f) => !(number(f.gain_pct) > 0);

// Its line; without line information its line of the PTX, which leads to the block.
function placeOf(k, f) {
  if (f.file) return placeLink(k, [f.file, f.line, 0, 0]);
  if (!f.ptx_line || !k) return null;
  const block = k.blocks.filter((b) => b.function === f.function && b.ptx_line <= f.ptx_line).pop();
  return block ? placeLink(k, [null, 0, f.ptx_line, block.id]) : placeText(null, 0, f.ptx_line);
}

// Its text behind its figures (show.c does the same).
const causeOf = (f) => textOf(f)[0].replace(/^.*?[:.] /s, '');

// Findings that say the same of other places of a kernel, verdicts of other kernels, stand with the first: [[finding, ...], ...]
function alike(list) {
  const groups = new Map();
  list.forEach((f) => {
    const key = isVerdict(f) ? [f.rule, f.text || f.why].join('\n') : [f.rule, f.kernel, f.buffer, causeOf(f)].join('\n');
    groups.has(key) ? groups.get(key).push(f) : groups.set(key, [f]);
  });
  return [...groups.values()];
}

const measureOf = (f) => (f.measure !== null && f.measure !== undefined ? [numeral(f.measure, 'real'), ` ${f.unit || ''}`] : null);
// Its rule, as people read it.
const ruleOf = (f) => h('strong', {title: core.page.rules[f.rule]}, spaced(f.rule));

// Its measure with how sure that is: the gain is an estimate in any case.
const measuredAs = (f) => h('span.sure', {title: words[f.sure === 'exact' ? 'exact' : 'by a model']}, measureOf(f), measureOf(f) ? ', ' : '', h('strong', {class: f.sure}, f.sure === 'exact' ? 'exact' : 'by a model'));

function findingCard([f, ...others], rank, here) {
  const k = kernelOf(f.kernel), place = placeOf(k, f);
  return followsLink(h('li.card', h('div.cardhead', h('span.rank', String(rank)), ruleOf(f), place && [' at ', place], f.buffer ? [' on ', h('code', f.buffer)] : null, f.header ? [', which calls ', h('code', placeText(f.header, f.header_line))] : null, k && k !== here && [' in ', kernelLink(k)]),
    h('p', textOf(f)[0], h('span.dim', textOf(f)[1])),
    others.length ? h('p.same', 'The same at ', others.slice(0, 8).map((o, i) => [i ? ', ' : '', placeOf(k, o), ` (${number(o.gain_pct).toFixed(1)} %)`]), others.length > 8 ? ` and ${others.length - 8} more places` : '') : null,
    h('p.facts', h('span.gain', {title: words.gain}, 'fixing it is estimated to gain ', h('strong', `${number(f.gain_pct).toFixed(1)} %`), ` of ${report.findings_in}`),
      kernels.length > 1 && f.share_pct !== null && f.share_pct !== undefined ? h('span', `the kernel is ${number(f.share_pct).toFixed(1)} % of that`) : null,
      measuredAs(f))));
}

// What holds a kernel up, or why nobody can tell: one line, of another kind than what can be fixed.
function verdictLine([f, ...others], here) {
  const named = [f, ...others].map((v) => kernelOf(v.kernel)).filter((k) => k && k !== here), links = named.length === 1 ? kernelLink(named[0]) : named.slice(0, 8).map((k, i) => [i ? ', ' : '', h('a', {href: kernelHash(k), title: nameOf(k)}, k.short)]);
  return followsLink(h('li.verdict', h('span.badge', f.rule ? 'verdict' : 'no verdict'), f.rule ? [' ', ruleOf(f)] : null, named.length ? [f.rule ? ' in ' : ' on ', links, named.length > 8 ? ` and ${named.length - 8} more kernels` : ''] : null, named.length || f.rule ? ': ' : ' ', f.text || f.why,
    f.rule ? h('span.facts', ' (', measuredAs(f), ')') : null));
}

// What the rules that ran did not find, or need to find something.
function unfound(found) {
  if (!found.some((f) => !isVerdict(f)) && report.findings_complete) return h('p.note', 'No rule found what fixing would gain 1 % of the kernels\' work.');
  if (!report.findings_complete) return h('p.note', found.length ? 'Not every rule had what it reads: ' : 'No rule had all that it reads: ', h('code', 'margay run -t advise'), ' runs the tools of all.',
    found.length && !(onGpu && timed) && !tools.some((t) => t.name === 'memory') ? ' Without memory, gains come out too large.' : '');
  return null;
}

export function allFindings() {
  return [findingList(findings), unfound(findings)];
}

// Whether a kernel's view has something to say about what holds it up.
export const judged = (k) => findings.some((f) => f.kernel === k.id) || (report.no_verdict || []).some((u) => u.kernel === k.id);

// here: the kernel whose view this is.
export function findingList(found, here, limit = 5) {
  const unjudged = (report.no_verdict || []).filter((u) => !here || u.kernel === here.id);
  return [cutList('ol.cards', 'more finding', alike(found.filter((f) => !isVerdict(f))), limit, (f, i) => findingCard(f, i + 1, here)),
    cutList('ul.verdicts', 'more verdict', alike([...found.filter(isVerdict), ...unjudged]), 4, (f) => verdictLine(f, here))];
}

// The first of a list, and a button for the others.
function cutList(what, word, list, limit, item) {
  if (!list.length) return null;
  const rest = list.length > limit ? plural(list.length - limit, word) : '';
  const more = rest && h('button.link', {type: 'button', 'data-print': rest, onclick: () => more.replaceWith(h(what, list.slice(limit).map((x, i) => item(x, limit + i))))}, rest);
  return [h(what, list.slice(0, limit).map(item)), more || null];
}

export const findingsOf = (k) => findings.filter((f) => f.kernel === k.id);
export const cardsOf = (k) => alike(findingsOf(k).filter((f) => !isVerdict(f))); // as many as its view shows
export const checksOf = (k) => checks.filter((f) => kernelOfCheck(f) === k);

// ---- --check ---------------------------------------------------------------------------------------------------

const point = (v) => (v ? `(${v.join(', ')})` : '');
function side(k, a) {
  if (!a || !a.access) return '–';
  return [`${a.access} `, placeLink(k, [a.file, a.line, a.ptx_line, 0]), h('span.dim', ` thread ${point(a.thread)}, CTA ${point(a.cta)}`)];
}

export function checkTable(list, k) {
  const columns = [
    {label: 'kind', kind: 'text', value: (f) => f.kind, cell: (f) => h('span', {class: f.kind === 'note' ? '' : 'badge bad'}, f.kind)},
    k ? null : {label: 'kernel', kind: 'kernel', value: (f) => (kernelOfCheck(f) || {}).short, cell: (f) => { const at = kernelOfCheck(f); return at ? kernelLink(at) : '–'; }},
    {label: 'access', kind: 'place', value: (f) => placeText(f.file, f.line, f.ptx_line), cell: (f) => side(kernelOfCheck(f), f)},
    {label: 'other side', kind: 'place', value: (f) => f.other && placeText(f.other.file, f.other.line, f.other.ptx_line), cell: (f) => side(kernelOfCheck(f), f.other)},
    {label: 'memory', kind: 'text', value: (f) => f.allocation && f.allocation.name, cell: (f) => (f.allocation ? [h('code', f.allocation.name || ''), f.address ? ` at ${f.address}` : ''] : '–')},
    {label: 'times', kind: 'count', value: (f) => f.times},
  ].filter(Boolean);
  return new Table(columns, {caption: 'what --check found', rows: list, sort: {at: columns.length - 1, down: true}, empty: 'nothing was found',
    row: (f, tr) => { if (f.text) tr.title = f.text; }});
}

// Opcodes whose undefined values --check does not follow, each once.
function notFollowed() {
  const names = new Map();
  for (const n of core.check.not_looked_at.flat()) names.set(n.name, (names.get(n.name) || 0) + (number(n.launches) || 0));
  if (!names.size) return null;
  return [h('h2', 'Not looked at for undefined values'), new Table([
    {label: 'instruction', kind: 'text', value: ([name]) => name, cell: ([name]) => h('code', name)}, {label: 'launches', kind: 'count', value: ([, n]) => n},
  ], {caption: 'instructions whose undefined values are not followed', rows: [...names]}).element];
}

export function checksView() {
  return h('section', h('h1', {tabindex: '-1'}, '--check'),
    wasChecked ? [h('p.lead', checks.length ? `${plural(checks.length, 'finding')}, ${exact(checks.reduce((a, f) => a + (number(f.times) || 0), 0))} times.` : 'Nothing was found.'), checks.length ? checkTable(checks).element : null]
      : h('p.note', 'This run was made without --check.'), notFollowed());
}
