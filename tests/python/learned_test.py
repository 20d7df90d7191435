"""The solver `learned`: what ships plays well, weights are files, and training can be run again."""

import json
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from conftest import SMALL

import mallocgame as mg
from mallocgame._cli.main import main
from mallocgame._core import LEARNED_SIZES, LearningGame, bundled_weights
from mallocgame._learned.demonstrations import Demonstration
from mallocgame._learned.returns import choose_styles, evolve, plain_style
from mallocgame._learned.training import Settings, choose_levels
from mallocgame._learned.weights import load_weights, save_weights
from mallocgame._levels.describing import peak_bytes
from mallocgame._levels.level_sets import INDEX, PROGRAMS, write_archive

NETWORK = LEARNED_SIZES["weights"]
STUCK = "rollout_019.tpu_v5e"
TINY = [
    *("variants=2", "evaluations=60", "epochs=2", "generations=2"),
    *("tried_styles=6", "styles=3"),
]


@pytest.fixture(scope="module")
def level_set(tmp_path_factory):
    """A set with one program on train."""
    path = tmp_path_factory.mktemp("set")
    program = mg.load_program(SMALL)
    write_archive(path / PROGRAMS, {f"{SMALL}.mgp": program.to_bytes()}, zipfile.ZIP_STORED)
    entry = {
        "split": "train",
        "family": "perceptron",
        "hardware": "tpu_v4i",
        "peak_bytes": peak_bytes(program),
        "fingerprint": program.fingerprint,
    }
    index = {"format": 1, "programs": {SMALL: entry}, "left_out": {}}
    (path / INDEX).write_text(json.dumps(index))
    return path


@pytest.fixture(scope="module")
def demonstration():
    program = mg.load_program(SMALL)
    hardware = program.hardware.replace(fast_bytes=32 << 20)
    game = mg.Game(program, hardware, game="order", min_buffer_bytes=512)
    best = mg.solve(game, "priority", seconds=0, evaluations=300)
    greedy = mg.solve(game, "greedy", seconds=0)
    return Demonstration(
        SMALL, LearningGame(game), best.plan, greedy.report.latency_ps, best.report.latency_ps
    )


def test_its_games_alone_win_more_than_rents_on_programs_it_has_not_seen():
    scores: dict[str, list[float]] = {"learned": [], "rent": []}
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
    assert np.median(scores["learned"]) > np.median(scores["rent"])


def test_with_time_left_it_gets_away_from_a_plan_that_no_small_change_betters():
    (level,) = [one for one in mg.levels("validation") if one.program_name == STUCK]
    games = mg.solve(level.game(), "learned", seconds=0).report.latency_ps
    longer = mg.solve(level.game(), "learned", seconds=0, evaluations=40_000)
    assert games > 1.05 * level.best_known_ps
    assert longer.report.latency_ps < 1.01 * level.best_known_ps
    assert [point[1] for point in longer.curve][-1] == longer.report.latency_ps


def test_torch_is_not_needed_to_play():
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import mallocgame as mg\n"
        f"print(mg.solve(mg.load_program('{SMALL}'), 'learned', seconds=0).report.latency_ps)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(ran.stdout) == (
        mg.solve(mg.load_program(SMALL), "learned", seconds=0).report.latency_ps
    )


# --- weights


