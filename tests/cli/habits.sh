#!/bin/bash
# Habits: a run names its profile and what to do next; the newest profile without a directory; --sort; --error-exitcode; CSV with ids and a
# list of tables; doctor --json; help of a tool; completion for bash, zsh and fish; summaries that fit a screen; columns that stand apart.
set -eu
fail() { echo "FAIL: $*"; exit 1; }
"$MARGAY" run --device emu -t lanes -o first -- "$EX/divergent" > out 2> err
grep -q '^profile first; next: margay report first, margay annotate first$' err || { cat err; fail 'the run does not name its profile'; }
tail -1 err | grep -q '^coverage: ' || fail 'the summary does not end with the coverage'
[ "$(wc -l < err)" -le 40 ] || fail 'the summary is more than a screen'
cp "$ROOT/tests/cli/turns.ptx" . && gcc -O1 -o ptxrun "$ROOT/tests/cli/ptxrun.c" -ldl
"$MARGAY" run --device emu -o plain -- ./ptxrun load=turns.ptx count:1,1,1:1,1,1:1 > out 2> err
grep -q '^profile plain; next: margay report plain; what to fix: margay run -t advise$' err || { cat err; fail 'annotate is offered without line information'; }
"$MARGAY" capture --device emu -o held -- "$EX/saxpy" > out 2> err
grep -q '^profile and capture held; next: margay report held, margay replay held' err || { cat err; fail 'a capture does not name the replay'; }
"$MARGAY" replay --export program held > out 2> err
grep -q '^program/replay.c has [1-9][0-9]* launch.*; next: cd program && gcc replay.c -lcuda && ./a.out$' err || { cat err; fail 'an exported program does not say how it is built'; }
"$MARGAY" run --device emu -t accesses -o handed -- "$EX/saxpy" > out 2> err
grep -q 'saxpy.cu:.* ld.global.f32 .* saxpy' err || grep -q 'kernel.cu:.* ld.global.f32 ' err || { cat err; fail 'accesses by instruction'; }
"$MARGAY" run --device emu -o idle -- ./ptxrun load=turns.ptx > out 2> err
grep -q '^no kernel was launched$' err || { cat err; fail 'a run without launches does not say so'; }
"$MARGAY" run -q --device emu -o second -- "$EX/saxpy" > out
"$MARGAY" report > newest.txt 2> err && grep -q 'profile second' err && grep -q saxpy newest.txt || fail 'the newest profile'

# errors have a status of their own; what is no error keeps the program's
rc=0; "$MARGAY" run -q --device emu -t advise --error-exitcode 77 -o a -- "$EX/divergent" > out 2> err || rc=$?
[ $rc = 77 ] && grep -q 'findings\? to fix' err || fail "--error-exitcode of a finding: $rc"
"$MARGAY" run -q --device emu -t lanes --error-exitcode 77 -o b -- "$EX/divergent" > out || fail "--error-exitcode without -t advise: $?"
"$MARGAY" run -q --device emu --check --error-exitcode 77 -o c -- "$EX/saxpy" > out || fail "--error-exitcode of a sound program: $?"
rc=0; "$MARGAY" run -q --device emu --error-exitcode 256 -- "$EX/saxpy" > out 2> err || rc=$?
[ $rc = 120 ] || fail "--error-exitcode 256: $rc"

# tables: every one that is listed is printed, with snake_case columns and ids that join with the kernels
"$MARGAY" report a --csv --table kernels | tr -d '\r' | cut -d, -f1 | tail -n +2 | sort > ids
"$MARGAY" report a --csv --table list | tr -d '\r' > tables
grep -q '^branches,lanes$' tables && grep -q '^memory,memory$' tables || { cat tables; fail 'the list of tables'; }
tail -n +2 tables | while IFS=, read -r table tool; do
    "$MARGAY" report a --csv --table "$table" ${tool:+--tool "$tool"} | tr -d '\r' > table.csv
    head -1 table.csv | grep -qE '^[a-z0-9_]+(,[a-z0-9_]+)*$' || { head -1 table.csv; fail "columns of $table"; }
    python3 - "$table" <<'P'
import csv, sys
ids = set(open('ids').read().split())
for row in csv.DictReader(open('table.csv')):
    assert None not in row and ('kernel' not in row or row['kernel'] in ids), (sys.argv[1], row)
P
done

python3 -c "
import json, subprocess, sys
d = json.loads(subprocess.run(['$MARGAY', 'doctor', '--json'], stdout=subprocess.PIPE).stdout)
assert d['device'] in ('cpu', 'emu', 'nvidia') and any(c['what'] == 'driver library' and c['ok'] for c in d['checks']), d"
rules=$(sed -n '/^| rule |/,/^$/s/^| \(`[^|]*\) | .*/\1/p' "$ROOT/docs/findings.md" | tr -d '`,')
[ "$(echo $rules | wc -w)" -ge 15 ] || fail "rules of the page: $rules"
for rule in $rules; do
    "$MARGAY" help advise | grep -q "^    $rule  *[A-Za-z]" && "$MARGAY" help $rule > said && grep -q "^$rule .*[a-z]" said || fail "help of rule $rule"
    # what docs/findings.md says of it
    for part in 'found when: ' 'place: ' 'try: '; do grep -q "^    $part[A-Za-z0-9_]" said || { cat said; fail "help of rule $rule: $part"; }; done
done
"$MARGAY" help docs/findings.md | cmp - "$ROOT/docs/findings.md" && "$MARGAY" help ctas > said && "$MARGAY" help probe-language | cmp - "$ROOT/docs/probe-language.md" || fail "help of a document"
rc=0; "$MARGAY" run -t advise,foo=1 -- true 2> said || rc=$?
[ $rc = 120 ] && grep -q "advise takes no options" said || fail "options of advise: $rc"
"$MARGAY" help no_rule > said 2>&1 && fail 'help of nothing'
grep -q "no command, tool, rule or document 'no_rule'" said || fail 'help of nothing'
"$MARGAY" help findings > said && "$MARGAY" help advise | cmp -s - said || fail 'help of findings'
"$MARGAY" help lanes | grep -q 'docs/tools/lanes.md' || fail 'help of a tool'
"$MARGAY" tools | grep -q '^advise ' || fail 'tools lists advise'
"$ROOT/scripts/gen-completion-zsh" "$MARGAY" > _margay
"$ROOT/scripts/gen-completion-fish" "$MARGAY" > margay.fish
grep -q -- "--error-exitcode\[" _margay && grep -q -- '-l error-exitcode' margay.fish && grep -q "'run:run a program" _margay || fail 'completions lack an option'
if command -v zsh > z; then zsh -n _margay || fail 'zsh does not read its completion'; fi
if command -v fish > z; then fish -n margay.fish || fail 'fish does not read its completion'; fi
"$MARGAY" report a --sort name | grep -q collatz && "$MARGAY" report a --sort launches | grep -q collatz
