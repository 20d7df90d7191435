"""Names that have moved from a package to its modules: for one release the old ones warn."""

import operator
import sys
import warnings
from collections.abc import Mapping


def moved(package: str, name: str, modules: Mapping[str, str]) -> object:
    """Returns what a package had under a name before. AttributeError: it had nothing.

    modules: where in the package names are now, and these names with spaces between them.
    """
    for module, names in modules.items():
        if name in names.split():
            text = f"{package}.{name} is {package}.{module}.{name} now"
            warnings.warn(text, DeprecationWarning, stacklevel=3)
            return operator.attrgetter(f"{module}.{name}")(sys.modules[package])
    raise AttributeError(f"module '{package}' has no attribute {name!r}")
