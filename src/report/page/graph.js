// A kernel's control flow, top to bottom: blocks as boxes coloured by their share of the instructions, edges that lead back in blue.
import {s} from './dom.js';
import {number, percent, text2} from './format.js';

const box = {w: 176, h: 46, gapX: 16, gapY: 38};
export const blocksAtMost = 120;

// Layers by the longest way from the entry over edges that lead forward (to a block not on the way of the search).
function layersOf(blocks, ids) {
  const state = new Map(), order = [], back = new Set();
  for (const root of ids) {
    if (state.has(root)) continue;
    const stack = [[root, 0]];
    state.set(root, 1);
    while (stack.length) {
      const top = stack[stack.length - 1], [id] = top, succ = blocks[id].succ.filter((t) => ids.has(t));
      if (top[1] >= succ.length) {
        state.set(id, 2);
        order.push(id);
        stack.pop();
        continue;
      }
      const to = succ[top[1]++];
      if (state.get(to) === 1) back.add(id + '>' + to);
      else if (!state.has(to)) {
        state.set(to, 1);
        stack.push([to, 0]);
      }
    }
  }
  const layer = new Map([...ids].map((id) => [id, 0]));
  for (const id of order.reverse())
    for (const to of blocks[id].succ)
      if (ids.has(to) && !back.has(id + '>' + to)) layer.set(to, Math.max(layer.get(to), layer.get(id) + 1));
  return {layer, back};
}

// Boxes and, in every layer that an edge passes, a point of that edge: so no edge runs behind a box. An edge that leads back passes
// the layers of both its ends, too: it leaves below, comes in from above.
//   item: {id (null: a point), layer, w, x, up: [item], down: [item], beside (the box in whose layer an edge back turns)}
function itemsOf(blocks, ids, layer, back) {
  const boxes = new Map([...ids].map((id) => [id, {id, layer: layer.get(id), w: box.w, x: 0, up: [], down: [], beside: null}]));
  const items = [...boxes.values()], edges = [];
  const join = (above, below) => { above.down.push(below); below.up.push(above); };
  for (const id of ids)
    for (const to of blocks[id].succ.filter((t) => ids.has(t))) {
      const isBack = back.has(id + '>' + to), from = boxes.get(id), end = boxes.get(to), first = isBack ? end.layer : from.layer + 1, last = isBack ? from.layer : end.layer - 1, points = [];
      for (let at = first; at <= last; at++) points.push({id: null, layer: at, w: 10, x: 0, up: [], down: [], beside: null});
      const chain = isBack ? points : [from, ...points, end];
      for (let i = 1; i < chain.length; i++) join(chain[i - 1], chain[i]);
      if (isBack) {
        points[0].beside = end;
        points[points.length - 1].beside = from;
      }
      items.push(...points);
      edges.push({from, to: end, isBack, points: isBack ? points.reverse() : points});
    }
  return {items, edges};
}

// Centres of a row's items, in their order, as near to what each wants as their widths let them be.
function spread(row, want) {
  const runs = []; // items that touch: {n, sum of (wanted - offset)}
  let offset = 0;
  const offsets = row.map((item, i) => (offset += i ? (row[i - 1].w + item.w) / 2 + box.gapX : 0));
  row.forEach((item, i) => {
    runs.push({n: 1, sum: want.get(item) - offsets[i]});
    for (let r = runs.length - 1; r > 0 && runs[r - 1].sum / runs[r - 1].n >= runs[r].sum / runs[r].n; r--) {
      const {n, sum} = runs.pop();
      runs[r - 1].n += n;
      runs[r - 1].sum += sum;
    }
  });
  let i = 0;
  for (const {n, sum} of runs) for (let k = 0; k < n; k++, i++) row[i].x = sum / n + offsets[i];
}

const mean = (list) => list.reduce((sum, item) => sum + item.x, 0) / list.length;

function crossings(rows) {
  let n = 0;
  for (const row of rows) {
    const lines = row.flatMap((item) => item.down.map((to) => [item.x, to.x]));
    for (let i = 0; i < lines.length; i++) for (let j = 0; j < i; j++) n += (lines[i][0] - lines[j][0]) * (lines[i][1] - lines[j][1]) < 0 ? 1 : 0;
    for (const point of row) if (point.beside) n += row.filter((item) => item.id !== null && (item.x - point.x) * (item.x - point.beside.x) < 0).length;
  }
  return n;
}

// Down and up by turns, each item below (above) the mean of what leads to it; the order with the fewest crossings stays.
function placeItems(items) {
  const rows = [];
  for (const item of items) (rows[item.layer] ??= []).push(item);
  let best = Infinity, kept = null;
  const sweep = (side, row, sort) => {
    const want = new Map(row.map((item) => [item, side(item).length ? mean(side(item)) : item.x]));
    for (const item of row) if (item.beside) want.set(item, ((side(item).length ? want.get(item) : want.get(item.beside)) + want.get(item.beside)) / 2 + 1);
    if (sort) row.sort((a, b) => want.get(a) - want.get(b) || (a.id ?? Infinity) - (b.id ?? Infinity) || 0);
    spread(row, want);
  };
  for (let turn = 0; turn < 16; turn++) {
    const down = turn % 2 === 0, order = down ? rows : [...rows].reverse();
    for (const row of order) sweep(down ? (item) => item.up : (item) => item.down, row, true);
    const n = crossings(rows);
    if (n < best) [best, kept] = [n, rows.map((row) => [...row])];
  }
  for (let turn = 0; turn < 8; turn++) for (const row of kept) sweep((item) => [...item.up, ...item.down], row, false);
}

