"""witness.py [--differ] NAME...: Nsight Compute's counts against those of the tools `lanes` and `memory`.

Of each program NAME.raw.csv and NAME.source.csv are what ncu prints of a native run, NAME.json is the report of a run under the tools,
NAME.twin.source.csv what ncu prints of such a run, of kernels that differ (--differ names these, for a regular expression). One line a kernel, all its launches together:

  memory   requests and sectors of loads, stores and atomics in global memory: equal, or which are not
  lanes    active lanes over lane slots, of all machine instructions as ncu counts them; and the share of these instructions that
           as many warps and threads executed as some block of ours was entered by (what the assembler turned into predicates is
           executed as the block around it). Where all are, the ratio follows from our blocks. Instructions that bring lanes
           together or end them (BSYNC, EXIT, RET ...) are executed by each group that comes there and are left out
  by PTX   lane use as the tool prints it: each block weighted by its PTX instructions instead of the machine's
  why not  where either is not equal: does the machine code that was counted execute each block and each access as we say? Then lanes
           meet elsewhere in it, or it is other code (loops that the assembler unrolls, calls it merges)

Status 1: fewer than 20 kernels equal in memory or in lanes, or one that neither is equal nor executes as we say."""
import csv, json, os, re, sys

LEAVING = re.compile(r'(@!?U?P\d\s+)?(BSYNC|EXIT|RET|BREAK|WARPSYNC|YIELD|NOP)\b')
# In twins of recursive functions lanes meet between our look and the instruction: told, not judged
APART = {'recursion'}
KINDS = {'ld': 'Load', 'st': 'Store', 'atom': 'Atomic', 'red': 'Reduction'}


def number(text):
    return int(float(text.replace(',', '') or 0)) if re.fullmatch(r'[\d,.]*', text) else 0


def base(name):
    return re.match(r'[\w:~$]+', re.sub(r'^.*?\bvoid ', '', name))[0]


def hardware(path):
    """kernel -> metric -> sum over launches"""
    rows = [r for r in csv.reader(open(path)) if r]
    head = next(i for i, r in enumerate(rows) if 'Kernel Name' in r)
    found = {}
    for r in rows[head + 1:]:
        row = dict(zip(rows[head], r))
        if row.get('Kernel Name'):
            sums = found.setdefault(base(row['Kernel Name']), {})
            for k, v in row.items():
                if k.endswith('.sum'):
                    sums[k] = sums.get(k, 0) + number(v)
    return found


def instructions(path):
    """kernel -> address -> [text, warps, threads, threads with a true guard, sectors, space, kind], over all launches"""
    tables, head = [], None
    for r in csv.reader(open(path)):
        if not r:
            continue
        if r[0] == 'Kernel Name':
            tables.append((base(r[1]), []))
        elif r[0] == 'Address':
            head = {n: i for i, n in enumerate(r)}
        elif head and tables:
            of = lambda n: r[head[n]]
            tables[-1][1].append((of('Address'), of('Source').strip(), number(of('Instructions Executed')), number(of('Thread Instructions Executed')),
                                  number(of('Predicated-On Thread Instructions Executed')), number(of('L2 Theoretical Sectors Global')), of('Address Space'), of('Access Operation')))
    if len(tables) % 2 == 0 and all(tables[i] == tables[i + 1] or [x[2:6] for x in tables[i][1]] == [x[2:6] for x in tables[i + 1][1]] for i in range(0, len(tables), 2)):
        tables = tables[::2] # ncu 2025.3 prints each launch twice
    found = {}
    for name, rows in tables:
        of_kernel = found.setdefault(name, {})
        for address, text, warps, threads, true, sectors, space, kind in rows:
            i = of_kernel.setdefault(address, [text, 0, 0, 0, 0, space, kind])
            i[1:5] = [a + b for a, b in zip(i[1:5], (warps, threads, true, sectors))]
    return found


def tools(path):
    """kernel -> blocks as (warps, threads), accesses to global memory, lane use by PTX instructions"""
    report, found = json.load(open(path)), {}
    assert report['coverage']['instrumented'] == report['coverage']['launches'], report['coverage']
    lanes = {k['kernel']: k for k in report['tools']['lanes']['kernels']}
    for k in report['kernels']:
        blocks = [(sum(b['lanes'][1:]), sum(i * n for i, n in enumerate(b['lanes']))) for b in lanes[k['id']]['blocks']]
        sites = [s for s in report['tools']['memory']['sites'] if s['kernel'] == k['id'] and s['space'] == 'global']
        name = base(k.get('demangled') or k['name'])
        if name in found:
            found[name] = None # several of one name: ncu tells them together
        else:
            found[name] = (blocks, sites, lanes[k['id']]['lane_use'])
    return {n: f for n, f in found.items() if f}


