#!/bin/sh
# Tool values from a run to its report: how many values each instruction of a reduction loads and stores has a closed
# form, alone and beside other tools, on every device without a GPU.
set -u
failed=0
for device in emu $([ -e "$B/lib/margay/libmargay-cpu.so" ] && echo cpu); do
    for tools in '-t values' '-t values -t span -t memory'; do
        rm -rf p
        "$MARGAY" run -q --device $device $tools -o p -- "$EX/reduce-rt" > out 2>&1 || { echo "FAIL $device $tools"; cat out; failed=1; }
        "$MARGAY" report p --json > p.json
        python3 - > why 2>&1 <<'P' || { echo "FAIL $device $tools"; cat why; failed=1; }
import json
r = json.load(open('p.json'))
ctas, threads = 1024, 256
sums = {}
for s in r['tools']['values']['sites']:
    sums[s['op']] = sums.get(s['op'], 0) + s['values']
added = ctas * (threads - 1)  # a CTA's tree of sums has one node less than leaves
want = {'ld.global.u32': ctas * threads, 'st.shared.u32': ctas * threads + added, 'ld.shared.u32': 2 * added + ctas, 'st.global.u32': ctas}
assert sums == want, (sums, want)
P
    done
done
exit $failed
