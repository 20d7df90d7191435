"""The command line with another process in place of the compiler's; compilers.py says which."""

import os
import sys

from mallocgame._cli.main import main
from mallocgame.xla import compiler

os.environ["REAL_WORKER"] = compiler._WORKER
compiler._WORKER = os.environ["CHILD"]
compiler._START_SECONDS = 30.0
sys.exit(main())
