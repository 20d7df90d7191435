// Flattens the schedule by recursion. Module bounds how deep control computations nest.
#include "mallocgame/hlo/schedule.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/hlo/hlo.pb.h"
#include "mallocgame/hlo/trip_count.h"

namespace mallocgame::hlo {
namespace {

class Flattener {
 public:
  Flattener(const Module& module, int64_t default_trips)
      : module_(module), default_trips_(default_trips), trip_counter_(module),
        visited_(module.computations().size()) {
    schedule_.tick_of.assign(module.instructions().size(), kNone);
  }

  absl::StatusOr<Schedule> Run() {
    MG_RETURN_IF_ERROR(Visit(module_.entry(), Region{}));
    return std::move(schedule_);
  }

 private:
  Tick now() const { return static_cast<Tick>(schedule_.ticks.size()); }

  absl::Status Visit(int32_t computation, Region region) {
    const Computation& visited = module_.computation(computation);
    if (visited_[computation]) {
      return absl::InvalidArgumentError(
          absl::StrCat("computation '", visited.proto->name(),
                       "' is called by two control instructions; one is allowed"));
    }
    if (visited.schedule.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("computation '", visited.proto->name(),
                       "' has no schedule; the module must be scheduled"));
    }
    visited_[computation] = true;
    const auto own = static_cast<int32_t>(schedule_.regions.size());
    region.begin = now();
    schedule_.regions.push_back(region);
    for (const int32_t i : visited.schedule) MG_RETURN_IF_ERROR(Append(i, own));
    schedule_.regions[own].end = now();
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
    if (!counted.has_value()) ++schedule_.unknown_trip_counts;
    const int64_t trips = std::max<int64_t>(counted.value_or(default_trips_), 1);

    const auto loop = static_cast<int32_t>(schedule_.loops.size());
    schedule_.loops.push_back(Loop{now(), 0, trips, counted.has_value()});
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
    schedule_.loops[loop].exit = now();
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
    region.trips = schedule_.regions[parent].trips;
    return region;
  }

  void Put(int32_t i, InstructionKind kind, int32_t region) {
    // The entry of a loop has the logical time of the instruction after it.
    const bool is_entry = kind == InstructionKind::kLoopEntry;
    if (!is_entry) schedule_.tick_of[i] = now();
    schedule_.ticks.push_back(Schedule::Entry{i, kind, region, logical_time_});
    if (!is_entry) ++logical_time_;
  }

  absl::Status Bad(int32_t i, absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(module_.Where(i), ": ", what));
  }

  const Module& module_;
  const int64_t default_trips_;
  TripCounter trip_counter_;
  std::vector<bool> visited_;  // by computation
  Schedule schedule_;
  int32_t logical_time_ = 0;
};

}  // namespace

absl::StatusOr<Schedule> Flatten(const Module& module, int64_t default_trips) {
  if (default_trips < 1 || default_trips > kMaxTrips) {
    return absl::InvalidArgumentError(
        absl::StrCat("default_trips is ", default_trips, "; allowed are 1 to ", kMaxTrips));
  }
  return Flattener(module, default_trips).Run();
}

}  // namespace mallocgame::hlo
