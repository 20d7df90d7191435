"""The allocator of XLA with pieces from Python: what they are asked, and what becomes of it."""

import textwrap
import threading

import numpy as np
import pytest

import mallocgame as mg
from mallocgame import laboratory
from mallocgame.laboratory import Pieces, judge, plan_like_xla, summarize

PROGRAM = "muzero_unroll_b32.tpu_v4i_16mib"


@pytest.fixture(scope="module")
def program():
    return mg.load_program(PROGRAM)


def best_fit(question):
    sizes = question.free[:, 1] - question.free[:, 0]
    endless = question.free[:, 1] == question.capacity_bytes
    if not len(sizes):
        return None
    return question.free[np.argmin(np.where(endless, 2**62, sizes)), 0]


def test_pieces_that_answer_as_xla_does_leave_the_plan_as_it_is(program):
    same = Pieces(
        order=lambda question: question.by_xla,
        begins=lambda question: question.by_xla(),
        retry=lambda attempt: attempt.by_xla,
        offset=best_fit,
    )
    xla = plan_like_xla(program)
    own = plan_like_xla(program, same)
    assert own.plan.to_json(program) == xla.plan.to_json(program)
    assert own.counts == xla.counts and xla.counts.out_of_memory > 0
    np.testing.assert_array_equal(own.order, xla.order)
    solved = mg.solve(program, solver="xla-heuristic", seconds=0)
    assert xla.plan.to_json(program) == solved.plan.to_json(program)


def test_what_the_questions_say(program):
    seen = {}

    def order(question):
        assert len(question.by_xla) == len(question.size_bytes) == len(question.boundedness)
        sizes = program.buffers["size_bytes"][question.by_xla]
        np.testing.assert_array_equal(question.size_bytes, sizes)
        return question.by_xla[::-1]

    def begins(question):
        seen["begins"] = question
        assert 0 <= question.first < question.end <= question.held_until
        assert program.accesses["buffer"][question.access] == question.buffer
        listed = question.by_xla()
        for begin in listed[:2]:
            assert question.may_begin(begin) and question.hidden_ps(begin) >= 0
            assert question.by_xla(begin)[0] == begin
            free = question.free(begin, question.held_until)
            taken = question.most_used(begin, question.held_until)
            assert (free[:, 1] - free[:, 0]).sum() <= question.capacity_bytes - taken
        with pytest.raises(mg.InvalidInputError, match=f"found {question.end}, allowed"):
            question.hidden_ps(question.end)
        with pytest.raises(mg.InvalidInputError, match="allowed: 0 <= begin < end"):
            question.free(3, 10**12)
        return listed

    def retry(attempt):
        seen.setdefault("retry", set()).update(attempt.failures)
        return attempt.by_xla

    outcome = plan_like_xla(program, Pieces(order=order, begins=begins, retry=retry))
    assert mg.validate(program, outcome.plan)
    assert outcome.order[0] == plan_like_xla(program).order[-1]
    assert "out of memory" in seen["retry"]
    with pytest.raises(mg.InvalidInputError, match="used after the call"):
        seen["begins"].by_xla()


def test_an_exception_of_a_piece_comes_through(program):
    def fail(question):
        raise KeyError("mine")

    for piece in ("order", "begins", "retry", "offset"):
        with pytest.raises(KeyError, match="mine"):
            plan_like_xla(program, Pieces(**{piece: fail}))


@pytest.mark.parametrize(
    ("pieces", "message"),
    [
        (Pieces(order=lambda question: question.by_xla[1:]), r"order: found \d+ of \d+ buffers"),
        (Pieces(order=lambda question: 7), "order: allowed: a sequence of integers"),
        (Pieces(begins=lambda question: [10**15]), "begins: found 2147483647 for the prefetch"),
        (Pieces(begins=lambda question: [question.first - 1]), "begins: found .* allowed: "),
        (Pieces(begins=lambda question: [0.5]), "begins: allowed: a sequence of integers"),
        (Pieces(retry=lambda attempt: "again"), "retry: found 'again', allowed: 'keep'"),
        (Pieces(offset=lambda question: 1), "offset: found 1 for .*, allowed: multiples of"),
        (Pieces(offset=lambda question: "low"), "offset: allowed: an integer or None"),
        (Pieces(repack=lambda question: []), "repack: found 0 offsets, allowed: "),
        (Pieces(offset="next-fit"), "offset: found 'next-fit', allowed: xla, first-fit"),
    ],
)
def test_a_wrong_answer_is_refused(program, pieces, message):
    with pytest.raises(mg.InvalidInputError, match=message):
        plan_like_xla(program, pieces)


