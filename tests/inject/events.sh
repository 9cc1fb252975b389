#!/bin/sh
# Events in a program's own source (<margay/event.h>, -t events): no machine code without Margay, closed forms with it, on the
# emulator, the CPU device where there is one, and through the nvidia backend with a driver over the emulator.
set -u
[ -n "$NVCC" ] || { echo "needs nvcc"; exit 77; }
failed=0
fail() { echo "FAIL $*"; failed=1; }
compile() { "$NVCC" "$@" -arch=sm_90 -I"$ROOT/include" "$ROOT/tests/inject/events.cu" || exit 1; }
compile -cudart shared -o events
compile -cubin -o with.cubin
compile -cubin -DPLAIN -o without.cubin
python3 - > why 2>&1 <<'P' || { fail "markers cost machine code"; cat why; }
import struct
def code(path): # sections .text.*: names and bytes
    d = open(path, 'rb').read()
    at, (size, n, names) = struct.unpack_from('<Q', d, 40)[0], struct.unpack_from('<HHH', d, 58)
    heads = [struct.unpack_from('<IIQQQQ', d, at + i * size) for i in range(n)]
    name = lambda h: d[heads[names][4] + h[0]:].split(b'\0', 1)[0]
    return {name(h): d[h[4]:h[4] + h[5]] for h in heads if name(h).startswith(b'.text._Z4work')}
a, b = code('with.cubin'), code('without.cubin')
assert len(a) == 1 and a == b, a.keys()
P

# records wait in shared memory where the kernel leaves room, else not
staged() { "$NVCC" -ptx -arch=sm_90 -I"$ROOT/include" "$@" -o staged.ptx && "$MARGAY" ptx instrument -t events,stage=8 staged.ptx | grep -q __mg_warps; }
staged "$ROOT/tests/inject/events.cu" || fail "nothing is staged"
printf '#include <margay/event.h>\n__global__ void k(int *o) { extern __shared__ int s[]; mg_event_begin(a); s[threadIdx.x] = *o; __syncthreads(); mg_event_end(a); *o = s[0]; }\n' > dynamic.cu
staged dynamic.cu && fail "staged in shared memory that the program may use"

want=$("$MARGAY" run --device emu -q -t none -o p0 -- ./events)
devices="emu $([ -e "$B/lib/margay/libmargay-cpu.so" ] && echo cpu) nvidia"
[ "${VARIANT:-release}" = release ] || devices='emu nvidia' # the CPU device under sanitizers: tests/inject/scenarios.sh, tools.sh, records.sh
for device in $devices; do
    [ $device != nvidia ] || export LD_LIBRARY_PATH=$B/test/driver:$B/lib/margay/cudart
    for options in records=16384 records=100 records=1000 records=16384,stage=8; do
        rm -rf p
        "$MARGAY" run --device $device -q -o p -t events,$options -- ./events > out 2> err || fail "$device: exit $?"
        [ "$(cat out)" = "$want" ] || { fail "$device: another result"; cat out err; }
        "$MARGAY" report p --json > p.json
        python3 - $device $options > why 2>&1 <<'P' || { fail "$device, $options"; cat why; }
import json, os, subprocess, sys
r = json.load(open('p.json'))
e = r['tools']['events']
by = {x['event']: x for x in e['events']}
assert r['coverage']['instrumented'] == 3 and set(by) == {'all', 'load', 'sum', 'round', 'stray', 'open'}, r['coverage']
for x in by.values(): # what parts say is what the whole says
    for part in 'sms', 'warps':
        for key in 'groups', 'threads', 'inclusive_cycles', 'exclusive_cycles', 'stray_ends', 'open':
            assert sum(p[key] for p in x[part]) == x[key], (x['event'], part, key)
if sys.argv[2] == 'records=100':
    assert e['records'] == 300 and e['lost'] > 0, (e['records'], e['lost'])
    text = subprocess.run([os.environ['MARGAY'], 'report', 'p', '--tool', 'events'], capture_output=True, text=True).stdout
    assert '%s records found no room' % e['lost'] in text, text
    sys.exit()
if sys.argv[2] == 'records=1000': # in four parts: none is lost as long as there is room in any
    assert e['records'] == 3000 and e['lost'] == int(open('total').read()) - 3000, (e['records'], e['lost'])
    sys.exit()
if sys.argv[2] == 'records=16384':
    open('total', 'w').write(str(e['records']))
