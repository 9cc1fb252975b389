#!/bin/sh
# margay capture and replay: programs' results are the recorded ones on every device, counts are those of the recorded
# run, whatever is wrong with a capture is named.
# long
set -u
failed=0
export XDG_CACHE_HOME=$PWD/cache
devices="emu cpu"
[ -e "$B/lib/margay/libmargay-cpu.so" ] || devices=emu
third=$(($$ % 3)) seeds="$((third + 1)) $((third + 4)) $((third + 7)) $((third + 10))" # four of twelve a run
[ "${VARIANT:-release}" = release ] || devices=emu # the CPU device under sanitizers: tests/inject/scenarios.sh, tools.sh, records.sh
fail() { echo "FAIL $*"; failed=1; }
replayed() { # NAME DIR ARGS...: it gives the recorded results
    name=$1 dir=$2
    shift 2
    rm -rf again
    "$MARGAY" replay -o again "$@" "$dir" > out 2> err && grep 'launches replayed' err | grep -qv ' 0 of\| 0 checks' && echo "ok   $name" || { fail "$name"; cat out err; }
}
refused() { # NAME DIR STATUS TEXT ARGS...: one line says why
    name=$1 dir=$2 status=$3 text=$4
    shift 4
    rm -rf again
    timeout 300 "$MARGAY" replay -q -o again --device emu "$@" "$dir" > out 2> err
    rc=$?
    [ $rc = "$status" ] && grep -q "$text" err && [ "$(grep -vc 'launches replayed' err)" = 1 ] && echo "ok   $name" || { fail "$name: status $rc"; cat out err; }
}

cat > add.ptx <<'P'
.version 7.0
.target sm_70
.address_size 64
.visible .global .align 8 .u32 table;
.visible .entry add(.param .u64 p, .param .u32 k, .param .u32 n)
{
    .reg .pred %q;
    .reg .b32 %r<7>;
    .reg .b64 %d<4>;
    ld.param.u64 %d1, [p];
    ld.param.u32 %r5, [k];
    ld.param.u32 %r6, [n];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.u32 %r1, %r1, %r2, %r3;
    setp.ge.u32 %q, %r1, %r6;
    @%q bra done;
    mul.wide.u32 %d2, %r1, 4;
    add.s64 %d3, %d1, %d2;
    ld.global.u32 %r4, [%d3];
    add.u32 %r4, %r4, %r5;
    st.global.u32 [%d3], %r4;
done:
    ret;
}
.visible .entry chase(.param .u64 cell, .param .u64 out)
{
    .reg .b32 %r<2>;
    .reg .b64 %d<4>;
    ld.param.u64 %d1, [cell];
    ld.param.u64 %d2, [out];
    ld.global.u64 %d3, [%d1];
    ld.global.u32 %r1, [%d3];
    st.global.u32 [%d2], %r1;
    ret;
}
P
gcc -O1 -Wall -Werror -I"$ROOT/src" -o program "$ROOT/tests/inject/capture.c" -L"$B/lib/margay/driver" -lcuda || exit 1

# ---- a program with everything, on each device and across
for d in $devices; do
    "$MARGAY" capture -q --check all --device "$d" -o "all-$d" -- ./program add.ptx > "out-$d" 2>&1 || { fail "the program, captured on $d"; cat "out-$d"; }
    grep -q WRONG "out-$d" && { fail "its results on $d"; cat "out-$d"; }
done
LD_LIBRARY_PATH=$B/lib/margay/driver "$MARGAY" run -q --device emu -o plain -- ./program add.ptx > out-plain 2>&1
for d in $devices; do
    cmp "out-$d" out-plain || fail "output on $d"
    for on in $devices; do
        replayed "everything, $d to $on" "all-$d" --device "$on" -t blocks
        for dir in plain again; do
            "$MARGAY" report "$dir" --json > $dir.json
        done
        python3 - <<'P' || fail "counts, $d to $on"
import json
a, b = (json.load(open(f)) for f in ('plain.json', 'again.json'))
def counts(r):
    return {k['name']: (k['launches'], k['threads'], k['thread_instructions'], [(x['label'], x['thread_entries']) for x in k['blocks']]) for k in r['kernels']}
assert counts(a) == counts(b), (counts(a), counts(b))
assert b['coverage']['instrumented'] == b['coverage']['launches'] == 22, b['coverage']
P
    done
done

