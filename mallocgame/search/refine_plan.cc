#include "mallocgame/search/refine_plan.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "mallocgame/base/error.h"
#include "mallocgame/base/rng.h"
#include "mallocgame/plan/offsets.h"
#include "mallocgame/plan/validate.h"
#include "mallocgame/search/anneal.h"
#include "mallocgame/search/neighbourhood.h"
#include "mallocgame/simulator/simulate.h"

namespace mallocgame {
namespace {

constexpr size_t kMaxSlices = 16;
constexpr Cooling kRefineCooling = {3e-4, 3e-4 / 256};
constexpr int64_t kTrialsOfACooling = 4000;  // then it starts again
// Many moves, in some programs all of them, lead to no plan that could be evaluated.
constexpr int64_t kTrialsPerEvaluation = 16;

// Bytes [begin, end) of a residence's buffer, which are free for it from tick `free_from` on.
struct Part {
  int64_t begin, end;
  Tick free_from;
};

class PlanSearch final : public Neighbourhood {
 public:
  PlanSearch(const Game& game, Plan plan)
      : game_(game), program_(game.program()), plan_(std::move(plan)),
        fixed_(program_.accesses().size()) {
    for (size_t a = 0; a < fixed_.size(); ++a) fixed_[a] = game.in_main(AccessId(a));
    latency_ = Latency(plan_);
  }

  const Plan& plan() const { return plan_; }
  int64_t evaluations() const { return evaluations_; }

  // Tries other begins of each prefetch, and to remove it, until that improves nothing.
  void Descend(const Deadline& deadline) {
    for (bool improved = true; improved;) {
      improved = false;
      for (size_t r = 0; r < plan_.residences.size(); ++r) {
        if (deadline.Passed()) return;
        improved |= MoveBegin(ResidenceId(r));
      }
      for (size_t r = plan_.residences.size(); r-- > 0;) {
        if (deadline.Passed()) return;
        trial_ = Without(ResidenceId(r));
        improved |= KeepIfFaster();
      }
    }
  }

  bool empty() const override { return plan_.served_by.empty(); }
  void Propose(Rng& rng) override {
    trial_.reset();
    const uint32_t kind = rng.Below(8);
    if (kind < 3) {
      trial_ = With(AccessId(rng.Below(plan_.served_by.size())), rng);
      return;
    }
    if (plan_.residences.empty()) return;
    const auto r = ResidenceId(rng.Below(plan_.residences.size()));
    trial_ = kind == 3 ? Without(r) : Restarted(r, rng);
  }
  bool Try(int64_t most) override {
    if (!trial_) return false;
    trial_ps_ = Latency(*trial_);
    return trial_ps_ <= most && Validate(program_, game_.hardware(), *trial_).ok();
  }
  void Accept() override {
    plan_ = *std::move(trial_);
    latency_ = trial_ps_;
    trial_.reset();
  }
  void Reject() override { trial_.reset(); }
  int64_t latency_ps() const override { return latency_; }

 private:
  int64_t Latency(const Plan& plan) {
    ++evaluations_;
    const auto report = Simulate(game_.cost_model(), plan);
    MG_CHECK(report.ok());
    return report->latency_ps;
  }

  bool KeepIfFaster() {
    const bool faster = Try(latency_ - 1);
    if (faster) {
      Accept();
    } else {
      Reject();
    }
    return faster;
  }

  // The prefetch of residence r begins at another tick.
  std::optional<Plan> Restarted(ResidenceId r, Rng& rng) const {
    const Copy* fill = FillOf(r);
    if (fill == nullptr) return std::nullopt;
    const Tick earliest = EarliestBegin(r, *fill), latest = LatestEnd(r, *fill);
    const std::vector<Part> parts = FreeParts(r, fill->begin);
    if (earliest >= latest || parts.size() > kMaxSlices) return std::nullopt;
    return Refilled(r, *fill, parts, RandomTick(earliest, latest, rng));
  }

  // A tick in [earliest, latest], as often near the end as far from it.
  static Tick RandomTick(Tick earliest, Tick latest, Rng& rng) {
    const auto range = static_cast<uint32_t>(latest - earliest);
    return latest - static_cast<Tick>(
                        std::min(range, rng.Below(2) == 0 ? rng.Below(range + 1) : rng.Below(16)));
  }

