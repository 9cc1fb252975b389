#!/bin/sh
# DIR of -o, whatever its name: what a run wrote can be read back under the same name, by report, diff and merge;
# what cannot hold a profile is refused with one line before the program starts, and nothing is left there.
set -u
failed=0
fail() { echo "FAIL $*"; cat out err; failed=1; }
gcc -O1 -o client "$ROOT/tests/inject/client.c" -ldl || exit 1
mkdir real sub
ln -s real link
ln -s nowhere dangling
ln -s / rootlink
touch file
kernels() { python3 -c 'import json,sys; c=json.load(sys.stdin)["coverage"]; print(c["launches"], c["instrumented"])'; }
back() { # DIR
    timeout 300 "$MARGAY" run -q --device emu -o "$1" -- ./client dlopen > out 2> err || fail "run -o '$1'"
    [ "$("$MARGAY" report --json -- "$1" 2> err | kernels)" = '1 1' ] || fail "report '$1'"
}
n=0
for d in "/$PWD/two" "//$PWD/three" "$PWD/slashes///" ./a/../b sub/./c link 'q"uote' "ap'ostrophe" 'per%20cent%' '%' 'a?b#c&d=e' 'x?mode=memory' file:uri "file:/x" 'file:y?mode=ro' :memory: ' ' \
    'sp ace' -dash 'semi;colon:dot,comma' '\back' '$(x)' '*' "$(printf 'new\nline')" "$(printf '\377\376')" "$(printf '%0255d' 0)"; do
    back "$d"
    n=$((n + 1))
    "$MARGAY" merge -o "merged$n" -- "$d" > out 2> err && [ "$("$MARGAY" report --json "merged$n" | kernels)" = '1 1' ] || fail "merge '$d'"
done
"$MARGAY" merge -o file:merged -- sub/c link > out 2> err && [ "$("$MARGAY" report --json file:merged 2> err | kernels)" = '2 2' ] || fail 'merge -o file:'
"$MARGAY" diff --fail-over 0 -- "/$PWD/two" 'a?b#c&d=e' > out 2> err || fail 'diff of odd names'
[ "$(readlink link)" = real ] && [ -e real/profile.db ] || fail 'a link was replaced'

refused() { # DIR PATTERN
    timeout 300 "$MARGAY" run --device emu -o "$1" -- touch started > out 2> err
    [ $? = 120 ] && [ "$(wc -l < err)" = 1 ] && grep -q -- "$2" err && [ ! -s out ] || fail "run -o '$1'"
}
refused '' "-o wants a directory"
refused file 'Not a directory'
refused file/x 'Not a directory'
refused dangling 'leads nowhere'
refused /proc/nosuch/d 'cannot make'
for d in / // /// /tmp/.. rootlink rootlink/ /.; do refused "$d" 'root directory'; done
refused "$(printf '%0256d' 0)" 'File name too long'
long=$PWD
while [ ${#long} -lt 450 ]; do long=$long/$(printf '%050d' 0); done
refused "$long" 'more than the 440'
refused "$(printf '%05000d' 0)" 'too long'
"$MARGAY" merge -o / real > out 2> err
[ $? = 3 ] && grep -q 'root directory' err || fail 'merge -o /'
[ ! -e started ] || fail 'a refused DIR started the program'
for f in /profile.db /run-*.db; do [ ! -e "$f" ] || fail "the root holds $f"; done
# a file system without file locks: one line at once, and no file is left
if [ "${VARIANT:-release}" != asan ] && [ "${VARIANT:-release}" != tsan ]; then
    cat > nolocks.c <<'C'
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
static int control(const char *name, int fd, int command, void *argument)
{
    if (command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK || command == F_OFD_SETLKW) return errno = ENOLCK, -1;
    return ((int (*)(int, int, ...))dlsym(RTLD_NEXT, name))(fd, command, argument);
}
#define CALL(name)                                          \
    int name(int fd, int command, ...)                      \
    {                                                       \
        va_list ap;                                         \
        va_start(ap, command);                              \
        void *argument = va_arg(ap, void *);                \
        va_end(ap);                                         \
        return control(#name, fd, command, argument);       \
    }
CALL(fcntl)
CALL(fcntl64)
C
    gcc -D_GNU_SOURCE -O1 -w -shared -fPIC -o nolocks.so nolocks.c -ldl || exit 1
    export LD_PRELOAD=$PWD/nolocks.so
    refused unlocked 'has no file locks'
    unset LD_PRELOAD
    [ -z "$(ls -A unlocked)" ] || fail 'a file is left'
fi
if [ "$(id -u)" != 0 ]; then
    mkdir closed && chmod 555 closed
    refused closed 'Permission denied'
    refused closed/x 'Permission denied'
fi
exit $failed
