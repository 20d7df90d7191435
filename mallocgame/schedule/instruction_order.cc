// Checks orders, and renumbers everything that a program holds by time.
#include "mallocgame/schedule/instruction_order.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"

namespace mallocgame {
namespace {

template <class... Parts>
absl::Status Refuse(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("order of instructions: ", parts...));
}

struct Interval {
  Tick begin = kNever, end = 0;
};

// The places of the regions in the order, by region. `place` is the inverse of the order.
std::vector<Interval> PlacesOf(const Program& program, absl::Span<const Tick> place) {
  std::vector<Interval> places(program.regions().size());
  for (Tick t = 0; t < program.ticks(); ++t) {
    for (int32_t r = program.instruction(t).region; r >= 0; r = program.regions()[r].parent) {
      places[r].begin = std::min(places[r].begin, place[t]);
      places[r].end = std::max(places[r].end, place[t] + 1);
    }
  }
  return places;
}

class OrderChecker {
 public:
  OrderChecker(const Program& program, absl::Span<const Tick> order)
      : program_(program), order_(order) {}

  absl::Status Run() {
    MG_RETURN_IF_ERROR(CheckPermutation());
    MG_RETURN_IF_ERROR(CheckStructure());
    if (!program_.data().has_dependences && !std::is_sorted(order_.begin(), order_.end())) {
      return Refuse("nobody knows what depends on what in program '", program_.name(),
                    "', so its own order is the only one; import its HLO again");
    }
    for (const Dependence& d : program_.data().dependences) {
      if (place_[d.before] < place_[d.after]) continue;
      return Refuse(Name(d.after), " stands at ", place_[d.after], ", and ", Name(d.before),
                    ", on which it depends, at ", place_[d.before], "; it must stand before");
    }
    return absl::OkStatus();
  }

 private:
  std::string Name(Tick tick) const {
    return absl::StrCat("'", program_.instruction(tick).name, "' (tick ", tick, ")");
  }

  absl::Status CheckPermutation() {
    if (std::ssize(order_) != program_.ticks()) {
      return Refuse("found ", order_.size(), " ticks, program '", program_.name(), "' has ",
                    program_.ticks());
    }
    place_.assign(order_.size(), kNever);
    for (Tick place = 0; place < std::ssize(order_); ++place) {
      const Tick tick = order_[place];
      if (tick < 0 || tick >= program_.ticks()) {
        return Refuse("found tick ", tick, " at ", place, ", allowed: 0 to ", program_.ticks() - 1);
      }
      if (place_[tick] != kNever)
        return Refuse(Name(tick), " stands at ", place_[tick], " and at ", place);
      place_[tick] = place;
    }
    return absl::OkStatus();
  }

  // The ticks of a region stand together; so do a loop's entry, condition, body and exit, and what
  // else runs regions, behind these.
  absl::Status CheckStructure() const {
    const std::vector<Interval> places = PlacesOf(program_, place_);
    for (size_t r = 0; r < places.size(); ++r) {
      const Region& region = program_.regions()[r];
      if (places[r].end - places[r].begin != region.end - region.begin) {
        return Refuse("the ", region.end - region.begin, " instructions of one computation, from ",
                      Name(region.begin), " to ", Name(region.end - 1),
                      ", don't stand together: they are at ", places[r].begin, " to ",
                      places[r].end - 1);
      }
    }
    // What ends at a place that the next piece of its unit begins at.
    for (size_t r = 1; r < places.size(); ++r) {
      const Region& region = program_.regions()[r];
      const auto follows = [&](Tick next) {
        const int32_t at = program_.instruction(next).region;
        if (at == region.parent) return place_[next] == places[r].end;
        int32_t sibling = at;
        while (program_.regions()[sibling].parent != region.parent)
          sibling = program_.regions()[sibling].parent;
        return places[sibling].begin == places[r].end;
      };
      if (region.end < program_.ticks() && !follows(region.end)) {
        return Refuse("what ", Name(region.end - 1), " ends isn't followed by ", Name(region.end));
      }
      if (region.kind == RegionKind::kLoopCondition &&
          place_[program_.loops()[region.loop].entry] + 1 != places[r].begin) {
        return Refuse("the loop ", Name(program_.loops()[region.loop].exit),
                      " doesn't begin where its condition does");
      }
    }
    return absl::OkStatus();
  }

