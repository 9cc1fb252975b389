#!/bin/sh
# Records of tools without a reader of their own: they reach DIR/trace complete, with names, places and values, on the
# emulator, the CPU device where there is one, and behind a stand-in for NVIDIA's driver; the program's output stays.
# Expected: closed forms of the bundled programs, and what the tool `accesses` tells through a reader of its own.
set -u
case ${VARIANT:-} in tsan | cover) echo "one build and a sanitizer's are enough"; exit 77 ;; asan) sanitize=-fsanitize=address,undefined ;; *) sanitize= ;; esac
failed=0
export XDG_CACHE_HOME=$PWD/cache
fail() { echo "FAIL $*"; failed=1; }
tool() { # SOURCE OUT
    gcc $sanitize -std=c17 -D_GNU_SOURCE -O1 -fPIC -fvisibility=hidden -Wall -Wextra -Werror -I"$ROOT/src" -I"$B/gen" -shared -o "$2" "$1" \
        "$B/lib/margay/libmargay-core.a" -Wl,--exclude-libs,ALL ${sanitize:--Wl,-z,defs} -lm -lpthread -ldl || exit 1
}
tool "$ROOT/examples/tools/stores.c" stores.so
tool "$ROOT/tests/inject/recorder.c" recorder.so
gcc -O1 -Wall -o launch "$ROOT/tests/fuzz/kernels/launch.c" -L"$B/lib/margay/driver" -lcuda || exit 1
run() { # WHAT DEVICE PROGRAM ARGS...
    what=$1 device=$2 program=$3
    shift 3
    rm -rf p
    timeout 300 "$MARGAY" run -q -o p --device $device "$@" -- "$B"/examples/$program > out 2> err || fail "$what: exit $?: $(tail -3 err)"
    grep -q 'PASSED' out || fail "$what: the program's output is another"
    "$MARGAY" report p --json > p.json || fail "$what: report"
}
records() { # WHAT PYTHON-ON-STDIN: of the records as JSON lines, r
    "$MARGAY" trace verify p > /dev/null || fail "$1: verify"
    "$MARGAY" trace print p --json > r.jsonl || fail "$1: print"
    { echo 'import json; r = [json.loads(l) for l in open("r.jsonl")]; p = json.load(open("p.json"))'; cat; } > check.py
    python3 check.py > why 2>&1 || { fail "$1"; tail -5 why; }
}
for device in emu $([ -e "$B/lib/margay/libmargay-cpu.so" ] && echo cpu) nvidia; do
    [ $device != nvidia ] || export LD_LIBRARY_PATH=$B/test/driver
    run "$device saxpy" $device "saxpy 65536" -t ./stores.so
    records "$device saxpy" <<'P' # y = 2.5 x + y of 2^16 elements: exact in binary
