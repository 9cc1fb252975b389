#!/bin/sh
# The kernels of a graph are told in the stream that launched it, not in the one where they were captured; their spans name that call.
set -u
gcc -O1 -Wall -Werror -I"$ROOT/src" -o contexts "$ROOT/tests/inject/contexts.c" -L"$B/lib/margay/driver" -lcuda || exit 1
for d in emu cpu nvidia; do
    [ $d != nvidia ] || { LD_LIBRARY_PATH=$B/test/driver; export LD_LIBRARY_PATH; }
    for more in '' '-t timeline'; do
        rm -rf p
        "$MARGAY" run -q --device $d -t blocks $more -o p -- ./contexts > out 2> err && [ "$(grep -c ok out)" = 8 ] || { echo "FAIL $d $more"; cat out err; exit 1; }
        "$MARGAY" report p --json > p.json || exit 1
        rm -f spans.csv
        [ -z "$more" ] || "$MARGAY" export csv p -o spans.csv || exit 1
        python3 - "$d $more" <<'P' || exit 1
import csv, json, os, sys
launches = json.load(open('p.json'))['launches']
of_graph = [l for l in launches if l['graph']]
streams = {l['stream'] for l in launches if not l['graph']}
assert len(launches) == 18 and len(of_graph) == 1, (sys.argv, of_graph)
assert of_graph[0]['stream'] == max(streams) + 2, (sys.argv, of_graph, streams) # the captured one is numbered before it
if os.path.exists('spans.csv'):
    spans = list(csv.DictReader(open('spans.csv')))
    call, = {s['correlation'] for s in spans if s['name'] == 'cuGraphLaunch'}
    kernels = [s for s in spans if s['kind'] == 'kernel' and s['correlation'] == call]
    assert len(kernels) == 1 and kernels[0]['stream'] == str(of_graph[0]['stream']), (sys.argv, kernels)
P
    done
    echo "ok   the stream of a graph on $d"
done
