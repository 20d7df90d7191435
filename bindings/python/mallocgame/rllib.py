"""The former name of mallocgame.envs.rllib."""

import sys

from mallocgame.envs import rllib

sys.modules[__name__] = rllib
