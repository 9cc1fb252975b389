#!/usr/bin/env bash
# margay report, diff, merge, tools and help: outputs, exit statuses, docs/json.md against the JSON.
set -euo pipefail
make -s -C "$ROOT" VARIANT="$VARIANT" "build/$VARIANT/bin/mkprofile" >/dev/null
mk=$B/bin/mkprofile
fail() { echo "FAIL: $*"; exit 1; }
expect() { # STATUS TEXT COMMAND...: the exit status, and the text in what it prints
    local status=$1 text=$2 rc=0 out
    shift 2
    out=$("$@" 2>&1) || rc=$?
    [ $rc = "$status" ] || fail "$* exits $rc, not $status: $out"
    grep -qF -- "$text" <<<"$out" || fail "$* does not say '$text': $out"
}

$mk p1
$mk p2 12 scoped
$mk p3 13 40
expect 0 'coverage: 2 of 3 launches instrumented (66.7 %)' "$MARGAY" report p1
expect 0 'other: 1 native, no PTX' "$MARGAY" report p1
expect 0 '"thread_instructions": 1474560' "$MARGAY" report --json p1
expect 0 '"estimate": true' "$MARGAY" report p2 --json
expect 0 'add.f32,327680,10240,327680,0' "$MARGAY" report p1 --csv --table opcodes
expect 0 '0,0,_Z4loopPfi,00112233445566778899aabbccddeeff,bra,180224,5632' "$MARGAY" report p1 --csv --table opcodes --per-launch
expect 2 'takes one profile directory' "$MARGAY" report p1 p2
expect 2 'needs a profile directory' sh -c "mkdir -p none && cd none && '$MARGAY' report"
touch p1/profile.db
expect 0 'profile p1' "$MARGAY" report
expect 0 'coverage: 2 of 3 launches' "$MARGAY" report --sort name
expect 2 'sort' "$MARGAY" report p1 --sort color
expect 0 'opcodes,' "$MARGAY" report p1 --csv --table list
expect 2 'no option --xml' "$MARGAY" report p1 --xml
expect 2 'exclude each other' "$MARGAY" report p1 --json --csv
expect 2 "no command 'rpeort'" "$MARGAY" rpeort
expect 3 'nowhere' "$MARGAY" report nowhere
expect 3 'neither a tool nor a table named clock' "$MARGAY" report p1 --tool clock
expect 0 '"note": [1, 2]' "$MARGAY" report p2 --json --tool blocks
expect 0 'profile p1' "$MARGAY" report . # the newest in it
expect 3 'no profile' "$MARGAY" report none
echo rubbish-rubbish > p3/profile-9.db
expect 3 'p3/profile-9.db' "$MARGAY" report p3 --json
rm p3/profile-9.db

expect 0 '2 of 2 kernels equal' "$MARGAY" diff p1 p1 --fail-over 0
expect 1 'only one' "$MARGAY" diff p1 p3 --fail-over 10
expect 0 'only one' "$MARGAY" diff p1 p3
mkdir -p none; expect 2 'not enough here' sh -c "cd none && '$MARGAY' diff"
expect 3 'nowhere' "$MARGAY" diff p1 nowhere

# an empty database is an error by name, alone and beside others
mkdir hollow
: > hollow/profile.db
$mk beside 14
: > beside/profile-9.db
for c in "report hollow" "report hollow --json" "diff hollow p1" "diff p1 hollow" "merge -o other hollow p1" "annotate hollow" "export folded hollow" "trace info hollow"; do
    expect 3 'hollow/profile.db is empty: nothing of its process was recorded' "$MARGAY" $c
done
"$MARGAY" diff hollow p1 > out 2> err || true # that one line, and no verdict of nothing
[ "$(wc -l < err) $(wc -c < out)" = '1 0' ] || { cat out err; fail 'an empty profile is compared'; }
for c in "report beside" "diff beside p1" "merge -o other beside p1" "export folded beside"; do
    expect 3 'beside/profile-9.db is empty: nothing of its process was recorded' "$MARGAY" $c
done
[ "$("$MARGAY" report beside --json 2> err | python3 -c 'import json, sys; print(json.load(sys.stdin)["coverage"]["empty_processes"])')" = 1 ] || fail 'the empty one is not counted'

