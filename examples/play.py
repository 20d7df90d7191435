"""Plays the game with a policy of your own.

It puts into fast memory what is used again soon, fetches what fits, and leaves the rest.

    python examples/play.py [PROGRAM]
"""

import sys

import mallocgame as mg

SOON = 20  # ticks


def next_use(program: mg.Program) -> list[int]:
    """Returns the ticks until the buffer of each access is accessed again, or a large number."""
    distance = [10**9] * len(program.accesses)
    seen: dict[int, int] = {}
    for index in range(len(program.accesses) - 1, -1, -1):
        tick, buffer = (int(program.accesses[index][name]) for name in ("tick", "buffer"))
        if buffer in seen:
            distance[index] = seen[buffer] - tick
        seen[buffer] = tick
    return distance


def choose(state: mg.State, distance: list[int]) -> int:
    """Keeps what is used soon, and leaves the rest in main memory."""
    legal, access = state.legal_actions(), state.current_access()
    assert access is not None, "the game is not over"
    preferred = (
        [mg.Action.NOCOPY, mg.Action.COPY, mg.Action.DROP]
        if distance[access] <= SOON
        else [mg.Action.COPY, mg.Action.NOCOPY, mg.Action.DROP]
    )
    return next(action for action in preferred if action in legal)


def main() -> None:
    program = mg.load_program(sys.argv[1] if len(sys.argv) > 1 else "resnet50_b1.tpu_v4i_16mib")
    distance = next_use(program)
    state, total = mg.Game(program).initial_state(), 0.0
    while not state.is_terminal():
        action = choose(state, distance)
        before = state.latency_ps
        total += state.apply(action)
        if state.latency_ps > before:  # a wait that costs more than it saves: think again
            total -= (before - state.latency_ps) / state.game.all_main_ps
            state.undo()
            total += state.apply(
                mg.Action.DROP if mg.Action.DROP in state.legal_actions() else action
            )
    plan = state.plan()
    report = mg.simulate(program, plan)
    print(f"{program.name}: {state.num_decisions} decisions, return {total:.4f}")
    print(
        f"all in main memory {report.all_main_ps / 1e6:,.1f} us, "
        f"this policy {report.latency_ps / 1e6:,.1f} us",
        end="",
    )
    if program.xla_plan is not None:
        print(f", XLA {mg.simulate(program, program.xla_plan).latency_ps / 1e6:,.1f} us", end="")
    print("\nvalid" if mg.validate(program, plan) else "\nnot valid")
    mg.save_log(mg.record(state, solver="examples/play.py"), "game.mgr")
    print("written: game.mgr; see it with: mallocgame view game.mgr -o game.html")


if __name__ == "__main__":
    main()
