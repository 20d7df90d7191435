"""python -m mallocgame: the command line."""

import sys

from mallocgame._cli.main import main

sys.exit(main())
