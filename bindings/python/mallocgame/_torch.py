"""The door to mallocgame._agents, the extension that needs Torch, and the solvers behind it."""

import contextlib
import ctypes
import functools
import importlib.util
import os
import sys
from types import ModuleType

from mallocgame._address_space import check_address_space
from mallocgame._core import NamedSolver, read_file
from mallocgame.errors import InvalidInputError, MallocGameError, how_to_install
from mallocgame.programs import named

#: Solvers that need Torch, with the extension's class of their trained agents; `train` trains them.
AGENTS = {"muzero": "MuZeroAgent", "egrl": "EgrlAgent"}
PORTFOLIO_SHARE = 0.5  # of a portfolio's time that such a solver gets


class TorchMissingError(MallocGameError, ImportError):
    """The learning agents or Torch are missing, or it isn't the Torch that they were built with."""


def torch_module() -> ModuleType:
    """Returns mallocgame._agents.

    TorchMissingError says what to install. MallocGameError: Torch needs more address space.
    """
    import importlib.metadata  # takes longer than all of mallocgame's own modules

    try:
        from mallocgame._agents_build import TORCH
    except ImportError:
        raise TorchMissingError(
            f"mallocgame was installed without its learning agents: {how_to_install('agents')}"
        ) from None
    try:
        found = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError as error:
        raise TorchMissingError(
            f"the learning agents need Torch: pip install torch=={TORCH} ({error})"
        ) from None
    if found.partition("+")[0] != TORCH:
        raise TorchMissingError(
            f"mallocgame was built with Torch {TORCH}, found {found}: "
            f"pip install torch=={TORCH}, or install mallocgame again "
            "with --no-build-isolation"
        )
    _load_torch()
    from mallocgame import _agents

    return _agents


def _load_torch() -> None:
    """Loads the libraries of Torch, as importing it would, which takes seconds."""
    if "torch" in sys.modules:
        return
    check_address_space("Torch")
    package = importlib.util.find_spec("torch")
    for folder in (package and package.submodule_search_locations) or ():
        with contextlib.suppress(OSError):
            ctypes.CDLL(os.path.join(folder, "lib", "libtorch.so"))
            return
    # Such as a build with CUDA, whose libraries Torch itself knows how to find.
    import torch  # noqa: F401


def egrl_solver() -> NamedSolver:
    """Returns the solver `egrl`.

    It plays the program's game as a placement problem, and trains on it within the limits.
    """
    solver: NamedSolver = torch_module().egrl_solver()
    return solver


def solver_of(checkpoint: str | os.PathLike[str]) -> NamedSolver:
    """Returns the solver that a trained agent is; its name is that of the agent's kind.

    InvalidInputError: the file is no checkpoint.
    """
    content = read_file(checkpoint)
    for kind, agent in AGENTS.items():
        if content.startswith(f"mallocgame {kind} checkpoint ".encode()):
            return named(os.fspath(checkpoint), functools.partial(_loaded, agent, content))
    raise InvalidInputError(
        f"{os.fspath(checkpoint)}: not a checkpoint of an agent ({', '.join(AGENTS)})"
    )


def _loaded(agent: str, checkpoint: bytes) -> NamedSolver:
    solver: NamedSolver = getattr(torch_module(), agent)(checkpoint).solver(PORTFOLIO_SHARE)
    return solver
