// The maps that were graded lately, by whomever, with their rewards: what the critics learn from,
// and what is not graded again.
#ifndef AGENTS_EGRL_REPLAY_H_
#define AGENTS_EGRL_REPLAY_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "mallocgame/base/rng.h"

namespace mallocgame::egrl {

class Replay {
 public:
  // Of maps of `map_size` levels; beyond `capacity` maps the oldest are forgotten.
  Replay(size_t map_size, size_t capacity) : map_size_(map_size), capacity_(capacity) {}

  void Add(absl::Span<const uint8_t> map, double reward);
  size_t size() const { return rewards_.size(); }
  bool Holds(absl::Span<const uint8_t> map) const;

  // Appends `count` maps, drawn with equal chances, and their rewards. There must be one.
  void Draw(size_t count, Rng& rng, std::vector<uint8_t>* maps, std::vector<double>* rewards) const;

  void Write(std::string& out) const;
  // InvalidArgument: damaged.
  absl::Status Read(absl::string_view& in, int levels);

 private:
  absl::Span<const uint8_t> map(size_t i) const {
    return absl::MakeConstSpan(maps_).subspan(i * map_size_, map_size_);
  }

  size_t map_size_, capacity_;
  std::vector<uint8_t> maps_;
  std::vector<double> rewards_;
  size_t next_ = 0;  // where the next one goes, once the capacity is reached
  absl::flat_hash_map<uint64_t, int32_t> count_;  // by hash of a map
};

}  // namespace mallocgame::egrl

#endif  // AGENTS_EGRL_REPLAY_H_