def test_names_stand_for_pieces(program):
    kinds = {piece for piece, *_ in laboratory.named_pieces()}
    assert kinds == {"order", "begins", "retry", "offset", "repack"}
    own = plan_like_xla(program, Pieces.of("begins=latest, offset=first-fit"))
    assert own.plan.to_json(program) != plan_like_xla(program).plan.to_json(program)
    assert mg.validate(program, own.plan)
    with pytest.raises(mg.InvalidInputError, match="found 'begins' twice"):
        Pieces.of("begins=latest,begins=xla")
    with pytest.raises(mg.InvalidInputError, match="found 'begin=latest', allowed: order, begins"):
        Pieces.of("begin=latest")


def test_judging_is_paired_and_draws_models_together():
    names = ["wavernn_64steps_b8.tpu_v4i", "wavernn_64steps_b8.tpu_v5e", PROGRAM]
    told = []
    trials = judge(Pieces(begins="latest"), names, tell=told.append)
    assert [trial.program for trial in trials] == told == names
    for trial in trials:
        program = mg.load_program(trial.program)
        xla = mg.solve(program, solver="xla-heuristic", seconds=0).report
        assert trial.baseline_ps == xla.latency_ps and trial.baseline_stall_ps == xla.stall_ps
    total = summarize(trials)
    assert (total.programs, total.models) == (3, 2)
    assert total.low <= total.ratio <= total.high
    assert total.ratio == pytest.approx(np.prod([trial.ratio for trial in trials]) ** (1 / 3))
    assert summarize(trials) == total
    same = summarize(judge(Pieces(begins="latest"), names[2:], baseline=Pieces.of("begins=latest")))
    assert same.ratio == same.low == same.high == 1
    with pytest.raises(mg.InvalidInputError, match="found no trial"):
        summarize([])


def test_the_command_judges_names_and_modules(run, run_json, tmp_path):
    (tmp_path / "mine.py").write_text(
        textwrap.dedent(
            """
            from mallocgame.laboratory import Pieces

            def late():
                return Pieces(begins=lambda question: sorted(question.by_xla(), reverse=True))

            wrong = 7
            """
        )
    )
    document = run_json("lab", "mine:late", "begins=latest", "--programs", PROGRAM)
    own, named = document["results"]
    assert own["ratio"] == named["ratio"] == own["latency_ps"] / own["baseline_ps"]
    assert document["summary"]["mine:late"]["programs"] == 1
    table = run("lab", "begins=latest", "--programs", PROGRAM, "--baseline", "begins=latest")
    assert table.returncode == 0 and PROGRAM in table.stdout and "1.0000" in table.stdout
    failed = run("lab", "order=best", "--programs", PROGRAM)
    assert failed.returncode == 2 and "order: found 'best'" in failed.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("theirs:early", "module 'theirs' has no 'early'"),
        ("theirs:wrong", "found int, allowed: a Pieces"),
        ("nobodys:late", "can't import 'nobodys'"),
        ("orders=size", "found 'orders=size', allowed: order, begins"),
    ],
)
def test_pieces_that_are_not_there_are_named(text, message, tmp_path, monkeypatch):
    (tmp_path / "theirs.py").write_text("wrong = 7")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(mg.InvalidInputError, match=message):
        laboratory.find_pieces(text)


def test_pieces_run_beside_other_threads(program):
    plans = []

    def plan():
        pieces = Pieces(begins=lambda question: question.by_xla())
        plans.append(plan_like_xla(program, pieces).plan.to_json(program))

    threads = [threading.Thread(target=plan) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert plans == [plan_like_xla(program).plan.to_json(program)] * 4
