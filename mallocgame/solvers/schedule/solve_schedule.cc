#include "mallocgame/solvers/schedule/solve_schedule.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/base/rng.h"
#include "mallocgame/base/worker_pool.h"
#include "mallocgame/schedule/instruction_order.h"
#include "mallocgame/schedule/list_scheduling.h"
#include "mallocgame/schedule/main_memory.h"
#include "mallocgame/schedule/units.h"
#include "mallocgame/search/anneal.h"
#include "mallocgame/search/game_variants.h"
#include "mallocgame/search/intent.h"
#include "mallocgame/search/starts.h"
#include "mallocgame/solvers/recorder.h"
#include "mallocgame/solvers/registry.h"
#include "mallocgame/solvers/schedule/schedule_moves.h"
#include "mallocgame/solvers/schedule/scheduled_game.h"

namespace mallocgame {
namespace {

// Shares of the limits.
constexpr double kOwnOrder = 0.15;   // placing at the program's own order
constexpr double kLastOrder = 0.15;  // placing at the best order
constexpr double kStarts = 0.05;     // of the time for chains: playing the starts

constexpr Cooling kCooling = {3e-4, 1e-6};
// A game at another order costs as much as so many changes of a placement; each gets about half of
// the time.
constexpr int kPlacementsPerOrder = 16;
// Another order is given a few changes of the placement before it is judged, unless it is worse by
// more than this share.
constexpr int kAdapting = 12;
constexpr double kHopeless = 0.01;
constexpr double kTwoMoves = 0.25;  // how often an order differs by two moves
// A chain that has long been worse than its best by more than this share returns to it.
constexpr int kPatience = 2000;
constexpr double kLost = 0.002;
constexpr double kCloseStart = 1.05;  // Starts are taken up to so many times the best one.
constexpr size_t kChainsWithoutTime = 2;

// Orders within the limit of main memory.
class MemoryLimit {
 public:
  MemoryLimit(const Program& program, std::optional<int64_t> total)
      : needed_(MainMemoryOf(program)),
        packed_(total.value_or(needed_.total_bytes()) - needed_.fixed_bytes) {}

  absl::Status Check(const Program& program) const {
    if (needed_.packed_bytes <= packed_) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "main_bytes: found ", packed_ + needed_.fixed_bytes, ", program '", program.name(),
        "' needs ", needed_.total_bytes(), " in its own order; allowed: that or more"));
  }
  // In time proportional to the program: false is certain.
  bool MayFit(const Program& program) const { return LiveMainBytes(program) <= packed_; }
  bool Fits(const Program& program) const { return MainMemoryOf(program).packed_bytes <= packed_; }

 private:
  const MainMemory needed_;
  const int64_t packed_;
};

// One chain of annealing. Its solution is an order with a placement. Of kPlacementsPerOrder + 1
// moves the last changes the order, and the others the placement.
class OrderNeighbourhood final : public Neighbourhood {
 public:
  OrderNeighbourhood(const ScheduleUnits& units, const PriorityGame& base, const MemoryLimit& limit,
                     ScheduledGame start)
      : units_(units), base_(base), limit_(limit), moves_(units),
        now_(std::make_unique<ScheduledGame>(std::move(start))) {
    Keep();
  }

  // Anneals until `progress`, which rises from 0 to 1, is 1. It is told of evaluations.
  template <class Progress, class Better>
  void Run(uint64_t seed, const Progress& progress, const Better& better) {
    Rng rng(seed, 77);
    int lost = 0;
    AnnealOptions options;
    options.cooling = kCooling;
    options.used = [&](int64_t) { return progress(evaluations_); };
    options.trials_per_look = kPlacementsPerOrder + 1;
    options.tried = [&](bool) {
      ++evaluations_;
      if (!changes_order_) return true;
      if (now_->latency_ps() < best_ps_) {
        Keep();
        better(best_ps_);
      }
      const auto latency_ps = static_cast<double>(now_->latency_ps());
      lost = latency_ps <= static_cast<double>(best_ps_) * (1 + kLost) ? 0 : lost + 1;
      if (lost > kPatience) {
        lost = 0;
        now_ = std::make_unique<ScheduledGame>(Best());
      }
      return true;
    };
    Anneal(*this, options, rng);
  }

