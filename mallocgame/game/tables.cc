#include "mallocgame/game/tables.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/hash/hash.h"
#include "mallocgame/base/error.h"

namespace mallocgame {
namespace {

constexpr size_t kRememberedPrices = 2048;  // of each thread

bool Inside(const Region& region, Tick tick) { return region.begin <= tick && tick < region.end; }
bool IsLoopRegion(const Region& region) {
  return region.kind == RegionKind::kLoopBody || region.kind == RegionKind::kLoopCondition;
}

// Where a residence from `from` over the access at `last` may end: after the access, and after
// every loop that it enters.
Tick EndBehind(const Program& program, Tick from, Tick last) {
  Tick end = last + 1;
  for (int32_t r = program.instruction(last).region; r >= 0; r = program.regions()[r].parent) {
    const Region& region = program.regions()[r];
    if (Inside(region, from)) break;
    if (IsLoopRegion(region)) end = std::max(end, program.loops()[region.loop].exit);
  }
  if (program.instruction(last).kind == InstructionKind::kLoopEntry)
    end = std::max(end, program.loop_at(last).exit);
  return end;
}

// Whether no instruction at ticks in (from, to) changes the value of `buffer`.
bool Unchanged(const Program& program, BufferId buffer, Tick from, Tick to) {
  for (AccessId id : program.accesses_of(buffer)) {
    const Access& access = program.access(id);
    if (from < access.tick && access.tick < to &&
        (access.kind != AccessKind::kRead || access.writes_in_loop))
      return false;
  }
  return true;
}

// A plain copy whose result nobody has used yet can still be replaced where the result is first
// updated, in the same region.
void LinkPlainCopies(const Program& program, GameTables& tables) {
  for (size_t w = 0; w < tables.decisions.size(); ++w) {
    const Decision& write = tables.decisions[w];
    if (write.source < 0 || write.next < 0) continue;
    Decision& update = tables.decisions[write.next];
    const int32_t operand = tables.decisions[write.source].buffer;
    if (update.kind == AccessKind::kUpdate &&
        program.instruction(write.tick).region == program.instruction(update.tick).region &&
        Unchanged(program, tables.buffers[operand].id, write.tick, update.tick)) {
      update.plain_copy = static_cast<int32_t>(w);
    }
  }
}

void AddDecisions(const Game& game, GameTables& tables) {
  const Program& program = game.program();
  std::vector<int32_t> game_buffer(program.buffers().size(), -1);
  int64_t smallest = 0;
  for (size_t b = 0; b < program.buffers().size(); ++b) {
    const Buffer& buffer = program.buffers()[b];
    if (!buffer.eligible || buffer.size_bytes < game.options().min_buffer_bytes ||
        buffer.size_bytes > game.usable_bytes() || program.pinned(BufferId(b)))
      continue;
    if (program.accesses_of(BufferId(b)).empty()) continue;
    game_buffer[b] = static_cast<int32_t>(tables.buffers.size());
    tables.buffers.push_back({BufferId(b), buffer.size_bytes,
                              game.hardware().CopyPs(buffer.size_bytes),
                              buffer.origin == BufferOrigin::kUndefined, buffer.CanBePreloaded()});
    if (smallest == 0 || buffer.size_bytes < smallest) smallest = buffer.size_bytes;
  }
  tables.shortest_copy_ps = std::max<int64_t>(1, game.hardware().CopyPs(smallest));

  bool any_forbidden = false;
  std::vector<int32_t> latest(tables.buffers.size(), -1);
  tables.first_decision.assign(program.ticks() + 1, 0);
  for (size_t a = 0; a < program.accesses().size(); ++a) {
    const Access& access = program.accesses()[a];
    const int32_t buffer = game_buffer[access.buffer.index()];
    if (buffer < 0) continue;
    const auto index = static_cast<int32_t>(tables.decisions.size());
    Decision d;
    d.access = AccessId(a);
    d.tick = access.tick;
    d.buffer = buffer;
    d.kind = access.kind;
    d.bit = static_cast<uint8_t>(tables.first_decision[access.tick + 1]++);
    d.writes = access.kind == AccessKind::kWrite || access.kind == AccessKind::kUpdate ||
               access.writes_in_loop;
    d.first = latest[buffer] < 0;
    d.forbidden = game.in_main(d.access);
    any_forbidden |= d.forbidden;
    d.scope_end = program.scope_end(d.tick);
    d.holds = access.held_until > 0;
    d.covered_until =
        access.kind == AccessKind::kLoopEntry ? program.loop_at(d.tick).exit : access.held_until;
    if (access.kind == AccessKind::kWrite && program.instruction(d.tick).plain_copy && index > 0 &&
        tables.decisions.back().tick == d.tick) {
      d.source = index - 1;
      d.replaced_only = d.forbidden && !game.forbidden(d.access);
      d.forbidden &= !d.replaced_only;
    }
    if (d.first) {
      latest[buffer] = index;
    } else {
      tables.decisions[latest[buffer]].next = index;
      latest[buffer] = index;
    }
    tables.decisions.push_back(d);
  }
  for (size_t t = 1; t < tables.first_decision.size(); ++t)
    tables.first_decision[t] += tables.first_decision[t - 1];

  for (size_t i = tables.decisions.size(); i-- > 0;) {
    Decision& d = tables.decisions[i];
    for (int32_t n = d.next; d.holds && n >= 0 && tables.decisions[n].tick < d.covered_until;
         n = tables.decisions[n].next) {
      Decision& covered = tables.decisions[n];
      covered.held = true;
      d.writes |= covered.writes;
    }
    const BufferId id = tables.buffers[d.buffer].id;
    const Tick last = program.access(program.accesses_of(id).back()).tick;
    const bool stays = program.buffer(id).is_output || CarriedAround(program, id, d.tick);
    d.pin_end = stays ? kNever : EndBehind(program, d.tick, last);
    if (d.pin_end > d.scope_end) d.pin_end = kNever;
    for (int32_t n = d.next; n >= 0; n = tables.decisions[n].next) {
      const Decision& later = tables.decisions[n];
      const bool in_main = later.forbidden || later.replaced_only;
      d.rest_forbidden |= in_main;
      d.inside_forbidden |= in_main && later.tick < d.covered_until;
      if (!any_forbidden) break;
    }
  }
}

// All that the prices of an instruction depend on. Those of equal keys are the same: layers of a
// model are often the same instructions again, which are priced once.
struct PriceKey {
  const InstructionCost* cost;
  bool plain_copy;
  uint64_t pinned_slots;
  absl::InlinedVector<int32_t, kMaxTableBits> slots;  // of its decisions

