"""ncu.py NCU.csv PROFILE.json: Nsight Compute's counts per machine opcode against ours per PTX opcode.

Every kernel must have been launched once. Status 1: any difference, or fewer than 20 kernels."""
import csv, json, re, sys

# opcodes of PTX -> those of machine code that nothing else becomes in these kernels
PAIRS = [
    (r'ld\.(volatile\.)?global', r'LDG'), (r'st\.(volatile\.)?global', r'STG'),
    (r'ld\.(volatile\.)?shared', r'LDS'), (r'st\.(volatile\.)?shared', r'STS'),
    (r'(atom|red)\.global', r'ATOMG?|REDG?'), (r'(atom|red)\.shared', r'ATOMS'),
    (r'bar\b|barrier\b', r'BAR'), (r'shfl', r'SHFL'), (r'vote', r'VOTE'), (r'match', r'MATCH'), (r'redux', r'REDUX'),
]
# Where lanes of a warp are in calls of different depth, machine code brings them together as it likes: threads alone
APART = {'recursion'}
METRICS = ('sass__inst_executed_per_opcode', 'sass__thread_inst_executed_true_per_opcode')


def ncu_counts(path):
    """kernel -> (warps by opcode, threads by opcode)"""
    rows = [r for r in csv.reader(open(path)) if r]
    head = next(r for r in rows if 'Kernel Name' in r)
    columns = [next(i for i, h in enumerate(head) if h.split(' ')[0] == m) for m in METRICS]
    name, found = head.index('Kernel Name'), {}
    for r in rows[rows.index(head) + 1:]:
        if len(r) == len(head) and r[name]:
            found[re.match(r'\w+', r[name])[0]] = [
                {m[1]: int(float(m[2].replace(',', ''))) for m in re.finditer(r'\b([A-Z][A-Z0-9_.]*)\s*[:=]\s*([\d,.]*\d)', r[c])} for c in columns]
    return found


def total(counts, pattern, field=None):
    return sum(v if field is None else v[field] for k, v in counts.items() if re.match(f'({pattern})(?![A-Z])', k))


def main():
    theirs, bad, n = ncu_counts(sys.argv[1]), 0, 0
    report = json.load(open(sys.argv[2]))
    assert report['coverage']['instrumented'] == report['coverage']['launches'] == len(report['kernels']), report['coverage']
    for k in report['kernels']:
        warps, threads = theirs[k['name']]
        n += 1
        for ptx, sass in PAIRS:
            ours = total(k['opcodes'], ptx, 'warp'), total(k['opcodes'], ptx, 'lanes')
            want = total(warps, sass), total(threads, sass)
            if ours[1] != want[1] or (ours[0] != want[0] and k['name'] not in APART):
                print(f"{k['name']}: {sass}: {ours[0]} warps, {ours[1]} threads here; {want[0]}, {want[1]} by Nsight Compute")
                bad += 1
        print(f"{k['name']}: {sum(total(k['opcodes'], p, 'warp') for p, _ in PAIRS)} warp instructions compared")
    print(f'{n} kernels, {bad} differences')
    return bad > 0 or n < 20


sys.exit(main())
