"""Measures how long the page of `mallocgame view` takes to load, and its frames a second.

The browser is Chromium; the frames are those of panning.

    pip install playwright && apt-get install chromium
    python benchmarks/speed/page.py [PROGRAM ...]

Default: the bundled program with most instructions. Each is shown as the greedy solver's game
beside XLA's own plan, at 1280 x 800. Load: from navigation to the first frame with the picture
drawn, best of three. Frames: while the mouse drags the picture, once all of it and once zoomed in
four times, for three seconds. CPU time is that of the page's own thread: on a busy machine it says
how many frames an idle one would draw.
"""

import pathlib
import shutil
import sys
import tempfile

from playwright.sync_api import CDPSession, Page, sync_playwright

import mallocgame as mg
from mallocgame import experiments as ex
from mallocgame import viewer

_FRAMES = """() => new Promise(resolve => {
  const times = [];
  const next = now => {
    times.push(now);
    const passed = now - times[0];
    if (passed < 3000) requestAnimationFrame(next);
    else resolve((times.length - 1) / passed * 1000);
  };
  requestAnimationFrame(next);
})"""
_DRAG = """() => {
  const canvas = document.querySelector('figure canvas');
  const send = (type, clientX) => canvas.dispatchEvent(new PointerEvent(
    type, {pointerId: 1, bubbles: true, clientX, clientY: 300, buttons: 1}));
  canvas.setPointerCapture = () => {};
  send('pointerdown', 600);
  let x = 600;
  const drag = () => {
    x += x > 900 ? -400 : 7;
    send('pointermove', x);
    requestAnimationFrame(drag);
  };
  requestAnimationFrame(drag);
}"""


def cpu_seconds(session: CDPSession) -> float:
    metrics = session.send("Performance.getMetrics")["metrics"]
    return next(one["value"] for one in metrics if one["name"] == "TaskDuration")


def load_seconds(page: Page, address: str) -> float:
    page.goto(address)
    page.wait_for_function("document.getElementById('seen').value !== ''")
    return page.evaluate(
        "new Promise(resolve => requestAnimationFrame("
        "() => setTimeout(() => resolve(performance.now() / 1000))))"
    )


def main(*programs: str) -> None:
    most = max(mg.program_names(), key=lambda name: mg.load_program(name).ticks)
    executable = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    if executable is None:
        sys.exit("page.py: Chromium isn't installed: apt-get install chromium")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        for name in programs or [most]:
            program = mg.load_program(name)
            log = mg.record(mg.solve(program, solver="greedy"))
            path = pathlib.Path(folder) / "page.html"
            size = viewer.write_page(path, log, program, against=program.xla_plan)
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            session = page.context.new_cdp_session(page)
            session.send("Performance.enable", {"timeDomain": "threadTicks"})
            loads = []
            for _ in range(3):
                page.goto("about:blank")
                begin = cpu_seconds(session)
                seconds = load_seconds(page, path.as_uri())
                loads.append((seconds, cpu_seconds(session) - begin))
            seconds, cpu = min(loads)
            page.evaluate(_DRAG)
            said = []
            for closer in (0, 4):
                for _ in range(closer):
                    page.keyboard.press("Escape")
                    page.locator("#zoom-in").click()
                before, begin = page.locator("#seen").inner_text(), cpu_seconds(session)
                frames = page.evaluate(_FRAMES)
                each = (cpu_seconds(session) - begin) / (3 * frames) * 1000
                said.append(f"{frames:.0f} frames/s, {each:.1f} ms of CPU each")
                if closer and page.locator("#seen").inner_text() == before:
                    sys.exit("page.py: the picture didn't move")
            boxes = len(log.plan.residences) + (
                0 if program.xla_plan is None else len(program.xla_plan.residences)
            )
            print(
                f"{program.name}: {program.ticks:,} ticks, {boxes:,} residences, "
                f"{len(log.actions):,} decisions, "
                f"{size / 1e6:.2f} MB: loads in {seconds:.2f} s ({cpu:.2f} of CPU), "
                f"pans at {'; zoomed in '.join(said)}"
            )
            page.close()
        browser.close()


if __name__ == "__main__":
    ex.main(main)