assert e['lost'] == 0
get = lambda name: (by[name]['threads'], by[name]['stray_ends'], by[name]['open'])
assert get('all') == get('load') == get('sum') == (3072, 0, 0) and get('round') == (3 * 4 * 128 * 30, 0, 0), by
assert get('stray') == (0, 12, 0) and get('open') == (12, 0, 12), by
assert by['all']['groups'] == by['load']['groups'] == 96 and 96 * 20 <= by['round']['groups'] <= 96 * 30, by['round']['groups']
assert len(by['all']['warps']) == 32 and by['round']['line'] is None and by['round']['ptx_line'] > 0
inc, exc = (lambda n: by[n]['inclusive_cycles']), (lambda n: by[n]['exclusive_cycles'])
assert exc('round') == inc('round') > 0 and exc('load') == inc('load') > 0
assert inc('sum') - exc('sum') == inc('round') and inc('all') - exc('all') == inc('load') + inc('sum'), by
P
    done
    "$MARGAY" report p --csv --tool events --table events_warps | grep -q '^round,' || fail "$device: report"
    # in the twin a load of a constant reads global memory: one-liners see what the program has
    # where in which allocation: the same on every device
    rm -rf c
    "$MARGAY" run --device $device -q -o c -e 'st.global { @sum = sum(offset); @most = max(offset); @of = topk(alloc) } ld.global { if (lane > 3) { @in[alloc >= 0] = count() } @least = min(offset) }
        ld.shared { @none = max(offset) } kernel:entry { begin(all) } kernel:exit { end(all) }' -- ./events > out 2> err && "$MARGAY" report c --json | python3 -c '
import json, sys
e = json.load(sys.stdin)["tools"]["expr"]
m = {m["name"]: [x["value"] for x in m["entries"]] for m in e["maps"]}
assert (m["@sum"], m["@most"], m["@of"], m["@in"], m["@least"], m["@none"]) == ([3 * 4 * 499500], [3996], [3000], [3 * (1000 - 4 * 32)], [0], [-1]), m
assert e["events"][0]["threads"] == 3072 and e["records"] == 192, e["events"]' || { fail "$device: allocations"; cat err; }
    rm -rf c
    "$MARGAY" run --device $device -q -o c -e 'ld.global { @g = count() } ld.const /addr != 1/ { @c[op] = count() }' -- ./events > out 2> err && "$MARGAY" report c --json |
        python3 -c 'import json, sys; m = {m["name"]: m["entries"] for m in json.load(sys.stdin)["tools"]["expr"]["maps"]}; assert m["@g"][0]["value"] == 3000 and m["@c"][0]["key"] == ["ld.const.f32"] and m["@c"][0]["value"] == 3000, m' ||
        fail "$device: constants"
    # a kernel that runs: what it recorded so far, and a switch that works at once
    python3 - $device > why 2>&1 <<'P' || { fail "$device: while it runs"; cat why; }
import glob, json, os, shutil, subprocess, sys, time
margay = os.environ['MARGAY']
shutil.rmtree('q', ignore_errors=True)
p = subprocess.Popen([margay, 'run', '--device', sys.argv[1], '-q', '-o', 'q', '-t', 'events,records=64', '--', './events', 'wait'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
def running():
    r = subprocess.run([margay, 'report', 'q', '--json'], capture_output=True, text=True)
    return r.returncode == 0 and json.loads(r.stdout)['tools'].get('events', {}).get('running')
def wait_for(what):
    end, last = time.time() + 20, None
    while time.time() < end:
        last = running()
        if last and what(last): return last
        time.sleep(0.1)
    raise AssertionError(last)
def switch(on):
    subprocess.run([margay, 'ctl', glob.glob('q/ctl.*')[0].split('.')[-1], 'tool', 'events', on], check=True, capture_output=True)
try:
    assert p.stdout.readline() == 'runs\n'
    first = wait_for(lambda r: r['lost'] > 100)
    assert (first['kernel'], first['on'], first['status'], first['records'], first['events'][0]['event']) == ('_Z4spinPVi', True, 'full', 64, 'turn'), first
    turn = first['events'][0] # two warps have shared the room somehow: each may have begun a turn whose end found none
    assert turn['threads'] == 32 * turn['groups'] and turn['open'] in (0, 32, 64) and turn['stray_ends'] == 0 and 2 * turn['groups'] - turn['open'] // 32 == 64, first
    switch('off')
    off = wait_for(lambda r: not r['on'])
    time.sleep(0.5)
    then = running()
    assert then['lost'] - off['lost'] <= 2, (off, then)
    switch('on')
    wait_for(lambda r: r['on'] and r['lost'] > then['lost'] + 100)
    out, _ = p.communicate('\n', timeout=300)
    assert p.returncode == 0 and out == '0.0\n', (p.returncode, out)
    end = json.loads(subprocess.run([margay, 'report', 'q', '--json'], capture_output=True, text=True).stdout)['tools']['events']
    assert end['running'] is None and end['records'] == 64 and end['lost'] > then['lost'], (end['records'], end['lost'])
finally:
    p.kill()
P
done
unset LD_LIBRARY_PATH
exit $failed
