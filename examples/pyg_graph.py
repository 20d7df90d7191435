"""Trains a graph network of PyTorch Geometric to play by looking at the whole program.

It learns from the greedy player's games.

    .ci/setup rl
    python examples/pyg_graph.py [PROGRAM] [EPOCHS]

Nodes are the program's instructions and buffers, edges the accesses. A state adds a few columns to
the buffers' rows; the decision is read off the two nodes of the access that is asked.
"""

import sys

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GATv2Conv

import mallocgame as mg


class Position:  # makes Data of the states of one game
    def __init__(self, game: mg.Game):
        self.graph, self.accesses = mg.observation.ProgramGraph(game), game.program.accesses
        self.fixed, self.edges = (
            torch.from_numpy(self.graph.node_features),
            torch.from_numpy(self.graph.edge_index).long(),
        )
        self.edge_features = torch.from_numpy(self.graph.edge_features)

    def data(self, state: mg.State, best: int = 0) -> Data:
        buffers = torch.from_numpy(self.graph.buffer_states(state))
        changing = torch.nn.functional.pad(buffers, (0, 0, self.graph.num_instructions, 0))
        access = self.accesses[state.current_access()]
        asked = torch.tensor([[access["tick"], self.graph.num_instructions + access["buffer"]]])
        return Data(
            x=torch.cat([self.fixed, changing], dim=1),
            edge_index=self.edges,
            edge_attr=self.edge_features,
            asked=asked,
            mask=torch.from_numpy(state.legal_mask())[None],
            y=torch.tensor([best]),
        )


class Policy(torch.nn.Module):
    """Three rounds of attention along the edges, both ways.

    It gives logits of the actions, illegal ones at -inf.
    """

    def __init__(self, columns: int, edge_columns: int, actions: int, width: int = 32):
        super().__init__()
        self.first = torch.nn.Linear(columns, width)
        self.rounds = torch.nn.ModuleList(
            GATv2Conv(width, width // 2, edge_dim=edge_columns) for _ in range(6)
        )
        self.last = torch.nn.Linear(2 * width, actions)

    def forward(self, data: Data) -> torch.Tensor:
        x = torch.relu(self.first(data.x))
        for along, against in zip(self.rounds[::2], self.rounds[1::2], strict=True):
            seen = [
                along(x, data.edge_index, data.edge_attr),
                against(x, data.edge_index.flip(0), data.edge_attr),
            ]
            x = x + torch.relu(torch.cat(seen, dim=1))
        asked = data.asked + data.ptr[:-1, None]  # numbered within each graph of the batch
        return self.last(x[asked].flatten(1)).masked_fill(~data.mask, -torch.inf)


def greedy_action(state: mg.State) -> int:
    return max(state.legal_actions(), key=lambda action: state.clone().apply(action))


def play(game: mg.Game, choose) -> float:  # its return
    state = game.initial_state()
    while not state.is_terminal():
        state.apply(choose(state))
    return 1 - state.latency_ps / game.all_main_ps


def main() -> None:
    program = sys.argv[1] if len(sys.argv) > 1 else "wavernn_64steps_b8.tpu_v4i_16mib"
    epochs = int(sys.argv[2]) if len(sys.argv) > 2 else 30
    torch.set_num_threads(1)  # the graphs are small: threads would wait for each other
    torch.manual_seed(0)
    chance = np.random.default_rng(0)
    position, lessons = Position(game := mg.Game(mg.load_program(program))), []

    # The answer of greedy is written down; now and then another action is played.
    def teach(state: mg.State) -> int:
        lessons.append(position.data(state, best := greedy_action(state)))
        return best if chance.random() < 0.8 else int(chance.choice(state.legal_actions()))

    for _ in range(10):
        play(game, teach)
    policy = Policy(lessons[0].num_features, lessons[0].num_edge_features, game.num_actions)
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-3)
    for epoch in range(1, epochs + 1):
        losses = []
        for batch in DataLoader(lessons, batch_size=32, shuffle=True):
            loss = torch.nn.functional.cross_entropy(policy(batch), batch.y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch}: loss {np.mean(losses):.4f}", flush=True)

    @torch.no_grad()
    def learned(state: mg.State) -> int:
        return int(policy(next(iter(DataLoader([position.data(state)])))).argmax())

    print(f"{program}: network {play(game, learned):.4f}, greedy {play(game, greedy_action):.4f}")


if __name__ == "__main__":
    main()
