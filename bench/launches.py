"""Times of a profile's launches, for the benchmarks that compare them."""
import csv, io, json, os, subprocess


def cupti_times(margay, run):
    """Nanoseconds of each launch that CUPTI has timed (-t timeline,source=cupti), by its number. The profile has others, by pairs of events: of a
    launch of microseconds these say more of when the host called than of how long it ran."""
    if not os.path.isdir(f'{run}/trace'): return {}
    p = subprocess.Popen([margay, 'trace', 'print', '--json', run], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    work = [json.loads(l)['fields'] for l in p.stdout if '"cupti"' in l and '"kernel"' in l]
    p.wait()
    return {w['launch']: max(1, w['end'] - w['begin']) for w in work if w['work'] == 'kernel' and w['launch'] is not None}


def launch_rows(margay, run):
    """Those of `margay report --csv --table launches`."""
    text = subprocess.run([margay, 'report', run, '--csv', '--table', 'launches'], stdout=subprocess.PIPE, text=True).stdout
    return list(csv.DictReader(io.StringIO(text)))


def launches(margay, run):
    """Row and nanoseconds, of each launch that has a time."""
    known = cupti_times(margay, run)
    times = [(r, known.get(int(r['launch'])) or int(r['time_ns'] or 0)) for r in launch_rows(margay, run)]
    return [(r, t) for r, t in times if t]


def timeline(device):
    return 'timeline,source=cupti' if device == 'nvidia' else 'timeline'
