// Sorts buffers, and guesses what an entry parameter is.
#include "mallocgame/solvers/xla/order.h"

#include <algorithm>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace mallocgame {
namespace {

// The life of a buffer's first value, which ends with the first update, or with the entry of a loop
// that updates it. XLA measures it by events: each value that begins is one, and each that ends.
struct Life {
  int64_t begin = 0, end = 0;  // events
  Tick last_use = 0;
};

std::vector<Life> FirstLives(const Program& program, absl::Span<const Tick> defined) {
  // XLA takes the values of one tick in the order in which they were made.
  struct Event {
    Tick tick;
    bool ends;
    Tick made;
    AccessId first;  // of the buffer; decides where parameters are not in the schedule
    int32_t value;   // of the buffer, in order
    BufferId buffer;
    auto operator<=>(const Event&) const = default;
  };
  std::vector<Life> lives(program.buffers().size());
  std::vector<Event> events;
  for (size_t b = 0; b < program.buffers().size(); ++b) {
    const BufferId id(b);
    const Buffer& buffer = program.buffer(id);
    const auto accesses = program.accesses_of(id);
    if (accesses.empty()) continue;
    int32_t value = 0;
    Tick begin = defined[b];
    Tick last_use = program.access(accesses[0]).tick;
    const auto add = [&](Tick end) {
      events.push_back({begin, false, begin, accesses[0], value, id});
      events.push_back({end, true, begin, accesses[0], value, id});
      if (value == 0) lives[b].last_use = last_use;
    };
    for (const AccessId a : accesses) {
      last_use = program.access(a).tick;
      const bool carried =
          program.access(a).kind == AccessKind::kLoopEntry && program.access(a).writes_in_loop;
      if (program.access(a).kind != AccessKind::kUpdate && !carried) continue;
      add(last_use);
      begin = last_use;
      ++value;
    }
    const bool stays =
        buffer.is_output || (value == 0 && buffer.origin == BufferOrigin::kParameter);
    add(stays ? program.ticks() : last_use);
  }
  std::sort(events.begin(), events.end());
  for (size_t e = 0; e < events.size(); ++e) {
    if (events[e].value > 0) continue;
    Life& life = lives[events[e].buffer.index()];
    (events[e].ends ? life.end : life.begin) = static_cast<int64_t>(e);
  }
  return lives;
}

struct Rank {
  float boundedness = 0;
  int64_t size = 0;
  Life life;
  AccessId first;  // XLA's last word is which value its analysis finds first, by uses before users
  BufferId buffer;

  auto Key() const {
    return std::tuple(-boundedness, -size, life.begin - life.end, life.last_use, first);
  }
};

// A fusion with less work than this for each byte that it moves multiplies no matrices.
constexpr double kLeastWorkOfProduct = 0.75;

// XLA preloads no parameter with a use that looks like that of an activation: as first operand of a
// product, as an index, in a copy, in a loop, or in an operation that it doesn't know. Our program
// does not know the inside of a fusion. An operand as large as an output is taken to be used
// element by element; any other operand of a fusion with much work is taken to be a factor.
bool LooksLikeActivation(const Program& program, AccessId id) {
  const Access& a = program.access(id);
  if (a.kind != AccessKind::kRead) return true;
  const Instruction& i = program.instruction(a.tick);
  const InstructionCost& cost = program.cost().instructions[a.tick];
  const int32_t slot = program.slot(id);
  const auto is_operand = [&](size_t k) {
    return k < cost.operands.size() && cost.operands[k].slot == slot;
  };
  if (i.opcode == "dot" || i.opcode == "convolution") return is_operand(0);
  if (i.opcode == "gather" || i.opcode == "reduce") return is_operand(1);
  if (i.opcode == "dynamic-slice" || i.opcode == "dynamic-update-slice") return !is_operand(0);
  if (i.opcode != "fusion") return true;
  const int64_t size = program.buffer(a.buffer).size_bytes;
  if (std::any_of(cost.outputs.begin(), cost.outputs.end(),
                  [size](const CostArray& o) { return o.size_bytes == size; })) {
    return true;
  }
  double bytes = 0;
  for (const auto* arrays : {&cost.operands, &cost.outputs}) {
    for (const CostArray& array : *arrays) bytes += static_cast<double>(array.accessed_bytes);
  }
  return !absl::StrContains(i.name, "gather") &&
         static_cast<double>(cost.flops) < kLeastWorkOfProduct * bytes;
}

// The bytes that the readers of a buffer write.
int64_t BytesMadeFrom(const Program& program, BufferId buffer) {
  int64_t bytes = 0;
  for (const AccessId id : program.accesses_of(buffer)) {
    for (const CostArray& array : program.cost().instructions[program.access(id).tick].outputs) {
      bytes = std::min(int64_t{1} << 61, bytes + array.size_bytes);
    }
  }
  return bytes;
}

}  // namespace

