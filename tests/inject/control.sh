#!/bin/sh
# Which launches are instrumented: --launches in all its forms, --native-times, the switch from inside
# the program and by `margay ctl`. Every launch that ran native says why.
set -u
failed=0
gcc -O1 -Wall -Werror -I"$ROOT/include" -o control "$ROOT/tests/inject/control.c" -L"$B/lib/margay/driver" -lcuda || exit 1
cp "$ROOT/tests/inject/fill.ptx" .
ran() { # WHAT WANTED REASON: the launches of `profile` that were instrumented, and why the others were not
    "$MARGAY" report profile --json --per-launch > out.json && python3 - "$2" "$3" > why 2>&1 <<'P'
import json, sys
r = json.load(open('out.json'))
got = ''.join('1' if l['ran'] == 'instrumented' else '0' for l in r['launches'])
assert got == sys.argv[1], got
assert r['coverage']['instrumented'] == got.count('1')
assert all(sys.argv[2] in n['reason'] for n in r['coverage']['native']), r['coverage']
assert sum(n['launches'] for n in r['coverage']['native']) == got.count('0')
P
    if [ $? = 0 ]; then echo "ok   $1"; else echo "FAIL $1"; cat why; failed=1; fi
}
while read -r spec want reason; do
    rm -rf profile
    "$MARGAY" run -q -o profile --launches "$spec" -- ./control fill.ptx plain > out 2> err && grep -q '^ok$' out || { echo "FAIL $spec"; cat out err; failed=1; }
    ran "--launches $spec" "$want" "$reason"
done <<'L'
1-3,8 0111000010 filtered
%4 1000100010 filtered
first=2 1100000000 filtered
steady 1110000000 steady
5-,steady=2 0000011000 e
budget=0% 1000000000 budget
L
rm -rf profile
"$MARGAY" run -q -o profile --launches random=0.5:3 -- ./control fill.ptx plain > out 2> err
"$MARGAY" report profile --json --per-launch | grep -o '"ran":"[a-z]*"' > first
rm -rf profile
"$MARGAY" run -q -o profile --launches random=0.5:3 -- ./control fill.ptx plain > out 2> err
"$MARGAY" report profile --json --per-launch | grep -o '"ran":"[a-z]*"' | cmp - first && [ "$(sort -u first | wc -l)" = 2 ] || { echo "FAIL random= does not repeat"; failed=1; }
rm -rf profile
"$MARGAY" run -q -o profile --native-times -- ./control fill.ptx plain > out 2> err
ran --native-times 1010101010 "for its time"
"$MARGAY" report profile > text && grep -q '^  natively .* for 10 launches, [0-9.]* times as long instrumented' text || { echo "FAIL times of either code"; cat text; failed=1; }
rm -rf profile
"$MARGAY" run -q -o profile -- ./control fill.ptx api > out 2> err
ran "from inside" 1110000111 "switched off"
printf 'before -1 after 1\nwas 1\nwas 0\nok\n' | cmp - out || failed=1
[ -z "$(ls profile | grep '^ctl')" ] || { echo "FAIL the page is left behind"; failed=1; }
if [ "$VARIANT" != asan ]; then # whose runtime only margay run puts in front
    LD_LIBRARY_PATH=$B/lib/margay/driver ./control fill.ptx api > out 2>&1
    grep -q 'before -1 after -1' out && grep -q '^ok$' out || { echo "FAIL without margay"; cat out; failed=1; }
fi

# from outside: by the pid of `margay run`, a parent of the program
mkfifo in out.fifo
begin() { # OPTIONS: until it has launched five times
    rm -rf profile
    "$MARGAY" run -q "$@" -o profile -- ./control fill.ptx wait < in > out.fifo 2> err &
    pid=$!
    exec 3> in 4< out.fifo
    read -r line <&4
    read -r line <&4
    [ "$line" = ready ] || { echo "FAIL not ready: $line"; failed=1; }
}
finish() {
    echo go >&3
    cat <&4 > rest
    wait $pid
}
begin -t none # launches that nothing is to be put into are seen, too
"$MARGAY" ctl $pid status > status && grep -q ': on, 5 launches seen, 0 selected' status || { echo "FAIL status of -t none"; cat status; failed=1; }
finish
begin
"$MARGAY" ctl $pid status > status && grep -q ': on, 5 launches seen, 5 selected' status || { echo "FAIL status"; cat status; failed=1; }
"$MARGAY" ctl $pid off > status && grep -q ': off' status || { echo "FAIL off"; cat status; failed=1; }
finish
ran "margay ctl" 1111100000 "switched off"
"$MARGAY" ctl $pid status > status 2>&1
[ $? = 3 ] && grep -q 'no process' status || { echo "FAIL ctl of a dead process"; cat status; failed=1; }
"$MARGAY" ctl $$ on > status 2>&1
[ $? = 3 ] && grep -q 'does not run under margay' status || { echo "FAIL ctl of another"; cat status; failed=1; }
"$MARGAY" ctl 1 maybe > status 2>&1
[ $? = 2 ] || { echo "FAIL ctl usage"; failed=1; }
"$MARGAY" run --launches 5-2 -- true > status 2>&1
[ $? = 120 ] && grep -q 'ends before it begins' status || { echo "FAIL bad SPEC"; cat status; failed=1; }
exit $failed
