// What a refusal is about, as data that its absl::Status carries beside the message. Code that acts
// on a refusal reads these fields. The message is for people, and nothing depends on its words.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace mallocgame {

struct Refusal {
  std::string rule = {};                       // its stable name, such as "overlap"; empty: none
  std::vector<std::string> instructions = {};  // of the module, by their HLO names: those at fault
  std::vector<int32_t> accesses = {};  // of the program whose plan is refused: those at fault
  int64_t exceeded_bytes = 0;          // by how many bytes a memory is too small

  friend bool operator==(const Refusal&, const Refusal&) = default;
};

// Returns `status`, an error, with the refusal that it carries.
absl::Status Refused(const Refusal& refusal, absl::Status status);
// Returns the refusal that a status carries, or else an empty one.
Refusal RefusalOf(const absl::Status& status);
// Returns the error with "WHERE: " before its message. It carries the same refusal.
absl::Status Prefixed(absl::string_view where, const absl::Status& status);

}  // namespace mallocgame