import struct
n = 1 << 16
stores = [x for x in r if x["kind"] == "stores.store"]
begins = [x for x in r if x["kind"] == "stores.begin"]
assert len(stores) + len(begins) == len(r) and len(begins) == n // 32 and all(x["fields"]["clock"] > 0 for x in begins)
assert {(x["fields"]["cta"], x["fields"]["warp"]) for x in begins} == {(c, w) for c in range(n // 256) for w in range(8)}
first = min(row[0] for x in stores for row in x["fields"]["lanes"])
seen = {}
for x in stores:
    f = x["fields"]
    assert f["kernel"] == "saxpy" and f["op"] == "st.global.f32" and f["line"] == 7 and f["file"].endswith("saxpy/kernel.cu") and f["launch"] == 0, f
    assert f["mask"] == "0xffffffff" and len(f["lanes"]) == 32
    for lane, (address, value) in enumerate(f["lanes"]):
        i = f["cta"] * 256 + f["warp"] * 32 + lane
        assert address == first + 4 * i and struct.unpack("f", struct.pack("I", value))[0] == 2.5 * (i % 1000) + i % 77
        seen[i] = 1
assert len(seen) == n
assert p["tools"]["stores"]["trace"] == {"records": len(r), "missed": 0, "lost": 0} and p["tools"]["stores"]["channel"]["dropped_records"] == 0
P
    if [ $device != nvidia ]; then # vectors, generic addresses, lanes that do not store: tests/inject/stores.ptx says what
        rm -rf p
        timeout 300 "$MARGAY" run -q -o p --device $device -t ./stores.so -- ./launch "$ROOT/tests/inject/stores.ptx" > out 2> err || fail "$device vectors: $(tail -3 err)"
        records "$device vectors" <<'P'
lanes = sorted(tuple(v) for x in r if x["kind"] == "stores.store" for v in x["fields"]["lanes"])
first, n = lanes[0][0], 4 * 64
assert lanes == [(first + 32 * i + 4 * k, 100 * i + k) for i in range(n) for k in range(7 if i & 1 else 6)], (len(lanes), lanes[:8])
P
    fi
    for program in "bfs 2048" "histogram 32768"; do
        run "$device $program" $device "$program" -t ./recorder.so -t accesses,out="$PWD/lines"
        records "$device $program" <<'P'
def of_lines():
    for l in open("lines"):
        w = l.split()
        yield int(w[0]), w[1], int(w[2]), int(w[3]), int(w[5]), tuple(tuple(int(v, 0) for v in a.split(":")) for a in w[6:])
def lanes_of(f): return [i for i in range(32) if int(f["mask"], 0) >> i & 1]
def of_records(kind, column):
    for x in r:
        f = x["fields"]
        if x["kind"] == "recorder." + kind: yield f["launch"], f["kernel"], f["cta"], f["warp"], f["ptx_line"], tuple(zip(lanes_of(f), column(f)))
want = sorted(of_lines())
assert len(want) > 1000
assert sorted(of_records("access", lambda f: f["addresses"])) == want
assert sorted(of_records("lane", lambda f: [row[0] for row in f["lanes"]])) == want
last = {}
for x in r:
    f = x["fields"]
    if x["kind"] == "recorder.lane": assert [row[1] % 32 for row in f["lanes"]] == lanes_of(f) and {row[1] // 32 for row in f["lanes"]} == {f["warp"]}
    if x["kind"] == "recorder.warp": assert (f["cta_again"], f["minus"]) == (f["cta"], -5)
    if x["kind"] == "recorder.access": assert f["width"] in (1, 4, 8), f
    for lane in lanes_of(f): # of every lane, the records come in the order of their numbers
        key = f["launch"], f["cta"], f["warp"], lane
        assert last.get(key, -1) < f["number"], (key, last.get(key), f)
        last[key] = f["number"]
assert sum(x["kind"] == "recorder.warp" for x in r) == len(want)
P
    done
done
unset LD_LIBRARY_PATH
run "dropped" emu "stencil 64 2" -t ./recorder.so --channel drop
records "dropped" <<'P'
assert len(r) > 1000
t = p["tools"]["recorder"]
assert t["trace"]["records"] == len(r) and t["trace"]["missed"] == 0 and t["channel"]["policy"] == "drop", t
P
run "one of four" emu "saxpy 65536" -t ./stores.so --channel 1/4
records "one of four" <<'P'
assert len(r) == 1 << 11 and all(x["kind"] == "stores.begin" for x in r), len(r) # the first of a warp's two records
P
tool "$ROOT/tests/inject/bounded.c" bounded.so
for device in emu $([ -e "$B/lib/margay/libmargay-cpu.so" ] && echo cpu) nvidia; do
    [ $device != nvidia ] || export LD_LIBRARY_PATH=$B/test/driver
    run "bounded, $device" $device "saxpy 65536" -t ./bounded.so
    records "bounded, $device" <<'P' # two records a warp, of 2048 warps, in room for 3008: the others are counted
assert len(r) == 3008 and p["tools"]["bounded"]["trace"] == {"records": 3008, "missed": 0, "lost": 4096 - 3008}, (len(r), p["tools"]["bounded"])
seen = set()
for x in r:
    f = x["fields"]
    at = f["cta"], f["warp"], x["kind"]
    assert at not in seen and f["clock"] > 0 and f["number"] == 0 and f["launch"] == 0 and f["mask"] == "0xffffffff", f
    seen.add(at)
    if x["kind"] == "bounded.enter": assert (f["cta3"], f["minus"], f["seven"]) == (3 * f["cta"], -9, 7), f
    else: assert x["kind"] == "bounded.store" and f["cta1"] == f["cta"] + 1 and f["op"] == "st.global.f32" and f["line"] == 7, f
P
done
unset LD_LIBRARY_PATH
[ $failed = 0 ] && echo "ok"
exit $failed
