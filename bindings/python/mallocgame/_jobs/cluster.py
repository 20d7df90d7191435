"""A Ray cluster that does jobs. Ray is imported when one is asked for.

Jobs are Ray's tasks, because its own pools take the end of a machine for the end of all jobs.
"""

import contextlib
import functools
import hashlib
import io
import logging
import os
import pickle
import re
import signal
import socket
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from mallocgame._core import Program
from mallocgame._jobs.crew import TRIES, Crew, JobError, Outcome, Shared, carry_out
from mallocgame._jobs.processes import cores
from mallocgame.errors import InvalidInputError, MallocGameError, MissingExtraError

ADDRESSES = "local, auto, HOST:PORT"

_ADDRESS = re.compile(r"(?P<host>[^\s:/]+|\[[0-9a-fA-F:]+\]):(?P<port>\d{1,5})")
_SECONDS_TO_ANSWER = 10.0
_SHARED = "shared "  # how the names of Shared begin
_PROGRAMS_KEPT = 64  # by each process of a cluster


def check_address(address: str) -> str:
    """Returns an address that Ray may take. InvalidInputError: it is of no such form."""
    if address in ("local", "auto") or _ADDRESS.fullmatch(address):
        return address
    raise InvalidInputError(f"found '{address}', allowed: {ADDRESSES}")


class Cluster:
    """The connection of this process to a Ray cluster, for the length of a `with` block.

    address: "local" starts a cluster on this machine, "auto" finds the one that runs here, and
    "HOST:PORT" is that of `ray start`. Within the block what is printed goes to standard error,
    because Ray prints what it hears of machines that end.

    InvalidInputError: no cluster answers there. MallocGameError: Ray is not installed, or of
    another version than the cluster's.
    """

    def __init__(self, address: str) -> None:
        check_address(address)
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # Else Ray warns.
        try:
            import ray
        except ImportError:
            raise MissingExtraError("a cluster needs ray", "ray") from None
        _check_answers(address)
        own: dict[str, Any] = {}
        if address == "local":
            own = {"num_cpus": len(cores()), "include_dashboard": False}
        before = signal.getsignal(signal.SIGTERM)  # Ray takes it for itself.
        try:
            ray.init(address, log_to_driver=False, logging_level=logging.CRITICAL, **own)
        except (
            ConnectionError,
            RuntimeError,
            TimeoutError,
            ValueError,
            ray.exceptions.RayError,
        ) as error:
            raise MallocGameError(f"ray: {address}: {' '.join(str(error).split())}") from None
        finally:
            with contextlib.suppress(ValueError):  # Only the main thread may.
                signal.signal(signal.SIGTERM, before)
        self._ray: Any = ray
        self._printed = contextlib.redirect_stdout(sys.stderr)

    def __enter__(self) -> "Cluster":
        self._printed.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._ray.shutdown()
        self._printed.__exit__(None, None, None)

    def crew(self, work: Callable[[Any], Any], pinned: bool) -> "_Tasks":
        """Returns a Crew of tasks, one for each processor of the cluster at a time.

        pinned: whether each has a processor core of its own, as far as there are as many.
        """
        return _Tasks(self._ray, work, pinned)


class _Tasks(Crew):
    """A Crew on a cluster. What goes there is pickled here, with each program only once."""

    def __init__(self, ray: Any, work: Callable[[Any], Any], pinned: bool) -> None:
        self._ray = ray
        again = {"max_retries": TRIES - 1, "retry_exceptions": [JobError]}
        self._task = ray.remote(num_cpus=1, **again)(_carry_out)
        # By name, references to what is stored; and the names of programs, by id.
        self._stored: dict[str, Any] = {}
        self._names: dict[int, tuple[str, Program]] = {}
        self._shared = weakref.WeakKeyDictionary[Shared, tuple[str, Any]]()
        self._pinned = pinned
        packed = self._packed(work)
        # In a list, so that Ray leaves it to a process whether it still has it.
        self._work = hashlib.sha256(packed[0]).hexdigest(), [ray.put(packed)]
        self._asker = ray.put((_version(), list(sys.path)))
        self._running: dict[Any, int] = {}

    def add(self, number: int, job: Any) -> None:
        data, stored = self._packed(job)
        reference = self._task.remote(self._asker, *self._work, data, stored, self._pinned)
        self._running[reference] = number

    def wait(self, seconds: float) -> tuple[int, Outcome] | None:
        ready, _ = self._ray.wait(list(self._running), num_returns=1, timeout=seconds)
        if not ready:
            return None
        number = self._running.pop(ready[0])
        try:
            return number, Outcome(self._ray.get(ready[0]))
        except self._ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, InvalidInputError):
                raise error.cause from None
            return number, Outcome(reason=str(error.cause))
        except self._ray.exceptions.RayError as error:
            return number, Outcome(reason=_first_line(error))

    def close(self) -> None:
        for reference in self._running:
            self._ray.cancel(reference, force=True)

    def _packed(self, thing: object) -> tuple[bytes, dict[str, Any]]:
        """Pickles what a task takes, and gives what its programs and Shared are stored as."""
        stored: dict[str, Any] = {}

        def store(part: Program | Shared) -> str:
            name, reference = self._share(part) if isinstance(part, Shared) else self._put(part)
            stored[name] = reference
            return name

        return pack(thing, store), stored

    def _share(self, part: Shared) -> tuple[str, Any]:
        if part not in self._shared:
            name = f"{_SHARED}{hashlib.sha256(part.data).hexdigest()}"
            self._shared[part] = name, self._ray.put(part.data)
        return self._shared[part]

    def _put(self, program: Program) -> tuple[str, Any]:
        """Stores a program unless an equal one is, and returns its name and reference."""
        if id(program) not in self._names:
            data = program.to_bytes()
            # Programs that differ in their name or in XLA's plan may have the same fingerprint.
            name = f"{program.fingerprint} {hashlib.sha256(data).hexdigest()[:16]}"
            if name not in self._stored:
                self._stored[name] = self._ray.put(data)
            self._names[id(program)] = name, program
        name, _ = self._names[id(program)]
        return name, self._stored[name]


