"""Any order of calls: Hypothesis draws it, and what must hold is checked after each call.

The ordinary run draws the same few orders each time. MALLOCGAME_EXAMPLES=N draws N new ones for
each machine (tests/fuzz/README.md).
"""

import copy
import os
import pickle

import numpy as np
import pytest

import mallocgame as mg

hypothesis = pytest.importorskip(
    "hypothesis", reason="Hypothesis isn't installed: pip install 'mallocgame[test]'"
)

from gymnasium.vector import AutoresetMode
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from vector_env_test import LOADED, assert_same, random_actions, sync

from mallocgame.envs.vector import VectorEnv

EXAMPLES = int(os.environ.get("MALLOCGAME_EXAMPLES", "0"))
SETTINGS = hypothesis.settings(
    max_examples=EXAMPLES or 15,
    stateful_step_count=30,
    derandomize=not EXAMPLES,
    database=None,
    deadline=None,
    suppress_health_check=list(hypothesis.HealthCheck),
)

FAST_BYTES = [64 << 10, 1 << 20, 4 << 20, 16 << 20]
COPIES = [
    lambda state: state.clone(),
    copy.copy,
    copy.deepcopy,
    lambda state: pickle.loads(pickle.dumps(state)),
]
# Numbers that choose among what is there.
choices = st.integers(0, 1 << 16)


class GameMachine(RuleBasedStateMachine):
    """One state of a game, and copies of it that must not disturb it."""

    @initialize(
        program=st.sampled_from(LOADED),
        kind=st.sampled_from(["time", "priority"]),
        fast=st.sampled_from(FAST_BYTES),
        actions=st.sampled_from(["full", "paper"]),
        least=st.sampled_from([0, 1024, 16384]),
        candidates=st.integers(1, 51),
        preloads=st.integers(0, 3),
    )
    def start(self, program, kind, fast, actions, least, candidates, preloads):
        hardware = program.hardware.replace(fast_bytes=fast, max_preloads=preloads)
        game = mg.TimeGame(paper_actions=actions == "paper", min_buffer_bytes=least)
        if kind == "priority":
            game = mg.PriorityGame(candidates=candidates, min_buffer_bytes=least)
        self.game = mg.Game(program, hardware, game)
        self.state = self.game.initial_state()
        self.history = []  # what was seen before each decision
        self.saved_ps = []

    def seen(self, state):
        """All that can be seen of a state and does not depend on how it was reached."""
        return (
            state.actions.tobytes(),
            state.latency_ps,
            state.legal_mask().tobytes(),
            state.to_string(),
            mg.observation.Observer(state.game)
            .observe(state)
            .tobytes(),  # a pickled state has its own game
        )

    def play_on(self, state, choice):
        """Plays a state to its end, by the legal actions that `choice` comes to."""
        saved_ps = 0
        while not state.is_terminal():
            legal = state.legal_actions()
            state.apply(legal[choice % len(legal)])
            saved_ps += state.last_saved_ps
            choice = choice * 48271 % 0x7FFFFFFF + 1
        return saved_ps

    @precondition(lambda self: not self.state.is_terminal())
    @rule(choice=choices)
    def apply(self, choice):
        legal = self.state.legal_actions()
        self.history.append(self.seen(self.state))
        reward = self.state.apply(legal[choice % len(legal)])
        self.saved_ps.append(self.state.last_saved_ps)
        assert reward == self.saved_ps[-1] / self.game.all_main_ps

    @rule(action=st.integers(-2, 1 << 8))
    def apply_what_is_illegal(self, action):
        if action in self.state.legal_actions():
            return
        before = self.seen(self.state)
        over = self.state.is_terminal()
        with pytest.raises(mg.errors.GameOverError if over else mg.errors.InvalidActionError):
            self.state.apply(action)
        assert self.seen(self.state) == before

    @rule(times=st.integers(1, 5))
    def undo(self, times):
        for _ in range(times):
            if not self.history:
                with pytest.raises(mg.errors.InvalidActionError):
                    self.state.undo()
                return
            self.state.undo()
            self.saved_ps.pop()
            assert self.seen(self.state) == self.history.pop()

    @rule(how=st.sampled_from(COPIES), choice=choices)
    def a_copy_ends_in_a_valid_plan(self, how, choice):
        before = self.seen(self.state)
        other = how(self.state)
        assert self.seen(other) == before
        saved_ps = sum(self.saved_ps) + self.play_on(other, choice)
        assert saved_ps == self.game.all_main_ps - other.latency_ps
        plan = other.plan()
        assert mg.validate(self.game.program, plan, self.game.hardware)
        report = mg.simulate(self.game.program, plan, self.game.hardware)
        assert report.latency_ps == other.latency_ps
        assert self.seen(self.state) == before
        end = self.seen(other)
        again = self.game.initial_state()
        for action in other.actions.tolist():
            again.apply(action)
        assert self.seen(again) == end and again.plan() == plan
        for _ in range(other.num_decisions - self.state.num_decisions):
            other.undo()
        assert self.seen(other) == before

    @rule(how=st.sampled_from(COPIES))
    def go_on_with_a_copy(self, how):
        self.state = how(self.state)

    @invariant()
    def the_mask_is_the_list(self):
        mask = self.state.legal_mask()
        assert np.flatnonzero(mask).tolist() == self.state.legal_actions()
        assert len(mask) == self.game.num_actions
        assert mask.any() != self.state.is_terminal()
        assert self.state.num_decisions == len(self.history)


class VectorMachine(RuleBasedStateMachine):
    """A batch of environments beside as many single ones."""

    @initialize(
        count=st.integers(1, 4),
        observation=st.sampled_from(["dict", "compact"]),
        mode=st.sampled_from(list(AutoresetMode)),
        kind=st.sampled_from(["time", "priority"]),
        threads=st.integers(1, 3),
        seed=choices,
    )
    def start(self, count, observation, mode, kind, threads, seed):
        self.mode, self.count = mode, count
        self.single = sync(observation, mode, count, game=kind)
        self.batch = VectorEnv(
            count, LOADED, observation=observation, autoreset_mode=mode, threads=threads, game=kind
        )
        self.over = np.zeros(count, bool)
        self.reset(seed)

    @rule(seed=choices)
    def reset(self, seed):
        assert_same(self.single.reset(seed=seed), self.batch.reset(seed=seed))
        self.over[:] = False

    @rule(seed=choices)
    def reset_with_a_seed_each(self, seed):
        seeds = list(range(seed, seed + self.count))
        assert_same(self.single.reset(seed=seeds), self.batch.reset(seed=seeds))
        self.over[:] = False

    @rule(seed=choices, steps=st.integers(1, 40))
    def step(self, seed, steps):
        chance = np.random.default_rng(seed)
        for _ in range(steps):
            self.reset_those_that_are_over()
            actions = random_actions(self.batch.action_masks(), chance)
            expected, found = self.single.step(actions), self.batch.step(actions)
            if self.mode == AutoresetMode.NEXT_STEP:  # Ours says what to do at an end: anything.
                expected[4]["action_mask"][expected[2], 0] = 1
            assert_same(expected, found)
            self.over = expected[2].copy()

    def reset_those_that_are_over(self):
        if self.mode != AutoresetMode.DISABLED or not self.over.any():
            return
        assert_same(
            self.single.reset(options={"reset_mask": self.over.copy()}),
            self.batch.reset(options={"reset_mask": self.over.copy()}),
        )


TestGames = GameMachine.TestCase
TestGames.settings = SETTINGS
TestVectors = VectorMachine.TestCase
TestVectors.settings = SETTINGS
