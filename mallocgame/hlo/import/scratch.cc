#include "mallocgame/hlo/import/scratch.h"

#include <set>

#include "mallocgame/hlo/module/backend_config.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "nlohmann/json.hpp"

namespace mallocgame::hlo {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostOffsets = 4;

}  // namespace

std::optional<Scratch> ScratchOf(absl::string_view backend_config, int64_t memory_space) {
  const Json configs = PartOf(backend_config, "scoped_memory_configs");
  if (!configs.is_array()) return std::nullopt;
  for (const Json& config : configs) {
    if (!config.is_object()) continue;
    const auto number = [&config](const char* name) {
      return NumberOf(config.value(name, Json()));
    };
    if (number("memory_space") != memory_space) continue;
    const std::optional<int64_t> offset = number("offset"), size = number("size");
    if (offset && size && *size > 0) return Scratch{*offset, *size};
  }
  return std::nullopt;
}

std::vector<int64_t> ScratchOffsets(const Module& module, int64_t memory_space) {
  std::set<int64_t> offsets;
  for (const HloInstruction& instruction : module.instructions()) {
    const std::optional<Scratch> scratch =
        ScratchOf(instruction.proto->backend_config(), memory_space);
    if (scratch && offsets.size() < kMostOffsets) offsets.insert(scratch->offset);
  }
  return {offsets.begin(), offsets.end()};
}

}  // namespace mallocgame::hlo
