#!/bin/sh
# Every way in which programs reach the driver (facts: who calls dlopen how) ends in libmargay: the
# launch is instrumented and its counts are exact.
set -u
T=$ROOT/tests/inject
failed=0
export LC_ALL=C
mkdir decoy
gcc -O1 -shared -fPIC -Wl,-soname,libcuda.so.1 -o decoy/libcuda.so.1 "$T/decoy.c" && ln -s libcuda.so.1 decoy/libcuda.so &&
    gcc -O1 -shared -fPIC -o plugin.so "$T/plugin.c" -ldl && gcc -O1 -shared -fPIC -o witness.so "$T/witness.c" -ldl &&
    gcc -O1 -o client "$T/client.c" -ldl || exit 1
link() { gcc -O1 -DLINKED -o "$1" "$T/client.c" -Ldecoy -l:libcuda.so.1 -ldl $2 || exit 1; }
link lazy -Wl,-z,lazy
link now -Wl,-z,now
link runpath "-Wl,--enable-new-dtags,-rpath,$PWD/decoy"
link rpath "-Wl,--disable-new-dtags,-rpath,$PWD/decoy"
printf '#!/bin/sh\necho script; exec "$@"\n' > script.sh
chmod +x script.sh
export PLUGIN=$PWD/plugin.so

judge() { # DIR: one launch, instrumented, blocks entered 256, 200, 256 times
    "$MARGAY" report "$1" --json > out.json && python3 - <<'P'
import json
r = json.load(open('out.json'))
c, k = r['coverage'], r['kernels']
assert (c['launches'], c['instrumented'], c['failed'], c['unknown']) == (1, 1, 0, 0), c
assert [b['thread_entries'] for b in k[0]['blocks']] == [256, 200, 256], k
assert r['launches'][0]['complete'] and r['exit'] == 0, r
P
}
try() { # NAME, [options of run], --, program
    name=$1
    shift
    rm -rf profile
    if "$MARGAY" run -q -o profile "$@" > out 2> err && grep -q 'client: ok' out && ! grep -q decoy err && judge profile; then
        echo "ok   $name"
    else
        echo "FAIL $name"
        sed 's/^/     /' out err
        failed=1
    fi
}
try "linked, lazy" -- ./lazy linked
try "linked, BIND_NOW" -- ./now linked
try "linked, RUNPATH to another driver" -- ./runpath linked
try "linked, RPATH to another driver" -- ./rpath linked
try "dlopen libcuda.so.1" -- ./client dlopen libcuda.so.1
try "dlopen libcuda.so" -- ./client dlopen libcuda.so
try "dlopen absolute path" -- ./client dlopen "$PWD/decoy/libcuda.so.1"
try "cuGetProcAddress only" -- ./client procaddress libcuda.so.1
try "cuGetProcAddress, first version" -- ./client legacy1 libcuda.so.1
try "cuGetProcAddress, per thread" -- ./client ptsz libcuda.so.1
case ${VARIANT:-} in
asan | tsan) echo "     sanitizers refuse RTLD_DEEPBIND, other namespaces and the audit interface: left out" ;;
*)  try "dlmopen" -- ./client dlmopen libcuda.so.1
    try "RTLD_DEEPBIND" -- ./client deepbind libcuda.so.1
    try "RTLD_DEEPBIND plugin" -- ./client plugin libcuda.so.1
    try "RTLD_DEEPBIND plugin, libcuda.so" --audit -- ./client plugin libcuda.so
    try "RTLD_DEEPBIND plugin, absolute path" --audit -- ./client plugin "$PWD/decoy/libcuda.so.1" ;;
esac
try "exec'd child" -- ./client child dlopen libcuda.so.1
try "forked child" -- ./client forked dlopen libcuda.so.1
try "shell script" -- ./script.sh ./client dlopen
try "program found in PATH" -- env PATH="$PWD:$PATH" client dlopen
export LD_PRELOAD=$PWD/witness.so # in front of the sanitizer in margay itself, which it would refuse
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:verify_asan_link_order=0"
try "behind the user's own LD_PRELOAD" -- ./lazy linked
grep -q 'witness: a launch' out || { echo "FAIL the witness saw no launch"; failed=1; }
exit $failed
