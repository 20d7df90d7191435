"""The environments: Gymnasium's, which users import from mallocgame, and adapters to others.

Of the modules only `registration` can be imported without Gymnasium.
"""
