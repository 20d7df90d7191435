"""python -m mallocgame: the command line."""

import sys

from mallocgame.cli import main

sys.exit(main())
