#!/bin/sh
# In front of NVIDIA's driver (here a stand-in): found, asked, every call passed on with its result,
# launches seen whichever way their entry was obtained, and the profile says why they ran native.
set -u
failed=0
mkdir driver
gcc -O1 -shared -fPIC -Wl,-soname,libcuda.so.1 -o driver/libcuda.so.1 "$ROOT/tests/inject/fake_gpu.c" &&
    gcc -O1 -o client "$ROOT/tests/inject/client.c" -ldl || exit 1
cat > table.c <<'C'
#include <dlfcn.h>
#include <stdio.h>
int main(void)
{
    void *lib = dlopen("libcuda.so.1", RTLD_NOW);
    int (*f)(const void **, const void *) = (int (*)(const void **, const void *))dlsym(lib, "cuGetExportTable");
    int (*g)(void *) = (int (*)(void *))dlsym(lib, "cuStreamSynchronize");
    const void *t = NULL;
    int rc = f(&t, "0123456789abcdef");
    printf("%d %s %d\n", rc, (const char *)t, g(NULL));
    return 0;
}
C
gcc -O1 -o table table.c -ldl || exit 1
export LD_LIBRARY_PATH=$PWD/driver
for way in dlopen procaddress; do
    for device in nvidia auto; do
        rm -rf profile
        if "$MARGAY" run --device $device -o profile -- ./client $way libcuda.so.1 > out 2> err && grep -q 'client: ok' out &&
            "$MARGAY" report profile --json > out.json && python3 - <<'P'; then
import json
r = json.load(open('out.json'))
assert r['device']['kind'] == 'nvidia' and r['device']['name'] == 'fake GPU 0', r['device']
assert r['coverage']['launches'] == 1 and r['coverage']['instrumented'] == 0, r['coverage']
assert r['coverage']['native'][0]['reason'].startswith('the driver has no cu'), r['coverage']
assert r['kernels'][0]['name'] == 'fill' and len(r['kernels'][0]['module']) == 32, r['kernels']
P
            echo "ok   $way, --device $device"
        else
            echo "FAIL $way, --device $device"
            cat out err
            failed=1
        fi
    done
done
"$MARGAY" run -q --device nvidia -o profile -- ./table > out 2> err
grep -qx '0 private 801' out && echo "ok   private tables pass through, a missing entry is refused" || { echo "FAIL table"; cat out err; failed=1; }
"$MARGAY" run --device nvidia --time-limit 1 -- ./table > out 2> err
[ $? = 120 ] && [ ! -s out ] && echo "ok   --time-limit is refused" || { echo "FAIL --time-limit"; cat out err; failed=1; }
unset LD_LIBRARY_PATH
exit $failed
