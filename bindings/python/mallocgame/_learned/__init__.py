"""Training of the solver `learned`: the network that advises, and the styles it is taken in.

docs/learned.md. What the network reads and how games are played by its advice is C++
(mallocgame/solvers/learned); here are the weights' file and the three steps of training:
demonstrations are imitated, returns are followed if it is asked for, and styles are chosen.
"""
