// Parts of the page's data: JSON text as an LZ4 block in base 64 (report/pack.c).

const parts = new Map();

// The inverse of LZ4's block format: literals, then a match `back` bytes before, again and again.
export function unpackBlock(from, bytes) {
  const to = new Uint8Array(bytes);
  let at = 0, out = 0;
  const longer = (n) => {
    if (n < 15) return n;
    for (;;) {
      const more = from[at++];
      n += more;
      if (more !== 255) return n;
    }
  };
  while (at < from.length) {
    const token = from[at++];
    const literals = longer(token >> 4);
    to.set(from.subarray(at, at + literals), out);
    at += literals;
    out += literals;
    if (at >= from.length) break;
    const back = from[at] | from[at + 1] << 8;
    at += 2;
    const match = longer(token & 15) + 4;
    if (back >= match) to.copyWithin(out, out - back, out - back + match);
    else for (let i = 0; i < match; i++) to[out + i] = to[out - back + i];
    out += match;
  }
  if (out !== bytes) throw new Error('this page is damaged');
  return to;
}

// The value of a part, unpacked when it is first asked for; null when the page has none of that name.
export function part(name) {
  if (parts.has(name)) return parts.get(name);
  const element = document.getElementById('data-' + name);
  let value = null;
  if (element) {
    const packed = Uint8Array.from(atob(element.textContent), (c) => c.charCodeAt(0));
    value = JSON.parse(new TextDecoder().decode(unpackBlock(packed, Number(element.dataset.bytes))));
    element.remove();
  }
  parts.set(name, value);
  return value;
}
