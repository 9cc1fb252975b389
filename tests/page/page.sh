#!/usr/bin/env bash
# The page of `margay report --html` in a browser: of 1, 120 and 500 kernels it opens, filters, sorts, follows links, opens
# lines and blocks, turns dark, prints; with the keyboard, too. What it shows is compared with --json.
# long
set -euo pipefail
fail() { echo "FAIL: $*"; exit 1; }
python3 -c 'import sys; sys.path.insert(0, sys.argv[1]); import browser; sys.exit(browser.find() is None)' "$ROOT/tests/page" || { echo 'no headless Chromium here (Debian: chromium-headless-shell)'; exit 77; }
clang=$(command -v clang || command -v clang-14) || { echo 'no clang here'; exit 77; }
gcc -O1 -Wall -o many "$ROOT/tests/page/many.c" -L"$B/lib/margay/driver" -lcuda
compile() { CCACHE_DISABLE=1 "$clang" -x cuda --cuda-path=/nonexistent --cuda-device-only --cuda-gpu-arch=sm_70 -nocudainc -nocudalib -O2 -gline-tables-only -S "$1" -o "$2"; }
for n in 1 120 500; do
    mkdir -p m$n
    python3 "$ROOT/tests/page/many.py" $n > m$n/many.cu
    (cd m$n && compile many.cu many.ptx)
    "$MARGAY" run -q --device emu -t opcodes -t lanes -t memory -t clock -t functions -t values -t hot -o m$n/profile -- ./many m$n/many.ptx > out
    "$MARGAY" report m$n/profile --html m$n/page.html
    "$MARGAY" report m$n/profile --json > m$n/report.json
    "$MARGAY" report m$n/profile --tool memory --top 100000 > m$n/memory.txt
done
cp "$ROOT/tests/page/faulty.cu" . && compile faulty.cu faulty.ptx
"$MARGAY" run -q --device emu --check -o checked -- ./many faulty.ptx > out 2> err || true
"$MARGAY" report checked --html checked.html
"$MARGAY" report checked --json > checked.json
"$MARGAY" run -q --device emu -t timeline -o timed -- "$EX/bfs" > out
"$MARGAY" report timed --html timed.html
"$MARGAY" report timed --json > timed.json
"$MARGAY" run -q --device emu -t advise -o advised -- "$EX/divergent" > out
"$MARGAY" report advised --html advised.html
"$MARGAY" report advised --json > advised.json
if [ -n "$NVCC" ]; then
    cp "$ROOT/tests/page/inlined.cu" . && "$NVCC" -ptx -lineinfo -O2 -arch=sm_90 -o inlined.ptx inlined.cu
    "$MARGAY" run -q --device emu -o inlined -- ./many inlined.ptx > out
    "$MARGAY" report inlined --html inlined.html
    "$MARGAY" report inlined --json > inlined.json
    "$MARGAY" export folded inlined -o inlined.folded
    touch inlined.cu && "$MARGAY" report inlined --html changed.html
else
    echo 'no nvcc: lines of inlined functions are not tested'
fi
python3 "$ROOT/tests/page/drive.py"
