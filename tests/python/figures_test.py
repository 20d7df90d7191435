"""Figures in prose are those of the kept tables and of the package.

benchmarks/quality/headline.py computes them. A page's sentences stand here with the names of their
figures, so a page that says another number, or a table that changes, fails.
"""

import contextlib
import dataclasses
import importlib.util
import json
import re
import types

import pytest
from conftest import SOURCE_ROOT

import mallocgame as mg
from mallocgame._cli import xla
from mallocgame._cli.main import main
from mallocgame.xla import tuning

SPEC = importlib.util.spec_from_file_location(
    "headline", SOURCE_ROOT / "benchmarks/quality/headline.py"
)
HEADLINE = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(HEADLINE)

WORDS = {7: "seven"}

# What pages say, by page. `{name:.3f}` is a figure of headline.py.
CLAIMS = {
    "docs/benchmarks.md": [
        "The warm means (without it) differ by {means_farthest:.3f} at most, the medians by "
        "{medians_farthest:.3f}, and single plans of `portfolio` by up to {plans_farthest:.3f}.",
        "the {contended} `contended` programs are {contended_models} models",
        "| plans of `portfolio` | `contended`: {contended} for v4i, v5e and v6e, chosen because "
        "XLA left 3 % or more when the suite was made; {contended_v4i} are for v4i | "
        "{plans_cold:.3f} | {plans_cold_models:.3f} | {plans_cold_median:.2f} |",
        "the {others_cold_n} other programs of the core corpus | {others_cold:.3f} | "
        "{others_cold_models:.3f} | {others_cold_median:.2f} |",
        "| `contended` | {tuned_cold:.3f} | {tuned_cold_models:.3f} | {tuned_cold_median:.2f} | "
        "{calibrated_cold:.3f} |",
        "| {tuned_rest_cold_n} of them | {tuned_rest_cold:.3f} | {tuned_rest_cold_models:.3f} | "
        "{tuned_rest_cold_median:.2f} | {calibrated_rest_cold:.3f} |",
        "`cloud`: {cloud_tuned_cold_n} of {cloud} for v5e, v5p, v6e and tpu7x, on which nothing "
        "was tuned | {cloud_tuned_cold:.3f} | {cloud_tuned_cold_models:.3f} | "
        "{cloud_tuned_cold_median:.2f} | {cloud_calibrated_cold:.3f} |",
    ],
    "README.md": [
        "On {contended} programs ({contended_models} models) that were chosen because XLA left 3 % "
        "or more, plans of `portfolio` are {plans_cold_models:.2f} times as fast",
        "On the {others_cold_n} other core programs they are {others_cold_models:.2f} times as",
        "makes the same {tuned_cold_n} programs {tuned_cold_models:.2f} times as fast, and "
        "{calibrated_cold_models:.2f} times at prices",
        "a minute makes {cloud_tuned_cold_n} programs {cloud_tuned_cold_models:.2f} and "
        "{cloud_calibrated_cold_models:.2f} times as fast",
        "{problems} compiled programs and {levels:,} [levels](docs/levels.md)",
    ],
    "CHANGELOG.md": ["A corpus of {problems} problems"],
    "docs/faq.md": [
        "WaveRNN gains {wavernn_tpu_v4i:.2f} on v4i, {wavernn_tpu_v5e:.2f} on v5e, "
        "{wavernn_tpu_v5p:.2f} on v5p, {wavernn_tpu_v6e:.2f} on v6e and nothing on tpu7x "
        "({wavernn_tpu7x:.3f}), cold.",
        "its median is {tuned_cold_median:.3f} cold",
    ],
    "docs/tpu.md": [
        "On {exceeded} of {exceeded_of} programs",
        "of the {little_left} programs with less than 2 % left, {little_left_but_gained:w} gained "
        "2 % or more",
        "{proven_share:.1f} % of XLA's latency, in the median of the {proven_n} programs",
    ],
    "docs/levels.md": [
        "{whole_programs} of {train_programs} programs in eight variants",
        "{part_programs} in the {least_variants} to {most_part_variants} variants",
        "The splits have {drawn_programs} drawn programs and {known_programs} known ones",
        "The split `schedule` has {schedule_levels} levels",
    ],
    "docs/rules.md": ["on each of the {problems} bundled programs"],
    "docs/bounds.md": [
        "has all {problems} problems",
        "are the {contended} core programs",
        "By today's tighter bounds XLA leaves {contended_left_least:.1f} % on",
        "and {others_left_most:.1f} % at most on the {others_cold_n} other core programs",
        "{uncontended} bundled programs are outside the suite",
    ],
    "docs/numbers.md": [
        "Over the {predictor_n} programs without WaveRNN the mean of the summed absolute error "
        "over the summed prices is {predictor pooled: error:.2f} %, and the 95th percentile of "
        "relative errors is {predictor p95:.1f} % on average"
    ],
    "docs/results/solvers.md": [
        "On the {others_cold_n} other programs of the core corpus `portfolio` reaches "
        "{others_cold:.3f} cold and {others_warm:.3f} warm",
        "The medians of `portfolio` with 30 s are {plans_cold_median:.2f} cold and "
        "{plans_warm_median:.2f} warm,",
        "The means over the suite's {plans_cold_models_n} models are {plans_cold_models:.3f} cold "
        "and {plans_warm_models:.3f} warm.",
        "| `portfolio`, 30 s on two cores | {plans_cold:.3f} | **{plans_warm:.3f}** |",
    ],
    "docs/results/suites.md": [
        "on {exceeded} of the {exceeded_of} programs",
        "Of the {little_left} on which less than 2 % is left, {little_left_but_gained:w} gain",
        "| cloud | {cloud_tuned_cold_n} | 1.082 | **{cloud_tuned_cold:.3f}** | "
        "{cloud_tuned_warm:.3f} | **{cloud_calibrated_cold:.3f}** | {cloud_calibrated_warm:.3f} |",
        "| cloud, median | {cloud_tuned_cold_n} | 1.020 | {cloud_tuned_cold_median:.3f} | "
        "{cloud_tuned_warm_median:.3f} | {cloud_calibrated_cold_median:.3f} | "
        "{cloud_calibrated_warm_median:.3f} |",
        "| sharded | {sharded_cold_n} | 1.042 | {sharded_cold:.3f} | {sharded_warm:.3f} |",
    ],
    "docs/results/tpu.md": [
        "| all | {tuned_cold_n} | **{tuned_cold:.3f}** | **{tuned_warm:.3f}** | "
        "**{calibrated_cold:.3f}** | **{calibrated_warm:.3f}** |",
        "| by model | {tuned_cold_models_n} | {tuned_cold_models:.3f} | {tuned_warm_models:.3f} | "
        "{calibrated_cold_models:.3f} | {calibrated_warm_models:.3f} |",
        "| {tuned_rest_cold_n} | {tuned_rest_cold:.3f} | {tuned_rest_warm:.3f} | "
        "{calibrated_rest_cold:.3f} | {calibrated_rest_warm:.3f} |",
    ],
}
# What several pages say of one measurement; the first has it, with its command.
QUOTED = {
    "0.009 (-0.000 to 0.035)": ("docs/leaderboard.md", "README.md", "docs/faq.md"),
    "0.016 (0.008 to 0.031)": ("docs/leaderboard.md", "README.md", "docs/faq.md"),
}


