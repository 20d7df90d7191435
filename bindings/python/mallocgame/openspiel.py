"""The former name of mallocgame.envs.openspiel."""

import sys

from mallocgame.envs import openspiel

sys.modules[__name__] = openspiel
