"""Trains a graph network of PyTorch Geometric to play by looking at the whole program.

It learns from the greedy player's games.

    .ci/setup rl
    python examples/pyg_graph.py [PROGRAM] [EPOCHS]

Nodes are the program's instructions and then its buffers. Edges go from a buffer to what reads it,
from an instruction to what it writes, and from each tick to the next. A state adds a column to the
buffers' rows; the decision is read off the two nodes of the access that is asked.
"""

import sys

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GATv2Conv

import mallocgame as mg

READ, UPDATE, WRITE, LOOP_ENTRY, NEXT = range(5)  # the kinds of accesses, and what no access is


def graph_of(program: mg.Program) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The nodes [nodes, 4], the edges [2, edges] and their kinds [edges, 5], which never change."""
    accesses, buffers, ticks = program.accesses, program.buffers, program.ticks
    nodes = np.zeros((ticks + len(buffers), 4), np.float32)
    nodes[ticks:] = np.stack(
        [
            np.ones(len(buffers)),
            np.log2(1 + buffers["size_bytes"]) / 40,
            buffers["is_output"],
            buffers["origin"] / 3,
        ],
        axis=1,
    )
    tick, kind, buffer = accesses["tick"], accesses["kind"], ticks + accesses["buffer"]
    reads, writes = kind != WRITE, (kind == UPDATE) | (kind == WRITE)
    time = np.arange(ticks - 1)
    edges = np.stack(
        [
            np.concatenate([buffer[reads], tick[writes], time]),
            np.concatenate([tick[reads], buffer[writes], time + 1]),
        ]
    )
    kinds = np.concatenate([kind[reads], kind[writes], np.full(len(time), NEXT)])
    return nodes, edges, np.eye(5, dtype=np.float32)[kinds]


class Position:  # makes Data of the states of one game
    def __init__(self, game: mg.Game):
        self.accesses, self.ticks = game.program.accesses, game.program.ticks
        nodes, edges, kinds = graph_of(game.program)
        self.fixed, self.edges = torch.from_numpy(nodes), torch.from_numpy(edges).long()
        self.edge_features = torch.from_numpy(kinds)

    def data(self, state: mg.State, best: int = 0) -> Data:
        access = self.accesses[state.current_access()]
        # The buffers that lie in fast memory now.
        lies = torch.zeros(len(self.fixed), 1)
        stays = (plan := state.plan().residences)["begin"] <= access["tick"]
        lies[self.ticks + plan["buffer"][stays & (access["tick"] < plan["end"])]] = 1
        asked = torch.tensor([[access["tick"], self.ticks + access["buffer"]]])
        return Data(
            x=torch.cat([self.fixed, lies], dim=1),
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
