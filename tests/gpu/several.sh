#!/bin/sh
# Several GPUs of one machine: a halo exchange by peer loads and by copies, whose counts, sums and communication are those of the
# emulator; that captured and replayed; kernels that wait for one another across GPUs, in order on the time line within what it says of
# itself; TAUcuda's table 4; molecular dynamics with a GPU for each rank; NCCL's all-reduce under tools. PROGRAMS=FOLDER: programs of
# others that use several. What a machine lacks (MPI, PyTorch) is skipped by name. Prints figures for docs/measured.md.
set -u
: "${NVCC:=$(command -v nvcc || true)}" "${MARGAY:=margay}" "${ROOT:=$(cd "$(dirname "$0")/../.." && pwd)}"
gpus=$(nvidia-smi -L 2> /dev/null | wc -l)
[ "$gpus" -ge 2 ] || { echo "needs two GPUs, there is $gpus"; exit 77; }
[ -n "$NVCC" ] || { echo "no nvcc"; exit 77; }
failed=0
fail() { echo "FAIL $*"; failed=1; tail -n 5 out err 2> /dev/null; }
here=$ROOT/tests/gpu/several
"$NVCC" -O2 -arch=sm_90 -cudart shared -o halo "$here/halo.cu" && "$NVCC" -O2 -arch=sm_90 -o order "$here/order.cu" || exit 1
echo "$gpus GPUs: $(nvidia-smi --query-gpu=name --format=csv,noheader | sort | uniq -c | tr -s ' ')"

cat > same.py <<'P'
import collections, json, sys
a, b = (json.load(open(f)) for f in sys.argv[1:3])
def counts(r):
    n = collections.Counter()
    for k in r['kernels']:
        for b, x in enumerate(k['blocks']):
            n[k['name'], b] += x['thread_entries']
    return n
c = a['coverage']
assert c['instrumented'] == c['launches'] > 0 and c['unknown'] == c['failed'] == 0, c
assert counts(a) == counts(b), [(k, v, counts(b)[k]) for k, v in counts(a).items() if counts(b)[k] != v][:4]
devices = {l['device'] for l in a['launches']}
assert len(devices) == int(sys.argv[3]), devices
print('  counts of %d launches on %d GPUs are the emulator\'s' % (c['launches'], len(devices)))
P
"$NVCC" -O2 -arch=sm_90 -cudart shared -o pool "$here/pool.cu" || exit 1
for program in "halo load 2 threads" "halo copy 2 one" pool; do
    rm -rf cap rep
    timeout 60 "$MARGAY" capture -q --device nvidia -o cap -- ./$program > out 2> err || { [ $? = 77 ] && continue; fail "$program captured"; }
    timeout 60 "$MARGAY" replay --device nvidia -o rep cap > out 2> err && grep 'launches replayed' err | grep -v ' 0 of\| 0 checks' || fail "$program replayed"
done

for way in load copy; do
    for parts in 2 4; do
        for host in one threads; do
            name="halo $way $parts $host" devices=$parts
            [ "$devices" -le "$gpus" ] || devices=$gpus
            ./halo $way $parts $host > native 2> err || { [ $? = 77 ] && cat native && continue; fail "$name natively"; continue; }
            rm -rf n e
            timeout 60 "$MARGAY" run -q -t blocks --device nvidia -o n -- ./halo $way $parts $host > out 2> err && cmp native out || fail "$name under blocks"
            timeout 60 "$MARGAY" run -q -t blocks --device emu -o e -- ./halo $way $parts $host > out 2> err && cmp native out || fail "$name on the emulator"
            "$MARGAY" report n --json > n.json && "$MARGAY" report e --json > e.json && echo "$name" && python3 same.py n.json e.json $devices || fail "$name: counts"
        done
        rm -rf n e
        timeout 60 "$MARGAY" run -q -t timeline --device nvidia -o n -- ./halo $way $parts threads > out 2> err && cmp native out || fail "$name under timeline"
        timeout 60 "$MARGAY" run -q -t trace --device nvidia -o t -- ./halo $way $parts one > out 2> err && cmp native out || fail "halo $way $parts under trace"
        timeout 60 "$MARGAY" run -q -t trace --device emu -o e -- ./halo $way $parts one > out 2> err || fail "halo $way $parts traced by the emulator"
        for d in t e; do "$MARGAY" study communication $d --json --entity thread > $d.json || fail "study communication"; done
        python3 - "halo $way $parts" <<'P' || fail "communication of halo $way $parts"
import json, sys
a, b = (json.load(open(f))['communication'] for f in ('t.json', 'e.json'))
for x in a, b:
    for n in [x['bytes']] + [s['bytes'] for s in x['streams']]: n.pop('SDV', 0), n.pop('SCV', 0)
    x.pop('streams'), x['trace'].clear()
    for l in x['launches']: l.pop('device'), l.pop('context'), l.pop('stream')
    far = [g for g in x['metrics']['stride'] if abs(g['bytes']) >= 100000]          # from buffer to buffer: where the driver put them
    x['metrics']['stride'] = [g for g in x['metrics']['stride'] if g not in far] + [sum(g['count'] for g in far)]
differ = [k for k in a if a[k] != b[k]]
for k in differ: print(*('%.600s' % {m: x[k][m] for m in x[k] if a[k][m] != b[k][m]} if isinstance(x[k], dict) else x[k] for x in (a, b)), sep='\n')
print(sys.argv[1], 'communication:', f'{differ} differ' if differ else 'as on the emulator')
sys.exit(bool(differ))
P
        rm -rf n e t
    done