  int64_t best_ps() const { return best_ps_; }
  const UnitOrder& best_order() const { return best_order_; }
  ScheduledGame Best() const { return {units_, base_, best_order_, best_decided_}; }
  int64_t orders() const { return orders_; }
  int64_t evaluations() const { return evaluations_; }

  bool empty() const override { return false; }
  bool Propose(Rng& rng) override {
    rng_ = &rng;
    changes_order_ = ++proposed_ % (kPlacementsPerOrder + 1) == 0;
    if (!changes_order_) {
      now_->ProposePlacement(rng);
      return true;
    }
    UnitOrder order = now_->order();
    bool moved = moves_.Propose(now_->place(), order, rng);
    if (rng.Uniform() < kTwoMoves) moved |= moves_.Propose(now_->place(), order, rng);
    if (moved) {
      ++orders_;
      next_ = std::make_unique<ScheduledGame>(units_, base_, std::move(order), now_->Decided());
    }
    return true;
  }
  bool Try(int64_t most) override {
    if (!changes_order_) return now_->TryPlacement(most);
    if (next_ == nullptr || !limit_.MayFit(next_->program())) return false;
    const int64_t worse = most - now_->latency_ps();
    const double hopeless =
        static_cast<double>(most) + kHopeless * static_cast<double>(now_->latency_ps());
    if (static_cast<double>(next_->latency_ps()) < hopeless) {
      for (int i = 0; i < kAdapting && next_->latency_ps() > most; ++i, ++evaluations_) {
        next_->ProposePlacement(*rng_);
        next_->EndPlacement(next_->TryPlacement(next_->latency_ps() + worse));
      }
    }
    return next_->latency_ps() <= most && limit_.Fits(next_->program());
  }
  void Accept() override {
    if (changes_order_) {
      now_ = std::move(next_);
    } else {
      now_->EndPlacement(true);
    }
  }
  void Reject() override {
    next_ = nullptr;
    if (!changes_order_) now_->EndPlacement(false);
  }
  int64_t latency_ps() const override { return now_->latency_ps(); }

 private:
  void Keep() {
    best_ps_ = now_->latency_ps();
    best_order_ = now_->order();
    best_decided_ = now_->Decided();
  }

  const ScheduleUnits& units_;
  const PriorityGame& base_;
  const MemoryLimit& limit_;
  ScheduleMoves moves_;
  std::unique_ptr<ScheduledGame> now_, next_;  // accepted; the trial, of another order
  Rng* rng_ = nullptr;                         // of the last proposal
  bool changes_order_ = false;                 // whether that one does
  int64_t proposed_ = 0, orders_ = 0, evaluations_ = 0;
  UnitOrder best_order_;
  Intent best_decided_;
  int64_t best_ps_ = 0;
};

struct Start {
  std::string name;
  UnitOrder order;
  Intent decided;
  int64_t latency_ps = 0;
};

class ScheduleSolver {
 public:
  ScheduleSolver(const SolveProblem& problem, const SolveLimits& limits,
                 const ScheduleOptions& options)
      : problem_(problem), limits_(limits), options_(options),
        units_(problem.game->shared_program()), recorder_(limits) {}

  absl::StatusOr<ScheduleResult> Run() {
    const Program& program = problem_.game->program();
    if (!units_.has_freedom()) {
      MG_ASSIGN_OR_RETURN(result_.placed, Place(problem_, limits_, 0));
      result_.game = problem_.game;
      result_.has_freedom = false;
      return Finish(std::nullopt);
    }
    const MemoryLimit limit(program, options_.main_bytes);
    MG_RETURN_IF_ERROR(limit.Check(program));
    MG_ASSIGN_OR_RETURN(result_.placed, Place(problem_, Part(kOwnOrder), 0));
    result_.game = problem_.game;
    result_.own_order_ps = result_.placed.report.latency_ps;
    MakeStarts(limit);
    MG_ASSIGN_OR_RETURN(const std::optional<ScheduledGame> best, AnnealOrders(limit));
    return Finish(best);
  }

