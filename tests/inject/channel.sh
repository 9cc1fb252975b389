#!/bin/sh
# Channels: every access of kernels arrives at the host, once, in order, and the program's output stays, on the
# emulator, the CPU device where there is one, and behind a stand-in for NVIDIA's driver.
set -u
failed=0
export XDG_CACHE_HOME=$PWD/cache
fail() { echo "FAIL $*"; failed=1; }
run() { # WHAT DEVICE PROGRAM ARGS...
    what=$1 device=$2 program=$3
    shift 3
    rm -rf p
    timeout 300 "$MARGAY" run -o p --device $device "$@" -- "$B/examples/$program" > out 2> err || fail "$what: exit $?: $(tail -3 err)"
    cmp -s out "$program.$device" || fail "$what: the program's output is another"
    "$MARGAY" report p --json > p.json || fail "$what: report"
}
devices="emu $([ -e "$B/lib/margay/libmargay-cpu.so" ] && echo cpu)"
[ "${VARIANT:-release}" = release ] || devices=emu # the CPU device under sanitizers: tests/inject/scenarios.sh, tools.sh, records.sh
for device in $devices; do
    for program in saxpy bfs stencil histogram; do
        "$MARGAY" run -q -o none --device $device -t none -- "$B/examples/$program" > $program.$device 2> /dev/null
        for form in coded lanes; do
            run "$device $program $form" $device $program -t opcodes -t accesses,form=$form
            python3 - $program $form > why 2>&1 <<'P' || { fail "$device $program $form"; cat why; }
import json, sys
program, form = sys.argv[1:]
r = json.load(open('p.json'))
t = r['tools']['accesses']
s, c = t['stream'], t['channel']
assert s['accesses'] == s['received'] and s['out_of_order'] == 0, s
assert (c['dropped_records'], c['lost_segments'], c['damaged_pages'], c['late_pages']) == (0, 0, 0, 0), c
assert c['bytes'] == s['bytes']
if program == 'saxpy':
    assert s['accesses'] == 3 << 20 and s['records'] == 3 << 15, s
    if form == 'coded': # 8 bytes for an access; a warp's three fit into the smallest segment, of 64; what does not fit into a page is less than that
        assert 64 << 15 <= s['bytes'] <= (64 << 15) + 64 * c['pages'], (s, c)
else:
    assert s['accesses'] > 10000 and s['records'] < s['accesses'], s
P
        done
    done
done
export LD_LIBRARY_PATH=$B/test/driver
for program in saxpy bfs; do # the way over NVIDIA's driver: pages are copied, and the last of them when the program ends
    cp $program.emu $program.nvidia
    run "nvidia $program" nvidia $program -t accesses
    python3 - > why 2>&1 <<'P' || { fail "nvidia $program"; cat why; }
