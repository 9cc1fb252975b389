#!/bin/sh
# An access is of the argument's buffer whose address it adds to, whatever its index is: loaded, or another argument. Where the address
# itself was loaded, no buffer is named. Launches that swap their buffers have several.
set -e
[ -n "$NVCC" ] || { echo 'no nvcc'; exit 77; }
src=$ROOT/tests/tool/buffers.cu
"$NVCC" -cudart shared -lineinfo -O2 -gencode arch=compute_90,code=compute_90 -o buffers "$src"
"$MARGAY" run -q --device emu -t memory -o d -- ./buffers > out
grep -q 'no error' out
"$MARGAY" report d --json > report.json
python3 - "$src" <<'P'
import json, re, sys
lines = list(open(sys.argv[1]))
sites = json.load(open('report.json'))['tools']['memory']['sites']
bytes_of = {0: 700, 1: 400, 2: 1024}
for n, line in enumerate(lines, 1):
    of = [s['buffer'] for s in sites if s['line'] == n]
    m = re.search('// BUFFER ([0-9])', line)
    if m: assert of == [f'argument {m[1]}, buffer of {bytes_of[int(m[1])]:,} bytes'], (n, of)
    if '// BUFFER swapped' in line: assert sorted(of) == [f'argument {a}, buffers of up to 1,536 bytes' for a in (0, 1)], (n, of)
    if '// LISTS' in line: assert sorted(of, key=str) == [None, 'argument 4, buffer of 16 bytes'], (n, of)
P
