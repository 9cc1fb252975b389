#!/usr/bin/env bash
# margay trace: what a trace written through the library prints as, selection by index, damage.
set -euo pipefail
make -s -C "$ROOT" VARIANT="$VARIANT" "build/$VARIANT/bin/mktrace" > /dev/null
mk() { "$B/bin/mktrace" "$@"; }
fail() { echo "FAIL $*"; exit 1; }
trace() { "$MARGAY" trace "$@"; }
equal() { [ "$1" = "$2" ] || fail "'$1' is not '$2': $3"; }

mk d 5 100
equal "$(trace verify d)" '1 file, 5 chunks, 500 records: whole' verify
equal "$(trace print d | wc -l)" 500 print
equal "$(trace print d --top 2 | sed 's/pid=[0-9]*/pid=N/')" 'other pid=N stream=0 time=1000 launch=0 cta=0 name="even"
step pid=N stream=0 time=1001 launch=0 cta=1 name="odd"' 'first records'
equal "$(trace print d --kind other | wc -l)" 100 --kind
equal "$(trace print d --kind step,other,none | wc -l)" 500 'several kinds'
equal "$(trace print d --launch 0 | wc -l)" 10 '--launch 0'
equal "$(trace print d --launch 7-8 --cta 3 | sed 's/.*time=\([0-9]*\).*/\1/' | xargs)" '1073 1083' 'launch and CTA'
equal "$(trace print d --time 1499- | wc -l)" 1 --time
equal "$(trace print d --time -1009 | wc -l)" 10 --time
for r in 5-4 x - 1-2-3 ''; do
    rc=0
    trace print d --launch="$r" > out 2> err || rc=$?
    [ $rc = 2 ] || fail "--launch='$r' is $rc"
done
trace info d --json --kinds > info.json
python3 - <<'END'
import json
i = json.load(open("info.json"))
f = i["files"][0]
assert (f["records"], f["chunks"], f["closed"], f["rank"]) == (500, 5, True, None), f
assert (f["range_ns"], f["launches"], f["ctas"]) == ([1000, 1499], [0, 49], [0, 9]), f
assert [(k["kind"], k["records"], k["bytes"]) for k in i["kinds"]] == [("other", 100, 2400), ("step", 400, 9600)], i["kinds"]
END
trace info d > out
grep -q '500 records in 5 chunks' out || fail info
trace print d --json > records.json
python3 -c '
import json
r = [json.loads(l) for l in open("records.json")]
assert [x["fields"]["time"] for x in r] == list(range(1000, 1500))
assert all(x["fields"]["name"] == ("odd" if x["time_ns"] & 1 else "even") for x in r)'

# records that were lost or dropped, accesses that were not selected: verify tells the first from the second
mk lost 2 50 lose
rc=0
trace verify lost > out 2> err || rc=$?
[ $rc = 3 ] && grep -q '1 records lost: 0 found no free buffer, 1 could not be written' err || { cat err; fail "lost: $rc"; }
trace info lost | grep -q '1 not written' || fail 'lost: info'
trace info lost --json | python3 -c 'import json, sys; assert json.load(sys.stdin)["files"][0]["lost"] == 1'
if [ -x "$EX/saxpy" ]; then
    "$MARGAY" run -q --device emu -t trace,cta=0-1 -o part -- "$EX/saxpy" > /dev/null
    trace verify part > out || fail 'a selection is no damage'
    grep -q 'as was asked for: selection' out || { cat out; fail selection; }
    "$MARGAY" run -q --device emu -t trace --channel drop -o dropped -- "$EX/matmul" 128 > /dev/null 2>&1
    rc=0
    trace verify dropped > out 2> err || rc=$?
    n=$("$MARGAY" report dropped --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["tools"]["trace"]["dropped"])')
    [ $rc = $([ "$n" = 0 ] && echo 0 || echo 3) ] || { cat err; fail "$n lanes dropped, verify: $rc"; }
fi

# two processes in one order of time
mk d 1 100
trace print d --by-time | sed 's/.*time=\([0-9]*\).*/\1/' > times
equal "$(wc -l < times)" 600 'two files'
sort -nc times || fail 'not in order of time'

# killed, torn, flipped, no trace: what is whole is printed, the rest is named
mk killed 3 100 kill 2>/dev/null || true
equal "$(trace print killed | wc -l)" 300 killed
trace info killed | grep -q 'not closed' || fail 'killed: info'
damaged() { # WORDS COMMAND...
    local words=$1 rc=0
    shift
    trace "$@" > out 2> err || rc=$?
    [ $rc = 3 ] || fail "$*: $rc"
    grep -q "$words" err || { cat err; fail "$*"; }
}
damaged 'not closed' verify killed
file=$(echo d/trace/*-2.mgt d/trace/*.mgt | cut -d' ' -f1)
file=$(ls -S d/trace/*.mgt | head -1)
bytes=$(stat -c %s "$file")
mkdir -p torn/trace flipped/trace none/trace
head -c $((bytes / 2)) "$file" > torn/trace/1.mgt
damaged 'bytes belong to no chunk' verify torn
rc=0
trace print torn > out 2> err || rc=$?
[ $rc = 3 ] && grep -q 'bytes belong to no chunk' err || fail "print torn: $rc"
n=$(wc -l < out)
rc=0
trace info torn > /dev/null 2>&1 || rc=$?
[ $rc = 3 ] || fail "info torn: $rc"
[ $n -ge 200 ] && [ $((n % 100)) = 0 ] || fail "torn: $n"
cp "$file" flipped/trace/1.mgt
printf 'X' | dd of=flipped/trace/1.mgt bs=1 seek=$((bytes / 3)) conv=notrunc status=none
damaged 'chunk [0-9]* at byte [0-9]*: its' verify flipped
damaged '1 damaged chunk left out' print flipped
equal "$(wc -l < out)" 400 flipped
damaged 'no trace in' info none
echo text > none/trace/1.mgt
damaged 'none/trace/1.mgt is no trace' info none
damaged 'cannot open' print nowhere
rc=0
trace look d > out 2> err || rc=$?
[ $rc = 2 ] && grep -q 'info, print, verify or convert' err || fail usage
