#!/bin/sh
# margay export of the time line: each form is decoded and every span compared with the trace's records, of programs
# whose spans nest, overlap, repeat (graphs) or have no times (graphs on NVIDIA's code path), of marks and of ranks.
set -u
failed=0
link="-L$B/lib/margay/driver -l:libcuda.so.1 -lpthread -ldl"
gcc -O1 -Wall -o client "$ROOT/tests/inject/timeline.c" $link && gcc -O1 -w -o marks "$ROOT/tests/inject/nvtx.c" $link || exit 1
export LD_LIBRARY_PATH="$B/test/driver" XDG_CACHE_HOME=$PWD/cache
say() { [ "$1" = 0 ] && echo "ok   $2" || { echo "FAIL $2"; tail -n 5 err; failed=1; }; }
check() { # NAME: every form of ./profile
    "$MARGAY" trace print --json --by-time profile > records || failed=1
    "$MARGAY" export csv profile -o out.csv 2> err && python3 "$ROOT/tests/cli/export_spans.py" records csv out.csv 2>> err
    say $? "$1, csv"
    "$MARGAY" export chrome profile -o out.json 2> err && python3 "$ROOT/tests/cli/export_spans.py" records chrome out.json 2>> err
    say $? "$1, chrome"
    "$MARGAY" export perfetto profile -o out.pf 2> err && python3 "$ROOT/tests/cli/export_spans.py" records perfetto out.pf 2>> err
    say $? "$1, perfetto"
    rm -rf out.tau && "$MARGAY" export tau profile -o out.tau 2> err && python3 "$ROOT/tests/cli/export_spans.py" records tau out.tau 2>> err
    say $? "$1, tau"
    rm -f out.db && "$MARGAY" export sqlite profile -o out.db 2> err && python3 "$ROOT/tests/cli/export_spans.py" records sqlite out.db records 2>> err
    say $? "$1, sqlite"
    command -v otf2-print > /dev/null || return 0
    rm -rf out.otf2 && "$MARGAY" export otf2 profile -o out.otf2 2> err && python3 "$ROOT/tests/cli/export_spans.py" records otf2 out.otf2 2>> err
    say $? "$1, otf2"
}
run() { # NAME PROGRAM... on a device
    name=$1
    shift
    rm -rf profile
    "$MARGAY" run -q -t timeline -o profile "$@" > out 2> err && check "$name" || { say 1 "$name"; }
}
ptx=$ROOT/tests/inject/fill.ptx
stages() { # of the last profile
    "$MARGAY" export perfetto --stages profile -o stages.pf 2> err && python3 "$ROOT/tests/cli/export_spans.py" records stages stages.pf 2>> err
    say $? "$1, render stages"
}
run plain --device emu -- ./client "$ptx" plain 20
run threads --device emu -- ./client "$ptx" threads 16 6
run graph --device emu -- ./client "$ptx" graph 5 9
stages graph
run "graph without times" --device nvidia -- ./client "$ptx" graph 3 4
run marks --device emu -- ./marks "$ptx" 3
grep -q '"name":"main loop"' out.json && grep -q 'main loop' out.pf
say $? "threads have names"
cat > job.sh <<'J'
for i in 2 0 1; do OMPI_COMM_WORLD_RANK=$i OMPI_COMM_WORLD_SIZE=3 ./client "$1" plain $((5 + i)) > /dev/null & done
wait
J
run ranks --device emu -- sh job.sh "$ptx"
stages ranks
grep -q 'rank 2, process' out.json
say $? "ranks have names"
ls out.tau | grep -qx profile.2.0.1
say $? "TAU's nodes are ranks"

