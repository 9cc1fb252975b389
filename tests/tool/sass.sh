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
# PTX that names lines of its source, on the lines where it stands: machine code below them
python3 - <<'P'
lines = open('sass.ptx').read().split('\n')
for i in range(14, 45):
    text = lines[i].strip()
    if text and text[0] not in '/.{}' and ':' not in text: lines[i] = f'.loc 1 {101 + i} 0 {text}'
open('lines.ptx', 'w').write('\n'.join(lines) + '\n.file 1 "shapes.cu"\n')
P
"$MARGAY" run -q --device emu -t opcodes,level=sass -o l -- ./ptxrun load=lines.ptx shapes:4,1,1:64,1,1:5
if [ ! -x /usr/local/cuda/bin/nvdisasm ] && [ ! -x /usr/local/cuda/bin/cuobjdump ]; then
    PATH=/nowhere "$MARGAY" annotate --sass l > none
    grep -q '^no machine code was mapped: margay run -t opcodes,level=sass' none || { cat none; exit 1; }
fi
[ -n "$NVCC" ] || { echo 'no ptxas to make machine code: the rest is left out'; exit 0; }
PATH=$PWD/bin:$PATH:$(dirname "$NVCC") "$MARGAY" report d --tool opcodes > text
PATH=$PWD/bin:$PATH:$(dirname "$NVCC") "$MARGAY" report d --json > json
PATH=$PWD/bin:$PATH:$(dirname "$NVCC") "$MARGAY" report d --csv --tool opcodes --table sass | grep -q '^0,shapes,LDG,8,1280,' || { echo 'no CSV'; exit 1; }
grep -q '^machine instructions by opcode' text && grep -q '^machine code' text || { cat text; exit 1; }
PATH=$PWD/bin:$PATH:$(dirname "$NVCC") "$MARGAY" annotate --sass l > below
PATH=$PWD/bin:$PATH:$(dirname "$NVCC") "$MARGAY" annotate l > plain
grep -v sass: below | cmp - plain || { echo '--sass changes other rows'; exit 1; }
# line 116 (PTX line 16, mov of %ctaid) became one instruction of every thread; the loads of the unrolled loop have no count each
grep -A1 ' |   116' below | grep -q '^ *256 .* sass:0x20  S2UR$' && [ "$(grep -A8 ' |   128' below | grep -c '^ *- .* LDG')" = 8 ] || { cat below; exit 1; }
PATH=$PWD/bin:$PATH:$(dirname "$NVCC") "$MARGAY" report l --html page.html && PATH=$PWD/bin:$PATH:$(dirname "$NVCC") "$MARGAY" report l --json > lines.json
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
import os, sys
sys.path.insert(0, os.environ['ROOT'] + '/tests/page')
import unpack
(on_page,) = [t for t in unpack.parts('page.html')['tool-0']['tables'] if t['name'] == 'machine-code']
assert ['shapes.cu', 116, 16, 0] in [r[0] for r in on_page['rows'] if r[1:4] == [0x20, 'S2UR', 256]], on_page['rows'][:3]
(l,) = json.load(open('lines.json'))['tools']['opcodes']['machine']
at = {int(c['address'], 16): c for c in l['code_at']}
assert l['code_left_out'] == 0 and len(at) == len(l['code_at']) and all(c['file'] == 'shapes.cu' and c['line'] == c['ptx_line'] + 100 for c in at.values() if 15 <= c['ptx_line'] <= 45), l['code_at'][:3]
assert at[0x20]['instruction'] == 'S2UR' and at[0x20]['executions'] == 256 and at[0xa0]['guarded'] and at[0x110]['executions'] is None, at
# what is known one by one never exceeds what is known by opcode
for name, (_, thread) in ops.items(): assert sum(c['executions'] or 0 for c in at.values() if c['instruction'].split('.')[0] == name) <= thread, name
assert 0 < m['mapped_instructions'] < m['instructions'] and 0 <= m['ptx_unmapped_share'] < .3, m
P
