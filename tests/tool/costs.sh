#!/bin/sh
# What the findings' model takes ptxas to make of operations, against ptxas: twelve rows of the table by lot, a planted wrong one, and every row's name.
set -u
ptxas=$(command -v ptxas || echo "${NVCC%/*}/ptxas")
[ -x "$ptxas" ] || { echo 'no ptxas'; exit 77; }
table=$ROOT/src/report/advice/costs.def seed=${SEED:-$$}
echo "seed $seed"
version=$("$ptxas" --version | sed -n 's/.*release \([0-9]*\.[0-9]*\).*/\1/p')
[ "$version" = 13.0 ] || { echo "ptxas $version: the table is of 13.0"; exit 77; }
"$ROOT/bench/advise/costs" --ptxas "$ptxas" --check "$table" --draw 12 --seed "$seed" || exit 1
sed 's/^COST("rem.u32", .*/COST("rem.u32", 3)/' "$table" > wrong.def
"$ROOT/bench/advise/costs" --ptxas "$ptxas" --check wrong.def --draw 0 rem.u32 > out && { echo 'a wrong row was not seen'; exit 1; }
grep -qx 'rem.u32: the table says 3, ptxas makes [0-9]*' out || { cat out; exit 1; }
"$ROOT/bench/advise/costs" --ptxas "$ptxas" div.none > out 2>&1 && { echo 'an unknown operation passed'; exit 1; }
grep -q 'no such operation: div.none' out || { cat out; exit 1; }
