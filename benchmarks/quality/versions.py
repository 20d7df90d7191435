"""What the bridge can do with each version of libtpu, one after the other.

    python benchmarks/quality/versions.py [--seconds S] [VERSION...]

For each version and program it prints a row of docs/results/versions.md: the latency of XLA's own
plan, whether that is valid, whether a look says what a compile does, what comes of asking for the
plan again, and what `tune` wins in S seconds (0: it isn't tried). Then follows what the bridge says
of each version. Each is downloaded into a folder of its own, which is deleted at once: about 200 MB
at a time. Needs mallocgame[xla] and no TPU. Exits 1 if a program can't be captured.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

import mallocgame as mg
import mallocgame.xla as mgx
from mallocgame.xla.probe import find_main_memory
from mallocgame.xla.sources import find_source

# The last of each minor version that there was in November 2026 and that jax 0.10.2 takes.
VERSIONS = (
    "0.0.42.1",
    "0.0.43.2",
    "0.0.45",
    "0.0.46.3",
    "0.0.47.1",
    "0.0.48.1",
    "0.0.49",
    "0.0.50.1",
    "0.0.51",
    "0.0.52",
)
# (program, target, MiB of fast memory)
PROGRAMS = (
    ("wavernn_64steps_b8", "tpu_v4i", None),
    ("wavernn_64steps_b8", "tpu_v5p", None),
    ("wavernn_64steps_b8", "tpu_v6e", None),
    ("wavernn_64steps_b8", "tpu7x", None),
    ("mlp_train_adam_b512", "tpu_v4i", None),
    ("mlp_train_adam_b512", "tpu_v5e", None),
    ("llama_1b_decode_8l_b4_kv1024", "tpu_v4i", 16),
)


def cells(workload: str, compiler: mgx.Compiler, seconds: float) -> list[str]:
    """Returns the cells of a row. MallocGameError: the program can't be captured."""
    name, function, arguments = find_source(workload)
    target = compiler.target
    captured = mgx.capture(
        function,
        *arguments,
        target=target.name,
        fast_mib=target.fast_mib,
        name=name,
        compiler=compiler,
    )
    own = mg.simulate(captured.program, captured.xla_plan)
    valid = mg.validate(captured.program, captured.xla_plan).ok
    return [
        f"{own.latency_ps / 1e6:,.3f}",
        "yes" if valid else "no",
        _look(captured, compiler),
        _asked_again(captured, compiler, own.latency_ps),
        _tuned(captured, compiler, seconds) if seconds > 0 else "–",
    ]


def _look(captured: mgx.Capture, compiler: mgx.Compiler) -> str:
    found = find_main_memory(captured, compiler)
    if isinstance(found, str):
        return f"no: {found}"
    look = captured.plan_of(compiler.look(captured.check_can_compile(), {}, found))
    return "yes" if np.array_equal(look.served_by, captured.xla_plan.served_by) else "no"


def _asked_again(captured: mgx.Capture, compiler: mgx.Compiler, own_ps: int) -> str:
    try:
        done = mgx.apply(captured, captured.xla_plan, rounds=1, compiler=compiler)
    except mgx.MissingOptionError:
        return "can't be"
    return f"{done.honoured:.1%}, {own_ps / done.verified_ps:.4f}x"


def _tuned(captured: mgx.Capture, compiler: mgx.Compiler, seconds: float) -> str:
    tuned = mgx.tune_capture(captured, seconds, compiler=compiler)
    return f"{tuned.speedup:.3f} / {tuned.speedup_cold:.3f}"


def say_rows(seconds: float) -> int:
    """Prints rows with the libtpu that is found first, and what the bridge says of it."""
    failed, sentence = False, None
    for workload, target, fast_mib in PROGRAMS:
        chip = mgx.find_target(target, fast_mib)
        with mgx.Compiler(chip, cache=None) as compiler:
            begin = time.monotonic()
            version = compiler.versions["libtpu"]
            try:
                row = cells(workload, compiler, seconds)
                sentence = compiler.abilities.sentence(compiler.versions)
            except mg.MallocGameError as error:
                failed, row = True, [f"{type(error).__name__}: {error}"]
            print(f"| {version} | `{workload}.{chip.hardware.name}` | {' | '.join(row)} |")
            print(f"{time.monotonic() - begin:.1f} s", file=sys.stderr)
    print(json.dumps({"sentence": sentence}), flush=True)
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("versions", nargs="*", default=VERSIONS, metavar="VERSION")
    parser.add_argument("--seconds", type=float, default=0.0, metavar="S", help="for tune (0)")
    parser.add_argument("--here", action="store_true", help="only the version installed")
    options = parser.parse_args()
    if options.here:
        return say_rows(options.seconds)
    said, failed = {}, False
    for version in options.versions:
        with tempfile.TemporaryDirectory(prefix="libtpu-") as folder:
            install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-cache-dir"]
            subprocess.run([*install, "--target", folder, f"libtpu=={version}"], check=True)
            path = os.pathsep.join([folder, *filter(None, [os.environ.get("PYTHONPATH")])])
            done = subprocess.run(
                [sys.executable, __file__, "--here", "--seconds", str(options.seconds)],
                env=os.environ | {"PYTHONPATH": path, "JAX_PLATFORMS": "cpu"},
                stdout=subprocess.PIPE,
                text=True,
                check=False,
            )
        *rows, last = done.stdout.splitlines() or [""]
        print("\n".join(rows), flush=True)
        said[version] = json.loads(last)["sentence"] if last.startswith("{") else "it ended"
        failed = failed or done.returncode != 0
    for version, sentence in said.items():
        print(f"{version}: {sentence or 'takes plans, and looks are short'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
