"""A climb by probes: parts of what would be faster are asked for, and what is faster is kept."""

import collections
import contextlib
import functools
import math
import random
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import TypeVar

from mallocgame._core import Plan, validate
from mallocgame.xla.captures import Capture
from mallocgame.xla.compiler import CompilerError
from mallocgame.xla.imitation import Directives
from mallocgame.xla.negotiate import Tell, quiet
from mallocgame.xla.overrides import Request, changed, differing_buffers, ways_to_ask
from mallocgame.xla.probe import Key, Probe, Prober
from mallocgame.xla.settings import DEGREES, PRELOADS, SETTINGS, Use

_PATIENCE = 200  # draws of settings without a better plan, until no more are drawn
_SINGLE_SHARE = 2 / 3  # of the draws that are about a single use, where uses are given
_WHOLE_SHARE = 1 / 2  # of the time to climb to a plan, for asking for it as it is, at most
_AT_ONCE = (1, 1, 2, 3)  # how many settings are drawn at once

State = TypeVar("State")  # where a climb is


class Climb:
    """A climb from what the compiler does towards plans, by asking for parts of their difference.

    most: the latencies, with preloads free and cold, that must not be exceeded.
    """

    def __init__(
        self,
        capture: Capture,
        prober: Prober,
        best: Probe,
        most: tuple[int, int],
        seed: int,
        tell: Tell = quiet,
    ) -> None:
        self.best = best
        self.seen: list[Probe] = []  # the probes that exceed nothing
        self.doubtful: list[Probe] = []  # those that may be faster than the best, by better prices
        self._capture = capture
        self._before = capture.default.before
        self._prober = prober
        self._most = most
        self._chance = random.Random(seed)
        self._tell = tell
        self._tried: set[frozenset[tuple[str, str]]] = set()  # options that were tried

    def to(self, plan: Plan, until: float = math.inf) -> Probe | None:
        """Climbs towards a plan, and leaves the best on the way in `best`.

        until: time.monotonic() after which no probe begins. Returns the best of what the compiler
        makes of the plan as it is, None if it is nothing.
        """
        # Of a large program the whole request alone would take all the time.
        now = time.monotonic()
        self._prober.until = now + _WHOLE_SHARE * (until - now)
        start = self.best
        program = self._capture.program
        ways = [*ways_to_ask(program, plan, self._before)]
        if start.request.settings:
            unlike = differing_buffers(program, start.plan, plan)
            ways.append(changed(start.request, program, plan, self._before, unlike))
        asked = ((None, way) for way in ways)
        with contextlib.closing(self._answers(asked)) as answers:
            probes = [probe for _, probe in answers if probe is not None]
        nearest = min(probes, key=lambda probe: probe.cost, default=None)
        self._prober.until = until
        self._walk(self.best, plan)
        if nearest is not None:
            other = start if self.best is nearest else nearest
            self._walk(other, self.best.plan)
        return nearest

    def follow(self, start: Directives, target: Directives, until: float = math.inf) -> Directives:
        """Climbs from one request towards another, and leaves the best on the way in `best`.

        start: was looked at before. until: time.monotonic() after which no probe begins. Returns
        the fastest request on the way, as the compiler answers; `start` if it is that.
        """
        self._prober.until = until

        def asked(directives: Directives) -> Request:
            return directives.request(self._capture.program, self._before)

        def cost(probe: Probe | None) -> float:
            return math.inf if probe is None or probe.exceeds(self._most) else probe.cost

        costs = {"start": math.inf, "target": math.inf}
        ends = (("start", asked(start)), ("target", asked(target)))
        with contextlib.closing(self._answers(ends)) as answers:
            costs |= {end: cost(probe) for end, probe in answers}
        if costs["target"] < costs["start"]:
            return target

        def beside(at: Directives, part: list[int]) -> tuple[Directives, Request]:
            other = at.with_those_of(target, part)
            return other, asked(other)

        def became(other: Directives, probe: Probe) -> tuple[Directives, float]:
            return other, cost(probe)

        return self._by_parts(
            start, costs["start"], lambda at: at.differing(target), beside, became
        )

    def ask_all(self, requests: Iterable[Request], until: float) -> list[tuple[Request, Probe]]:
        """Probes with each request that is new, and keeps the best. Returns what is granted.

        until: time.monotonic() after which no probe begins.
        """
        self._prober.until = until
        asked = ((one, one) for one in requests if self._is_new(one))
        with contextlib.closing(self._answers(asked)) as answers:
            return [(wanted, probe) for wanted, probe in answers if probe is not None]

    def settle(self, until: float = math.inf, uses: Sequence[Use] = ()) -> None:
        """Tries settings of XLA's own method, from the best request so far.

        First it is one at a time, then some at once, by chance, until that is of no use for long.
        What makes the program faster is kept.

        uses: those for which copies are also asked for at other times, one by one, by chance.
        until: time.monotonic() after which no probe begins.
        """
        self._prober.until = until
        most = self._capture.program.hardware.max_preloads
        tries: list[tuple[str, str | None]] = [
            (name, value)
            for name, values in SETTINGS.items()
            for value in values
            if name != PRELOADS or int(value) <= most
        ]
        singles = (self._having([one]) for one in tries)
        asked = ((None, one) for one in singles if self._is_new(one))
        with contextlib.closing(self._answers(asked)) as answers:
            collections.deque(answers, maxlen=0)
        tries += [(name, None) for name in SETTINGS]
        useless = 0

        def drawn() -> Iterator[tuple[None, Request]]:
            nonlocal useless
            while useless < _PATIENCE and time.monotonic() < until:
                if uses and self._chance.random() < _SINGLE_SHARE:
                    degree = self._chance.choice([None, *DEGREES])
                    wanted = self.best.request.hurrying(self._chance.choice(uses), degree)
                else:
                    wanted = self._having(self._chance.sample(tries, self._chance.choice(_AT_ONCE)))
                useless += 1
                if self._is_new(wanted):
                    yield None, wanted

        best = self.best
        with contextlib.closing(self._answers(drawn())) as answers:
            for _ in answers:
                if self.best is not best:
                    best, useless = self.best, 0

    def _having(self, settings: Iterable[tuple[str, str | None]]) -> Request:
        """Returns the best request with other settings."""
        return functools.reduce(lambda one, new: one.having(*new), settings, self.best.request)

    def _is_new(self, wanted: Request) -> bool:
        """Returns whether these options were not tried before."""
        options = frozenset(wanted.options().items())
        if options in self._tried:
            return False
        self._tried.add(options)
        return True

    def _walk(self, at: Probe, plan: Plan) -> None:
        """Climbs from a probe towards a plan."""
        program = self._capture.program

        def beside(at: Probe, part: list[int]) -> tuple[None, Request]:
            return None, changed(at.request, program, plan, self._before, set(part))

        def became(_: None, probe: Probe) -> tuple[Probe, float]:
            return probe, probe.cost

        def differing(at: Probe) -> list[int]:
            return differing_buffers(program, at.plan, plan)

        self._by_parts(at, at.cost, differing, beside, became)

    def _by_parts(
        self,
        at: State,
        cost: float,
        differing: Callable[[State], list[int]],
        beside: Callable[[State, list[int]], tuple[Key, Request]],
        became: Callable[[Key, Probe], tuple[State, float]],
    ) -> State:
        """Asks for halves of the difference, quarters, down to single buffers.

        What makes the program faster is kept. differing: the buffers that are still to be asked for
        otherwise. beside: a request that asks for some of them so, and its key. became: where
        the climb is with its answer, and what that costs.
        """
        size = len(differing(at))
        parts: collections.deque[list[int]] = collections.deque()

        def drawn() -> Iterator[tuple[tuple[list[int], float, Key], Request]]:
            while parts:
                part = parts.popleft()
                key, wanted = beside(at, part)
                yield (part, cost, key), wanted

        while size > 1 and time.monotonic() < self._prober.until:
            size = (size + 1) // 2
            buffers = differing(at)
            self._chance.shuffle(buffers)
            parts.extend(buffers[first : first + size] for first in range(0, len(buffers), size))
            while parts and time.monotonic() < self._prober.until:
                with contextlib.closing(self._answers(drawn())) as answers:
                    for (part, than, key), probe in answers:
                        if probe is None:
                            continue
                        there, its_cost = became(key, probe)
                        if its_cost < cost:
                            at, cost = there, its_cost
                        elif its_cost < than:  # Others were faster meanwhile: now beside those.
                            parts.append(part)
        return at

    def _answers(
        self, requests: Iterable[tuple[Key, Request]]
    ) -> Generator[tuple[Key, Probe | None], None, None]:
        """Gives the answers to requests as they come, each kept if it is the best."""
        with contextlib.closing(self._prober.ask_each(self._capture, requests)) as answers:
            for key, probe in answers:
                if probe is not None:
                    self._keep(probe)
                yield key, probe

    def ask(self, wanted: Request) -> Probe | None:
        """Probes with a request, and keeps the answer if it is the best.

        None: the compiler grants nothing, or the time is over.
        """
        try:
            probe = self._prober.ask(self._capture, wanted)
        except CompilerError:
            return None
        self._keep(probe)
        return probe

    def _keep(self, probe: Probe) -> None:
        """Keeps a probe if it is of use, and the best."""
        if not validate(probe.program, probe.plan).ok:
            return
        if probe.report.predicted_ps > 0 and probe.hoped_ps < self.best.cost:
            self.doubtful.append(probe)
        if probe.exceeds(self._most):
            return
        self.seen.append(probe)
        if probe.cost < self.best.cost:
            self.best = probe
            self._tell(f"{self._most[0] / probe.report.latency_ps:.3f}x looked at")
