"""What a profile says of the kernels that a program generated.
usage: reach.py PROFILE.json NAME-PATTERN LEAST-PERCENT   fails when fewer of those launches were instrumented"""
import json, re, sys
r = json.load(open(sys.argv[1]))
c, made = r['coverage'], re.compile(sys.argv[2])
all_, native = {}, {}
for k in r['kernels']:
    all_[k['name']] = all_.get(k['name'], 0) + k['launches']
for n in c['native']:
    native[n['kernel']] = native.get(n['kernel'], 0) + n['launches']
mine = sum(n for k, n in all_.items() if made.search(k))
left = sum(n for k, n in native.items() if made.search(k))
print(f"{c['launches']} launches of {len(all_)} kernels, {c['instrumented']} instrumented, {c['failed']} failed, {c['unknown']} unknown; "
      f"generated: {mine - left} of {mine} launches instrumented")
for n in sorted(c['native'], key=lambda n: -n['launches'])[:12]:
    print('  native', n['launches'], n['kernel'][:70], '|', n['reason'][:140])
assert sum(native.values()) == c['launches'] - c['instrumented'], 'a native launch has no kernel and reason'
assert all(n['kernel'] and n['reason'] for n in c['native']), 'a native kernel without name or reason'
assert mine and 100.0 * (mine - left) / mine >= float(sys.argv[3]), 'too few'
