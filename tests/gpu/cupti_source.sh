#!/bin/sh
# source=cupti: what Margay keeps is exactly what CUPTI handed over in the same run (cupti_tee.c stands in front of it):
# every kernel, copy and memset of the program has a time, and it is one of CUPTI's. CUPTI=PATH names the library.
set -u
for lib in "${CUPTI:-}" /usr/local/cuda/lib64/libcupti.so /usr/local/cuda/extras/CUPTI/lib64/libcupti.so /usr/local/cuda/targets/x86_64-linux/lib/libcupti.so \
    $(find / -name 'libcupti.so.1[23]' -not -path '/proc/*' 2> /dev/null); do
    [ -n "$lib" ] && [ -e "$lib" ] && break
    lib=
done
[ -n "$lib" ] || { echo "no libcupti was found (CUPTI=PATH names it)"; exit 77; }
export CUPTI=$lib CUPTI_TEE=$PWD/theirs
mkdir -p tee && gcc -O1 -Wall -fPIC -shared -o tee/libcupti.so.13 "$ROOT/tests/gpu/cupti_tee.c" -lpthread -ldl || exit 1
gcc -O1 -Wall -o client "$ROOT/tests/inject/timeline.c" -L"$B/lib/margay/driver" -l:libcuda.so.1 -lpthread || exit 1
export LD_LIBRARY_PATH=$PWD/tee${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
failed=0
for what in "plain 300" "threads 16 50"; do
    rm -rf profile theirs
    timeout 300 "$MARGAY" run -t timeline,source=cupti --device nvidia -o profile -- ./client "$ROOT/tests/inject/fill.ptx" $what > out 2> err && grep -qx ok out && ! grep source=cupti err &&
        "$MARGAY" trace print --json --by-time profile > records && python3 - <<'P' && echo "ok   $what" || { echo "FAIL $what"; tail -n 5 out err; failed=1; }
import collections, json
names = {'10': 'kernel', '1': 'copy', '2': 'memset'}
theirs = collections.Counter((names[k], int(b), max(int(e), int(b) + 1)) for k, b, e in (l.split() for l in open('theirs')))
work = [r['fields'] for r in map(json.loads, open('records')) if r['kind'] == 'work']
ours = collections.Counter((w['work'], w['begin'], w['end']) for w in work if w['source'] == 'cupti')
by = collections.Counter((w['work'], w['source']) for w in work)
print('work by source:', dict(by), 'CUPTI handed over', dict(collections.Counter(k for k, _, _ in theirs.elements())))
assert not ours - theirs, ('not CUPTI\'s', list((ours - theirs).items())[:3])
assert by and all(source == 'cupti' for _, source in by), by
kernels = [sum(n for (k, *_), n in c.items() if k == 'kernel') for c in (ours, theirs)]
assert kernels[0] == kernels[1], kernels
P
done
exit $failed
