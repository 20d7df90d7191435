"""Prices of space and of the channel: they are the duals of the lp bound."""

import math
import sys

import numpy as np
import pytest
from conftest import SMALL

import mallocgame as mg
from mallocgame.bounds.relaxation import Relaxation

NODES = 30_000
PROGRAMS = [
    "mlp_train_adam_b512.tpu_v4i_16mib",
    "muzero_unroll_b32.tpu_v4i_16mib",
    "wavernn_64steps_b8.tpu_v5e",
    SMALL,
]


@pytest.fixture(scope="module", params=PROGRAMS)
def solved(request):
    """A program, its relaxation, and what the solver found."""
    pytest.importorskip("highspy")
    program = mg.load_program(request.param)
    relaxation = Relaxation(program, program.hardware, NODES)
    found = relaxation.lp.solve(math.inf)
    assert found.optimal
    return program, relaxation, found


def value(terms, found) -> float:
    """The value of a linear expression at the optimum."""
    return sum(found.values[column] * factor for column, factor in terms)


def test_the_duals_prove_what_the_optimum_costs(solved):
    _, relaxation, found = solved
    optimum = relaxation.lp.constant + np.dot(relaxation.lp.cost, found.values)
    assert found.bound == pytest.approx(optimum, rel=1e-5)


def test_prices_are_where_there_is_scarcity(solved):
    """Complementary slackness, tick by tick."""
    program, relaxation, found = solved
    space, channel = relaxation.prices(found.duals)
    fast_bytes, reserved = program.hardware.fast_bytes, program.instructions["reserved_bytes"]
    free, dear = 0, 0
    for level in relaxation.levels:
        around = [(level.covering, 1.0)] if level.covering >= 0 else []
        for index, point in enumerate(level.points):
            if point in level.loop_at:
                continue
            taken = value(level.occupied[index] + around, found)
            arriving = value(level.arriving[index + 1], found)
            room = max(0.0, 1 - reserved[point] / fast_bytes)
            if taken + arriving < 0.99 * room:
                assert space[point] * fast_bytes < 1e-3 * relaxation.unit_ps
                free += 1
            dear += bool(space[point] * fast_bytes > 10 * relaxation.unit_ps)
    if "wavernn" not in program.name:
        assert free > 10 and dear > 0
    # No price of channel time is above that of a stall, which makes as much of it.
    trips = np.array([level.trips for level in relaxation.level_of])
    assert (channel <= trips * (1 + 1e-6)).all() and channel.max() > 0.5


def test_a_priced_channel_is_busy(solved):
    program, relaxation, found = solved
    _, channel = relaxation.prices(found.duals)
    level = relaxation.top
    idle, dear = 0, 0
    for tick in range(program.ticks):
        if relaxation.level_of[tick] is not level:
            continue
        bucket = level.bucket_behind(tick)
        left = level.bucket_idle[bucket] - value(level.bucket_terms[bucket], found)
        if left > 1e-2:
            assert channel[tick] < 1e-3
            idle += 1
        dear += bool(channel[tick] > 0.1)
    assert idle + dear > 10


@pytest.mark.parametrize(("name", "steps"), [(PROGRAMS[0], [4000]), (PROGRAMS[1], [-4000, 4000])])
def test_a_price_is_what_a_byte_more_is_worth(name, steps):
    """The bound falls by the sum of all prices for each byte that the capacity grows by.

    The steps are small, so that the same buffers count as small.
    """
    pytest.importorskip("highspy")
    program = mg.load_program(name)
    own = program.hardware
    slope = mg.bounds.shadow_prices(program, seconds=0).space_ps_per_byte.sum()
    bound_ps = mg.bounds.bound(program, "lp", seconds=0).bound_ps
    for step in steps:
        changed = mg.bounds.bound(
            program, "lp", own.replace(fast_bytes=own.fast_bytes + step), seconds=0
        ).bound_ps
        assert bound_ps - changed == pytest.approx(slope * step, rel=1e-3)


def test_prices_of_an_early_stop_are_prices():
    pytest.importorskip("highspy")
    program = mg.load_program("llama_1b_decode_8l_b4_kv1024.tpu_v5e")
    stopped = mg.bounds.shadow_prices(program, seconds=1e-3)
    assert stopped.space_ps_per_byte.shape == stopped.channel_ps_per_ps.shape == (program.ticks,)
    # Time for the Lagrangian dual, but not for the linear programme.
    risen = mg.bounds.shadow_prices(program, seconds=0.6)
    assert risen.channel_ps_per_ps.max() > 0.5


def test_prices_that_are_none(program, monkeypatch):
    ticks = program.ticks
    for space, channel, word in (
        ([0.0] * (ticks - 1), [], "space_ps_per_byte: found 130 numbers"),
        ([0.0] * ticks, [0.0], "channel_ps_per_ps: found 1 numbers"),
        ([-1.0] * ticks, [], "tick 0: found -1"),
        ([0.0] * ticks, [np.nan] * ticks, "channel_ps_per_ps of tick 0: found nan"),
    ):
        with pytest.raises(mg.InvalidInputError, match=word):
            mg.observation.Observer(mg.Game(program), prices=mg.bounds.Prices(space, channel))
    with pytest.raises(mg.InvalidInputError, match="seconds"):
        mg.bounds.shadow_prices(program, seconds=-1)
    monkeypatch.setitem(sys.modules, "highspy", None)
    with pytest.raises(mg.MallocGameError, match="shadow_prices needs highspy"):
        mg.bounds.shadow_prices(program)