# ---- on a GPU (here a stand-in) device memory is placed where other processes have it free, too
stand_in=$B/test/driver
[ -z "${REAL_GPU:-}" ] || stand_in=
gpu() { LD_LIBRARY_PATH=$stand_in "$MARGAY" "$@"; }
gpu capture -q --check all --device nvidia -o all-nvidia -- ./program add.ptx device > out 2>&1 && ! grep WRONG out || { fail 'the program, captured on a GPU'; cat out; }
"$MARGAY" replay --list all-nvidia > list
[ "$(grep -c '^alloc 0x300' list)" = 12 ] && [ "$(grep -c '^alloc' list)" = 12 ] || { fail 'where its memory is'; grep '^alloc' list; }
for on in $devices nvidia; do
    LD_LIBRARY_PATH=$stand_in
    export LD_LIBRARY_PATH
    replayed "from a GPU to $on" all-nvidia --device $on -t blocks
    grep -q '16 of 16 launches' err || fail 'number of launches'
    replayed "from emu to $on" all-emu --device $on
    unset LD_LIBRARY_PATH
done

gcc -O1 -Wall -Werror -I"$ROOT/src" -o edges "$ROOT/tests/inject/edges.c" -L"$B/lib/margay/driver" -lcuda || exit 1
gpu capture -q --check all --device nvidia -o edges-cap -- ./edges add.ptx > out 2>&1 && grep -q 'ok$' out || { fail 'what a GPU lets pass'; cat out; }
for on in $devices nvidia; do
    LD_LIBRARY_PATH=$stand_in
    export LD_LIBRARY_PATH
    replayed "kernels that reach beyond their buffer, on $on" edges-cap --device $on
    unset LD_LIBRARY_PATH
done

# ---- launches alone, from the memory that they found; and as C programs
"$MARGAY" replay -q --extract alone --launches 3,11-13,20- --device emu all-emu > out 2> err || { fail 'taking launches out'; cat err; }
[ "$("$MARGAY" replay --list alone | sed -n 's/^origin //p' | tr '\n' ,)" = '0 3,1 11,2 12,3 13,4 20,5 21,' ] || fail 'which launches were taken out'
for on in $devices; do
    replayed "launches alone on $on" alone --device "$on"
    grep -q '6 of 6 launches' err || fail 'number of launches alone'
done
run_it() { "$MARGAY" run -q -t none --device emu -o ran -- ./it; }
for n in 4 12 21; do # one with memory of the host, one that follows an address of a variable, one of a graph
    rm -rf exported
    "$MARGAY" replay -q --export exported --launches $n --device emu all-emu > out 2> err &&
        (cd exported && gcc -O1 -Wall -Werror -o it replay.c -L"$B/lib/margay/driver" -lcuda 2> ld; run_it > ../out) &&
        grep -q '^1 launch, the recorded results' out && echo "ok   launch $n as a program" || { fail "launch $n as a program"; cat out err; }
done
printf x | dd of=exported/data.bin bs=1 seek=$(($(sed -n 's/.*write_at(0x[0-9a-f]*, data + \([0-9]*\), 4000.*/\1/p' exported/replay.c | head -1))) conv=notrunc 2> dd
(cd exported && run_it > ../out)
[ $? = 1 ] && grep -q '^launch 0 left other bytes than recorded' out || { fail 'a program with other data'; cat out; }
"$MARGAY" replay -q --extract alone2 --launches 99 --device emu all-emu > out 2> err
[ $? = 3 ] && grep -q 'launches [0-9,]*: the capture has 22 launches, numbered from 0' err || { fail 'no launch selected'; cat err; }
"$MARGAY" replay -q --extract alone2 --launches x --device emu all-emu > out 2> err
[ $? = 2 ] || { fail 'launches that are none'; cat err; }

# ---- bundled programs: without their binaries and inputs
for e in saxpy histogram stencil; do
    [ -x "$EX/$e" ] || continue
    cp "$EX/$e" here
    "$MARGAY" capture -q --device emu -o "ex-$e" -- ./here > out 2>&1 || { fail "$e"; cat out; }
    rm here
    replayed "$e" "ex-$e" --device emu
