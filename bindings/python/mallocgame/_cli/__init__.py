"""The command line, `mallocgame` and `python -m mallocgame`; main.py is its door."""
