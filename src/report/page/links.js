// Where things of the page are: the part of its address behind #.
import {h} from './dom.js';
import {fileByPath, files, nameOf} from './data.js';
import {baseName} from './format.js';

export const kernelHash = (k) => `#/kernel/${k.id}`;
export const blockHash = (k, block) => `#/kernel/${k.id}/block/${block}`;
export function lineHash(k, file, line) {
  const f = fileByPath(file);
  return f ? `#/kernel/${k.id}/line/${files().indexOf(f)}/${line}` : kernelHash(k);
}

const nameParts = (space, short, rest) => [space && h('span.dim', space + '::'), h('span.name', short), h('span.dim', rest)];
export const kernelName = (k) => nameParts(k.space, k.short, k.rest);
export const kernelLink = (k) => h('a.kernel', {href: kernelHash(k), title: nameOf(k)}, nameParts(k.briefSpace, k.short, k.brief));

// Without a line (the compiler made it) that of the PTX.
export const placeText = (file, line, ptx) => (file && line ? `${baseName(file)}:${line}` : ptx ? `PTX ${ptx}` : file ? baseName(file) : '');
// A place of a row: to the line of its kernel, or to its block.
export function placeLink(k, place) {
  if (!place) return '–';
  const [file, line, ptx, block] = place;
  const text = placeText(file, line, ptx);
  if (!k) return text;
  if (file && line && fileByPath(file)) return h('a', {href: lineHash(k, file, line), title: `${file}:${line}`}, text);
  if (file && !line) return h('a', {href: blockHash(k, block), title: `${file}: of no line, made by the compiler`}, text);
  return ptx ? h('a', {href: blockHash(k, block)}, text) : text;
}
