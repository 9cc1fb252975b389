// Numbers and names as people read them. A count beyond 2^53 comes as text: it is written exactly, and compared as a double.

export const number = (v) => (v === null || v === undefined || v === '' ? NaN : Number(v));

export function exact(v) {
  if (v === null || v === undefined) return 'not measured';
  if (typeof v === 'number' && !Number.isInteger(v)) return String(v);
  return String(v).replace(/\B(?=(\d{3})+$)/g, ',');
}

const counts = [['', 1], ['k', 1e3], ['M', 1e6], ['G', 1e9], ['T', 1e12], ['P', 1e15], ['E', 1e18]];
const sizes = [['B', 1], ['KiB', 1024], ['MiB', 1024 ** 2], ['GiB', 1024 ** 3], ['TiB', 1024 ** 4]];
const times = [['ns', 1], ['µs', 1e3], ['ms', 1e6], ['s', 1e9]];

const digits = (x) => (x >= 100 ? x.toFixed(0) : x >= 10 ? x.toFixed(1) : x.toFixed(2));

// [digits, unit]; the unit is the largest that leaves at least 1, also after rounding.
function scaled(v, units) {
  const size = Math.abs(v);
  let at = 0;
  while (at + 1 < units.length && size >= units[at + 1][1] * 0.9995) at++;
  const x = v / units[at][1];
  return [at === 0 && Number.isInteger(x) ? String(x) : digits(x), units[at][0]];
}

// [digits, unit] of a value of a column's kind.
export function parts2(v, kind) {
  const x = number(v);
  if (Number.isNaN(x)) return ['–', ''];
  switch (kind) {
    case 'percent': return [x.toFixed(1), '%'];
    case 'bytes': return scaled(x, sizes);
    case 'ns': return scaled(x, times);
    case 'real': return Math.abs(x) >= 10000 ? scaled(x, counts) : [Math.abs(x) >= 1000 ? exact(Math.round(x)) : x === 0 ? '0' : String(Number(x.toPrecision(3))), ''];
    case 'id': return [String(v), ''];
    default: return Math.abs(x) < 10000 ? [exact(v), ''] : scaled(x, counts);
  }
}

export const text2 = (v, kind) => parts2(v, kind).filter(Boolean).join(' ');
export const percent = (part, whole) => (whole > 0 ? 100 * part / whole : NaN);

export function plural(n, one, many) {
  return `${exact(n)} ${Number(n) === 1 ? one : many || one + 's'}`;
}

export const baseName = (path) => path.slice(path.lastIndexOf('/') + 1);

// A function's name without result, parameters and template arguments, in its parts: ["cub", "BlockScan", "Sum"]
export function namePath(name) {
  let depth = 0, out = '';
  for (let at = 0; at < name.length; at++) {
    const word = depth ? null : ['(anonymous namespace)', 'operator()', 'operator<<', 'operator<', 'operator>>', 'operator>', 'operator->', 'decltype ('].find((w) => name.startsWith(w, at)), c = name[at];
    if (word) {
      out += word;
      at += word.length - 1;
      depth += word === 'decltype (';
      continue;
    }
    if (c === '(' && !depth) break;
    if (c === '{' && !depth) out += '{…}';
    if (c === ' ' && !depth) out = ''; // that was the result
    else if (!depth && !'<{'.includes(c)) out += c;
    depth += '<({'.includes(c) - (')}'.includes(c) || (c === '>' && name[at - 1] !== '-'));
  }
  return out.split('::');
}

// A C++ name in two: what tells kernels apart at a glance, and the rest (template arguments, parameters).
export function splitName(name) {
  let depth = 0, end = name.length;
  for (let i = 0; i < name.length; i++) {
    if (name.startsWith('(anonymous namespace)', i)) {
      i += 20;
      continue;
    }
    const c = name[i];
    if (depth === 0 && (c === '(' || c === '<') && i > 0) {
      end = i;
      break;
    }
  }
  let head = name.slice(0, end);
  head = head.replace(/^(?:void|auto|[a-z]+) (?=\S)/, '').replace(/\(anonymous namespace\)::/g, '');
  const cut = head.lastIndexOf('::');
  return cut < 0 ? [head, '', name.slice(end)] : [head.slice(cut + 2), head.slice(0, cut), name.slice(end)];
}

// The rest of a C++ name without the innermost template arguments, then without parameters, until it is short.
export function briefRest(rest, most = 60) {
  const levels = (text, keep) => {
    let depth = 0, out = '';
    for (let i = 0; i < text.length; i++) {
      const c = text[i];
      if (c === '<' && depth++ === keep) out += '<…>';
      if (depth <= keep) out += c;
      if (c === '>' && depth && text[i - 1] !== '-') depth--;
    }
    return out;
  };
  if (rest.length <= most) return rest;
  let end = 0, depth = 0; // of the template arguments
  if (rest[0] === '<') do depth += (rest[end] === '<') - (rest[end] === '>' && rest[end - 1] !== '-'); while (depth && ++end < rest.length);
  const args = rest.slice(0, depth ? 0 : end + (rest[0] === '<')), parameters = rest.slice(args.length);
  for (const keep of [2, 1, 0]) {
    const short = levels(args, keep);
    if (short.length + parameters.length <= most) return short + parameters;
    if (short.length <= most || !keep) return short + (parameters.length <= 12 ? parameters : '(…)');
  }
  return rest;
}

// Texts that begin alike, each without most of what they share: {text -> short}
export function apart(texts, most = 30) {
  let same = 0;
  while (texts.every((t) => same < t.length && t[same] === texts[0][same])) same++;
  while (same > 0 && /[\w:]/.test(texts[0][same - 1])) same--;
  return new Map(texts.map((t) => [t, same > most ? '<…' + t.slice(same) : t]));
}

export function date(ns) {
  const d = new Date(number(ns) / 1e6);
  return Number.isNaN(d.getTime()) ? '' : d.toISOString().slice(0, 16).replace('T', ' ') + ' UTC';
}

const plain = /^[A-Za-z0-9_@%+=:,./-]+$/;
export const command = (argv) => (argv || []).map((a) => (plain.test(a) ? a : `'${a.replace(/'/g, "'\\''")}'`)).join(' ');
