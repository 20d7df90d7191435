"""Imports the HLO modules in XLA's own tests, and compares their costs with XLA's analysis.

    python benchmarks/quality/hlo_modules.py XLA_FOLDER [--keep FILE] [--before FILE] [--limit N]

XLA_FOLDER is a checkout of github.com/openxla/xla, or a folder of it. A module is a whole file
(*.hlo, *.hlo.txt), a part of one between lines of `// -----`, or a raw string of a C++ or Python
source. XLA's parser (of jaxlib) reads them in a process apart, because it ends the process at some.
A module without a schedule is taken in the order of its text. Each is imported for tpu_v5e. Where
that succeeds, flops, transcendentals and bytes accessed of the whole module are compared with
xla::HloCostAnalysis.

Prints how many parse and import, the causes of refusal with counts, and the comparison. --keep
writes what came of each module as lines of JSON; --before reads such a file of another version and
puts its counts beside. Needs mallocgame and jax, and no TPU. Exits 1 if an import ended its process
or took too long.
"""

import collections
import hashlib
import json
import os
import pathlib
import re
import select
import subprocess
import sys
import time
import typing

from mallocgame import experiments as ex

HARDWARE = "tpu_v5e"
SECONDS = 300  # for one module; beyond it, it counts as endless
SOURCES = (".cc", ".h", ".py", ".hlo", ".txt", ".md")
RAW_STRING = re.compile(r'R"([^()\\\s]{0,16})\((.*?)\)\1"', re.DOTALL)
PYTHON_STRING = re.compile(r'[rR]?"""(.*?)"""', re.DOTALL)
HEADER = re.compile(r"^(\s*HloModule[ \t]+[^,\n{]*)", re.MULTILINE)
OPCODE = re.compile(r" ([a-z][a-z0-9-]*)\(")
METRICS = ("flops", "transcendentals", "bytes accessed")
RATES = ("flops_per_second", "transcendentals_per_second", "main_bytes_per_second")
CLOSE = 0.01


class Text(typing.NamedTuple):
    source: str  # the path below the folder, and the number of the module in it
    text: str


def modules_in(path: pathlib.Path) -> list[str]:
    """The texts of a file that may be HLO modules."""
    text = path.read_text(errors="replace")
    if "HloModule" not in text:
        return []
    if path.suffix in (".cc", ".h"):
        parts = [found[1] for found in RAW_STRING.findall(text)]
    elif path.suffix == ".py":
        parts = PYTHON_STRING.findall(text)
    else:
        parts = re.split(r"^// -----.*$", text, flags=re.MULTILINE)
    return [part for part in parts if HEADER.search(part)]


def collect(folder: pathlib.Path) -> list[Text]:
    """The different modules of a folder, by path."""
    texts: dict[str, Text] = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix not in SOURCES or not path.is_file():
            continue
        for number, text in enumerate(modules_in(path)):
            name = f"{path.relative_to(folder)}:{number}"
            texts.setdefault(hashlib.sha256(text.encode()).hexdigest(), Text(name, text))
    return list(texts.values())


def scheduled(text: str) -> str:
    """The text from its header on, with the schedule that is its order if it has none."""
    begin = HEADER.search(text)
    assert begin is not None
    text = text[begin.start() :].lstrip()
    if "is_scheduled=true" in text.split("\n", 1)[0]:
        return text
    return HEADER.sub(r"\1, is_scheduled=true", text, count=1)


# The process apart. It answers each text with a line of JSON, and says before each step which it
# is, so that it is known at which one it ended.


