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
mkdir bin
printf '#!/bin/sh\ncat "%s"\n' "$ROOT/tests/tool/sass.text" > bin/nvdisasm
chmod +x bin/nvdisasm
[ -n "$NVCC" ] || { echo 'no ptxas to make machine code: the rest is left out'; exit 0; }
PATH=$PWD/bin:$PATH:$(dirname "$NVCC") "$MARGAY" report d --tool opcodes > text
PATH=$PWD/bin:$PATH:$(dirname "$NVCC") "$MARGAY" report d --json > json
PATH=$PWD/bin:$PATH:$(dirname "$NVCC") "$MARGAY" report d --csv --tool opcodes --table sass | grep -q '^0,shapes,LDG,8,1280,' || { echo 'no CSV'; exit 1; }
grep -q '^machine instructions by opcode' text && grep -q '^machine code' text || { cat text; exit 1; }
python3 - <<'P'
import json
(m,) = json.load(open('json'))['tools']['opcodes']['machine']
assert m['code'] == 'assembled' and m['reason'] is None and m['instructions'] == 136 and m['registers'] > 0, m
ops = {o['name']: (o['static'], o['thread']) for o in m['opcodes']}
# 256 threads, 5 rounds of READS, tid % 4 + 1 of TURNS; the assembler made one, four, two and one copies of the first loop, four, two (under a predicate) and one of the second
assert ops['LDG'] == (8, 256 * 5), ops['LDG']
assert ops['STG'] == (9, 256 * 5 + 256), ops['STG']
assert ops['EXIT'] == (1, 256), ops['EXIT']
assert ops['NOP'][1] == 0 and m['local_loads'] == m['local_stores'] == 0
assert 0 < m['mapped_instructions'] < m['instructions'] and 0 <= m['ptx_unmapped_share'] < .3, m
P
