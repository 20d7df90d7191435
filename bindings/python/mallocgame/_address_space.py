"""Libraries that end the process, or never return, where the address space is limited too far."""

import resource

from mallocgame.errors import MallocGameError

# By the name that people know; in bytes. They are more than what it takes on 2 cores: OpenBLAS,
# which comes with SciPy, takes 32 MiB more for each further core.
_NEEDED = {"JAX": 2 << 30, "SciPy": 1 << 30, "Torch": 1 << 30}


def check_address_space(library: str) -> None:
    """MallocGameError: the process may not have the address space that a library needs.

    library: JAX and Torch abort with too little, and SciPy waits for it for ever. To be called
    before any of them is imported.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    needed = _NEEDED[library]
    if limit != resource.RLIM_INFINITY and limit < needed:
        raise MallocGameError(
            f"{library} needs {needed >> 20} MiB of address space, but the limit of this process "
            f"is {limit >> 20} MiB (ulimit -v)"
        )
