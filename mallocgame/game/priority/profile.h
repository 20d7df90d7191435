// How much of something there is along a program's time, in equal pieces of it. Amounts are
// integers, so that what was added can be taken back without a trace.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace mallocgame {

class Profile {
 public:
  static constexpr size_t kPieces = 64;

  // An amount that is spread evenly over a stretch of time.
  class Stretch {
   public:
    Stretch() = default;
    // The program's time is [0, 1]; 0 <= begin <= end <= 1.
    Stretch(double begin, double end, double amount) {
      const double from = begin * kPieces, to = end * kPieces;
      first_ = std::min(static_cast<size_t>(from), kPieces - 1);
      last_ = std::clamp(static_cast<size_t>(std::ceil(to)), first_ + 1, kPieces) - 1;
      amount_ = std::llround(amount);
      if (first_ == last_) return;
      inside_ = std::llround(amount / (to - from));
      front_ = std::llround(amount / (to - from) * (static_cast<double>(first_ + 1) - from));
    }

   private:
    friend class Profile;
    size_t first_ = 0, last_ = 0;                  // the pieces that it touches
    int64_t amount_ = 0, front_ = 0, inside_ = 0;  // all; in the first piece, in those between
  };

  // Adds the stretch, or with sign -1 takes it back.
  void Add(const Stretch& stretch, int sign) {
    const size_t first = stretch.first_, last = stretch.last_;
    if (first == last) {
      steps_[first] += sign * stretch.amount_;
      steps_[last + 1] -= sign * stretch.amount_;
      return;
    }
    const int64_t back =
        stretch.amount_ - stretch.front_ - static_cast<int64_t>(last - first - 1) * stretch.inside_;
    steps_[first] += sign * stretch.front_;
    steps_[first + 1] += sign * (stretch.inside_ - stretch.front_);
    steps_[last] += sign * (back - stretch.inside_);
    steps_[last + 1] -= sign * back;
  }

  // By how much there is more in a piece than in the one before.
  int64_t step(size_t piece) const { return steps_[piece]; }

 private:
  std::array<int64_t, kPieces + 1> steps_ = {};  // from each piece to the next
};

}  // namespace mallocgame
