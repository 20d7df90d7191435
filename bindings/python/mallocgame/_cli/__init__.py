"""The command line, `mallocgame` and `python -m mallocgame`.

main.py lists the modules of the commands. Each module adds its commands to the parser: the
arguments and, beside them, the function that carries the command out.
"""
