#!/bin/sh
# stacks=on: the host's stacks of launches and waits, of a program whose places are known; every export tells the same
# ones, and addr2line the same names. Then what a stack meets: threads, signals, code without tables, a time before main,
# libraries that come and go, files without names, a fork, SIGKILL.
# clock
set -u
[ -z "$(ldconfig -p | grep libdw.so.1)" ] && { echo "libdw.so.1 is not here (libdw1)"; exit 77; }
failed=0
program=$PWD/client source=$ROOT/tests/inject/stacks.c ptx=$ROOT/tests/inject/fill.ptx
link="-L$B/lib/margay/driver -l:libcuda.so.1 -lpthread -ldl"
gcc -g -O1 -Wall -o client "$source" $link && gcc -O2 -foptimize-sibling-calls -o bare "$source" $link || exit 1
export LD_LIBRARY_PATH="$B/test/driver" XDG_CACHE_HOME=$PWD/cache
say() { [ "$1" = 0 ] && echo "ok   $2" || { echo "FAIL $2"; tail -n 5 out err; failed=1; }; }
run() { # TOOL DEVICE PROGRAM MODE...
    tool=$1 device=$2
    shift 2
    rm -rf profile
    timeout 300 "$MARGAY" run -q -t "$tool" --device "$device" -o profile -- "$@" > out 2> err && grep -qx ok out && [ ! -s err ] &&
        "$MARGAY" report profile --json > out.json 2>> err && "$MARGAY" export folded profile --host launches > launches 2>> err
}
all() { # MODE N: what python looks at
    "$MARGAY" trace print --json --by-time profile > records && "$MARGAY" export folded profile --host wait > wait &&
        "$MARGAY" export folded profile --host device > device && rm -f s.db && "$MARGAY" export sqlite profile -o s.db &&
        "$MARGAY" export csv profile -o s.csv && "$MARGAY" export chrome profile -o s.json && "$MARGAY" export perfetto profile -o s.pf &&
        python3 "$ROOT/tests/inject/stacks.py" "$1" "$2" "$source" "$program" 2>> err
}
for device in emu nvidia; do
    run timeline,stacks=on $device "$program" "$ptx" plain 7 && all plain 7
    say $? "$device, places of launches and waits"
done
"$MARGAY" report profile --tool timeline 2>> err | grep -q '^  first (stacks.c:[0-9]*)  *7 '
say $? "the report's table"
run timeline,stacks=on emu "$program" "$ptx" threads 64 && all threads 64
say $? "64 threads"
run timeline,stacks=5 emu "$program" "$ptx" plain 100 && all sampled 100
say $? "a fifth of them"
run timeline emu "$program" "$ptx" plain 2
[ $? != 0 ] && [ ! -s launches ] && grep -q 'has no stacks (margay run -t timeline,stacks=on)' err
say $? "without stacks there is none"
"$MARGAY" run -t timeline,stacks=some -- true 2> err
[ $? != 0 ] && grep -q 'stacks is on, off, or a number' err
say $? "stacks=some is refused"

# what a stack meets
only() { # NAME TEXT: the one stack that launched
    [ "$(grep -c . launches)" = 1 ] && grep -q "$2" launches
    say $? "$1"
}
run timeline,stacks=on emu ./client "$ptx" deep 40
only "41 calls deep" ';main\(;deep\)\{41\};cuLaunchKernel 1$'
run timeline,stacks=on emu ./client "$ptx" deep 300
only "300 calls deep: 128 are told" '^\.\.\.\(;deep\)\{128\};cuLaunchKernel 1$'
run timeline,stacks=on emu ./client "$ptx" jit
only "code without tables ends a stack" '^code of no file;plain_launch;cuLaunchKernel 1$'
run timeline,stacks=on emu ./bare "$ptx" jit
only "so it does where the frames before are gone" '^code of no file;plain_launch;cuLaunchKernel 1$'
run timeline,stacks=on emu ./client "$ptx" early
only "before main" ';early;cuLaunchKernel 1$'
run timeline,stacks=on emu ./client "$ptx" signal
grep -q ';main;interrupted;.*;on_signal;cuLaunchKernel 1$' launches && grep -q ';main\(;deep\)\{51\};cuLaunchKernel' launches
say $? "out of a signal handler, and interrupted by one"
run timeline,stacks=on emu ./client "$ptx" fork
[ "$(sed 's/.*main;//' launches | tr '\n' ,)" = 'first;cuLaunchKernel 1,second;cuLaunchKernel 2,' ]
say $? "a child's are not among them"

