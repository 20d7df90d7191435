"""What pybind11 refuses of the arguments of an extension module, in the words of the caller.

pybind11 checks what a function takes. Its TypeError names C++ types, and lists everything that the
function takes; here it becomes an error as _arguments.py has them.
"""

import functools
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mallocgame._arguments import SEEDS, as_integer, refused, words
from mallocgame.errors import InvalidInputError


def refuse_in_callers_words(module: types.ModuleType) -> None:
    """Has the functions of an extension module raise InvalidInputError for what they can't take.

    Functions that take nothing but any object stay as they are, and as fast.
    """
    for name, value in list(vars(module).items()):
        if isinstance(value, types.BuiltinFunctionType) and _checks(value):
            setattr(module, name, _translating(value, name, module))
        elif isinstance(value, type) and value.__module__ == module.__name__:
            for member, function in list(vars(value).items()):
                static = isinstance(function, staticmethod)
                inner = function.__func__ if static else function
                special = member.startswith("__") and member != "__init__"
                if special or not callable(inner) or not _checks(inner):
                    continue
                named = value.__name__ if member == "__init__" else f"{name}.{member}"
                translating = _translating(inner, named, module)
                setattr(value, member, staticmethod(translating) if static else translating)


_REFUSED = ("incompatible function arguments", "incompatible constructor arguments")


def _translating(function: Any, name: str, module: types.ModuleType) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            # What a function of the caller raises passes through more frames than this one.
            inner = error.__traceback__ and error.__traceback__.tb_next
            if inner is not None or not any(one in str(error) for one in _REFUSED):
                raise
            told = _explained(function, name, module, args, kwargs)
        finally:
            args = ()  # An object that was not made can't be shown, as debuggers do with arguments.
        raise told from None

    return call


