#!/usr/bin/env bash
# tests/run on a tree of planted scripts: what fails, dies, hangs or keeps a process is reported as such, what is skipped with its reason, on each
# build that was named; the times of all are in the file; the last line counts them.
set -euo pipefail
mkdir -p tests/x scripts build/release/bin build/asan/bin
cp "$ROOT/tests/run" tests/run
plant() { printf '#!/bin/sh\n%s\n' "$2" > "tests/x/$1.sh" && chmod +x "tests/x/$1.sh"; }
plant good 'echo fine'
plant bad 'echo what went wrong; exit 3'
plant dies 'kill -SEGV $$'
plant skipped 'echo why not; exit 77'
plant hangs '# long
echo so far; sleep 1000'
plant keeps 'sleep 1000 & echo $! > "$B/kept"'
plant late '# clock
[ -e "$B/once" ] || { touch "$B/once"; exit 1; }'
plant works 'python3 -c "import time
while time.process_time() < 0.5: pass"'
plant where 'echo "$VARIANT $(basename "$B")"; exit 77'
printf '#!/bin/sh\necho "FAIL one (test_one.c)"\necho "slow two: 7 s of CPU time"\necho "3 passed, 1 failed, 2 skipped"\nexit 1\n' > build/release/bin/test-unit
chmod +x build/release/bin/test-unit
fail() { echo "FAIL: $*"; cat out; exit 1; }
rc=0
tests/run --jobs 4 --timeout 12 --times times --since "$(($(date +%s) - 600))" --also build/asan tests/x/where.sh 'tests/x/b*' > out 2>&1 || rc=$?
[ $rc = 1 ] || fail "exit $rc"
for text in '^ok   tests/x/good.sh (' '^FAIL tests/x/bad.sh (exit 3,' '^FAIL tests/x/bad.sh \[asan\] (exit 3,' '  | what went wrong' '^FAIL tests/x/dies.sh (exit -11,' \
    '^skip tests/x/skipped.sh: why not$' '^FAIL tests/x/hangs.sh (exit -1, [1-9][0-9]' '  | so far' '  | stopped after 12 s' '^FAIL tests/x/keeps.sh (exit -1, [1-9][0-9]' \
    '^late tests/x/late.sh (exit 1,' '^ok   tests/x/late.sh, once more, alone' '^skip tests/x/where.sh: release release$' '^skip tests/x/where.sh \[asan\]: asan asan$' \
    '^  | FAIL one' '^FAIL unit: 3 cases passed, 1 failed (.*; two 7 s)$' '^elapsed: 1[0-9].[0-9] min, tests '; do
    grep -q -- "$text" out || fail "nothing says: $text"
done
[ "$(tail -1 out)" = '6 passed, 6 failed, 5 skipped' ] || fail 'the last line'
awk -F'\t' 'NF != 3 || $1 !~ /^[0-9.]+$/ || $2 !~ /^[0-9.]+$/ || (NR > 1 && $1 > least) { exit 1 } { least = $1; n++ } $3 == "tests/x/works.sh" { cost = $1 } END { exit !(n == 13 && cost >= 0.5) }' times || { cat times; fail 'times'; }
for _ in $(seq 300); do # it ends in its own time; who waits for it is not our concern (Z)
    state=$(sed 's/.*) \(.\) .*/\1/' "/proc/$(cat build/release/kept)/stat" 2> /dev/null) || state=Z
    case $state in '' | Z | X) break ;; esac
    sleep 0.1
done
case $state in '' | Z | X) ;; *) fail "a process is left: $state" ;; esac
rc=0
tests/run 'tests/x/g*' > out 2>&1 || rc=$?
[ $rc = 0 ] && [ "$(tail -1 out)" = '1 passed, 0 failed' ] || fail "good ones alone: $rc"
rc=0
tests/run nothing > out 2>&1 || rc=$?
[ $rc = 1 ] && [ "$(tail -1 out)" = '0 passed, 0 failed' ] || fail "no test at all: $rc"
