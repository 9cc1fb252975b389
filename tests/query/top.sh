#!/bin/sh
# margay top: the last view of a program that ended holds what its report says; a program that runs is seen while it runs.
# clock
set -u
failed=0
fail() { echo "FAIL $*"; failed=1; }
gcc -O1 -g -Wall -o storm "$ROOT/tests/inject/storm.c" -L"$B/lib/margay/driver" -l:libcuda.so.1 -lpthread || exit 1
"$MARGAY" run -q --device emu -o profile -- ./storm 4 500 1 4 > out || { cat out; exit 1; }
"$MARGAY" top -b -d 0.1 profile > view || fail "top"
grep -q '^process [0-9]*: 2000 launches' view && grep -q '^ *2\.0k .* 100\.0 %  k$' view || { fail "finished"; cat view; }
"$MARGAY" run -q --device emu -o margay-live-1 -- ./storm 1 2000000 1 4 > out 2>&1 & run=$!
for i in 1 2 3 4 5 6 7 8 9 10; do [ -e margay-live-1/profile.db ] && break; sleep 0.5; done
timeout 300 "$MARGAY" top -b -n 2 -d 0.5 > live || fail "live"
pid=$(pgrep -P $run storm)
timeout 300 "$MARGAY" top -b -n 1 -d 0.5 "$pid" > by_pid || fail "by pid"
kill -9 "$pid"; wait $run 2> /dev/null
[ "$(grep -c "^process $pid: [1-9][0-9]* launches\(, *[0-9.]*[k ]/s\)*$" live)" = 2 ] && [ "$(grep -c '/s$' live)" = 1 ] || { fail "live view"; cat live; }
grep -q "^process $pid: [1-9]" by_pid || { fail "view by pid"; cat by_pid; }
"$MARGAY" top nowhere > out 2>&1; [ $? = 3 ] && grep -q nowhere out || { fail "no such directory"; cat out; }
"$MARGAY" top 1 > out 2>&1; [ $? = 3 ] && grep -q 'process 1 does not run under Margay' out || { fail "no such process"; cat out; }
"$MARGAY" top -d 0 profile > out 2>&1; [ $? = 2 ] || fail "bad delay"
exit $failed