  // With a prefetch for a read that main memory serves.
  std::optional<Plan> With(AccessId id, Rng& rng) const {
    const Access& access = program_.access(id);
    const int64_t size = program_.buffer(access.buffer).size_bytes;
    if (access.kind != AccessKind::kRead || plan_.served_by[id.index()].valid() ||
        fixed_[id.index()])
      return std::nullopt;
    const Tick begin = RandomTick(EarliestBegin(access.buffer, access.tick), access.tick, rng);
    const std::optional<int64_t> offset = FreeOffset(begin, access.tick + 1, size);
    if (!offset) return std::nullopt;
    Plan trial = plan_;
    const auto r = ResidenceId(trial.residences.size());
    trial.residences.push_back({access.buffer, *offset, begin, access.tick + 1});
    trial.served_by[id.index()] = r;
    Insert(trial, {CopyKind::kPrefetch, r, begin, access.tick, 0, size, false, -1});
    return trial;
  }

  // The lowest offset at which `size` bytes are free over [begin, end). What instructions reserve
  // is left to Validate.
  std::optional<int64_t> FreeOffset(Tick begin, Tick end, int64_t size) const {
    std::vector<std::pair<int64_t, int64_t>> taken;
    for (const Residence& r : plan_.residences) {
      if (r.begin < end && begin < r.end)
        taken.emplace_back(r.offset, r.offset + program_.buffer(r.buffer).size_bytes);
    }
    const int64_t offset =
        LowestFreeOffset(std::move(taken), size, 0, game_.hardware().alignment_bytes);
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

  // Without residence r: a prefetch can cost the channel more than it saves.
  std::optional<Plan> Without(ResidenceId r) const {
    bool fetched = false;
    for (const Copy& copy : plan_.copies) {
      if (copy.residence != r) continue;
      if (copy.kind == CopyKind::kEviction || copy.replaces >= 0) return std::nullopt;
      fetched = true;
    }
    for (size_t a = 0; a < fixed_.size(); ++a) fetched &= !fixed_[a] || plan_.served_by[a] != r;
    if (!fetched) return std::nullopt;
    Plan trial = plan_;
    std::erase_if(trial.copies, [&](const Copy& c) { return c.residence == r; });
    trial.residences.erase(trial.residences.begin() + r.value);
    const auto renumber = [&](ResidenceId& id) {
      id = id == r ? ResidenceId() : id > r ? ResidenceId(id.value - 1) : id;
    };
    for (Copy& copy : trial.copies) renumber(copy.residence);
    for (ResidenceId& id : trial.served_by) renumber(id);
    return trial;
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
      if (begin < earliest || latest < begin || begin == first.begin) continue;
      trial_ = Refilled(r, first, parts, begin);
      improved |= KeepIfFaster();
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
      if (copy.kind == CopyKind::kEviction &&
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
  Plan plan_;
  std::vector<bool> fixed_;  // accesses that the game's options forbid or require
  std::optional<Plan> trial_;
  int64_t latency_ = 0, trial_ps_ = 0;
  int64_t evaluations_ = 0;
};

}  // namespace

FoundPlan RefinePlan(const Game& game, Plan plan, uint64_t seed, const Deadline& deadline) {
  PlanSearch search(game, std::move(plan));
  search.Descend(deadline);
  Plan best = search.plan();
  int64_t best_ps = search.latency_ps();
  const int64_t last =
      deadline.has_time_limit() ? std::numeric_limits<int64_t>::max() : 2 * search.evaluations();
  Rng rng(seed, 3);
  AnnealOptions options;
  options.cooling = kRefineCooling;
  options.used = [&](int64_t trials) {
    if (deadline.Passed() || search.evaluations() >= last || trials / kTrialsPerEvaluation >= last)
      return 1.0;
    return static_cast<double>(trials % kTrialsOfACooling) / kTrialsOfACooling;
  };
  options.better = [&] {
    best = search.plan();
    best_ps = search.latency_ps();
  };
  Anneal(search, options, rng);
  return {std::move(best), best_ps, search.evaluations()};
}

}  // namespace mallocgame