def of_kind(site):
    return next(k for k in ('ld', 'st', 'atom', 'red') if site['op'].startswith(k))


def compare_memory(sites, metrics):
    """Equal?, and what is not. An atomic whose result nobody uses is a reduction in machine code."""
    different, requests, sectors = [], 0, 0
    for kinds in (('ld',), ('st',), ('atom', 'red')):
        for what in ('requests', 'sectors'):
            ours = sum(s[what] for s in sites if of_kind(s) in kinds)
            ncu = sum(metrics.get(f'l1tex__t_{what}_pipe_lsu_mem_global_op_{k}.sum', 0) for k in kinds)
            requests, sectors = requests + ours * (what == 'requests'), sectors + ours * (what == 'sectors')
            if ours != ncu:
                different.append(f'{"/".join(kinds)} {what} {ours} of {ncu}')
    return different, requests, sectors


def compare_lanes(blocks, code):
    """Ratio by ncu, share of warp instructions executed as a block of ours, one that is not."""
    known = set(blocks) | {(0, 0)}
    judged = [i for i in code.values() if not LEAVING.match(i[0]) or (i[1], i[2]) in known]
    warps = sum(i[1] for i in judged)
    strange = [i for i in judged if (i[1], i[2]) not in known]
    ratio = sum(i[2] for i in code.values()) / (32 * sum(i[1] for i in code.values()) or 1)
    return ratio, 1 - sum(i[1] for i in strange) / (warps or 1), strange


def twin_as_said(blocks, sites, code):
    """What of ours the twin's own machine code does not execute so."""
    executed = {(i[1], i[2]) for i in code.values()}
    missing = [f'block of {w} warps, {t} threads' for w, t in blocks if t and (w, t) not in executed]
    accesses = {}
    for i in code.values():
        if i[5] == 'Global':
            accesses.setdefault((i[6], i[3]), []).append((i[1], i[4]))
    for s in sites:
        kinds = {KINDS[of_kind(s)]} | ({'Reduction'} if of_kind(s) == 'atom' else set())
        if s['accesses'] and not any(sectors == s['sectors'] and warps >= s['requests'] for k in kinds for warps, sectors in accesses.get((k, s['accesses']), [])):
            missing.append(f'{s["op"]} in line {s["ptx_line"]}: {s["requests"]} requests, {s["sectors"]} sectors')
    return missing


def differing(program):
    metrics, code, ours = hardware(program + '.raw.csv'), instructions(program + '.source.csv'), tools(program + '.json')
    return [n for n in code if n in ours and n in metrics and (compare_memory(ours[n][1], metrics[n])[0] or compare_lanes(ours[n][0], code[n])[2])]


def main():
    if sys.argv[1] == '--differ':
        print('|'.join(differing(sys.argv[2])))
        return 0
    equal_memory = equal_lanes = unexplained = apart = n = 0
    print(f'{"kernel":24} {"requests":>10} {"sectors":>11} {"memory":7} {"ncu lanes":>9} {"as blocks":>9} {"lanes":6} {"by PTX":>6}  why not')
    for program in sys.argv[1:]:
        metrics, code, ours, twin = hardware(program + '.raw.csv'), instructions(program + '.source.csv'), tools(program + '.json'), {}
        if os.path.exists(program + '.twin.source.csv'):
            twin = instructions(program + '.twin.source.csv')
        for name in code:
            if name not in ours or name not in metrics:
                print(f'{name:24} left out: {"several kernels of this name" if name in metrics else "no counts"}')
                continue
            blocks, sites, by_ptx = ours[name]
            different, requests, sectors = compare_memory(sites, metrics[name])
            ratio, share, strange = compare_lanes(blocks, code[name])
            why = different + [f'{i[0]}: {i[1]} warps, {i[2]} threads, as no block of ours' for i in strange[:1]]
            n, equal_memory, equal_lanes = n + 1, equal_memory + (not different), equal_lanes + (not strange)
            if why:
                missing = twin_as_said(blocks, sites, twin.get(name, {}))
                why.append(f'in the twin otherwise: {"; ".join(missing[:2])}' if missing else f'the twin executes all {len(blocks)} blocks and {len(sites)} accesses as counted')
                unexplained, apart = unexplained + (bool(missing) and name not in APART), apart + (bool(missing) and name in APART)
            print(f'{name:24} {requests:10} {sectors:11} {"differ" if different else "equal":7} {ratio:9.4f} {100 * share:8.2f}% {"differ" if strange else "equal":6} {by_ptx:6.3f}  {"; ".join(why)}')
    print(f'{n} kernels: memory equal in {equal_memory}, lanes in {equal_lanes}; {unexplained} unexplained, {apart} recursive')
    return unexplained > 0 or min(equal_memory, equal_lanes) < 20


sys.exit(main())
