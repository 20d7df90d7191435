// Priority games that a learned rule plays. Before the game it looks at all runs once and gives
// each an importance, by which they are decided, and what placing and splitting it are worth. Each
// decision adds what the mode saves there and then.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "mallocgame/game/game.h"
#include "mallocgame/game/priority/priority_game.h"
#include "mallocgame/plan/plan.h"

namespace mallocgame {

// What the weights of a rule count. With all weights 0 it plays as greedy does: by importance, each
// run in the mode that saves most.
enum PolicyWeight : int {
  // What is added to the importance, ln(saving / square root of bytes and time held): columns of
  // kRunFeatures, and what the run is worth at shadow prices (run_prices.h).
  kImportanceOfSaving,
  kImportanceOfBytes,
  kImportanceOfHeld,
  kImportanceOfUsed,   // the share of the steps in which it was chosen
  kImportanceOfWorth,  // (saves - pays) / (saves + pays), for bytes and copies
  // What placing a run at all is worth, as a share of what it saves.
  kPlace,
  kPlaceOfUsed,
  kPlaceOfWorth,
  kEarly,  // what is added if it is fetched early
  // What splitting a run is worth; below 0 none is split.
  kSplit,
  kSplitOfParts,  // (its worth - that of its parts) / (sum of their amounts)
  kSplitOfGap,    // ln(ticks held / its accesses) / 4
  kPolicyWeights,
};

// InvalidArgument: they aren't kPolicyWeights finite numbers.
absl::Status CheckPolicyWeights(absl::Span<const float> weights);
// Those of the library, which benchmarks/quality/train_policy.py writes.
absl::Span<const float> LearnedPolicyWeights();

class PolicyGame {
 public:
  // Of any game: its priority game with exact stalls and one candidate, which asks about small
  // buffers too.
  explicit PolicyGame(const Game& game);

  const Game& game() const { return *game_; }

  // One game, with weights that CheckPolicyWeights accepts.
  struct Played {
    Plan plan;
    int64_t latency_ps = 0;
  };
  Played Play(absl::Span<const float> weights) const;

 private:
  // What a rule reads of a run.
  struct Features {
    float saving, bytes, held, used, worth, parts, gap, importance;
  };

  std::shared_ptr<const PriorityGame> game_;
  std::vector<Features> features_;  // in the order of Run::id
};

}  // namespace mallocgame