done
# ---- several contexts, of one device and of two; on a GPU on those that it has
gcc -O1 -Wall -Werror -I"$ROOT/src" -o contexts "$ROOT/tests/inject/contexts.c" -L"$B/lib/margay/driver" -lcuda || exit 1
for d in $devices nvidia; do
    [ $d != nvidia ] || LD_LIBRARY_PATH=$stand_in
    export LD_LIBRARY_PATH
    for n in 1 2; do
        [ $d$n != nvidia2 ] || continue
        for check in all end; do
            rm -rf ctx ctx-alone
            "$MARGAY" capture -q --check $check --device $d --devices $n -o ctx -- ./contexts > out 2>&1 && [ "$(grep -c ok out)" = 8 ] || { fail "contexts of $n devices on $d"; cat out; }
            replayed "contexts of $n devices on $d, compared: $check" ctx --device $d -t blocks
            grep -q '18 of 18 launches' err || fail 'launches of contexts'
        done
        "$MARGAY" replay -q --extract ctx-alone --launches 0-4,13,15- --device $d ctx > out 2> err || { fail 'taking launches of contexts out'; cat err; }
        replayed "launches of contexts of $n devices on $d alone" ctx-alone --device $d
        [ $n = 1 ] || { [ "$("$MARGAY" replay --list ctx | sed -n 's/^context . //p' | sort -u | tr '\n' ' ')" = '0 1 ' ] || fail 'devices of contexts'; }
    done
    rm -rf ctx # handles are given again or not, as it happens
    "$MARGAY" capture -q --device $d -o ctx -- ./contexts again > out 2>&1 && [ "$(grep -c ok out)" = 27 ] || { fail "contexts that come and go on $d"; cat out; }
    replayed "contexts that come and go on $d" ctx --device $d
    grep -q '54 of 54 launches' err || fail 'launches of contexts that come and go'
    [ $d != nvidia ] || unset LD_LIBRARY_PATH
done
"$MARGAY" capture -q --device emu --devices 2 -o two -- "$EX/interpolate" devices 1 1 256 512 > out 2>&1 && grep -q PASSED out || { fail "two devices"; cat out; }
replayed "two devices" two --device emu
refused 'two devices on one' two 4 'the program used 2 devices, and here is 1' --devices 1
"$MARGAY" replay -q --export exported2 two > out 2> err
[ $? = 3 ] && grep -q 'launches in several contexts' err || { fail 'two devices as a program'; cat err; }

core="$ROOT/src/capture/reader.c $ROOT/src/capture/writer.c $ROOT/src/capture/format.c"
for f in arena buf crc diag io map vec hash env; do core="$core $ROOT/src/base/$f.c"; done
gcc -O1 -std=c17 -D_GNU_SOURCE -I"$ROOT/src" -o recapture "$ROOT/tests/inject/recapture.c" $core -l:libzstd.a -lpthread || exit 1
# ---- what the host does beside the device's work
gcc -O1 -Wall -Werror -I"$ROOT/src" -o late "$ROOT/tests/inject/late.c" -L"$B/lib/margay/driver" -lcuda || exit 1
for part in fill stores freed values unmapped gone; do
    for d in $devices; do
        for check in $([ "$third" = 0 ] && echo all || echo end); do # one of them a run
            rm -rf late-cap
            "$MARGAY" capture -q --check $check --device "$d" -o late-cap -- ./late add.ptx $part > out 2>&1 && ! grep -q WRONG out || { fail "late $part on $d"; cat out; }
            replayed "late $part on $d, compared: $check" late-cap --device "$d"
        done
    done
done
for d in $devices; do
    rm -rf late-cap
    "$MARGAY" capture -q --device "$d" -o late-cap -- ./late add.ptx threads > out 2>&1 && [ "$(grep -c ok out)" = 8 ] || { fail "eight threads on $d"; cat out; }
    replayed "eight threads on $d" late-cap --device "$d"
    grep -q '80 of 80 launches' err || fail "launches of eight threads on $d"
    rm -rf late-cap
    "$MARGAY" capture -q --device "$d" -o late-cap -- ./late add.ptx beside > out 2>&1 && [ "$(grep -c ok out)" = 2 ] || { fail "stores of another thread on $d"; cat out; }
    "$MARGAY" replay --device "$d" -t none -o rep late-cap > out 2> err && grep -q 'bytes were taken from the capture: .* another thread .*; first beside launch' err ||
        { fail "replaying stores of another thread on $d"; cat err; }
    rm -rf changed rep && mkdir changed && ./recapture late-cap/capture-*.mgc changed/capture-1.mgc left || fail "changing what a launch left: $?"
    rc=0; "$MARGAY" replay --differences --device "$d" -t none -o rep changed > out 2> err || rc=$? # the kernel wrote that byte: it is compared
    [ "$rc $(grep -c '^differs [0-9]* 0x' out)" = '1 1' ] || { fail "a byte that a launch left, changed: $rc"; cat out err; }
    rm -rf late-cap rep
    "$MARGAY" capture -q --device "$d" -o late-cap -- ./late add.ptx streams > out 2>&1 && [ "$(grep -c ok out)" = 64 ] || { fail "many streams on $d"; cat out; }
    replayed "many streams on $d" late-cap --device "$d"
    grep -q '1100 of 1100 launches' err || fail "launches of many streams on $d"
    rm -rf late-cap late-alone
    "$MARGAY" capture -q --device "$d" -o late-cap -- ./late add.ptx variable > out 2>&1 && grep -q ok out || { fail "a variable on $d"; cat out; }
    "$MARGAY" replay --list late-cap | grep -q '^attribute 1 11 1$' || fail "a cluster's width as an attribute"
    "$MARGAY" replay -q --extract late-alone --launches 0 --device "$d" late-cap > out 2> err || { fail "taking out a launch that writes a variable"; cat err; }
    replayed "a launch that leaves a variable, alone on $d" late-alone --device "$d"
    rm -rf late-cap
    "$MARGAY" capture -q --device "$d" -o late-cap -- ./late add.ptx mapped > out 2>&1 && [ "$(grep -c ok out)" = 2 ] || { fail "mapped memory on $d"; cat out; }
    [ "$("$MARGAY" replay --list late-cap | grep -c '^alloc 0x38[0-9a-f]*0 2097152')" = 2 ] || fail "mapped memory lies at addresses that are free elsewhere"
    replayed "mapped memory on $d" late-cap --device "$d"
    rm -rf late-cap
    "$MARGAY" capture -q --device "$d" -o late-cap -- ./late add.ptx function > out 2>&1 && [ "$(grep -c ok out)" = 1 ] || { fail "a function's address on $d"; cat out; }
    for on in $devices; do replayed "a function's address, $d to $on" late-cap --device "$on" -t blocks; done