def pack(thing: object, store: Callable[[Any], str]) -> bytes:
    """Pickles a thing without its programs and Shared, for which stands what store(one) returns."""
    from ray import cloudpickle  # It takes what stands in a script, too.

    class Pickler(cloudpickle.Pickler):
        def persistent_id(self, value: object) -> str | None:
            return store(value) if isinstance(value, Program | Shared) else None

    file = io.BytesIO()
    Pickler(file).dump(thing)
    return file.getvalue()


def unpack(data: bytes, load: Callable[[str], Program | Shared]) -> Any:
    """Reads what pack() wrote. load: gives a program or a Shared back."""

    class Unpickler(pickle.Unpickler):
        def persistent_load(self, name: str) -> Program | Shared:
            return load(name)

    return Unpickler(io.BytesIO(data)).load()


def _version() -> str:
    import mallocgame

    return mallocgame.__version__


def _carry_out(
    asker: tuple[str, list[str]],
    name: str,
    work: list[Any],
    job: bytes,
    stored: dict[str, Any],
    pinned: bool,
) -> Any:
    """Does a job, in a process of the cluster.

    work: a reference to what does it, pickled, of this name.
    """
    version, folders = asker
    if version != _version():
        raise InvalidInputError(
            f"{socket.gethostname()}: found mallocgame {_version()}, allowed: {version}, that of "
            "the machine which asks"
        )
    # As processes of the asking machine have it, for what stands beside a script.
    sys.path += [one for one in folders if one not in sys.path and os.path.isdir(one)]

    def do(_: None) -> Any:
        return _work(name, work)(unpack(job, lambda part: _load(part, stored)))

    with _a_core_of_its_own() if pinned else contextlib.nullcontext():
        return carry_out(do, None)


# What this process did a job with last, and its name.
_latest: list[tuple[str, Callable[[Any], Any]]] = []


def _work(name: str, reference: list[Any]) -> Callable[[Any], Any]:
    import ray

    if not _latest or _latest[0][0] != name:
        data, stored = ray.get(reference[0])
        _latest[:] = [(name, unpack(data, lambda part: _load(part, stored)))]
    return _latest[0][1]


def _load(name: str, stored: dict[str, Any]) -> Program | Shared:
    import ray

    if name.startswith(_SHARED):
        return Shared(ray.get(stored[name]))
    return _program(stored[name])


@functools.lru_cache(_PROGRAMS_KEPT)
def _program(reference: Any) -> Program:
    import ray

    return Program.from_bytes(ray.get(reference))


@contextlib.contextmanager
def _a_core_of_its_own() -> Iterator[None]:
    """Keeps this thread and those that it begins on a core that no other has claimed so.

    Ray counts processors but does not say which one is whose. A claim is a name of a socket, which
    ends with its process. Where all cores are claimed, or can't be, nothing is kept.
    """
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    for core in sorted(before):
        with socket.socket(socket.AF_UNIX) as claim:
            try:
                claim.bind(f"\0mallocgame-core-{core}")
            except OSError:
                continue
            os.sched_setaffinity(0, {core})
            try:
                yield
            finally:
                os.sched_setaffinity(0, before)
            return
    yield


def _check_answers(address: str) -> None:
    """InvalidInputError: no cluster answers there. Ray itself would try for many minutes."""
    found = _ADDRESS.fullmatch(address)
    if found is None:
        return
    try:
        place = (found["host"].strip("[]"), int(found["port"]))
        socket.create_connection(place, _SECONDS_TO_ANSWER).close()
    except (OSError, OverflowError) as error:
        raise InvalidInputError(f"ray: {address}: no cluster answers there ({error})") from None


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
