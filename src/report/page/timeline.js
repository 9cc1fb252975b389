// The time line: a row for each thread's calls, each stream's work and each event in kernels, to zoom and move in. Drawn on
// a canvas: what is smaller than a pixel is drawn once. Spans that the page holds as one (page_spans.c) say how many they
// are.
import {kernelNamed, report} from './data.js';
import {h, say} from './dom.js';
import {exact, plural, text2} from './format.js';
import {kernelLink} from './links.js';
import {part} from './pack.js';

export const hasTimeline = () => !!part('spans');

const row = {height: 22, gap: 4, top: 26, left: 190};
const colors = ['#4477aa', '#ee6677', '#228833', '#ccbb44', '#66ccee', '#aa3377', '#dd7733', '#117733', '#7766bb'];

function label(r, several) {
  const process = several ? `${r.rank === null ? `pid ${r.process}` : `rank ${r.rank}`} · ` : '';
  if (r.event) return `${process}device ${r.device}, in kernels: ${r.event}`;
  if (r.work) return `${process}device ${r.device}, stream ${r.stream}${r.context ? `, context ${r.context}` : ''}`;
  return `${process}${r.thread_name || `thread ${r.thread}`} · ${r.layer}`;
}

// Spans of a row as arrays; `reach` is the latest end up to each, so that what overlaps a time is found by halving.
function unfold(r) {
  const n = r.spans.length / 4, begin = new Float64Array(n), end = new Float64Array(n), reach = new Float64Array(n), name = new Uint32Array(n), count = new Uint32Array(n);
  for (let i = 0, at = 0, most = 0; i < n; i++) {
    at += Number(r.spans[4 * i]);
    begin[i] = at;
    end[i] = at + Number(r.spans[4 * i + 1]);
    name[i] = r.spans[4 * i + 2];
    count[i] = r.spans[4 * i + 3];
    reach[i] = most = Math.max(most, end[i]);
  }
  return {n, begin, end, reach, name, count};
}

function firstAt(values, t) {
  let low = 0, high = values.length;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (values[mid] < t) low = mid + 1;
    else high = mid;
  }
  return low;
}

function step(span, room) {
  const raw = span / room, ten = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 5, 10].map((f) => f * ten).find((s) => s >= raw) || ten * 10;
}

class Timeline {
  constructor(data) {
    this.data = data;
    this.rows = data.rows.map((r) => ({...unfold(r), event: r.event, label: label(r, new Set(data.rows.map((x) => x.process)).size > 1)}));
    this.names = data.names.map((name) => kernelNamed(name)?.short ?? name);
    this.length = Math.max(1, Number(data.length_ns));
    this.canvas = h('canvas.time', {tabindex: '0', role: 'img', 'aria-label': `time line of ${plural(this.rows.length, 'row')}: + and - zoom, left and right move, 0 shows all, n and p pick the next and previous span, up and down the row`});
    this.tip = h('div.tip', {hidden: true});
    this.about = h('p.note', 'Wheel or + and - zoom, drag or ← and → move, 0 shows all. Click a span to see what it is, or pick one by n and p, its row by ↑ and ↓.');
    this.picked = null;
    this.element = h('div.timebox', this.canvas, this.tip);
    this.look(0, this.length);
    this.listen();
  }

