// The page as a whole: header, addresses, keys, dark and light.
import {checks, core, deviceName, findings, kernelOf, kernels, measured, onGpu, ranked, report, tools, wasChecked, files} from './data.js';
import {h, say} from './dom.js';
import {baseName, command, date} from './format.js';
import {checksView, spaced} from './findings.js';
import {flameView} from './flame.js';
import {kernelView} from './kernel.js';
import {kernelHash} from './links.js';
import {overview} from './overview.js';
import {runView} from './run.js';
import {hasTimeline, timelineView} from './timeline.js';
import {toolList, toolView} from './toolview.js';
import {words} from './words.js';

const main = document.getElementById('main');
let view = null; // of the kernel that is shown
let shown = '';  // address without the part inside the view
const places = new Map(); // address -> how far it was scrolled

function header() {
  const program = report.command.length ? baseName(report.command[0]) : 'margay', p = report.processes[0] || {};
  const items = [['#/', 'Overview'], hasTimeline() ? ['#/time', 'Time line'] : null, measured && kernels.length > 1 ? ['#/flame', 'Flame graph'] : null, tools.length ? ['#/tools', 'Tools'] : null, wasChecked ? ['#/checks', `--check (${checks.length})`] : null, ['#/run', 'Run']].filter(Boolean);
  document.title = `${program} · Margay`;
  return [h('div.brand', h('a.maker', {href: '#/run', title: `this page was made by margay ${core.page.version}`}, 'Margay'), h('strong', {title: command(report.command)}, program), h('span.dim', {title: onGpu ? null : 'no GPU ran it: counts are those of the device, times are the host\'s'}, [report.device.kind && deviceName(), date(p.start_unix_ns), p.host, report.device.kind && !onGpu && 'times are the host\'s'].filter(Boolean).join(' · '))),
    h('nav', {'aria-label': 'page'}, items.map(([hash, text]) => h('a', {href: hash, 'data-nav': hash}, text)),
      h('button.icon', {type: 'button', title: 'dark or light ( d )', 'aria-label': 'dark or light', onclick: switchTheme}, '◐'), h('button.icon', {type: 'button', title: 'keys and words ( ? )', 'aria-label': 'keys and words', onclick: showKeys}, '?'))];
}

function switchTheme() {
  const root = document.documentElement, dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  root.dataset.theme = dark ? 'light' : 'dark';
  say(root.dataset.theme);
}

const keys = () => [['/', 'filter what is shown'], ['j, k', 'next, previous row'], ['Enter', 'open it'], kernels.length > 1 && ['[, ]', 'hotter, next kernel'], ['o', 'overview'], ['d', 'dark or light'], ['?', 'keys and words']].filter(Boolean);
function showKeys() {
  const old = document.querySelector('dialog');
  if (old) return old.close();
  const rules = findings.length ? Object.entries(core.page.rules).map(([rule, what]) => [`finding: ${spaced(rule)}`, what]) : [];
  const list = [...Object.entries(words), ...rules].map(([key, what]) => { const [word, table = ''] = key.split(': ').reverse(); return {word, table, what}; });
  list.sort((a, b) => a.word.localeCompare(b.word, 'en', {sensitivity: 'base'}) || a.table.localeCompare(b.table, 'en'));
  const rows = list.map(({word, table, what}) => h('div', h('dt', word, table ? h('span.dim', ` (in ${table})`) : null), h('dd', what)));
  const none = h('p.note', {hidden: true}, 'no word matches');
  const filter = h('input', {type: 'search', placeholder: 'filter words', 'aria-label': 'filter words', autocomplete: 'off', spellcheck: 'false', onkeydown: (e) => { if (e.key === 'Enter') e.preventDefault(); }, oninput: () => {
    const text = filter.value.toLowerCase();
    for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(text);
    none.hidden = rows.some((row) => !row.hidden);
  }});
  const d = h('dialog', {'aria-label': 'keys and words', onclose: () => d.remove()},
    h('form', {method: 'dialog'}, h('strong', 'Keys and words'), filter, h('button', {autofocus: true}, 'close')),
    h('h2', 'Keys'), h('dl', keys().map(([k, what]) => [h('dt', h('kbd', k)), h('dd', what)])), h('h2', 'Words'), h('dl.words', rows), none);
  document.body.append(d);
  d.showModal();
}

// ---- addresses -----------------------------------------------------------------------------------------------------

