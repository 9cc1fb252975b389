#!/bin/sh
# Eight planted faults, each with a sound twin: the first finding of `-t advise` names the fault's line by the right rule, on
# emulator and CPU device; the twin has no finding of that rule. Of each kind one also with lines shifted and functions renamed.
# DEVICES=nvidia: on a GPU.
set -e
[ -n "$NVCC" ] || { echo 'no nvcc'; exit 77; }
faults='particles uncoalesced  matvec uncoalesced  transpose bank_conflict  filter bank_conflict
species divergence  hashing divergence  triangle cta_imbalance  buckets cta_imbalance'
others='matvec filter species buckets' # whose other versions are tried, too
compile() { "$NVCC" -cudart shared -lineinfo -O2 -gencode arch=compute_90,code=compute_90 -o "$1" "$2"; }

cp "$ROOT"/tests/tool/faults/*.cu "$ROOT/tests/tool/faults/common.h" .
set -- $faults
other() { case " $others " in *" $1 "*) return 0 ;; *) return 1 ;; esac; }
while [ $# -gt 0 ]; do
    compile "$1" "$1.cu" & # two at a time
    if other "$1"; then
        { printf '\n\n// shifted\n\n\n'; sed -e 's/__global__ void \([a-z]*\)/__global__ void q_\1/; s/\b\([a-z]*[a-z_]*\)\(<[^<>]*>\)\{0,1\}<<</q_\1\2<<</' "$1.cu"; } > "$1_other.cu"
        compile "$1_other" "$1_other.cu"
    fi
    wait
    shift 2
done

# checks DEVICE PROGRAM RULE
checks() {
    line=$(grep -n 'FAULT \*/' "$2.cu" | cut -d: -f1)
    for twin in fault sound; do
        rm -rf d
        "$MARGAY" run -q --device "$1" -t advise -o d -- "./$2" $twin > "out.$twin"
        "$MARGAY" report d --json > "$twin.json"
    done
    python3 - "$1 $2" "$3" "$line" "$2.cu" <<'P'
import json, os, sys
what, rule, line, file = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
fault, sound = (json.load(open(f))['findings'] for f in ('fault.json', 'sound.json'))
assert fault, f'{what}: nothing found'
f = fault[0]
assert (f['rule'], os.path.basename(f['file']), f['line']) == (rule, file, line), (what, line, f)
assert 1 <= f['gain_pct'] <= f['share_pct'] <= 100 and f['text'] and f['sure'] == 'exact', (what, f)
assert all(x['rule'] != rule for x in sound), (what, [x for x in sound if x['rule'] == rule])
P
    cmp -s out.fault out.sound || { echo "$2: fault and sound twin print other results"; exit 1; }
}

for device in ${DEVICES:-emu cpu}; do
    set -- $faults
    while [ $# -gt 0 ]; do
        checks "$device" "$1" "$2"
        if [ "$device" != cpu ] && other "$1"; then checks "$device" "$1_other" "$2"; fi
        shift 2
    done
done

# the summary of a run begins the findings with the first, and says what they rest on
"$MARGAY" run --device emu -t advise -o s -- ./transpose fault > out 2> said
grep -q "findings: what mending each could gain, in per cent of the kernels' work as counted" said
grep -q '^   1\. .* bank_conflict  transpose.cu:' said || { cat said; exit 1; }
grep -q 'Pad each row of the array by 4 bytes' said
# other tools go beside it, each once
"$MARGAY" run -q --device emu -t advise -t hot -o h -- ./particles fault > out
"$MARGAY" report h --tool hot > hot.txt && grep -q hottest hot.txt
rc=0; "$MARGAY" run --device emu -t advise -t memory -- ./particles fault > out 2> err || rc=$?
[ $rc = 120 ] && grep -q 'memory is given twice' err || { echo "a tool of the list given again: $rc"; cat err; exit 1; }
