"""Tells Gymnasium the names of our environments, without importing it: if it isn't there yet,
when somebody imports it.
"""

import importlib.abc
import importlib.util
import sys


def register() -> None:
    """Needs Gymnasium imported. Calling it again does nothing."""
    from gymnasium.envs import registration

    if "mallocgame/MallocGame-v0" not in registration.registry:
        registration.register(
            "mallocgame/MallocGame-v0",
            entry_point="mallocgame.envs.gym:MallocGameEnv",
            vector_entry_point="mallocgame.envs.vector:VectorEnv",
        )
        registration.register(
            "mallocgame/Placement-v0", entry_point="mallocgame.envs.placement:PlacementEnv"
        )


def register_when_imported() -> None:
    if sys.modules.get("gymnasium") is not None:
        register()
    elif not any(isinstance(finder, _Gymnasium) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Gymnasium())


class _Gymnasium(importlib.abc.MetaPathFinder):
    """Finds nothing by itself: leaves the search for Gymnasium to the others, and registers
    behind its import, once.
    """

    def __init__(self) -> None:
        self._searching = False

    def find_spec(self, fullname, path, target=None):
        if fullname != "gymnasium" or self._searching:
            return None
        self._searching = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._searching = False
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def execute_and_register(module) -> None:
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            execute(module)
            register()

        # Not every search is followed by an import, so that the finder goes only with the import
        # itself.
        spec.loader.exec_module = execute_and_register
        return spec
