"""Offline data: games with the return of every action, as NumPy files and as a Minari dataset."""

import dataclasses
import json
import math
import os
import sys
import threading
import zipfile

import numpy as np
import pytest
from conftest import OTHER, SMALL

import mallocgame as mg
from mallocgame import offline
from mallocgame._cli import main as cli
from mallocgame.level_sets import levels
from mallocgame.level_sets.describing import peak_bytes
from mallocgame.level_sets.level_set import FORMAT, INDEX, PROGRAMS, write_archive
from mallocgame.level_sets.splits import VARIANTS
from mallocgame.offline import making, numpy_files

WAVERNN = "wavernn_64steps_b8.tpu_v5e"  # whose instructions wait for small buffers
BEHAVIOURS = ["greedy", "rent", "mcts:30", "random"]
COMPACT, FLAT = (
    sum(math.prod(part.shape) for part in mg.observation.layout(settings))
    for settings in (mg.observation.COMPACT, {})
)
ARRAYS = ("observations", "final_observation", "masks", "actions", "rewards", "returns")


@pytest.fixture(scope="module")
def level_set(tmp_path_factory):
    """A set of two programs on train."""
    path = tmp_path_factory.mktemp("set")
    index, files = {}, {}
    for name in (SMALL, WAVERNN):
        program = mg.load_program(name)
        files[f"{name}.mgp"] = program.to_bytes()
        index[name] = {
            "split": "train",
            "family": "perceptron",
            "hardware": name.rpartition(".")[2],
            "peak_bytes": peak_bytes(program),
            "fingerprint": program.fingerprint,
            "variants": {variant.text: {} for variant in VARIANTS},
        }
    write_archive(path / PROGRAMS, files, zipfile.ZIP_STORED)
    (path / INDEX).write_text(json.dumps({"format": FORMAT, "programs": index, "left_out": {}}))
    return path


@pytest.fixture(scope="module")
def episodes(level_set):
    return [
        episode
        for name in (f"{SMALL}@c10", WAVERNN)
        for episode in offline.play_games(level_named(name, level_set), BEHAVIOURS)
    ]


def level_named(name, folder):
    return next(level for level in levels("train", folder) if level.name == name)


def same(one, other):
    for field in dataclasses.fields(offline.Episode):
        mine, its = getattr(one, field.name), getattr(other, field.name)
        if field.name in ARRAYS:
            assert mine.dtype == its.dtype and mine.shape == its.shape
            np.testing.assert_array_equal(mine, its)  # NaN equals NaN here
        else:
            assert mine == its
    return True


@pytest.fixture
def command(level_set, capsys):
    """command(argument...) -> status, standard output and standard error of the command."""

    def call(*arguments: object):
        try:
            status = cli.main(["offline", "--levels", str(level_set), *map(str, arguments)])
        except SystemExit as end:
            status = end.code
        said = capsys.readouterr()
        return status, said.out, said.err

    return call


# --- returns of actions


def test_the_return_of_an_action_is_that_of_the_game_it_begins():
    game = mg.Game(mg.load_program(OTHER))
    state = game.initial_state()
    prices = mg.bounds.Prices(np.full(game.program.ticks, 1e-3))
    while not state.is_terminal():
        before = state.to_string()
        returns = mg.actions.action_returns(state)
        assert state.to_string() == before
        assert (returns.dtype, returns.shape) == (np.float64, (game.num_actions,))
        assert (np.isnan(returns) == ~state.legal_mask()).all()
        assert mg.actions.action_returns(state, prices).shape == returns.shape
        action = state.legal_actions()[-1]
        state.apply(action)
        clone = state.clone()
        while not clone.is_terminal():
            own = mg.actions.action_returns(clone)
            best = greedy_action(clone)
            assert own[best] == returns[action] <= np.nanmax(own)
            clone.apply(best)
        assert returns[action] == 1 - clone.latency_ps / game.all_main_ps
    assert np.isnan(mg.actions.action_returns(state)).all()


def greedy_action(state):
    """Ties go to Drop, then to NoCopy."""
    saved = {action: state.clone().apply(action) for action in state.legal_actions()}
    order = [mg.Action.DROP, mg.Action.NOCOPY, mg.Action.COPY, mg.Action.COPY_EARLY]
    return max((action for action in order if action in saved), key=saved.__getitem__)


