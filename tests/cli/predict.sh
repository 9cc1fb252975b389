#!/usr/bin/env bash
# margay study predict: costs that were planted are found; a program left out is predicted; a witness for the fit.
set -euo pipefail
make -s -C "$ROOT" VARIANT="$VARIANT" "build/$VARIANT/bin/mkprofile" >/dev/null
"$B/bin/mkprofile" base
python3 "$ROOT/tests/cli/predict.py" "$MARGAY"
# ---- the table over what two devices recorded: programs that both have, others by name
for i in 0 1 2 3; do
    for d in h f; do
        mkdir -p "on-$d/p$i" && cp -r "$d$i" "on-$d/p$i/counts" && cp -r "$d$i" "on-$d/p$i/a.0" && touch "on-$d/p$i/a.0.done"
    done
done
rm -r on-f/p3 && cp -r on-f/p2 on-f/p3
"$ROOT/bench/predict/run" --here on-h --there on-f --margay "$MARGAY" > table
grep -q '^p3 is left out: .*sequences differ' table && [ "$(grep -c '^| p[0-3] | 40 |' table)" = 3 ] && grep -q '^| geometric mean |' table && grep -q '^of 3 programs' table || { cat table; exit 1; }
