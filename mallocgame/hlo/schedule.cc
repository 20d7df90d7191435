// Flattens the schedule. Recursion is as deep as control computations nest, which Module bounds.
#include "mallocgame/hlo/schedule.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/hlo/trip_count.h"

namespace mallocgame::hlo {
namespace {

class Flattener {
 public:
  Flattener(const Module& module, int64_t default_trips)
      : module_(module), default_trips_(default_trips), trip_counter_(module) {
    timeline_.tick_of.assign(module.instructions().size(), -1);
    timeline_.region_of.assign(module.computations().size(), -1);
  }

  absl::StatusOr<Timeline> Run() {
    MG_RETURN_IF_ERROR(Visit(module_.entry(), Region{}));
    // A loop's entry has the logical time of the instruction after it.
    for (size_t t = timeline_.ticks.size(); t-- > 1;) {
      Timeline::Entry& before = timeline_.ticks[t - 1];
      if (before.kind == InstructionKind::kLoopEntry)
        before.logical_time = timeline_.ticks[t].logical_time;
    }
    return std::move(timeline_);
  }

 private:
  Tick now() const { return static_cast<Tick>(timeline_.ticks.size()); }

  absl::Status Visit(int32_t computation, Region region) {
    const Computation& visited = module_.computation(computation);
    int32_t& index = timeline_.region_of[computation];
    if (index >= 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("computation '", visited.proto->name(),
                       "' is called by two control instructions; one is allowed"));
    }
    if (visited.schedule.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("computation '", visited.proto->name(),
                       "' has no schedule; the module must be scheduled"));
    }
    index = static_cast<int32_t>(timeline_.regions.size());
    const int32_t own = index;
    region.begin = now();
    timeline_.regions.push_back(region);
    for (const int32_t i : visited.schedule) MG_RETURN_IF_ERROR(Append(i, own));
    timeline_.regions[own].end = now();
    return absl::OkStatus();
  }

  absl::Status Append(int32_t i, int32_t region) {
    const std::string& opcode = module_.instruction(i).proto->opcode();
    if (opcode == "while") return AppendLoop(i, region);
    if (opcode == "call" || opcode == "conditional") {
      const RegionKind kind = opcode == "call" ? RegionKind::kCall : RegionKind::kBranch;
      if (module_.called(i).empty()) return Bad(i, "it calls no computation");
      for (const int32_t called : module_.called(i))
        MG_RETURN_IF_ERROR(Visit(called, Inner(kind, region)));
    }
    Put(i, InstructionKind::kOrdinary, region);
    return absl::OkStatus();
  }

  absl::Status AppendLoop(int32_t i, int32_t region) {
    MG_RETURN_IF_ERROR(CheckLoop(i));
    const int32_t body = module_.called(i)[0], condition = module_.called(i)[1];
    const std::optional<int64_t> counted = trip_counter_.Count(i);
    if (!counted.has_value()) ++timeline_.unknown_trip_counts;
    const int64_t trips = std::max<int64_t>(counted.value_or(default_trips_), 1);

    const auto loop = static_cast<int32_t>(timeline_.loops.size());
    timeline_.loops.push_back(Loop{now(), 0, trips, counted.has_value()});
    Put(i, InstructionKind::kLoopEntry, region);
    Region inner = Inner(RegionKind::kLoopCondition, region);
    inner.loop = loop;
    int64_t product = 0;
    if (__builtin_mul_overflow(inner.trips, trips, &product) || product > kMaxTrips) {
      return Bad(i, absl::StrCat("its body runs ", trips, " times for each of ", inner.trips,
                                 " times; at most ", kMaxTrips, " together are allowed"));
    }
    inner.trips = product;
    MG_RETURN_IF_ERROR(Visit(condition, inner));
    inner.kind = RegionKind::kLoopBody;
    MG_RETURN_IF_ERROR(Visit(body, inner));
    timeline_.loops[loop].exit = now();
    Put(i, InstructionKind::kLoopExit, region);
    return absl::OkStatus();
  }

  absl::Status CheckLoop(int32_t i) const {
    if (module_.called(i).size() != 2)
      return Bad(i, "a while calls two computations, its body and its condition");
    if (module_.operands(i).size() != 1) return Bad(i, "a while has one operand");
    for (const int32_t called : module_.called(i)) {
      if (module_.computation(called).parameters.size() != 1)
        return Bad(i, "its body and condition have one parameter each");
    }
    return absl::OkStatus();
  }

  Region Inner(RegionKind kind, int32_t parent) const {
    Region region;
    region.kind = kind;
    region.parent = parent;
    region.trips = timeline_.regions[parent].trips;
    return region;
  }

  void Put(int32_t i, InstructionKind kind, int32_t region) {
    if (kind != InstructionKind::kLoopEntry) timeline_.tick_of[i] = now();
    timeline_.ticks.push_back(Timeline::Entry{i, kind, region, logical_time_});
    if (kind != InstructionKind::kLoopEntry) ++logical_time_;
  }

  absl::Status Bad(int32_t i, absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(module_.Where(i), ": ", what));
  }

  const Module& module_;
  const int64_t default_trips_;
  TripCounter trip_counter_;
  Timeline timeline_;
  int32_t logical_time_ = 0;
};

}  // namespace

bool MovesNothing(const HloInstructionProto& instruction) {
  static constexpr absl::string_view kOpcodes[] = {"add-dependency",
                                                   "after-all",
                                                   "async-update",
                                                   "bitcast",
                                                   "call",
                                                   "conditional",
                                                   "constant",
                                                   "domain",
                                                   "get-tuple-element",
                                                   "opt-barrier",
                                                   "optimization-barrier",
                                                   "parameter",
                                                   "tuple",
                                                   "while"};
  const std::string& opcode = instruction.opcode();
  if (opcode == "custom-call") return instruction.custom_call_target() == "AllocateBuffer";
  return std::find(std::begin(kOpcodes), std::end(kOpcodes), opcode) != std::end(kOpcodes) ||
         absl::EndsWith(opcode, "-done");
}

absl::StatusOr<Timeline> Flatten(const Module& module, int64_t default_trips) {
  if (default_trips < 1 || default_trips > kMaxTrips) {
    return absl::InvalidArgumentError(
        absl::StrCat("default_trips is ", default_trips, "; allowed are 1 to ", kMaxTrips));
  }
  return Flattener(module, default_trips).Run();
}

}  // namespace mallocgame::hlo
