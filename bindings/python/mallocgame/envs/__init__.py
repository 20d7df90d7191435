"""The Gymnasium environments. Users import them from mallocgame.

Of the modules only `registration` can be imported without Gymnasium.
"""
