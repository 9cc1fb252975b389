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

# tools: the page that each names, and the row of each page in the list of pages
"$MARGAY" tools -v | sed -n 's/^    page: //p' | sort -u > "$tmp/pages"
[ "$(wc -l < "$tmp/pages")" -ge 18 ] || fail "tools name no pages"
while read -r page; do [ -f "$page" ] || fail "margay tools -v names $page, which is not there"; done < "$tmp/pages"
grep '^docs/tools/' "$tmp/pages" | sed 's|docs/tools/\(.*\)\.md|\1|' > "$tmp/have"
sed -n 's/^| \[\([a-z]*\)\](\1\.md).*/\1/p' docs/tools/README.md | sort > "$tmp/told"
same "tools (<) and the table of docs/tools/README.md (>)" "$tmp/have" "$tmp/told"
ls docs/tools | sed -n 's/^\([a-z]*\)\.md$/\1/p' | sort > "$tmp/told"
same "tools (<) and pages in docs/tools (>)" "$tmp/have" "$tmp/told"

# the example of docs/counters.md: its plan is what the program makes of its PTX
sed -n '/^```ptx$/,/^```$/p' docs/counters.md | sed '/^```/d' > "$tmp/example.ptx"
"$MARGAY" ptx instrument -t blocks --sm 90 --dump plan "$tmp/example.ptx" | grep -E '^// (plan|  )' > "$tmp/have"
sed -n '/^\/\/ plan of odd/,/^```$/p' docs/counters.md | grep '^//' > "$tmp/told"
[ -s "$tmp/told" ] || fail "docs/counters.md has no plan"
same "the plan (<) and that of docs/counters.md (>)" "$tmp/have" "$tmp/told"
exit $failed
