// A flame graph of thread instructions: kernel, device functions that stayed calls, inlined functions, source lines. A click makes a
// frame as wide as the picture, the root's brings all back.
import {kernels, measured, nameOf, runsOf} from './data.js';
import {h, paperWidth, s, say} from './dom.js';
import {baseName, exact, namePath, number, percent, text2} from './format.js';
import {kernelHash, lineHash} from './links.js';

const frameHeight = 19, leastShare = 0.0015; // of the whole width: narrower frames are left out

function frameChild(node, name, more) {
  let c = node.children.get(name);
  if (!c) node.children.set(name, c = {name, n: 0, children: new Map(), up: node, ...more});
  return c;
}

function addToFlame(root, k, named) {
  for (const run of runsOf(k)) {
    const b = k.blocks[run.block], n = run.n * (number(b.thread_entries) || 0);
    if (!n) continue;
    const path = [];
    if (named) path.push([nameOf(k), {hash: kernelHash(k)}]);
    if (b.function && b.function !== k.name) path.push([k.functions[b.function] || b.function, {}]);
    for (const c of run.inlined) if (c.function) path.push([c.function, {inlined: true}]);
    if (run.file && run.line) path.push([`${baseName(run.file)}:${run.line}`, {hash: lineHash(k, run.file, run.line), line: true}]);
    let at = root;
    at.n += n;
    for (const [name, more] of path) {
      at = frameChild(at, name, more);
      at.n += n;
    }
  }
}

// As much of a name as fits: first falls what says least, namespaces and arguments, the class last.
function fitting({name, line}, room) {
  const path = line ? [name] : namePath(name), texts = [name, path.slice(-2).join('::'), path[path.length - 1]];
  return texts.find((t) => t.length <= room) || texts[2].slice(0, room - 1) + '…';
}

function flameTree(list) {
  const root = {name: list.length === 1 ? nameOf(list[0]) : 'all kernels', n: 0, children: new Map(), up: null};
  for (const k of list) addToFlame(root, k, list.length > 1);
  return root;
}

const flameDepth = (node) => 1 + Math.max(0, ...[...node.children.values()].map(flameDepth));
const frameColor = (name, kind) => {
  let x = 7;
  for (const c of name) x = (x * 31 + c.charCodeAt(0)) % 360;
  return kind.line ? `hsl(${205 + (x % 25)} 70% 74%)` : kind.inlined ? `hsl(${48 + (x % 10)} 85% ${66 + (x % 8)}%)` : `hsl(${352 + (x % 14)} 72% 74%)`;
};

// What a colour means, of the kinds that the picture has.
function flameLegend(root) {
  const has = {call: true, inlined: false, line: false};
  const look = (node) => { for (const c of node.children.values()) { has[c.line ? 'line' : c.inlined ? 'inlined' : 'call'] = true; look(c); } };
  look(root);
  return h('p.legend', [['call', {}, 'kernel or function'], ['inlined', {inlined: true}, 'function that the compiler inlined'], ['line', {line: true}, 'source line']].filter(([kind]) => has[kind])
    .map(([, kind, text]) => h('span', h('i.swatch', {style: {'background': frameColor('', kind)}}), text)), h('span', 'width: thread instructions'));
}

