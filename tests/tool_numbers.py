"""What tools say in a report (`margay report --json`), reduced to what another device has to say, too. Used by
tests/fuzz/kernels/compare and scripts/suite-tools."""

TIMES = {'inclusive_cycles', 'exclusive_cycles', 'cycles'}              # never the same twice
OF_WARPS = {'lane_use', 'divergent', 'idle_slots', 'slots', 'slots_idle', 'requests', 'sectors', 'sectors_moved', 'sectors_wasted', 'lines', 'bank_conflicts',
            'passes_made', 'passes_wasted', 'patterns', 'warps', 'uniform', 'affine', 'warp'}
OF_ORDER = {'zeros', 'nans', 'redundant', 'least', 'most', 'bits_needed', 'constant'} # what atomics give back


def sum_of_lanes(lanes):
    return sum(i * n for i, n in enumerate(lanes)) % (1 << 64)


def numbers(x, threads):
    """What a tool says, without times; threads: without what depends on where lanes meet."""
    if isinstance(x, list):
        return [numbers(v, threads) for v in x]
    if not isinstance(x, dict):
        return x
    chance = (OF_WARPS | OF_ORDER if str(x.get('op')).startswith('atom') else OF_WARPS) if threads else set()
    kept = {k: numbers(v, threads) for k, v in x.items() if k not in TIMES | {'kernel'} | chance}
    if threads and isinstance(kept.get('lanes'), list): # a distribution
        kept['lanes'] = sum_of_lanes(kept['lanes'])
    return kept


def of_tools(report):
    """kernel's name -> tool -> table -> rows. Kernels of one name are told together."""
    found = {k['name']: {} for k in report['kernels']}
    names = {k['id']: k['name'] for k in report['kernels']}
    for tool, said in (report.get('tools') or {}).items():
        for table, rows in said.items():
            for row in rows if isinstance(rows, list) else []:
                if isinstance(row, dict) and row.get('kernel') in names:
                    found[names[row['kernel']]].setdefault(tool, {}).setdefault(table, []).append(row)
    return found


def first_difference(a, b, where=''):
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        return next((d for k in a if (d := first_difference(a[k], b[k], f'{where}.{k}'))), None)
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        places = [f'{where}[{x.get("ptx_line", x.get("id", i)) if isinstance(x, dict) else i}]' for i, x in enumerate(a)]
        return next((d for p, x, y in zip(places, a, b) if (d := first_difference(x, y, p))), None)
    return None if a == b else f'{where}: {a}, {b}'


def how_many(x):
    if isinstance(x, dict):
        return sum(how_many(v) for v in x.values())
    return sum(how_many(v) for v in x) if isinstance(x, list) else int(isinstance(x, (int, float)) and not isinstance(x, bool))