done
LD_LIBRARY_PATH=$stand_in
export LD_LIBRARY_PATH
for part in freed values variable streams threads gone; do
    rm -rf late-cap
    "$MARGAY" capture -q --device nvidia -o late-cap -- ./late add.ptx $part > out 2>&1 && ! grep -q WRONG out && grep -q ok out || { fail "late $part on a GPU"; cat out; }
    replayed "late $part on a GPU" late-cap --device nvidia
done
unset LD_LIBRARY_PATH
if (ulimit -f 1 && trap '' XFSZ && head -c 100000 /dev/zero > limited) 2> /dev/null; then
    echo "skip a capture that may not grow: this system lets files grow beyond ulimit -f"
else
    (ulimit -f 1200 && "$MARGAY" capture -q --device emu -o late-full -- ./late add.ptx big > out 2> err) && grep -q 'a megabyte: ok' out && grep -q 'the capture is not whole: File too large' err ||
        { fail 'a capture that may not grow'; cat out err; }
    refused 'a capture that could not grow' late-full 3 'not a whole capture: it ends within a frame'
fi
"$MARGAY" capture -q --device emu -o late-graph -- ./late add.ptx graph > out 2>&1 && ! grep -q WRONG out || { fail 'a host function in a graph'; cat out; }
refused 'a host function in a graph' late-graph 3 'launch 0 (add) and what follows cannot be replayed: kernels behind a host function'
"$MARGAY" capture -q --device emu -o late-textures -- ./late add.ptx textures > out 2>&1 && ! grep -q WRONG out || { fail 'textures without memory'; cat out; }
for which in 0 1 0-; do # the second launch's texture has the handle of the first one's
    rm -rf late-alone
    "$MARGAY" replay -q --extract late-alone --launches $which --device emu late-textures > out 2> err || { fail 'taking a launch out beside textures without memory'; cat err; }
    for d in $devices; do replayed "launch $which alone beside textures without memory on $d" late-alone --device "$d"; done
done
rm -rf changed && mkdir changed
./recapture late-cap/capture-*.mgc changed/capture-1.mgc checks || fail 'taking checks away'
refused 'a capture without checks' changed 5 'nothing was compared'
cat > nothing.c <<'C'
extern int cuInit(unsigned), cuDevicePrimaryCtxRetain(void **, int);
int main(void)
{
    void *c;
    return cuInit(0) || cuDevicePrimaryCtxRetain(&c, 0);
}
C
gcc nothing.c -o nothing -L"$B/lib/margay/driver" -lcuda && "$MARGAY" capture -q --device emu -o nothing-cap -- ./nothing || fail 'capturing a program without launches'
refused 'a capture without launches' nothing-cap 5 'nothing was compared'
"$MARGAY" replay --export nothing-c nothing-cap 2> err && (cd nothing-c && gcc -O1 -Wall -Werror -o it replay.c -L"$B/lib/margay/driver" -lcuda && "$MARGAY" run -q -t none --device emu -o ran -- ./it) > out
[ $? = 5 ] && grep -q 'nothing was compared' out && echo 'ok   a program without launches compares nothing' || { fail 'a program of a capture without launches'; cat out err; }

