#!/bin/sh
# Findings claim what one change gains: all conflicts of a shared array are one finding, which names the array's own declaration;
# loads of one struct's members share sectors; lanes that CTAs of 16 threads do not have are no branch's fault.
set -e
[ -n "$NVCC" ] || { echo 'no nvcc'; exit 77; }
"$NVCC" -cudart shared -lineinfo -O2 -gencode arch=compute_90,code=compute_90 -o mending "$ROOT/tests/tool/mending.cu"
cp "$ROOT/tests/tool/mending.cu" .
declared=$(grep -n 'DECLARED \*/' mending.cu | cut -d: -f1)
for device in emu cpu; do
    rm -rf d
    "$MARGAY" run -q --device $device -t advise -o d -- ./mending > out
    grep -q 'no error' out
    "$MARGAY" report d --json > report.json
    python3 - $device "$declared" <<'P'
import json, sys
device, declared = sys.argv[1], sys.argv[2]
j = json.load(open('report.json'))
name = {k['id']: k['name'] for k in j['kernels']}
found = [(f['rule'], next(n for n in ('sound', 'turned', 'narrow', 'both', 'one') if n in name[f['kernel']].split('(')[0]), f) for f in j['findings']]
of = lambda rule: [(k, f) for r, k, f in found if r == rule]

# the two lines of `turned` that conflict are one finding; 31 conflicts a request, as 32 lanes step by 32 words
(k, f), = of('bank_conflict')
assert k == 'turned' and 'and 1 more access of this buffer' in f['text'] and f'mending.cu:{declared})' in f['text'] and f['measure'] == 32, (device, f)

# both members of a pair are used: a sector is brought once; of four members one is
assert [k for k, f in of('uncoalesced')] == ['one'], (device, of('uncoalesced'))
assert of('uncoalesced')[0][1]['measure'] == 16 and 'where 4.0 would do' in of('uncoalesced')[0][1]['text']

# 8 of 16 lanes of one CTA wait while the others are in the branch: 8 slots an instruction
k, = (k for k in j['tools']['lanes']['kernels'] if 'narrow' in name[k['kernel']])
insts = {b['id']: b['instructions'] for b in next(x for x in j['kernels'] if x['id'] == k['kernel'])['blocks']}
waits = sum(b['lanes'][8] * 8 * insts[b['id']] for b in k['blocks'])
assert waits > 8 * 50 and sum(b['idle_slots'] for b in k['branches']) == waits, (device, waits, k['branches'])
assert not of('divergence'), (device, of('divergence'))
P
done
