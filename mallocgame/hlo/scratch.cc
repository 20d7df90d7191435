#include "mallocgame/hlo/scratch.h"

#include <set>

#include "absl/strings/numbers.h"
#include "mallocgame/hlo/hlo.pb.h"
#include "nlohmann/json.hpp"

namespace mallocgame::hlo {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostOffsets = 4;

// XLA writes 64-bit numbers as strings.
std::optional<int64_t> Number(const Json& object, const char* name) {
  const auto found = object.find(name);
  int64_t value = 0;
  if (found == object.end() || !found->is_string() ||
      !absl::SimpleAtoi(found->get_ref<const std::string&>(), &value) || value < 0) {
    return std::nullopt;
  }
  return value;
}

}  // namespace

std::optional<Scratch> ScratchOf(absl::string_view backend_config, int64_t memory_space) {
  // Modules hold megabytes of these texts, so only this list is parsed. It holds no lists.
  constexpr absl::string_view kKey = "\"scoped_memory_configs\":[{";
  const size_t key = backend_config.find(kKey);
  if (key == absl::string_view::npos) return std::nullopt;
  const size_t begin = key + kKey.size() - 2;
  const size_t end = backend_config.find(']', begin);
  if (end == absl::string_view::npos) return std::nullopt;
  const absl::string_view list = backend_config.substr(begin, end + 1 - begin);
  const Json configs = Json::parse(list.begin(), list.end(), nullptr, /*allow_exceptions=*/false);
  if (!configs.is_array()) return std::nullopt;
  for (const Json& config : configs) {
    if (!config.is_object() || Number(config, "memory_space") != memory_space) continue;
    const std::optional<int64_t> offset = Number(config, "offset"), size = Number(config, "size");
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
