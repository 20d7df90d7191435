"""Makes the suite `large`: its programs, its manifest, and the smaller ones for the package.

    python benchmarks/programs/make_large.py FOLDER [MODEL ...]

Captures the models of examples/workloads/whole.py with the compiler that is installed, which needs
mallocgame[xla], and writes FOLDER/NAME.mgp and what is known of it, NAME.json. What is there is
left as it is, so an interrupted run goes on where it stopped. Then those in FOLDER become
bindings/python/mallocgame/programs/large: the manifest has all of them, and the package holds those
of at most 23 KB. Exits 1 if a model wasn't captured.
"""

import json
import pathlib
import resource
import shutil
import sys

import mallocgame as mg
from mallocgame import experiments as ex
from mallocgame.workloads.whole import MODELS
from mallocgame.xla import Compiler, capture
from mallocgame.xla.compiler import installed_versions
from mallocgame.xla.targets import bundled_target

SUITE = pathlib.Path(__file__).resolve().parents[2] / "bindings/python/mallocgame/programs/large"
MOST_BYTES = 23_000  # of a program in the package


def cpu_seconds() -> float:
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(sum(usage[:2]) for usage in both)


def entry(program: mg.Program, seconds: float) -> dict:
    """What the manifest says of a program. seconds: of one core, to capture it."""
    assert program.xla_plan is not None, "a capture has XLA's own plan"
    model, _, target = program.name.partition(".")
    return {
        "model": model,
        "hardware": bundled_target(target).hardware.name,
        "origin": installed_versions(),
        "fingerprint": program.fingerprint,
        "instructions": program.counts["instructions"],
        "accesses": program.counts["accesses"],
        "xla_ps": mg.simulate(program, program.xla_plan).latency_ps,
        "no_contention_ps": mg.bounds.bound(program).bound_ps,
        "seconds": round(seconds),
    }


def make(folder: pathlib.Path, model: str) -> None:
    target, source = MODELS[model]
    path = folder / f"{model}.{target}.mgp"
    if path.with_suffix(".json").exists():
        return
    print(path.stem, file=sys.stderr, flush=True)
    function, args = source()
    start = cpu_seconds()
    with Compiler(bundled_target(target)) as compiler:
        title = compiler.target.title
        captured = capture(function, *args, target=title, name=path.stem, compiler=compiler)
    mg.save_program(captured.program, path)
    known = entry(captured.program, cpu_seconds() - start)
    path.with_suffix(".json").write_text(json.dumps(known) + "\n")


def publish(folder: pathlib.Path) -> None:
    """Writes the manifest, the smallest program first, and what the package holds."""
    known = {path.stem: json.loads(path.read_text()) for path in folder.glob("*.json")}
    named = [f"{model}.{target}" for model, (target, _) in MODELS.items()]
    programs = {name: known[name] for name in named if name in known}
    ordered = dict(sorted(programs.items(), key=lambda item: (item[1]["accesses"], item[0])))
    SUITE.mkdir(exist_ok=True)
    for old in SUITE.glob("*.mgp"):
        old.unlink()
    for name in ordered:
        if (folder / f"{name}.mgp").stat().st_size <= MOST_BYTES:
            shutil.copy(folder / f"{name}.mgp", SUITE)
    document = json.dumps({"programs": ordered}, indent=1)
    (SUITE / "manifest.json").write_text(document + "\n")


def main(folder: pathlib.Path, *models: str) -> int:
    for model in models:
        if model not in MODELS:
            raise mg.InvalidInputError(f"found {model}, allowed: {', '.join(MODELS)}")
    folder.mkdir(parents=True, exist_ok=True)
    failed = False
    for model in models or MODELS:
        try:
            make(folder, model)
        except mg.MallocGameError as error:
            print(f"{model}: {error}", file=sys.stderr)
            failed = True
    publish(folder)
    return 1 if failed else 0


if __name__ == "__main__":
    ex.main(main)
