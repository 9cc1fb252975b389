"""Both ends of every message of tests/inject/mpi_messages.c, as the exports join them: by lengths, which no two messages
share. usage: mpi_messages.py OUT CHROME PERFETTO [OTF2-PRINT's definitions, events]"""
import collections, json, os, re, sys
sys.path.insert(0, os.path.join(os.environ['ROOT'], 'tests/cli'))
from export_spans import fields, one
RANKS = 4
want, came = collections.Counter(), collections.Counter()
for line in open(sys.argv[1]):
    word, *numbers = line.split()
    numbers = list(map(int, numbers))
    if word == 'sent':
        want[tuple(numbers)] += 1                       # length, from, to
    elif word == 'got':
        came[tuple(numbers)] += 1
assert collections.Counter((n, to) for (n, _, to), k in want.items() for _ in range(k)) == came, 'the program itself'
assert len(want) == 62 and sum(want.values()) == 70, want

# Chrome: the two halves of an arrow say the length of their own record
t = json.load(open(sys.argv[2]))
ns = lambda us: round(us * 1000)
rank_of, slices, ends = {}, collections.defaultdict(list), collections.defaultdict(dict)
for e in t['traceEvents']:
    if e['ph'] == 'M' and e['name'] == 'process_name':
        rank_of[e['pid']] = int(re.search(r'rank (\d+)', e['args']['name'])[1])
    elif e['ph'] == 'X' and e['cat'] == 'mpi':
        slices[e['pid'], e['tid']].append((ns(e['ts']), ns(e['ts']) + ns(e['dur']), e['name']))
    elif e['ph'] in 'sf' and e['cat'] == 'message':
        assert e['ph'] not in ends[e['id']], e
        ends[e['id']][e['ph']] = e
around = lambda e: min((s for s in slices[e['pid'], e['tid']] if s[0] <= ns(e['ts']) < s[1]), key=lambda s: s[1] - s[0])
got, arrows, names = collections.Counter(), collections.Counter(), collections.Counter()
for id_, pair in ends.items():
    assert set(pair) == {'s', 'f'}, pair
    s, f = pair['s'], pair['f']
    a, b = s['args'], f['args']
    assert a['bytes'] == b['bytes'] and a['tag'] == b['tag'], ('joined the wrong ends', s, f)
    assert a['peer'] == rank_of[f['pid']] and b['peer'] == rank_of[s['pid']], (s, f)
    tail, head = around(s), around(f)
    assert tail[0] == ns(s['ts']) and tail[0] <= head[1], (tail, head)
    got[a['bytes'], rank_of[s['pid']], rank_of[f['pid']]] += 1
    arrows[tail[0], head[0]] += 1
    names[tail[2], head[2]] += 1
assert got == want, ('too many', got - want, 'missing', want - got)
for tail in ('MPI_Isend', 'MPI_Send', 'MPI_Ssend', 'MPI_Sendrecv', 'MPI_Start', 'MPI_Startall'):
    assert any(n[0] == tail for n in names), (tail, names)
for head in ('MPI_Wait', 'MPI_Waitany', 'MPI_Testany', 'MPI_Testsome', 'MPI_Waitall', 'MPI_Testall', 'MPI_Recv', 'MPI_Sendrecv', 'MPI_Mrecv'):
    assert any(n[1] == head for n in names), (head, names)

# Perfetto: the same arrows, between the begins of slices
base, flows = t['otherData']['base_ns'], collections.defaultdict(list)
for _, packet in fields(open(sys.argv[3], 'rb').read()):
    packet = fields(packet)
    for f, v in fields(one(packet, 11, b'')):
        if f in (47, 48) and v >> 63:
            flows[v].append((f, one(packet, 8) - base))
assert all(sorted(f for f, _ in v) == [47, 48] for v in flows.values()), 'a flow without two ends'
assert collections.Counter(tuple(n for _, n in sorted(v)) for v in flows.values()) == arrows, 'perfetto'

# CSV and SQLite: both ends have one number
import csv, sqlite3
rows = [r for r in csv.DictReader(open('out.csv', newline='')) if r['kind'] == 'message']
pid_rank = {pid: rank for pid, rank in rank_of.items()}
ends = collections.defaultdict(dict)
for r in rows:
    ends[r['message']][r['name']] = int(r['bytes']), pid_rank[int(r['process'])], int(r['peer']), int(r['tag']), r['communicator']
