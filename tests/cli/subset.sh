#!/usr/bin/env bash
# margay study subset: planted phases, witnesses for k-means, BIC and equation (1), judges, hand-over, a real program.
set -euo pipefail
make -s -C "$ROOT" VARIANT="$VARIANT" "build/$VARIANT/bin/mkprofile" >/dev/null
"$B/bin/mkprofile" base
python3 "$ROOT/tests/cli/subset.py" "$MARGAY"

# A program with its time line: the intervals between its synchronising calls.
"$MARGAY" run -q --device cpu -t blocks -t timeline -o live -- "$EX/bfs-rt" > /dev/null
"$MARGAY" run -q --device cpu -t timeline -o times -- "$EX/bfs-rt" > /dev/null
"$MARGAY" study subset live --times times times --interval sync --json > sync.json
"$MARGAY" study subset live --launches launches.csv > text
"$MARGAY" export features live > features.csv
"$MARGAY" report live --csv --table launches > report.csv
python3 - <<'P'
import csv, json
d = json.load(open('sync.json'))
launches = list(csv.DictReader(open('report.csv', newline='')))
assert d['interval'] == 'sync' and 1 < d['intervals'] <= d['launches'] == len(launches), d
assert abs(sum(s['weight'] for s in d['selected']) - 1) < 1e-9
assert d['times'] == 'native' and d['judges'][0]['error_pct'] == d['error']['in_sample_pct'] == d['error']['held_out_pct']
rows = list(csv.DictReader(open('features.csv', newline='')))
assert [int(r['thread_instructions']) for r in rows] == [int(l['thread_instructions']) for l in launches]
assert [int(r['time_ns']) for r in rows] == [int(l['time_ns']) for l in launches]
classes = list(rows[0])[list(rows[0]).index('integer'):-1]
assert all(sum(float(r[c]) for c in classes) == float(r['thread_instructions']) for r in rows)
tracers = list(csv.DictReader(open('launches.csv', newline='')))
assert tracers and all(int(t['number']) == int(t['launch']) + 1 and t['cuLaunchKernel'] == t['number'] for t in tracers), tracers
P
rc=0; "$MARGAY" study subset times 2> err || rc=$?
[ $rc = 3 ] && grep -q 'no launch has counts' err
