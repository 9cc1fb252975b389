#!/usr/bin/env bash
# Probes in C: those of examples/probes count what follows from the programs, from either compiler; bad ones
# are refused with file, line and reason.
set -u
command -v clang > /dev/null || { echo "needs clang"; exit 77; }
[ -x "$EX/saxpy" ] || { echo "the examples need clang"; exit 77; }
for e in saxpy divergent matmul stencil reduce; do ln -s "$EX/$e" $e; done
export XDG_CACHE_HOME=$PWD/cache PATH="$(dirname "$MARGAY"):$PATH"
failed=0
fail() { echo "FAIL $*"; failed=1; }

python3 "$ROOT/tests/cli/probes.py" "$ROOT/examples/probes" || failed=1
[ "$(ls cache/margay/probes/*.ptx | wc -l)" = 7 ] || fail "the cache does not hold the seven"
margay run --device emu -q -o again --probe "$ROOT/examples/probes/mix.c" -- ./saxpy 1000 > /dev/null || fail "from the cache"

# what was compiled is carried to a machine without a compiler
margay probe compile -o carried.ptx "$ROOT/examples/probes/mix.c" || fail "compile"
PATH=$(dirname "$MARGAY") "$MARGAY" run --device emu -o carried --probe carried.ptx -- ./saxpy 1000 2>&1 | /bin/grep -q '12,000' || fail "carried probe"
rm carried.ptx
margay report carried --tool expr | grep -q '12,000' || fail "a report without the probe"

# addresses are looked up among the live allocations; the most frequent values of what C hands over
cat > where.c <<'C'
#include <margay/probe.h>
MG_MAP(offsets, "= sum()");
MG_MAP(inside, "= count()");
MG_MAP(most, "= topk(2)");
MG_PROBE(store, "st.global") { mg_update(offsets, mg_offset()); if (mg_alloc() >= 0) mg_update(inside, 1); mg_update(most, mg_tid() < 7 ? 3 : mg_tid() < 12 ? 2 : mg_tid()); }
C
margay run --device emu -q -o where --probe where.c -- ./saxpy 1000 > /dev/null
margay report where --json | python3 -c 'import json, sys
m = {m["name"]: [(*e["key"], e["value"]) for e in m["entries"]] for m in json.load(sys.stdin)["tools"]["expr"]["maps"]}
assert m == {"@offsets": [(4 * 499500,)], "@inside": [(1000,)], "@most": [(3, 4 * 7), (2, 4 * 5)]}, m' || fail "allocations"

n=0
while IFS='|' read -r name body line message; do
    line=${line// /} message=${message# }
    printf '#include <margay/probe.h>\nMG_MAP(m, "= sum()"); MG_MAP(other, "= sum()");\nMG_PROBE(p, "ld.global") {\n%s\n}\n' "$body" > bad.c
    margay run --device emu -q --probe bad.c -- ./saxpy 1000 > out 2> err
    rc=$?
    { [ $rc = 120 ] && grep -q "bad.c:$line" err && grep -qF "$message" err; } || { fail "$name: exit $rc"; cat err; }
    n=$((n + 1))
done < "$ROOT/tests/cli/probes/bad.txt"
[ $n -ge 14 ] || fail "only $n bad probes"

refuse() { # MESSAGE TEXT
    printf '#include <margay/probe.h>\n%s\n' "$2" > bad.c
    margay run --device emu -q --probe bad.c -- ./saxpy 1000 > out 2> err && fail "accepted: $2"
    grep -qF -- "$1" err || { fail "no '$1' for: $2"; cat err; }
}
refuse "'addr' is there at instructions only" 'MG_MAP(m, "= sum()"); MG_PROBE(p, "block") { mg_update(m, mg_addr()); }'
refuse "there is no site 'kernel:begin'" 'MG_MAP(m, "= sum()"); MG_PROBE(p, "kernel:begin") { mg_update(m, 1); }'
refuse "PTX has no instruction 'ldd'" 'MG_MAP(m, "= sum()"); MG_PROBE(p, "ldd.global") { mg_update(m, 1); }'
refuse "'lien' is nothing that a probe sees" 'MG_MAP(m, "[lien] = sum()"); MG_PROBE(p, "ld") { mg_update(m, 1); }'
refuse "does not compile" 'MG_MAP(m, "= sum()"); MG_PROBE(p, "ld") { mg_update(1.5, m); }'
refuse "no probe in this file" 'MG_MAP(m, "= sum()");'
refuse "file not found" '#include "nosuch.h"'
margay run --device emu -q --probe nosuch.c -- ./saxpy 1000 2>&1 | grep -q nosuch.c || fail "a probe that is not there"
exit $failed
