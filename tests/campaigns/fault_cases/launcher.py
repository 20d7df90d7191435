"""The command line with another process in place of the compiler's; compilers.py says which."""

import os
import sys

from mallocgame._cli.main import main
from mallocgame.xla import compiler_process

os.environ["REAL_WORKER"] = compiler_process._WORKER
compiler_process._WORKER = os.environ["CHILD"]
compiler_process._START_SECONDS = 30.0
sys.exit(main())
