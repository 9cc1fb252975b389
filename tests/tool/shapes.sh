#!/bin/sh
# How the work lies over CTAs decides what the findings advise: a ramp, a few long ones, or neither; grids that give some multiprocessors
# nothing, or less than others; bytes that caches may serve are no verdict. Expected values are closed forms of shapes.cu.
set -eu
[ -n "$NVCC" ] || { echo 'no nvcc'; exit 77; }
"$NVCC" -cudart shared -lineinfo -O2 -gencode arch=compute_90,code=compute_90 -o shapes "$ROOT/tests/tool/shapes.cu"
cat > look.py <<'END'
import json, re, sys
what, n = sys.argv[1], int(sys.argv[2])
r = json.load(sys.stdin)
(row,), sms, found = r['tools']['ctas']['kernels'], r['device']['sms'], {f['rule']: f for f in r['findings']}
text = found['cta_imbalance']['text'] if 'cta_imbalance' in found else ''
few = found.get('few_ctas', {'text': '', 'gain_pct': 0})
assert few['gain_pct'] == 0
most = -(-n // sms)
assert abs(row['grid_share'] - (n / sms / most if n > sms else 1)) < 1e-12, row
if what in ('rising', 'falling'):
    parts = min(n, 16)
    ends = [-(-p * n // parts) for p in range(parts + 1)]
    last = [e - 1 for e in ends[1:]] if what == 'rising' else [n - 1 - b for b in ends[:-1]]
    assert row['longest_by_number'] == [row['least'] + (row['most'] - row['least']) * i // max(n - 1, 1) for i in last], row
    assert row['shape'] == (what if n >= 8 else 'spread') and row['longest'] == [n - 1 if what == 'rising' else 0, 0, 0], row
    assert row['rounds_of_longest'] == 20 * n and row['rounds_mean'] == 10 * (n + 1), row
    if what == 'falling' and n > sms:  # all run at once: the first multiprocessor has CTAs 0, 132 and 264, of 300, 168 and 36 parts
        part = (row['most'] - row['least']) / (n - 1)
        first = 3 * (row['least'] - part) + (n + n - sms + n - 2 * sms) * part
        assert abs(row['even_share'] - n * row['mean'] / sms / first) < 1e-9, (row, first)
        saved = 100 * (1 - row['even_share'] / row['grid_share'])
        assert 'Gain: all its CTAs run at once' in text and text.endswith(f' of instructions alone it would be {saved:.0f} %.'), (text, saved)
        assert abs(found['cta_imbalance']['gain_pct'] - 100 * (1 - 1 / row['imbalance'])) < 1, found
        assert few['text'].startswith(f'it has {n} CTAs of 1 warp for {sms} '), (row, found)
        sys.exit()
    assert f'CTA {row["longest"][0]}, the longest,' in text, text
    assert ('one part from either end' if n >= 8 else 'fetch the next part from a counter') in text and ('counter' in text) == (n < 8), text
    assert f'go round this loop, as it was compiled, {20 * n:,} times, the mean {10 * (n + 1):,} times' in text, text
    assert ('start with the long ones' in text) == (what == 'rising' and n > 32 * sms), text  # else all run at once
elif what == 'one':
    assert row['longest_by_number'].count(row['most']) == 1 and sorted(row['longest_by_number'])[-2] == row['least'], row
    assert row['shape'] == 'few long' and row['longest'] == [5, 1, 0] and row['long_ctas'] == 1 and row['long_cta_ids'] == [[5, 1, 0]], row
    assert row['rounds_of_longest'] == 4000 and abs(row['rounds_mean'] - (4000 + 10 * (n - 1)) / n) < 1e-9, row
    assert 'CTA (5,1,0), the longest,' in text and 'split its work among several CTAs' in text and 'counter' not in text, text
elif what == 'every_third':
    assert row['shape'] == 'spread' and row['longest'][0] % 3 == 0 and row['long_ctas'] == -(-n // 3), row
    assert 'fetch the next part from a counter' in text, text
elif what == 'first':  # shares its multiprocessor until the others are done: half of that time is left of it
    done = (n - 1) * row['least'] / (sms - .5)
    takes = n * row['mean'] / sms / row['even_share']
    assert row['longest'] == [0, 0, 0] and abs(takes - (row['most'] + done / 2)) < row['least'], (takes, done, row)
elif what == 'even':
    assert row['shape'] == 'even' and not text and 'no_verdict' in r, row
    full = n - (most - 1) * sms
    if n < 32 * sms and ((most * sms - n) / (most * sms) >= .1 or most < 16): # one warp each
        share = f'{n} get{"s" * (n == 1)} one, {sms - n} none' if n < sms else f'each gets {most}' if full == sms else f'{full} get {most}, the others {most - 1}'
        assert few['text'].startswith(f'it has {n:,} CTA{"s" * (n > 1)} of 1 warp for {sms} multiprocessors: {share}. A multiprocessor has {most} warp{"s" * (most > 1)} '), few
    else: assert 'few_ctas' not in found, few
    assert n >= sms or not [f for f in found if f.endswith('_bound')], found
elif what == 'streamed':
    assert 'memory_bound' in found and not r['no_verdict'], (found, r['no_verdict'])
elif what == 'cached':  # 64 KiB, read n times
    (why,) = r['no_verdict']
    assert not [f for f in found if f.endswith('_bound')] and why['kernel'] == 0 and why['why'].startswith('caches decide. With perfect ones, '), (found, why)
    perfect, none = (float(x) for x in re.findall(r'([0-9.e+-]+) times', why['why']))
    assert abs(none / perfect / (65536 * n / (65536 + 512)) - 1) < .11, why  # of 64 KiB, n times; of 4 KiB 512 bytes, n times
END
for device in ${DEVICES:-emu cpu}; do
    for what in 'rising 300' 'falling 100' 'falling 300' 'rising 4' 'one 300' 'every_third 300' 'first 1056' 'even 12' 'even 132' 'even 202' 'even 1310' 'even 1320' 'cached 300' 'streamed 300'; do
        rm -rf d
        "$MARGAY" run -q --device $device -t advise -o d -- ./shapes $what
        "$MARGAY" report d --json | python3 look.py $what || { echo "FAIL $device $what"; exit 1; }
        [ "$what" != 'cached 300' ] || "$MARGAY" report d > cached.txt
    done
done
grep -q '^      no verdict on cached: caches decide\. ' cached.txt || { grep -A20 ^findings cached.txt; exit 1; }
[ "${DEVICES:-emu}" = nvidia ] || ! grep '(no GPU: ' cached.txt || { echo 'FAIL clocks of the host among many tools'; exit 1; }
# 1,500 CTAs in 1,024 slots are sampled: every second has one, the last of them is 1498
"$MARGAY" run -q --device ${DEVICES:-emu} -t blocks -t ctas,ctas=1024 -o s -- ./shapes rising 1500
"$MARGAY" report s | tr -s ' \n' ' ' | grep -q 'CTA 1498, the longest of 750 sampled, of 1,500, executes 2.0 times' || { "$MARGAY" report s | grep -A6 ^findings; exit 1; }
