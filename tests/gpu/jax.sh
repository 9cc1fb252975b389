#!/bin/sh
# JAX, stock wheels: what it prints is unchanged under `margay run`, and at least 90 % of the launches of kernels that XLA
# generated are instrumented. Those of cuBLAS and cuDNN, and XLA's own in C++ (they check and time what it tries), have no PTX for the device.
set -u
python3 -c 'import jax, sys; sys.exit(jax.devices()[0].platform != "gpu")' > /dev/null 2>&1 || { echo "no JAX that sees a GPU"; exit 77; }
export XDG_CACHE_HOME=$PWD/cache XLA_PYTHON_CLIENT_PREALLOCATE=false
python3 "$ROOT/tests/gpu/jax_xla.py" > plain 2> err || { echo "FAIL without Margay"; tail -n 5 err; exit 1; }
failed=0
for run in cold warm; do
    rm -rf profile
    if timeout 250 "$MARGAY" run -t blocks --stats --device nvidia -o profile -- python3 "$ROOT/tests/gpu/jax_xla.py" > out 2> err && cmp plain out &&
        "$MARGAY" report profile --json > out.json &&
        python3 "$ROOT/tests/gpu/reach.py" out.json '^(?!_Z|sm[0-9]+_|nvjet|ampere_|cudnn)' 90 > reach 2>> err; then
        echo "ok   $run"
    else
        echo "FAIL $run"
        tail -n 25 err
        failed=1
    fi
    cat reach
    grep 'own time' err
done
exit $failed