 private:
  SolveLimits Part(double share) const {
    SolveLimits part = limits_;
    if (limits_.seconds > 0) part.seconds = limits_.seconds * share;
    if (limits_.evaluations > 0) {
      part.evaluations = std::max<int64_t>(
          1, static_cast<int64_t>(static_cast<double>(limits_.evaluations) * share));
    }
    return part;
  }

  absl::StatusOr<SolveResult> Place(const SolveProblem& problem, SolveLimits limits,
                                    uint64_t seed) {
    limits.seed += seed;
    limits.progress = [&](double, int64_t latency_ps) {
      recorder_.Found(latency_ps, options_.solver);
    };
    MG_ASSIGN_OR_RETURN(SolveResult result, Solve(options_.solver, problem, limits));
    recorder_.Count(result.evaluations);
    return result;
  }

  // The program's own order, and those of list schedulers that need no more main memory than
  // allowed; those that are far from the best by their first game are left out.
  void MakeStarts(const MemoryLimit& limit) {
    FoundPlan followed = {.plan = result_.placed.plan};
    if (result_.placed.play) followed.decided = result_.placed.play->decided;
    // Only games with the options of the problem: the base of all orders is one game.
    const std::shared_ptr<const PriorityGame> shown = GameToSearch(*PriorityGameOf(*problem_.game));
    base_ = shown;
    auto starts = PriorityStarts(*shown, &followed, recorder_.deadline().Share(kStarts));
    const auto fits = [&](const GameStart& start) {
      return start.game->options().forbidden == shown->options().forbidden;
    };
    const auto first = std::find_if(starts.begin(), starts.end(), fits);
    if (first != starts.end()) base_ = first->game;
    ScheduledGame own(units_, *base_, first != starts.end() ? first->intent : base_->OpenIntent());
    const Intent decided = own.Decided();
    starts_.push_back({"own", own.order(), decided, own.latency_ps()});
    for (int rule = 0; rule < kListRules; ++rule) {
      const auto list_rule = static_cast<ListRule>(rule);
      ScheduledGame game(units_, *base_, ListSchedule(units_, base_->cost_model(), list_rule),
                         decided);
      ++result_.orders;
      if (!limit.Fits(game.program())) continue;
      starts_.push_back({ListRuleName(list_rule), game.order(), game.Decided(), game.latency_ps()});
    }
    int64_t least = starts_[0].latency_ps;
    for (const Start& start : starts_) least = std::min(least, start.latency_ps);
    const auto far = [&](const Start& start) {
      return static_cast<double>(start.latency_ps) > kCloseStart * static_cast<double>(least);
    };
    starts_.erase(std::remove_if(starts_.begin() + 1, starts_.end(), far), starts_.end());
    std::stable_sort(starts_.begin() + 1, starts_.end(),
                     [](const Start& a, const Start& b) { return a.latency_ps < b.latency_ps; });
  }

