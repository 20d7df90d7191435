"""Tree search in a game of your own: tic-tac-toe, played by the search against itself.

    python examples/custom_search_model.py

The model keeps boards under the slots that the search hands out, one NumPy row each, and knows
nothing but the rules: no network, no values. Needs mallocgame alone.
"""

import numpy as np

from mallocgame import mcts

LINES = np.array(
    [[0, 1, 2], [3, 4, 5], [6, 7, 8], [0, 3, 6], [1, 4, 7], [2, 5, 8], [0, 4, 8], [2, 4, 6]]
)


def won(boards: np.ndarray) -> np.ndarray:
    """Who has just moved has three in a row. 1 is who moves next, -1 who moved last."""
    return (boards[:, LINES] == -1).all(axis=2).any(axis=1)


class TicTacToe:
    """A model of tic-tac-toe.

    Boards are [slots, 9]: 1 is the player to move, -1 the other, 0 empty. Values are those of the
    player to move.
    """

    num_actions = 9

    def __init__(self, games: int):
        self.games = np.zeros((games, 9), np.int8)  # where the roots are
        self.boards = np.zeros((0, 9), np.int8)

    def reserve(self, slots: int) -> None:
        self.boards = np.resize(self.boards, (max(slots, len(self.boards)), 9))

    def start(self, roots, slots, out) -> None:
        self.boards[slots] = self.games[roots]
        self.describe(self.boards[slots], out)

    def step(self, roots, parents, actions, slots, out) -> None:
        boards = play(self.boards[parents], actions)
        self.boards[slots] = boards
        out.rewards[:] = won(boards)  # of the mover
        out.discounts[:] = -1  # then it is the other's turn
        self.describe(boards, out)

    def describe(self, boards, out) -> None:
        out.legal[:] = boards == 0
        out.terminal[:] = won(boards) | (boards != 0).all(axis=1)


def play(boards: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """The boards after the moves, as the other player sees them."""
    boards = boards.copy()
    boards[np.arange(len(boards)), actions] = 1
    return -boards


def play_games(games: int, simulations: int, seed: int) -> np.ndarray:
    """Plays games of the search against itself.

    Returns their results: 1 the first player won, -1 the second, 0 a draw.
    """
    model = TicTacToe(games)
    search = mcts.search(
        games,
        model.num_actions,
        "puct",
        simulations=simulations,
        leaves=4,
        scaling="known",
        min_value=-1,
        settings={"unvisited_worst": 0},
    )
    results, mover = np.zeros(games, int), 1
    for move in range(9):
        search.run(model, seed=seed + move)
        going_on = ~search.terminal
        model.games[going_on] = play(model.games[going_on], search.actions[going_on])
        results[going_on & won(model.games)] = mover
        mover = -mover
    return results


if __name__ == "__main__":
    results = play_games(games=20, simulations=3000, seed=0)
    print(
        f"{(results == 1).sum()} won by the first player, {(results == -1).sum()} by the second, "
        f"{(results == 0).sum()} drawn"
    )
