// A table that sorts, filters, and folds away the rows that have nothing to say.
//   columns: [{label, unit, kind, value(row), cell(row, table)?, span(row)?, left?, title?}]
//   options: {caption, rows, words (whose words its heads are), sort: {at, down}, zero(row)?, zeroText, limit, row(row, tr)?, empty}
//   A row with `group` stands for those rows; a column's span(row)? is [least, most] of them.
import {followsLink, grade, h, numeral, say} from './dom.js';
import {exact, number, parts2, plural, text2} from './format.js';
import {wordOf} from './words.js';

// Of a device of software: no time of a kernel.
export const hostTime = {label: 'host time', unit: 'no GPU', kind: 'ns', className: 'host', value: (x) => x.time_ns, title: 'how long the host took in place of a GPU: says nothing about a GPU'};

const textKinds = new Set(['text', 'kernel', 'place', 'hex']);

function compare(a, b) {
  const x = number(a), y = number(b);
  const nx = Number.isNaN(x), ny = Number.isNaN(y);
  if (nx && ny) return String(a ?? '').localeCompare(String(b ?? ''), 'en', {numeric: true});
  if (nx || ny) return nx ? 1 : -1; // what was not measured stands last, whichever way
  return x - y;
}

export class Table {
  constructor(columns, options) {
    Object.assign(this, {columns, sort: null, limit: 40, zeroText: 'rows of zero', ...options});
    this.all = this.rows;
    this.unfolded = false;
    this.apart = new Set(); // rows that stood behind another one

    this.body = h('tbody');
    this.head = h('tr');
    this.foot = h('p.more');
    this.table = h('table', {class: this.className}, this.caption ? h('caption.unseen', this.caption) : null, h('thead', this.head), this.body);
    this.element = h('div.tablebox', h('div.scroll', {tabindex: '0', role: 'group', 'aria-label': this.caption || 'table'}, this.table), this.foot);
    columns.forEach((c, at) => this.head.append(this.heading(c, at)));
    this.show();
  }

  heading(c, at) {
    const left = c.left ?? textKinds.has(c.kind);
    const arrow = h('span.arrow', {'aria-hidden': 'true'});
    const button = h('button.sort', {type: 'button', onclick: () => this.sortBy(at)}, left ? null : arrow, c.label, c.unit ? h('span.unit', ` ${c.unit}`) : null, left ? arrow : null);
    return h((left ? 'th.left' : 'th') + (c.className ? '.' + c.className : ''), {scope: 'col', title: c.title || (this.words ? wordOf(c.label, this.words) : null)}, button);
  }

  sortBy(at) {
    const down = this.sort && this.sort.at === at ? !this.sort.down : !(this.columns[at].left ?? textKinds.has(this.columns[at].kind));
    this.sort = {at, down};
    this.show();
    say(`sorted by ${this.columns[at].label}, ${down ? 'largest first' : 'smallest first'}`);
  }

  // Keeps the rows of which match(row) is true.
  filter(match) {
    this.match = match;
    this.show();
  }

  ordered() {
    const rows = this.match ? this.all.filter(this.match) : [...this.all];
    if (!this.sort) return rows;
    const {value} = this.columns[this.sort.at], sign = this.sort.down ? -1 : 1;
    const missing = (v) => v === null || v === undefined || (typeof v === 'number' && Number.isNaN(v));
    return rows.map((row) => [value(row), row]).sort(([a], [b]) => (missing(a) || missing(b) ? missing(a) - missing(b) : sign * compare(a, b))).map(([, row]) => row);
  }

  cell(c, row) {
    const left = c.left ?? textKinds.has(c.kind);
    if (c.cell) return h(left ? 'td.left' : 'td', c.cell(row, this));
    const v = c.value(row);
    if (left) return h('td.left', v === null || v === undefined ? '–' : String(v));
    const good = c.good ? c.good(v, row) : NaN, span = c.span?.(row);
    if (span) return h('td' + (grade(good) ? '.' + grade(good) : '') + (c.className ? '.' + c.className : ''), `${text2(span[0], c.kind)} – ${text2(span[1], c.kind)}`);
    return h('td' + (grade(good) ? '.' + grade(good) : '') + (c.className ? '.' + c.className : '') + (c.units ? '' : '.bare'), numeral(v, c.kind));
  }

  show() {
    const rows = this.ordered();
    const kept = this.zero && !this.unfolded ? rows.filter((row) => !this.zero(row)) : rows;
    const folded = rows.length - kept.length;
    const shown = kept.slice(0, this.limit);
    this.count = rows.length;
    this.head.querySelectorAll('th').forEach((th, at) => {
      const is = this.sort && this.sort.at === at;
      if (is) th.setAttribute('aria-sort', this.sort.down ? 'descending' : 'ascending');
      else th.removeAttribute('aria-sort');
    });
    for (const c of this.columns) c.units = !c.cell && shown.some((row) => parts2(c.value(row), c.kind)[1]);
    this.body.replaceChildren(...shown.map((row) => {
      const tr = h('tr', this.columns.map((c) => this.cell(c, row)));
      if (this.row) this.row(row, tr);
      return followsLink(tr);
    }));
    this.table.hidden = !shown.length;
    const foot = [];
    if (!rows.length) foot.push(h('span', this.match && this.all.length ? 'no row matches' : this.empty || 'nothing was counted'));
    if (kept.length > shown.length) foot.push(h('button.link', {type: 'button', 'data-print': plural(kept.length - shown.length, 'further row'), onclick: () => this.showAll()}, `show all ${exact(kept.length)} rows`));
    if (folded) foot.push(h('button.link', {type: 'button', 'data-print': `${plural(folded, 'row')} ${this.zeroText}`, onclick: () => this.unfold()}, `${plural(folded, 'row')} ${this.zeroText}: show`));
    if (this.leftOut) foot.push(h('span', `and ${exact(this.leftOut)} more rows, which --csv prints`));
    this.foot.replaceChildren(...foot.flatMap((f, i) => (i ? [' · ', f] : [f])));
    this.foot.hidden = !foot.length;
  }

  showAll() {
    this.limit = Infinity;
    this.show();
  }

  // The rows that one stood for, in its place.
  ungroup(row) {
    for (const r of row.group) this.apart.add(r);
    this.all = this.all.flatMap((r) => (r === row ? r.group : [r]));
    this.limit += row.group.length;
    this.show();
  }

  unfold() {
    this.unfolded = true;
    this.show();
  }
}
