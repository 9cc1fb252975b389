// Elements: h('td.n', {title: 'x'}, 'text', child). Text is always text: nothing of a profile becomes markup.
import {exact, parts2} from './format.js';
import {captions} from './words.js';

export function h(what, attributes, ...children) {
  const [tag, ...classes] = what.split('.');
  const e = document.createElement(tag || 'div');
  if (classes.length) e.className = classes.join(' ');
  if (attributes && (typeof attributes !== 'object' || attributes instanceof Node || Array.isArray(attributes))) {
    children.unshift(attributes);
    attributes = null;
  }
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith('on')) e.addEventListener(key.slice(2), value);
    else if (key === 'style') for (const [k, v] of Object.entries(value)) e.style.setProperty(k, v);
    else e.setAttribute(key, value === true ? '' : value);
  }
  add(e, children);
  return e;
}

export function add(e, children) {
  for (const c of children.flat(Infinity)) if (c !== null && c !== undefined && c !== false) e.append(c);
  return e;
}

const SVG = 'http://www.w3.org/2000/svg';
export function s(tag, attributes, ...children) {
  const e = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key.startsWith('on')) e.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined) e.setAttribute(key, value);
  }
  return add(e, children);
}

// A number in two parts that line up below each other, with the exact value behind it.
export function numeral(v, kind) {
  const [digits, unit] = parts2(v, kind);
  const e = h('span.num', h('span', digits), h('span.unit', unit));
  if (v !== null && v !== undefined && kind !== 'id') e.title = exact(v) + (kind === 'bytes' ? ' bytes' : kind === 'ns' ? ' ns' : kind === 'percent' ? ' %' : '');
  return e;
}

// A click anywhere on it follows its first link, unless it is on something else that acts, or selects text.
export function followsLink(e) {
  if (!e.querySelector('a')) return e;
  e.classList.add('opens');
  e.addEventListener('click', (at) => { if (!at.target.closest('a, button, summary') && !String(getSelection())) e.querySelector('a').click(); });
  return e;
}

// A bar of a share 0..100 with its number; `most` is what a full bar stands for.
export function shareBar(share, most = 100) {
  const known = !Number.isNaN(share);
  return h('span.share', {title: known ? `${share.toFixed(3)} %` : 'not measured'},
    h('span.track', h('span.fill', {style: {width: `${known && most > 0 ? Math.min(100, 100 * share / most) : 0}%`}})), h('span.num', h('span', known ? share.toFixed(1) : '–'), h('span.unit', known ? '%' : '')));
}

export const paperWidth = 720; // of what is drawn for a printed page

// Good to bad as a class; `good` from 1 to 0. NaN: none.
export const grades = 'its colour: green from 90 %, olive from 70 %, orange from 40 %, red below';
export const grade = (good) => (Number.isNaN(good) ? '' : good >= 0.9 ? 'good' : good >= 0.7 ? 'fair' : good >= 0.4 ? 'poor' : 'bad');

export function say(text) {
  document.getElementById('status').textContent = text;
}

// A tool's picture: parsed as an image, without anything that acts.
export function picture(chart) {
  const svg = new DOMParser().parseFromString(chart.svg, 'image/svg+xml').documentElement;
  if (svg.nodeName !== 'svg') return h('p.note', `${chart.title}: this picture cannot be shown`);
  for (const e of [svg, ...svg.querySelectorAll('*')]) {
    if (/^(script|foreignObject|a|image|use|style)$/i.test(e.nodeName)) {
      e.remove();
      continue;
    }
    for (const a of [...e.attributes]) if (/^on|href$/i.test(a.name)) e.removeAttribute(a.name);
  }
  return h('figure.chart', document.importNode(svg, true), captions[chart.name] ? h('figcaption', captions[chart.name]) : null);
}
