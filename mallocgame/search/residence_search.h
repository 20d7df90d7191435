// Local search over the residences of a plan. The accepted solution is an arrangement, in which a
// move changes a few residences where they lie, whatever was placed before or after them: so a
// trial costs what it changes, and not what the program is large.
//
// Moves, by their names in operations research:
//   Insert     a residence serves accesses that main memory served.
//   Remove     main memory serves the accesses of a residence.
//   Cut        two residences in place of one, or only a part of it: live-range splitting (Cooper
//              and Simpson 1998).
//   Coalesce   one residence in place of two: the reverse (Chaitin 1982).
//   Shift      the bytes are reserved for a prefetch earlier or later, or held for an eviction.
//   Relocate   a residence gets another offset.
// Where no room is left for what is placed, it takes that of others, which look for another place
// and go to main memory if there is none: an ejection chain (Glover 1996). Bytes that a move frees
// are offered to accesses nearby: ruin and recreate (Schrimpf et al. 2000).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "mallocgame/base/rng.h"
#include "mallocgame/game/game.h"
#include "mallocgame/game/priority/arrangement.h"
#include "mallocgame/game/priority/copy_times.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/search/neighbourhood.h"
#include "mallocgame/search/repeats.h"

namespace mallocgame {

// Where the program has two sets of prices, a latency in here is the value of both
// (program/both_prices.h), and one schedule of the copies is played at both.
class ResidenceSearch final : public Neighbourhood {
 public:
  // Starts with the residences of `plan`, which must be well formed, as far as the game allows
  // them. Whatever the game asks about, accesses of small buffers count too.
  ResidenceSearch(const Game& game, const Plan& plan);

  bool empty() const override { return large_.empty(); }
  bool Propose(Rng& rng) override;
  bool Try(int64_t most) override;
  void Accept() override;
  void Reject() override;
  int64_t latency_ps() const override { return latency_; }

  // How many accesses fast memory may serve, and where moves begin: all, or with
  // StartAtRepresentatives(true) those at ticks that are repeated nowhere, or stand for all that
  // are the same (repeats.h).
  size_t accesses() const { return all_.size(); }
  bool has_repeats() const { return !repeats_.empty(); }
  void StartAtRepresentatives(bool only);
  // Gives each stretch of ticks the residences of those that stand for it, where the program is not
  // slower with them, until `stop` returns true. Returns the number of trials.
  int64_t TakeOver(const std::function<bool()>& stop);

  // Remembers the accepted solution, as it did at the beginning; makes the one remembered last the
  // accepted solution again; and tells its plan, which is valid, and whose latency under Simulate
  // is what latency_ps() was.
  void Remember();
  void Return();
  Plan Remembered() const;
  int64_t remembered_ps() const { return remembered_ps_; }

 private:
  void FindLarge();
  int32_t AnyDecision(Rng& rng) const;
  int32_t Near(int32_t decision, Rng& rng) const;
  bool MayServe(int32_t decision) const;
  std::optional<PlannedResidence> Planned(int32_t buffer, int32_t first, int32_t last,
                                          bool preload) const;
  Tick AnyBegin(const PlannedResidence& planned, Rng& rng) const;
  bool Insert(int32_t decision, Rng& rng);
  bool Cut(int32_t r, int32_t at, Rng& rng);
  bool Coalesce(int32_t r, Rng& rng);
  bool Shift(int32_t r, Rng& rng);
  bool Relocate(int32_t r, Rng& rng);
  bool ReassignBuffer(int32_t decision, Rng& rng);
  bool Preload(int32_t buffer, Rng& rng);
  bool Move(int32_t decision, Rng& rng);
  bool Serve(const PlannedResidence& planned, Tick begin, int64_t offset, Rng& rng);
  bool ServeAll(int32_t buffer, int32_t first, int32_t last, bool preload, Rng& rng);
  bool PlaceNear(const PlannedResidence& planned, Tick begin, int64_t offset);
  bool Eject(const PlannedResidence& planned, Tick begin, Rng& rng);
  void Fill(Rng& rng);
  template <class Visit>
  void VisitWithin(Tick begin, Tick end, const Visit& visit) const;
  bool Imitate(Tick begin, Tick end, Tick shift);
  void PlaceRemembered(Arrangement& arrangement) const;

  std::shared_ptr<const Game> game_;   // the caller's, with small buffers too
  std::shared_ptr<const Game> other_;  // the same at the other prices; null: there are none
  ArrangementTables tables_;
  Repeats repeats_;
  Arrangement arrangement_;
  CopyTimes copy_times_;
  std::vector<int32_t> all_, large_;  // decisions that may be served from fast memory
  std::vector<int32_t> others_;       // those that are not among all_ now
  std::vector<int32_t> position_of_;  // of each decision: its position among those of its buffer
  int64_t latency_ = 0, trial_ = 0, remembered_ps_ = 0;
  // The remembered solution, by place, and the places that have changed since.
  std::vector<PlannedResidence> remembered_;
  std::vector<int32_t> changed_;
  std::vector<int32_t> over_;  // scratch space
};

}  // namespace mallocgame