# ---- what is wrong is named
change() { # WHAT
    rm -rf changed && mkdir changed && ./recapture all-emu/capture-*.mgc changed/capture-1.mgc "$1" || fail "changing $1: $?"
}
change content
refused 'other content' changed 1 'launch [0-9]* (add).* left other bytes than recorded'
"$MARGAY" replay --differences -o again --device emu changed > out 2> err
python3 - <<'P' || fail "--differences: $(cat err)"
import re
lines = [l.split()[1:] for l in open('out') if l.startswith('differs ')]
agree, of = map(int, re.search(r'(\d+) of (\d+) checks', open('err').read()).groups())
launch, size, at = re.search(r'launch (\d+) .*: (\d+) bytes at (0x\w+)', open('err').read()).groups()
assert len(lines) == of - agree > 1 and lines[0] == [str(int(launch) + 1), at, size], (lines, agree, of)
P
"$MARGAY" replay --differences -o again --device emu all-emu 2> err | grep '^differs' && fail '--differences where there are none'
change arguments
refused 'other arguments' changed 1 'launch 0 (add).* left other bytes than recorded'
change launch
refused 'a launch less' changed 1 'left other bytes than recorded'
change reason
refused 'a launch that cannot be replayed' changed 3 'launch 0 (add) and what follows cannot be replayed: it is a test'
# ---- numbers that no recorded operation has: one line, with and without a device
while read -r what status text; do
    change "$what"
    refused "$what" changed "$status" "$text"
    [ "$status" = 3 ] || continue
    rm -rf exported
    "$MARGAY" replay --export exported changed > out 2> err
    [ $? = 3 ] && grep -q "$text" err && [ ! -e exported/replay.c ] || { fail "a program of $what"; cat err; }
done << 'X'
alloc.0=18446744073709547520 3 an allocation lies where no memory can be
alloc.1=9223372036854775807 3 an allocation lies where no memory can be
launch.2=4294967297 3 a launch is larger than any can be
launch.5=4294967360 3 a launch is larger than any can be
launch.11=4294967296 3 a launch is larger than any can be
array.1=9223372036854775808 3 an array is larger than any can be
array.4=4294967299 3 an array is larger than any can be
array.1=1048576,2=1048576,3=1048576 4 making an array: CUDA_ERROR_INVALID_VALUE
load.3=3,4=268435456 3 a module is loaded with an option that no capture has
load.3=7 3 a module is loaded with an option that no capture has
copy3d.11=9223372036854775808 3 a copy is malformed
copy3d.17=9223372036854775807 3 a copy is malformed
copy3d.0=3 3 a copy is malformed
set.2=4611686018427387904 3 a memset is malformed
set.4=8 3 a memset is malformed
copy.2=9223372036854775807 3 it names memory where none can be
check.1=18446744073709551614 3 it names memory where none can be
variable.2=9223372036854775808 3 it names memory where none can be
X
rm -rf changed && mkdir changed
size=$(stat -c %s all-emu/capture-*.mgc)
for at in 0 9 20 40 $((size / 3)) $((size / 2)) $((size - 40)) $((size - 1)); do
    python3 - all-emu/capture-*.mgc changed/capture-1.mgc "$at" <<'P'
import sys
b = bytearray(open(sys.argv[1], 'rb').read())
b[int(sys.argv[3])] ^= 4
open(sys.argv[2], 'wb').write(b)
P
    refused "a flipped bit at $at" changed 3 'changed/capture-1.mgc: not a whole capture: '
done
for n in 0 10 100 $((size / 2)) $((size - 1)); do
    head -c "$n" all-emu/capture-*.mgc > changed/capture-1.mgc
    refused "torn at $n" changed 3 'changed/capture-1.mgc: not a whole capture: '
done
# frames that changed places, each whole
python3 - all-emu/capture-*.mgc changed/capture-1.mgc <<'P' || exit 1
import struct, sys
data, frames, at = open(sys.argv[1], 'rb').read(), [], 16
while at < len(data):
    packed = struct.unpack_from('<6I', data, at)[3]
    frames.append(data[at:at + 24 + packed])
    at += 24 + packed
assert len(frames) > 2, len(frames)
frames[0], frames[1] = frames[1], frames[0]
open(sys.argv[2], 'wb').write(data[:16] + b''.join(frames))
P
refused 'frames that changed places' changed 3 'or the frame is not in its place'
for seed in $seeds; do # whole, but what it says makes no sense: an error or other results, never a crash
    rm -rf changed again && mkdir changed
    ./recapture all-emu/capture-*.mgc changed/capture-1.mgc "random$seed" || fail "random $seed: $?"
    timeout 300 "$MARGAY" replay -q -o again --device emu changed > out 2> err
    rc=$?
    case $rc in 0 | 1 | 3 | 4) ;; *) fail "random $seed: status $rc"; cat err ;; esac
    [ $rc = 0 ] || [ "$(wc -l < err)" -le 3 ] || { fail "random $seed: too much said"; cat err; }