# OTF2: our declarations are those of its headers; an archive is not written over
if command -v otf2-print > /dev/null; then
    "$MARGAY" export otf2 profile -o out.otf2 2> err
    [ $? = 3 ] && grep -q 'already holds' err
    say $? "no archive is written over"
    [ "$(ls out.otf2 | tr '\n' ' ')" = 'traces traces.def traces.otf2 ' ]
    say $? "nothing lies beside an archive"
    (ulimit -f 1 && exec "$MARGAY" export otf2 profile -o cut.otf2) 2> err
    [ $? = 3 ] && grep -q cut.otf2 err && [ ! -e cut.otf2 ]
    say $? "half an archive is none"
    mkdir cut.otf2 && echo mine > cut.otf2/note
    (ulimit -f 1 && exec "$MARGAY" export otf2 profile -o cut.otf2) 2>> err
    [ "$(ls cut.otf2)" = note ]
    say $? "half an archive leaves a folder as it was"
else
    echo "left out otf2: otf2-print is not installed (otf2-tools)"
fi
if [ -e /usr/include/otf2/otf2.h ]; then
    cat > declared.c <<'C'
#include <stdarg.h>
#include <otf2/otf2.h>
#include "export/otf2_library.h"
#define RegisterCallback_is_our_own 1
#define OTF2(result, name, arguments) _Static_assert(__builtin_types_compatible_p(__typeof__(((struct mg_otf2 *)0)->name), __typeof__(&OTF2_##name)) || sizeof #name == sizeof "Error_RegisterCallback", #name);
OTF2_FUNCTIONS(OTF2)
_Static_assert(MODES == 0, "");
C
    sed -i 's/MODES == 0/OTF2_MODE_WRITE == OTF2_FILEMODE_WRITE \&\& OTF2_SUBSTRATE == OTF2_SUBSTRATE_POSIX \&\& OTF2_COMPRESSION == OTF2_COMPRESSION_NONE \&\& OTF2_CHUNK_BYTES >= OTF2_CHUNK_SIZE_MIN/; /RegisterCallback_is/d' declared.c
    gcc -std=c17 -D_GNU_SOURCE -Wall -I"$ROOT/src" -fsyntax-only declared.c > err 2>&1
    say $? "OTF2's declarations"
fi

# where it goes: a folder gets the form's file, stdout the same bytes; what cannot be written is status 3 and leaves nothing
mkdir folder
"$MARGAY" export csv profile -o folder && "$MARGAY" export csv profile > s.csv && "$MARGAY" export csv profile -o fresh 2> err &&
    cmp folder/spans.csv s.csv && cmp fresh/spans.csv s.csv && "$MARGAY" export chrome profile -o folder && cmp folder/trace.json out.json
say $? "folders and stdout"
"$MARGAY" export chrome profile -o none/x.json 2> err
[ $? = 3 ] && grep -q 'none/x.json' err
say $? "no such folder"
"$MARGAY" export chrome profile -o /dev/full 2> err
[ $? = 3 ] && grep -q 'No space left' err
say $? "a full disk"
"$MARGAY" run -q --device emu -o blocks -- ./client "$ptx" plain 1 > out 2> err && ! "$MARGAY" export chrome blocks -o b.json 2> err &&
    grep -q 'timeline' err && [ ! -e b.json ]
say $? "a profile without a time line"

