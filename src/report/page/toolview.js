// One tool over all kernels: its tables, notes and pictures.
import {tablesOf, tools} from './data.js';
import {h, picture} from './dom.js';
import {tableSection} from './tooltable.js';

export function toolList() {
  return h('section', h('h1', {tabindex: '-1'}, 'Tools'), h('ul', tools.map((t) => h('li', h('a', {href: `#/tool/${t.id}`}, t.name), t.summary ? `: ${t.summary}` : '', t.options ? h('span.dim', ` (${t.options})`) : null))));
}

export function toolView(tool) {
  const tables = tablesOf(tool);
  const other = h('nav.jump', {'aria-label': 'tools'}, tools.map((t) => h('a', {href: `#/tool/${t.id}`, 'aria-current': t === tool ? 'page' : null}, t.name)));
  const parts = tables.flatMap((table, at) => [tableSection(table, null, at > 0), table.charts.map(picture)]);
  const counted = tables.some((t) => t.columns.length || t.notes.length || t.charts.length);
  const blocks = tool.name === 'blocks' ? h('p', 'Its counts are those of ', h('a', {href: '#/'}, 'the kernels'), ': each kernel\'s view has its blocks, their lines and their graph.') : null;
  return h('section', other, h('h1', {tabindex: '-1'}, tool.name), tool.summary || tool.options ? h('p.note', [tool.summary, tool.options && `options: ${tool.options}`].filter(Boolean).join('; ')) : null, blocks, parts, counted || blocks ? null : h('p.note', 'This tool has no table.'));
}