done
echo "ok   captures without sense: $seeds"
mkdir none
refused 'no capture' none 3 'none holds no capture'
"$MARGAY" capture -q > out 2> err
[ $? = 120 ] || fail 'capture without a program'
"$MARGAY" replay > out 2> err
[ $? = 2 ] || fail 'replay without a directory'

# ---- memory that kernels allocate lies where it did, on every device without a GPU: a list made by some launches, walked by another
cat > heap.ptx <<'P'
.version 7.0
.target sm_70
.address_size 64
.extern .func (.param .b64 r) malloc(.param .b64 n);
.extern .func free(.param .b64 p);
.visible .entry push(.param .u64 head, .param .u64 bytes)
{
    .reg .b64 %d<6>;
    ld.param.u64 %d1, [head];
    ld.param.u64 %d2, [bytes];
    {
    .param .b64 a;
    .param .b64 b;
    st.param.b64 [a], %d2;
    call (b), malloc, (a);
    ld.param.b64 %d3, [b];
    }
    ld.global.u64 %d4, [%d1];
    st.u64 [%d3], %d4;
    st.u64 [%d3+8], %d2;
    st.global.u64 [%d1], %d3;
    ret;
}
.visible .entry walk(.param .u64 head, .param .u64 sum)
{
    .reg .pred %q;
    .reg .b64 %d<6>;
    ld.param.u64 %d1, [head];
    ld.param.u64 %d2, [sum];
    ld.global.u64 %d1, [%d1];
    mov.u64 %d3, 0;
next:
    setp.eq.u64 %q, %d1, 0;
    @%q bra done;
    ld.u64 %d4, [%d1+8];
    add.u64 %d3, %d3, %d4;
    ld.u64 %d1, [%d1];
    bra next;
done:
    st.global.u64 [%d2], %d3;
    ret;
}
.visible .entry pop(.param .u64 head)
{
    .reg .b64 %d<6>;
    ld.param.u64 %d1, [head];
    ld.global.u64 %d2, [%d1];
    ld.u64 %d3, [%d2];
    st.global.u64 [%d1], %d3;
    {
    .param .b64 a;
    st.param.b64 [a], %d2;
    call free, (a);
    }
    ret;
}
P
cat > heap.c <<'C'
typedef unsigned long long u64;
int cuInit(unsigned), cuDeviceGet(int *, int), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *), cuModuleLoad(void **, const char *);
int cuModuleGetFunction(void **, void *, const char *), cuMemAlloc_v2(u64 *, u64), cuMemsetD8_v2(u64, unsigned char, u64), cuMemcpyDtoH_v2(void *, u64, u64);
int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
static int launch(void *f, u64 a, u64 b, u64 c)
{
    void *two[] = {&a, &b}, *one[] = {&a};
    return cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, 0, c ? two : one, 0);
}
int main(void)
{
    void *c, *m, *push, *walk, *pop;
    u64 p, more, sum = 0;
    int d;
    if (cuInit(0) || cuDeviceGet(&d, 0) || cuDevicePrimaryCtxRetain(&c, d) || cuCtxSetCurrent(c) || cuModuleLoad(&m, "heap.ptx") ||
        cuModuleGetFunction(&push, m, "push") || cuModuleGetFunction(&walk, m, "walk") || cuModuleGetFunction(&pop, m, "pop") ||
        cuMemAlloc_v2(&p, 16) || cuMemsetD8_v2(p, 0, 16))
        return 1;
    for (u64 n = 1; n <= 100; n++) /* blocks of 16, 32, .. 1600 bytes; each third is freed */
        if (launch(push, p, 16 * n, 2) || (n % 3 == 0 && launch(pop, p, 0, 0)) || (n == 50 && cuMemAlloc_v2(&more, 1 << 20)))
            return 2;
    if (launch(walk, p, p + 8, 2) || cuMemcpyDtoH_v2(&sum, p + 8, 8)) return 3;
    return sum != 16 * (5050 - 3 * 33 * 34 / 2);
}
C
gcc -o heap heap.c -L"$B/lib/margay/driver" -lcuda || exit 1
for d in $devices; do
    "$MARGAY" capture -q --check all --device $d -o heap-$d -- ./heap > out 2>&1 || { fail "heap on $d"; cat out; }
    for on in $devices; do replayed "memory of kernels, captured on $d, replayed on $on" heap-$d --device $on; done
