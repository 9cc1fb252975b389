#!/usr/bin/env bash
# margay study overview: figures against closed forms and against the report's JSON; what is missing is said.
set -euo pipefail
make -s -C "$ROOT" VARIANT="$VARIANT" "build/$VARIANT/bin/mkprofile" >/dev/null
"$B/bin/mkprofile" base
for p in divergent histogram; do
    "$MARGAY" run -q --device emu --stats -t blocks -t opcodes -t memory -t ctas -t clock -t timeline -o "run/$p/counts" -- "$EX/$p-rt" >/dev/null
done
"$MARGAY" run -q --device emu -t blocks --repeat 24 -o run/histogram/repeat -- "$EX/histogram-rt" >/dev/null
python3 "$ROOT/tests/cli/overview.py" "$MARGAY"
