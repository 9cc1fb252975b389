#!/bin/sh
# --devices N: ordinals.c on two and four software devices natively, counted and on the time line, where launches, counts and spans
# stand under the ordinal; TAUcuda's table 4; two contexts of two devices on a GPU's machine (devices.sh); what
# CUDA_VISIBLE_DEVICES leaves; what is refused.
set -u
export XDG_CACHE_HOME=$PWD/cache
gcc -O1 -o ordinals "$ROOT/tests/inject/ordinals.c" -ldl || exit 1
devices="emu cpu"
[ -e "$B/lib/margay/libmargay-cpu.so" ] || devices=emu
for device in $devices; do
    for n in 2 4; do
        rm -rf p
        timeout 300 "$MARGAY" run -q --device $device --workers 2 --devices $n -t blocks -t timeline -o p -- ./ordinals $n > out 2> err && [ "$(cat out)" = ok ] &&
            "$MARGAY" report p --json > p.json && "$MARGAY" report p --by device --json > groups.json && "$MARGAY" export csv p > p.csv || { echo "FAIL $n devices, $device"; cat out err; exit 1; }
        python3 - $n <<'P' || { echo "FAIL counts of $n devices, $device"; exit 1; }
import collections, csv, json, sys
n, r = int(sys.argv[1]), json.load(open('p.json'))
c = r['coverage']
assert c['launches'] == c['instrumented'] and c['failed'] == c['unknown'] == 0, c
fills, meets = [5 + (d < 2) for d in range(n)], [int(d < 2) for d in range(n)]
launches = collections.Counter((l['device'], r['kernels'][l['kernel']]['name']) for l in r['launches'])
spans = list(csv.DictReader(open('p.csv')))
kernels = collections.Counter((int(s['device']), s['name']) for s in spans if s['kind'] == 'kernel')
want = collections.Counter({(d, k): v[d] for k, v in (('fill', fills), ('meet', meets), ('add', [1] * n)) for d in range(n) if v[d]})
assert launches == want, launches
assert kernels == want, kernels
groups = {r['device']: r for r in json.load(open('groups.json'))['groups']}
assert {k: r['launches'] for k, r in groups.items()} == {f'device {d}': sum(v for (x, _), v in want.items() if x == d) for d in range(n)}, groups
assert sum(r['thread_instructions'] for r in groups.values()) == sum(k['thread_instructions'] for k in r['kernels'])
entries = sum(k['blocks'][0]['thread_entries'] for k in r['kernels'] if k['name'] == 'fill')
assert entries == 64 * sum(fills), entries
# each device's peer copy from the one before it, and one of the first from the second
copies = collections.Counter(int(s['device']) for s in spans if s['name'] == 'DtoD')
assert copies == {d: 1 + (d == 0) for d in range(n)}, copies
P
    done
    rm -rf t
    "$MARGAY" run -q --device $device --devices 2 -t timeline,runtime=off -o t -- "$EX/interpolate" devices 1 1 256 512 > out 2> err && grep -q PASSED out &&
        [ "$(grep -ho '#D-[01]#S' t/tau/profile* | sort -u | tr -d '\n')" = '#D-0#S#D-1#S' ] || { echo "FAIL table 4, $device"; cat out err; ls t t/tau; exit 1; }
done
# CUDA_VISIBLE_DEVICES: with --devices as NVIDIA's driver reads it, without it of no software device
sees() { # VALUE WANT OPTIONS...
    value=$1 want=$2; shift 2
    got=$(CUDA_VISIBLE_DEVICES=$value "$MARGAY" run -q --device emu -o seen "$@" -- ./ordinals list 2> err)
    [ "$(echo $got)" = "$want" ] || { echo "FAIL CUDA_VISIBLE_DEVICES='$value': $got, not $want"; cat err; exit 1; }
}
u=GPU-6d617267-6179-2d73-6f66-7477617265
while read -r value want; do
    sees "$value" "$want" --devices 4
done <<E
0 0
2,1 2 1
0,2,-1,1 0 2
1,9,0 1
1x,2y 1 2
0,0 error 101
-1 none
4 none
none none
MIG-$u none
${u}02,${u}00 2 0
${u}03,1 3
${u}01,${u}01 error 101
GPU-6D617267-6179-2D73-6F66-747761726501 1
$u none
E
sees '' none --devices 4
sees 5 0
sees 0 0 --devices 1
sees 1 none --devices 1
CUDA_VISIBLE_DEVICES=7 "$MARGAY" run --device emu --devices 2 -o seen -- ./ordinals list > out 2> err
grep -q 'CUDA_VISIBLE_DEVICES=7 leaves none of 2 devices' err || { echo "FAIL: silent"; cat err; exit 1; }
[ "$(CUDA_VISIBLE_DEVICES=3,1 "$MARGAY" run -q --device emu --devices 4 -o seen -- ./ordinals 2)" = ok ] || { echo "FAIL: two of four"; exit 1; }
"$MARGAY" run -q --device emu -o one -- ./ordinals 1 > out 2> err
grep -q 'n is 1, not' out && { echo "FAIL: one device without --devices"; exit 1; }
for n in 0 17; do
    "$MARGAY" run -q --device emu --devices $n -o bad -- true 2> err && { echo "FAIL: --devices $n is taken"; exit 1; }
done
LD_LIBRARY_PATH=$B/test/driver "$MARGAY" run -q --device nvidia --devices 2 -o bad -- true 2> err && { echo "FAIL: --devices on a GPU is taken"; exit 1; }
grep -q -- '--devices is of cpu and emu' err || { cat err; exit 1; }
exit 0
