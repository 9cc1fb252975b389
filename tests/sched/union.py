"""union.py MARGAY DIR JSON: is what margay sched charged its programs, in JSON, the time in which the device worked for each, which is
the union of the launches' times in the profiles below DIR? To 3 %: the profile's lie on the host's clock, and launches that run
native are timed by events."""
import json, subprocess, sys

margay, directory, result = sys.argv[1:]
for p in json.load(open(result))['programs']:
    launches = json.loads(subprocess.check_output([margay, 'report', '--json', '--per-launch', f'{directory}/{p["name"]}']))['launches']
    spans = sorted((l['start_ns'], l['start_ns'] + l['time_ns']) for l in launches if l['time_ns'])
    union = until = 0
    for begin, end in spans:
        union += max(0, end - max(begin, until))
        until = max(until, end)
    print(p['name'], len(launches), 'launches, sum', sum(e - b for b, e in spans), 'union', union, 'charged', p['device_ns'])
    assert len(spans) == len(launches) == p['launches'], len(spans)
    assert abs(p['device_ns'] - union) < 0.03 * union, p['name']
