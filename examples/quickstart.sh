#!/usr/bin/env bash
# From a fresh checkout to the main job: find a better memory mapping for a real TPU program than its compiler's, check
# it, replay it, and compare solvers on several programs. A few minutes on two cores.
set -euo pipefail
cd "$(dirname "$0")/.."
.ci/setup
PATH="$PWD/.venv/bin:$PATH"
out=build/quickstart
mkdir -p "$out"

echo "== solve: one program, its plan and its game written to $out"
mallocgame solve wavernn_64steps_b8.tpu_v4i --solver greedy --seconds 20 -o "$out/plan.json" --log "$out/game.mgr"

echo "== the plan is judged, and the game replayed step by step"
mallocgame validate wavernn_64steps_b8.tpu_v4i "$out/plan.json"
mallocgame replay "$out/game.mgr"

echo "== compare: three solvers on real programs"
mallocgame compare wavernn_64steps_b8.tpu_v4i resnet50_b1.tpu_v4i_16mib mlp_train_adam_b512.tpu_v5e \
  llama_1b_decode_8l_b4_kv1024.tpu_v6e --solvers greedy,portfolio,xla-assigned --seconds 15
