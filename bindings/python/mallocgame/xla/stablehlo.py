"""StableHLO as text, and as the bytes that the compiler takes. It needs jaxlib, but no JAX."""

import functools
import re


@functools.lru_cache(maxsize=4)
def portable_artifact(module: str) -> bytes:
    """Returns a StableHLO module in a form that compilers of other versions read.

    They may be up to twelve weeks older than jaxlib, as JAX has it too. ValueError: it is no
    StableHLO text.
    """
    from jaxlib import _jax
    from jaxlib.mlir.dialects import stablehlo

    version = stablehlo.get_version_from_compatibility_requirement(
        stablehlo.StablehloCompatibilityRequirement.WEEK_12
    )
    try:
        return _jax.mlir.serialize_portable_artifact(module, version)
    except Exception as error:
        raise ValueError(f"no StableHLO text: {str(error).strip()}") from None


def device_count(module: str) -> int:
    """Returns how many devices a StableHLO module is for."""
    return attribute(module, "num_partitions")


def attribute(module: str, name: str) -> int:
    """Returns an attribute of a StableHLO module; where it isn't said, it is 1."""
    found = re.search(rf"mhlo\.{name} = (\d+)", module)
    return int(found[1]) if found else 1
