#!/usr/bin/env bash
# margay study ctas: two classes of CTAs by closed form, witnesses for projections, what is wrong is named.
set -euo pipefail
cat > two.ptx <<'P'
.version 7.0
.target sm_70
.address_size 64
.visible .entry two(.param .u32 more)
{
    .reg .pred %p<3>;
    .reg .b32 %r<5>;
    mov.u32 %r1, %ctaid.x;
    and.b32 %r2, %r1, 3;
    setp.eq.u32 %p1, %r2, 1;
    ld.param.u32 %r4, [more];
    selp.b32 %r3, 1000, 10, %p1;
    add.u32 %r3, %r3, %r4;
again:
    sub.u32 %r3, %r3, 1;
    setp.ne.u32 %p2, %r3, 0;
    @%p2 bra again;
    ret;
}
P
cat > two.c <<'C'
#include <stdlib.h>
int cuInit(unsigned), cuDeviceGet(int *, int), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *), cuCtxSynchronize(void);
int cuModuleLoad(void **, const char *), cuModuleGetFunction(void **, void *, const char *);
int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
int main(int argc, char **argv)
{
    void *c, *m, *f;
    int d;
    unsigned more = argc > 1 ? (unsigned)atoi(argv[1]) : 0, small = 1;
    if (cuInit(0) || cuDeviceGet(&d, 0) || cuDevicePrimaryCtxRetain(&c, d) || cuCtxSetCurrent(c) || cuModuleLoad(&m, "two.ptx") ||
        cuModuleGetFunction(&f, m, "two"))
        return 2;
    if (cuLaunchKernel(f, 4, 1, 1, 32, 1, 1, 0, NULL, (void *[]){&small}, NULL)) return 3;
    if (cuLaunchKernel(f, 40, 5, 1, 64, 1, 1, 0, NULL, (void *[]){&more}, NULL)) return 3;
    return cuCtxSynchronize();
}
C
gcc -O1 -o two two.c -L"$B/lib/margay/driver" -lcuda
for more in 0 7; do "$MARGAY" run -q --device emu -t ctas -o run$more -- ./two $more > /dev/null; done
"$MARGAY" run -q --device emu -t ctas,ctas=64 -o some -- ./two > /dev/null
"$MARGAY" run -q --device emu -e '* /leader/ { @warps[launch, kernel, cta] = count() }' -o warps -- ./two > /dev/null
"$MARGAY" report warps --csv --tool expr --table warps > warps.csv
python3 - > planted.csv <<'P'
print('cta,name,half,noise')
for c in range(200): print(f'{c},x,{0.5 * (1 + (c % 4 == 1))},{c * 7919 % 13}')
P
for m in margay simpoint random first systematic sieve; do "$MARGAY" study ctas run0 run7 warps.csv planted.csv --method $m --json > $m.json; done
"$MARGAY" study ctas run0 planted.csv --ctas picked.csv > text
grep -q 'launch 1, two: 200 CTAs' text && grep -q 'fewer instructions' text
"$MARGAY" study ctas run0 --launch 0 --json > zero.json
"$MARGAY" study ctas some --json > some.json
"$MARGAY" study ctas some | grep -q 'every 4th counted'
python3 - <<'P'
import csv, json
grid = range(200)  # 40 x 5: ctaid.x is the number modulo 40, and 40 is 0 modulo 4
loops = [1000 if c % 40 % 4 == 1 else 10 for c in grid]
insts = [64 * (6 + 3 * n + 1) for n in loops]
warps = {int(r['cta']): float(r['count']) for r in csv.DictReader(open('warps.csv', newline='')) if r['launch'] == '1'}
truth = {'loop': 64 * sum(loops), 'instructions in run7': 64 * sum(7 + 3 * (n + 7) for n in loops),
         'count of warps.csv': sum(warps.values()), 'half of planted.csv': 125, 'noise of planted.csv': sum(c * 7919 % 13 for c in grid)}
of = {'loop': lambda c: 64 * loops[c], 'instructions in run7': lambda c: 64 * (7 + 3 * (loops[c] + 7)), 'count of warps.csv': lambda c: warps[c],
      'half of planted.csv': lambda c: .5 * (1 + (c % 4 == 1)), 'noise of planted.csv': lambda c: c * 7919 % 13}
for m in ('margay', 'simpoint', 'random', 'first', 'systematic', 'sieve'):
    d = json.load(open(m + '.json'))
    assert (d['launch'], d['kernel'], d['ctas'], d['counted'], d['method']) == (1, 'two', 200, 200, m), d
    assert len(d['judges']) == 5 and 'loop' in d['judges'][0]['count'], d['judges']
    picked = {s['cta']: s for s in d['selected']}
    assert abs(d['speedup']['instructions'] - sum(insts) / sum(insts[c] for c in picked)) < 1e-9
    assert abs(d['speedup']['ctas'] - 200 / len(picked)) < 1e-9
    assert abs(sum(s['weight'] for s in picked.values()) - 1) < 1e-9
    for c, s in picked.items(): assert abs(s['weight'] - s['times'] * insts[c] / sum(insts)) < 1e-12
    for j, name in zip(d['judges'], truth):
        assert name in j['count'] and abs(j['measured'] - truth[name]) < 1e-6, j
        projected = sum(s['times'] * of[name](c) for c, s in picked.items())
        assert abs(j['projected'] - projected) < 1e-6 * projected, (m, j, projected)
        assert abs(j['error_pct'] - 100 * abs(truth[name] - projected) / truth[name]) < 1e-6
    if m in ('margay', 'simpoint', 'sieve'):  # two classes, and what is the same in each class is met exactly
        assert {c % 4 == 1 for c in picked} == {True, False} and max(j['error_pct'] for j in d['judges'][:4]) < 1e-6, d
    if m == 'simpoint': assert len(picked) == 2 and sorted(round(s['times'], 9) for s in picked.values()) == [50, 150], d
    if m == 'margay': assert all(j['holds'] for j in d['judges'][:4]), d['judges']
rows = list(csv.DictReader(open('picked.csv', newline='')))
assert abs(sum(float(r['times']) for r in rows) - 200) < 1e-9 and {r['launch'] for r in rows} == {'1'}
assert json.load(open('zero.json'))['ctas'] == 4
some = json.load(open('some.json'))
assert some['counted'] == 50 and all(s['cta'] % 4 == 0 for s in some['selected']), some
P
wrong() { # TEXT ARGS...
    rc=0; "$MARGAY" study ctas "${@:2}" 2> err || rc=$?
    [ $rc = 3 ] && grep -q "$1" err || { echo "FAIL $*: $rc"; cat err; exit 1; }
}
wrong 'it has no counts of CTAs: run with -t ctas' warps
wrong 'launch 7 has no counts of CTAs' run0 --launch 7
wrong '50 of them counted' run0 some
printf 'cta,n\n5,1\n200,1\n' > bad.csv; wrong 'the launch has no such CTA' run0 bad.csv
printf 'a,b\n5,1\n' > bad.csv; wrong 'one of them cta' run0 bad.csv
printf 'cta,n\n5\n' > bad.csv; wrong 'as many cells as' run0 bad.csv
printf 'cta,n\n5,x\n' > bad.csv; wrong 'no column of numbers' run0 bad.csv
printf 'cta,n\nx,1\n' > bad.csv; wrong 'not the number of a CTA' run0 bad.csv
printf '' > bad.csv; wrong 'no column of numbers' run0 bad.csv
wrong 'nowhere' run0 nowhere.csv
