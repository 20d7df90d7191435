#include "mallocgame/game/graph.h"

#include <algorithm>

#include "mallocgame/game/feature_scale.h"
#include "mallocgame/game/tables.h"

namespace mallocgame {
namespace {

using scale::Bytes;
using scale::Count;
using scale::Share;
using scale::Ticks;
using scale::Time;

enum NodeColumn {
  kIsBuffer,
  kTime,
  kIdle,
  kTrips,
  kReserved,
  kLoopEntry,
  kLoopExit,
  kPlainCopy,
  kShare,
  kBytes,
  kCopyTime,
  kAccesses,
  kAsked,
  kParameter,
  kOutput,
  kUndefined,
  kNodeColumns,
};

constexpr Feature kNodeFeatures[kNodeColumns] = {
    {"is_buffer", "1 a buffer, 0 an instruction; what isn't the node's kind is 0"},
    {"time", "instruction: time(with all in main memory, all trips)"},
    {"idle", "instruction: idle / time of the main-memory channel, all in main memory"},
    {"trips", "instruction: log2(how often it runs) / 16"},
    {"reserved", "instruction: bytes it reserves for itself / capacity"},
    {"is_loop_entry", "instruction"},
    {"is_loop_exit", "instruction"},
    {"plain_copy", "instruction: a transfer may replace it"},
    {"share", "buffer: size / capacity, at most 1"},
    {"bytes", "buffer: bytes(size)"},
    {"copy_time", "buffer: time(one transfer)"},
    {"accesses", "buffer: log2(1 + accesses) / 16"},
    {"asked", "buffer: the game asks about it"},
    {"is_parameter", "buffer"},
    {"is_output", "buffer"},
    {"is_undefined", "buffer: no value before the first write"},
};

enum EdgeColumn {
  kEdgeRead,
  kEdgeUpdate,
  kEdgeWrite,
  kEdgeLoopEntry,
  kEdgeOrder,
  kEdgeSaving,
  kEdgeColumns
};

constexpr Feature kEdgeFeatures[kEdgeColumns] = {
    {"is_read", "from a buffer to the instruction that reads it"},
    {"is_update", "both ways"},
    {"is_write", "from an instruction to the buffer that it writes"},
    {"is_loop_entry", "from a buffer to the loop that carries it"},
    {"is_order", "from a tick to the next"},
    {"saving", "time(saved by serving this access alone from fast memory, all trips)"},
};

enum BufferStateColumn { kResident, kStay, kInMain, kForced, kCurrent, kBufferStateColumns };

constexpr Feature kBufferStateFeatures[kBufferStateColumns] = {
    {"resident", "in fast memory after now"},
    {"stay", "ticks(from now to the residence's end)"},
    {"in_main", "the value is in main memory now"},
    {"forced", "its next accesses follow from an earlier decision"},
    {"current", "it is decided about now"},
};

}  // namespace

absl::Span<const Feature> NodeFeatures() { return kNodeFeatures; }
absl::Span<const Feature> EdgeFeatures() { return kEdgeFeatures; }
absl::Span<const Feature> BufferStateFeatures() { return kBufferStateFeatures; }

GraphObserver::GraphObserver(std::shared_ptr<const Game> game) : game_(std::move(game)) {
  graph_.instructions = game_->program().ticks();
  graph_.buffers = static_cast<int32_t>(game_->program().buffers().size());
  AddNodes();
  AddEdges();
}

void GraphObserver::AddNodes() {
  const Program& program = game_->program();
  const GameTables& tables = *game_->tables_;
  graph_.node_features.assign((size_t{0} + graph_.instructions + graph_.buffers) * kNodeColumns,
                              0.0F);
  float* row = graph_.node_features.data();
  for (Tick t = 0; t < program.ticks(); ++t, row += kNodeColumns) {
    const Instruction& instruction = program.instruction(t);
    const Price price = game_->cost_model().PriceOf(t, 0);
    row[kTime] = Time(price.time_ps * program.trips(t));
    row[kIdle] = Share(price.idle_ps, price.time_ps);
    row[kTrips] = Count(program.trips(t));
    row[kReserved] = Share(instruction.reserved_bytes, game_->usable_bytes());
    row[kLoopEntry] = instruction.kind == InstructionKind::kLoopEntry;
    row[kLoopExit] = instruction.kind == InstructionKind::kLoopExit;
    row[kPlainCopy] = instruction.plain_copy;
  }
  std::vector<uint8_t> asked(program.buffers().size(), 0);
  for (const GameBuffer& b : tables.buffers) asked[b.id.index()] = 1;
  for (size_t b = 0; b < program.buffers().size(); ++b, row += kNodeColumns) {
    const Buffer& buffer = program.buffers()[b];
    row[kIsBuffer] = 1.0F;
    row[kShare] = Share(buffer.size_bytes, game_->usable_bytes());
    row[kBytes] = Bytes(buffer.size_bytes);
    row[kCopyTime] = Time(game_->hardware().TransferPs(buffer.size_bytes));
    row[kAccesses] = Count(static_cast<int64_t>(program.accesses_of(BufferId(b)).size()) + 1);
    row[kAsked] = asked[b];
    row[kParameter] = buffer.origin == BufferOrigin::kParameter;
    row[kOutput] = buffer.is_output;
    row[kUndefined] = buffer.origin == BufferOrigin::kUndefined;
  }
}

void GraphObserver::AddEdges() {
  const Program& program = game_->program();
  const auto add = [&](int32_t from, int32_t to, EdgeColumn kind, int64_t saving_ps) {
    graph_.from.push_back(from);
    graph_.to.push_back(to);
    graph_.edge_features.resize(graph_.edge_features.size() + kEdgeColumns, 0.0F);
    float* row = graph_.edge_features.data() + graph_.edge_features.size() - kEdgeColumns;
    row[kind] = 1.0F;
    row[kEdgeSaving] = Time(saving_ps);
  };
  for (size_t a = 0; a < program.accesses().size(); ++a) {
    const Access& access = program.accesses()[a];
    const uint64_t slot = uint64_t{1} << program.slot(AccessId(a));
    const CostModel& cost = game_->cost_model();
    int64_t saving = 0;
    if (access.kind != AccessKind::kLoopEntry)
      saving = cost.PriceOf(access.tick, 0).time_ps - cost.PriceOf(access.tick, slot).time_ps;
    const int64_t all_trips = saving * program.trips(access.tick);
    const int32_t buffer = graph_.instructions + access.buffer.value;
    const auto kind = static_cast<EdgeColumn>(access.kind);
    if (access.kind != AccessKind::kWrite) add(buffer, access.tick, kind, all_trips);
    if (access.kind == AccessKind::kWrite || access.kind == AccessKind::kUpdate)
      add(access.tick, buffer, kind, all_trips);
  }
  for (Tick t = 0; t + 1 < program.ticks(); ++t) add(t, t + 1, kEdgeOrder, 0);
}

void GraphObserver::Write(const State& state, float* out) const {
  const GameTables& tables = *game_->tables_;
  std::fill(out, out + static_cast<ptrdiff_t>(graph_.buffers) * kBufferStateColumns, 0.0F);
  for (int32_t b = 0; b < graph_.buffers; ++b) out[b * kBufferStateColumns + kInMain] = 1.0F;
  const Tick now = state.tick();
  for (size_t b = 0; b < tables.buffers.size(); ++b) {
    const State::BufferState& buffer = state.buffers_[b];
    float* row = out + tables.buffers[b].id.value * kBufferStateColumns;
    row[kResident] = buffer.resident_end > now;
    row[kStay] = buffer.resident_end > now ? Ticks(buffer.resident_end - now) : 0.0F;
    row[kInMain] = buffer.has_value && buffer.main_since <= now;
    row[kForced] = buffer.forced_until > now;
  }
  if (!state.IsTerminal()) {
    out[tables.buffers[state.current().buffer].id.value * kBufferStateColumns + kCurrent] = 1.0F;
  }
}

}  // namespace mallocgame
