// What an agent sees of a PriorityState: the part of game/observation.h that is about the priority
// game. Private to mallocgame/game.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "mallocgame/game/feature.h"
#include "mallocgame/game/observation.h"
#include "mallocgame/game/prices.h"
#include "mallocgame/game/priority/priority_state.h"
#include "mallocgame/game/priority/priority_tables.h"
#include "mallocgame/game/priority/profile.h"

namespace mallocgame {

absl::Span<const Feature> CandidateFeatures();
absl::Span<const Feature> PriorityActionFeatures();
absl::Span<const Feature> PriorityScalarFeatures();
inline constexpr int kLegalColumn = 0;  // of PriorityActionFeatures: whether the action is legal

// Immutable: shared by threads.
class PriorityObserver final : public PositionObserver {
 public:
  // Without `prices`, what is about them is 0.
  PriorityObserver(const PriorityGame& game, const ObservationOptions& options,
                   std::shared_ptr<const PriceSums> prices);

  void Write(const Position& position, float* out) const override { Write(position, 0, out); }
  // Shares of fast memory are added up in units of 1 / kUnits.
  static constexpr double kUnits = 0x1p32;

  // Leaves out so many numbers between the candidates and the actions.
  void Write(const Position& position, int left_out, float* out) const;

 private:
  // Something in equal pieces of the all-main time, one behind the other.
  static constexpr size_t kPieces = Profile::kPieces;
  struct Pieces {
    std::array<double, kPieces + 1> before;  // the sum over the pieces before
  };
  // A position in time.
  struct Place {
    size_t piece;
    double part;  // of the piece that lies before
    explicit Place(double position);
  };
  // The sum between two positions.
  static double Between(const Pieces& pieces, const Place& begin, const Place& end);
  struct Pressure {
    // Shares of fast memory: what is taken, what open runs wish for, and how far both together
    // exceed all of it.
    Pieces taken, wanted, excess;
    Pieces copies;  // the picoseconds of prefetches that open runs wish for, all trips
  };
  using Slacks = std::array<int64_t, kMaxCandidates>;
  // Sums over the residences and the open runs of a position, from each piece of time to the next.
  // They are integers: what is added can be subtracted without a trace.
  struct Sums {
    struct Placed {
      uint64_t stamp;
      int32_t buffer;
      Tick begin, end, fetch_due, eviction_due;  // -1: there is no such copy
      int64_t offset;
    };
    uint64_t observer = 0, lineage = 0;  // whose they are; all positions of a lineage share some
    std::vector<Placed> placed;          // what they have of residences, in order
    std::vector<uint64_t> open;          // and of open runs
    std::array<int64_t, kPieces> pressure = {};  // shares of memory that are taken
    // The same in the columns, by address cells, and as a whole; the copies that are due, in
    // picoseconds of all trips; and the shares that open runs wish for.
    std::vector<int64_t> occupancy, taken, due, wanted;
  };
  // Ticks of one segment that lie in one column, or one tick that has `share` of its time there.
  struct IdleTicks {
    int column;
    Tick begin, end;
    double share;
  };

  void MakeRows();
  void MakeIdleTicks();
  const Sums& SumsOf(const PriorityState& state) const;
  void FollowResidences(const PriorityState& state, Sums& sums) const;
  void FollowOpenRuns(const PriorityState& state, Sums& sums) const;
  void Add(const Sums::Placed& placed, int sign, Sums& sums) const;
  void AddDue(int32_t buffer, Tick tick, int sign, Sums& sums) const;
  template <class Visit>
  void VisitColumns(Tick tick, const Visit& visit) const;
  Pressure PressureOf(const PriorityState& state, const Sums& sums) const;
  Slacks SlacksOf(const PriorityState& state) const;
  void WriteCandidates(const PriorityState& state, float* out) const;
  void WriteActions(const PriorityState& state, const ActionSet& legal, const Pressure& pressure,
                    float* out) const;
  void WriteResidence(const PriorityState::Placing& placing, int64_t saved_ps, int64_t slack,
                      float* row) const;
  void WritePressure(const PriorityState& state, const PriorityState::Placing& placing,
                     const Pressure& pressure, float* row) const;
  void WriteRent(const PriorityState::Placing& placing, int64_t saved_ps, float* row) const;
  void WriteOccupancy(const Sums& sums, float* out) const;
  void WriteIdle(const PriorityState& state, const Sums& sums, float* out) const;
  void WriteDemand(const Sums& sums, float* out) const;
  void WriteScalars(const PriorityState& state, const Pressure& pressure, float* out) const;
  float ShareOfMemory(int32_t buffer) const { return shares_[buffer]; }
  int64_t UnitsOf(int32_t buffer) const;

  const uint64_t id_;  // another one for each observer of the process
  const PriorityGame& game_;
  const PriorityTables& tables_;
  ObservationOptions options_;
  std::shared_ptr<const PriceSums> prices_;
  // For each tick, and the program's end: the share of the all-main time that lies before it.
  std::vector<double> position_;
  std::vector<float> shares_;  // size of each buffer / usable bytes
  // A row for each run: its features, as far as they do not change during a game, else 0.
  std::vector<float> rows_;
  std::vector<IdleTicks> idle_ticks_;
};

}  // namespace mallocgame