  // Anneals one chain for each core, and returns the best game; none if none is better than what is
  // known at the program's own order.
  absl::StatusOr<std::optional<ScheduledGame>> AnnealOrders(const MemoryLimit& limit) {
    const size_t cores = UsableCores();
    const size_t chains =
        limits_.seconds > 0 ? std::max(cores, kChainsWithoutTime) : kChainsWithoutTime;
    const double end = (1 - kLastOrder) * limits_.seconds, begin = recorder_.seconds();
    const int64_t games =
        limits_.evaluations > 0
            ? std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(limits_.evaluations) *
                                                        (1 - kOwnOrder - kLastOrder) /
                                                        static_cast<double>(chains)))
            : 0;
    std::vector<std::unique_ptr<OrderNeighbourhood>> found(chains);
    WorkerPool(static_cast<int>(cores)).Run(static_cast<int>(chains), 1, [&](int c, int) {
      const Start& start = starts_[c % starts_.size()];
      found[c] = std::make_unique<OrderNeighbourhood>(
          units_, *base_, limit, ScheduledGame(units_, *base_, start.order, start.decided));
      // More chains than cores run one after another on each.
      const size_t rounds = (chains + cores - 1) / cores;
      const double from = std::max(begin, recorder_.seconds());
      const double until = std::min(end, from + (end - begin) / static_cast<double>(rounds));
      const auto progress = [&](int64_t evaluations) {
        if (recorder_.deadline().Passed()) return 1.0;
        if (games > 0) {
          const double used = static_cast<double>(evaluations) / static_cast<double>(games);
          if (limits_.seconds <= 0 || used >= 1) return used;
        }
        return limits_.seconds > 0 ? (recorder_.seconds() - from) / std::max(1e-9, until - from)
                                   : 1.0;
      };
      found[c]->Run(MixSeeds(limits_.seed, c), progress, [&](int64_t latency_ps) {
        recorder_.Found(latency_ps, absl::StrCat("schedule from ", start.name));
      });
    });
    const OrderNeighbourhood* best = nullptr;
    for (size_t c = 0; c < chains; ++c) {
      result_.chains.push_back({starts_[c % starts_.size()].name, found[c]->best_ps()});
      result_.orders += found[c]->orders();
      recorder_.Count(found[c]->evaluations());
      if (best == nullptr || found[c]->best_ps() < best->best_ps()) best = found[c].get();
    }
    if (best->best_order() == units_.ProgramOrder()) return std::nullopt;
    return best->Best();
  }

  // Places at the best order, and takes the best of all plans.
  absl::StatusOr<ScheduleResult> Finish(const std::optional<ScheduledGame>& best) {
    std::string failure;  // of the last placement
    result_.order = units_.TicksOf(units_.ProgramOrder());
    if (!result_.has_freedom) {
      result_.own_order_ps = result_.placed.report.latency_ps;
    } else if (best) {
      SolveProblem problem = problem_;
      problem.xla_plan = nullptr;
      // With the caller's own options, whatever the search has played.
      MG_ASSIGN_OR_RETURN(const ReorderedProgram made,
                          Reordered(*units_.shared_program(), best->ticks()));
      problem.game = problem_.game->Reordered(made.program, best->ticks(), made.access_of);
      Plan plan = best->ToPlan();
      MG_ASSIGN_OR_RETURN(SolveResult found, JudgePlan(*problem.game, std::move(plan)));
      found.found_by = "schedule";
      Take(std::move(found), problem.game, best->ticks());
      SolveLimits last = Part(kLastOrder);
      if (limits_.seconds > 0) last.seconds = std::max(0.01, limits_.seconds - recorder_.seconds());
      if (limits_.cancel == nullptr || !*limits_.cancel) {
        absl::StatusOr<SolveResult> placed = Place(problem, last, 1);
        // FailedPrecondition: the solver needs XLA's plan, and there is none of this order.
        if (placed.ok())
          Take(*std::move(placed), problem.game, best->ticks());
        else if (!absl::IsFailedPrecondition(placed.status()))
          failure = absl::StrCat(options_.solver, ": ", placed.status().message());
      }
    }
    SolveResult& placed = result_.placed;
    if (!failure.empty()) placed.failures.push_back(std::move(failure));
    recorder_.Finish(placed);
    return std::move(result_);
  }

  void Take(SolveResult found, const std::shared_ptr<const Game>& game,
            const std::vector<Tick>& order) {
    const Program& program = problem_.game->program();
    if (ValueWithPreloads(program, CostOf(found)) >=
        ValueWithPreloads(program, CostOf(result_.placed)))
      return;
    result_.placed = std::move(found);
    result_.game = game;
    result_.order = order;
  }

  const SolveProblem& problem_;
  const SolveLimits& limits_;
  const ScheduleOptions& options_;
  const ScheduleUnits units_;
  std::shared_ptr<const PriorityGame> base_;  // a priority game at the program's own order
  std::vector<Start> starts_;
  ScheduleResult result_;
  Recorder recorder_;
};

}  // namespace

absl::StatusOr<ScheduleResult> SolveSchedule(const SolveProblem& problem, const SolveLimits& limits,
                                             const ScheduleOptions& options) {
  if (problem.game->options().decides_order()) {
    return absl::InvalidArgumentError(
        "order: found a schedule game, whose players decide the order themselves, allowed: a time "
        "game or a priority game");
  }
  return ScheduleSolver(problem, limits, options).Run();
}

}  // namespace mallocgame