def test_prices_must_fit():
    program = mg.load_program(OTHER)
    state = mg.Game(program).initial_state()
    with pytest.raises(mg.InvalidInputError, match="price"):
        mg.actions.action_returns(state, mg.bounds.Prices([1.0]))
    order = mg.Game(program, game="priority").initial_state()
    assert np.isfinite(mg.actions.action_returns(order)).sum() == order.legal_mask().sum()
    with pytest.raises(mg.InvalidInputError, match="prices with the priority game"):
        mg.actions.action_returns(order, mg.bounds.Prices(np.ones(program.ticks)))


# --- episodes


def test_what_an_episode_holds(episodes, level_set):
    behaviours = [episode.behaviour for episode in episodes[:4]]
    assert behaviours == ["greedy", "rent", "mcts:30", "random:1"]
    size = mg.observation.Observer(mg.Game(mg.load_program(SMALL)), mg.observation.COMPACT).size
    for episode in episodes:
        count = episode.decisions
        assert count > 0
        assert (episode.observations.dtype, episode.observations.shape) == (
            np.float32,
            (count, size),
        )
        assert (episode.masks.dtype, episode.masks.shape) == (np.bool_, (count, 4))
        assert (episode.actions.dtype, episode.actions.shape) == (np.uint8, (count,))
        assert (episode.rewards.dtype, episode.rewards.shape) == (np.float32, (count,))
        assert (episode.returns.dtype, episode.returns.shape) == (np.float32, (count, 4))
        assert episode.final_observation.shape == (size,)
        assert (np.isnan(episode.returns) == ~episode.masks).all()
        taken = np.take_along_axis(episode.returns, episode.actions[:, None], axis=1)[:, 0]
        assert taken[-1] == np.float32(episode.total_return)
        assert episode.rewards.sum() == pytest.approx(episode.total_return, abs=1e-5)
        assert episode.total_return == 1 - episode.latency_ps / episode.all_main_ps
        if episode.behaviour == "greedy":
            # Greedy is who plays on, so that its own action leads to its own game.
            assert (taken == taken[-1]).all()
            assert (np.nanmax(episode.returns, axis=1) >= taken).all()
    level = level_named(f"{SMALL}@c10", level_set)
    rent = mg.solve(level.game(), "rent", seconds=0)
    assert episodes[1].latency_ps == rent.report.latency_ps
    assert (episodes[1].actions == rent.actions).all()


def test_the_environment_gives_the_same(episodes):
    pytest.importorskip("gymnasium")
    (episode,) = offline.play_games(mg.Game(mg.load_program(SMALL)), ["rent"])
    env = mg.MallocGameEnv(SMALL, observation="compact")
    observation, info = env.reset(seed=0)
    for i, action in enumerate(episode.actions):
        assert (observation == episode.observations[i]).all()
        assert (info["action_mask"] == episode.masks[i]).all()
        observation, reward, *_, info = env.step(int(action))
        assert np.float32(reward) == episode.rewards[i]
    assert (observation == episode.final_observation).all()
    assert info["latency_ps"] == episode.latency_ps


def test_games_about_small_buffers_are_recorded_as_they_were_played(episodes):
    small = [episode for episode in episodes if episode.min_buffer_bytes < 16 << 10]
    assert WAVERNN in {episode.level for episode in small}
    assert {episode.behaviour for episode in small} <= {"rent", "mcts:30"} and small


def test_games_depend_on_the_seed_only():
    game = mg.Game(mg.load_program(SMALL))
    first = offline.play_games(game, ["random:3", "greedy", "random"], seeds=2)
    assert [(one.behaviour, one.seed) for one in first] == [
        ("random:3", 0),
        ("random:3", 1),
        ("greedy", 0),
        ("random:1", 0),
        ("random:1", 1),
    ]
    assert first[0].level == SMALL
    again = offline.play_games(game, ["random:3", "greedy", "random"], seeds=2)
    assert all(same(*pair) for pair in zip(first, again, strict=True))
    assert first[3].actions.tobytes() != first[4].actions.tobytes()
    prices = mg.bounds.Prices(np.full(game.program.ticks, 1e-3))
    (priced,) = offline.play_games(game, ["greedy"], observation="flat", prices=prices)
    assert (priced.continuation, first[2].continuation) == ("rent", "greedy")
    assert priced.observations.shape[1] == mg.observation.Observer(game).size
    state = game.initial_state()
    expected = mg.observation.Observer(game, {}, prices).observe(state)
    assert (priced.observations[0] == expected).all()
    assert (priced.observations[0] != mg.observation.Observer(game).observe(state)).any()
    assert not np.array_equal(priced.returns, first[2].returns, equal_nan=True)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"behaviours": ["nobody"]}, "found behaviour 'nobody', allowed: greedy, rent, mcts:N"),
        ({"behaviours": ["greedy:3"]}, "found behaviour 'greedy:3'"),
        ({"behaviours": ["mcts:"]}, "found behaviour 'mcts:'"),
        ({"behaviours": ["random:0"]}, "found 0 games, allowed: 1 and above"),
        ({"seeds": 0}, "seeds: found 0"),
        ({"observation": "dict"}, "observation: found 'dict', allowed: 'compact', 'flat'"),
    ],
)
def test_bad_settings(arguments, message):
    with pytest.raises(mg.InvalidInputError, match=message):
        offline.play_games(mg.Game(mg.load_program(SMALL)), **arguments)


