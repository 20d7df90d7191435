#include "mallocgame/game/time/graph.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "mallocgame/game/feature_scale.h"
#include "mallocgame/game/tables.h"

namespace mallocgame {
namespace {

using scale::Bytes;
using scale::Count;
using scale::Share;
using scale::Ticks;
using scale::Time;

constexpr Feature kNodeFeatures[] = {
    {"is_buffer", "1 for a buffer, 0 for an instruction; features of the other kind are 0"},
    {"time", "instruction: time(all trips with everything in main memory)"},
    {"idle", "instruction: idle time of the channel / time, with everything in main memory"},
    {"trips", "instruction: log2(how often it runs) / 16"},
    {"reserved", "instruction: bytes it reserves for itself / capacity"},
    {"is_loop_entry", "instruction: 1 if it is a loop's entry"},
    {"is_loop_exit", "instruction: 1 if it is a loop's exit"},
    {"plain_copy", "instruction: 1 if a transfer may replace it"},
    {"share", "buffer: size / capacity, at most 1"},
    {"bytes", "buffer: bytes(size)"},
    {"copy_time", "buffer: time(one transfer)"},
    {"accesses", "buffer: log2(1 + accesses) / 16"},
    {"asked", "buffer: 1 if the game asks about it"},
    {"is_parameter", "buffer: 1 if it is an entry parameter"},
    {"is_output", "buffer: 1 if it is an entry output"},
    {"is_undefined", "buffer: 1 if it has no value before its first write"},
};

// The first four stand in the order of AccessKind.
constexpr Feature kEdgeFeatures[] = {
    {"is_read", "1 if it goes from a buffer to an instruction that reads it"},
    {"is_update", "1 if it goes between a buffer and an instruction that updates it, either way"},
    {"is_write", "1 if it goes from an instruction to a buffer that it writes"},
    {"is_loop_entry", "1 if it goes from a buffer to the entry of a loop that carries it"},
    {"is_order", "1 if it goes from a tick to the next"},
    {"saving", "time(saved by serving this access alone from fast memory, all trips)"},
};

constexpr Feature kBufferStateFeatures[] = {
    {"resident", "1 if it is in fast memory after now"},
    {"stay", "ticks(from now to the residence's end)"},
    {"in_main", "1 if its value is in main memory now"},
    {"forced", "1 if an earlier decision decides its next accesses too"},
    {"current", "1 if the current decision is about it"},
};

consteval size_t NodeColumn(std::string_view name) { return ColumnOf(kNodeFeatures, name); }
consteval size_t EdgeColumn(std::string_view name) { return ColumnOf(kEdgeFeatures, name); }
consteval size_t StateColumn(std::string_view name) { return ColumnOf(kBufferStateFeatures, name); }
constexpr size_t kNodeColumns = std::size(kNodeFeatures);
constexpr size_t kEdgeColumns = std::size(kEdgeFeatures);
constexpr size_t kBufferStateColumns = std::size(kBufferStateFeatures);

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
  const GameTables& tables = game_->tables();
  graph_.node_features.assign((graph_.instructions + graph_.buffers) * kNodeColumns, 0.0F);
  float* row = graph_.node_features.data();
  for (Tick t = 0; t < program.ticks(); ++t, row += kNodeColumns) {
    const Instruction& instruction = program.instruction(t);
    const Price price = game_->cost_model().PriceOf(t, 0);
    row[NodeColumn("time")] = Time(price.time_ps * program.trips(t));
    row[NodeColumn("idle")] = Share(price.idle_ps, price.time_ps);
    row[NodeColumn("trips")] = Count(program.trips(t));
    row[NodeColumn("reserved")] = Share(instruction.reserved_bytes, game_->usable_bytes());
    row[NodeColumn("is_loop_entry")] = instruction.kind == InstructionKind::kLoopEntry;
    row[NodeColumn("is_loop_exit")] = instruction.kind == InstructionKind::kLoopExit;
    row[NodeColumn("plain_copy")] = instruction.plain_copy;
  }
  std::vector<uint8_t> asked(program.buffers().size(), 0);
  for (const GameBuffer& b : tables.buffers) asked[b.id.index()] = 1;
  for (size_t b = 0; b < program.buffers().size(); ++b, row += kNodeColumns) {
    const Buffer& buffer = program.buffers()[b];
    row[NodeColumn("is_buffer")] = 1.0F;
    row[NodeColumn("share")] = Share(buffer.size_bytes, game_->usable_bytes());
    row[NodeColumn("bytes")] = Bytes(buffer.size_bytes);
    row[NodeColumn("copy_time")] = Time(game_->hardware().CopyPs(buffer.size_bytes));
    row[NodeColumn("accesses")] =
        Count(static_cast<int64_t>(program.accesses_of(BufferId(b)).size()) + 1);
    row[NodeColumn("asked")] = asked[b];
    row[NodeColumn("is_parameter")] = buffer.origin == BufferOrigin::kParameter;
    row[NodeColumn("is_output")] = buffer.is_output;
    row[NodeColumn("is_undefined")] = buffer.origin == BufferOrigin::kUndefined;
  }
}

void GraphObserver::AddEdges() {
  const Program& program = game_->program();
  const auto add = [&](int32_t from, int32_t to, size_t kind, int64_t saving_ps) {
    graph_.from.push_back(from);
    graph_.to.push_back(to);
    graph_.edge_features.resize(graph_.edge_features.size() + kEdgeColumns, 0.0F);
    float* row = graph_.edge_features.data() + graph_.edge_features.size() - kEdgeColumns;
    row[kind] = 1.0F;
    row[EdgeColumn("saving")] = Time(saving_ps);
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
    const size_t kind = EdgeColumn("is_read") + static_cast<size_t>(access.kind);
    if (access.kind != AccessKind::kWrite) add(buffer, access.tick, kind, all_trips);
    if (access.kind == AccessKind::kWrite || access.kind == AccessKind::kUpdate)
      add(access.tick, buffer, kind, all_trips);
  }
  for (Tick t = 0; t + 1 < program.ticks(); ++t) add(t, t + 1, EdgeColumn("is_order"), 0);
}

void GraphObserver::Write(const State& state, float* out) const {
  const GameTables& tables = game_->tables();
  const StateView view = state.view();
  std::fill_n(out, graph_.buffers * kBufferStateColumns, 0.0F);
  for (int32_t b = 0; b < graph_.buffers; ++b)
    out[b * kBufferStateColumns + StateColumn("in_main")] = 1.0F;
  const Tick now = view.windows.now();
  for (size_t b = 0; b < tables.buffers.size(); ++b) {
    const BufferState& buffer = view.buffers[b];
    float* row = out + tables.buffers[b].id.index() * kBufferStateColumns;
    row[StateColumn("resident")] = buffer.resident_end > now;
    row[StateColumn("stay")] = buffer.resident_end > now ? Ticks(buffer.resident_end - now) : 0.0F;
    row[StateColumn("in_main")] = buffer.has_value && buffer.main_since <= now;
    row[StateColumn("forced")] = buffer.forced_until > now;
  }
  if (view.decision >= 0) {
    const GameBuffer& current = tables.buffers[tables.decisions[view.decision].buffer];
    out[current.id.index() * kBufferStateColumns + StateColumn("current")] = 1.0F;
  }
}

}  // namespace mallocgame
