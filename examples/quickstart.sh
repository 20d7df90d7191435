#!/usr/bin/env bash
# From a fresh checkout to the main job: import a real TPU program as the compiler left it, find a
# better memory mapping than the compiler's by searching the game, check it, replay it, look at it,
# train an agent if there is Torch, and compare solvers on several programs with each other, the
# compiler and a bound. A few minutes on two cores.
set -euo pipefail
cd "$(dirname "$0")/.."
.ci/setup bounds
PATH="$PWD/.venv/bin:$PATH"
out=build/quickstart
mkdir -p "$out"

echo "== import: what XLA:TPU assigned and priced in a program becomes a problem"
hlo=benchmarks/programs/hlo/core/tpu_v4i/wavernn_64steps_b8
program="$out/wavernn.mgp"
mallocgame import "$hlo/pre_msa.hlo.pb.gz" --assigned "$hlo/post_msa.hlo.pb.gz" \
  --priced "$hlo"/codegen_*.hlo.pb.gz \
  --profile "$hlo/profile.json.gz" --hardware tpu_v4i --name wavernn_64steps_b8 -o "$program"

echo "== solve: tree search in the game itself; its plan and its game written to $out"
mallocgame solve "$program" --solver mcts --seconds 10 -o "$out/plan.json" --log "$out/game.mgr"

echo "== the plan is judged, and the game replayed step by step"
mallocgame validate "$program" "$out/plan.json"
mallocgame replay "$out/game.mgr" --program "$program"

echo "== look at it: open $out/game.html in a browser"
mallocgame view "$out/game.mgr" --program "$program" --against xla -o "$out/game.html"

if python -c "from mallocgame.agents import muzero_settings; muzero_settings()" 2>/dev/null; then
  echo "== train: a MuZero agent on the same program, its checkpoint, plan and game in $out/muzero"
  mallocgame train muzero "$program" --out "$out/muzero" --resume --seconds 40
else
  echo "== train: left out, there is no Torch here; \`.ci/setup agents\` installs it"
fi

echo "== compare: solvers on real programs, against the compiler and a bound"
mallocgame compare wavernn_64steps_b8.tpu_v4i resnet50_b1.tpu_v4i_16mib \
  mlp_train_adam_b512.tpu_v5e llama_1b_decode_8l_b4_kv1024.tpu_v6e \
  --solvers greedy,mcts,portfolio,xla-assigned --seconds 12 --bound lp
