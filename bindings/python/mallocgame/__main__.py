"""Runs the command line as `python -m mallocgame`."""

import sys

from mallocgame._cli.main import main

sys.exit(main())
