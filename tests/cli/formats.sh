#!/usr/bin/env bash
# docs/format-profile.md names the columns that the program writes; profiles of older versions stay readable.
set -euo pipefail
make -s -C "$ROOT" VARIANT="$VARIANT" "build/$VARIANT/bin/mkprofile" >/dev/null
"$B/bin/mkprofile" p
python3 - "$ROOT" <<'PY'
import os, re, sqlite3, sys
root = sys.argv[1]
doc, table = {}, None
for line in open(root + '/docs/format-profile.md'):
    m = re.match(r'### `(\w+)`', line)
    if m: table = doc.setdefault(m[1], [])
    if table is not None and line.startswith('| `'):
        table += re.findall(r'`(\w+)`', line.split('|')[1])
db = sqlite3.connect('p/profile.db')
real = {t: [c[1] for c in db.execute(f'PRAGMA table_info({t})')] for (t,) in db.execute("SELECT name FROM sqlite_schema WHERE type='table'")}
for t in sorted(set(doc) | set(real)):
    if doc.get(t) != real.get(t): print(f'{t}: documented {doc.get(t)}, written {real.get(t)}')
assert db.execute('PRAGMA application_id').fetchone()[0] == 0x4d475052
version = db.execute('PRAGMA user_version').fetchone()[0]

os.mkdir('v1')
with sqlite3.connect('v1/profile.db') as v1: v1.executescript(open(root + '/tests/cli/profile-v1.sql').read())
# by version: what it added, taken away again. A profile of an older version has none of it.
added = {
    3: 'ALTER TABLE launch DROP COLUMN tools;' + ''.join(f'DROP TABLE {t};' for t in ('use', 'region', 'site', 'cells', 'entries', 'launch_cells')),
    4: 'ALTER TABLE block DROP COLUMN timing;',
    5: 'ALTER TABLE process DROP COLUMN host; ALTER TABLE process DROP COLUMN version;',
    6: '',  # a row: below
    7: 'ALTER TABLE tool DROP COLUMN json_zstd;',
    8: 'ALTER TABLE kernel DROP COLUMN built_unix_ns;',
    9: 'ALTER TABLE block DROP COLUMN apart;',
}
assert list(added) == list(range(3, version + 1)), f'no line for version {version}'
for v in range(2, version):
    os.mkdir(f'v{v}')
    with sqlite3.connect(f'v{v}/profile.db') as old:
        db.backup(old)
        old.executescript(f'PRAGMA user_version={v};' + ''.join(added[k] for k in sorted(added, reverse=True) if k > v))
sys.exit(doc != real)
PY
# One CTA counted in place of all: before version 6 the options say so, of whichever tool; since then a row of its own.
"$B/bin/mkprofile" scoped 12 scoped
cp -r scoped scoped5 && cp -r scoped scoped6
python3 - <<'PY'
import sqlite3
for p, sql in (('scoped5', "PRAGMA user_version=5"), ('scoped6', "UPDATE process SET tools='mine,scope=cta,cta=0'")):
    with sqlite3.connect(p + '/profile.db') as db: db.executescript(sql + "; DELETE FROM tool WHERE key='scope'")
PY
entries() { "$MARGAY" report "$1" --json | python3 -c "import json,sys; k = json.load(sys.stdin)['kernels'][0]; print(k['estimate'], [b['thread_entries'] for b in k['blocks']])"; }
whole=$(entries scoped6) # counts of one CTA, taken for those of all, do not fit the launch and are dropped
[ "$whole" = 'False [None, None, None]' ] || { echo "options of another tool scale counts: $whole"; exit 1; }
[ "$(entries scoped)" = "$(entries scoped5)" ] && [[ $(entries scoped) = True* ]] || { echo "one CTA: $(entries scoped), by version 5 $(entries scoped5)"; exit 1; }
"$MARGAY" report v1 --json > old.json
"$MARGAY" report p --json > new.json
"$MARGAY" report v4 --json > v4.json
wrote="\"host\":\"$(uname -n)\",\"version\":\"$("$MARGAY" --version | cut -d' ' -f2)\""
grep -qF "$wrote" new.json || { echo "host and version are not told: $wrote"; exit 1; }
sed -E 's/"lanes_may_be_apart":( ?)(true|false)/"lanes_may_be_apart":\1null/g' new.json > v8.json
! cmp -s new.json v8.json || { echo 'nothing says whether lanes may be apart'; exit 1; }
sed "s/$wrote/\"host\":null,\"version\":null/" v8.json | cmp - v4.json || { echo 'a profile of version 4 reads differently now'; exit 1; }
for v in 2 3 4; do "$MARGAY" report v$v --json | cmp - old.json || { echo "a profile of version $v reads differently from one of version 1"; exit 1; }; done
for v in v[5-8]; do "$MARGAY" report "$v" --json | cmp - v8.json || { echo "a profile of version $v reads differently from one of today"; exit 1; }; done