# --- NumPy


def test_numpy_gives_back_what_was_written(episodes, tmp_path):
    folder = tmp_path / "data"
    offline.write_numpy(episodes[:4], folder)
    offline.write_numpy(episodes[4:], folder)
    back = list(offline.read_numpy(folder))
    assert len(back) == len(episodes)
    assert all(same(*pair) for pair in zip(back, episodes, strict=True))
    only = list(offline.read_numpy(folder, [WAVERNN]))
    assert {episode.level for episode in only} == {WAVERNN}

    other = tmp_path / "other"
    offline.write_numpy(episodes[:4], other)
    name = f"{episodes[0].level}.npz"
    assert (other / name).read_bytes() == (folder / name).read_bytes()
    about = numpy_files.read_about(folder / name)
    assert about["observation"] == mg.observation.OBSERVATION_VERSION
    assert (about["size"], about["actions"]) == (COMPACT, episodes[0].masks.shape[1])
    with pytest.raises(mg.InvalidInputError, match="found no level 'x'"):
        offline.read_numpy(folder, ["x"])


def test_what_does_not_fit_is_not_written(episodes, tmp_path):
    folder = tmp_path / "data"
    offline.write_numpy(episodes[:1], folder)
    (flat,) = offline.play_games(mg.Game(mg.load_program(SMALL)), ["greedy"], observation="flat")
    with pytest.raises(mg.InvalidInputError, match=f"found size {COMPACT}, allowed: {FLAT}"):
        offline.write_numpy([flat], folder)
    with pytest.raises(mg.InvalidInputError, match="can't be the name of a file"):
        offline.write_numpy([dataclasses.replace(episodes[0], level="../x")], folder)
    with pytest.raises(mg.errors.MissingFileError, match="there is no offline data"):
        offline.read_numpy(tmp_path)
    path = next(folder.glob("*.npz"))
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(mg.InvalidInputError, match="damaged"):
        list(offline.read_numpy(folder))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("other.npy", b"")
    with pytest.raises(mg.InvalidInputError, match="no offline data"):
        list(offline.read_numpy(folder))


@pytest.mark.parametrize("name", ["format", "rules", "observation"])
def test_other_versions_are_refused(name, episodes, tmp_path, monkeypatch):
    monkeypatch.setitem(numpy_files._VERSIONS, name, 99)
    offline.write_numpy(episodes[:1], tmp_path)
    monkeypatch.undo()
    with pytest.raises(mg.InvalidInputError, match=f"found {name} 99, allowed: "):
        list(offline.read_numpy(tmp_path))
    with pytest.raises(mg.InvalidInputError, match="make the data anew in another folder"):
        offline.write_numpy(episodes[:1], tmp_path)


# --- Minari


@pytest.fixture
def minari(tmp_path, monkeypatch):
    """Minari with a store of its own."""
    for module in ("h5py", "PIL", "gymnasium"):
        pytest.importorskip(module)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    return pytest.importorskip("minari", reason="pip install 'mallocgame[offline]'")


