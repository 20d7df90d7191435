"""The solver `styles`: its games alone, and what it does with more time."""

import numpy as np

import mallocgame as mg

STUCK = "rollout_019.tpu_v5e"


def test_its_games_alone_win_more_than_rents_on_programs_it_has_not_seen():
    scores: dict[str, list[float]] = {"styles": [], "rent": []}
    for level in mg.levels("test")[:30]:
        if level.greedy_ps < 1.01 * level.best_known_ps:
            continue
        for solver, found in scores.items():
            result = mg.solve(level.game(), solver, seconds=0)
            program, hardware = level.load_program(), level.hardware()
            assert mg.validate(program, result.plan, hardware)
            assert mg.simulate(program, result.plan, hardware).latency_ps == (
                result.report.latency_ps
            )
            gain = np.log(level.greedy_ps / result.report.latency_ps)
            found.append(gain / np.log(level.greedy_ps / level.best_known_ps))
    assert len(scores["rent"]) >= 15
    assert np.median(scores["styles"]) > np.median(scores["rent"])


def test_with_time_left_it_gets_away_from_a_plan_that_no_small_change_betters():
    (level,) = [one for one in mg.levels("validation") if one.program_name == STUCK]
    games = mg.solve(level.game(), "styles", seconds=0).report.latency_ps
    longer = mg.solve(level.game(), "styles", seconds=0, evaluations=40_000)
    assert games > 1.05 * level.best_known_ps
    assert longer.report.latency_ps < 1.01 * level.best_known_ps
    assert [point[1] for point in longer.curve][-1] == longer.report.latency_ps
