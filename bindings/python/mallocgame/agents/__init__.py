"""Agents that learn. They need Torch, in the version that mallocgame was built with.

from mallocgame import agents
trainer = agents.MuZero("mlp_train_adam_b512.tpu_v4i", config={"simulations": 32}, seed=1)
trainer.train(seconds=60)
trainer.best().report.latency_ps, trainer.best_game().actions
trainer.save("mlp.muzero")
agent = agents.MuZeroAgent.load("mlp.muzero")
agent.play(mg.load_program("gcn_dense_2048.tpu_v4i")).report.latency_ps

trainer = agents.Egrl(mg.placement.problem("resnet50_b1.tpu_v4i", "nnp_i"), seed=1)
trainer.train(evaluations=4000)
trainer.best().map, trainer.best().latency_ps
trainer.agent().place(mg.placement.problem("bert_base_b1_s128.tpu_v4i", "nnp_i")).latency_ps
"""

from mallocgame._torch import TorchMissingError, egrl_solver, solver_of
from mallocgame.agents.egrl import Egrl, EgrlAgent, FoundMap, egrl_settings
from mallocgame.agents.muzero import MuZero, MuZeroAgent, muzero_settings
from mallocgame.agents.timing import POLISH_SHARE, begin_muzero
from mallocgame.agents.trainer import Setting

__all__ = [
    "POLISH_SHARE",
    "Egrl",
    "EgrlAgent",
    "FoundMap",
    "MuZero",
    "MuZeroAgent",
    "Setting",
    "TorchMissingError",
    "begin_muzero",
    "egrl_settings",
    "egrl_solver",
    "muzero_settings",
    "solver_of",
]