import json
r = json.load(open('p.json'))
s, c = (r['tools']['accesses'][k] for k in ('stream', 'channel'))
assert r['coverage']['native'] == [] and s['accesses'] == s['received'] > 100000 and s['out_of_order'] == 0, s
assert (c['dropped_records'], c['lost_segments'], c['damaged_pages'], c['late_pages']) == (0, 0, 0, 0) and c['bytes'] == s['bytes'], c
P
done
gcc -O1 -I"$ROOT/include" -o traps "$ROOT/tests/inject/traps.c" -ldl -lpthread || exit 1
for how in leave:7 contexts:0 update:0; do # ways in which a process, a context or a launch ends
    rm -rf p
    timeout 300 "$MARGAY" run -q -o p --device nvidia -t accesses -- ./traps ${how%:*} > out 2> err
    [ $? = ${how#*:} ] || fail "traps ${how%:*}: $(tail -3 out err)"
    "$MARGAY" report p --json > p.json
    python3 - > why 2>&1 <<'P' || { fail "traps ${how%:*}"; cat why; }
import json
s, c = (json.load(open('p.json'))['tools']['accesses'][k] for k in ('stream', 'channel'))
assert s['accesses'] == s['received'] > 100000 and s['out_of_order'] == 0, s
assert (c['dropped_records'], c['lost_segments'], c['damaged_pages'], c['late_pages']) == (0, 0, 0, 0) and c['bytes'] == s['bytes'], c
P
done
ends() { # DEVICE WHAT ACCESSES: the process ends while a graph or a kernel may still write
    rm -rf p
    timeout 300 "$MARGAY" run -q -o p --device $1 -t accesses -- ./traps $2 > out 2> err || fail "$1 traps $2: exit $?: $(tail -3 out err)"
    "$MARGAY" report p --json | python3 -c "
import json, sys
t = json.load(sys.stdin)['tools']['accesses']
s, c = t['stream'], t['channel']
assert s['accesses'] == s['received'] and s['accesses'] >= $3 and s['out_of_order'] == 0, s
assert (c['dropped_records'], c['lost_segments'], c['damaged_pages'], c['late_pages']) == (0, 0, 0, 0), c" > why 2>&1 || { fail "$1 traps $2"; cat why; }
}
EMU_GPU_LEAVES=1 ends nvidia alive 9000 # three replays of 1000 loads, stores and additions; the driver is gone when the session ends
unset LD_LIBRARY_PATH
for device in $devices; do ends $device last 3001; done
run "records are dropped where the user wants that" emu stencil -t accesses,form=lanes --channel drop
python3 - > why 2>&1 <<'P' || { fail drop; cat why; }
import json
t = json.load(open('p.json'))['tools']['accesses']
assert (t['channel']['dropped_records'] > 0) == (t['stream']['received'] < t['stream']['accesses']) and t['channel']['policy'] == 'drop', t
assert t['stream']['out_of_order'] == 0
P
if [ -n "${NVCC:-}" ]; then # records of functions that stay calls begin with 0 each time: no order is missed there
    cat > call.cu <<'C'
#include <cstdio>
__device__ __noinline__ int f(int *o, int i) { int s = 0; for (int k = 0; k < 5; k++) { o[i * 8 + k] = i; s += o[(i * 8 + k * 3) % 512]; } return s; }
__global__ void k(int *o) { int i = threadIdx.x; o[i] = i; int s = f(o, i); o[i] = s; s += f(o, i); o[i + 1] = s; o[i + 2] = s; }
int main() { int *o; cudaMalloc(&o, 4096 * 4); k<<<1, 64>>>(o); printf("%d\n", cudaDeviceSynchronize()); }
C
    rm -rf p
    "$NVCC" -cudart shared -arch=sm_80 -o call call.cu && env LD_LIBRARY_PATH=$B/lib/margay/cudart "$MARGAY" run -q -o p --device emu -t accesses -- ./call > out 2> err && "$MARGAY" report p --json |
        python3 -c "import json, sys; s = json.load(sys.stdin)['tools']['accesses']['stream']; assert (s['received'], s['records'], s['out_of_order']) == (1536, 48, 0), s" > why 2>&1 || { fail calls; cat err why; }
fi
run "segments as they come" emu bfs -t accesses,raw=$PWD/raw
cat raw.* > all
python3 - > why 2>&1 <<'P' || { fail raw; cat why; }
import array, json
s = json.load(open('p.json'))['tools']['accesses']['stream']
w, i, records, lanes = array.array('Q', open('all', 'rb').read()), 0, 0, 0
while i < len(w):
    words, used = w[i] >> 52 & 1023, w[i] >> 42 & 1023
    k = i + 2
    while w[i] >> 62 == 2 and k < i + used:
        kind, n = w[k] >> 60, 32 if w[k] >> 60 == 1 else bin(w[k + 1]).count('1')
        records, lanes = records + 1, lanes + n
        k += {1: 1, 2: 2, 3: 2, 4: 2 + (n + 1) // 2, 5: 2 + n}[kind]
    i += words
assert (8 * len(w), records, lanes) == (s['bytes'], s['records'], s['received']), (len(w), records, lanes, s)
P
gcc -O1 -o faults "$ROOT/tests/inject/faults.c" -ldl || exit 1
rm -rf p
timeout 300 "$MARGAY" run -q -o p --device emu -t accesses -- ./faults misaligned > out 2> err && fail "a fault: exit 0"
"$MARGAY" report p --json > p.json # a good kernel's two records arrive; of the one that failed the segment is known to be lost
python3 -c "
import json
t = json.load(open('p.json'))['tools']['accesses']
assert t['stream']['received'] == 64 and t['channel']['lost_segments'] == 1, t" > why 2>&1 || { fail "a fault"; cat why; }
run "one of four" emu saxpy -t accesses --channel 1/4
python3 - > why 2>&1 <<'P' || { fail sample; cat why; }
import json
s = json.load(open('p.json'))['tools']['accesses']['stream']
assert s['records'] == 1 << 15 and s['accesses'] == 3 << 20, s
P
"$MARGAY" run --channel 1/0 -- true 2> err && fail "1/0 is taken"
grep -q 'wants block, drop' err || fail "1/0: $(cat err)"
[ $failed = 0 ] && echo "ok"
exit $failed
