// Simulated annealing over the wishes of an Arranger.
#include "mallocgame/solvers/planning/arrange_plan.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "mallocgame/base/annealing.h"
#include "mallocgame/base/error.h"
#include "mallocgame/base/rng.h"
#include "mallocgame/plan/validate.h"
#include "mallocgame/simulator/simulate.h"
#include "mallocgame/solvers/planning/arranger.h"

namespace mallocgame {
namespace {

constexpr double kHot = 3e-4, kCold = 1e-6;  // the first and last temperature, of the latency
constexpr int64_t kEvaluationsPerLook = 16;  // evaluations for each look at the clock
constexpr int64_t kSmallBytes = 16 << 10;    // smaller buffers are seldom worth a change

class ArrangementAnnealing {
 public:
  ArrangementAnnealing(const Game& game, const Plan& plan, uint64_t seed)
      : program_(game.program()), arranger_(game, plan), cooling_{kHot, kCold}, rng_(seed, 4) {
    // Buffers that must be in fast memory keep their wishes and choose first.
    std::vector<bool> required(program_.buffers().size());
    for (const AccessId id : game.options().required)
      required[program_.access(id).buffer.index()] = true;
    for (const AccessId id : arranger_.accesses()) {
      const BufferId buffer = program_.access(id).buffer;
      if (required[buffer.index()]) {
        arranger_.wishes()[id.index()].rank = -1;
        continue;
      }
      all_.push_back(id);
      if (program_.buffer(buffer).size_bytes >= kSmallBytes) large_.push_back(id);
    }
    if (large_.empty()) large_ = all_;
    for (const AccessId id : large_) {
      for (const AccessId other : program_.accesses_of(program_.access(id).buffer)) {
        if (program_.access(other).kind != AccessKind::kWrite &&
            program_.access(other).kind != AccessKind::kUpdate)
          continue;
        written_.push_back(id);
        break;
      }
    }
    latency_ = arranger_.Arrange();
    KeepPlaces();
  }

  struct Outcome {
    Plan plan;  // of the best arrangement seen
    int64_t evaluations = 0;
  };
  Outcome Run(const std::function<double(int64_t)>& progress) {
    Choices best = Current();
    int64_t best_latency = latency_;
    const auto scale = static_cast<double>(latency_);
    double temperature = 0;
    int64_t evaluations = 1;
    for (; !large_.empty(); ++evaluations) {
      if (evaluations % kEvaluationsPerLook == 1) {
        const double used = progress(evaluations);
        if (used >= 1) break;
        temperature = cooling_.At(scale, used);
      }
      Change();
      const int64_t latency = arranger_.Arrange();
      const auto worse = static_cast<double>(latency - latency_);
      if (worse > 0 && !AcceptWorse(worse, temperature, rng_)) {
        TakeBack();
        continue;
      }
      latency_ = latency;
      KeepPlaces();
      if (latency_ < best_latency) {
        best_latency = latency_;
        best = Current();
      }
    }
    arranger_.wishes() = std::move(best.wishes);
    arranger_.preloaded() = std::move(best.preloaded);
    arranger_.Arrange();
    return {arranger_.ToPlan(), evaluations};
  }

 private:
  struct Choices {
    std::vector<Wish> wishes;
    std::vector<BufferId> preloaded;
  };

  Choices Current() { return {arranger_.wishes(), arranger_.preloaded()}; }

  Wish& Changed(AccessId id) {
    changed_.emplace_back(id, arranger_.wishes()[id.index()]);
    return arranger_.wishes()[id.index()];
  }

  void TakeBack() {
    for (size_t i = changed_.size(); i-- > 0;)
      arranger_.wishes()[changed_[i].first.index()] = changed_[i].second;
    changed_.clear();
    arranger_.preloaded() = preloaded_;
  }

  // A residence keeps its offset unless another one takes the bytes first.
  void KeepPlaces() {
    for (const auto& [access, offset] : arranger_.Offsets())
      arranger_.wishes()[access.index()].offset = offset;
    changed_.clear();
    preloaded_ = arranger_.preloaded();
  }

  AccessId AnyAccess() {
    const std::vector<AccessId>& from = rng_.Below(8) == 0 ? all_ : large_;
    return rng_.Pick(from);
  }

  float AnyRank() { return static_cast<float>(rng_.Uniform()); }

