// What the run was: command, device, options, processes; and its coverage: what was not instrumented, and why.
import {core, deviceName, kernelOf, kernels, report, runsOf, tools} from './data.js';
import {h} from './dom.js';
import {command, date, exact, number, plural} from './format.js';
import {kernelLink, placeLink, placeText} from './links.js';
import {Table} from './table.js';

export function coverageLine() {
  const c = report.coverage;
  if (!c.launches) return h('p.note', 'No launch was recorded.');
  const whole = c.instrumented === c.launches, share = (100 * c.instrumented / c.launches).toFixed(1);
  if (whole && !c.native.length) return h('p.note', number(c.launches) === 1 ? 'Its one launch was instrumented.' : `All ${exact(c.launches)} launches were instrumented.`);
  return h('p.note', `${exact(c.instrumented)} of ${exact(c.launches)} launches instrumented (${share} %)`,
    c.time_pct !== null ? `, ${c.time_pct.toFixed(1)} % of kernel time (${(c.timed_pct ?? 0).toFixed(1)} % of launches timed)` : '', '. ',
    c.native.length ? h('a', {href: '#/run'}, 'Why the others were not') : null);
}

function pairs(list) {
  return h('dl', list.filter(([, v]) => v !== null && v !== undefined && v !== '' && v !== false).map(([k, v]) => [h('dt', k), h('dd', v)]));
}

function about() {
  const p = report.processes[0] || {}, d = report.device;
  return pairs([
    ['command', h('code', command(report.command))],
    ['date', date(p.start_unix_ns)],
    ['device', d.kind ? `${deviceName()}: ${d.sms} multiprocessors${d.sm ? `, compute capability ${Math.floor(d.sm / 10)}.${d.sm % 10}` : ''}` : 'no CUDA call was made'],
    ['properties of', d.properties],
    ['host', p.host],
    ['exit status', report.exit === null ? 'not seen' : String(report.exit)],
    ['tools', h('ul.plainlist', tools.map((t) => h('li', h('code', t.options ? `${t.name},${t.options}` : t.name))))],
    ['profile', h('code', core.page.profile)],
    ['page made by', `margay ${core.page.version}`],
  ]);
}

const unusual = [
  ['failed', 'launches ran native because instrumenting them failed'], ['spoilt', 'launches have no counts: the program wrote into them'],
  ['unknown', 'launches or replays hold kernels that nobody could count'], ['not_written', 'launches are not in the profile: recording had stopped'],
  ['incomplete', 'launches did not complete and are not in the counts'], ['no_end', 'launches have no recorded end'], ['open_processes', 'processes have no recorded end'], ['empty_processes', 'processes could record nothing'],
  ['device_launches', 'kernels were launched by kernels'], ['repeats', 'further launches were made by --repeat'],
];

// Registers that one place may read before they are written stand in one row.
function unwritten(list, named) {
  if (!list.length) return null;
  const rows = [...Map.groupBy(list, (r) => [r.kernel, r.function, r.file, r.file ? r.line : r.ptx_line].join('\n')).values()];
  const functionOf = ([r]) => { const k = named.get(r.kernel); return r.function === r.kernel ? '' : (k && runsOf(k) && k.functions[r.function]) || r.function; };
  return [h('h3', 'Registers that may be read before they are written'), new Table([
    {label: 'kernel', kind: 'kernel', value: ([r]) => (named.get(r.kernel) || {}).short ?? r.kernel, cell: ([r]) => (named.has(r.kernel) ? kernelLink(named.get(r.kernel)) : r.kernel)},
    rows.some(functionOf) && {label: 'function', kind: 'text', value: functionOf},
    {label: 'place', kind: 'place', value: ([r]) => placeText(r.file, r.line, r.ptx_line), cell: ([r]) => placeLink(r.file && named.get(r.kernel), [r.file, r.line, r.ptx_line])},
    {label: 'registers', kind: 'text', value: (group) => group.slice(0, 6).map((r) => r.register).join(', ') + (group.length > 6 ? ` and ${group.length - 6} more` : '')},
  ].filter(Boolean), {caption: 'registers that may be read before they are written', rows}).element];
}

function coverage() {
  const c = report.coverage, named = new Map(kernels.map((k) => [k.name, k]));
  const reasons = new Table([
    {label: 'kernel', kind: 'kernel', value: (r) => r.kernel, cell: (r) => (named.has(r.kernel) ? kernelLink(named.get(r.kernel)) : r.kernel)},
    {label: 'launches', kind: 'count', value: (r) => r.launches},
    {label: 'ran', kind: 'text', value: (r) => r.ran},
    {label: 'reason', kind: 'text', value: (r) => r.reason},
  ], {caption: 'what was not instrumented', rows: c.native, sort: {at: 1, down: true}});
  const alone = new Table([
    {label: 'kernel', kind: 'kernel', value: (r) => (kernelOf(r.kernel) || {}).short, cell: (r) => (kernelOf(r.kernel) ? kernelLink(kernelOf(r.kernel)) : '–')},
    {label: 'tool', kind: 'text', value: (r) => r.tool}, {label: 'reason', kind: 'text', value: (r) => r.reason},
  ], {caption: 'kernels that a tool left alone', rows: core.left_alone});
  return [coverageLine(), h('ul', unusual.filter(([key]) => c[key]).map(([key, text]) => h('li', `${exact(c[key])} ${text}`))),
    c.native.length ? [h('h3', 'Not instrumented'), reasons.element] : null,
    core.left_alone.length ? [h('h3', 'Left alone by a tool'), alone.element] : null,
    unwritten(c.unwritten_registers, named)];
}

function processes() {
  if (report.processes.length < 2) return null;
  return [h('h2', 'Processes'), new Table([
    {label: 'pid', kind: 'id', value: (p) => p.pid}, {label: 'rank', kind: 'id', value: (p) => p.rank},
    {label: 'command', kind: 'text', value: (p) => command(p.command)}, {label: 'device', kind: 'text', value: (p) => p.device},
    {label: 'exit', kind: 'id', value: (p) => p.exit}, {label: 'ended', kind: 'text', value: (p) => (p.closed ? 'yes' : 'no end recorded')},
    {label: 'started', kind: 'text', value: (p) => date(p.start_unix_ns)},
  ], {caption: 'processes', rows: report.processes}).element];
}

export function runView() {
  return h('section', h('h1', {tabindex: '-1'}, 'Run'), about(), h('h2', 'Coverage'), coverage(), processes());
}
