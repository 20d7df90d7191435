#include "mallocgame/game/time/time_game.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "mallocgame/base/error.h"
#include "mallocgame/game/plan_reader.h"
#include "mallocgame/game/tables.h"
#include "mallocgame/game/time/state.h"
#include "mallocgame/game/time/time_observation.h"

namespace mallocgame {
namespace {

bool Writes(const Access& access) {
  return access.kind == AccessKind::kWrite || access.kind == AccessKind::kUpdate ||
         access.writes_in_loop;
}

Segment ReadDecision(const Program& program, const PlanReader& reader, AccessId id) {
  const Access& access = program.access(id);
  Segment segment = reader.Read(id, access.kind == AccessKind::kLoopEntry ? 0 : kNever);
  if (segment.mode == Mode::kSkip) return segment;
  // The residence of a plain copy's result may begin later than the copy; it is decided then.
  if (reader.begin(id) > access.tick) {
    segment.mode = Mode::kSkip;
  } else if (Writes(access)) {
    segment.mode = reader.written_back(reader.residence(id)) ? Mode::kLate : Mode::kKeep;
  }
  return segment;
}

}  // namespace

const char* ActionName(Action action) {
  constexpr const char* kNames[] = {"Drop", "Copy", "NoCopy", "CopyEarly"};
  const size_t index = static_cast<size_t>(action);
  return index < std::size(kNames) ? kNames[index] : "unknown";
}

absl::StatusOr<std::shared_ptr<const Game>> TimeGameOptions::MakeGame(
    std::shared_ptr<const Program> program, const Hardware& hardware) const {
  return TimeGame::Create(std::move(program), hardware, *this);
}

absl::StatusOr<std::shared_ptr<const TimeGame>> TimeGame::Create(
    std::shared_ptr<const Program> program, const Hardware& hardware,
    const TimeGameOptions& options) {
  MG_RETURN_IF_ERROR(Check(program, hardware, options));
  return std::shared_ptr<const TimeGame>(new TimeGame(std::move(program), hardware, options));
}

TimeGame::TimeGame(std::shared_ptr<const Program> program, const Hardware& hardware,
                   const TimeGameOptions& options, const Game* known, absl::Span<const Tick> order)
    : Game(std::move(program), hardware, options, known, order) {
  if (!options.drop_backup) return;
  // Each write goes back once at most.
  int64_t most = max_decisions_;
  for (const Decision& d : tables().decisions) most += d.writes ? max_decisions_ : 0;
  max_decisions_ = static_cast<int>(std::min<int64_t>(most, std::numeric_limits<int>::max()));
}

std::unique_ptr<Position> TimeGame::NewInitialPosition() const {
  return std::make_unique<State>(shared_from_this());
}

std::string TimeGame::ActionToString(int action) const {
  return ActionName(static_cast<Action>(action));
}

Intent TimeGame::OpenIntent() const {
  Intent intent;
  for (size_t a = 0; a < program().accesses().size(); ++a) {
    intent.push_back({AccessId(a), AccessId(a)});
    intent.back().rank = static_cast<double>(a);
  }
  return intent;
}

Intent TimeGame::ReadPlan(const Plan& plan) const {
  const PlanReader reader(program(), plan);
  Intent intent = OpenIntent();
  for (Segment& segment : intent) {
    const double rank = segment.rank;
    segment = ReadDecision(program(), reader, segment.first);
    segment.rank = rank;
  }
  return intent;
}

std::shared_ptr<const Game> TimeGame::Reordered(std::shared_ptr<const Program> program,
                                                absl::Span<const Tick> order,
                                                absl::Span<const int32_t> access_of) const {
  auto same = static_cast<const TimeGameOptions&>(options());
  for (AccessId& id : same.forbidden) id = AccessId(access_of[id.index()]);
  return std::shared_ptr<const Game>(
      new TimeGame(std::move(program), hardware(), same, this, order));
}

std::unique_ptr<const PositionObserver> TimeGame::MakeObserver(
    const ObservationOptions& options, std::shared_ptr<const PriceSums> prices) const {
  return std::make_unique<const TimeObserver>(*this, options, std::move(prices));
}

}  // namespace mallocgame
