#include "mallocgame/solvers/planning/polish_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "mallocgame/base/annealing.h"
#include "mallocgame/base/error.h"
#include "mallocgame/base/rng.h"
#include "mallocgame/base/rounding.h"
#include "mallocgame/plan/validate.h"
#include "mallocgame/simulator/simulate.h"

namespace mallocgame {
namespace {

constexpr size_t kMaxSlices = 16;

// Bytes [begin, end) of a residence's buffer, which are free for it from tick `free_from` on.
struct Part {
  int64_t begin, end;
  Tick free_from;
};

class Polishing {
 public:
  Polishing(const Game& game, Plan plan, uint64_t seed, const Deadline& deadline)
      : game_(game), program_(game.program()), deadline_(deadline), rng_(seed, 3),
        plan_(std::move(plan)), fixed_(program_.accesses().size()) {
    for (size_t a = 0; a < fixed_.size(); ++a) fixed_[a] = game.in_main(AccessId(a));
    for (const AccessId id : game.options().required) fixed_[id.index()] = true;
    latency_ = Latency(plan_);
  }

  Polished Run() {
    Passes();
    Plan best = plan_;
    int64_t best_latency = latency_;
    const int64_t last =
        deadline_.has_time_limit() ? std::numeric_limits<int64_t>::max() : 2 * evaluations_;
    // Many changes, in some programs all of them, lead to no plan that could be evaluated.
    for (int64_t change = 0;
         evaluations_ < last && change / kChangesPerEvaluation < last && !plan_.served_by.empty();
         ++change) {
      if (deadline_.Passed()) break;
      temperature_ = kTemperature *
                     std::exp2(-static_cast<double>(change % kCooling) * 8 / kCooling) *
                     static_cast<double>(best_latency);
      RandomChange();
      if (latency_ < best_latency) {
        best_latency = latency_;
        best = plan_;
      }
    }
    return {std::move(best), best_latency, evaluations_};
  }

 private:
  static constexpr double kTemperature =
      3e-4;  // as a share of the latency; it is halved eight times
  static constexpr int64_t kChangesPerEvaluation = 16;
  static constexpr int64_t kCooling = 4000;  // changes, after which the temperature starts again

  void Passes() {
    for (bool improved = true; improved;) {
      improved = false;
      for (size_t r = 0; r < plan_.residences.size(); ++r) {
        if (deadline_.Passed()) return;
        improved |= MoveBegin(ResidenceId(r));
      }
      for (size_t r = plan_.residences.size(); r-- > 0;) {
        if (deadline_.Passed()) return;
        improved |= Remove(ResidenceId(r));
      }
    }
  }

  int64_t Latency(const Plan& plan) {
    ++evaluations_;
    const auto report = Simulate(game_.cost_model(), plan);
    MG_CHECK(report.ok());
    return report->latency_ps;
  }

  // Keeps the trial if it is valid and faster, or, in annealing, accepted as slower; true if it is
  // faster. A trial as fast as the plan draws a number too.
  bool Try(Plan trial) {
    const int64_t latency = Latency(trial);
    const auto worse = static_cast<double>(latency - latency_);
    if (worse >= 0 && (temperature_ <= 0 || !AcceptWorse(worse, temperature_, rng_))) return false;
    if (!Validate(program_, game_.hardware(), trial).ok()) return false;
    latency_ = latency;
    plan_ = std::move(trial);
    return worse < 0;
  }

  void RandomChange() {
    const uint32_t kind = rng_.Below(8);
    if (kind < 3) return Add(AccessId(rng_.Below(plan_.served_by.size())));
    if (plan_.residences.empty()) return;
    const auto r = ResidenceId(rng_.Below(plan_.residences.size()));
    if (kind == 3) {
      Remove(r);
      return;
    }
    const Copy* fill = FillOf(r);
    if (fill == nullptr) return;
    const Copy first = *fill;
    const Tick earliest = EarliestBegin(r, first), latest = LatestEnd(r, first);
    const std::vector<Part> parts = FreeParts(r, first.begin);
    if (earliest < latest && parts.size() <= kMaxSlices)
      Try(Refilled(r, first, parts, RandomTick(earliest, latest)));
  }

