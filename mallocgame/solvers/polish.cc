#include "mallocgame/solvers/polish.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "mallocgame/base/error.h"
#include "mallocgame/plan/validate.h"
#include "mallocgame/simulator/simulate.h"

namespace mallocgame {
namespace {

constexpr size_t kMaxSlices = 16;

// Bytes [begin, end) of a residence's buffer, free for it from tick `free_from` on.
struct Part {
  int64_t begin, end;
  Tick free_from;
};

class Polishing {
 public:
  Polishing(const Game& game, Plan plan) : game_(game), program_(game.program()), plan_(std::move(plan)) {
    latency_ = Latency(plan_);
  }

  Polished Run(const std::function<bool()>& interrupted) {
    for (bool improved = true; improved;) {
      improved = false;
      for (size_t r = 0; r < plan_.residences.size(); ++r) {
        if (interrupted && interrupted()) return {std::move(plan_), latency_, evaluations_};
        improved |= BeginEarlier(ResidenceId(static_cast<int64_t>(r)));
      }
      for (size_t r = plan_.residences.size(); r-- > 0;) {
        if (interrupted && interrupted()) return {std::move(plan_), latency_, evaluations_};
        improved |= Remove(ResidenceId(static_cast<int64_t>(r)));
      }
    }
    return {std::move(plan_), latency_, evaluations_};
  }

 private:
  int64_t Latency(const Plan& plan) {
    ++evaluations_;
    const auto report = Simulate(game_.cost_model(), program_, game_.hardware(), plan);
    MG_CHECK(report.ok());
    return report->latency_ps;
  }

  // Keeps the trial if it is valid and faster.
  bool Try(Plan trial) {
    const int64_t latency = Latency(trial);
    if (latency >= latency_ || !Validate(program_, game_.hardware(), trial).ok()) return false;
    latency_ = latency;
    plan_ = std::move(trial);
    return true;
  }

  // A prefetch can cost the channel more than it saves.
  bool Remove(ResidenceId r) {
    bool fetched = false;
    for (const Copy& copy : plan_.copies) {
      if (copy.residence != r) continue;
      if (copy.kind == CopyKind::kWriteBack || copy.replaces >= 0) return false;
      fetched = true;
    }
    if (!fetched) return false;
    Plan trial = plan_;
    std::erase_if(trial.copies, [&](const Copy& c) { return c.residence == r; });
    trial.residences.erase(trial.residences.begin() + r.value);
    const auto renumber = [&](ResidenceId& id) { id = id == r ? ResidenceId() : id > r ? ResidenceId(id.value - 1) : id; };
    for (Copy& copy : trial.copies) renumber(copy.residence);
    for (ResidenceId& id : trial.served_by) renumber(id);
    return Try(std::move(trial));
  }

  // Tries earlier begins of the prefetch that fills residence r.
  bool BeginEarlier(ResidenceId r) {
    std::vector<size_t> fills;
    for (size_t c = 0; c < plan_.copies.size(); ++c) {
      if (plan_.copies[c].residence == r && plan_.copies[c].kind == CopyKind::kPrefetch) fills.push_back(c);
    }
    if (fills.empty() || plan_.copies[fills[0]].preload) return false;
    const Copy first = plan_.copies[fills[0]];
    const Tick earliest = EarliestBegin(r, first);
    if (earliest >= first.begin) return false;
    const std::vector<Part> parts = FreeParts(r, first.begin);
    if (parts.size() > kMaxSlices) return false;

    bool improved = false;
    for (Tick begin : {earliest, earliest + (first.begin - earliest) / 2, first.begin - 4, first.begin - 2, first.begin - 1}) {
      if (begin < earliest || begin >= first.begin) continue;
      improved |= Try(Refilled(r, first, parts, begin));
    }
    return improved;
  }