@pytest.mark.full
def test_minari_gives_back_what_was_written(episodes, minari):
    offline.write_minari(iter(episodes), "mallocgame/test-v0", author="a", description="b")
    dataset = minari.load_dataset("mallocgame/test-v0")
    env = mg.MallocGameEnv(SMALL, observation="compact")
    assert dataset.observation_space == env.observation_space
    assert dataset.action_space == env.action_space
    assert dataset.total_episodes == len(episodes)
    assert dataset.total_steps == sum(episode.decisions for episode in episodes)
    facts = dataset.storage.get_episode_metadata(range(len(episodes)))
    for found, fact, episode in zip(dataset.iterate_episodes(), facts, episodes, strict=True):
        np.testing.assert_array_equal(found.observations[:-1], episode.observations)
        np.testing.assert_array_equal(found.observations[-1], episode.final_observation)
        assert all(map(env.observation_space.contains, found.observations))
        np.testing.assert_array_equal(found.actions, episode.actions)
        np.testing.assert_array_equal(found.rewards, episode.rewards)
        assert found.terminations.tolist() == [False] * (episode.decisions - 1) + [True]
        assert not found.truncations.any()
        np.testing.assert_array_equal(found.infos["action_mask"][:-1], episode.masks)
        np.testing.assert_array_equal(found.infos["returns"][:-1], episode.returns)
        assert np.isnan(found.infos["returns"][-1]).all()
        assert (fact["level"], fact["behaviour"]) == (episode.level, episode.behaviour)
        assert (fact["latency_ps"], fact["seed"]) == (episode.latency_ps, episode.seed)
        assert fact["observation"] == mg.observation.OBSERVATION_VERSION
    assert dataset.env_spec is None  # Its levels are in a folder of their own.


@pytest.mark.full
@pytest.mark.parametrize("settings", [{}, {"game": "priority", "candidates": 2}])
def test_minari_recovers_the_environment(minari, settings):
    import gymnasium

    programs = [SMALL, "wavernn_64steps_b8.tpu_v4i"]
    played = [
        episode
        for name in programs
        for episode in offline.play_games(mg.Game(mg.load_program(name), **settings), ["random:2"])
    ]
    env = offline.write_minari(played, "mallocgame/two-v0").recover_environment()
    asked = {"observation": "compact", "min_buffer_bytes": 16 << 10, **settings}
    assert env.spec.kwargs == {"program": programs, **asked}
    assert gymnasium.spec(env.spec.id).kwargs == {}  # The recovered one is its own.
    first, _ = env.reset(seed=0)
    assert any(np.array_equal(first, episode.observations[0]) for episode in played)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", ["MallocGame", "PriorityGame", "ScheduleGame", "Placement"])
def test_minari_collects_and_recovers_each_environment(minari, name):
    import gymnasium

    env = gymnasium.make(f"mallocgame/{name}-v0", program=SMALL)
    collector = minari.DataCollector(env, record_infos=True)
    _, info = collector.reset(seed=0)
    ended = False
    while not ended:
        ended = collector.step(collector.action_space.sample())[2]
    dataset = collector.create_dataset(f"mallocgame/{name.lower()}-v0")
    assert dataset[0].infos.keys() == info.keys()
    assert dataset.recover_environment().spec.kwargs["program"] == SMALL


@pytest.mark.full
def test_minari_refuses_what_it_cannot_hold(episodes, minari, monkeypatch):
    with pytest.raises(mg.InvalidInputError, match="allowed: NAME-vN"):
        offline.write_minari(episodes, "no version")
    with pytest.raises(mg.InvalidInputError, match="found no episode"):
        offline.write_minari([], "empty-v0")
    wide = dataclasses.replace(episodes[0], observations=episodes[0].observations[:, :3])
    with pytest.raises(mg.InvalidInputError, match=rf"found 3 numbers .* allowed: {COMPACT}"):
        offline.write_minari([episodes[0], wide], "wide-v0")
    assert "wide-v0" not in minari.list_local_datasets()
    offline.write_minari(episodes[:1], "taken-v0")
    with pytest.raises(mg.InvalidInputError, match="there is a Minari dataset 'taken-v0' already"):
        offline.write_minari(episodes[:1], "taken-v0")
    with monkeypatch.context() as patch:
        patch.chdir(os.path.dirname(os.environ["MINARI_DATASETS_PATH"]))
        patch.setenv("MINARI_DATASETS_PATH", "here")
        with pytest.raises(mg.InvalidInputError, match="found 'here', allowed: an absolute path"):
            offline.write_minari(episodes[:1], "other-v0")
    monkeypatch.setitem(sys.modules, "minari", None)
    with pytest.raises(mg.MallocGameError, match=r"pip install 'mallocgame\[offline\]'"):
        offline.write_minari(episodes[:1], "other-v0")


# --- the command


