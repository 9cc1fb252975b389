#!/bin/sh
# Tables that the howtos promise to be whole (docs/howto-*.md): each row of a list has its page, each page its row.
set -u
cd "$ROOT" || exit 1
failed=0
fail() { echo "FAIL: $*"; failed=1; }
same() { # WHAT FILE1 FILE2
    diff "$2" "$3" > "$tmp/diff" || { fail "$1"; cat "$tmp/diff"; }
}
tmp=$OLDPWD

# storage classes: their names, and the first column of docs/counters.md's table
grep -ohE '\.name = "[a-z0-9]+"' src/count/storage/*.c src/count/*.c | cut -d'"' -f2 | sort > "$tmp/have"
sed -n '/^| class | holds/,/^$/p' docs/counters.md | sed -n 's/^| `\([a-z0-9]*\)`.*/\1/p' | sort > "$tmp/told"
[ "$(wc -l < "$tmp/have")" -ge 10 ] || fail "storage classes are not found by their names"
same "storage classes (<) and the table of docs/counters.md (>)" "$tmp/have" "$tmp/told"
exit $failed