  look(from, to) {
    const span = Math.min(this.length, Math.max(10, to - from));
    this.from = Math.max(0, Math.min(from, this.length - span));
    this.to = this.from + span;
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.draw());
  }

  zoom(by, at = (this.from + this.to) / 2) {
    this.look(at - (at - this.from) * by, at + (this.to - at) * by);
  }

  x(t) { return row.left + (t - this.from) / (this.to - this.from) * (this.width - row.left); }
  t(x) { return this.from + (x - row.left) / (this.width - row.left) * (this.to - this.from); }

  draw() {
    const c = this.canvas, scale = devicePixelRatio || 1, style = getComputedStyle(document.body), ink = style.color;
    this.width = c.parentElement.clientWidth || 800;
    this.height = row.top + this.rows.length * (row.height + row.gap);
    c.width = this.width * scale;
    c.height = this.height * scale;
    c.style.height = `${this.height}px`;
    const g = c.getContext('2d');
    g.scale(scale, scale);
    g.font = '12px system-ui, sans-serif';
    g.textBaseline = 'middle';
    this.axis(g, ink);
    this.rows.forEach((r, i) => this.drawRow(g, r, row.top + i * (row.height + row.gap), ink));
  }

  axis(g, ink) {
    const by = step(this.to - this.from, (this.width - row.left) / 110);
    g.fillStyle = g.strokeStyle = ink;
    for (let t = Math.ceil(this.from / by) * by; t <= this.to; t += by) {
      const x = Math.round(this.x(t)) + 0.5;
      g.globalAlpha = 0.15;
      g.fillRect(x, row.top - 6, 1, this.height);
      g.globalAlpha = 0.75;
      g.fillText(text2(t, 'ns'), x + 3, 10);
    }
    g.globalAlpha = 1;
  }

  drawRow(g, r, y, ink) {
    g.fillStyle = ink;
    g.globalAlpha = 0.85;
    g.fillText(r.label.length > 28 ? r.label.slice(0, 27) + '…' : r.label, 4, y + row.height / 2);
    g.globalAlpha = 0.05;
    g.fillRect(row.left, y, this.width - row.left, row.height);
    g.globalAlpha = 1;
    let drawn = -1;
    for (let i = firstAt(r.reach, this.from); i < r.n && r.begin[i] <= this.to; i++) {
      const x0 = Math.max(row.left, this.x(r.begin[i])), x1 = Math.min(this.width, this.x(r.end[i])), wide = Math.max(1, x1 - x0);
      if (x0 + wide <= drawn + 0.5) continue;
      drawn = x0 + wide;
      g.fillStyle = r.name[i] ? colors[r.name[i] % colors.length] : '#999';
      g.fillRect(x0, y + 1, wide > 3 ? wide - 0.5 : wide, row.height - 2);
      if (wide > 40) {
        const text = this.names[r.name[i]] || `${r.count[i]} spans`, most = Math.floor((wide - 8) / 6.4);
        g.fillStyle = '#fff';
        g.fillText(text.length > most ? text.slice(0, Math.max(1, most - 1)) + '…' : text, x0 + 4, y + row.height / 2 + 1);
      }
    }
    if (this.picked?.r !== r) return;
    const {i} = this.picked, x0 = Math.max(row.left, this.x(r.begin[i])), x1 = Math.min(this.width, this.x(r.end[i]));
    g.strokeStyle = ink;
    g.lineWidth = 2;
    if (x1 >= row.left && x0 <= this.width) g.strokeRect(x0 - 1, y, Math.max(2, x1 - x0) + 2, row.height);
  }

  // Says what a span is, and brings it into sight.
  pick(found) {
    this.picked = found;
    const {r, i} = found, {k, text} = this.tell(found), half = (this.to - this.from) / 2;
    this.about.replaceChildren(text, ...(k ? [' · ', kernelLink(k)] : []));
    say(text);
    if (r.begin[i] > this.to || r.end[i] < this.from) this.look(r.begin[i] - half, r.begin[i] + half);
    else this.look(this.from, this.to);
  }

  // The span that is `by` further in its row; where none is picked yet, the first in sight. down: the row below.
  step(by, down = 0) {
    const at = this.picked ? this.rows.indexOf(this.picked.r) : 0, r = this.rows[Math.min(this.rows.length - 1, Math.max(0, at + (this.picked ? down : 0)))];
    if (!r || !r.n) return;
    const first = Math.min(r.n - 1, firstAt(r.reach, this.picked && down ? this.picked.r.begin[this.picked.i] : this.from));
    this.pick({r, i: this.picked && !down ? Math.min(r.n - 1, Math.max(0, this.picked.i + by)) : first});
  }

  // The shortest span below a point: of nested ones the inner. Where none is, one that is two pixels away.
  at(x, y) {
    const r = this.rows[Math.floor((y - row.top) / (row.height + row.gap))];
    if (!r || x < row.left) return null;
    const near = (this.to - this.from) / (this.width - row.left) * 2, t = this.t(x);
    let best = -1, below = false;
    for (let i = firstAt(r.reach, t - near); i < r.n && r.begin[i] <= t + near; i++) {
      const is = r.begin[i] <= t && t <= r.end[i];
      if (r.end[i] < t - near || is < below) continue;
      if (best < 0 || is > below || r.end[i] - r.begin[i] <= r.end[best] - r.begin[best]) best = i;
      below = is;
    }
    return best < 0 ? null : {r, i: best};
  }

  tell({r, i}) {
    const name = this.data.names[r.name[i]], k = !r.event && kernelNamed(name);
    const what = r.count[i] > 1 ? `${plural(r.count[i], 'span')}${name ? ` of ${name}` : ''}` : k ? k.demangled : name;
    return {k, text: `${what}: ${text2(r.end[i] - r.begin[i], 'ns')} from ${text2(r.begin[i], 'ns')} on, ${r.label}`};
  }

  point(e) {
    const box = this.canvas.getBoundingClientRect();
    return [e.clientX - box.left, e.clientY - box.top];
  }

  listen() {
    let drag = null;
    this.canvas.addEventListener('wheel', (e) => {
      if (e.ctrlKey) return;
      e.preventDefault();
      const [x] = this.point(e), span = this.to - this.from;
      if (Math.abs(e.deltaX) > Math.abs(e.deltaY) || e.shiftKey) this.look(this.from + (e.deltaX || e.deltaY) / this.width * span, this.to + (e.deltaX || e.deltaY) / this.width * span);
      else this.zoom(e.deltaY > 0 ? 1.25 : 0.8, this.t(Math.max(row.left, x)));
    }, {passive: false});
    this.canvas.addEventListener('pointerdown', (e) => {
      drag = {x: e.clientX, from: this.from, to: this.to, moved: false};
      this.canvas.setPointerCapture(e.pointerId);
    });
    this.canvas.addEventListener('pointermove', (e) => {
      const [x, y] = this.point(e);
      if (drag) {
        const by = (drag.x - e.clientX) / (this.width - row.left) * (drag.to - drag.from);
        drag.moved ||= Math.abs(drag.x - e.clientX) > 3;
        if (drag.moved) this.look(drag.from + by, drag.to + by);
      }
      const found = drag ? null : this.at(x, y);
      this.tip.hidden = !found;
      if (found) {
        this.tip.textContent = this.tell(found).text;
        this.tip.style.left = `${Math.min(x + 12, this.width - 280)}px`;
        this.tip.style.top = `${y + 16}px`;
      }
    });
    this.canvas.addEventListener('pointerup', (e) => {
      const found = drag && !drag.moved ? this.at(...this.point(e)) : null;
      drag = null;
      if (found) this.pick(found);
    });
    this.canvas.addEventListener('pointerleave', () => { this.tip.hidden = true; });
    this.canvas.addEventListener('keydown', (e) => {
      const span = this.to - this.from;
      const act = {'+': () => this.zoom(0.5), '=': () => this.zoom(0.5), '-': () => this.zoom(2), 0: () => this.look(0, this.length),
        ArrowLeft: () => this.look(this.from - span / 4, this.to - span / 4), ArrowRight: () => this.look(this.from + span / 4, this.to + span / 4)}[e.key];
      const step = {n: () => this.step(1), p: () => this.step(-1), ArrowDown: () => this.step(0, 1), ArrowUp: () => this.step(0, -1)}[e.key];
      if ((!act && !step) || e.ctrlKey || e.metaKey || e.altKey) return;
      e.preventDefault();
      e.stopPropagation();
      if (step) return step();
      act();
      say(`from ${text2(this.from, 'ns')} to ${text2(this.to, 'ns')}`);
    });
    addEventListener('resize', () => { if (this.canvas.isConnected) this.look(this.from, this.to); });
  }
}

let timeline = null;
export function timelineView() {
  const data = part('spans');
  timeline ??= new Timeline(data);
  timeline.look(timeline.from, timeline.to);
  return h('section', h('h1', {tabindex: '-1'}, 'Time line'),
    h('p.note', `${exact(data.spans)} spans in ${text2(data.length_ns, 'ns')}`, data.resolution_ns ? `; neighbours within ${text2(data.resolution_ns, 'ns')} are shown as one` : '', data.left_out ? `; ${exact(data.left_out)} of further threads and streams are left out` : '', report.processes.length > 1 ? `; ${plural(report.processes.length, 'process', 'processes')}` : '', '.'),
    timeline.element, timeline.about);
}
