// What the text of a source tells without its compiler: where a statement ends, where names are defined, where a kernel is launched.

// A line without its texts and comments.
const bare = (line) => line.replace(/"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'/g, '""').replace(/\/\*.*?\*\//g, ' ').replace(/\/\/.*$/, '');
const goesOn = /^\s*(?:[-+*/%&|^?:.<>=,)\]]|\{\s*$)/; // begins what belongs to the line before

// The line on which the statement of a line ends; text: Map of number to line.
export function statementEnd(text, line, most = 12) {
  let depth = 0;
  for (let at = line; at < line + most && text.has(at); at++) {
    const code = bare(text.get(at));
    for (const c of code) depth += '([{'.includes(c) ? (c === '{' ? 0 : 1) : ')]'.includes(c) ? -1 : 0;
    if (!code.trim() && at > line) continue;
    const next = bare(text.get(at + 1) ?? '');
    if (depth <= 0 && (/(?:[;{}:]|\belse|\bdo)\s*$|^\s*#.*[^\\\s]\s*$/.test(code) || (/\)\s*$/.test(code) && !goesOn.test(next)) || !code.trim())) return at;
  }
  return line;
}

const definitions = [
  /^\s*#\s*define\s+(\w+)/, /^\s*using\s+(\w+)\s*=/, /^\s*typedef\b.*?\b(\w+)\s*;/,
  /^(?:(?:static|inline|constexpr|const|__constant__|__device__)\s+)+[\w:<>,\s*&]*?\b(\w+)\s*(?:\[[^\]]*\]\s*)*[=;{]/,
];
const opensType = /^\s*(?:template\s*<.*>\s*)?(?:typedef\s+)?(?:struct|class|union)\b(?:[^;{(]|\([^)]*\))*?\b(\w+)\s*(?::[^{;]*)?(?:\{|$)/;

// Names that a line defines; `state` carries an enum over several lines.
function definedOn(code, state) {
  const names = definitions.map((d) => d.exec(code)).filter(Boolean).map((m) => m[1]);
  if (/\benum\b[^;]*(?:\{|$)/.test(code)) state.within = true;
  if (state.within) for (const m of code.matchAll(/(\w+)\s*(?:=[^,}]*)?\s*(?=[,}]|$)/g)) names.push(m[1]);
  if (/[};]\s*;?\s*$/.test(code)) state.within = false;
  return names;
}

// Numbers of the lines that define a name that one of `used` has, and are none of them: constants, types with their members.
export function definitionLines(text, used, most = 16) {
  const names = new Set(), out = [], state = {within: false};
  for (const line of used) for (const m of bare(text.get(line) ?? '').matchAll(/[A-Za-z_]\w*/g)) names.add(m[0]);
  for (const [line, raw] of text) {
    const code = bare(raw), type = opensType.exec(code);
    if (definedOn(code, state).some((name) => names.has(name)) && !used.has(line)) out.push(line);
    if (!type || !names.has(type[1]) || used.has(line)) continue;
    for (let at = line; at < line + most && text.has(at); at++) {
      out.push(at);
      if (/\}/.test(bare(text.get(at)))) break;
    }
  }
  return [...new Set(out)].slice(0, most);
}

// Numbers of the lines that launch the kernel of that name.
export function launchLines(text, name, most = 6) {
  const word = name.replace(/[^\w]/g, '\\$&');
  const launch = new RegExp(`\\b${word}\\s*(?:<(?!<)[^;]*>)?\\s*<<<|\\bcudaLaunch\\w*\\s*\\([^;]*\\b${word}\\b`);
  return [...text].filter(([, raw]) => launch.test(bare(raw))).map(([line]) => line).slice(0, most);
}