def answer_texts() -> None:
    import jax
    from jaxlib import _hlo, xla_client  # type: ignore[attr-defined]

    import mallocgame as mg

    client = jax.devices("cpu")[0].client
    # Chips without links that do a thing in a nanosecond, and all others in no time, or nearly: the
    # last has no such thing.
    endless = 10**18
    rates = dict(zip(METRICS, RATES, strict=True))
    fast = dict.fromkeys(RATES, endless)
    fast |= {"fast_read_bytes_per_second": endless, "fast_write_bytes_per_second": endless}
    chip = mg.hardware(HARDWARE).replace(name="counting", **fast)
    chips = {metric: chip.replace(**{rate: 10**9}) for metric, rate in rates.items()}

    def costs(proto: bytes) -> dict[str, float]:
        program = mg.import_hlo(proto, hardware=chip, default_trips=1)
        plan = mg.all_main_plan(program)
        nearly = mg.simulate(program, plan, chip).latency_ps
        return {
            metric: round((mg.simulate(program, plan, slow).latency_ps - nearly) / 1000)
            for metric, slow in chips.items()
        }

    def say(**what) -> None:
        print(json.dumps(what), flush=True)

    for line in sys.stdin:
        text = scheduled(json.loads(line))
        say(step="parse")
        try:
            module = _hlo.hlo_module_from_text(text)
            proto = module.as_serialized_hlo_module_proto()
        except Exception as error:
            lines = str(error).splitlines() or [type(error).__name__]
            say(result="unread", why=next((x for x in lines if "error:" in x), lines[0]))
            continue
        parsed = module.to_string()
        seen = {"opcodes": sorted(set(OPCODE.findall(parsed))), "marks": marks(parsed)}
        say(step="import")
        try:
            mg.import_hlo(proto, hardware=HARDWARE)
        except mg.MallocGameError as error:
            say(result="refused", why=str(error), **seen)
            continue
        say(step="analysis")
        theirs = xla_client._xla.hlo_module_cost_analysis(client, module)
        theirs = {metric: theirs.get(metric, 0.0) for metric in METRICS}
        say(step="costs")
        try:
            ours = costs(proto)
        except mg.MallocGameError as error:
            say(result="uncounted", why=str(error), **seen)
            continue
        say(result="imported", ours=ours, theirs=theirs, **seen)


class Worker:
    """The process apart, begun again whenever it has ended."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, text: str) -> dict:
        if self._process is None:
            command = [sys.executable, "-c", "import hlo_modules; hlo_modules.answer_texts()"]
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(
                command,
                stdin=pipe,
                stdout=pipe,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                cwd=pathlib.Path(__file__).parent,
            )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(text).encode() + b"\n")
        said, step = b"", "begin"
        deadline = time.monotonic() + SECONDS
        while True:
            left = max(0.0, deadline - time.monotonic())
            ready, _, _ = select.select([self._process.stdout], [], [], left)
            part = os.read(self._process.stdout.fileno(), 1 << 16) if ready else b""
            if not part:
                self.close()
                return {"result": "ended" if ready else "endless", "why": step}
            *lines, said = (said + part).split(b"\n")
            for line in map(json.loads, lines):
                if "result" in line:
                    return line
                step = line["step"]

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def run_all(texts: list[Text]) -> dict[str, dict]:
    """What came of each module, by its source."""
    results = {}
    worker = Worker()
    for number, (source, text) in enumerate(texts):
        results[source] = worker.ask(text)
        if number % 100 == 0:
            ex.tell(f"{number} of {len(texts)}")
    worker.close()
    return results


# The tables.


def cause(why: str) -> str:
    """A message without the names and numbers of its module."""
    why = re.sub(r"'[^']*'", "'…'", why)
    why = re.sub(r"\{[\d,]*\}", "{…}", why)
    return re.sub(r"-?\d[\d,.]*", "N", why)


# Modules with these can't be compared: XLA counts -1 of a custom call, one trip of a while, and the
# largest branch of a conditional.
APART = {"custom-call", "while", "conditional"}

# What is counted otherwise on purpose (docs/numbers.md), by what shows it: opcodes, where
# "-start" is any that ends so, or what `marks` says. The first that a module has is taken to be why
# its totals differ.
DELIBERATE = {
    "flops": (
        ("transfers: a plan prices them", {"-start"}),
        ("all-reduce: the time of the links", {"all-reduce"}),
        ("ragged-dot: the rows of all groups", {"ragged-dot"}),
        ("scan: its computation for each step", {"scan"}),
        ("iota: one for each element", {"iota"}),
    ),
    "transcendentals": (("transfers: a plan prices them", {"-start"}),),
    "bytes accessed": (
        ("transfers: a plan prices them", {"-start", "-done", "send", "recv"}),
        ("opt-barrier: nothing moves", {"opt-barrier"}),
        ("layouts with tiles: padding counts", {"tiles"}),
        ("sizes of dynamic dimensions: none", {"dynamic sizes"}),
        ("dynamic slices: each of the indices", {"dynamic-slice", "dynamic-update-slice"}),
        ("tuples: what is in an operand", {"tuple operands"}),
        ("fusions: constants, bitcasts, updates", {"fusion"}),
    ),
}


def marks(text: str) -> list[str]:
    """What a module's text shows of why its bytes differ."""
    found = {"tiles": ":T(" in text, "dynamic sizes": "<=" in text}
    found["tuple operands"] = bool(
        re.search(r"= \([^=]*\) (parameter|copy|[a-z-]*all-?[a-z-]*)\(", text)
    )
    return [mark for mark, is_there in found.items() if is_there]