# libraries that come and go, at one place; gone or changed when the report is made
cat > lib.c <<'C'
int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
int NAME(void *k, void **p) { int rc = cuLaunchKernel(k, 1, 1, 1, 32, 1, 1, 0, 0, p, 0); return rc; }
int go(void *k, void **p) { int rc = NAME(k, p); __asm__ volatile("" : "+r"(rc)); return rc; }
C
for n in alpha beta; do gcc -g -O0 -fPIC -shared -DNAME=$n -o lib$n.so lib.c || exit 1; done
run timeline,stacks=on emu ./client "$ptx" swap ./libalpha.so ./libbeta.so
[ "$(sed 's/.*main;use;//' launches | tr '\n' ,)" = 'go;alpha;cuLaunchKernel 1,go;beta;cuLaunchKernel 1,' ]
say $? "two libraries at one place"
run timeline,stacks=on emu ./client "$ptx" unload ./libalpha.so 30
only "a library loaded 30 times" ';go;alpha;cuLaunchKernel 30$'
cp -r profile thirty && run timeline,stacks=on emu ./client "$ptx" churn ./libbeta.so 8
[ "$(sed 's/.*;launch_often;/launch_often;/' launches | tr '\n' ,)" = 'launch_often;cuLaunchKernel 400,' ]
say $? "while another thread loads and unloads"
rm -rf profile && mv thirty profile
cp libbeta.so other.so && mv other.so libalpha.so && "$MARGAY" export folded profile --host launches > launches 2> err
only "a file that changed has no names" ';main;use;libalpha.so+0x[0-9a-f]*;libalpha.so+0x[0-9a-f]*;cuLaunchKernel 30$'
"$MARGAY" report profile --tool timeline | grep -q '0 files are gone and 1 have changed since the run: no names of theirs, .*/libalpha.so first'
say $? "and the report says so"
rm libalpha.so
"$MARGAY" report profile --tool timeline | grep -q '1 files are gone and 0 have changed'
say $? "so it does of a file that is gone"
gcc -g -O1 -Wl,--build-id=none -o client "$source" $link && run timeline,stacks=on emu ./client "$ptx" plain 1 && grep -q ';main;first;cuLaunchKernel 1' launches && touch client &&
    "$MARGAY" export folded profile --host launches > launches && ! grep -q first launches && grep -q 'client+0x' launches
say $? "without a build id a file must be older than the run"
gcc -g -O1 -s -o client "$source" $link && run timeline,stacks=on emu ./client "$ptx" plain 1 && ! grep -q first launches && grep -q '\(client+0x[0-9a-f]*;\)\{2\}cuLaunchKernel' launches
say $? "a stripped file gives file and address"

# a program of the runtime: neither it nor what stands in front of it is a place, and its own frames are there
unset LD_LIBRARY_PATH
if [ -x "$B/examples/saxpy-rt" ]; then
    run_rt() { "$MARGAY" run -q -t timeline,stacks=on --device emu -o profile -- "$B/examples/saxpy-rt" > out 2> err; }
    rm -rf profile; run_rt && "$MARGAY" report profile --json > out.json && "$MARGAY" export folded profile --host launches > launches 2> err &&
        grep -q ';main;.*dev_launch[^;]*;cudaLaunchKernel;cuLaunchKernel [0-9]*$' launches && ! grep -q 'mg_traced\|libmargay' launches &&
        python3 -c "import json; s = json.load(open('out.json'))['tools']['timeline']['sites']; assert s and all(x['function'].startswith('dev_') or x['function'] == 'main' for x in s), s" 2>> err
    say $? "a program of the runtime"
else
    echo "left out the runtime: saxpy-rt is not built"
fi
export LD_LIBRARY_PATH="$B/test/driver"

# killed while it takes them: what is there is whole
"$MARGAY" run -q -t timeline,stacks=on --device emu -o killed -- ./bare "$ptx" loop > out 2> err & 
run=$!
i=0
while [ $i -lt 200 ] && ! { [ -e killed/trace ] && "$MARGAY" trace print --json killed 2> /dev/null | grep -q '"kind":"stack"'; }; do i=$((i + 1)); sleep .1; done
pid=$(ls killed/trace | sed -n 's/\.mgt$//p' | head -n 1)
kill -9 "$pid"
wait $run
"$MARGAY" export folded killed --host launches > launches 2> err
grep -q ';main;.*cuLaunchKernel [0-9]' launches && "$MARGAY" trace print --json --by-time killed 2> /dev/null > records && python3 - <<'P'
import json
told, calls = set(), 0
for r in map(json.loads, open('records')):
    if r['kind'] == 'stack':
        told.add(r['fields']['id'])
    elif r['kind'] == 'call' and r['fields']['stack']:
        assert r['fields']['stack'] in told
        calls += 1
assert calls, 'no call has a stack'
P
say $? "SIGKILL"
exit $failed
