#!/bin/sh
# opcodes,level=sass: without a disassembler one line says so; with one (here: a program that prints what nvdisasm said of sass.ptx's machine
# code on a machine that has it) the mix of machine instructions.
set -e
gcc -O1 -o ptxrun "$ROOT/tests/cli/ptxrun.c" -ldl
cp "$ROOT/tests/tool/sass.ptx" .
"$MARGAY" run -q --device emu -t opcodes,level=sass -o d -- ./ptxrun load=sass.ptx shapes:4,1,1:64,1,1:5
if [ ! -x /usr/local/cuda/bin/nvdisasm ] && [ ! -x /usr/local/cuda/bin/cuobjdump ]; then
    PATH=/nowhere "$MARGAY" report d --tool opcodes > text
    [ "$(grep -c 'no disassembler: neither nvdisasm nor cuobjdump is in PATH' text)" = 1 ] || { cat text; exit 1; }
    PATH=/nowhere "$MARGAY" report d --json > json
    python3 -c 'import json; m = json.load(open("json"))["tools"]["opcodes"]["machine"]; assert len(m) == 1 and m[0]["code"] is None and m[0]["opcodes"] == [] and "no disassembler" in m[0]["reason"], m'
fi
