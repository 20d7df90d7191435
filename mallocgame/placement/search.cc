#include "mallocgame/placement/search.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "mallocgame/base/error.h"
#include "mallocgame/base/rng.h"
#include "mallocgame/base/worker_pool.h"
#include "mallocgame/placement/best_map.h"
#include "mallocgame/placement/boltzmann.h"
#include "mallocgame/search/anneal.h"

namespace mallocgame {
namespace {

// Evaluates maps within the budget and keeps the best one. A map counts if nothing of it moved; on
// a Game every map counts.
class Evaluator {
 public:
  Evaluator(const PlacementProblem& problem, const PlacementSearchOptions& options)
      : problem_(problem), options_(options), best_(problem) {}

  const PlacementProblem& problem() const { return problem_; }
  uint8_t slowest() const { return static_cast<uint8_t>(problem_.levels() - 1); }
  int64_t left() const { return stopped_ ? 0 : options_.evaluations - best_.result().evaluations; }

  // Evaluates as many of `maps` as the budget allows, in order.
  std::vector<PlacementOutcome> Evaluate(absl::Span<const uint8_t> maps) {
    const size_t size = problem_.map_size();
    const size_t count = std::min(left(), static_cast<int64_t>(maps.size() / size));
    std::vector<PlacementOutcome> outcomes(count);
    MG_CHECK(
        problem_.EvaluateMany(maps.first(count * size), absl::MakeSpan(outcomes), options_.threads)
            .ok());
    for (size_t i = 0; i < count; ++i) best_.Offer(maps.subspan(i * size, size), outcomes[i]);
    if (options_.progress && !options_.progress(best_.result().evaluations)) stopped_ = true;
    return outcomes;
  }

  const PlacementSearchResult& found() const { return best_.result(); }

 private:
  const PlacementProblem& problem_;
  const PlacementSearchOptions& options_;
  bool stopped_ = false;
  BestMap best_;
};

PlacementMap RandomMap(const PlacementProblem& problem, Rng& rng) {
  PlacementMap map(problem.map_size());
  for (uint8_t& level : map) level = static_cast<uint8_t>(rng.Below(problem.levels()));
  return map;
}

void SearchRandom(Evaluator& evaluator, Rng& rng) {
  while (evaluator.left() > 0) {
    std::vector<uint8_t> maps;
    for (int i = 0; i < 256; ++i) {
      const PlacementMap map = RandomMap(evaluator.problem(), rng);
      maps.insert(maps.end(), map.begin(), map.end());
    }
    evaluator.Evaluate(maps);
  }
}

void SearchGreedyDp(Evaluator& evaluator, Rng& rng) {
  const size_t size = evaluator.problem().map_size();
  const int levels = evaluator.problem().levels();
  PlacementMap map(size, evaluator.slowest());
  while (evaluator.left() > 0) {
    bool changed = false;
    for (size_t node = 0; node < size / 2 && evaluator.left() > 0; ++node) {
      std::vector<uint8_t> maps;
      for (int pair = 0; pair < levels * levels; ++pair) {
        maps.insert(maps.end(), map.begin(), map.end());
        maps[maps.size() - size + 2 * node] = static_cast<uint8_t>(pair / levels);
        maps[maps.size() - size + 2 * node + 1] = static_cast<uint8_t>(pair % levels);
      }
      const std::vector<PlacementOutcome> outcomes = evaluator.Evaluate(maps);
      if (outcomes.empty()) return;
      const size_t before = map[2 * node] * levels + map[2 * node + 1];
      const auto best =
          std::max_element(outcomes.begin(), outcomes.end(),
                           [](const auto& a, const auto& b) { return a.reward < b.reward; });
      if (before < outcomes.size() && best->reward <= outcomes[before].reward) continue;
      const auto chosen = maps.begin() + (best - outcomes.begin()) * static_cast<ptrdiff_t>(size);
      map.assign(chosen, chosen + static_cast<ptrdiff_t>(size));
      changed = true;
    }
    if (!changed) map = RandomMap(evaluator.problem(), rng);
  }
}

// The best members of all generations so far are parents. A child is crossed from two of them,
// mutated, draws its map, and leans towards what it drew, so that its own children look around it.
void SearchEvolution(Evaluator& evaluator, Rng& rng) {
  constexpr size_t kChildren = 16, kParents = 4;
  constexpr double kRedrawn = 4;
  struct Member {
    Boltzmann genes;
    double reward;
  };
  const size_t size = evaluator.problem().map_size();
  std::vector<Member> members;  // the best first
  while (evaluator.left() > 0) {
    std::vector<Boltzmann> children;
    std::vector<uint8_t> maps;
    for (size_t i = 0; i < kChildren; ++i) {
      if (members.empty()) {
        children.push_back(Boltzmann::Random(size, evaluator.problem().levels(), rng));
      } else {
        const auto parent = [&]() -> const Boltzmann& { return rng.Pick(members).genes; };
        children.push_back(Boltzmann::Cross(parent(), parent(), rng));
        children.back().Mutate(rng);
      }
      children.back().Draw(rng, &maps);
    }
    const std::vector<PlacementOutcome> outcomes = evaluator.Evaluate(maps);
    std::vector<Member> next;
    for (size_t i = 0; i < outcomes.size(); ++i) {
      children[i].LeanTowards(absl::MakeConstSpan(maps).subspan(i * size, size), kRedrawn);
      next.push_back({std::move(children[i]), outcomes[i].reward});
    }
    // Children stand before the parents that they only equal, so that the population moves on.
    next.insert(next.end(), members.begin(), members.end());
    members = std::move(next);
    std::stable_sort(members.begin(), members.end(),
                     [](const Member& a, const Member& b) { return a.reward > b.reward; });
    if (members.size() > kParents) members.erase(members.begin() + kParents, members.end());
  }
}

// From the compiler's map. A move draws the levels of up to three tensors anew, and rectifies the
// map.
class MapNeighbourhood final : public Neighbourhood {
 public:
  explicit MapNeighbourhood(Evaluator& evaluator)
      : evaluator_(evaluator),
        map_(*evaluator.problem().Rectify(evaluator.problem().baseline_map())),
        latency_ps_(evaluator.Evaluate(map_).front().latency_ps) {}

