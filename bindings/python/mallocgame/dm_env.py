"""The former name of mallocgame.envs.dm_env."""

import sys

from mallocgame.envs import dm_env

sys.modules[__name__] = dm_env
