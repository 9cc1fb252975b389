#!/bin/sh
# The TAUcuda interface in C and C++ over a driver with a clock of its own, and the profiles it writes.
set -u
failed=0
fail() { echo "FAIL $*"; failed=1; }
san=; [ "$VARIANT" = asan ] && san=-fsanitize=address,undefined
# shellcheck disable=SC2086
gcc $san -std=c17 -D_GNU_SOURCE -g -I"$ROOT/src" -shared -fPIC -Wl,-soname,libcuda.so.1 "$ROOT/tests/tau/fake_cuda.c" -o libcuda.so.1 || exit 1
# shellcheck disable=SC2086
gcc $san -std=c17 -D_GNU_SOURCE -Wall -g -O1 -I"$ROOT/include" "$ROOT/tests/tau/interface.c" -L"$B/lib" -ltau_cuda -l:libcuda.so.1 -L. -lm -lpthread -o in_c || exit 1
export LD_LIBRARY_PATH=$PWD:$B/lib PROFILEDIR=$PWD/tau
./in_c > out 2> err || { fail "C"; cat out err; }
for name in 'unknown handle' 'other context' 'stream destroyed' 'stream is being captured' 'pop without push' 'thread has exited' 'unfinished blocks'; do
    grep -q "^tau_cuda: $name: " err || fail "no line says $name"
done
grep -q '^ *10  *149940\.00[0-9]*  *149940\.00[0-9]* .*  InterpolateA (C-\[FirstWrapper\]#D-0#S-1)$' err || { fail "table"; cat err; }
ls tau > files; printf 'profile.0.0.0\nprofile.0.0.1\n' | cmp - files || fail "files"
python3 - tau/profile.0.0.0 tau/profile.0.0.1 <<'P' || fail "profile"
import re, sys
def read(path): # what TAU's own reader asks for
    lines = open(path).read().split('\n')
    n = int(re.fullmatch(r'(\d+) templated_functions_MULTI_TIME', lines[0])[1])
    assert re.match(r'# Name Calls Subrs Excl Incl ProfileCalls # <metadata>.*</metadata>$', lines[1]), lines[1]
    f = {}
    for l in lines[2:2 + n]:
        m = re.fullmatch(r'"([^"]*)" (\d+) (\d+) (\S+) (\S+) 0 GROUP="([A-Z_]+)"', l)
        f[m[1]] = int(m[2]), int(m[3]), float(m[4]), float(m[5]), m[6]
    assert len(f) == n and lines[2 + n] == '0 aggregates'
    m = int(re.fullmatch(r'(\d+) userevents', lines[3 + n])[1])
    assert lines[4 + n] == '# eventname numevents max min mean sumsqr'
    e = {}
    for l in lines[5 + n:5 + n + m]:
        x = re.fullmatch(r'"([^"]*)" (\d+) (\S+) (\S+) (\S+) (\S+)', l)
        e[x[1]] = int(x[2]), *(float(x[k]) for k in range(3, 7))
    assert len(e) == m and lines[5 + n + m:] == ['']
    return f, e
f, e = read(sys.argv[1])
assert f['.TAU application'][:2] == (1, len(f) - 1) # of the functions in the file
calls, children, exclusive, inclusive, group = f['All-Interpolate (C-[SecondWrapper]#D-0#S-1)']
assert (calls, children, group) == (1, 20, 'TAU_CUDA') and abs(exclusive - 65) < .01 and abs(inclusive - 300085) < .01
n, most, least, mean, squares = e['InterpolateA (C-[FirstWrapper]#D-0#S-1) : finalize']
assert n == 10 and 0 < least <= mean <= most and n * least ** 2 <= squares * 1.001 and squares <= n * most ** 2 * 1.001
assert not any('unfinished' in x for x in f)
f, e = read(sys.argv[2])
assert sorted(x for x in f if x[0] != '.') == ['threaded (C-[on_thread]#D-1#S-%d)' % s for s in (0, 1)], f.keys()
P
grep -c 'argv\|in_c' tau/profile.0.0.0 > /dev/null || fail "command line"
# shellcheck disable=SC2086
g++ $san -std=c++17 -Wall -g -I"$ROOT/include" "$ROOT/tests/tau/interface.cpp" -L"$B/lib" -ltau_cuda -l:libcuda.so.1 -L. -o in_cpp 2> err || { cat err; fail "C++ does not compile"; }
[ $failed = 1 ] || OMPI_COMM_WORLD_RANK=3 PROFILEDIR=$PWD/ranks TAU_CUDA_TABLE=0 ./in_cpp > out 2>&1 || { fail "C++"; cat out; }
[ -s out ] && { fail "C++ printed"; cat out; }
[ -f ranks/profile.3.0.0 ] || fail "no rank in the file's name"