  // A tick in [earliest, latest], as often near the end as far from it.
  Tick RandomTick(Tick earliest, Tick latest) {
    const auto range = static_cast<uint32_t>(latest - earliest);
    return latest - static_cast<Tick>(std::min(
                        range, rng_.Below(2) == 0 ? rng_.Below(range + 1) : rng_.Below(16)));
  }

  // Tries a prefetch for a read that main memory serves.
  void Add(AccessId id) {
    const Access& access = program_.access(id);
    const int64_t size = program_.buffer(access.buffer).size_bytes;
    if (access.kind != AccessKind::kRead || plan_.served_by[id.index()].valid() ||
        fixed_[id.index()])
      return;
    const Tick begin = RandomTick(EarliestBegin(access.buffer, access.tick), access.tick);
    const std::optional<int64_t> offset = FreeOffset(begin, access.tick + 1, size);
    if (!offset) return;
    Plan trial = plan_;
    const auto r = ResidenceId(trial.residences.size());
    trial.residences.push_back({access.buffer, *offset, begin, access.tick + 1});
    trial.served_by[id.index()] = r;
    Insert(trial, {CopyKind::kPrefetch, r, begin, access.tick, 0, size, false, -1});
    Try(std::move(trial));
  }

  // The lowest offset at which `size` bytes are free over [begin, end). What instructions reserve
  // is left to Validate.
  std::optional<int64_t> FreeOffset(Tick begin, Tick end, int64_t size) const {
    std::vector<std::pair<int64_t, int64_t>> taken;
    for (const Residence& r : plan_.residences) {
      if (r.begin < end && begin < r.end)
        taken.emplace_back(r.offset, r.offset + program_.buffer(r.buffer).size_bytes);
    }
    std::sort(taken.begin(), taken.end());
    int64_t offset = 0;
    for (const auto& [from, to] : taken) {
      if (from - offset >= size) return offset;
      offset = std::max(offset, RoundUp(to, game_.hardware().alignment_bytes));
    }
    if (offset + size > game_.usable_bytes()) return std::nullopt;
    return offset;
  }

  // Inserts a copy behind those that begin at the same tick.
  static void Insert(Plan& plan, const Copy& copy) {
    plan.copies.insert(
        std::upper_bound(plan.copies.begin(), plan.copies.end(), copy,
                         [](const Copy& a, const Copy& b) { return a.begin < b.begin; }),
        copy);
  }

  // The first copy that fills residence r; null if there is none or it is a preload.
  const Copy* FillOf(ResidenceId r) const {
    const auto fill = std::find_if(plan_.copies.begin(), plan_.copies.end(), [&](const Copy& c) {
      return c.residence == r && c.kind == CopyKind::kPrefetch;
    });
    return fill == plan_.copies.end() || fill->preload ? nullptr : &*fill;
  }

  // Tries the plan without residence r: a prefetch can cost the channel more than it saves.
  bool Remove(ResidenceId r) {
    bool fetched = false;
    for (const Copy& copy : plan_.copies) {
      if (copy.residence != r) continue;
      if (copy.kind == CopyKind::kWriteBack || copy.replaces >= 0) return false;
      fetched = true;
    }
    for (size_t a = 0; a < fixed_.size(); ++a) fetched &= !fixed_[a] || plan_.served_by[a] != r;
    if (!fetched) return false;
    Plan trial = plan_;
    std::erase_if(trial.copies, [&](const Copy& c) { return c.residence == r; });
    trial.residences.erase(trial.residences.begin() + r.value);
    const auto renumber = [&](ResidenceId& id) {
      id = id == r ? ResidenceId() : id > r ? ResidenceId(id.value - 1) : id;
    };
    for (Copy& copy : trial.copies) renumber(copy.residence);
    for (ResidenceId& id : trial.served_by) renumber(id);
    return Try(std::move(trial));
  }

  // Tries other begins of the prefetch that fills residence r. An earlier one uses idle time, a
  // later one lets other copies go first.
  bool MoveBegin(ResidenceId r) {
    const Copy* fill = FillOf(r);
    if (fill == nullptr) return false;
    const Copy first = *fill;
    const Tick earliest = EarliestBegin(r, first), latest = LatestEnd(r, first);
    const std::vector<Part> parts = FreeParts(r, first.begin);
    if (parts.size() > kMaxSlices) return false;

    bool improved = false;
    std::vector<Tick> begins = {earliest, earliest + (first.begin - earliest) / 2,
                                first.begin + (latest - first.begin) / 2};
    for (Tick step : {1, 2, 4, 8}) {
      begins.push_back(first.begin - step);
      begins.push_back(first.begin + step);
    }
    for (Tick begin : begins) {
      if (earliest <= begin && begin <= latest && begin != first.begin)
        improved |= Try(Refilled(r, first, parts, begin));
    }
    return improved;
  }