  const Program& program_;
  const absl::Span<const Tick> order_;
  std::vector<Tick> place_;
};

class Reorderer {
 public:
  Reorderer(const Program& program, absl::Span<const Tick> order)
      : old_(program.data()), program_(program), order_(order), place_(order.size()) {
    for (size_t place = 0; place < order.size(); ++place)
      place_[order[place]] = static_cast<Tick>(place);
  }

  ReorderedProgram Run() {
    data_.name = old_.name;
    data_.argument_bytes = old_.argument_bytes;
    data_.window_bytes = old_.window_bytes;
    data_.cost.kind = old_.cost.kind;
    data_.cost.pools = old_.cost.pools;
    MoveRegions();
    MoveBuffers();
    MoveInstructions();
    MoveDependences();
    made_.program = Program::OfChecked(std::move(data_));
    return std::move(made_);
  }

 private:
  // Regions and loops are numbered as they begin, what holds others before these.
  void MoveRegions() {
    const std::vector<Interval> places = PlacesOf(program_, place_);
    std::vector<int32_t> by_begin(old_.regions.size());
    std::iota(by_begin.begin(), by_begin.end(), 0);
    std::stable_sort(by_begin.begin(), by_begin.end(), [&](int32_t a, int32_t b) {
      return std::pair(places[a].begin, -places[a].end) <
             std::pair(places[b].begin, -places[b].end);
    });
    region_of_.resize(by_begin.size());
    for (size_t r = 0; r < by_begin.size(); ++r) region_of_[by_begin[r]] = static_cast<int32_t>(r);
    std::vector<int32_t> loops(old_.loops.size()), loop_of(old_.loops.size());
    std::iota(loops.begin(), loops.end(), 0);
    std::sort(loops.begin(), loops.end(), [&](int32_t a, int32_t b) {
      return place_[old_.loops[a].entry] < place_[old_.loops[b].entry];
    });
    for (size_t l = 0; l < loops.size(); ++l) {
      loop_of[loops[l]] = static_cast<int32_t>(l);
      Loop loop = old_.loops[loops[l]];
      loop.entry = place_[loop.entry];
      loop.exit = place_[loop.exit];
      data_.loops.push_back(loop);
    }
    for (const int32_t r : by_begin) {
      Region region = old_.regions[r];
      region.begin = places[r].begin;
      region.end = places[r].end;
      if (region.parent >= 0) region.parent = region_of_[region.parent];
      if (region.loop >= 0) region.loop = loop_of[region.loop];
      data_.regions.push_back(region);
    }
  }

  // Buffers are numbered as the instructions that they are named after stand. Those of one
  // instruction keep their order. A buffer that is named otherwise counts by its first access.
  void MoveBuffers() {
    std::vector<std::pair<Tick, int32_t>> by_begin;
    by_begin.reserve(old_.buffers.size());
    data_.buffers.reserve(old_.buffers.size());
    for (size_t b = 0; b < old_.buffers.size(); ++b) {
      const Tick named_after = program_.named_after()[b];
      Tick begin = named_after < 0 ? kNever : place_[named_after];
      if (named_after < 0) {
        for (const AccessId id : program_.accesses_of(BufferId(b)))
          begin = std::min(begin, place_[program_.access(id).tick]);
      }
      by_begin.emplace_back(begin, static_cast<int32_t>(b));
    }
    std::sort(by_begin.begin(), by_begin.end());
    made_.buffer_of.resize(by_begin.size());
    for (size_t b = 0; b < by_begin.size(); ++b) {
      made_.buffer_of[by_begin[b].second] = static_cast<int32_t>(b);
      data_.buffers.push_back(old_.buffers[by_begin[b].second]);
    }
  }