  PriceKey(const Program& program, const GameTables& tables, Tick t)
      : cost(&program.cost().instructions[t]), plain_copy(program.instruction(t).plain_copy),
        pinned_slots(tables.pinned_slots.empty() ? 0 : tables.pinned_slots[t]) {
    for (int32_t d = tables.first_decision[t]; d < tables.first_decision[t + 1]; ++d)
      slots.push_back(program.slot(tables.decisions[d].access));
  }
  friend bool operator==(const PriceKey& a, const PriceKey& b) {
    return a.plain_copy == b.plain_copy && a.pinned_slots == b.pinned_slots && a.slots == b.slots &&
           *a.cost == *b.cost;
  }
  template <class Hash>
  friend Hash AbslHashValue(Hash hash, const PriceKey& key) {
    hash = Hash::combine(std::move(hash), key.plain_copy, key.pinned_slots, key.slots,
                         key.cost->pool, key.cost->flops, key.cost->link_ps);
    for (const auto* arrays : {&key.cost->operands, &key.cost->outputs})
      for (const CostArray& array : *arrays)
        hash = Hash::combine(std::move(hash), array.size_bytes, array.slot);
    return hash;
  }
};

void AddPrices(const Game& game, GameTables& tables) {
  const Program& program = game.program();
  const size_t ticks = program.ticks();
  tables.instructions.resize(ticks);
  for (auto* before :
       {&tables.certain_idle_before, &tables.fast_idle_before, &tables.all_main_before})
    before->assign(ticks + 1, 0);
  absl::flat_hash_map<PriceKey, uint32_t> known;  // where their prices begin
  for (Tick t = 0; t < program.ticks(); ++t) {
    const size_t at = t;
    InstructionPrices& prices = tables.instructions[at];
    prices.bits = static_cast<uint8_t>(tables.first_decision[at + 1] - tables.first_decision[at]);
    prices.trips = program.trips(t);
    prices.plain_copy = program.instruction(t).plain_copy;
    int64_t certain = 0;
    if (program.instruction(t).kind == InstructionKind::kLoopEntry) {
      prices.bits = kFreeBits;
    } else if (prices.bits <= kMaxTableBits) {
      const uint64_t count = uint64_t{1} << prices.bits;
      const auto [same, is_new] = known.try_emplace(PriceKey(program, tables, t),
                                                    static_cast<uint32_t>(tables.prices.size()));
      prices.first = same->second;
      for (uint64_t placement = 0; is_new && placement < count; ++placement)
        tables.prices.push_back(tables.ComputePrice(game.cost_model(), t, placement));
      certain = tables.prices[prices.first].idle_ps;
      for (uint64_t placement = 1; placement < count; ++placement)
        certain = std::min(certain, tables.prices[prices.first + placement].idle_ps);
    }
    tables.certain_idle_before[at + 1] = tables.certain_idle_before[at] + certain;
    const auto price = [&](uint64_t placement) {
      return tables.PriceAt(game.cost_model(), t, placement);
    };
    tables.fast_idle_before[at + 1] =
        tables.fast_idle_before[at] + price(tables.AllFast(t)).idle_ps;
    tables.all_main_before[at + 1] = tables.all_main_before[at] + price(0).time_ps * prices.trips;
  }
  // The program waits at its tick for a copy that fills a pin.
  int64_t waits = 0;
  size_t next = 0;
  for (Tick t = 0; t < program.ticks(); ++t) {
    for (; next < tables.fetched_pins.size() && tables.FetchedAt(next) == t; ++next)
      waits += tables.FetchPs(game, next) * program.trips(t);
    tables.all_main_before[t + 1] += waits;
  }
}

// The same prices at other ticks.
void MovePrices(const Game& game, const GameTables& known, absl::Span<const Tick> order,
                GameTables& tables) {
  const size_t ticks = game.program().ticks();
  tables.prices = known.prices;
  tables.instructions.resize(ticks);
  const auto move = [&](std::vector<int64_t> GameTables::* column) {
    std::vector<int64_t>& before = tables.*column;
    const std::vector<int64_t>& own = known.*column;
    before.assign(ticks + 1, 0);
    for (size_t t = 0; t < ticks; ++t)
      before[t + 1] = before[t] + own[order[t] + 1] - own[order[t]];
  };
  for (size_t t = 0; t < ticks; ++t) tables.instructions[t] = known.instructions[order[t]];
  move(&GameTables::certain_idle_before);
  move(&GameTables::fast_idle_before);
  move(&GameTables::all_main_before);
}

}  // namespace

uint64_t NextTablesId() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

bool CarriedAround(const Program& program, BufferId buffer, Tick tick) {
  for (AccessId id : program.accesses_of(buffer)) {
    const Access& access = program.access(id);
    if (access.kind == AccessKind::kLoopEntry && access.tick < tick &&
        tick < program.loop_at(access.tick).exit)
      return true;
  }
  return false;
}

TimeAndIdle GameTables::RememberedPrice(const CostModel& cost_model, Tick tick,
                                        uint64_t placement) const {
  struct Remembered {
    uint64_t game = 0, placement = 0;
    Tick tick = 0;
    TimeAndIdle price;
  };
  // Each price has one place, which it takes from whatever was there. A search goes back and forth
  // between few placements.
  static thread_local std::vector<Remembered> memory(kRememberedPrices);
  const size_t hash = absl::HashOf(id, tick, placement);
  Remembered& place = memory[hash % kRememberedPrices];
  if (place.game != id || place.tick != tick || place.placement != placement)
    place = {id, placement, tick, ComputePrice(cost_model, tick, placement)};
  return place.price;
}

TimeAndIdle GameTables::ComputePrice(const CostModel& cost_model, Tick tick,
                                     uint64_t placement) const {
  uint64_t slots = pinned_slots.empty() ? 0 : pinned_slots[tick];
  for (uint64_t rest = placement; rest != 0; rest &= rest - 1) {
    const size_t decision = first_decision[tick] + std::countr_zero(rest);
    slots |= uint64_t{1} << cost_model.program().slot(decisions[decision].access);
  }
  const Price price = cost_model.PriceOf(tick, slots);
  return {price.time_ps, price.idle_ps};
}

size_t GameTables::FirstFetched(Tick tick) const {
  const auto found = std::partition_point(fetched_pins.begin(), fetched_pins.end(),
                                          [&](int32_t p) { return pins[p].stay.begin < tick; });
  return found - fetched_pins.begin();
}

const Decision* GameTables::ReplacedWrite(const Decision& d,
                                          absl::Span<const uint64_t> placements) const {
  const Decision* write = d.source >= 0       ? &d
                          : d.plain_copy >= 0 ? &decisions[d.plain_copy]
                                              : nullptr;
  return write != nullptr && !write->forbidden && placements[write->tick] == 0 ? write : nullptr;
}

GameTables::GameTables(const Game& game, const GameTables* known, absl::Span<const Tick> order)
    : id(NextTablesId()), reserved(BytesBelowPlayers(game.program(), game.hardware())),
      pins(PlacePins(game.program(), game.hardware())) {
  const Program& program = game.program();
  if (!pins.empty()) pinned_slots.assign(program.ticks(), 0);
  for (size_t p = 0; p < pins.size(); ++p) {
    for (const AccessId access : pins[p].stay.serves)
      pinned_slots[program.access(access).tick] |= uint64_t{1} << program.slot(access);
    if (pins[p].stay.fetched) fetched_pins.push_back(static_cast<int32_t>(p));
  }
  AddDecisions(game, *this);
  LinkPlainCopies(program, *this);
  if (known != nullptr) {
    MovePrices(game, *known, order, *this);
  } else {
    AddPrices(game, *this);
  }
  starts_segment.assign(program.ticks() + 1, 0);
  for (Tick t = 0; t < program.ticks(); ++t) starts_segment[t] = program.segment_begin(t) == t;
}

}  // namespace mallocgame