def _explained(
    function: Any,
    name: str,
    module: types.ModuleType,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Exception:
    parameters = _parameters(function)
    if parameters and parameters[0].name == "self":
        if not args or not isinstance(args[0], _class_of(parameters[0].type, module)):
            return TypeError(f"{name}() must be called with an object of its class")
        parameters, args = parameters[1:], args[1:]
    names = [one.name for one in parameters]
    if len(args) > len(names):
        return TypeError(f"{name}() takes {len(names)} arguments, but {len(args)} were given")
    given = dict(zip(names, args, strict=False))
    for one in kwargs:
        if one not in names:
            return TypeError(f"{name}() has no argument '{one}', but {', '.join(names)}")
        if one in given:
            return TypeError(f"{name}() got two values for the argument '{one}'")
    given |= kwargs
    missing = [one.name for one in parameters if not one.optional and one.name not in given]
    if missing:
        return TypeError(f"{name}() lacks the argument '{missing[0]}'")
    by_name = {one.name: one.type for one in parameters}
    for one, value in given.items():
        misfit = _misfit(one, by_name[one], value, module)
        if misfit is not None:
            return refused(*misfit)
    large = [
        number for one, value in given.items() for number in _integers(one, by_name[one], value)
    ]
    if large:
        return _out_of_range(large)
    return InvalidInputError(f"{name}: found arguments of other types than it takes")


def _out_of_range(integers: list[tuple[str, int]]) -> InvalidInputError:
    """Returns the error for the one of these that no integer of C++ holds."""
    negative = [(name, number) for name, number in integers if number < 0]
    name, number = (negative or [max(integers, key=lambda one: one[1])])[0]
    if name.partition("[")[0] in ("seed", "seeds"):
        return refused(name, number, SEEDS)
    if negative:
        return refused(name, number, "an integer from 0 on")
    bits = 31 if number < 2**63 else 63
    return refused(name, number, f"an integer up to {2**bits - 1}")


class _Parameter(NamedTuple):
    name: str
    type: str
    optional: bool


# One thing, however pybind11 writes it.
_SYNONYMS = {
    "typing.SupportsInt | typing.SupportsIndex": "int",
    "typing.SupportsFloat | typing.SupportsIndex": "float",
    "typing.SupportsInt": "int",
    "typing.SupportsFloat": "float",
}


def _checks(function: Any) -> bool:
    """Whether pybind11 may find an argument of another type than the function takes."""
    signature = (function.__doc__ or "").partition("\n")[0]
    return any(
        one.name != "self" and one.type not in ("object", "typing.Any")
        for one in _parameters_of(signature)
    )


def _parameters(function: Any) -> list[_Parameter]:
    return _parameters_of((function.__doc__ or "").partition("\n")[0])


def _parameters_of(signature: str) -> list[_Parameter]:
    """Returns the parameters of `name(self: Class, count: int = 3) -> type`."""
    for theirs, ours in _SYNONYMS.items():
        signature = signature.replace(theirs, ours)
    begin, end = signature.find("("), signature.rfind(")")
    if begin < 0:
        return []
    parameters = []
    for one in _split(signature[begin + 1 : end], ","):
        name, _, rest = one.partition(":")
        kind = _split(rest, "=")
        if name.strip().isidentifier():
            parameters.append(_Parameter(name.strip(), kind[0].strip(), len(kind) > 1))
    return parameters


def _split(text: str, separator: str) -> list[str]:
    """Splits at what stands in no bracket and no string."""
    parts, depth, quote = [""], 0, ""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        else:
            depth += (character in "[({<") - (character in "])}>")
        if character == separator and depth == 0 and not quote:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _class_of(kind: str, module: types.ModuleType) -> type:
    return getattr(module, kind.rpartition(".")[2], object)


def _parts(kind: str) -> tuple[str, list[str]]:
    """Splits `collections.abc.Sequence[int]` into `Sequence` and its parts."""
    head, bracket, rest = kind.partition("[")
    inner = _split(rest[:-1], ",") if bracket else []
    return head.rpartition(".")[2], [one.strip() for one in inner]


def _choices(kind: str) -> list[str]:
    head, inner = _parts(kind)
    if head == "Optional":
        return [*_choices(inner[0]), "None"]
    if head == "Union":
        return [one for part in inner for one in _choices(part)]
    return [one.strip() for one in _split(kind, "|")]


def _misfit(
    name: str, kind: str, value: object, module: types.ModuleType
) -> tuple[str, object, str] | None:
    """Returns (name, value, what is allowed) of the part of an argument that is not of a type."""
    choices = _choices(kind)
    misfits = [_misfit_of_one(name, one, value, module) for one in choices]
    if None in misfits:
        return None
    deeper = [one for one in misfits if one is not None and one[0] != name]
    if deeper:
        return deeper[0]
    return name, value, " or ".join(one[2] for one in misfits if one is not None)


def _misfit_of_one(
    name: str, kind: str, value: Any, module: types.ModuleType
) -> tuple[str, object, str] | None:
    head, inner = _parts(kind)
    if head in ("Sequence", "Iterable", "list", "List"):
        if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__getitem__"):
            return name, value, "a list"
        parts = [(f"{name}[{i}]", inner[0], one) for i, one in enumerate(value) if inner]
    elif head in ("Mapping", "dict", "Dict"):
        if not isinstance(value, Mapping):
            return name, value, "a dict"
        keys = [(f"{name}: key", inner[0], one) for one in value]
        parts = keys + [(f"{name}[{key!r}]", inner[1], one) for key, one in value.items()]
    elif head in ("tuple", "Tuple"):
        if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != len(inner):
            return name, value, f"a tuple of {len(inner)}"
        items = zip(inner, value, strict=True)
        parts = [(f"{name}[{i}]", part, one) for i, (part, one) in enumerate(items)]
    elif head in ("Annotated", "NDArray", "ArrayLike") or (head == "ndarray" and inner):
        return None if _is_array(inner, value) else (name, value, _array_words(inner))
    else:
        if _fits(head, value, module):
            return None
        return name, value, words(head)
    misfits = (_misfit(*part, module) for part in parts)
    return next((one for one in misfits if one is not None), None)


def _fits(head: str, value: Any, module: types.ModuleType) -> bool:
    if head == "int":
        return as_integer(value) is not None or isinstance(value, bool)
    if head == "float":
        return hasattr(value, "__float__") or hasattr(value, "__index__")
    if head == "Callable":
        return callable(value)
    plain = {
        "None": type(None),
        "bool": bool | np.bool_,
        "bytes": bytes,
        "ndarray": np.ndarray,
        "str": str,
    }
    return isinstance(value, plain.get(head) or _class_of(head, module))


def _dtype(inner: list[str]) -> str:
    names = [part.replace("]", "").rpartition(".")[2] for part in inner]
    return next((one for one in names if hasattr(np, one) and one != "ndarray"), "")


def _is_array(inner: list[str], value: object) -> bool:
    try:
        np.asarray(value, dtype=_dtype(inner) or None)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _array_words(inner: list[str]) -> str:
    return f"an array of {_dtype(inner)}" if _dtype(inner) else "an array"


def _integers(name: str, kind: str, value: Any) -> list[tuple[str, int]]:
    """Returns the integers in an argument that some integer of C++ can't hold, with their names."""
    for choice in _choices(kind):
        head, inner = _parts(choice)
        number = as_integer(value) if head == "int" else None
        if number is not None and not 0 <= number < 2**31:
            return [(name, number)]
        if head in ("Sequence", "list", "List") and isinstance(value, Sequence | np.ndarray):
            return [
                one
                for i, part in enumerate(value)
                for one in _integers(f"{name}[{i}]", inner[0], part)
            ]
        if head in ("Mapping", "dict", "Dict") and isinstance(value, Mapping):
            return [
                one
                for key, part in value.items()
                for one in _integers(f"{name}[{key!r}]", inner[1], part)
            ]
        if head in ("tuple", "Tuple") and isinstance(value, Sequence):
            pairs = zip(inner, value, strict=False)
            return [
                one
                for i, (type_, part) in enumerate(pairs)
                for one in _integers(f"{name}[{i}]", type_, part)
            ]
    return []
