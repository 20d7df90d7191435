"""The former name of mallocgame.envs.sb3."""

import sys

from mallocgame.envs import sb3

sys.modules[__name__] = sb3