std::vector<Tick> XlaDefinitions(const Program& program) {
  std::vector<Tick> defined(program.buffers().size(), 0);
  absl::flat_hash_map<absl::string_view, size_t> named;
  for (size_t b = 0; b < defined.size(); ++b) {
    const Buffer& buffer = program.buffers()[b];
    const auto accesses = program.accesses_of(BufferId(b));
    const bool parameter = buffer.origin == BufferOrigin::kParameter;
    if (parameter || buffer.origin == BufferOrigin::kUndefined) named[buffer.name] = b;
    if (!parameter && !accesses.empty()) defined[b] = program.access(accesses[0]).tick;
  }
  for (Tick t = 0; t < program.ticks(); ++t) {
    const auto found = named.find(program.instruction(t).name);
    if (found == named.end()) continue;
    // Made by hand, a program may use a buffer before the instruction that it is called after.
    const auto accesses = program.accesses_of(BufferId(found->second));
    defined[found->second] = accesses.empty() ? t : std::min(t, program.access(accesses[0]).tick);
  }
  return defined;
}

bool CanBeReplaced(const Program& program, Tick tick) {
  const Instruction& copy = program.instruction(tick);
  if (!copy.plain_copy) return false;
  const BufferId operand = program.accesses()[copy.first_access].buffer;
  const BufferOrigin origin = program.buffer(operand).origin;
  const auto accesses = program.accesses_of(operand);
  return (origin == BufferOrigin::kParameter || origin == BufferOrigin::kConstant) &&
         std::all_of(accesses.begin(), accesses.end(), [&program](AccessId id) {
           const Access& a = program.access(id);
           return a.kind == AccessKind::kRead ||
                  (a.kind == AccessKind::kLoopEntry && !a.writes_in_loop);
         });
}

std::vector<BufferId> XlaOrder(const Game& game, const XlaCost& cost,
                               absl::Span<const Tick> defined) {
  const Program& program = game.program();
  const std::vector<Life> lives = FirstLives(program, defined);
  std::vector<Rank> ranks;
  for (size_t b = 0; b < program.buffers().size(); ++b) {
    const BufferId buffer(b);
    const auto accesses = program.accesses_of(buffer);
    if (!program.buffer(buffer).eligible || program.pinned(buffer) || accesses.empty()) continue;
    Rank rank;
    rank.boundedness = cost.Boundedness(buffer);
    rank.size = program.buffer(buffer).size_bytes;
    rank.life = lives[b];
    rank.first = accesses.front();
    rank.buffer = buffer;
    ranks.push_back(rank);
  }
  std::sort(ranks.begin(), ranks.end(),
            [](const Rank& a, const Rank& b) { return a.Key() < b.Key(); });
  std::vector<BufferId> order;
  order.reserve(ranks.size());
  std::vector<bool> waits(program.buffers().size(), false);
  for (const Rank& rank : ranks) waits[rank.buffer.index()] = true;
  const auto add = [&](BufferId buffer) {
    if (waits[buffer.index()]) order.push_back(buffer);
    waits[buffer.index()] = false;
  };
  for (const Rank& rank : ranks) {
    add(rank.buffer);
    for (const AccessId id : program.accesses_of(rank.buffer)) {
      const Instruction& user = program.instruction(program.access(id).tick);
      const bool copied = id.index() == static_cast<size_t>(user.first_access) &&
                          CanBeReplaced(program, program.access(id).tick);
      if (copied) add(program.accesses()[user.first_access + 1].buffer);
    }
  }
  return order;
}

std::vector<BufferId> XlaPreloadOrder(const Program& program) {
  std::vector<std::tuple<int64_t, int64_t, Tick, BufferId>> ranks;
  for (size_t b = 0; b < program.buffers().size(); ++b) {
    const Buffer& buffer = program.buffers()[b];
    const BufferId id(b);
    const auto accesses = program.accesses_of(id);
    if (!buffer.eligible || program.pinned(id) || !buffer.CanBePreloaded() || accesses.empty())
      continue;
    if (std::any_of(accesses.begin(), accesses.end(),
                    [&](AccessId a) { return LooksLikeActivation(program, a); }))
      continue;
    ranks.emplace_back(-buffer.size_bytes, -BytesMadeFrom(program, id),
                       program.access(accesses.back()).tick, id);
  }
  std::sort(ranks.begin(), ranks.end());
  std::vector<BufferId> order;
  order.reserve(ranks.size());
  for (const auto& rank : ranks) order.push_back(std::get<BufferId>(rank));
  return order;
}

}  // namespace mallocgame
