// The scratch that an instruction needs in fast memory while it runs, where memory space assignment
// gives it its bytes (tpu7x). Private to the folder.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "mallocgame/hlo/module/module.h"

namespace mallocgame::hlo {

struct Scratch {
  int64_t offset = 0;  // 0 before assignment
  int64_t size_bytes = 0;
};

// What the configuration of an instruction says of its scratch in a memory space. None: it has
// none there, or the text says it in no known way.
std::optional<Scratch> ScratchOf(absl::string_view backend_config, int64_t memory_space);

// The different offsets of scratch in a module, sorted; the first few if there are many.
std::vector<int64_t> ScratchOffsets(const Module& module, int64_t memory_space);

}  // namespace mallocgame::hlo