cp -r profile whole
# a damaged chunk: the rest is written, and it is said
python3 - profile/trace/*.mgt <<'P2'
import sys
path = max(sys.argv[1:])
b = bytearray(open(path, 'rb').read())
b[len(b) // 2] ^= 255
open(path, 'wb').write(b)
P2
"$MARGAY" export csv profile > s2.csv 2> err
[ $? = 3 ] && [ "$(wc -l < s2.csv)" -lt "$(wc -l < s.csv)" ] && grep -q damaged err
say $? "a damaged chunk"

# a torn end: what is before it is written, and it is said; a file that stood there stays where nothing can be read
python3 - profile/trace/*.mgt <<'P2'
import os, sys
path = max(sys.argv[1:])
os.truncate(path, os.path.getsize(path) // 2)
P2
"$MARGAY" export csv profile > s3.csv 2> err
[ $? = 3 ] && grep -q 'belong to no chunk' err
say $? "a torn end"
truncate -s 0 profile/trace/*.mgt
echo kept > kept.json
"$MARGAY" export chrome profile -o kept.json 2> err
[ $? = 3 ] && [ "$(cat kept.json)" = kept ]
say $? "the file that stood there"
mkdir -p has && : > has/profile.0.0.0
"$MARGAY" export tau whole -o has 2> err
[ $? = 3 ] && grep -q 'already' err
say $? "a folder that holds TAU profiles"

# a trace whose calls have no stream and no context, as they were written once; a damaged head leaves the spans with their process
cat > old.csv <<'C'
start_ns,end_ns,kind,name,process,thread,device,context,stream,correlation,bytes,source,uncertainty_ns,stack,done,peer,tag,communicator,message,launch,replay,kernel,cta,warp,sm,lanes
900,4200,mark,step,3148,3148,,,,3,,host,0,,,,,,,,,,,,,
1000,1500,api,cuLaunchKernel,3148,3148,,,,1,,host,0,,,,,,,,,,,,,
1600,4100,api,cuStreamSynchronize,3148,3148,,,,2,,host,0,,,,,,,,,,,,,
2000,4000,kernel,fill,3148,,0,1,5,1,,events,250,,,,,,,0,,,,,,
C
rm -f old.db
"$MARGAY" export csv "$ROOT/tests/cli/old-trace" > got.csv 2> err && cmp got.csv old.csv 2>> err && "$MARGAY" export sqlite "$ROOT/tests/cli/old-trace" -o old.db 2>> err &&
    python3 - 2>> err <<'P2'
import sqlite3
rows = sqlite3.connect('old.db').execute("SELECT name, stream, context FROM spans WHERE kind = 'api' ORDER BY id").fetchall()
assert rows == [('cuLaunchKernel', None, None), ('cuStreamSynchronize', None, None)], rows
P2
say $? "a trace of an older version"
cp -r "$ROOT/tests/cli/old-trace" flipped
good=0
for at in 0 8 12 16 20 24 32 40 44 50 90; do
    python3 - "$ROOT/tests/cli/old-trace/trace/3148.mgt" flipped/trace/3148.mgt $at <<'P2'
import sys
b = bytearray(open(sys.argv[1], 'rb').read())
b[int(sys.argv[3])] ^= 4
open(sys.argv[2], 'wb').write(b)
P2
    "$MARGAY" export csv flipped > got.csv 2> err
    [ $? = 3 ] && cmp -s got.csv old.csv && grep -q 'its head is damaged: its process is taken from its name' err && good=$((good + 1))
done
[ $good = 11 ]
say $? "a damaged head ($good of 11 places)"

# a database is a file, and one that cannot be written is said
"$MARGAY" export sqlite whole 2> err
[ $? = 3 ] && grep -q -- '-o FILE' err
say $? "sqlite without a file"
"$MARGAY" export sqlite whole -o /dev/full 2> err
[ $? = 3 ] && grep -q 'dev/full' err
say $? "sqlite into a full device"

# kernels by their C++ names
sed 's/fill/_Z4fillPjj/' "$ptx" > mangled.ptx && sed 's/"fill"/"_Z4fillPjj"/' "$ROOT/tests/inject/timeline.c" > mangled.c &&
    gcc -O1 -w -o mangled mangled.c $link && rm -rf profile &&
    "$MARGAY" run -q -t timeline --device emu -o profile -- ./mangled mangled.ptx plain 2 > out 2> err &&
    [ "$("$MARGAY" export csv profile | grep -c ',kernel,_Z4fillPjj,')" = 2 ] &&
    [ "$("$MARGAY" export csv profile --demangle | grep -cF ',kernel,"fill(unsigned int*, unsigned int)",')" = 2 ]
say $? "--demangle"
exit $failed
