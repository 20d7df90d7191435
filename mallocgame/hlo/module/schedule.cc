// Flattens the schedule by recursion. Module bounds how deep control computations nest.
#include "mallocgame/hlo/module/schedule.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "mallocgame/base/error.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/module/trip_count.h"

namespace mallocgame::hlo {
namespace {

class Flattener {
 public:
  Flattener(const Module& module, const FlattenOptions& options)
      : module_(module), options_(options), trip_counter_(module) {
    schedule_.tick_of.assign(module.instructions().size(), kNone);
  }

  absl::StatusOr<Schedule> Run() {
    MG_RETURN_IF_ERROR(Visit(module_.entry(), Region{}));
    MG_RETURN_IF_ERROR(CheckTripsAreLoops());
    SetTrips(kMaxTrips, schedule_.regions, schedule_.loops);
    return std::move(schedule_);
  }

 private:
  Tick now() const { return static_cast<Tick>(schedule_.ticks.size()); }

  absl::Status Visit(int32_t computation, Region region) {
    const Computation& visited = module_.computation(computation);
    if (!visited.scheduled) {
      if (options_.requires_schedule) {
        return absl::InvalidArgumentError(absl::StrCat(
            "computation '", visited.proto->name(),
            "' has no schedule, and one is required; without that (schedule: instructions) the "
            "order of its instructions is taken"));
      }
      ++schedule_.unscheduled_computations;
    }
    const auto own = static_cast<int32_t>(schedule_.regions.size());
    region.begin = now();
    schedule_.regions.push_back(region);
    for (const int32_t i : visited.schedule) MG_RETURN_IF_ERROR(Append(i, own));
    schedule_.regions[own].end = now();
    return absl::OkStatus();
  }

  absl::Status Append(int32_t i, int32_t region) {
    const Opcode opcode = module_.opcode(i);
    if (opcode == kWhile) return AppendLoop(i, region);
    if (opcode == kCall || opcode == kConditional) {
      const RegionKind kind = opcode == kCall ? RegionKind::kCall : RegionKind::kBranch;
      if (module_.called(i).empty()) return Bad(i, "it calls no computation");
      for (const int32_t called : module_.called(i))
        MG_RETURN_IF_ERROR(Visit(called, Inner(kind, region)));
    }
    Put(i, InstructionKind::kOrdinary, region);
    return absl::OkStatus();
  }

  absl::Status AppendLoop(int32_t i, int32_t region) {
    MG_RETURN_IF_ERROR(CheckLoop(i));
    const auto loop = static_cast<int32_t>(schedule_.loops.size());
    schedule_.loops.push_back(CountedLoop(i));
    schedule_.loops[loop].entry = now();
    Put(i, InstructionKind::kLoopEntry, region);
    Region inner = Inner(RegionKind::kLoopCondition, region);
    inner.loop = loop;
    MG_RETURN_IF_ERROR(Visit(module_.called(i)[1], inner));
    inner.kind = RegionKind::kLoopBody;
    MG_RETURN_IF_ERROR(Visit(module_.called(i)[0], inner));
    schedule_.loops[loop].exit = now();
    Put(i, InstructionKind::kLoopExit, region);
    return absl::OkStatus();
  }

  Loop CountedLoop(int32_t i) {
    Loop loop;
    const auto told = options_.trips.find(module_.instruction(i).proto->name());
    if (told != options_.trips.end()) {
      loop.trips = told->second;
      return loop;
    }
    const std::optional<int64_t> counted = trip_counter_.Count(i);
    loop.trips = counted.value_or(options_.default_trips);
    loop.trips_known = counted.has_value();
    return loop;
  }

  absl::Status CheckLoop(int32_t i) const {
    if (module_.called(i).size() != 2)
      return Bad(i, "a while calls two computations, its body and its condition");
    if (module_.operands(i).size() != 1) return Bad(i, "a while has one operand");
    for (const int32_t called : module_.called(i)) {
      if (module_.computation(called).parameters.size() != 1)
        return Bad(i, "its body and condition have one parameter each");
    }
    const size_t answers = module_.arrays(module_.computation(module_.called(i)[1]).root).size();
    if (answers != 1) {
      return Bad(i, absl::StrCat("its condition gives ", answers,
                                 " arrays, wanted is one: whether it goes on"));
    }
    return absl::OkStatus();
  }

  // A name that is misspelt would change nothing.
  absl::Status CheckTripsAreLoops() const {
    if (options_.trips.empty()) return absl::OkStatus();
    std::vector<absl::string_view> loops;
    for (const Loop& loop : schedule_.loops) {
      const int32_t i = schedule_.ticks[loop.entry].instruction;
      loops.emplace_back(module_.instruction(i).proto->name());
    }
    for (const auto& [name, trips] : options_.trips) {
      if (std::find(loops.begin(), loops.end(), name) != loops.end()) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("trips: '", name, "' is no loop; ",
                       loops.empty() ? "there are none"
                                     : absl::StrCat("loops are ", absl::StrJoin(loops, ", "))));
    }
    return absl::OkStatus();
  }

  static Region Inner(RegionKind kind, int32_t parent) {
    Region region;
    region.kind = kind;
    region.parent = parent;
    return region;
  }

  void Put(int32_t i, InstructionKind kind, int32_t region) {
    // The entry of a loop has the logical time of the instruction after it.
    const bool is_entry = kind == InstructionKind::kLoopEntry;
    if (!is_entry) schedule_.tick_of[i] = now();
    schedule_.ticks.push_back(Schedule::Entry{i, kind, region, logical_time_});
    if (!is_entry) ++logical_time_;
  }

  absl::Status Bad(int32_t i, absl::string_view what) const { return module_.InvalidAt(i, what); }

  const Module& module_;
  const FlattenOptions& options_;
  TripCounter trip_counter_;
  Schedule schedule_;
  int32_t logical_time_ = 0;
};

}  // namespace

absl::StatusOr<Schedule> Flatten(const Module& module, const FlattenOptions& options) {
  if (options.default_trips < 1 || options.default_trips > kMaxTrips) {
    return absl::InvalidArgumentError(
        absl::StrCat("default_trips is ", options.default_trips, "; allowed are 1 to ", kMaxTrips));
  }
  for (const auto& [name, trips] : options.trips) {
    if (trips >= 0 && trips <= kMaxTrips) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("trips of '", name, "': found ", trips, "; allowed are 0 to ", kMaxTrips));
  }
  return Flattener(module, options).Run();
}

void SetTrips(int64_t most, std::vector<Region>& regions, std::vector<Loop>& loops) {
  // A region comes after the one around it.
  for (Region& region : regions) {
    if (region.parent < 0) continue;
    region.trips = regions[region.parent].trips;
    if (region.loop < 0) continue;
    Loop& loop = loops[region.loop];
    const int64_t left = most / std::max<int64_t>(1, region.trips);
    if (loop.trips > left) {
      loop.trips = left;
      loop.trips_known = false;
    }
    region.trips *= loop.trips;
  }
}

}  // namespace mallocgame::hlo