function show(element, address, nav) {
  view = null;
  if (shown) places.set(shown, scrollY);
  main.replaceChildren(element);
  shown = address;
  for (const a of document.querySelectorAll('[data-nav]')) {
    if (a.dataset.nav === nav) a.setAttribute('aria-current', 'page');
    else a.removeAttribute('aria-current');
  }
  measureSticky();
  scrollTo(0, places.get(address) || 0);
  main.querySelector('h1')?.focus({preventScroll: true});
}

// What sticks to the window's upper end: heads of tables stand below it, and what is brought into sight.
function measureSticky() {
  const top = document.getElementById('top').offsetHeight, jump = main.querySelector('.jump');
  const below = jump && getComputedStyle(jump).position === 'sticky' ? jump.offsetHeight : 0;
  document.documentElement.style.setProperty('--top', `${top}px`);
  document.documentElement.style.setProperty('--stick', `${top + below}px`);
}

function bring(e) {
  if (!e) return;
  e.scrollIntoView({block: 'center'});
  (e.querySelector('a, button') || e).focus({preventScroll: true});
}

function nowhere() {
  return h('section', h('h1', {tabindex: '-1'}, 'Not on this page'), h('p', `It has nothing at ${location.hash}. `, h('a', {href: '#/'}, 'To the overview')));
}

function route() {
  const [what, id, part, a, b] = location.hash.replace(/^#\/?/, '').split('/');
  const k = what === 'kernel' ? kernelOf(id) : null, tool = what === 'tool' ? tools.find((t) => t.id === Number(id)) : null;
  if (k) {
    if (shown !== 'kernel/' + id) {
      const made = kernelView(k);
      show(made.element, 'kernel/' + id, '#/');
      view = made;
    }
    if (part === 'line') bring(view.source.reach((files()[Number(a)] || {}).path, Number(b)));
    if (part === 'block' && view.blocks) bring(view.blocks.open(Number(a)));
  } else if (tool) show(toolView(tool), 'tool/' + id, '#/tools');
  else if (what === 'tools') tools.length === 1 ? location.replace(`#/tool/${tools[0].id}`) : show(toolList(), 'tools', '#/tools');
  else if (what === 'checks') show(checksView(), 'checks', '#/checks');
  else if (what === 'time' && hasTimeline()) show(timelineView(), 'time', '#/time');
  else if (what === 'flame') show(flameView(), 'flame', '#/flame');
  else if (what === 'run') show(runView(), 'run', '#/run');
  else if (what) show(nowhere(), 'nowhere', '');
  else show(overview(), '', '#/');
}

// ---- keys ----------------------------------------------------------------------------------------------------------

function moveRow(by) {
  const rows = [...main.querySelectorAll('tbody tr')].filter((tr) => tr.querySelector('a, button') && tr.offsetParent);
  const now = rows.findIndex((tr) => tr.contains(document.activeElement));
  const to = rows[now < 0 ? 0 : Math.min(rows.length - 1, Math.max(0, now + by))];
  if (!to) return;
  to.querySelector('a, button').focus();
  to.scrollIntoView({block: 'nearest'});
}

function stepKernel(by) {
  const k = kernelOf(shown.replace(/^kernel\//, '')), to = ranked[ranked.indexOf(k) + by];
  if (k && to && shown.startsWith('kernel/')) location.hash = kernelHash(to);
}

// The field that filters what is shown; where there is none, that of the kernels.
function toFilter() {
  const here = main.querySelector('input[type=search]');
  if (here) return here.focus();
  if (kernels.length < 2) return say('nothing to filter here');
  location.hash = '#/';
  setTimeout(() => document.getElementById('filter').focus());
}

const actions = {
  '/': toFilter,
  j: () => moveRow(1), k: () => moveRow(-1), '[': () => stepKernel(-1), ']': () => stepKernel(1), o: () => { location.hash = '#/'; }, d: switchTheme, '?': showKeys,
};

// Escape empties a search field, and what it filters with it, before the browser does so without a word.
function leave(field) {
  if (field.type === 'search' && field.value) {
    field.value = '';
    field.dispatchEvent(new Event('input'));
  }
  field.blur();
}

function onKey(e) {
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  if (e.target.matches('input, select, textarea')) {
    if (e.key === 'Escape') {
      if (e.target.value) e.preventDefault(); // a dialog stays open
      leave(e.target);
    }
    return;
  }
  const act = actions[e.key];
  if (!act) return;
  e.preventDefault();
  act();
}

document.getElementById('top').append(...header());
addEventListener('resize', measureSticky);
addEventListener('hashchange', route);
addEventListener('click', (e) => { if (e.target.closest?.('a')?.getAttribute('href') === location.hash) route(); }); // a link to where one is brings it into sight again
addEventListener('keydown', onKey);
route();
document.documentElement.dataset.ready = 'yes';
