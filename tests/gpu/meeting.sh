#!/bin/sh
# Random kernels on the GPU: twins of four sets of tools tell how often warps enter each block. They agree wherever the report does not say
# lanes_may_be_apart (src/analysis/meet.h); blocks of `ret` alone are left out. New seeds each time, printed; SEEDS=A-B: these.
set -u
tools=$ROOT/tests/fuzz/kernels first=$(($(date +%s) % 100000 * 1000))
seeds=${SEEDS:-$first-$((first + 29))}
echo "seeds $seeds"
gcc -O1 -Wall -o launch "$tools/launch.c" -L"$B/lib/margay/driver" -lcuda || exit 1
exec python3 - "$MARGAY" "$tools/generate" "$seeds" <<'P'
import concurrent.futures, json, os, subprocess, sys
margay, generate, seeds = sys.argv[1:]
first, last = map(int, seeds.split('-'))
SETS = (['blocks,warps=on'], ['lanes'], ['blocks,warps=on', 'memory'], ['lanes', 'memory'])


def entries(kernel, names):
    """Warp entries of each block, and what is known of the block."""
    profile = f'{kernel}.{len(names)}.{names[0][:5]}'
    tools = [x for n in names for x in ('-t', n)]
    r = subprocess.run([margay, 'run', '-q', '--strict', '--device', 'nvidia', *tools, '-o', profile, '--', './launch', kernel], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=300)
    if r.returncode:
        return None, f'{kernel} under {names}: status {r.returncode}: {r.stderr.decode()[-300:]}'
    j = json.loads(subprocess.run([margay, 'report', profile, '--json'], stdout=subprocess.PIPE, check=True).stdout)
    lanes = {b['id']: sum(b['lanes'][1:]) for b in j['tools']['lanes']['kernels'][0]['blocks']} if 'lanes' in j['tools'] else None
    blocks = j['kernels'][0]['blocks']
    return [(lanes.get(b['id'], 0) if lanes is not None else b['warp_entries']) for b in blocks], blocks


def look(seed):
    kernel, said = f'k{seed}.ptx', []
    with open(kernel, 'wb') as f:
        subprocess.run([generate, str(seed), '--rounded'], stdout=f, check=True)
    told = [entries(kernel, s) for s in SETS]
    if bad := [t[1] for t in told if t[0] is None]:
        return 0, 0, 0, bad
    marked = differ = 0
    for i, b in enumerate(told[0][1]):
        if b['instructions'] == 1 and not b['succ']:
            continue
        numbers = [t[0][i] for t in told]
        marked += b['lanes_may_be_apart']
        if len(set(numbers)) > 1 and b['lanes_may_be_apart']:
            differ += 1
        elif len(set(numbers)) > 1:
            said.append(f'seed {seed}, block {b["id"]} {b["label"]} of {b["function"]}, line {b["ptx_line"]}: warps entered it {numbers} times, and nothing says that lanes may be apart')
    return len(told[0][1]), marked, differ, said


with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    all_ = list(pool.map(look, range(first, last + 1)))
for one in all_:
    for line in one[3]:
        print(line)
n, marked, differ = (sum(x[k] for x in all_) for k in range(3))
print(f'{n} blocks: of {marked} where lanes may be apart {differ} differ, of the others {sum(len(x[3]) for x in all_)}')
sys.exit(any(x[3] for x in all_) or not n or marked in (0, n))
P
