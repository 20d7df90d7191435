"""The solver `styles`: its games alone, and what it does with more time."""

import numpy as np

import mallocgame as mg


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


def test_with_evaluations_left_it_anneals_the_residences_of_its_plan():
    better = 0
    for level in mg.levels("validation")[:12]:
        games = mg.solve(level.game(), "styles", seconds=0).report.latency_ps
        longer = mg.solve(level.game(), "styles", seconds=0, evaluations=4000)
        assert longer.report.latency_ps <= games
        assert [point[1] for point in longer.curve][-1] == longer.report.latency_ps
        better += longer.report.latency_ps < 0.999 * games
    assert better >= 3
