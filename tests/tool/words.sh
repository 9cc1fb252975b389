#!/bin/sh
# What findings and tables say beside the place: the buffer of the access that is at fault where its line has several, passes through
# shared memory of wide accesses, CTAs of an even sample; rows that read alike, the line of a block.
set -eu
[ -n "$NVCC" ] || { echo 'no nvcc'; exit 77; }
src=$ROOT/tests/tool/words.cu
"$NVCC" -cudart shared -O2 -gencode arch=compute_90,code=compute_90 -o plain "$src"
"$NVCC" -cudart shared -lineinfo -O2 -gencode arch=compute_90,code=compute_90 -o words "$src"
cat > look.py <<'END'
import json, sys
what, source = sys.argv[1], open(sys.argv[2]).read().split('\n')
r = json.load(sys.stdin)
f = r['findings'][0]
if what == 'STRAIGHT':  # the 128 loads are all the conflicts there are: one finding, none of them alone
    (f,) = [x for x in r['findings'] if x['rule'] == 'bank_conflict']
    assert 'takes 8.0 passes through shared memory where 1 would do (and 127 more accesses of this buffer)' in f['text'], f
    assert f['file'] is None and f['buffer'].startswith('shared variable tile') and f['gain_pct'] > 5, f # one of them alone: a 128th
    sys.exit()
assert f['line'] == next(i for i, l in enumerate(source, 1) if f'/* {what} */' in l), f
if what == 'BUFFERS':  # wide is argument 2; each lane touches a sector of its own, 4 bytes of 128
    assert f['rule'] == 'uncoalesced' and f['measure'] == 32 and f['buffer'].startswith('argument 2'), f
    ops = [s for s in r['tools']['memory']['sites'] if s['ptx_line'] == f['ptx_line']]
    assert ops[0]['sectors'] == 32 * ops[0]['requests'], ops
elif what == 'ROWS':  # 8 rows of 16 bytes: half of each sector
    assert f['rule'] == 'uncoalesced' and f['measure'] == 8 and 'lies in 8 rows of 4 threads: let blockDim.x be' in f['text'], f
elif what == 'PASSES':  # 512 bytes are four passes; 32 lanes on four banks take one pass each
    assert f['rule'] == 'bank_conflict' and f['measure'] == 8, f
    assert 'takes 32.0 passes through shared memory where 4 would do' in f['text'] and 'by 16 bytes (the width of an access)' in f['text'], f
else:
    n, = [int(x) for x in sys.argv[3:]]
    row, = r['tools']['ctas']['kernels']
    assert f['rule'] == 'cta_imbalance', f
    assert f['sure'] == ('model' if row['estimate'] else 'exact') and row['estimate'] == (n > 1024), (f, row)
    assert ('sampled, of' in f['text']) == row['estimate'], f
    if not row['estimate']:  # the mean by the counts of blocks
        assert abs(f['measure'] / (row['most'] * n / r['kernels'][0]['thread_instructions']) - 1) < 1e-12, (f, row)
verdicts = [v for v in r['findings'] if v['rule'].endswith('_bound')]
assert all('Fix the findings, then ' in v['text'] for v in verdicts), verdicts
END
for device in emu cpu; do
    for what in BUFFERS PASSES ROWS 'CTAS 700'; do
        rm -rf d
        "$MARGAY" run -q --device $device -t advise -o d -- ./words $what > out 2> err || { echo "FAIL $device $what"; cat err; exit 1; }
        "$MARGAY" report d --json | python3 look.py ${what%% *} "$src" ${what#* } || { echo "FAIL $device $what"; exit 1; }
        [ "$what" != PASSES ] || "$MARGAY" report d > passes.txt
    done
done
"$MARGAY" run -q --device emu -t advise -o s -- ./plain STRAIGHT > out 2> err && "$MARGAY" report s --json | python3 look.py STRAIGHT "$src"
"$MARGAY" run --device emu -t advise -o n -- ./words SOUND > out 2> err
grep -q '^findings: none:' err && "$MARGAY" report n | grep -q '^findings: none:' || { echo 'FAIL a sound program'; cat err; exit 1; }
"$MARGAY" run --device emu -t memory -o m -- ./words SOUND > out 2> err # not all that rules read
! grep 'findings: none' err || exit 1
"$MARGAY" run --device emu -t advise --kernel nothing -o z -- ./words SOUND > out 2> err # nothing was counted
! grep 'findings: none' err || exit 1
# CTA 37 is none of every second one: the sample says of itself what it is, and the counts of the others are even.
rm -rf d && "$MARGAY" run -q --device cpu -t blocks -t ctas,ctas=1024 -o d -- ./words CTAS 1400 > out
"$MARGAY" report d --json | python3 -c 'import json, sys; k, = json.load(sys.stdin)["tools"]["ctas"]["kernels"]; assert k["estimate"] and (k["ctas"], k["grid_ctas"]) == (700, 1400) and k["imbalance"] == 1, k'
# The loop is unrolled eight times: its eight loads are one row, and most of its block is of the line that adds them up.
grep -q 'ld.shared.*  x 8$' passes.txt || { echo 'FAIL rows that read alike'; cat passes.txt; exit 1; }
hot=$(grep -A1 -m1 'entries .*source' passes.txt | tail -1)
case $hot in *words.cu:*sum.x*) ;; *) echo "FAIL the line of the hottest block: $hot"; exit 1 ;; esac
# TAUcuda's objects are of kernels as people write them; the JSON has their names.
rm -rf d && "$MARGAY" run -q --device emu -t timeline,tau=on -o d -- ./words SOUND > out
"$MARGAY" report d --tool timeline | grep -q '^  sound(float\*) (C-\[\.TAU application\]#D-0#S-0) ' || { "$MARGAY" report d --tool timeline; exit 1; }
"$MARGAY" report d --json | grep -q '"event": *"_Z5soundPf (C-\['
