// An order of instructions as far as it is decided. Private to the folder.
//
// Units are put one behind the other. Where a unit is reached that has regions with a choice, its
// regions are ordered before the next unit is put, so that units stand in the order of time. Where
// one unit only can come next it is put at once. Units that take no time are put before the first
// unit that needs them, or when all units before them in the program are put; so they follow the
// program's own order as closely as the others let them.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "mallocgame/game/schedule/schedule_tables.h"

namespace mallocgame {

class PartialOrder {
 public:
  // Nothing is put but what comes first in every order. `tables` must outlive this.
  explicit PartialOrder(const ScheduleTables& tables);

  bool complete() const { return frames_.empty(); }
  // The region whose units come next. The order must not be complete.
  int32_t region() const { return frames_.back().region; }
  int32_t num_ready() const { return frames_.empty() ? 0 : ready_count_[region()]; }
  // Calls visit(unit) for each working unit that can come next, in the program's order, until it
  // returns false.
  template <class Visit>
  void VisitReady(const Visit& visit) const {
    if (frames_.empty()) return;
    const int32_t first = tables_->first_unit[region()], end = tables_->first_unit[region() + 1];
    for (int32_t word = first / 64; word <= (end - 1) / 64; ++word) {
      for (uint64_t bits = ready_[word]; bits != 0; bits &= bits - 1) {
        const int32_t unit = 64 * word + std::countr_zero(bits);
        if (unit >= first && unit < end && !visit(unit)) return;
      }
    }
  }
  // Whether main memory stays within the limit while the unit, which must be ready, is put: up to
  // its first region with a choice.
  bool Fits(int32_t unit) const;
  // Of ready units that fit: calls visit(unit, surely) for each in the program's order. `surely`:
  // if it is taken, and then all else as it stands in the program, a bound from above says that
  // main memory stays within the limit, but for fragmentation beyond that of the program's order.
  template <class Visit>
  void VisitFitting(const Visit& visit) const {
    const Outlook ahead = LookAhead();
    VisitReady([&](int32_t unit) {
      if (Fits(unit)) visit(unit, IsSure(unit, ahead));
      return true;
    });
  }
  // Puts a ready unit, and what then follows in every order.
  void Take(int32_t unit);
  // Puts what is left as it stands in the program, and returns the most live bytes on the way.
  int64_t Complete();

  // Returns to the moment at which mark() said this. Later marks are void.
  size_t mark() const { return events_.size(); }
  void Return(size_t mark);

  // The ticks put so far.
  std::vector<Tick> Ticks() const;
  Tick ticks_put() const { return ticks_put_; }
  int64_t live_bytes() const { return live_; }
  bool IsDone(int32_t unit) const { return done_[unit / 64] >> unit % 64 & 1; }
  // Of the units that the unit depends on, those that are not put; units that take no time are left
  // out if all before them are put.
  int32_t waits(int32_t unit) const { return waits_[unit]; }
  // The first unit of region() that is left, in the program's order; it works.
  int32_t lowest() const { return lowest_[region()]; }
  // The working units of region() that were put last, so many at most, the last one first.
  std::vector<int32_t> LastUnits(int count) const;
  // The bytes that begin to live with a ready unit, up to its first region with a choice, less
  // those that end.
  int64_t GrowthOf(int32_t unit) const;

 private:
  enum class Step : uint8_t { kUnit, kOpen, kPart, kEnter, kLeave, kClose };
  struct Event {
    Step step;
    int32_t unit, part;
  };
  struct Frame {
    int32_t region, unit, part;  // the part of the unit that the region is; -1: the entry
  };

  // What is ahead if all that is left is put as it stands in the program: by unit of region(), the
  // most live bytes before it, and from it on.
  struct Outlook {
    bool certain = false;  // nothing can break the limit, so the rest is empty
    absl::Span<const int64_t> before, behind;
  };
  Outlook LookAhead() const;
  bool IsSure(int32_t unit, const Outlook& ahead) const;
  int64_t PutReady(int32_t unit);
  int64_t PutBefore(int32_t unit);
  int64_t PutUnit(int32_t unit);
  int64_t Sweep(int32_t region);
  int64_t GoOn(int32_t unit, int32_t part);
  int64_t Advance(bool within_limit);
  void Release(int32_t unit);
  void Retain(int32_t unit);
  void SetDone(int32_t unit, bool done);
  int64_t Use(Tick begin, Tick end) const;
  void Unuse(Tick begin, Tick end) const;
  template <class Visit>
  void VisitMissing(int32_t unit, const Visit& visit) const;
  // Calls function(most live bytes) with the unit put as far as main memory is concerned: all of
  // it, or up to its first region with a choice.
  template <class Function>
  void WithUnitPut(int32_t unit, bool whole, const Function& function) const;
  const GameUnit& of(int32_t unit) const { return tables_->all[unit]; }

  const ScheduleTables* tables_;
  std::vector<int32_t> waits_;  // by unit: of those it depends on, how many don't count as done
  std::vector<uint64_t> ready_, done_;  // a bit for each unit; only working ones are ready
  // By region: how many units are ready, and the first one that isn't done.
  std::vector<int32_t> ready_count_, lowest_;
  std::vector<Frame> frames_;
  std::vector<Event> events_;
  Tick ticks_put_ = 0;
  // Main memory; changed and restored by Fits.
  mutable std::vector<int32_t> left_;
  mutable int64_t live_ = 0;
};

}  // namespace mallocgame
