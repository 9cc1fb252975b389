#!/bin/sh
# libmargay-profile over profiles that are empty, truncated, older, newer, damaged or taken away: it reads them, or says why not
# by name; it neither crashes nor hangs. TORTURE=1: many random damages; else some. SEED=S.
set -u
failed=0
fail() { echo "FAIL $*"; failed=1; }
san=; [ "$VARIANT" = asan ] && san=-fsanitize=address,undefined
# shellcheck disable=SC2086
gcc $san -g -O1 -Wall -I"$ROOT/include" -o reader "$ROOT/tests/query/reader.c" -L"$B/lib" -Wl,-rpath,"$B/lib" -lmargay-profile || exit 1
"$MARGAY" run -q --device emu -o profile -- "$EX/bfs" > out || { cat out; exit 1; }
check() { # DIR PATTERN
    timeout 300 ./reader "$1" > out 2>&1 && grep -q "$2" out || { fail "$1: $?"; cat out; }
}
check profile '^read [1-9][0-9]* kernels, \([1-9][0-9]*\) launches, \1 told;'
check nowhere '^refused: .*nowhere'
mkdir empty; check empty '^refused: empty is no profile directory'
touch file; check file '^refused: .*file'
cp -r profile truncated; truncate -s 3000 truncated/profile.db; check truncated '^refused: truncated/profile.db'
cp -r profile newer; cp -r profile other
python3 - "$ROOT" <<'P' || exit 1
import os, sqlite3, sys
def change(name, text):
    with sqlite3.connect(name) as db: db.executescript(text)
version = sqlite3.connect('profile/profile.db').execute('PRAGMA user_version').fetchone()[0]
change('newer/profile.db', f'PRAGMA user_version={version + 1}')
change('other/profile.db', 'PRAGMA application_id=1')
os.mkdir('older')
change('older/profile.db', open(sys.argv[1] + '/tests/cli/profile-v1.sql').read())
P
check newer '^refused: newer/profile.db was written by a newer margay'
check other '^refused: other/profile.db is no margay profile'
check older '^read [1-9][0-9]* kernels, \([1-9][0-9]*\) launches, \1 told;'
cp -r profile text; echo 'no database' > text/profile.db; check text '^refused: text/profile.db'
cp -r profile ring; pid=$(python3 -c 'import sqlite3; print(sqlite3.connect("ring/profile.db").execute("select pid from process").fetchone()[0])')
for bytes in 0 7 10000 6000000; do head -c $bytes /dev/urandom > "ring/live-$pid.ring"; check ring '^read'; done
# a ring whose head is right and whose numbers of launches and kernels are not: memory does not grow with them
python3 - "$pid" <<'P' || exit 1
import struct, sys
pid, n = int(sys.argv[1]), 300
head = struct.pack('<QIIQQQIIII', 0x3145564c4947524d, pid, 128, 0, n, 0, 0, 0, 0, 0)
entries = b''.join(struct.pack('<12Q', k + 1, (1 << 35) + (k << 30), 1, 5, 5, 0, 5, 5, 0, 0, (1 << 23) + k, 0) + bytes(32) for k in range(n))
open(f'ring/live-{pid}.ring', 'wb').write(head.ljust(4096, b'\0') + entries)
P
limit=500000; [ "$VARIANT" = asan ] && limit=unlimited
(ulimit -v $limit; check ring '^read [1-9][0-9]* kernels, [1-9][0-9]* launches, [1-9][0-9]* told;'; exit $failed) || failed=1

seed=${SEED:-$(date +%s)}
echo "     SEED=$seed"
python3 - "$seed" "${TORTURE:+400}" <<'P' || failed=1
import random, shutil, subprocess, sys
r, bad, refused = random.Random(int(sys.argv[1])), 0, 0
n = int(sys.argv[2] or 25)
for k in range(n):
    shutil.rmtree('c', ignore_errors=True)
    shutil.copytree('profile', 'c')
    d = bytearray(open('c/profile.db', 'rb').read())
    how = r.choice(('bits', 'cut', 'page', 'swap'))
    at = r.randrange(len(d) // 4096) * 4096
    if how == 'bits':
        for _ in range(r.choice((1, 10, 200))): d[r.randrange(len(d))] ^= 1 << r.randrange(8)
    elif how == 'cut': del d[r.randrange(len(d)):]
    elif how == 'page': d[at:at + 4096] = r.randbytes(4096)
    else:
        to = r.randrange(len(d) // 4096) * 4096
        d[at:at + 4096], d[to:to + 4096] = d[to:to + 4096], d[at:at + 4096]
    open('c/profile.db', 'wb').write(d)
    try:
        p = subprocess.run(['./reader', 'c'], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors='replace', timeout=300)
        good = p.returncode == 0 and p.stdout.startswith(('read', 'refused: c'))
        why = f'exit {p.returncode}: {p.stdout[-300:]}'
    except subprocess.TimeoutExpired:
        good, why = False, 'hangs'
    refused += good and p.stdout.startswith('refused')
    if not good:
        bad += 1
        print(f'FAIL damage {k} ({how}): {why}')
print(f'     {n} damaged, {refused} refused')
sys.exit(bad > 0)
P
exit $failed
