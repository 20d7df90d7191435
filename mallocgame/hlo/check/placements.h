// Where a buffer assignment puts the values of a module. Private to the folder.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "mallocgame/hlo/check/positions.h"
#include "mallocgame/hlo/module/module.h"

namespace mallocgame::hlo {

class BufferAllocationProto;
class BufferAssignmentProto;

// A stretch of bytes in one allocation.
struct Placement {
  const BufferAllocationProto* allocation = nullptr;  // none: the value has no logical buffer
  int64_t offset = 0, size = 0;
  int64_t color = 0;

  int64_t end() const { return offset + size; }
  bool SharesPlaceWith(const Placement& other) const {
    return allocation == other.allocation && offset == other.offset;
  }
  bool Overlaps(const Placement& other) const {
    return allocation == other.allocation && offset < other.end() && other.offset < end();
  }
};

class Placements {
 public:
  // Refuses by kReadable what is no assignment of this module, and by kBuffer a value with two
  // logical buffers, or a logical buffer that is in no allocation or in two.
  static absl::StatusOr<Placements> Read(const Module& module, const Positions& positions,
                                         absl::string_view buffer_assignment);
  ~Placements();
  Placements(Placements&&) noexcept;

  const Placement& At(int32_t position) const { return at_[position]; }

 private:
  Placements();
  std::unique_ptr<BufferAssignmentProto> proto_;
  std::vector<Placement> at_;  // by position
};

// "bytes 4096 to 8192 of allocation 3", for messages.
std::string Where(const Placement& placement);

}  // namespace mallocgame::hlo
