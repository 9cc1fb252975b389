#!/bin/sh
# PyTorch and Triton, stock wheels: what they print is unchanged under `margay run`; at least 95 % of the launches of
# Triton's kernels and of torch.compile's are instrumented, with a cold and with a warm Triton cache; PyTorch's own
# kernels and those of its libraries run, each known by name with the reason why it is native.
set -u
python3 -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2> /dev/null || { echo "no PyTorch that sees a GPU"; exit 77; }
python3 -c 'import triton' 2> /dev/null || { echo "no Triton"; exit 77; }
failed=0
export XDG_CACHE_HOME=$PWD/cache
under() { # MODE CACHE-FOLDER NAME PATTERN LEAST
    rm -rf profile
    export TRITON_CACHE_DIR="$PWD/$2/triton" TORCHINDUCTOR_CACHE_DIR="$PWD/$2/inductor"
    if timeout 250 "$MARGAY" run -t blocks --stats --device nvidia -o profile -- python3 "$ROOT/tests/gpu/torch_triton.py" "$1" > out 2> err &&
        cmp "plain.$1" out && "$MARGAY" report profile --json > out.json && python3 "$ROOT/tests/gpu/reach.py" out.json "$4" "$5" > reach 2>> err; then
        echo "ok   $1 $3"
    else
        echo "FAIL $1 $3"
        tail -n 25 err
        failed=1
    fi
    cat reach
    grep 'own time' err
}
plain() { # MODE MODE-WITHOUT
    export TRITON_CACHE_DIR="$PWD/plain.cache/triton"
    python3 "$ROOT/tests/gpu/torch_triton.py" "$2" > "plain.$1" 2> err || { echo "FAIL $2, without Margay"; tail -n 5 err; exit 1; }
}
for mode in ${MODES:-eager triton compile}; do
    case $mode in
    eager) plain eager eager; under eager eager "" . 0 ;;
    triton) plain triton triton; under triton a cold '_kernel$' 95; under triton a warm '_kernel$' 95 ;;
    compile) plain compile uncompiled; under compile b cold '^triton_' 95; under compile b warm '^triton_' 95 ;;
    esac
done
exit $failed