assert all(set(e) == {'sent', 'received'} for e in ends.values()) and '' not in ends, 'csv: a message without two ends'
assert all((s[0], s[1], s[2]) == (r[0], r[2], r[1]) and s[3:] == r[3:] for s, r in ((e['sent'], e['received']) for e in ends.values())), 'csv'
assert collections.Counter(e['sent'][:3] for e in ends.values()) == want, 'csv'
db = sqlite3.connect('out.db')
assert collections.Counter(db.execute('SELECT bytes, from_rank, to_rank FROM transfers')) == want, 'sqlite'
assert collections.Counter((p - base, d - base) for p, d in db.execute('SELECT posted_ns, received_ns FROM transfers') if p and d).total() == sum(want.values()), 'sqlite: calls'
assert all(p < d for p, d in db.execute('SELECT posted_ns, received_ns FROM transfers')), 'sqlite: times'
assert collections.Counter(db.execute('SELECT send, receive FROM transfers')) == names, 'sqlite: names of calls'
assert db.execute('SELECT count(*) FROM messages').fetchone()[0] == len(rows) == 2 * sum(want.values())

# OTF2: each event inside its region, ranks of communicators led back to the world's
if len(sys.argv) > 4:
    group_of, members, comms = {}, {}, {}
    locations = {}
    for line in open(sys.argv[4]):
        m = re.match(r'LOCATION_GROUP +(\d+)  Name: "(?:rank (\d+))?', line)
        if m and m[2]:
            group_of[int(m[1])] = int(m[2])
        m = re.match(r'LOCATION +(\d+) .*Group: .*<(\d+)>$', line)
        if m and int(m[2]) in group_of:
            locations[int(m[1])] = group_of[int(m[2])]
        m = re.match(r'GROUP +(\d+) .*Type: (\w+).*Members: (.*)$', line)
        if m:
            text = re.sub('".*?"', '', m[3])
            members[int(m[1])] = m[2], [int(x) for x in re.findall(r'<(\d+)>' if m[2] == 'COMM_LOCATIONS' else r'(\d+) \(', text)]
        m = re.match(r'COMM +(\d+) .*Group: .*?<(\d+)>', line)
        if m:
            comms[int(m[1])] = int(m[2])
    world = [v for k, v in members.values() if k == 'COMM_LOCATIONS']
    assert len(world) == 1 and [locations[l] for l in world[0]] == list(range(RANKS)), (members, locations)
    to_world = lambda comm, rank: members[comms[comm]][1][rank]
    sent, received, opened, requests = collections.Counter(), collections.Counter(), collections.defaultdict(list), collections.defaultdict(set)
    collectives, depth = collections.Counter(), collections.Counter()
    for line in open(sys.argv[5]):
        m = re.match(r'(\w+) +(\d+) +(\d+)(.*)$', line)
        if not m:
            continue
        kind, where, text = m[1], int(m[2]), m[4]
        if kind == 'ENTER':
            opened[where].append(re.search('"(.*)"', text)[1])
        elif kind == 'LEAVE':
            opened[where].pop()
        elif kind.startswith('MPI_'):
            assert opened[where] and opened[where][-1].startswith('MPI_'), line
        if kind in ('MPI_SEND', 'MPI_ISEND'):
            m = re.search(r'Receiver: (\d+) .*?Communicator: .*?<(\d+)>, Tag: (\d+), Length: (\d+)', text)
            sent[int(m[4]), locations[where], to_world(int(m[2]), int(m[1]))] += 1
            assert kind == 'MPI_SEND' or opened[where][-1] in ('MPI_Isend', 'MPI_Start', 'MPI_Startall'), line
        elif kind in ('MPI_RECV', 'MPI_IRECV'):
            m = re.search(r'Sender: (\d+) .*?Communicator: .*?<(\d+)>, Tag: (\d+), Length: (\d+)', text)
            received[int(m[4]), to_world(int(m[2]), int(m[1])), locations[where]] += 1
        if kind in ('MPI_ISEND', 'MPI_IRECV_REQUEST'):
            requests[kind].add((where, int(re.search(r'Request: (\d+)', text)[1])))
        elif kind in ('MPI_ISEND_COMPLETE', 'MPI_IRECV'):
            r = where, int(re.search(r'Request: (\d+)', text)[1])
            requests[{'MPI_IRECV': 'MPI_IRECV_REQUEST'}.get(kind, 'MPI_ISEND')].remove(r)
        elif kind == 'MPI_COLLECTIVE_BEGIN':
            depth[where] += 1
        elif kind == 'MPI_COLLECTIVE_END':
            depth[where] -= 1
            m = re.search(r'Operation: (\w+), Communicator: .*?<(\d+)>, Root: (\w+).*Sent: (\d+).*Received: (\d+)', text)
            collectives[m[1], len(members[comms[int(m[2])]][1]), m[3], int(m[4]), int(m[5])] += 1
    assert sent == want and received == want, ('sent', sent - want, want - sent, 'received', received - want, want - received)
    assert not any(requests.values()) and not any(depth.values()), requests
    assert collectives == {('BARRIER', 4, 'NONE', 0, 0): 5 * 4, ('ALLREDUCE', 2, 'NONE', 8, 8): 4, ('BCAST', 4, '2', 16, 4): 1, ('BCAST', 4, '2', 0, 4): 3}, collectives