# in a report: the files in DIR/tau, of a run with the time line or without; a bad one is named
for tool in none timeline; do
    rm -rf profile
    env -u LD_LIBRARY_PATH "$MARGAY" run -q -t $tool --device emu -o profile -- "$EX/saxpy" > out 2> err || { fail "$tool"; cat out err; continue; }
    mkdir profile/tau
    cp tau/profile.0.0.0 tau/profile.0.0.1 profile/tau
    cp ranks/profile.3.0.0 profile/tau/profile.12.0.0
    echo nothing > profile/tau/profile.13.0.0
    "$MARGAY" report profile --json > out.json && "$MARGAY" report profile > out.txt && python3 - <<'P' || fail "report of a run with $tool"
import json, re
rows = json.load(open('out.json'))['tools']['timeline']['tau']
assert [r['node'] for r in rows] == sorted(r['node'] for r in rows) and {r['node'] for r in rows} == {0, 12}, rows
files = {}
for node, thread, path in ((0, 0, 'tau/profile.0.0.0'), (0, 1, 'tau/profile.0.0.1'), (12, 0, 'ranks/profile.3.0.0')):
    text = open(path).read()
    for m in re.finditer(r'^"(.*)" (\d+) \d+ (\S+) (\S+) 0 GROUP="TAU_CUDA"$', text, re.M):
        e = {w: re.search(r'^"' + re.escape(m[1]) + ' : ' + w + r'" (\d+) \S+ \S+ (\S+)', text, re.M) for w in ('wait', 'finalize')}
        files[node, thread, m[1]] = [int(m[2]), float(m[4]), float(m[3])] + [int(x[1]) * float(x[2]) for x in e.values()]
got = {(r['node'], r['thread'], r['event']): [r['calls'], r['inclusive_us'], r['exclusive_us'], r['wait_us'], r['finalize_us']] for r in rows}
assert set(got) == set(files) and len(rows) == len(files), set(got) ^ set(files)
assert all(abs(a - b) <= 1e-6 * abs(b) + 1e-9 for k in got for a, b in zip(got[k], files[k])), got
for r in rows:
    assert r['from'] == 'tau_cuda' and r['event'] == '%(name)s (C-[%(context)s]#D-%(device)d#S-%(stream)d)' % r, r
text = open('out.txt').read()
assert 'InterpolateA (C-[FirstWrapper]#D-0#S-1)' in text and 'profile.13.0.0' in text, text
P
done

# Without a driver each call fails, and one line says so. (A machine that has one cannot show it.)
if ldconfig -p | grep -q 'libcuda\.so\.1'; then exit $failed; fi
cat > none.c <<'C'
#include <margay/tau_cuda.h>
int main(int argc, char **argv)
{
    tau_cuda_init(argc, argv);
    for (int i = 0; i < 30; i++)
        if (tau_cuda_stream_begin("A", 0) || tau_cuda_status() != TAU_CUDA_NO_DRIVER) return 1;
    tau_cuda_exit();
    return 0;
}
C
mkdir -p alone && cp "$B/lib/libtau_cuda.so" alone/
# shellcheck disable=SC2086
gcc $san -I"$ROOT/include" none.c -L"$B/lib" -ltau_cuda -o none || exit 1
if LD_LIBRARY_PATH=$PWD/alone ./none 2> err; then
    [ "$(grep -c 'no driver' err)" = 1 ] || { fail "said that there is no driver so often"; cat err; }
else
    fail "calls without a driver"
    cat err
fi
exit $failed
