#!/bin/sh
# The examples, driver API (clang) and runtime API (nvcc), under `blocks` and under `none`: their
# own check passes, stdout is the same, and the counts equal closed forms.
set -u
bad=0 ran=0
try() { # program name size [steps]
    prog=$1; shift
    tag=$prog.$(echo "$*" | tr " " .)
    [ -x "$EX/$prog" ] || return 0
    ran=$((ran + 1))
    name=$1; shift
    "$MARGAY" run -q --device emu -t none -o "none.$tag" -- "$EX/$prog" "$@" >"none.$tag.out" 2>"none.$tag.err" ||
        { echo "$prog under none: exit $?"; cat "none.$tag.out" "none.$tag.err"; bad=1; return; }
    "$MARGAY" run -q --device emu -t blocks -o "blocks.$tag" -- "$EX/$prog" "$@" >"$prog.out" 2>"$prog.err" ||
        { echo "$prog under blocks: exit $?"; cat "$prog.out" "$prog.err"; bad=1; return; }
    cmp "none.$tag.out" "$prog.out" || bad=1
    grep -q PASSED "$prog.out" || { echo "$prog: no PASSED"; bad=1; }
    "$MARGAY" report "blocks.$tag" --json >"$prog.json" && python3 "$ROOT/tests/app/closed_forms.py" "$prog.json" "$name" "$@" ||
        { echo "$prog: counts"; bad=1; }
}
for rt in '' -rt; do
    try "saxpy$rt" saxpy 100000
    try "saxpy$rt" saxpy 1
    try "reduce$rt" reduce 100000
    try "divergent$rt" divergent 5000
    try "matmul$rt" matmul 64
    try "histogram$rt" histogram 100000
    try "stencil$rt" stencil 100 3
done
[ $ran -gt 0 ] || { echo "no example was built"; exit 1; }
exit $bad
