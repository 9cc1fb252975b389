#!/bin/sh
# One thread, 2^33 + 10 times through a loop: every count exact.
set -u
R=${ROUNDS:-8589934602}
gcc -O1 -o long "$ROOT/tests/gpu/long.c" -ldl || exit 1
timeout 100 "$MARGAY" run -q --device nvidia -o profile -- ./long "$R" || { echo "exit $?"; exit 1; }
"$MARGAY" report profile --json > profile.json && python3 - "$R" <<'P'
import json, sys
k = json.load(open('profile.json'))['kernels'][0]
got, n = [b['thread_entries'] for b in k['blocks']], int(sys.argv[1])
assert k['incomplete'] == 0 and got == [1, n, 1], got
print(f'{n} rounds counted')
P
