#!/bin/sh
# A GPU lets lanes part and meet where it likes; thread counts must not depend on it. Random kernels, and some that are mostly
# branch tables, natively and as twins of the nvidia backend, where lanes of the emulator part at any jump and any of them
# goes on (MARGAY_APART): results and thread counts are the schedule's, so are tools' numbers of threads.
set -u
tools=$ROOT/tests/fuzz/kernels
gcc -O1 -Wall -o launch "$tools/launch.c" -L"$B/lib/margay/driver" -lcuda || exit 1
export XDG_CACHE_HOME=$PWD/cache LD_LIBRARY_PATH=$B/test/driver
"$tools/compare" --margay "$MARGAY" --launch ./launch --seeds 301-308 --devices emu,emu+1,nvidia+2,nvidia+3 &&
    "$tools/compare" --margay "$MARGAY" --launch ./launch --seeds 321-324 --tables --devices emu,nvidia+4,nvidia+5 &&
    "$tools/compare" --margay "$MARGAY" --launch ./launch --seeds 1002-1005 --devices emu,nvidia,nvidia+2 --tools lanes,memory,opcodes,values || exit 1
# ptxas takes the mask of activemask for that of whoever runs together, also behind a branch where pieces of a warp met: sums are
# by a whole warp's mask, or by one asked for in the same straight line that it cannot take for equal in all lanes
for seed in 301 302 303; do "$tools/generate" $seed > k.ptx; "$MARGAY" ptx instrument -t blocks --sm 90 k.ptx; done > twins.ptx
python3 - <<'P' || exit 1
import re
fresh, asked, own, n = set(), set(), set(), 0
for line in open('twins.ptx'):
    if re.search(r':\s*$|\b(bra|brx|call|ret|bar)\b', line): fresh, asked, own = set(), set(), set()
    m = re.search(r'activemask\.b32 (\w+)', line)
    if m: asked.add(m[1])
    m = re.search(r'mov\.u32 (\w+), %lanemask_(\w\w)', line)
    if m: (own.add if m[2] == 'eq' else own.discard)(m[1])
    m = re.search(r'or\.b32 (\w+), (\w+), (\w+);', line)
    if m and m[1] == m[2] and m[2] in asked and m[3] in own: fresh.add(m[1])
    m = re.search(r'redux\.sync\.add\.u32 \w+, \w+, (\S+);', line)
    if m and '__mg_' in line:
        assert m[1] in ('-1', '4294967295', '0xffffffff') or m[1] in fresh, line
        n += 1
assert n > 10, n
P
# tools' own sums at a spot: how many lanes, and sums over them, by a mask that differs by lane for all that it can know
"$MARGAY" ptx instrument -t 'expr,st, ld.global { @v = hist(value); @s[ptx] = sum(value); @n[ptx] = avg(width); @t[ptx] = sum(value & 255); @u[ptx] = sum(value & 15); @w[ptx] = sum(value & 7) }' -t values --sm 90 k.ptx > twins.ptx
"$MARGAY" ptx instrument -t accesses -t lanes --sm 90 k.ptx >> twins.ptx
python3 - <<'P' || exit 1
import re
asked, n = set(), [0, 0]
for line in open('twins.ptx'):
    m = re.search(r'(?:activemask|vote\.sync\.ballot)\.b32 (\w+)', line)
    if m: asked.add(m[1])
    elif m := re.search(r'^\s*(?:@!?\S+ )?[a-z]\S+ (\w+),', line): asked.discard(m[1])
    for i, form in enumerate((r'popc\.b32 \w+, (\w+);', r'redux\.sync\.add\.u32 \w+, \w+, (\w+);')):
        m = re.search(form, line)
        if m and '__mg_' in line:
            assert m[1] not in asked, line
            n[i] += 1
assert min(n) > 10, n
P
# nor does a tool keep such a mask for later, when groups may have met: lanes ors each lane's own bit into it
for seed in 301 302 303; do "$tools/generate" $seed > k.ptx; "$MARGAY" ptx instrument -t lanes --sm 90 k.ptx; done > twins.ptx
python3 - <<'P' || exit 1
import re
asked, kept = set(), 0
for line in open('twins.ptx'):
    m = re.search(r'activemask\.b32 (\w+)', line)
    if m: asked.add(m[1])
    m = re.search(r'\b(?:or|mov|add)\.\w+ (\w+), (\w+)', line)
    if m and re.search(r'mov\.b32 __mg_v', line): assert m[2] not in asked, line
    if m and m[1].startswith('__mg_v'): kept += 1
    if m and m[1] in asked and 'activemask' not in line: asked.discard(m[1])
assert kept > 10, kept
P
"$tools/generate" 301 > k.ptx # and it does what it says: warps enter blocks more often
for apart in 0 6; do
    MARGAY_APART=$apart "$MARGAY" run -q --device emu -o p$apart -- ./launch k.ptx > /dev/null && "$MARGAY" report p$apart --json > p$apart.json || exit 1
done
python3 - <<'P'
import json
a, b = (json.load(open(f'p{n}.json')) for n in (0, 6))
warps = lambda r: sum(x['warp_entries'] for x in r['kernels'][0]['blocks'])
assert warps(b) > warps(a) and b['kernels'][0]['schedule_dependent'] > a['kernels'][0]['schedule_dependent'], (warps(a), warps(b))
P