  // Half of the leads are short.
  Tick AnyLead(AccessId id) {
    const Tick tick = program_.access(id).tick;
    const uint32_t most = rng_.Below(2) == 0 ? 16 : static_cast<uint32_t>(tick);
    return std::min(tick, static_cast<Tick>(rng_.Below(most + 1)));
  }

  void Change() {
    const AccessId id = AnyAccess();
    const uint32_t kind = rng_.Below(16);
    if (!written_.empty() && rng_.Below(16) == 0) {
      Changed(rng_.Pick(written_)).late ^= true;
    } else if (kind < 5) {
      Toggle(id);
    } else if (kind < 8) {
      Changed(id).kept ^= true;
    } else if (kind < 10) {
      Changed(id).lead = AnyLead(id);
    } else if (kind < 12) {
      Changed(id).rank = AnyRank();
    } else if (kind < 13) {
      Move(id);
    } else if (kind < 15) {
      WholeBuffer(id);
    } else {
      Preload(program_.access(id).buffer);
    }
  }

  void Toggle(AccessId id) {
    Wish& wish = Changed(id);
    wish.fast ^= true;
    if (!wish.fast) return;
    wish = {true, rng_.Below(2) == 0, AnyRank(), AnyLead(id), -1, rng_.Below(4) == 0};
  }

  // The residence gets the offset of another one, or any offset, and chooses among the first.
  void Move(AccessId id) {
    Wish& wish = Changed(id);
    wish.rank = AnyRank() / 16;
    wish.offset = rng_.Below(2) == 0 ? -1 : arranger_.wishes()[AnyAccess().index()].offset;
  }

  void WholeBuffer(AccessId id) {
    const uint32_t kind = rng_.Below(3);
    const float rank = AnyRank();
    for (const AccessId other : program_.accesses_of(program_.access(id).buffer)) {
      if (other < id && rng_.Below(2) == 0) continue;
      Wish& wish = Changed(other);
      wish.fast = kind > 0;
      wish.kept = kind > 1;
      if (wish.fast) wish.rank = rank;
    }
  }

  void Preload(BufferId buffer) {
    if (arranger_.max_preloads() == 0 || !arranger_.CanBePreloaded(buffer)) return;
    std::vector<BufferId>& preloaded = arranger_.preloaded();
    if (std::find(preloaded.begin(), preloaded.end(), buffer) != preloaded.end()) {
      std::erase(preloaded, buffer);
      return;
    }
    if (preloaded.size() >= arranger_.max_preloads()) {
      rng_.Pick(preloaded) = buffer;
    } else {
      preloaded.push_back(buffer);
    }
    Wish& wish = Changed(program_.accesses_of(buffer)[0]);
    wish.fast = true;
    wish.rank = AnyRank() / 16;
  }

  const Program& program_;
  Arranger arranger_;
  Cooling cooling_;
  Rng rng_;
  std::vector<AccessId> all_, large_;  // accesses whose wishes may be changed
  std::vector<AccessId> written_;      // those of large_ whose buffers are written
  int64_t latency_ = 0;
  std::vector<std::pair<AccessId, Wish>> changed_;  // wishes of this change, as they were before it
  std::vector<BufferId> preloaded_;                 // as it was before this change
};

}  // namespace

Arranged ArrangePlan(const Game& game, const Plan& plan, uint64_t seed,
                     const std::function<double(int64_t)>& progress) {
  const auto latency_of = [&game](const Plan& judged) {
    const auto report = Simulate(game.cost_model(), judged);
    MG_CHECK(report.ok());
    return report->latency_ps;
  };
  auto [found, evaluations] = ArrangementAnnealing(game, plan, seed).Run(progress);
  Arranged arranged = {plan, latency_of(plan), evaluations};
  const int64_t latency_ps = latency_of(found);
  if (Validate(game.program(), game.hardware(), plan).ok()) {
    const auto lost = [&plan, &found = found](AccessId id) {
      return plan.served_by[id.index()].valid() && !found.served_by[id.index()].valid();
    };
    const std::vector<AccessId>& required = game.options().required;
    if (latency_ps >= arranged.latency_ps || std::any_of(required.begin(), required.end(), lost))
      return arranged;
  }
  if (Validate(game.program(), game.hardware(), found).ok()) {
    arranged.plan = std::move(found);
    arranged.latency_ps = latency_ps;
  }
  return arranged;
}

}  // namespace mallocgame