  // The earliest begin of a prefetch: its value must lie in main memory by then, and its window
  // must lie in one segment.
  Tick EarliestBegin(ResidenceId r, const Copy& fill) const {
    return EarliestBegin(
        fill.replaces < 0
            ? plan_.residences[r.index()].buffer
            : program_.accesses()[program_.instruction(fill.replaces).first_access].buffer,
        fill.begin);
  }
  Tick EarliestBegin(BufferId from, Tick begin) const {
    Tick earliest = program_.segment_begin(std::min(begin, program_.ticks() - 1));
    for (AccessId id : program_.accesses_of(from)) {
      const Access& access = program_.access(id);
      if (access.tick >= begin) break;
      if (access.kind != AccessKind::kRead) earliest = std::max(earliest, access.tick + 1);
    }
    for (const Copy& copy : plan_.copies) {
      if (copy.kind == CopyKind::kWriteBack &&
          plan_.residences[copy.residence.index()].buffer == from && copy.end <= begin) {
        earliest = std::max(earliest, copy.end);
      }
    }
    return std::min(earliest, begin);
  }

  // The parts of residence r's bytes, each with the tick since which it has been free at `begin`.
  std::vector<Part> FreeParts(ResidenceId r, Tick begin) const {
    const Residence& own = plan_.residences[r.index()];
    const int64_t size = program_.buffer(own.buffer).size_bytes;
    std::vector<int64_t> cuts = {0, size};
    std::vector<std::pair<const Residence*, int64_t>> before;
    for (size_t i = 0; i < plan_.residences.size(); ++i) {
      const Residence& other = plan_.residences[i];
      const int64_t from = other.offset - own.offset,
                    to = from + program_.buffer(other.buffer).size_bytes;
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
        if (from <= part.begin && part.end <= to)
          part.free_from = std::max(part.free_from, std::min(other->end, begin));
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
  Plan Refilled(ResidenceId r, const Copy& first, const std::vector<Part>& parts,
                Tick begin) const {
    Plan plan = plan_;
    std::erase_if(plan.copies,
                  [&](const Copy& c) { return c.residence == r && c.kind == CopyKind::kPrefetch; });
    std::vector<Copy> slices;
    for (const Part& part : parts) {
      Copy slice = first;
      slice.begin = std::max(begin, part.free_from);
      slice.end = std::max(slice.begin, LatestEnd(r, first));
      slice.part_begin = part.begin;
      slice.part_end = part.end;
      if (!slices.empty() && slices.back().begin == slice.begin &&
          slices.back().part_end == slice.part_begin) {
        slices.back().part_end = slice.part_end;
      } else {
        slices.push_back(slice);
      }
    }
    plan.residences[r.index()].begin = slices[0].begin;
    for (const Copy& slice : slices) {
      plan.residences[r.index()].begin = std::min(plan.residences[r.index()].begin, slice.begin);
      Insert(plan, slice);
    }
    return plan;
  }

  // The tick that needs the bytes: that of the first access that the residence serves, other than
  // the write of a replaced copy.
  Tick LatestEnd(ResidenceId r, const Copy& fill) const {
    for (AccessId id : program_.accesses_of(plan_.residences[r.index()].buffer)) {
      if (plan_.served_by[id.index()] == r && program_.access(id).tick != fill.replaces)
        return program_.access(id).tick;
    }
    return fill.end;
  }

  const Game& game_;
  const Program& program_;
  const Deadline& deadline_;
  Rng rng_;
  Plan plan_;
  std::vector<bool> fixed_;  // accesses that the game's options forbid or require
  int64_t latency_ = 0;
  double temperature_ = 0;
  int64_t evaluations_ = 0;
};

}  // namespace

Polished PolishPlan(const Game& game, Plan plan, uint64_t seed, const Deadline& deadline) {
  return Polishing(game, std::move(plan), seed, deadline).Run();
}

}  // namespace mallocgame
