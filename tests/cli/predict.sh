#!/usr/bin/env bash
# margay study predict: costs that were planted are found; a program left out is predicted; a witness for the fit.
set -euo pipefail
make -s -C "$ROOT" VARIANT="$VARIANT" "build/$VARIANT/bin/mkprofile" >/dev/null
"$B/bin/mkprofile" base
python3 "$ROOT/tests/cli/predict.py" "$MARGAY"