"$MARGAY" merge -o joined p1 p2 p3
expect 0 'coverage: 43 of 44 launches' "$MARGAY" report joined
expect 0 'off by' "$MARGAY" report joined            # p2's CTA against the full counts of p1: equal geometry
expect 3 'holds a profile already' "$MARGAY" merge -o joined p1
expect 3 'nowhere' "$MARGAY" merge -o other p1 nowhere
[ ! -e other ] || fail 'a merge that failed left a directory'
expect 2 'needs -o' "$MARGAY" merge p1

expect 0 'blocks' "$MARGAY" tools
expect 0 'scope=' "$MARGAY" tools -v
expect 0 'margay ' "$MARGAY" --version
commands=$("$MARGAY" --help | sed -n 's/^  \([a-z]\{2,8\}\)  *[a-z].*/\1/p')
[ "$(echo "$commands" | wc -l)" -ge 17 ] || fail "commands are not found in the help: $commands"
for c in $commands; do
    expect 0 "margay $c" "$MARGAY" help $c
    expect 0 "margay $c" "$MARGAY" $c --help
    expect 0 '.SH NAME' "$MARGAY" $c --help=man
done

# stdout is the result alone, and a full pipe or disk is an error
"$MARGAY" report p1 --json 2>err >out && [ ! -s err ] || fail 'chatter with the result'
if [ -w /dev/full ]; then expect 3 'cannot write' bash -c "'$MARGAY' report p1 --json > /dev/full"; fi

# the same bytes twice, apart from what is documented to vary
"$MARGAY" report p1 --json --per-launch > a.json
"$MARGAY" report p1 --json --per-launch | cmp - a.json || fail 'two reports of one profile differ'

# docs/json.md: every documented field is printed, every printed field is documented
"$MARGAY" report joined --json --per-launch > all.json
# what 4 of the 13 launches of a kernel counted, and what all 13 would have: within the bound
for o in '--launches %4' '--launches 0-'; do
    rm -rf part && "$MARGAY" run -q --device emu $o -o part -- "$EX/bfs" > /dev/null 2> err && "$MARGAY" report part --json > "part.$(( ${n:-0} ))" || { cat err; fail "$o"; }
    n=1
done
python3 - <<'PY' || fail 'the estimate of a sample'
import json
some, full = (json.load(open(f))['kernels'][0] for f in ('part.0', 'part.1'))
s = some['sampled']
assert full['sampled'] is None and s['launches'] == 13 and s['counted'] == 4 and s['method'] == 'geometry', s
assert some['thread_instructions'] < full['thread_instructions'], 'it counted all'
assert 0 < s['bound'] < s['thread_instructions'] and abs(s['thread_instructions'] - full['thread_instructions']) <= s['bound'], (s['thread_instructions'], s['bound'])
assert s['blocks'][0]['thread_entries'] == full['blocks'][0]['thread_entries'] and s['blocks'][0]['bound'] == 0, s['blocks'][0]
PY
"$MARGAY" run -q --device emu -t accesses -o records -- "$EX/saxpy" > /dev/null && "$MARGAY" report records --json > records.json || fail 'records'
"$MARGAY" run -q --device emu -t advise -o advised -- "$EX/divergent" > /dev/null && "$MARGAY" report advised --json > advised.json || fail 'advise'
python3 - "$ROOT/docs/json.md" all.json part.0 records.json advised.json <<'PY'
import json, re, sys
text = open(sys.argv[1]).read()
documented = set(re.findall(r'^\| `([^`]+)`', text.split('\n## `margay sched')[0], re.M))
printed = set()
def walk(v, path):
    if isinstance(v, dict):
        for k, x in v.items():
            if path == 'tools': k = '<tool>'
            if path in ('kernels[].opcodes', 'launches[].opcodes'): k = '<opcode>'
            if path == 'tools.<tool>' and k != 'options':
                printed.add('tools.<tool>.channel' if k == 'channel' else 'tools.<tool>.<key>')
                continue
            q = f'{path}.{k}' if path else k
            printed.add(q)
            walk(x, q)
    elif isinstance(v, list):
        for x in v: walk(x, path + '[]')
for f in sys.argv[2:]: walk(json.load(open(f)), '')
documented = {p for p in documented if not re.match(r'tools\.\w', p)} # a tool's own results: tools.<tool>.<key>
documented -= {'tools.<tool>.trace'} # of tools outside the tree: tests/inject/records.sh
for p in sorted(printed - documented): print('printed, not documented:', p)
for p in sorted(documented - printed): print('documented, not printed:', p)
sys.exit(printed != documented)
PY