export function flameGraph(list) {
  const root = flameTree(list), box = h('div.flame'), said = h('p.note.flamenote', {role: 'status'});
  let focused = root, flameWidth = 0, frames = []; // frames: {e, node, x, w, level} as they are drawn
  const show = (focus, width) => {
    focused = focus;
    flameWidth = width || Math.max(280, box.clientWidth || document.getElementById('main').clientWidth - 40);
    const above = [];
    for (let at = focus; at; at = at.up) above.unshift(at);
    const rows = above.length - 1 + flameDepth(focus);
    const svg = s('svg', {viewBox: `0 0 ${flameWidth} ${rows * frameHeight + 2}`, role: 'group', 'aria-label': 'flame graph', class: 'flame'});
    const draw = (node, x, w, level) => {
      const share = percent(node.n, root.n), what = `${node.name}: ${share.toFixed(2)} %, ${exact(Math.round(node.n))} thread instructions`;
      const frame = s('g', {class: 'frame', tabindex: frames.length ? '-1' : '0', role: 'button', 'aria-label': what, 'data-name': node.name, 'data-share': share.toFixed(4),
        onclick: () => pick(node), onkeydown: (e) => onKeyAt(e, node)},
      s('title', {}, what), s('rect', {x, y: level * frameHeight, width: Math.max(0.5, w - 0.6), height: frameHeight - 1, rx: 2, fill: frameColor(node.name, node)}));
      const room = Math.floor(w / 6.4) - 1;
      if (room > 2) frame.append(s('text', {x: x + 4, y: level * frameHeight + 13}, fitting(node, room)));
      frames.push({e: frame, node, x, w, level});
      svg.append(frame);
    };
    frames = [];
    above.forEach((node, level) => draw(node, 0, flameWidth, level));
    const below = (node, x, w, level) => {
      for (const c of [...node.children.values()].sort((a, b) => (a.name < b.name ? -1 : 1))) {
        const part = w * c.n / node.n;
        if (part >= leastShare * flameWidth) {
          draw(c, x, part, level);
          below(c, x, part, level + 1);
        }
        x += part;
      }
    };
    if (focus.n) below(focus, 0, flameWidth, above.length);
    box.replaceChildren(svg);
    const own = [`${focus.name}: ${text2(focus.n, 'count')} thread instructions, ${percent(focus.n, root.n).toFixed(1)} %`];
    said.replaceChildren(...own, ...(focus.hash ? [' · ', h('a', {href: focus.hash}, focus.line ? 'to its line' : 'to the kernel')] : []));
  };
  const pick = (node) => {
    show(node);
    say(said.textContent);
  };
  // One stop for the key Tab; arrows move between frames, Enter widens one.
  const reach = (to) => {
    if (!to) return;
    for (const f of frames) f.e.setAttribute('tabindex', f === to ? '0' : '-1');
    to.e.focus();
  };
  const onKeyAt = (e, node) => {
    const at = frames.find((f) => f.node === node), on = (level) => frames.filter((f) => f.level === level).sort((a, b) => a.x - b.x);
    if (e.key === 'Enter') {
      pick(node);
      return reach(frames.find((f) => f.node === node));
    }
    const to = {ArrowRight: () => on(at.level).find((f) => f.x > at.x), ArrowLeft: () => on(at.level).filter((f) => f.x < at.x).pop(),
      ArrowUp: () => on(at.level - 1).filter((f) => f.x <= at.x + 0.01).pop(), ArrowDown: () => on(at.level + 1).find((f) => f.x >= at.x - 0.01 && f.x < at.x + at.w)}[e.key];
    if (!to) return;
    e.preventDefault();
    reach(to());
  };
  if (!root.n) return null;
  show(root);
  // Text keeps its size: the picture is drawn as wide as there is room.
  let printing = false;
  const onPaper = ({type}) => {
    printing = type === 'beforeprint';
    if (box.isConnected) show(focused, printing ? paperWidth : 0);
  };
  for (const type of ['beforeprint', 'afterprint']) addEventListener(type, onPaper);
  new ResizeObserver(() => { if (!printing && box.clientWidth && Math.abs(box.clientWidth - flameWidth) > 2) show(focused); }).observe(box);
  return h('div', flameLegend(root), box, said);
}

export function flameView() {
  const graph = measured ? flameGraph(kernels) : null;
  return h('div', h('h1', {tabindex: '-1'}, 'Flame graph'), h('p.note', 'A click, or Enter, widens a frame; the topmost brings all back. Arrows move between frames.'),
    graph || h('p.note', 'No instruction was counted.'));
}