  // The value that the prefetch takes must lie in main memory, and its window in one segment.
  Tick EarliestBegin(ResidenceId r, const Copy& fill) const {
    const BufferId from = fill.replaces < 0 ? plan_.residences[r.index()].buffer
                                            : program_.accesses()[static_cast<size_t>(program_.instruction(fill.replaces).first_access)].buffer;
    Tick earliest = program_.segment_begin(std::min(fill.begin, program_.ticks() - 1));
    for (AccessId id : program_.accesses_of(from)) {
      const Access& access = program_.access(id);
      if (access.tick >= fill.begin) break;
      if (access.kind != AccessKind::kRead) earliest = std::max(earliest, access.tick + 1);
    }
    for (const Copy& copy : plan_.copies) {
      if (copy.kind == CopyKind::kWriteBack && plan_.residences[copy.residence.index()].buffer == from && copy.end <= fill.begin) {
        earliest = std::max(earliest, copy.end);
      }
    }
    return earliest;
  }

  // Since when each part of residence r's bytes has been free before tick `begin`.
  std::vector<Part> FreeParts(ResidenceId r, Tick begin) const {
    const Residence& own = plan_.residences[r.index()];
    const int64_t size = program_.buffer(own.buffer).size_bytes;
    std::vector<int64_t> cuts = {0, size};
    std::vector<std::pair<const Residence*, int64_t>> before;
    for (size_t i = 0; i < plan_.residences.size(); ++i) {
      const Residence& other = plan_.residences[i];
      const int64_t from = other.offset - own.offset, to = from + program_.buffer(other.buffer).size_bytes;
      if (i == r.index() || other.begin >= begin || to <= 0 || from >= size) continue;
      before.emplace_back(&other, from);
      cuts.push_back(std::clamp<int64_t>(from, 0, size));
      cuts.push_back(std::clamp<int64_t>(to, 0, size));
    }
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    std::vector<Part> parts;
    for (size_t i = 0; i + 1 < cuts.size(); ++i) {
      Part part = {cuts[i], cuts[i + 1], 0};
      for (const auto& [other, from] : before) {
        const int64_t to = from + program_.buffer(other->buffer).size_bytes;
        if (from <= part.begin && part.end <= to) part.free_from = std::max(part.free_from, std::min(other->end, begin));
      }
      if (!parts.empty() && parts.back().free_from == part.free_from) {
        parts.back().end = part.end;
      } else {
        parts.push_back(part);
      }
    }
    return parts;
  }

  // The plan with residence r filled from `begin` on, each part as soon as it is free.
  Plan Refilled(ResidenceId r, const Copy& first, const std::vector<Part>& parts, Tick begin) const {
    Plan plan = plan_;
    std::erase_if(plan.copies, [&](const Copy& c) { return c.residence == r && c.kind == CopyKind::kPrefetch; });
    std::vector<Copy> slices;
    for (const Part& part : parts) {
      Copy slice = first;
      slice.begin = std::max(begin, part.free_from);
      slice.end = std::max(slice.begin, LatestEnd(r, first));
      slice.part_begin = part.begin;
      slice.part_end = part.end;
      if (!slices.empty() && slices.back().begin == slice.begin && slices.back().part_end == slice.part_begin) {
        slices.back().part_end = slice.part_end;
      } else {
        slices.push_back(slice);
      }
    }
    plan.residences[r.index()].begin = first.begin;
    for (const Copy& slice : slices) {
      plan.residences[r.index()].begin = std::min(plan.residences[r.index()].begin, slice.begin);
      plan.copies.insert(std::upper_bound(plan.copies.begin(), plan.copies.end(), slice,
                                          [](const Copy& a, const Copy& b) { return a.begin < b.begin; }),
                         slice);
    }
    return plan;
  }

  // When the bytes are needed: the first access that the residence serves, a replaced copy's own write aside.
  Tick LatestEnd(ResidenceId r, const Copy& fill) const {
    for (AccessId id : program_.accesses_of(plan_.residences[r.index()].buffer)) {
      if (plan_.served_by[id.index()] == r && program_.access(id).tick != fill.replaces) return program_.access(id).tick;
    }
    return fill.end;
  }

  const Game& game_;
  const Program& program_;
  Plan plan_;
  int64_t latency_ = 0;
  int64_t evaluations_ = 0;
};

}  // namespace

Polished PolishPlan(const Game& game, Plan plan, const std::function<bool()>& interrupted) {
  return Polishing(game, std::move(plan)).Run(interrupted);
}

}  // namespace mallocgame
