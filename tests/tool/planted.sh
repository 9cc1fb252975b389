#!/bin/sh
# A performance engineer's path: `margay run` on a program with a planted problem; the first row of the right
# tool's table names its source line (DEVICES=nvidia: on a GPU).
set -e
[ -n "$NVCC" ] || { echo 'no nvcc'; exit 77; }
src=$ROOT/tests/tool/planted.cu
"$NVCC" -cudart shared -lineinfo -O2 -gencode arch=compute_90,code=compute_90 -o planted "$src"

# names TOOL WORD: the first row of the tool's first table is of the line that WORD marks
names() {
    line=$(grep -n "PLANTED $2" "$src" | cut -d: -f1)
    rm -rf d
    "$MARGAY" run --device "$device" -t "$1" -o d -- ./planted "$2" > out 2> summary
    first=$(grep -m1 'planted\.cu:' summary)
    case $first in *"planted.cu:$line "*) ;; *) echo "$device, $1: the first row is not of line $line:"; cat summary; exit 1 ;; esac
}
for device in ${DEVICES:-emu cpu}; do
    names memory memory
    names memory shared
    names lanes lanes
done
device=${DEVICES:-emu} # a device's own clock decides: the CTAs of the CPU device share processors with whatever else runs
names clock clock