@pytest.mark.full
def test_the_command_goes_on_where_it_was(command, tmp_path, monkeypatch, level_set, minari):
    data = tmp_path / "data"
    played = []
    play = making.play_game

    def counted(name, game, behaviour, *rest):
        played.append((name, behaviour.name))
        return play(name, game, behaviour, *rest)

    monkeypatch.setattr(making, "play_game", counted)
    usual = ["-o", data, "--limit", 2, "--behaviours", "greedy,random"]
    status, out, _ = command(*usual)
    assert status == 0 and f"2 levels in {data}" in out
    assert out.splitlines()[1].split()[:2] == ["greedy", "2"]
    names = [level.name for level in levels("train", level_set)[:3]]
    assert played == [(name, who) for name in names[:2] for who in ("greedy", "random:1")]
    played.clear()
    first = list(offline.read_numpy(data))
    assert command(*usual)[0] == 0 and not played

    more = ["-o", data, "--limit", 3, "--behaviours", "greedy,rent", "--minari", "off-v0"]
    status, out, _ = command(*more, "--json")
    assert status == 0
    assert played == [
        (names[0], "rent"),
        (names[1], "rent"),
        (names[2], "greedy"),
        (names[2], "rent"),
    ]
    document = json.loads(out)
    assert (document["levels"], document["folder"]) == (3, str(data))
    assert [(row["behaviour"], row["games"]) for row in document["behaviours"]] == [
        ("greedy", 3),
        ("random:1", 2),
        ("rent", 3),
    ]
    found = {(one.level, one.behaviour): one for one in offline.read_numpy(data)}
    assert len(found) == 8
    assert all(same(one, found[one.level, one.behaviour]) for one in first)
    assert minari.load_dataset("off-v0").total_episodes == 8


def test_jobs_write_the_same(command, tmp_path):
    usual = ["--limit", 3, "--behaviours", "greedy", "-o"]
    assert command(*usual, tmp_path / "one")[0] == 0
    assert command(*usual, tmp_path / "two", "--jobs", 2)[0] == 0
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


def test_interrupted_it_keeps_what_is_done(command, tmp_path, monkeypatch):
    play, calls = making.play_game, []
    threads = threading.active_count()

    def interrupted(*rest):
        calls.append(rest)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return play(*rest)

    monkeypatch.setattr(making, "play_game", interrupted)
    usual = ["-o", tmp_path, "--limit", 3, "--behaviours", "greedy"]
    assert command(*usual)[0] == 130
    assert len(list(offline.read_numpy(tmp_path))) == 2
    assert command(*usual)[0] == 0
    assert len(calls) == 4 and len(list(offline.read_numpy(tmp_path))) == 3
    next(tmp_path.glob("*.npz")).unlink()
    assert command(*usual)[0] == 0
    assert len(calls) == 5 and len(list(offline.read_numpy(tmp_path))) == 3
    assert threading.active_count() == threads


@pytest.mark.parametrize(
    "arguments, message",
    [
        ([], "the following arguments are required: -o/--output"),
        (["-o", __file__], "is no folder"),
        (["-o", "x", "--behaviours", "nobody"], "--behaviours: found behaviour 'nobody', allowed"),
        (["-o", "x", "--behaviours", ","], "found nobody who plays"),
        (["-o", "x", "--split", "test"], "found no level in the split test"),
        (["-o", "x", "--limit", 0], "found 0, allowed: an integer, 1 and above"),
    ],
)
def test_bad_input_is_one_line(arguments, message, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, _, err = command(*arguments)
    assert status == 2
    assert message in err and err.count("\n") == 1


def test_a_folder_of_other_data_is_refused(command, tmp_path):
    usual = ["-o", tmp_path, "--limit", 1, "--behaviours", "greedy"]
    assert command(*usual)[0] == 0
    status, _, err = command(*usual, "--observation", "flat")
    assert (status, err.count("\n")) == (2, 1)
    assert f"found size {COMPACT}, allowed: {FLAT}, that of the episodes; give another" in err
    (one,) = offline.read_numpy(tmp_path)
    offline.write_numpy([dataclasses.replace(one, fingerprint="x")], tmp_path)
    assert "give another folder" in command(*usual)[2]


def test_games_that_vanish_are_told(tmp_path, monkeypatch, capsys):
    """The folder is taken away while the rest is played."""
    make = offline.make_dataset

    def vanishing(chosen, *arguments, **settings):
        make(chosen[1:], *arguments, **settings)

    monkeypatch.setattr(offline, "make_dataset", vanishing)
    status = cli.main(["offline", "--limit", "2", "-o", str(tmp_path / "out")])
    assert status == 2
    assert "are gone; run it again" in capsys.readouterr().err
