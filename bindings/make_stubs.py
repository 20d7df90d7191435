"""Writes the stubs (.pyi) of the extension modules that the build has made.

Usage: make_stubs.py PYTHON BUILT MODULE...
  PYTHON  the folder of the package's Python modules
  BUILT   the folder that has the extension modules and gets the stubs
  MODULE  their names, each after those that it imports
"""

import importlib.util
import pathlib
import sys
import sysconfig
import types

import pybind11_stubgen

python, built, *modules = sys.argv[1:]
# The package without its __init__, which would import the rest of it and its requirements.
package = types.ModuleType("mallocgame")
package.__path__ = [python]
sys.modules["mallocgame"] = package
for module in modules:
    name = f"mallocgame.{module}"
    # By its path, because a package that is installed with --editable has a finder of its own.
    path = pathlib.Path(built, module + sysconfig.get_config_var("EXT_SUFFIX"))
    spec = importlib.util.spec_from_file_location(name, path)
    sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[name])
    pybind11_stubgen.main([name, "--exit-code", "-o", str(pathlib.Path(built).parent)])
