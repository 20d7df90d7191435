// The maps that were graded lately, whoever made them, with their values (learner.h). The critics
// learn from them, and new maps are compared with them.
#pragma once

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
  // Each map has `map_size` levels. Beyond `capacity` maps the oldest ones are forgotten.
  Replay(size_t map_size, size_t capacity) : map_size_(map_size), capacity_(capacity) {}

  void Add(absl::Span<const uint8_t> map, double value);
  size_t size() const { return values_.size(); }
  bool Holds(absl::Span<const uint8_t> map) const;

  // Appends `count` maps, each drawn with equal chances, and their values. At least one map must
  // be there.
  void Draw(size_t count, Rng& rng, std::vector<uint8_t>* maps, std::vector<double>* values) const;

  // Everything that is kept, as bytes and back. InvalidArgument: the bytes are damaged, or a map
  // has a level that is not one of `levels`.
  void Write(std::string& out) const;
  absl::Status Read(absl::string_view& in, int levels);

 private:
  absl::Span<const uint8_t> map(size_t i) const {
    return absl::MakeConstSpan(maps_).subspan(i * map_size_, map_size_);
  }

  size_t map_size_, capacity_;
  std::vector<uint8_t> maps_;
  std::vector<double> values_;
  size_t next_ = 0;  // where the next map goes, once the capacity is reached
  absl::flat_hash_map<uint64_t, int32_t> count_;  // number of maps with each hash
};

}  // namespace mallocgame::egrl
