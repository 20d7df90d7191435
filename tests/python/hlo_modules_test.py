"""The script that imports the modules of a checkout of XLA, on a small one; and by it the costs of
opcodes against XLA's own analysis."""

import subprocess
import sys

import pytest
from conftest import SOURCE_ROOT

pytest.importorskip("jax", reason="jax isn't installed: pip install mallocgame[xla]")

pytestmark = pytest.mark.full

SCRIPT = SOURCE_ROOT / "benchmarks/quality/hlo_modules.py"

# Each line of the entry is an instruction whose cost is XLA's.
OPCODES = """HloModule opcodes

add { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] add(x, y) }

larger { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = pred[] compare(x, y), direction=GE }

ENTRY main {
  m = f32[3,64,64]{2,1,0} parameter(0)
  b = f32[3,64,40]{2,1,0} parameter(1)
  low = f8e4m3fn[96,256]{1,0} parameter(2)
  high = f8e4m3fn[256,80]{1,0} parameter(3)
  scales = f8e8m0fnu[96,8]{1,0} parameter(4)
  more = f8e8m0fnu[8,80]{1,0} parameter(5)
  zero = f32[] constant(0)
  s = u64[2]{0} parameter(6)
  root = f32[3,64,64]{2,1,0} cholesky(m), lower=true
  solved = f32[3,64,40]{2,1,0} triangular-solve(m, b), left_side=true, lower=true,
    transpose_a=NO_TRANSPOSE
  wave = c64[3,64,33]{2,1,0} fft(m), fft_type=RFFT, fft_length={64}
  product = f32[96,80]{1,0} scaled-dot(low, high, scales, more), lhs_contracting_dims={1},
    rhs_contracting_dims={0}
  sorted = f32[3,64,40]{2,1,0} sort(b), dimensions={1}, to_apply=larger
  random = (u64[2]{0}, u32[50,9]{1,0}) rng-bit-generator(s), algorithm=rng_three_fry
  noise = f32[70]{0} rng(zero, zero), distribution=rng_uniform
  windows = f32[3,32,40]{2,1,0} reduce-window(b, zero), window={size=1x2x1 stride=1x2x1},
    to_apply=add
  source = f32[3,32,40]{2,1,0} select-and-scatter(b, windows, zero),
    window={size=1x2x1 stride=1x2x1}, select=larger, scatter=add
  sum = f32[3]{0} reduce(m, zero), dimensions={1,2}, to_apply=add
  renamed = f32[40,64,3]{0,1,2} transpose(b), dimensions={2,1,0}
  ROOT steep = f32[3,64,40]{2,1,0} acosh(b)
}
"""

STEPS = """HloModule steps

step { x = f32[9]{0} parameter(0)
  c = f32[9]{0} parameter(1)
  s = f32[9]{0} multiply(x, c)
  ROOT t = (f32[9]{0}, f32[9]{0}) tuple(s, s) }

ENTRY e { x = f32[30,9]{1,0} parameter(0)
  i = f32[9]{0} parameter(1)
  ROOT s = (f32[30,9]{1,0}, f32[9]{0}) scan(x, i), dimensions={0}, num_carries=1, to_apply=step }
"""


def rows(text: str) -> dict[str, list[str]]:
    cells = [
        [c.strip() for c in line.split("|")[1:-1]] for line in text.splitlines() if "|" in line
    ]
    return {first: rest for first, *rest in cells}


def test_modules_are_found_imported_and_compared(tmp_path):
    (tmp_path / "two.hlo").write_text(f"// RUN: something\n{OPCODES}// -----\n{STEPS}")
    cut = OPCODES[: OPCODES.index("ROOT steep")]
    (tmp_path / "some_test.cc").write_text(f'auto a = R"({cut})";\nauto b = R"(no module)";\n')
    again = OPCODES.replace("f32", "f64").replace("HloModule opcodes", "HloModule wide")
    (tmp_path / "another_test.cc").write_text(
        f'auto c = R"(\n{again})";\nauto d = R"x(\n{again})x";\n'
    )
    kept = tmp_path / "kept.jsonl"
    command = [sys.executable, str(SCRIPT), str(tmp_path), "--keep", str(kept)]
    first = subprocess.run(command, capture_output=True, text=True, check=True)
    table = rows(first.stdout)
    assert table["texts with a module"] == ["4"]  # what stands there twice counts once
    assert table["XLA's parser reads"] == ["3 (75.0 %)"]
    assert table["of these, imported"] == ["2 (66.7 %)"]
    [refusal] = [cause for cause in table if "scan" in cause]
    assert table[refusal] == ["1"]
    # flops, transcendentals and bytes of all opcodes above
    for metric in ("flops", "transcendentals", "bytes accessed"):
        assert table[metric] == ["2 (100.0 %)", "0", "0"], first.stdout

    second = subprocess.run(
        [*command, "--before", str(kept)], capture_output=True, text=True, check=True
    )
    assert rows(second.stdout)["of these, imported"] == ["2 (66.7 %)"] * 2
