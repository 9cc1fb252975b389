#!/bin/bash
# `make deb`: the package goes into an empty root by dpkg, the program runs from there, tools build against it and against the
# tree by pkg-config and are small, nothing but glibc is needed (in a chroot, as root), and nothing stays after removal.
set -u
case ${VARIANT:-} in asan | tsan | cover) echo "one build is enough"; exit 77 ;; esac
command -v dpkg-deb > /dev/null || { echo "dpkg-deb is not installed: make deb is not tested"; exit 77; }
command -v pkg-config > /dev/null || { echo "pkg-config is not installed: make deb is not tested"; exit 77; }
fail() { echo "FAIL $*"; cat out err 2> /dev/null | tail -30; exit 1; }
export XDG_CACHE_HOME=$PWD/cache
DEB_COMPRESS=none DEB_OUT=$PWD/margay.deb flock "$B/.install" make -s -C "$ROOT" VARIANT=release B="$B" deb > out 2> err || fail "make deb"
dpkg-deb -f margay.deb Depends > depends
[ "$(tr ',' '\n' < depends | sed 's/^ *//; s/ .*//' | grep -vcxE 'libc6|libllvm[0-9]+')" = 0 ] || fail "it needs more than glibc: $(cat depends)"

root=$PWD/root
if [ "$(id -u)" = 0 ]; then
    mkdir -p root/var/lib/dpkg/{updates,info} && : > root/var/lib/dpkg/status && : > root/var/lib/dpkg/available
    dpkg --root="$root" --force-depends --force-unsafe-io --force-script-chrootless --no-triggers -i margay.deb > out 2> err || fail "dpkg -i"
    (cd root && dpkg --root="$root" --verify margay) > out 2> err && [ ! -s out ] || fail "dpkg --verify"
else
    dpkg -x margay.deb root || fail "dpkg -x"
fi
for f in bin/margay lib/libmargay-profile.so lib/libtau_cuda.so lib/margay/driver/libcuda.so.1 include/margay/profile.h include/margay/core/tool/plugin.h \
    share/man/man1/margay-run.1.gz share/bash-completion/completions/margay share/zsh/vendor-completions/_margay \
    share/fish/vendor_completions.d/margay.fish share/doc/margay/copyright share/doc/margay/docs/limits.md; do
    [ -s "root/usr/$f" ] || fail "the package has no $f"
done
! grep -rIl "$ROOT\|$PWD" root/usr/bin root/usr/lib root/usr/include > out || fail "installed texts name the build's folders"

# two tools by pkg-config: against the package and against the tree
pc() { # WHICH ARGS...
    case $1 in
    package) PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_LIBDIR=$root/usr/lib/pkgconfig pkg-config "${@:2}" ;;
    tree) PKG_CONFIG_LIBDIR=$B/lib/pkgconfig pkg-config "${@:2}" ;;
    esac
}
[ "$(pc package --modversion margay-tool)" = "$("$MARGAY" --version | cut -d' ' -f2)" ] || fail "pkg-config says another version"
for which in package tree; do
    # shellcheck disable=SC2046
    gcc -std=c17 -O2 -fPIC -fvisibility=hidden -Werror -shared $(pc $which --cflags margay-tool) "$ROOT/examples/tools/zeros.c" \
        $(pc $which --libs margay-tool) -Wl,-z,defs -o $which.so > out 2> err || fail "a tool against the $which"
    [ "$(stat -c %s $which.so)" -lt 32768 ] || fail "a tool against the $which takes $(stat -c %s $which.so) bytes"
    gcc -Werror $(pc $which --cflags margay-profile) -x c - $(pc $which --libs margay-profile) -o reader.$which > out 2> err <<'C' || fail "a reader against the $which"
#include <margay/profile.h>
int main(void) { return 0; }
C
done
run() { "$1" run -o "$2" -t "$3" --device emu -- "$B/examples/reduce" > out 2> err || fail "$1 -t $3"; }
run "$root/usr/bin/margay" p1 ./package.so
run "$MARGAY" p2 ./tree.so
run "$MARGAY" p3 ./package.so
gcc -std=c17 -D_GNU_SOURCE -O2 -fPIC -fvisibility=hidden -I"$ROOT/src" -I"$B/gen" -shared "$ROOT/examples/tools/zeros.c" "$B/lib/margay/libmargay-core.a" \
    -Wl,--exclude-libs,ALL -lm -o copy.so && run "$MARGAY" p4 ./copy.so # holds a copy of the core
for p in p1 p2 p3 p4; do
    "$MARGAY" report $p --json > $p.json && python3 -c "import json; t = json.load(open('$p.json'))['tools']['zeros']; print(sum(l['reads'] for l in t['loads']), sum(l['zeros'] for l in t['loads']))" >> sums || fail "report $p"
done
[ "$(sort -u sums | wc -l)" = 1 ] && read -r reads zeros < sums && [ "$reads" -gt 262144 ] && [ "$zeros" -gt 0 ] || fail "tools disagree: $(cat sums)"

# a tool of another build is refused by name, and so is one whose core is gone
sed "s/$(cut -d'"' -f2 "$B/gen/margay-stamp.h" | cut -c1-12)/0123456789ab/g" < package.so > other.so
"$MARGAY" tools -t ./other.so > out 2>&1 || "$MARGAY" run -t ./other.so -- true > out 2>&1
grep -q 'other.so was built with another margay (libmargay-core.so.0123456789ab): build it again' out || fail "another build's tool"

# in a root with glibc alone
if [ "$(id -u)" = 0 ] && command -v chroot > /dev/null; then
    for f in $(dpkg -L libc6 | grep '\.so' ; echo /lib64/ld-linux-x86-64.so.2); do
        [ -f "$f" ] && mkdir -p "root$(dirname "$f")" && cp -Lf "$f" "root$f"
    done
    mkdir -p root/tmp root/dev root/proc && cp "$B/examples/reduce" root/tmp/
    if chroot root /usr/bin/margay --version > out 2> err; then
        chroot root /usr/bin/margay report --help > out 2> err || fail "in the chroot"
        LD_LIBRARY_PATH=/usr/lib/margay/driver chroot root /tmp/reduce > out 2> err && grep -q PASSED out || fail "a program over the driver in the chroot"
    else
        grep -q 'Operation not permitted\|cannot change root' err || fail "the program needs more than glibc"
    fi
    dpkg --root="$root" --force-script-chrootless --no-triggers -r margay > out 2> err || fail "dpkg -r"
    [ ! -e root/usr/bin/margay ] && [ ! -d root/usr/lib/margay ] || fail "the removed package leaves $(find root/usr -path '*margay*' | head -5)"
fi
exit 0
