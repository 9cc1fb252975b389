#!/bin/sh
# Members that tools write into `margay report --json`: each stands on its tool's page or in docs/json.md, but for those of
# a place, which docs/tools/README.md names once. Keys that are names or numbers of the program's own are left out.
set -u
"$MARGAY" tools | awk '{print $1}' | grep -vx 'none\|expr\|advise' > tools
apart='accesses trace communication cache events' # with channels, or with analyses of their own
for t in $apart; do "$MARGAY" run -q --device emu -t $t -o p.$t -- "$EX/divergent" > out 2> err || { cat out err; exit 1; }; done
together=$(grep -vxF "$(printf '%s\n' $apart)" tools | sed 's/^/-t /')
"$MARGAY" run -q --device emu $together -o p.others -- "$EX/divergent" > out 2> err || { cat out err; exit 1; }
for p in p.*; do "$MARGAY" report $p --json > $p.json || exit 1; done
python3 - "$ROOT" <<'P'
import glob, json, os, re, sys
root = sys.argv[1]
tools, said, failed = open('tools').read().split(), set(), False
PLACE = {'kernel', 'function', 'file', 'line', 'ptx_line', 'block'}
table = open(f'{root}/docs/json.md').read().split('\n')

def keys(v):
    """Names of members; not those of the program's: numbers, kernels, opcodes."""
    if isinstance(v, list):
        for x in v: yield from keys(x)
    elif isinstance(v, dict):
        own = all(k.isdigit() for k in v) or set(v) <= names
        for k, x in v.items():
            if not own: yield k
            yield from keys(x)

for f in glob.glob('p.*.json'):
    r = json.load(open(f))
    names = {k['name'] for k in r['kernels']} | {o for k in r['kernels'] for o in (k['opcodes'] or {})}
    for t, v in r['tools'].items():
        if t == 'margay': continue
        said.add(t)
        pages = [p for p in (f'{root}/docs/tools/{t}.md', f'{root}/docs/studies/{t}.md') if os.path.exists(p)]
        text = ' '.join([open(p).read() for p in pages] + [l for l in table if re.match(r'\| `tools\.(<tool>|[^|]*\b%s\b)' % t, l)])
        for k in sorted(set(keys(v)) - PLACE):
            if not re.search(r'(?<!\w)%s(?!\w)' % re.escape(k), text):
                print(f'tools.{t}: member {k} is on no page')
                failed = True
for t in sorted(set(tools) - said):
    print(f'{t}: said nothing')
    failed = True
sys.exit(failed)
P
