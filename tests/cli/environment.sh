#!/bin/sh
# docs/environment.md lists every variable of src/base/env.def, and nothing else reads one by its name.
set -u
cd "$ROOT" || exit 1
failed=0
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
sed -n 's/^ENV(\([A-Z_]*\),.*/MARGAY_\1/p' src/base/env.def | sort > "$tmp/table"
sed -n 's/^| `\(MARGAY_[A-Z_]*\)`.*/\1/p' docs/environment.md | sort > "$tmp/page"
if diff "$tmp/table" "$tmp/page"; then echo "ok   the page lists the table"; else echo "FAIL docs/environment.md and src/base/env.def differ"; failed=1; fi
grep -rhoE '"MARGAY_[A-Z_]+"' src | tr -d '"' | sort -u > "$tmp/named"
if comm -23 "$tmp/named" "$tmp/table" | grep .; then echo "FAIL these are not in the table"; failed=1; else echo "ok   every variable is in the table"; fi
# The audit library stands alone.
if grep -rnE 'getenv\("MARGAY_' src --include='*.c' --include='*.h' | grep -v '^src/inject/audit/'; then
    echo "FAIL read by name, not with mg_env"; failed=1
else
    echo "ok   variables are read in one place"
fi
exit $failed
