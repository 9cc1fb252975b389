#!/bin/sh
# Channels on a GPU: every access of saxpy, stencil and bfs arrives, once and in order, coded and as 64 bytes a lane, while
# the kernel runs much faster than its records can go to the host. KERNELS, SIZE, FORMS, OPTIONS and RAW may be set.
set -u
: "${NVCC:=$(command -v nvcc || true)}" "${MARGAY:=margay}" "${ROOT:=$(cd "$(dirname "$0")/../.." && pwd)}"
[ -n "$NVCC" ] || { echo "no nvcc"; exit 77; }
"$NVCC" -O2 -gencode arch=compute_80,code=compute_80 -o channel "$ROOT/tests/gpu/channel.cu" || exit 1
failed=0
one() { # KERNEL SIZE FORM
    native=$(./channel $1 $2)
    rm -rf p
    timeout 60 "$MARGAY" run -o p --device nvidia ${OPTIONS:-} -t accesses,form=$3${RAW:+,raw=$RAW} -- ./channel $1 $2 > out 2> err || { echo "FAIL $*: exit $?"; tail -3 err; failed=1; return; }
    "$MARGAY" report p --json > p.json
    python3 - $1 $2 $3 "$native" "$(cat out)" <<'P' || { failed=1; tail -5 err; }
import json, sys
kernel, n, form, native, took = sys.argv[1:]
r = json.load(open('p.json'))
s, c = (r['tools']['accesses'][k] for k in ('stream', 'channel'))
print(f"{kernel} {n} {form}: native {native}, with records {took}; {s['accesses']} accesses, {s['records']} records, {c['bytes']} bytes"
      f" = {c['bytes'] / s['accesses']:.2f} an access, read in {c['read_ns'] / 1e6:.2f} ms = {c['bytes'] / c['read_ns']:.2f} GB/s", flush=True)
n = int(n)
if kernel == 'saxpy':
    assert s['accesses'] == 3 * (n + 1024), s
if kernel == 'stencil':
    assert s['accesses'] == 6 * ((n - 2) ** 2 + 62 ** 2), s
assert r['coverage']['native'] == [], r['coverage']
assert s['out_of_order'] == 0 and (s['accesses'] == s['received']) == (c['dropped_records'] == 0), (s, c)
assert c['policy'] == 'drop' or (c['dropped_records'], c['lost_segments'], c['damaged_pages'], c['late_pages']) == (0, 0, 0, 0), c
assert c['bytes'] == s['bytes'], c
P
}
for kernel in ${KERNELS:-saxpy stencil bfs}; do
    case $kernel in saxpy) size=4000000 ;; stencil) size=2048 ;; *) size=1000000 ;; esac
    for form in ${FORMS:-coded lanes}; do one $kernel ${SIZE:-$size} $form; done
done
# Groups of lanes that come together in the code that writes: random kernels (ptxas once added for one of them as often as there were groups)
if [ -z "${KERNELS:-}" ]; then
    gcc -O1 -o launch "$ROOT/tests/fuzz/kernels/launch.c" -L"$B/lib/margay/driver" -lcuda || exit 1
    for seed in 702 703 704 705 100301 100302 100307 100309; do "$ROOT/tests/fuzz/kernels/generate" --small $([ $seed -gt 999 ] || echo --tables) $seed > k$seed.ptx; done
    for form in coded lanes; do
        rm -rf p
        "$MARGAY" run -q -o p --device nvidia -t accesses,form=$form -- ./launch k*.ptx > /dev/null && "$MARGAY" report p --json | python3 -c '
import json, sys
r = json.load(sys.stdin)["tools"]["accesses"]
s, c = r["stream"], r["channel"]
assert s["accesses"] == s["received"] > 10000 and not s["out_of_order"] and not c["lost_segments"], (s, c)' || { echo "FAIL random kernels, $form"; failed=1; }
    done
fi
[ $failed = 0 ] && echo ok
exit $failed
