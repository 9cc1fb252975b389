#!/bin/sh
# examples/prefetch: a tool that changes the program by what an earlier profile shows. Results stay (--verify), and as
# many prefetches are made as the loads run, but for each thread's first.
set -u
case ${VARIANT:-} in asan | tsan | cover) echo "a tool is linked with the plain core"; exit 77 ;; esac
[ -x "$B/examples/matmul-rt" ] || { echo "no nvcc"; exit 77; }
export XDG_CACHE_HOME=$PWD/cache
gcc -std=c17 -D_GNU_SOURCE -O1 -fPIC -fvisibility=hidden -Wall -Wextra -Werror -I"$ROOT/src" -I"$B/gen" -shared -o prefetch.so "$ROOT/examples/prefetch/prefetch.c" \
    "$B/lib/margay/libmargay-core.a" -Wl,--exclude-libs,ALL -Wl,-z,defs -lm -lpthread -ldl || exit 1
for device in emu $([ -e "$B/lib/margay/libmargay-cpu.so" ] && echo cpu); do
    rm -rf before after
    "$MARGAY" run -q --device $device -o before -- "$B/examples/matmul-rt" > out || { cat out; exit 1; }
    "$MARGAY" report before --csv > hot.csv && "$MARGAY" report before --json > before.json || exit 1
    "$MARGAY" run -q --device $device --verify -t blocks -t ./prefetch.so,hot=hot.csv -o after -- "$B/examples/matmul-rt" > out 2>&1 || { echo "$device"; cat out; exit 1; }
    grep -q PASSED out || { cat out; exit 1; }
    "$MARGAY" report after --json > after.json || exit 1
    python3 - <<'P' || exit 1
import json
before, after = json.load(open('before.json')), json.load(open('after.json'))
k = before['kernels'][0]
sites = after['tools']['prefetch']['sites']
threads = k['threads']
entries = {b['id']: b['thread_entries'] for b in k['blocks']}
assert len(sites) >= 2, sites
for s in sites:
    assert s['prefetches'] == entries[s['block']] - threads, (s, entries, threads)
assert [b['thread_entries'] for b in after['kernels'][0]['blocks']] == list(entries.values())
P
done
"$MARGAY" run -q --device emu -t ./prefetch.so -o none -- "$B/examples/matmul-rt" > out 2>&1
[ $? = 120 ] && grep -q "needs a profile" out || { echo "no profile: not refused"; cat out; exit 1; }