done

# ---- a replay waits where the program did: in the list are the launches before each wait, once however often it waits
cat > waits.c <<'C'
#include <stdlib.h>
typedef unsigned long long u64;
int cuInit(unsigned), cuDeviceGet(int *, int), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *), cuModuleLoad(void **, const char *);
int cuModuleGetFunction(void **, void *, const char *), cuMemAlloc_v2(u64 *, u64), cuMemsetD8_v2(u64, unsigned char, u64), cuMemcpyDtoH_v2(void *, u64, u64);
int cuCtxSynchronize(void), cuStreamSynchronize(void *);
int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
int main(int argc, char **argv) /* behind each launch a digit: waits of the context, from 4 on of the stream, 9: a copy */
{
    void *c, *m, *add;
    u64 p;
    unsigned got, one = 1;
    void *args[] = {&p, &one, &one};
    int d;
    if (argc < 2 || cuInit(0) || cuDeviceGet(&d, 0) || cuDevicePrimaryCtxRetain(&c, d) || cuCtxSetCurrent(c) || cuModuleLoad(&m, "add.ptx") ||
        cuModuleGetFunction(&add, m, "add") || cuMemAlloc_v2(&p, 4) || cuMemsetD8_v2(p, 0, 4))
        return 1;
    for (const char *w = argv[1]; *w; w++) {
        if (cuLaunchKernel(add, 1, 1, 1, 32, 1, 1, 0, 0, args, 0)) return 2;
        for (int k = 0; k < (*w - 48) % 4; k++)
            if (*w >= '4' ? cuStreamSynchronize(0) : cuCtxSynchronize()) return 3;
        if (*w == '9' && cuMemcpyDtoH_v2(&got, p, 4)) return 4;
    }
    return 0;
}
C
gcc -O1 -o waits waits.c -L"$B/lib/margay/driver" -lcuda || exit 1
digits=$(python3 -c "import random; print('09' + ''.join(random.choice('0123569') for _ in range(40)))")
for d in $devices; do
    rm -rf waits-cap
    "$MARGAY" capture -q --device $d -o waits-cap -- ./waits $digits > out 2>&1 || { fail "a program that waits on $d"; cat out; }
    "$MARGAY" replay --list waits-cap | sed -n 's/^wait //p' > list
    python3 -c "import sys; print(*[i + 1 for i, c in enumerate(sys.argv[1]) if c in '123569'], sep='\n')" $digits | cmp - list && echo "ok   waits on $d" || { fail "waits on $d: $digits"; cat list; }
    replayed "a program that waits, $digits, on $d" waits-cap --device $d
done

# ---- the benchmark that captures and replays a list of programs
printf 'saxpy\t-\t%s 1000\t-\nnone\t-\t/nowhere\t-\n' "$EX/saxpy" > list.tsv
"$ROOT/bench/replay/run" record --margay "$MARGAY" --device emu --costs --programs list.tsv --out bench > out 2>&1 &&
    "$ROOT/bench/replay/run" table --out bench --least 1 > table && grep -q '^| 1 | the recorded results |' table && grep -q '^Launches alone: 1 of 1, of 1 of 1 programs' table &&
    ! "$ROOT/bench/replay/run" table --out bench --least 2 > table && echo "ok   bench/replay" || { fail bench/replay; cat out table; }
"$ROOT/bench/replay/run" times --margay "$MARGAY" --device emu --programs list.tsv --out bench-times > table 2>&1 &&
    grep -q '^| saxpy | 1 | [0-9.]* | [0-9.]* | [0-9.]* | - | [0-9.]* | [0-9.]* | [0-9.]* | [01]\.[0-9]* |$' table && grep -q 'of 1 programs within noise' table &&
    echo "ok   bench/replay times" || { fail 'bench/replay times'; cat table; }
python3 - "$ROOT/bench/replay/run" > out 2>&1 <<'P' && echo "ok   bench/replay times: ratios" || { fail 'bench/replay times: ratios'; cat out; }
import math, sys
m = {'__file__': sys.argv[1]}
exec(open(sys.argv[1]).read().rsplit('\nmain()', 1)[0], m)
one = lambda *ns: m['summary']([('k', n) for n in ns], range(len(ns)))
runs = {'original': [one(80, 10, 10)] * 3, 'again': [one(40, 20, 20)] * 3, 'in place': [one(8000, 20, 20)] * 3}
w = m['times_row']({'runs': runs})
close = lambda a, b: abs(math.exp(a) - b) < 1e-9
assert close(w['noise'], 2 ** (1 / 3)) and close(w['first'], 8000 / 3200 ** .5) and close(w['later'], 2 ** .5), w
assert close(w['total noise'], .8) and close(w['total'], 8040 / 8000 ** .5) and w['alone'] is None, w
assert w['chance'] == 1 / 84, w  # three of nine: no other way parts them as far
assert m['chance']([1, 2], [1, 2]) == 1
assert m['summary']([('a', 5), ('b', 7), ('a', 9)], [0, 2])['later'] == math.log(9)
P

