#!/bin/sh
# Numbers on every command line: what is no number, or outside of its range, is refused before anything runs,
# and the line names the option, its range and what was given. None of these may start the program.
set -u
failed=0
refused() { # STATUS OPTION RANGE VALUE COMMAND...
    want=$1 option=$2 range=$3 value=$4
    shift 4
    timeout 300 "$@" > out 2> err
    rc=$?
    if [ $rc = "$want" ] && [ ! -s out ] && [ "$(wc -l < err)" = 1 ] && grep -qF -- "$option" err && grep -qF -- "$range" err && grep -qF -- "'$value'" err; then :; else
        echo "FAIL $*: exit $rc, not $want, or no line with: $option, $range, '$value'"
        cat out err
        failed=1
    fi
}
run="$MARGAY run --device emu -o prof"
app="-- touch started"
for v in 99999999999999 1025 4294967297 -1 +1 nan inf '' 1.5 0x 1k ' 1'; do refused 120 --workers 'from 0 to 1024' "$v" $run --workers="$v" $app; done
for v in nan NAN -nan inf infinity -inf -1 1e300 1e999 1000000001 '' 1s 0x10 +1 ' 1' 1,5; do
    refused 120 --time-limit 'from 0 to 1000000000' "$v" $run --time-limit="$v" $app
done
refused 120 --time-limit 'from 0.000001' 1e-07 $run --time-limit 1e-7 $app
for v in 0 -1 nan 1e9 1000001 18446744073709551617 ''; do refused 120 --repeat 'from 1 to 1000000' "$v" $run --repeat="$v" $app; done
for v in 1/0 1/4294967296 1/4294967297 1/-1 1/nan 1/ 1/2x 2/3 0.5 nan '' Block; do refused 120 --channel '1 to 4294967295' "$v" $run --channel="$v" $app; done
tool() { refused 120 "$2=" "$3" "$4" $run -t "$1,$2=$4" $app; }
for v in 99999999999999999999 9223372036854775808 -1 nan '' x; do tool blocks,scope=cta cta 'from 0 to 9223372036854775807' "$v"; done
for v in 32 99 -1 nan; do tool blocks,scope=warp warp 'from 0 to 31' "$v"; done
for v in 0 3 4097 18446744073709551617 nan; do tool blocks shards 'from 1 to 4096, a power of two' "$v"; done
for v in 1000 -1 4294967328 nan; do tool blocks registers 'from 0 to 32' "$v"; tool blocks sm 'from 0 to 999' "$v"; done
for v in 0 8193 18446744073709551617 nan; do tool clock ctas 'from 1 to 8192' "$v"; done
for v in 0 1048577 nan 0.5; do tool lanes sample 'from 1 to 1048576' "$v"; done
for v in 0 nan 99999999999999999999; do tool events records 'from 1 to' "$v"; done
for v in nan 99999999999999999999; do tool events stage 'from 0 to' "$v"; done
tool blocks counters 'auto, class, register, thread, flux or atomic' x
tool memory level 'full or bytes' nan
tool lanes branches 'on or off' 2
for v in 99999999999999999999 0-99999999999999999999 %18446744073709551616 %0 first=0 first=nan random=nan random=-0.5 random=1e-999 random=0.5:nan budget=nan% budget=inf% \
    budget=1e999% budget=101% steady=0 steady=18446744073709551616 0x10 1e3; do
    timeout 300 $run --launches "$v" $app > out 2> err
    [ $? = 120 ] && grep -qF -- "--launches $v: " err || { echo "FAIL --launches $v"; cat err; failed=1; }
done
timeout 300 $run -t blocks,cta=3 $app > out 2> err
[ $? = 120 ] && grep -q 'need scope=' err || { echo "FAIL cta= without scope="; cat err; failed=1; }
for v in 0 -1 nan 4294967296 99999999999999999999 ''; do
    refused 2 --top 'from 1 to 4294967295' "$v" "$MARGAY" report --top="$v" prof
    refused 2 --top 'from 1 to 4294967295' "$v" "$MARGAY" diff --top="$v" prof prof
done
for v in nan inf -1 1e300 1e999 '' x 0x1; do refused 2 --fail-over 'from 0 to 1000000000' "$v" "$MARGAY" diff --fail-over="$v" prof prof; done
for v in 99999999999999999999 4294967296 0 -1 nan '' 1x; do refused 2 PID 'from 1 to 2147483647' "$v" "$MARGAY" ctl -- "$v" status; done
for v in 1000 -1 nan 18446744073709551706; do refused 2 --sm 'from 0 to 999' "$v" "$MARGAY" ptx instrument --sm="$v" x.ptx; done
[ ! -e started ] && [ ! -e prof ] || { echo 'FAIL a refused command line started the program, or made its directory'; failed=1; }

# What lies in the range is taken; a leading zero is decimal.
timeout 300 $run -q --workers 010 --time-limit 1e-6 --channel 1/4294967295 --launches 0-18446744073709551615,random=1:18446744073709551615 -- true || { echo 'FAIL numbers at their bounds'; failed=1; }
exit $failed
