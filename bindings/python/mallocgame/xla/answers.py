"""The compiler's answers, kept in a folder for whoever asks the same again."""

import hashlib
import io
import json
import os
import pathlib
import warnings
import zipfile
from collections.abc import Mapping, Sequence

from mallocgame._core import write_file
from mallocgame.errors import InvalidInputError
from mallocgame.xla.modules import Compiled
from mallocgame.xla.targets import Target

# These variables of the environment change what the compiler does.
INHERITED = ("XLA_FLAGS", "LIBTPU_INIT_ARGS")
_FIELDS = ("before", "assigned", "priced")
_REFUSED = "refused"
_KEY = "key"
_LARGEST_ENTRY = 1 << 30  # bytes


class Answers:
    """The answers for one target, keyed by module, options, chip and versions.

    folder: None keeps none.
    """

    def __init__(
        self, folder: str | os.PathLike[str] | None, target: Target, versions: dict[str, str]
    ) -> None:
        self._folder = None if folder is None else pathlib.Path(folder).expanduser()
        self._target, self._versions = target, versions

    def compiled(self, module: str, options: dict[str, str]) -> Compiled | str | None:
        """Returns the answer to a whole compile: a refusal is a text; None: there is none."""
        contents = self._read(module, options)
        try:
            if _REFUSED in contents:
                return contents[_REFUSED].decode()
            return Compiled(**{field: contents[field] for field in _FIELDS})
        except (KeyError, UnicodeDecodeError):
            return None

    def keep_compiled(self, module: str, options: dict[str, str], answer: Compiled | str) -> None:
        """Keeps the answer to a whole compile."""
        if isinstance(answer, str):
            contents = {_REFUSED: answer.encode()}
        else:
            contents = {field: getattr(answer, field) for field in _FIELDS}
        self._keep(module, options, contents, zipfile.ZIP_DEFLATED)

    def programs(
        self, phase: str, programs: Sequence[bytes], options: dict[str, str]
    ) -> list[bytes] | None:
        """Returns the answer of a phase to some programs; None: there is none."""
        contents = self._read(_digest([phase.encode(), *programs]), options)
        try:
            return [contents[str(number)] for number in range(len(contents))] or None
        except KeyError:
            return None

    def keep_programs(
        self,
        phase: str,
        programs: Sequence[bytes],
        options: dict[str, str],
        answer: Sequence[bytes],
    ) -> None:
        """Keeps the answer of a phase."""
        contents = {str(number): part for number, part in enumerate(answer)}
        question = _digest([phase.encode(), *programs])
        self._keep(question, options, contents, zipfile.ZIP_STORED)  # mostly compressed already

    def _path(self, question: str, options: dict[str, str]) -> pathlib.Path | None:
        if self._folder is None:
            return None
        inherited = {name: os.environ.get(name, "") for name in INHERITED}
        chip = [self._target.topology, self._target.config]
        key = json.dumps([self._versions, chip, sorted(options.items()), inherited, question])
        return self._folder / (hashlib.sha256(key.encode()).hexdigest()[:40] + ".zip")

    def _read(self, question: str, options: dict[str, str]) -> dict[str, bytes]:
        """Returns what _keep() has written; empty: nothing, or it is damaged."""
        path = self._path(question, options)
        if path is None:
            return {}
        try:
            with zipfile.ZipFile(path) as entry:
                if sum(one.file_size for one in entry.infolist()) > _LARGEST_ENTRY:
                    raise ValueError("too large")
                if entry.read(_KEY) != path.stem.encode():
                    raise ValueError("put there under another's name")
                return {name: entry.read(name) for name in entry.namelist() if name != _KEY}
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except Exception:  # Of what zipfile raises there is no list.
            _tell(f"{path}: the entry is damaged, so the compiler is asked again")
            return {}

    def _keep(
        self,
        question: str,
        options: dict[str, str],
        contents: Mapping[str, bytes],
        compression: int,
    ) -> None:
        """Writes an entry whole or not at all, whoever else writes it at the same time.

        What can't be kept is an answer all the same. Who asks for it again has to wait again, which
        a warning says.
        """
        path = self._path(question, options)
        if path is None:
            return
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", compression) as entry:
            for name, content in {_KEY: path.stem.encode(), **contents}.items():
                entry.writestr(name, content)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_file(path, packed.getvalue())
        except (OSError, InvalidInputError) as error:
            _tell(f"{path.parent}: the compiler's answers can't be kept there ({error})")


def _digest(parts: Sequence[bytes]) -> str:
    """Returns a text that hardly any other parts have."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()


def _tell(sentence: str) -> None:
    warnings.warn(sentence, RuntimeWarning, stacklevel=5)