  void MoveInstructions() {
    int32_t time = 0;
    data_.instructions.reserve(order_.size());
    data_.cost.instructions.reserve(order_.size());
    data_.accesses.reserve(old_.accesses.size());
    std::vector<int32_t> ids;
    made_.access_of.resize(old_.accesses.size());
    for (size_t place = 0; place < order_.size(); ++place) {
      Instruction instruction = old_.instructions[order_[place]];
      ids.resize(instruction.access_count);
      std::iota(ids.begin(), ids.end(), instruction.first_access);
      if (instruction.kind == InstructionKind::kLoopEntry) {
        std::sort(ids.begin(), ids.end(), [&](int32_t a, int32_t b) {
          return BufferOf(old_.accesses[a].buffer) < BufferOf(old_.accesses[b].buffer);
        });
      }
      instruction.first_access = static_cast<int32_t>(data_.accesses.size());
      for (const int32_t id : ids) {
        made_.access_of[id] = static_cast<int32_t>(data_.accesses.size());
        Access access = old_.accesses[id];
        access.tick = static_cast<Tick>(place);
        access.buffer = BufferOf(access.buffer);
        if (access.held_until > 0) access.held_until = place_[access.held_until - 1] + 1;
        data_.accesses.push_back(access);
      }
      instruction.region = region_of_[instruction.region];
      instruction.logical_time = time;
      time += instruction.kind != InstructionKind::kLoopEntry;
      data_.instructions.push_back(std::move(instruction));
      data_.cost.instructions.push_back(old_.cost.instructions[order_[place]]);
    }
  }

  // Those of one tick stand together, before and after.
  void MoveDependences() {
    data_.has_dependences = old_.has_dependences;
    data_.dependences.reserve(old_.dependences.size());
    ForEachGroup(
        old_.dependences, [](const Dependence& d) { return d.before; },
        [&](absl::Span<const Dependence> group) {
          const auto first = static_cast<std::ptrdiff_t>(data_.dependences.size());
          for (const Dependence& d : group)
            data_.dependences.push_back({place_[d.before], place_[d.after]});
          std::sort(data_.dependences.begin() + first, data_.dependences.end());
        });
    data_.main_uses.reserve(old_.main_uses.size());
    ForEachGroup(
        old_.main_uses, [](const MainUse& use) { return use.tick; },
        [&](absl::Span<const MainUse> group) {
          const auto first = static_cast<std::ptrdiff_t>(data_.main_uses.size());
          for (const MainUse& use : group)
            data_.main_uses.push_back({place_[use.tick], BufferOf(use.buffer)});
          std::sort(data_.main_uses.begin() + first, data_.main_uses.end(),
                    [](const MainUse& a, const MainUse& b) { return a.buffer < b.buffer; });
        });
  }

  // Calls take(rows of one tick) in the new order of ticks. `rows` are sorted by their old ones.
  template <class Row, class TickOf, class Take>
  void ForEachGroup(const std::vector<Row>& rows, const TickOf& tick_of, const Take& take) const {
    std::vector<size_t> first(order_.size() + 1);
    for (const Row& row : rows) ++first[tick_of(row) + 1];
    for (size_t t = 1; t < first.size(); ++t) first[t] += first[t - 1];
    for (const Tick tick : order_) {
      if (first[tick] < first[tick + 1])
        take(absl::MakeConstSpan(rows).subspan(first[tick], first[tick + 1] - first[tick]));
    }
  }

  BufferId BufferOf(BufferId old) const { return BufferId(made_.buffer_of[old.index()]); }

  const ProgramData& old_;
  const Program& program_;
  const absl::Span<const Tick> order_;
  std::vector<Tick> place_;         // by old tick
  std::vector<int32_t> region_of_;  // by old region
  ProgramData data_;
  ReorderedProgram made_;
};

}  // namespace

absl::Status CheckInstructionOrder(const Program& program, absl::Span<const Tick> order) {
  return OrderChecker(program, order).Run();
}

absl::StatusOr<ReorderedProgram> Reordered(const Program& program, absl::Span<const Tick> order) {
  MG_RETURN_IF_ERROR(CheckInstructionOrder(program, order));
  ReorderedProgram made = ReorderedLegally(program, order);
  // Dependences that are known are complete, but a file may say anything.
  MG_ASSIGN_OR_RETURN(made.program, Program::Create(made.program->data()));
  return made;
}

ReorderedProgram ReorderedLegally(const Program& program, absl::Span<const Tick> order) {
  if (!std::is_sorted(order.begin(), order.end())) return Reorderer(program, order).Run();
  // Nothing is renumbered, however a program that wasn't imported numbers its buffers.
  ReorderedProgram same;
  same.program = Program::OfChecked(program.data());
  same.buffer_of.resize(program.buffers().size());
  same.access_of.resize(program.accesses().size());
  std::iota(same.buffer_of.begin(), same.buffer_of.end(), 0);
  std::iota(same.access_of.begin(), same.access_of.end(), 0);
  return same;
}

}  // namespace mallocgame
