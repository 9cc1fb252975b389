#!/bin/sh
# tests/inject/ways.sh on real hardware.
REAL_GPU=1 DEVICES=nvidia exec sh "$ROOT/tests/inject/ways.sh"