def text_of(page: str) -> str:
    return " ".join((SOURCE_ROOT / page).read_text(encoding="utf-8").split())


@pytest.fixture(scope="module")
def figures():
    return HEADLINE.figures()


@pytest.mark.parametrize("page", CLAIMS)
def test_figures_of_a_page(page, figures):
    def number(found: re.Match) -> str:
        value = figures[found[1]]
        return WORDS[value] if found[2] == "w" else format(value, found[2] or "")

    text = text_of(page)
    for claim in CLAIMS[page]:
        # Names may have spaces and colons, as headings of tables do.
        said = re.sub(r"{(.+?)(?::([,.\d]+f?|,|w))?}", number, claim)
        assert said in text, f"{page} doesn't say: {said}"


@pytest.mark.parametrize("quoted", QUOTED)
def test_pages_quote_the_same(quoted):
    for page in QUOTED[quoted]:
        assert quoted in text_of(page), page


def test_result_pages_have_a_date():
    for path in (SOURCE_ROOT / "docs/results").glob("*.md"):
        dated = re.search(r"\b\d{1,2} [A-Z][a-z]+ 20\d\d\b", path.read_text(encoding="utf-8"))
        assert dated or path.name == "lp-proof.md", path.name


def test_contended_programs_below_the_limit_of_then(figures):
    assert (figures["contended_left_below_3"], figures["others_left_2"]) == (3, 2)
    assert "2 % or more" not in text_of("benchmarks/programs/README.md")


def test_models_of_the_package(figures):
    assert (figures["models"], figures["contended_models"]) == (34, 11)


@pytest.fixture
def check(monkeypatch, capsys):
    """check(share, argument...) -> what `xla check` prints where XLA leaves that share."""

    def call(share, *arguments, waiting=()):
        program = mg.load_program("mlp_train_adam_b512.tpu_v5e")
        target = types.SimpleNamespace(title="tpu_v5e")
        captured = types.SimpleNamespace(
            program=program,
            xla_plan=program.xla_plan,
            name=program.name,
            target=target,
            unpriced=(),
        )
        own = mg.simulate(program, program.xla_plan)
        left = tuning.Left(captured, own, round(own.latency_ps / (1 + share)), 5)
        left = dataclasses.replace(left, waiting=waiting)
        monkeypatch.setattr(xla, "open_compiler", lambda options: contextlib.nullcontext())
        monkeypatch.setattr(xla, "capture_source", lambda *_: captured)
        monkeypatch.setattr(xla, "what_is_left", lambda *_: left)
        assert main(["xla", "check", "mine", "--target", "tpu_v5e", *arguments]) == 0
        return " ".join(capsys.readouterr().out.split())

    return call


def test_check_prints_an_estimate_and_how_often_it_was_exceeded(figures, check):
    assert (figures["exceeded"], figures["exceeded_of"]) == tuning.EXCEEDED
    for share, said in ((0.09, "XLA leaves about 9.0%: try"), (0.01, "Probably not worth tuning:")):
        text = check(share)
        assert said in text and f"This is {tuning.HEADROOM_NOTE}. For this one 5 " in text
        assert not re.search(r"at most|no plan", text), text
    assert json.loads(check(0.09, "--json"))["headroom"] == tuning.HEADROOM_NOTE


def test_check_does_not_advise_against_tune_while_prices_are_out(check):
    """Two more prices have turned 0.9 % into 13.3 %, so a verdict needs all that were wanted."""
    said = "were priced. Prices are kept: run it again, or with more --seconds"
    few = check(0.01, waiting=("fusion.1", "fusion.2"))
    assert "XLA leaves about 1.0% by the prices so far, which are too few to decide." in few
    assert f"all placements of 2 instructions {said}" in few and "Probably" not in few
    enough = check(0.09, waiting=("fusion.1",))
    assert "XLA leaves about 9.0%: try" in enough and f"of 1 instruction {said}" in enough
    assert said not in check(0.01) and json.loads(check(0.01, "--json"))["waiting"] == 0
    assert json.loads(check(0.01, "--json", waiting=("fusion.1",)))["waiting"] == 1