  bool empty() const override { return map_.empty(); }
  bool Propose(Rng& rng) override {
    next_ = map_;
    for (uint32_t changes = 1 + rng.Below(3); changes > 0; --changes)
      rng.Pick(next_) = static_cast<uint8_t>(rng.Below(evaluator_.problem().levels()));
    next_ = *evaluator_.problem().Rectify(next_);
    return true;
  }
  bool Try(int64_t most) override {
    next_ps_ = evaluator_.Evaluate(next_).front().latency_ps;
    return next_ps_ <= most;
  }
  void Accept() override {
    map_ = std::move(next_);
    latency_ps_ = next_ps_;
  }
  void Reject() override {}
  int64_t latency_ps() const override { return latency_ps_; }

 private:
  Evaluator& evaluator_;
  PlacementMap map_, next_;
  int64_t latency_ps_, next_ps_ = 0;
};

void SearchAnneal(Evaluator& evaluator, Rng& rng) {
  const auto budget = static_cast<double>(evaluator.left());
  MapNeighbourhood maps(evaluator);
  AnnealOptions options;
  options.cooling = {.first = 0.004, .last = 0, .linear = true};
  options.used = [&](int64_t) { return 1 - static_cast<double>(evaluator.left()) / budget; };
  options.trials_per_look = 1;
  Anneal(maps, options, rng);
}

void EvaluateCompiler(Evaluator& evaluator, Rng&) {
  evaluator.Evaluate(evaluator.problem().baseline_map());
}

void EvaluateFirstCome(Evaluator& evaluator, Rng&) {
  evaluator.Evaluate(*evaluator.problem().Rectify(PlacementMap(evaluator.problem().map_size(), 0)));
}

struct NamedSearch {
  const char* name;
  void (*run)(Evaluator&, Rng&);
};
constexpr NamedSearch kSearches[] = {
    {"compiler", EvaluateCompiler}, {"first-come", EvaluateFirstCome}, {"random", SearchRandom},
    {"greedy-dp", SearchGreedyDp},  {"evolution", SearchEvolution},    {"anneal", SearchAnneal}};

}  // namespace

std::vector<std::string> PlacementSearchNames() {
  std::vector<std::string> names;
  for (const NamedSearch& search : kSearches) names.emplace_back(search.name);
  return names;
}

absl::StatusOr<PlacementSearchResult> SearchPlacement(const PlacementProblem& problem,
                                                      absl::string_view name,
                                                      const PlacementSearchOptions& options) {
  if (options.evaluations < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("evaluations: found ", options.evaluations, ", allowed: 1 or more"));
  }
  if (options.threads < 1 || options.threads > kMaxThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat("threads: found ", options.threads, ", allowed: 1 to ", kMaxThreads));
  }
  for (const NamedSearch& search : kSearches) {
    if (search.name != name) continue;
    Evaluator evaluator(problem, options);
    Rng rng(options.seed);
    search.run(evaluator, rng);
    return evaluator.found();
  }
  return absl::NotFoundError(absl::StrCat(
      "search: found '", name, "', allowed: ", absl::StrJoin(PlacementSearchNames(), ", ")));
}

}  // namespace mallocgame
