#!/bin/sh
# `opcodes,level=sass` against Nsight Compute: in kernels whose machine code maps in full, each opcode that no predicate guards was executed by as
# many threads as ncu counts in the native run, exactly. (Its hardware counter of all instructions is told beside: it holds those that
# were issued again where lanes came together. Of kernels with calls ncu tells no opcodes.)
set -u
NCU=${NCU:-$(command -v ncu || echo /usr/local/cuda/bin/ncu)}
[ -n "$NVCC" ] || { echo "nvcc is not installed"; exit 77; }
[ -x "$NCU" ] || { echo "Nsight Compute (ncu) is not installed"; exit 77; }
command -v nvdisasm > /dev/null || [ -x /usr/local/cuda/bin/nvdisasm ] || { echo "nvdisasm is not installed"; exit 77; }
arch=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
"$NVCC" -arch=sm_"$arch" -lineinfo -o instructions "$ROOT/tests/gpu/instructions.cu" || exit 1
"$NCU" --metrics smsp__thread_inst_executed.sum,sass__thread_inst_executed_true_per_opcode --csv --page raw \
    --print-units base --print-metric-instances details --log-file ncu.csv ./instructions > ncu.out 2>&1
rc=$?
grep -q ERR_NVGPUCTRPERM ncu.out ncu.csv && { echo "ncu may not count here (ERR_NVGPUCTRPERM)"; exit 77; }
[ $rc = 0 ] || { echo "ncu: exit $rc"; cat ncu.out ncu.csv; exit 1; }
"$MARGAY" run -q -t opcodes,level=sass --device nvidia -o profile -- ./instructions > out 2> err || { cat out err; exit 1; }
"$MARGAY" report profile --json > profile.json
python3 - <<'P'
import csv, json, re, sys
rows = [r for r in csv.reader(open('ncu.csv')) if r]
head = next(r for r in rows if 'Kernel Name' in r)
column = lambda m: next(i for i, h in enumerate(head) if h.split(' ')[0] == m)
name, total, ops = head.index('Kernel Name'), column('smsp__thread_inst_executed.sum'), column('sass__thread_inst_executed_true_per_opcode')
theirs = {}
for r in rows[rows.index(head) + 1:]:
    if len(r) == len(head) and r[name]:
        theirs[re.match(r'\w+', r[name])[0]] = (int(float(re.match(r'[\d,.]+', r[total])[0].replace(',', ''))),
            {m[1]: int(float(m[2].replace(',', ''))) for m in re.finditer(r'\b([A-Z][A-Z0-9_.]*)\s*[:=]\s*([\d,.]*\d)', r[ops])})
report = json.load(open('profile.json'))
names = {k['id']: k['name'] for k in report['kernels']}
full = bad = 0
for m in report['tools']['opcodes']['machine']:
    kernel = names[m['kernel']]
    want, by_op = theirs[kernel]
    mapped = m['mapped_instructions'] / m['instructions']
    print(f"{kernel}: {m['code']}, {m['instructions']} instructions, {100 * mapped:.1f} % mapped, {m['thread']} executed, ncu {want}")
    if mapped < 1: continue
    if not by_op: continue
    full += 1
    for o in m['opcodes']:
        there = sum(v for k, v in by_op.items() if k.split('.')[0] == o['name'])
        if o['thread'] != there if not o['guarded'] else o['thread'] < there:
            print(f"{kernel}: {o['name']}: {o['thread']}, ncu {there}")
            bad += 1
print(f'{full} kernels mapped in full, {bad} differences')
sys.exit(bad > 0 or full < 20)
P
