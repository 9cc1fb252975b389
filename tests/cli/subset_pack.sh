#!/bin/sh
# bench/subset/run pack and unpack: one file holds what selections are made and judged from: they are the same from it, for every
# interval where there is room, for launches where there is none for time lines.
set -u
failed=0
fail() { echo "FAIL $*"; failed=1; }
run=$ROOT/bench/subset/run
export EX
printf 'stencil\t-\t$EX/stencil-rt 64 30\t-\t$EX/stencil-rt 32 30\n' > list.tsv
"$run" record --margay "$MARGAY" --device emu --programs list.tsv --trials 1 --out rec > out 2>&1 || { fail 'record'; cat out; }
"$run" record --margay "$MARGAY" --device emu --programs list.tsv --trials 1 --out rec --replay > out 2>&1 || { fail 'replays'; cat out; }
study() { # FOLDER ARGS...
    (cd "$1/stencil" && shift && "$MARGAY" study subset counts --times a.0 b.0 c.0 "$@" --json 2>&1) | sed 's/"dir":"[^"]*"//'
}
for size in 4.8 0; do
    rm -rf un
    "$run" pack --out rec --file file.tar.xz --megabytes $size && "$run" unpack --file file.tar.xz --out un || fail "pack and unpack, $size MB"
    [ -e un/stencil/a.0/profile.db ] && [ -e un/stencil/replay.0/profile.db ] && [ -e un/stencil/input.0/profile.db ] || fail "runs of $size MB"
    for how in '--method simpoint' '--method margay --use-times' '--method stem' '--method sieve --interval sync'; do
        [ $size = 0 ] && [ "$how" = '--method sieve --interval sync' ] && continue
        study rec $how > one
        study un $how > two
        grep -q '"selected":\[{' one && cmp one two || { fail "selection $how, $size MB"; head -c 300 one two; }
    done
    for how in replay.0 '--other-input input.0'; do
        for d in rec un; do (cd $d/stencil && "$MARGAY" study subset counts --times a.0 $how --json) > $d.json 2>&1; done
        grep -q '"held_out_pct":[0-9]' rec.json && cmp rec.json un.json || { fail "judged by $how, $size MB"; head -c 300 rec.json; }
    done
done
study un --interval sync | grep -q 'it has no time line' || fail 'a time line that had no room'
[ $failed = 0 ] && echo ok
exit $failed
