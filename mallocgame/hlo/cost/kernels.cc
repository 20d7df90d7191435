#include "mallocgame/hlo/cost/kernels.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "mallocgame/hlo/cost/arithmetic.h"
#include "mallocgame/hlo/cost/cost_analysis.h"
#include "mallocgame/hlo/module/backend_config.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/module/opcodes.h"
#include "nlohmann/json.hpp"

namespace mallocgame::hlo {
namespace {

using Json = nlohmann::json;

// What is missing is 0.
std::optional<int64_t> Number(const Json& object, const char* name) {
  return NumberOf(object.value(name, Json(0)));
}

// The number of an operand, or of an array in a tuple.
std::optional<int32_t> Place(std::optional<int64_t> number) {
  if (!number || *number > std::numeric_limits<int32_t>::max()) return std::nullopt;
  return static_cast<int32_t>(*number);
}

int64_t Sum(const std::vector<int64_t>& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), int64_t{0},
                         [](int64_t a, int64_t b) { return AddUpTo(a, b, kMaxAccessedBytes); });
}

// The most that each of some arrays may move, so that together they move `bytes`.
int64_t Level(std::vector<int64_t> sizes, int64_t bytes) {
  std::sort(sizes.begin(), sizes.end());
  int64_t left = std::ssize(sizes);
  for (const int64_t size : sizes) {
    if (size > bytes / left) return bytes / left;
    bytes -= size;
    --left;
  }
  return std::numeric_limits<int64_t>::max();
}

// Adds `bytes` to the parts, in proportion to them.
void AddInProportion(int64_t bytes, std::vector<int64_t>& parts) {
  __extension__ using Int128 = __int128;
  const int64_t sum = Sum(parts);
  if (sum == 0) return;
  for (int64_t& part : parts) {
    const Int128 more = Int128{part} * bytes / sum;
    part = AddUpTo(part, static_cast<int64_t>(std::min<Int128>(more, kMaxAccessedBytes)),
                   kMaxAccessedBytes);
  }
}

}  // namespace

bool IsKernel(const HloInstructionProto& instruction) {
  return instruction.custom_call_target() == "tpu_custom_call" &&
         OpcodeOf(instruction) == kCustomCall && !IsPlacementHint(instruction);
}

bool IsMadeByCompiler(const HloInstructionProto& instruction) {
  absl::string_view form = instruction.backend_config(), passes = form;
  return IsKernel(instruction) && !SkipToValue("serialization_format", &form) &&
         SkipToValue("needs_hlo_passes", &passes);
}

std::optional<KernelEstimate> EstimateOf(const HloInstructionProto& instruction) {
  if (!IsKernel(instruction)) return std::nullopt;
  const Json object = PartOf(instruction.backend_config(), "cost_estimate");
  if (!object.is_object()) return std::nullopt;
  const std::optional<int64_t> flops = Number(object, "flops"),
                               transcendentals = Number(object, "transcendentals"),
                               bytes = Number(object, "bytes_accessed");
  if (!flops || !transcendentals || !bytes) return std::nullopt;
  return KernelEstimate{std::min(*flops, kMaxWork), std::min(*transcendentals, kMaxWork),
                        std::min(*bytes, kMaxAccessedBytes)};
}

std::vector<RequiredSpace> RequiredSpacesOf(const HloInstructionProto& instruction) {
  if (!IsKernel(instruction)) return {};
  std::vector<RequiredSpace> spaces;
  for (const bool input : {true, false}) {
    const Json list = PartOf(instruction.backend_config(),
                             input ? "input_memory_space_colors" : "output_memory_space_colors");
    if (!list.is_array()) continue;
    for (const Json& entry : list) {
      if (!entry.is_object() || !entry.contains("color")) return {};
      const std::optional<int32_t> operand = Place(Number(entry, "operand_index"));
      const std::optional<int64_t> space = Number(entry, "color");
      if (!operand || !space) return {};
      RequiredSpace& required = spaces.emplace_back();
      if (input) required.operand = operand;
      required.memory_space = *space;
      for (const Json& place : entry.value("shape_index", Json::array())) {
        const std::optional<int32_t> number = Place(NumberOf(place));
        if (!number) return {};
        required.index.push_back(*number);
      }
    }
  }
  return spaces;
}

void ShareOut(int64_t bytes, std::vector<int64_t>& read, std::vector<int64_t>& written) {
  const int64_t whole = AddUpTo(Sum(read), Sum(written), kMaxAccessedBytes);
  if (bytes == 0 || bytes == whole) return;
  if (bytes > whole) return AddInProportion(bytes - whole, read);
  std::vector<int64_t> sizes = read;
  sizes.insert(sizes.end(), written.begin(), written.end());
  const int64_t level = Level(std::move(sizes), bytes);
  for (std::vector<int64_t>* side : {&read, &written}) {
    for (int64_t& size : *side) size = std::min(size, level);
  }
}

}  // namespace mallocgame::hlo
