#include "mallocgame/vector/environment.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/base/rng.h"

namespace mallocgame {

absl::StatusOr<std::shared_ptr<const GameList>> GameList::Create(
    absl::Span<const std::shared_ptr<const Game>> games, const ObservationOptions& options) {
  if (games.empty()) return absl::InvalidArgumentError("games: found none, allowed: one or more");
  std::vector<Start> starts;
  starts.reserve(games.size());
  for (size_t i = 0; i < games.size(); ++i) {
    const absl::string_view name = games[i]->options().game(), first = games[0]->options().game();
    if (name != first) {
      return absl::InvalidArgumentError(absl::StrCat("games: game ", i, " is a ", name,
                                                     " game, game 0 a ", first,
                                                     " game; allowed: the same"));
    }
    if (games[i]->num_actions() != games[0]->num_actions()) {
      return absl::InvalidArgumentError(
          absl::StrCat("games: game ", i, " has ", games[i]->num_actions(), " actions, game 0 has ",
                       games[0]->num_actions(), "; allowed: the same number"));
    }
    MG_ASSIGN_OR_RETURN(Observer observer, Observer::Create(games[i], options));
    std::unique_ptr<Position> position = games[i]->NewInitialPosition();
    if (position->IsTerminal()) {
      return absl::InvalidArgumentError(
          absl::StrCat("games: game ", i, ", program '", games[i]->program().name(),
                       "', has nothing to decide; allowed: one access or more"));
    }
    position->legal_actions();  // is worked out once here, and copied at every start
    starts.emplace_back(std::move(observer), std::move(position));
  }
  return std::shared_ptr<const GameList>(new GameList(std::move(starts)));
}

Environment::Environment(std::shared_ptr<const GameList> games, std::optional<size_t> fixed)
    : games_(std::move(games)), fixed_(fixed), position_(games_->starts_[0].position().Clone()) {
  Reset(0);
}

Environment::Environment(const Environment& other)
    : games_(other.games_), fixed_(other.fixed_), seed_(other.seed_), episode_(other.episode_),
      index_(other.index_), position_(other.position_->Clone()) {}

void Environment::Reset(std::optional<uint64_t> seed) {
  if (seed.has_value()) {
    seed_ = *seed;
    episode_ = 0;
  }
  index_ = GameOf(seed_, episode_);
  ++episode_;
  position_->CopyFrom(games_->starts_[index_].position());
}

size_t Environment::GameOf(uint64_t seed, uint64_t episode) const {
  const auto count = static_cast<uint32_t>(games_->size());
  if (fixed_.has_value()) return *fixed_;
  return count > 1 ? Rng(seed, episode).Below(count) : 0;
}

EnvironmentPoint Environment::point() const {
  const absl::Span<const uint8_t> actions = position_->actions();
  return {seed_, episode_ - 1, {actions.begin(), actions.end()}};
}

absl::Status Environment::Resume(const EnvironmentPoint& point) {
  const size_t index = GameOf(point.seed, point.episode);
  std::unique_ptr<Position> position = games_->starts_[index].position().Clone();
  for (const uint8_t action : point.actions) MG_RETURN_IF_ERROR(position->Apply(action).status());
  seed_ = point.seed;
  episode_ = point.episode + 1;
  index_ = index;
  position_ = std::move(position);
  return absl::OkStatus();
}

void Environment::WriteMask(int8_t* out) const {
  const ActionSet legal = position_->legal_actions();
  for (int a = 0; a < games_->num_actions(); ++a) out[a] = legal.Has(a) ? 1 : 0;
}

}  // namespace mallocgame
