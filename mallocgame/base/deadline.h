// When to stop: a limit of wall time, a flag that another thread may set, and a limit of games.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>

namespace mallocgame {

// How many games have been played, warm starts included, and how many may be; 0: no limit.
struct GameCount {
  int64_t limit = 0;
  std::atomic<int64_t> played = 0;
  bool IsUsedUp() const { return limit > 0 && played >= limit; }
};

class Deadline {
 public:
  // Never passes.
  Deadline() = default;
  // Passes `seconds` from now, or never by itself if that is <= 0; and as soon as `cancel` is true,
  // which may be null and must outlive the deadline.
  explicit Deadline(double seconds, const std::atomic<bool>* cancel = nullptr)
      : limit_(seconds > 0 ? seconds : kNoLimit), cancel_(cancel) {}
  // The same, which also passes when `games`, which must outlive it, are used up. Those made of it
  // share the count.
  Deadline WithGames(GameCount& games) const {
    Deadline counted = *this;
    counted.games_ = &games;
    return counted;
  }
  // Whoever has a deadline says so behind each game or plan that it has evaluated.
  void Played() const {
    if (games_ != nullptr) ++games_->played;
  }
  // Passes with this one, or when `share` of the time that it has left is over.
  Deadline Share(double share) const {
    Deadline part = *this;
    const double now = seconds();
    if (has_time_limit()) part.limit_ = now + share * (limit_ - now);
    return part;
  }

  // Wall time since the start, which those made of this one share.
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  bool has_time_limit() const { return limit_ < kNoLimit; }
  // Time or games are over, or someone cancelled. With a time limit it looks at the clock, which is
  // too slow for an innermost loop.
  bool Passed() const {
    return (cancel_ != nullptr && cancel_->load(std::memory_order_relaxed)) ||
           (games_ != nullptr && games_->IsUsedUp()) || (has_time_limit() && seconds() >= limit_);
  }

 private:
  static constexpr double kNoLimit = std::numeric_limits<double>::infinity();

  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double limit_ = kNoLimit;  // in seconds after start_
  const std::atomic<bool>* cancel_ = nullptr;
  GameCount* games_ = nullptr;
};

}  // namespace mallocgame