// Where edges leave or reach a box: side by side, in the order of where they go or come from.
function ports(edges, end, next) {
  const at = new Map();
  for (const e of edges) at.has(e[end]) ? at.get(e[end]).push(e) : at.set(e[end], [e]);
  const x = new Map();
  for (const [item, list] of at) {
    list.sort((a, b) => next(a).x - next(b).x);
    const step = Math.min(24, (box.w - 30) / list.length);
    list.forEach((e, i) => x.set(e, item.x + (i - (list.length - 1) / 2) * step));
  }
  return x;
}

// A line from box to box: curves between layers, straight through them.
function edgePath(e, x0, x1, top) {
  let x = x0, y = top(e.from.layer) + box.h, d = `M${x} ${y}`, below = true; // below: the line stands at the lower side of a layer
  const curve = (toX, toY, fromAbove) => {
    const bend = box.gapY * 0.75;
    d += `C${x} ${y + (below ? bend : -bend)} ${toX} ${toY + (fromAbove ? -bend : bend)} ${toX} ${toY}`;
    [x, y] = [toX, toY];
  };
  for (const p of e.points) {
    const [upper, lower] = [top(p.layer), top(p.layer) + box.h];
    curve(p.x, e.isBack ? lower : upper, !e.isBack);
    y = e.isBack ? upper : lower;
    d += `V${y}`;
    below = !e.isBack;
  }
  curve(x1, top(e.to.layer), true);
  return d;
}

// A place in so many characters: of its file the beginning.
const cut = (text, room) => (text.length <= room ? text : text.replace(/^(.*)(:\d+)$/, (_, file, line) => file.slice(0, Math.max(0, room - line.length - 1)) + '…' + line));

// options: {label(block) -> its place, hash(block)}
export function flowGraph(k, options) {
  const blocks = k.blocks, ids = new Set(blocks.filter((b) => b.thread_entries === null || number(b.thread_entries) > 0 || blocks.length <= 40).map((b) => b.id));
  const {layer, back} = layersOf(blocks, ids), {items, edges} = itemsOf(blocks, ids, layer, back);
  placeItems(items);
  const left = Math.min(...items.map((i) => i.x - i.w / 2)), right = Math.max(...items.map((i) => i.x + i.w / 2)), layers = Math.max(...layer.values()) + 1;
  const margin = 14, above = back.size ? 20 : 0, width = right - left + 2 * margin, height = layers * (box.h + box.gapY) - box.gapY + 2 * (margin + above);
  for (const item of items) item.x += margin - left;
  const centres = new Map(items.filter((i) => i.id !== null).map((i) => [i.id, i.x])), rowTop = (at) => at * (box.h + box.gapY) + margin + above;
  const cx = (id) => centres.get(id), top = (id) => rowTop(layer.get(id));
  const svg = s('svg', {class: 'flow', role: 'group', 'aria-label': 'control flow', viewBox: `0 0 ${width} ${height}`, width, height});
  svg.append(s('defs', {}, s('marker', {id: 'tip', viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: 'auto-start-reverse'}, s('path', {d: 'M0 0L8 4L0 8z', class: 'tip'}))));
  const starts = ports(edges, 'from', (e) => e.points[0] || e.to), ends = ports(edges, 'to', (e) => e.points[e.points.length - 1] || e.from);
  for (const e of edges) svg.append(s('path', {d: edgePath(e, starts.get(e), ends.get(e), rowTop), class: e.isBack ? 'edge back' : 'edge', 'data-edge': `${e.from.id}>${e.to.id}`, 'marker-end': 'url(#tip)'}));
  for (const id of ids) {
    const b = blocks[id], entries = b.thread_entries === null ? '' : `× ${text2(b.thread_entries, 'count')}`, share = percent(number(b.thread_entries) * b.instructions, k.instructions) || 0;
    const node = s('a', {href: options.hash(b), class: 'node', 'data-block': id, 'aria-label': `block ${id}${b.thread_entries === null ? '' : `, ${share.toFixed(1)} % of the instructions`}`},
      s('rect', {x: cx(id) - box.w / 2, y: top(id), width: box.w, height: box.h, rx: 5, class: 'paper'}),
      s('rect', {x: cx(id) - box.w / 2, y: top(id), width: box.w, height: box.h, rx: 5, class: 'heat', style: `fill-opacity:${(0.08 + 0.72 * Math.sqrt(share / 100)) * (share > 0 ? 1 : 0)}`}),
      s('text', {x: cx(id) - box.w / 2 + 8, y: top(id) + 18, class: 'strong'}, `${id}`),
      s('text', {x: cx(id) + box.w / 2 - 8, y: top(id) + 18, 'text-anchor': 'end', class: 'strong'}, b.thread_entries === null ? '' : `${share.toFixed(1)} %`),
      s('text', {x: cx(id) - box.w / 2 + 8, y: top(id) + 36}, cut(options.label(b), 21 - entries.length)),
      s('text', {x: cx(id) + box.w / 2 - 8, y: top(id) + 36, 'text-anchor': 'end'}, entries),
      s('title', {}, `block ${id}: ${b.instructions} instructions, ${b.thread_entries ?? '–'} thread entries`));
    svg.append(node);
  }
  return svg;
}
