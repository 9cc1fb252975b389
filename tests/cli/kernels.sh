#!/bin/sh
# What a user may ask of kernels on the command line, against counts and results that are known beforehand.
# clock
set -u
failed=0
bad() { echo "FAIL $*"; cat out err 2> /dev/null; failed=1; }
gcc -O1 -o ptxrun "$ROOT/tests/cli/ptxrun.c" -ldl || exit 1
cp "$ROOT/tests/cli/turns.ptx" "$ROOT/tests/cli/half.ptx" .
run="$MARGAY run --device emu"
query() { # DIR PYTHON-EXPRESSION over r
    "$MARGAY" report "$1" --json --per-launch > out.json 2> err || { bad "report $1"; return; }
    python3 -c "import json, sys; r = json.load(open('out.json')); sys.exit(not ($2))" || bad "$1: $2"
}

# mul and add: contracted as ptxas does, or not
for tool in none blocks; do
    [ "$($run -q -t $tool -o c1$tool -- ./ptxrun load=turns.ptx contract:1,1,1:1,1,1 sum)" = 'sum 864026624' ] || bad "contraction, -t $tool"
    [ "$($run -q -t $tool --no-contract -o c2$tool -- ./ptxrun load=turns.ptx contract:1,1,1:1,1,1 sum)" = 'sum 0' ] || bad "--no-contract, -t $tool"
done
# also where a tool inserts code with branches between them, or guards what lies there; nvidia: NVIDIA's code path over the emulator
devices="emu $([ -e "$B/lib/margay/libmargay-cpu.so" ] && echo cpu) nvidia"
[ "${VARIANT:-release}" = release ] || devices=emu # the CPU device under sanitizers: tests/inject/scenarios.sh, tools.sh, records.sh
for device in $devices; do
    for tool in none blocks lanes memory bounds trace clock; do
        [ "$(LD_LIBRARY_PATH="$B/test/driver" "$MARGAY" run --device $device -q -t $tool -o c3$device$tool -- ./ptxrun load=turns.ptx contract_apart:1,1,1:1,1,1 sum)" = 'sum 864026624' ] ||
            bad "contraction apart, $device, -t $tool"
        [ "$(LD_LIBRARY_PATH="$B/test/driver" "$MARGAY" run --device $device -q -t $tool -o c5$device$tool -- ./ptxrun load=turns.ptx contract_known:1,1,1:1,1,1 sum)" = 'sum 0' ] ||
            bad "a product of known numbers, $device, -t $tool"
        [ "$(LD_LIBRARY_PATH="$B/test/driver" "$MARGAY" run --device $device -q -t $tool -o c4$device$tool -- ./ptxrun load=half.ptx contract_half:1,1,1:1,1,1 sum)" = "sum $((0x711038A0))" ] ||
            bad "contraction of half precision, $device, -t $tool"
    done
done

# ptxas knows i * 0.3 in the rounds of a loop that it unrolls, and rounds it: one that is not to be unrolled says so where it begins
cat > rolled.ptx <<'P'
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p)
{
    .reg .pred %q; .reg .b32 %r<2>; .reg .f32 %f<9>; .reg .b64 %p;
    ld.param.u64 %p, [p];
    ld.global.f32 %f1, [%p];
    mov.u32 %r1, 0;
$ROUND:
    .pragma "nounroll";
    cvt.rn.f32.s32 %f2, %r1;
    mul.f32 %f3, %f2, 0f3E99999A;
    sub.f32 %f1, %f3, %f1;
    st.global.f32 [%p], %f1;
    add.s32 %r1, %r1, 1;
    setp.ne.s32 %q, %r1, 4;
    @%q bra $ROUND;
    ret;
}
P
for tool in blocks lanes memory trace clock functions hot values; do
    "$MARGAY" ptx instrument --sm 90 -t $tool rolled.ptx > out 2> err && grep -A 1 '^\$ROUND:' out | grep -q 'pragma "nounroll"' || bad "$tool: the loop may be unrolled"
done

# a call keeps a product from sums on its other side; a function in the call's place must not bring them together
cat > called.ptx <<'P'
.version 7.0
.target sm_80
.address_size 64
.func (.param .f32 o) f(.param .f32 a)
{
    .reg .f32 %f<4>;
    ld.param.f32 %f1, [a];
    mul.f32 %f2, %f1, %f1;
    st.param.f32 [o], %f2;
    ret;
}
.visible .entry k(.param .u64 p)
{
    .reg .f32 %f<9>; .reg .b64 %p;
    ld.param.u64 %p, [p];
    ld.global.f32 %f1, [%p];
    mul.ftz.f32 %f2, %f1, 0f40490FDB;
    mul.ftz.f32 %f3, %f1, %f1;
    {
    .param .f32 a; .param .f32 o;
    st.param.f32 [a], %f1;
    call (o), f, (a);
    ld.param.f32 %f4, [o];
    }
    add.f32 %f5, %f4, %f1;
    add.ftz.f32 %f6, %f5, %f3;
    add.ftz.f32 %f7, %f6, %f2;
    st.global.f32 [%p], %f7;
    ret;
}
P
"$MARGAY" ptx instrument --sm 90 -t none called.ptx | grep -o '\(mul\|call\)[.a-z0-9]*' | sort | tr '\n' ' ' > out 2> err # of the constant's product ptxas makes one operation with its sum, wherever it is
[ "$(cat out)" = 'mul.ftz.f32 mul.rn.f32 mul.rn.ftz.f32 ' ] || bad 'products beside a call'