def reason(metric: str, result: dict) -> str:
    seen = {*result["opcodes"], *result["marks"]}
    for name, signs in DELIBERATE[metric]:
        if any(
            sign in seen or any(x.endswith(sign) for x in seen if sign[0] == "-") for sign in signs
        ):
            return name
    return "other"


def is_close(ours: float, theirs: float) -> bool:
    return abs(ours - theirs) <= CLOSE * max(abs(theirs), abs(ours))


def count(results: dict[str, dict], *outcomes: str) -> int:
    return sum(result["result"] in outcomes for result in results.values())


def share(part: int, whole: int) -> str:
    return f"{part:,} ({100 * part / whole:.1f} %)" if whole else "0"


def print_table(heads: tuple[str, ...], rows: list[tuple]) -> None:
    print(ex.Table(heads, rows), end="\n\n")


def print_imports(versions: list[tuple[str, dict[str, dict]]]) -> None:
    head = ("", *(name for name, _ in versions))
    all_results = [results for _, results in versions]
    bad = ("ended", "endless")

    def parsed(results: dict[str, dict]) -> int:
        at_parsing = sum(r["result"] in bad and r["why"] == "parse" for r in results.values())
        return len(results) - count(results, "unread") - at_parsing

    rows = [("texts with a module", *(f"{len(r):,}" for r in all_results))]
    rows.append(("XLA's parser reads", *(share(parsed(r), len(r)) for r in all_results)))
    imported = [count(r, "imported", "uncounted") for r in all_results]
    analysed = [
        sum(x["result"] in bad and x["why"] == "analysis" for x in r.values()) for r in all_results
    ]
    rows.append(
        (
            "of these, imported",
            *(
                share(n + a, parsed(r))
                for n, a, r in zip(imported, analysed, all_results, strict=True)
            ),
        )
    )
    for outcome, what in (("ended", "ended the process"), ("endless", f"over {SECONDS} s")):
        for step in ("import", "costs"):
            found = [
                sum(x["result"] == outcome and x["why"] == step for x in r.values())
                for r in all_results
            ]
            rows.append((f"{what} at {step}", *found))
    print_table(head, rows)

    causes = [
        collections.Counter(cause(x["why"]) for x in r.values() if x["result"] == "refused")
        for r in all_results
    ]
    order = sorted(
        {c for one in causes for c in one}, key=lambda c: (-causes[-1][c], -causes[0][c], c)
    )
    print_table(("refused because", *head[1:]), [(c, *(one[c] for one in causes)) for c in order])


def print_costs(results: dict[str, dict]) -> None:
    counted = [r for r in results.values() if r["result"] == "imported"]
    alike = [r for r in counted if not APART & set(r["opcodes"])]
    print(f"{len(counted):,} modules have costs by both. {len(alike):,} of them have none of")
    print(f"{', '.join(sorted(APART))}, and are compared.\n")
    rows: list[tuple] = []
    reasons: list[tuple] = []
    for metric in METRICS:
        differ = [r for r in alike if not is_close(r["ours"][metric], r["theirs"][metric])]
        why = collections.Counter(reason(metric, r) for r in differ)
        close = share(len(alike) - len(differ), len(alike))
        rows.append((metric, close, len(differ) - why["other"], why["other"]))
        reasons += [(f"{metric}: {name}", number) for name, number in why.most_common()]
    print_table(("", "within 1 %", "differ on purpose", "others"), rows)
    print_table(("what differs", "modules"), reasons)


def read(path: pathlib.Path) -> dict[str, dict]:
    return dict(map(json.loads, path.read_text().splitlines()))


def main(
    folder: pathlib.Path,
    *,
    keep: pathlib.Path | None = None,
    before: pathlib.Path | None = None,
    limit: int | None = None,
) -> int:
    texts = collect(folder)
    if not texts:
        raise SystemExit(f"{folder}: no file below it has an HLO module")
    results = run_all(texts[:limit])
    if keep:
        lines = (json.dumps([source, result]) + "\n" for source, result in results.items())
        keep.write_text("".join(lines))
    versions = [("before", read(before))] if before else []
    print_imports([*versions, ("now", results)])
    print_costs(results)
    return int(
        any(
            r["result"] in ("ended", "endless") and r["why"] in ("import", "costs")
            for r in results.values()
        )
    )


if __name__ == "__main__":
    ex.main(main)
