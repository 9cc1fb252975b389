#!/bin/sh
# margay annotate: shares of lines, buffers, PTX below a line, files and functions by name, the newest profile.
set -e
[ -n "$NVCC" ] || { echo 'no nvcc'; exit 77; }
cp "$ROOT/tests/tool/faults/matvec.cu" "$ROOT/tests/tool/faults/transpose.cu" "$ROOT/tests/tool/faults/common.h" .
for p in matvec transpose; do "$NVCC" -cudart shared -lineinfo -O2 -gencode arch=compute_90,code=compute_90 -o $p $p.cu; done
"$MARGAY" run -q --device emu -t blocks -t memory -t lanes -o older -- ./transpose fault > out
"$MARGAY" run -q --device emu -t blocks -t memory -t lanes -o newer -- ./matvec fault > out

"$MARGAY" annotate older > older.txt 2> err
grep -q '31\.0 |    16          float v = tile' older.txt || { echo 'no conflicts at the line'; cat older.txt; exit 1; }
grep -q '\^ shared variable tile of 4096 bytes' older.txt
grep -q '\^ argument 0, buffer of 1,048,576 bytes' older.txt
"$MARGAY" annotate > newest.txt 2> err
"$MARGAY" annotate . 2> again | cmp - newest.txt && cmp err again
grep -q 'profile newer' err && grep -q 'matvec\.cu$' newest.txt
"$MARGAY" annotate matvec.cu 2> err | cmp - newest.txt
"$MARGAY" annotate newer 'rows_times*' --ptx > ptx.txt
grep -q 'ptx:[0-9]*  ld\.global\.f64' ptx.txt || { cat ptx.txt; exit 1; }
python3 - newest.txt newer "$MARGAY" <<'P'
import json, re, subprocess, sys
# shares of lines add up to all; instructions of lines to the kernel's, by another way: the block counts
text = open(sys.argv[1]).read()
shares = [float(m) for m in re.findall(r'^ *([0-9.]+) %', text, re.M)]
assert abs(sum(shares) - 100) < 0.05 * len(shares) + 0.01, (sum(shares), shares)
d = json.loads(subprocess.run([sys.argv[3], 'report', sys.argv[2], '--json'], stdout=subprocess.PIPE, check=True).stdout)
unit = {'': 1, 'k': 1e3, 'M': 1e6}
counts = [float(n) * unit[u] for n, u in re.findall(r'^ *[0-9.]+ % +([0-9.]+)([kM]?) ', text, re.M)]
want = d['kernels'][0]['thread_instructions']
assert abs(sum(counts) - want) < 0.01 * want, (sum(counts), want)
# the buffers of the JSON: what the launch's arguments were, by their place
names = {s['buffer'] for s in d['tools']['memory']['sites']}
want = {2048 * 90 * 8: 0, 90 * 8: 1, 2048 * 8: 2}
assert len(names) == 3, names
for size, ix in want.items():
    assert f'argument {ix}, buffer of {size:,} bytes' in names, (size, names)
P
# a source that was written anew since, or is gone, is no source that ran
"$MARGAY" annotate older transpose.cu | head -1 | grep -q 'transpose\.cu$'
"$MARGAY" report older > older.report && ! grep 'was changed' older.report || exit 1
touch transpose.cu
"$MARGAY" annotate older transpose.cu | head -1 | grep -q 'transpose\.cu was changed since the run: '
[ "$("$MARGAY" report older | grep -c '^  transpose\.cu was changed since the run: ')" = 1 ] || { echo 'findings do not say that the source was changed'; exit 1; }
rm transpose.cu
"$MARGAY" annotate older transpose.cu | head -1 | grep -q 'transpose\.cu cannot be read here$'
"$MARGAY" report older > older.report && ! grep 'transpose\.cu was' older.report || exit 1
rc=0; "$MARGAY" annotate newer nowhere.cu > out 2> err || rc=$?
[ $rc = 3 ] && grep -q 'nowhere.cu names no file and no function' err
mkdir empty && cd empty
rc=0; "$MARGAY" annotate 2> err || rc=$?
[ $rc = 2 ] && grep -q 'no profile here' err
# a directory that holds no profile is no pattern for functions
rc=0; "$MARGAY" annotate . 2> err || rc=$?
[ $rc = 3 ] && grep -q 'is a directory without a profile' err || { cat err; exit 1; }
"$MARGAY" run -q -o none -- true
rc=0; "$MARGAY" annotate none 2> err || rc=$?
[ $rc = 3 ] && grep -q 'no kernel ran in .*none' err || { cat err; exit 1; }
