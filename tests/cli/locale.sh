#!/bin/sh
# A program in a locale that writes a comma for the point: decimal constants of its PTX, the numbers of
# --launches and those of JSON keep their point.
set -u
failed=0
command -v localedef > /dev/null && localedef -i de_DE -f UTF-8 ./de_DE.UTF-8 2> /dev/null || { echo 'no locale de_DE can be made here'; exit 77; }
export LOCPATH="$PWD" LC_ALL=de_DE.UTF-8
gcc -O1 -o ptxrun "$ROOT/tests/cli/ptxrun.c" -ldl || exit 1
cat > half.ptx <<'END'
.version 7.0
.target sm_70
.address_size 64
.global .f32 quarter = 0.25;
.visible .entry half(.param .u64 p, .param .u32 n)
{
    .reg .f32 %f<3>; .reg .b32 %r<3>; .reg .b64 %d<3>; .reg .f64 %g<3>;
    ld.param.u64 %d1, [p];
    ld.global.f32 %f1, [quarter];
    add.f32 %f2, %f1, 0.5;
    add.f64 %g1, 0.125, 1.5;
    mul.f32 %f2, %f2, 0F447A0000;
    cvt.rzi.u32.f32 %r1, %f2;
    st.global.u32 [%d1], %r1;
    mul.f64 %g1, %g1, 0d408F400000000000;
    cvt.rzi.u32.f64 %r2, %g1;
    st.global.u32 [%d1+4], %r2;
    ret;
}
END
# 1000 (0.25 + 0.5) + 1000 (0.125 + 1.5)
for device in emu cpu; do
    [ $device = emu ] || [ -e "$B/lib/margay/libmargay-cpu.so" ] || continue
    for more in '-t none' '-t memory' '--launches random=1.0'; do
        "$MARGAY" run --device $device $more -o $device -- ./ptxrun locale load=half.ptx half:1,1,1:1,1,1 sum > out 2> err || { echo "FAIL $device $more"; cat out err; failed=1; }
        [ "$(cat out)" = "locale ,
sum 2375" ] || { echo "FAIL $device $more: decimal constants"; cat out; failed=1; }
    done
    grep -q '^coverage: 1 of 1' err || { echo "FAIL $device: --launches random=1.0 in a locale with commas"; cat err; failed=1; }
    "$MARGAY" run -q --device $device --repeat 2 --stats -o $device -- ./ptxrun locale load=half.ptx half:1,1,1:1,1,1 > out || { echo "FAIL $device --repeat"; failed=1; }
    for d in $device; do "$MARGAY" report $d --json | python3 -c 'import json,sys; json.load(sys.stdin)' || { echo "FAIL $d: no JSON"; failed=1; }; done
done
exit $failed
