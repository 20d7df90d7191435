// The best plan known for a problem of a training. No play of the problem's game need have this
// plan, so the best play (in the replay) is kept apart.
#ifndef AGENTS_MUZERO_BEST_PLAN_H_
#define AGENTS_MUZERO_BEST_PLAN_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "mallocgame/game/game.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/simulator/report.h"

namespace mallocgame::muzero {

struct BestPlan {
  // The game whose program, at whose order of instructions, the plan is of, and that order; empty:
  // the program's own (Position::PlannedGame). Null: there is no plan yet.
  std::shared_ptr<const Game> game;
  std::vector<Tick> order;
  Plan plan;
  int64_t latency_ps = std::numeric_limits<int64_t>::max();
  std::string found_by;
  std::string play_found_by;  // who found the best play

  absl::StatusOr<Report> Judge() const;
};

// As bytes and back, of the problem that is played in `game`. InvalidArgument: the bytes are
// damaged.
void Write(const BestPlan& best, const Game& game, std::string& out);
absl::StatusOr<BestPlan> ReadBestPlan(absl::string_view& in, const Game& game);

}  // namespace mallocgame::muzero

#endif  // AGENTS_MUZERO_BEST_PLAN_H_