done

echo "== kernels of two GPUs in turns, by events"
for ns in 5000 50000; do
    rm -rf o
    timeout 60 "$MARGAY" run -q -t timeline --device nvidia -o o -- ./order 400 $ns > out 2> err || { fail "order $ns"; continue; }
    "$MARGAY" export csv o > spans.csv
    python3 - $ns <<'P' || fail "order $ns: spans"
import csv, statistics as st, sys
rows = [(int(r['start_ns']), int(r['end_ns']), 'odd' in r['name'], int(r['uncertainty_ns'])) for r in csv.DictReader(open('spans.csv'))
        if r['kind'] == 'kernel']
a, b = ([r for r in rows if r[2] == odd] for odd in (False, True))
a.sort(), b.sort()
assert len(a) == len(b) == 400, (len(a), len(b))
gaps, beyond = [], 0
for i in range(400):
    for first, then in ((a[i], b[i]),) + (((b[i - 1], a[i]),) if i else ()):
        gap = then[0] - first[1]
        gaps.append(gap)
        beyond += gap < -(first[3] + then[3])
gaps.sort()
print('kernels of %s ns: from one GPU\'s end to the other\'s begin: least %d ns, 1 %% %d, median %d, 99 %% %d; uncertainty, median %d ns; %d of %d out of order beyond it'
      % (sys.argv[1], gaps[0], gaps[len(gaps) // 100], st.median(gaps), gaps[-len(gaps) // 100], st.median(r[3] for r in rows), beyond, len(gaps)))
sys.exit(beyond > len(gaps) // 100)
P
done

echo "== TAUcuda's table 4"
if [ -x "$B/examples/interpolate" ]; then
    timeout 200 "$ROOT/bench/timeline/run" "$B" --device nvidia --table 4 > tables.md 2> err || fail "bench/timeline"
    cat tables.md
else echo "skipped: examples/interpolate was not built"; fi

echo "== a GPU for each rank"
mpicc=$(command -v mpicc || true) mpirun=$(command -v mpirun || true)
if [ -n "$mpirun" ] && [ -e "$B/examples/md.ptx.o" ] && { [ -n "$mpicc" ] && "$mpicc" -std=c17 -O2 "$ROOT/examples/md/main.c" "$B/examples/md.ptx.o" -L"$B/lib/margay/driver" -l:libcuda.so.1 -lm -o md 2> err || { [ -x "$B/examples/md" ] && cp "$B/examples/md" md; }; }; then
    ranks=4 force="--allow-run-as-root --oversubscribe"
    mpirun $force -n $ranks ./md > native 2> err || { force= && mpirun -n $ranks ./md > native 2> err; } || fail "md natively"
    for tool in blocks timeline; do
        rm -rf n
        timeout 100 mpirun $force -n $ranks "$MARGAY" run -q -t $tool --device nvidia -o n -- ./md > out 2> err && cmp native out || fail "md under $tool"
        "$MARGAY" report n > report.txt || fail "report of md"
        [ $tool = blocks ] && "$MARGAY" report n --json > n.json
        [ $tool = timeline ] && sed -n 1,60p report.txt
    done
    rm -rf e && timeout 100 mpirun $force -n $ranks "$MARGAY" run -q -t blocks --device emu -o e -- ./md > out 2> err && "$MARGAY" report e --json > e.json &&
        python3 same.py n.json e.json $((gpus < ranks ? gpus : ranks)) || fail "counts of md"
else echo "skipped: no MPI"; fi

echo "== NCCL"
if python3 -c 'import torch, sys; sys.exit(torch.cuda.device_count() < 2)' 2> /dev/null; then
    timeout 100 python3 "$here/allreduce.py" 2> err | sort > native || fail "all-reduce natively"
    for tool in blocks timeline; do
        rm -rf n
        timeout 150 "$MARGAY" run -q -t $tool --device nvidia -o n -- python3 "$here/allreduce.py" 2> err | sort > out
        cmp native out || fail "all-reduce under $tool"
        "$MARGAY" report n 2> /dev/null | tail -n 4
    done
    cat native
else echo "skipped: PyTorch sees no two GPUs"; fi

if [ -n "${PROGRAMS:-}" ]; then
    echo "== programs that use several GPUs"
    for p in "$PROGRAMS"/*; do
        [ -x "$p" ] || continue
        name=$(basename "$p")
        (timeout 60 "$p" > native 2>&1; echo "exit $?" >> native)
        rm -rf n e
        (timeout 100 "$MARGAY" run -q -t blocks --device nvidia -o n -- "$p" > out 2> err; echo "exit $?" >> out)
        "$MARGAY" report n --json > n.json 2> /dev/null
        python3 - "$name" <<'P'
import json, re, sys
end = lambda f: open(f, errors='replace').read().splitlines()[-1:]
try:
    r = json.load(open('n.json')); c = r['coverage']
    said = '%d of %d launches instrumented on %d GPUs' % (c['instrumented'], c['launches'], len({l['device'] for l in r['launches']}))
except Exception as e: said = 'no profile: %s' % e
words = lambda f: [w for w in re.findall(r'PASS\w*|FAIL\w*|Test passed|exit \d+', open(f, errors='replace').read())]
print('%-36s natively %s, under blocks %s; %s' % (sys.argv[1], words('native')[-2:], words('out')[-2:], said))
P
        cp n.json "n-$name.json" 2> /dev/null
    done
    [ -z "${KEEP:-}" ] || cp n-*.json "$KEEP"
fi
exit $failed
