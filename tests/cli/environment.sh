#!/bin/sh
# docs/environment.md lists every variable of src/base/env.def, and nothing else reads one by its name. Values that are
# not allowed are told: margay run starts nothing, a process that comes to one later says one line and uses the default.
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
while read -r wrong takes; do
    env "$wrong" "$MARGAY" run -q --device emu -- touch "$tmp/ran" < /dev/null 2> "$tmp/err"
    [ $? = 120 ] && [ ! -e "$tmp/ran" ] && [ "$(cat "$tmp/err")" = "margay: $wrong: it takes $takes" ] && continue
    echo "FAIL $wrong"; cat "$tmp/err"; failed=1
done << 'END'
MARGAY_ISA=AVX2 sse, base, avx2 or avx512
MARGAY_ISA=avx sse, base, avx2 or avx512
MARGAY_CPU_TIER=SYNC sync or a number of at most 9 digits
MARGAY_CPU_TIER=1234567890 sync or a number of at most 9 digits
MARGAY_CPU_LIVE=abc a number of at most 9 digits
MARGAY_CPU_LIVE=-1 a number of at most 9 digits
MARGAY_CPU_STORE=0 on or off
MARGAY_CPU_WHOLE=offf on or off
MARGAY_CPU_SERIAL=none on, off or all
MARGAY_CPU_CODEGEN=4 0, 1, 2 or 3
MARGAY_CACHE=here an absolute path
END
for right in ISA=sse ISA=avx512 ISA= CPU_TIER=sync CPU_TIER=20 CPU_LIVE=0 CPU_STORE=on CPU_SERIAL=all CPU_CODEGEN=3 CPU_VERBOSE=0; do
    env "MARGAY_$right" "$MARGAY" run -q -t none --device emu -o "$tmp/right" -- true 2> "$tmp/err" && [ ! -s "$tmp/err" ] && continue
    echo "FAIL MARGAY_$right"; cat "$tmp/err"; failed=1
done
if [ -x "$EX/saxpy" ]; then
    "$MARGAY" run -t none --device emu -o "$tmp/late" -- env MARGAY_ISA=avx3 MARGAY_CPU_LIVE= "$EX/saxpy" > /dev/null 2> "$tmp/err" &&
        [ "$(grep -c ' it takes ' "$tmp/err")" = 1 ] &&
        grep -qx 'margay: MARGAY_ISA=avx3: it takes sse, base, avx2 or avx512; the default is used' "$tmp/err" || { echo "FAIL in the program"; cat "$tmp/err"; failed=1; }
    "$MARGAY" run -q -t none --device emu -o "$tmp/late" -- env MARGAY_ISA=avx3 "$EX/saxpy" > /dev/null 2> "$tmp/err" &&
        [ ! -s "$tmp/err" ] || { echo "FAIL -q"; cat "$tmp/err"; failed=1; }
fi
doctor() { # WORDS [VARIABLE=VALUE...]
    words=$1
    shift
    env -u MARGAY_CACHE -u XDG_CACHE_HOME "$@" "$MARGAY" doctor > "$tmp/out" 2>&1
    grep -q "$words" "$tmp/out" || { echo "FAIL doctor $*"; cat "$tmp/out"; failed=1; }
}
touch "$tmp/plain"
doctor "^cache folder *ok *$tmp/new/margay\$" XDG_CACHE_HOME="$tmp/new"
doctor "^cache folder *-- .*$tmp/plain/cpu: Not a directory" MARGAY_CACHE="$tmp/plain"
doctor '^cache folder *-- .*set MARGAY_CACHE or HOME' HOME=
doctor '^environment *-- *MARGAY_CACHE=here: it takes an absolute path' MARGAY_CACHE=here HOME="$tmp"
[ -z "$(find "$tmp/new" -type f)" ] || { echo 'FAIL doctor leaves files behind'; failed=1; }
[ $failed = 1 ] || echo "ok   values that are not allowed are told"
exit $failed
