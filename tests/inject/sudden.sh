#!/bin/sh
# A program that dies right after its launches: each launch that the driver has taken is in the coverage, with its counts or as not written.
set -u
failed=0
case ${VARIANT:-release} in asan | tsan) echo 'a sanitizer catches the signals itself'; exit 77 ;; esac
gcc -O1 -Wall -Werror -o sudden -D_GNU_SOURCE "$ROOT/tests/inject/sudden.c" -L"$B/lib/margay/driver" -l:libcuda.so.1 || exit 1
export LD_LIBRARY_PATH=$B/test/driver XDG_CACHE_HOME=$PWD/cache
ulimit -c 0
for device in emu cpu nvidia; do
    for how in 'segv 139 0' 'kill 137 0' 'segv 139 100000'; do
        set -- $how
        for n in 1 7 300; do
            rm -rf p
            "$MARGAY" run --device $device -o p -- ./sudden $n $3 $1 > out 2> err
            rc=$?
            # before the database was there: that is said, too
            [ $rc = $2 ] && grep -q '^coverage: 0 of 0 .*, 1 process of which nothing could be recorded' err && continue
            [ $rc = $2 ] && "$MARGAY" report p --json > out.json && python3 - $n $3 <<'P' && grep -q "^coverage: [0-9]* of $n launches" err && continue
import json, sys
n, slept = map(int, sys.argv[1:])
r = json.load(open('out.json'))
c = r['coverage']
assert c['launches'] == n == c['instrumented'] + c['not_written'] and c['open_processes'] == 1, c
counted = sum((k['blocks'][0]['thread_entries'] or 0) // 32 for k in r['kernels'] if k['blocks'])
assert counted == c['instrumented'] - c['no_end'], (counted, c)
P
            echo "FAIL $device, $how, $n launches"
            cat err
            failed=1
        done
        echo "ok   $device, $1 after $3 us"
    done
done
exit $failed
