#include "agents/egrl/replay.h"

#include <algorithm>

#include "agents/training/bytes.h"
#include "mallocgame/base/error.h"
#include "mallocgame/base/fnv.h"

namespace mallocgame::egrl {
namespace {

using training::CutShort;
using training::ReadBytes;
using training::WriteBytes;

// If two maps had the same hash, that would cost a draw, and nothing else.
uint64_t HashOf(absl::Span<const uint8_t> map) { return Fnv1aOf(map); }

}  // namespace

void Replay::Add(absl::Span<const uint8_t> map_added, double value) {
  ++count_[HashOf(map_added)];
  if (size() < capacity_) {
    maps_.insert(maps_.end(), map_added.begin(), map_added.end());
    values_.push_back(value);
    return;
  }
  const auto forgotten = count_.find(HashOf(map(next_)));
  if (--forgotten->second == 0) count_.erase(forgotten);
  std::copy(map_added.begin(), map_added.end(),
            maps_.begin() + static_cast<ptrdiff_t>(next_ * map_size_));
  values_[next_] = value;
  next_ = (next_ + 1) % capacity_;
}

bool Replay::Holds(absl::Span<const uint8_t> map_asked) const {
  return count_.contains(HashOf(map_asked));
}

void Replay::Draw(size_t count, Rng& rng, std::vector<uint8_t>* maps,
                  std::vector<double>* values) const {
  for (size_t i = 0; i < count; ++i) {
    const size_t drawn = rng.Below(size());
    maps->insert(maps->end(), map(drawn).begin(), map(drawn).end());
    values->push_back(values_[drawn]);
  }
}

void Replay::Write(std::string& out) const {
  WriteBytes(maps_, out);
  WriteBytes(values_, out);
  WriteBytes(static_cast<uint64_t>(next_), out);
}

absl::Status Replay::Read(absl::string_view& in, int levels) {
  uint64_t next = 0;
  MG_RETURN_IF_ERROR(ReadBytes(in, maps_));
  MG_RETURN_IF_ERROR(ReadBytes(in, values_));
  MG_RETURN_IF_ERROR(ReadBytes(in, next));
  const bool levels_fit =
      std::all_of(maps_.begin(), maps_.end(), [levels](uint8_t level) { return level < levels; });
  if (maps_.size() != values_.size() * map_size_ || size() > capacity_ || next >= capacity_ ||
      !levels_fit)
    return CutShort();
  next_ = next;
  for (size_t i = 0; i < size(); ++i) ++count_[HashOf(map(i))];
  return absl::OkStatus();
}

}  // namespace mallocgame::egrl