def test_weights_go_to_a_file_and_back(tmp_path, capsys):
    weights = bundled_weights()
    save_weights(weights, tmp_path / "w.csv")
    assert (load_weights(tmp_path / "w.csv") == weights).all()
    own = mg.solve(mg.load_program(SMALL), "learned", seconds=0)
    read = mg.solve(mg.load_program(SMALL), "learned", seconds=0, weights=tmp_path / "w.csv")
    assert read.plan == own.plan
    # Other weights play other games.
    other = weights.copy()
    other[:NETWORK] = 0
    save_weights(other[: NETWORK + LEARNED_SIZES["style"]], tmp_path / "zero.csv")
    arguments = ["solve", SMALL, "--solver", "learned", "--seconds", "0", "--json"]
    assert main([*arguments, "--weights", str(tmp_path / "zero.csv")]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["latency_ps"] != own.report.latency_ps


@pytest.mark.parametrize(
    "text, message",
    [
        ("1, 2, three,\n", "no weights of the solver learned; allowed: numbers with commas"),
        ("\xe9", "no weights of the solver learned"),
        ("1, 2,\n", rf"found 2 numbers, allowed: {NETWORK} of the network and 8 for each style"),
        ("nan, " * (NETWORK + 8), "numbers that are finite"),
    ],
)
def test_a_file_that_holds_something_else_is_refused(tmp_path, text, message):
    path = tmp_path / "w.csv"
    path.write_text(text)
    with pytest.raises(mg.InvalidInputError, match=message):
        load_weights(path)
    with pytest.raises(mg.MissingFileError, match=r"none\.csv"):
        load_weights(tmp_path / "none.csv")


# --- training


def test_the_networks_of_training_and_of_the_solver_are_the_same(demonstration):
    torch = pytest.importorskip("torch")
    from mallocgame._learned import imitation

    generator = torch.Generator().manual_seed(3)
    network = imitation.AdviceNetwork(generator)
    with torch.no_grad():
        said = network(imitation._lesson(demonstration)).numpy()
    advice = demonstration.game.advice(network.weights())
    importance = demonstration.game.columns["log_importance"] + said[:, 0]
    np.testing.assert_allclose(advice[:, 0], importance, atol=1e-3)
    np.testing.assert_allclose(advice[:, 1:5], said[:, 1:5], atol=1e-3)
    np.testing.assert_allclose(advice[:, 5], np.exp(np.clip(said[:, 5], -3, 3)), rtol=1e-3)
    assert np.abs(said).max() > 0.1


def test_a_demonstration_is_learned(demonstration):
    pytest.importorskip("torch")
    from mallocgame._learned.imitation import imitate

    losses = []
    imitate([demonstration], 60, 0, lambda _, loss: losses.append(loss))
    assert losses[-1] < 0.6 * losses[0]


def test_returns_grow_and_styles_add_up(demonstration):
    start = np.random.default_rng(0).normal(0, 0.03, NETWORK).astype(np.float32)
    style = plain_style()
    before = demonstration.scores(demonstration.game.play(start, style))[0]
    after = evolve(start, plain_style(), [demonstration], 12, 0, 2, lambda *_: None)
    assert demonstration.scores(demonstration.game.play(after, style))[0] > before
    again = evolve(start, plain_style(), [demonstration], 12, 0, 1, lambda *_: None)
    assert (again == after).all()
    styles = choose_styles(start, [[demonstration], []], 40, 4, 0, 2)
    assert styles.shape == (4, LEARNED_SIZES["style"])
    many = demonstration.game.play(start, styles)
    assert many.min() == many[0] and demonstration.scores(many)[0] >= before


def test_the_command_trains_goes_on_and_gives_the_same(tmp_path, level_set, capsys):
    pytest.importorskip("torch")

    def train(name, *more):
        path = tmp_path / name
        command = ["train", "learned", "--out", str(path), "--levels", str(level_set)]
        status = main([*command, *more, "--config", *TINY])
        return status, path / "weights.csv"

    status, weights = train("one")
    assert status == 0 and "--weights" in capsys.readouterr().out
    assert len(load_weights(weights)) == NETWORK + 3 * LEARNED_SIZES["style"]
    assert train("two", "--jobs", "2")[1].read_bytes() == weights.read_bytes()
    # Finished steps are not done again.
    (tmp_path / "two" / "imitated.csv").write_bytes((tmp_path / "two" / "evolved.csv").read_bytes())
    weights_of_two = tmp_path / "two" / "weights.csv"
    weights_of_two.unlink()
    assert train("two")[0] == 0 and weights_of_two.read_bytes() == weights.read_bytes()
    capsys.readouterr()
    assert train("one", "--seed", "1")[0] == 2
    assert "holds a training with seed=0; give another folder" in capsys.readouterr().err


def test_what_does_not_fit_is_an_error(tmp_path, capsys):
    for arguments, message in [
        (["train", "learned", SMALL, "--out", str(tmp_path)], "learns from levels"),
        (["train", "egrl", "--out", str(tmp_path)], "egrl needs a program"),
        (["train", "egrl", SMALL, "--out", str(tmp_path), "--levels", "x"], "is learned's"),
        (["train", "learned", "--out", str(tmp_path), "--game", "time"], "is of other agents"),
        (["train", "learned", "--out", str(tmp_path), "--config", "a=1"], "found 'a', allowed:"),
        (
            ["train", "learned", "--out", str(tmp_path), "--config", "epochs=x"],
            "epochs: found 'x', allowed: 0 to",
        ),
        (
            ["train", "learned", "--out", str(tmp_path), "--config", "share=2"],
            "share: found '2', allowed: 0.0 to 1.0",
        ),
    ]:
        assert main(arguments) == 2
        assert message in capsys.readouterr().err


def test_levels_to_learn_from_are_variants_of_train_programs():
    chosen = choose_levels(Settings(share=0.25, variants=2))
    assert {level.split for level in chosen} == {"train"}
    programs = [level.program_name for level in chosen]
    assert all(programs.count(name) == 2 for name in programs)
    assert 80 <= len(set(programs)) <= 120
    assert chosen == choose_levels(Settings(share=0.25, variants=2))