# an instruction that the device does not have: said once, with the line of the program's own text
cat > no.ptx <<'P'
.version 8.6
.target sm_90a
.address_size 64
.visible .entry no(.param .u64 p, .param .u32 n)
{
    tcgen05.fence::before_thread_sync;
    ret;
}
P
$run -o no -- ./ptxrun load=no.ptx no:1,1,1:1,1,1 no:1,1,1:1,1,1 > out 2> err
[ "$(grep -c '^margay.*tcgen05' err)" = 1 ] && grep -q '^margay.*tcgen05.*PTX line 6$' err || bad 'an unsupported instruction is not said once'

# counts of one CTA or warp, scaled: 100 CTAs of 70 threads (3 warps), of which 40 run the third block
for scope in full cta cta,cta=99 warp warp,cta=3,warp=1; do
    rm -rf scope
    $run -q -t blocks,scope=$scope -o scope -- ./ptxrun load=turns.ptx count:100,1,1:70,1,1:40 > out 2> err || bad "scope=$scope"
    case $scope in
    full) query scope "[b['thread_entries'] for b in r['kernels'][0]['blocks']] == [7000, 4000, 7000] and not r['kernels'][0]['estimate'] and r['launches'][0]['thread_entries'] == [7000, 4000, 7000] and r['launches'][0]['warp_entries'] == [300, 200, 300]" ;;
    cta*) query scope "[b['thread_entries'] for b in r['kernels'][0]['blocks']] == [7000, 4000, 7000] and r['kernels'][0]['estimate'] and r['launches'][0]['thread_entries'] == [70, 40, 70] and r['launches'][0]['warp_entries'] == [3, 2, 3]" ;;
    warp) query scope "r['kernels'][0]['estimate'] and r['launches'][0]['thread_entries'] == [32, 32, 32] and r['launches'][0]['warp_entries'] == [1, 1, 1]" ;;
    warp,*) query scope "r['kernels'][0]['estimate'] and r['launches'][0]['thread_entries'] == [32, 8, 32] and r['launches'][0]['warp_entries'] == [1, 1, 1]" ;;
    esac
done

# big grids: all of y and z; 2^31-1 CTAs of x begin at once and end with the time limit
$run -q --strict -o yz -- ./ptxrun load=turns.ptx count:1,65535,1:1,1,1:1 count:1,1,65535:1,1,1:1 sum > out 2> err || bad 'grid of 65535 in y and z'
[ "$(cat out)" = 'sum 131070' ] || bad 'grid of 65535 in y and z'
query yz "[b['thread_entries'] for b in r['kernels'][0]['blocks']] == [131070] * 3"
timeout 300 $run --time-limit 0.5 -o big -- ./ptxrun load=turns.ptx count:2147483647,1,1:1,1,1:1 count:1,1,1:1,1,1:1 > out 2> err
[ $? = 3 ] && grep -q '^count: error 702' out && grep -q 'time limit' err || bad 'a grid of 2^31-1 under --time-limit'
query big "[l['complete'] for l in r['launches']][0] == False"
timeout 300 $run --time-limit 0.3 -o spin -- ./ptxrun load=turns.ptx spin:4,1,1:64,1,1 > out 2> err
[ $? = 3 ] && grep -q '^spin: error 702' out && grep -q 'spin: stopped after the time limit of 0.3 s' err || bad 'a spinning kernel under --time-limit'

# kill -9 in the middle of a kernel: what had ended is there, the running one is incomplete
$run -q -o killed -- sh -c 'echo $$ > pid; exec ./ptxrun load=turns.ptx count:1,1,1:32,1,1:32 sync=0 spin:1,1,1:1,1,1 print=on sleep=60000' > out 2> err &
for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.3; [ -s pid ] && [ -e killed/profile.db ] && break; done
sleep 0.7
kill -9 "$(cat pid)"
wait $!
[ $? = 137 ] || bad 'kill -9: status'
ls killed | grep -q ctl && bad 'a page of margay ctl is left behind'
query killed "[l['complete'] for l in r['launches']] == [True, False] and r['exit'] == 137"
exit $failed
