"""Settings with which a step of an agent takes a fraction of a second. It needs no package."""

from collections.abc import Mapping

EGRL = {
    "population": 6,
    "elites": 2,
    "hidden": 8,
    "heads": 2,
    "depth": 1,
    "critic_hidden": 8,
    "batch": 4,
    "warmup": 8,
    "updates": 1,
    "candidates": 8,
}
MUZERO = {
    "groups": 2,
    "games": 4,
    "moves": 4,
    "varied_decisions": 500,
    "reanalysed": 8,
    "simulations": 4,
    "width": 16,
    "updates": 2,
    "batch": 16,
    "demonstration_decisions": 1000,
}


def texts(settings: Mapping[str, int]) -> list[str]:
    """Returns settings as `--config` takes them."""
    return [f"{name}={value}" for name, value in settings.items()]
