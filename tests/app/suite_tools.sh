#!/bin/sh
# scripts/suite-tools: what tools counted on two devices is equal; a planted difference in a number of threads is found, one in a
# number of warps is told apart, and a program with other block counts is left out.
set -u
second=emu
[ -e "$B/lib/margay/libmargay-cpu.so" ] && second=cpu
for program in reduce divergent histogram; do
    for device in emu $second; do
        rm -rf p
        "$MARGAY" run -q --device $device -t opcodes,lanes=on -t lanes -t memory,level=bytes -t functions -o p -- "$EX/$program" > out 2> err || { cat out err; exit 1; }
        folder=$([ $device = emu ] && echo first || echo second)
        mkdir -p $folder/$program
        "$MARGAY" report p --json > $folder/$program/report.json || exit 1
    done
done
[ -d second ] || cp -r first second
"$ROOT/scripts/suite-tools" first second > out || { cat out; exit 1; }
grep -q '^3 equal; [1-9][0-9]* numbers' out || { echo "FAIL three programs"; cat out; exit 1; }
cp -r second planted
python3 - <<'P' || exit 1
import json
def change(program, fn):
    r = json.load(open(f'planted/{program}/report.json'))
    fn(r)
    json.dump(r, open(f'planted/{program}/report.json', 'w'))
def accesses(r): r['tools']['memory']['sites'][0]['accesses'] += 1
def divergent(r): next(k for k in r['tools']['lanes']['kernels'] if k['branches'])['branches'][0]['divergent'] += 1
def entries(r): r['kernels'][0]['blocks'][0]['thread_entries'] += 1
change('reduce', accesses), change('divergent', divergent), change('histogram', entries)
P
"$ROOT/scripts/suite-tools" first planted > out && { echo "FAIL a difference was not found"; exit 1; }
grep -q '^reduce.differs.*accesses' out && grep -q '^divergent.threads equal.*divergent' out && grep -q '^histogram.left out.*blocks differ' out || { echo "FAIL what differs"; cat out; exit 1; }
