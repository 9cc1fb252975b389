// A kernel's control flow, top to bottom: blocks as boxes coloured by their share of the instructions, edges that lead back at the side.
import {s} from './dom.js';
import {number, percent, text2} from './format.js';

const box = {w: 176, h: 46, gapX: 22, gapY: 34};
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

// In each layer blocks stand below the mean of those that lead to them.
function place(blocks, ids, layer) {
  const rows = [];
  for (const id of ids) (rows[layer.get(id)] ??= []).push(id);
  const x = new Map();
  rows.forEach((row, at) => {
    const want = new Map(row.map((id) => {
      const from = [...ids].filter((f) => layer.get(f) < at && blocks[f].succ.includes(id)).map((f) => x.get(f));
      return [id, from.length ? from.reduce((a, b) => a + b, 0) / from.length : 0];
    }));
    row.sort((a, b) => want.get(a) - want.get(b) || a - b);
    const width = row.length * box.w + (row.length - 1) * box.gapX, mean = row.reduce((a, id) => a + want.get(id), 0) / row.length;
    row.forEach((id, i) => x.set(id, mean - width / 2 + i * (box.w + box.gapX) + box.w / 2));
  });
  return x;
}

// options: {label(block) -> second line, open(id)}
export function flowGraph(k, options) {
  const blocks = k.blocks, ids = new Set(blocks.filter((b) => number(b.thread_entries) > 0 || blocks.length <= 40).map((b) => b.id));
  const {layer, back} = layersOf(blocks, ids), x = place(blocks, ids, layer);
  const left = Math.min(...x.values()) - box.w / 2, right = Math.max(...x.values()) + box.w / 2;
  const layers = Math.max(...layer.values()) + 1, lanes = [...back].length;
  const margin = 14, width = right - left + 2 * margin + Math.min(lanes, 8) * 9 + 10, height = layers * (box.h + box.gapY) - box.gapY + 2 * margin;
  const cx = (id) => x.get(id) - left + margin, top = (id) => layer.get(id) * (box.h + box.gapY) + margin;
  const svg = s('svg', {class: 'flow', role: 'group', 'aria-label': 'control flow', viewBox: `0 0 ${width} ${height}`, width, height});
  svg.append(s('defs', {}, s('marker', {id: 'tip', viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: 'auto-start-reverse'}, s('path', {d: 'M0 0L8 4L0 8z', class: 'tip'}))));
  let lane = 0;
  for (const id of ids)
    for (const to of blocks[id].succ.filter((t) => ids.has(t))) {
      const y0 = top(id) + box.h, y1 = top(to), isBack = back.has(id + '>' + to);
      let d = `M${cx(id)} ${y0}C${cx(id)} ${y0 + box.gapY * 0.7} ${cx(to)} ${y1 - box.gapY * 0.7} ${cx(to)} ${y1}`;
      if (isBack) {
        const side = right - left + margin + 12 + (lane++ % 8) * 9, from = cx(id) + box.w / 2, end = cx(to) + box.w / 2;
        d = `M${from} ${y0 - 10}H${side - 5}Q${side} ${y0 - 10} ${side} ${y0 - 15}V${y1 + 15}Q${side} ${y1 + 10} ${side - 5} ${y1 + 10}H${end}`;
      }
      svg.append(s('path', {d, class: isBack ? 'edge back' : 'edge', 'marker-end': 'url(#tip)'}));
    }
  for (const id of ids) {
    const b = blocks[id], share = percent(number(b.thread_entries) * b.instructions, k.instructions) || 0;
    const node = s('a', {href: options.hash(b), class: 'node', 'data-block': id, 'aria-label': `block ${id}, ${share.toFixed(1)} % of the instructions`},
      s('rect', {x: cx(id) - box.w / 2, y: top(id), width: box.w, height: box.h, rx: 5, class: 'paper'}),
      s('rect', {x: cx(id) - box.w / 2, y: top(id), width: box.w, height: box.h, rx: 5, class: 'heat', style: `fill-opacity:${(0.08 + 0.72 * Math.sqrt(share / 100)) * (share > 0 ? 1 : 0)}`}),
      s('text', {x: cx(id) - box.w / 2 + 8, y: top(id) + 18, class: 'strong'}, `${id}`),
      s('text', {x: cx(id) + box.w / 2 - 8, y: top(id) + 18, 'text-anchor': 'end', class: 'strong'}, `${share.toFixed(1)} %`),
      s('text', {x: cx(id) - box.w / 2 + 8, y: top(id) + 36}, options.label(b)),
      s('text', {x: cx(id) + box.w / 2 - 8, y: top(id) + 36, 'text-anchor': 'end'}, b.thread_entries === null ? '' : `× ${text2(b.thread_entries, 'count')}`),
      s('title', {}, `block ${id}: ${b.instructions} instructions, ${b.thread_entries ?? '–'} thread entries`));
    svg.append(node);
  }
  return svg;
}