# ---- a child that goes on without exec writes nothing into its parent's capture
cat > forks.c <<'C'
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
int cuInit(unsigned), cuDeviceGet(int *, int), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *);
int cuMemAlloc_v2(unsigned long long *, size_t), cuMemFree_v2(unsigned long long);
int main(void)
{
    static unsigned long long p[150000];
    void *c;
    int d;
    if (cuInit(0) || cuDeviceGet(&d, 0) || cuDevicePrimaryCtxRetain(&c, d) || cuCtxSetCurrent(c))
        return 1;
    for (int k = 0; k < 150000; k++)
        if (cuMemAlloc_v2(&p[k], 16))
            return 1;
    pid_t child = fork();
    if (!child) {
        for (int k = 0; k < 150000; k++) /* more than the writer's buffer holds */
            cuMemFree_v2(p[k]);
        return 0;
    }
    waitpid(child, NULL, 0);
    return cuMemFree_v2(p[0]);
}
C
gcc -O1 -o forks forks.c -L"$B/lib/margay/driver" -lcuda || exit 1
"$MARGAY" capture -q --device emu -o forked -- ./forks > out 2>&1 || { fail 'a program that forks'; cat out; }
"$MARGAY" replay --list forked > list 2>&1 && [ "$(grep -c '^free' list)" = 1 ] && echo "ok   a child of fork" || { fail 'a child of fork'; tail -3 list; }

# ---- one thread captures a stream again and again while others launch, wait, make and destroy arrays and surfaces
gcc -O1 -Wall -Werror -I"$ROOT/src" -o streams "$ROOT/tests/inject/capture_streams.c" -L"$B/lib/margay/driver" -lcuda -lpthread || exit 1
for d in $devices; do
    for round in 1 2 3; do
        rm -rf streams-cap
        "$MARGAY" capture -q --device "$d" -o streams-cap -- ./streams add.ptx > out 2>&1 && [ "$(grep -c ok out)" = 4 ] || { fail "stream captures of a thread on $d"; cat out; }
        "$MARGAY" replay --list streams-cap > list 2>&1
        [ "$(grep -c '^array ' list)" = 180 ] && [ "$(grep -c '^array_free ' list)" = 180 ] && [ "$(grep -c '^object_free ' list)" = 180 ] || { fail 'arrays freed while a stream is captured'; cut -d' ' -f1 list | sort | uniq -c; }
        replayed "stream captures of a thread on $d" streams-cap --device "$d"
    done
done

# ---- of several processes one launches
cat > server.c <<'C'
int cuInit(unsigned), cuDeviceGet(int *, int), cuDevicePrimaryCtxRetain(void **, int);
int main(void)
{
    void *c;
    int d;
    return cuInit(0) || cuDeviceGet(&d, 0) || cuDevicePrimaryCtxRetain(&c, d);
}
C
gcc -O1 -o server server.c -L"$B/lib/margay/driver" -lcuda || exit 1
"$MARGAY" capture -q --device emu -o served -- sh -c "./server; '$EX/saxpy'; ./server" > out 2>&1 || { fail 'several processes'; cat out; }
[ "$(ls served/*.mgc | wc -l)" = 3 ] || fail 'captures of several processes'
replayed 'the process that launches' served --device emu
"$MARGAY" capture -q --device emu -o idle -- sh -c './server; ./server' > out 2>&1
"$MARGAY" replay --device emu idle > out 2> err && fail 'two captures without launches'
grep -q 'idle holds 2 captures: --pid selects one' err || { fail 'two captures without launches'; cat err; }

# ---- a program that is killed leaves a torn capture
cat > killed.c <<'C'
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>
int cuInit(unsigned);
int main(void) { cuInit(0); syscall(SYS_kill, getpid(), SIGKILL); return 0; }
C
gcc -o killed killed.c -L"$B/lib/margay/driver" -lcuda || exit 1
"$MARGAY" capture -q --device emu -o torn -- ./killed > out 2>&1
grep -q 'torn/capture-[0-9]*.mgc is not whole: the program ended before its end was written' out || { fail 'a killed program: told'; cat out; }
refused 'a killed program' torn 3 'it ends within a frame; the program may have been killed'
exit $failed
