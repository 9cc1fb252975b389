#!/usr/bin/env bash
# Manual pages and completion come from the option tables, and every command has its page.
set -euo pipefail
"$ROOT/scripts/gen-man" "$MARGAY" man
commands=$("$MARGAY" help | sed -n 's/^  \([a-z]*\)  *.*$/\1/p' | grep -v '^margay$')
for c in $commands; do
    [ -s "$ROOT/docs/man/$c.md" ] || { echo "docs/man/$c.md is missing"; exit 1; }
    [ -s "man/margay-$c.1" ] || { echo "no page for $c"; exit 1; }
    grep -q "margay\\\\-$c" man/margay.1 || { echo "margay(1) does not name $c"; exit 1; }
    "$MARGAY" $c --help=words | tr '\t' '\n' | grep -o -- '--[a-z-]*' | sort -u > words || true
    while read -r o; do
        grep -qF -- "${o//-/\\-}" "man/margay-$c.1" || { echo "the page of $c lacks $o"; exit 1; }
    done < words
done
for p in "$ROOT"/docs/man/*.md; do
    name=$(basename "$p" .md)
    [ "$name" = margay ] || grep -qx "$name" <<<"$commands" || { echo "$p is of no command"; exit 1; }
done
if command -v groff >/dev/null; then
    for p in man/*.1; do
        groff -man -Tutf8 -ww "$p" 2>warnings >/dev/null
        if grep -v 'an-escape\|cannot adjust\|break' warnings; then echo "groff warns of $p"; exit 1; fi
    done
fi
"$ROOT/scripts/gen-completion" "$MARGAY" > completion
complete_line() { bash -c 'source completion; COMP_WORDS=($1); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); [ -n "${2:-}" ] && { COMP_WORDS+=(""); COMP_CWORD=$((COMP_CWORD + 1)); }; _margay; echo "${COMPREPLY[*]}"' _ "$@"; }
[ "$(complete_line 'margay repo')" = report ] || { echo "completes rep to '$(complete_line 'margay repo')'"; exit 1; }
[ "$(complete_line 'margay report --per')" = --per-launch ] || { echo 'options do not complete'; exit 1; }
[ "$(complete_line 'margay run --device' space)" = 'auto nvidia cpu emu' ] || { echo 'choices do not complete'; exit 1; }
[ "$(complete_line 'margay run -t bl')" = blocks ] || { echo 'tools do not complete'; exit 1; }
