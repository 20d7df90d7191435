"""Tells Gymnasium the names of our environments without importing it.

If it is not imported yet it is told when somebody imports it.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Sequence


def register() -> None:
    """Registers the environments. It needs Gymnasium; calling it again does nothing."""
    from gymnasium.envs import registration

    if "mallocgame/MallocGame-v0" not in registration.registry:
        registration.register(
            "mallocgame/MallocGame-v0",
            entry_point="mallocgame.envs.gym:MallocGameEnv",
            vector_entry_point="mallocgame.envs.vector:VectorEnv",
        )
        registration.register(
            "mallocgame/PriorityGame-v0",
            entry_point="mallocgame.envs.gym:MallocGameEnv",
            vector_entry_point="mallocgame.envs.vector:VectorEnv",
            kwargs={"game": "priority"},
        )
        registration.register(
            "mallocgame/FineGame-v0",
            entry_point="mallocgame.envs.gym:MallocGameEnv",
            vector_entry_point="mallocgame.envs.vector:VectorEnv",
            kwargs={"game": "fine"},
        )
        registration.register(
            "mallocgame/ScheduleGame-v0",
            entry_point="mallocgame.envs.gym:MallocGameEnv",
            vector_entry_point="mallocgame.envs.vector:VectorEnv",
            kwargs={"game": "schedule"},
        )
        registration.register(
            "mallocgame/Placement-v0", entry_point="mallocgame.envs.placement:PlacementEnv"
        )


def register_when_imported() -> None:
    """Registers the environments as soon as Gymnasium is imported."""
    if sys.modules.get("gymnasium") is not None:
        register()
    elif not any(isinstance(finder, _Gymnasium) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Gymnasium())


class _Gymnasium(importlib.abc.MetaPathFinder):
    """Leaves finding Gymnasium to the other finders, and registers once behind its import."""

    def __init__(self) -> None:
        self._searching = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
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

        def execute_and_register(module: types.ModuleType) -> None:
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            execute(module)
            register()

        # Not every search is followed by an import, so the finder goes only with the import itself.
        spec.loader.exec_module = execute_and_register  # type: ignore[method-assign]
        return spec
