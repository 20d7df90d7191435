#include "mallocgame/hlo/kernels.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "mallocgame/hlo/arithmetic.h"
#include "mallocgame/hlo/cost_analysis.h"
#include "mallocgame/hlo/hlo.pb.h"
#include "mallocgame/hlo/opcodes.h"
#include "nlohmann/json.hpp"

namespace mallocgame::hlo {
namespace {

using Json = nlohmann::json;

// JAX writes numbers, XLA writes those of 64 bits as strings.
std::optional<int64_t> Number(const Json& written) {
  int64_t value = -1;
  if (written.is_number_integer()) {
    value = written.get<int64_t>();
  } else if (!written.is_string() ||
             !absl::SimpleAtoi(written.get_ref<const std::string&>(), &value)) {
    return std::nullopt;
  }
  return value < 0 ? std::nullopt : std::optional<int64_t>(value);
}

// What is missing is 0.
std::optional<int64_t> Number(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() ? std::optional<int64_t>(0) : Number(*found);
}

// The number of an operand, or of an array in a tuple.
std::optional<int32_t> Place(std::optional<int64_t> number) {
  if (!number || *number > std::numeric_limits<int32_t>::max()) return std::nullopt;
  return static_cast<int32_t>(*number);
}

// The list that follows `key` in a text, with the lists in it; null: there is none.
Json ListAt(absl::string_view text, absl::string_view key) {
  const size_t found = text.find(key);
  if (found == absl::string_view::npos) return nullptr;
  const size_t begin = text.find_first_not_of(' ', found + key.size());
  int depth = 0;
  for (size_t i = begin; i < text.size(); ++i) {
    depth += text[i] == '[' ? 1 : text[i] == ']' ? -1 : 0;
    if (depth > 0) continue;
    const absl::string_view list = text.substr(begin, i + 1 - begin);
    return Json::parse(list.begin(), list.end(), nullptr, /*allow_exceptions=*/false);
  }
  return nullptr;
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
  return instruction.opcode() == "custom-call" &&
         instruction.custom_call_target() == "tpu_custom_call" && !IsPlacementHint(instruction);
}

std::optional<KernelEstimate> EstimateOf(const HloInstructionProto& instruction) {
  if (!IsKernel(instruction)) return std::nullopt;
  const absl::string_view backend_config = instruction.backend_config();
  // The text holds the code of the kernel, so only the estimate is parsed. It holds no objects.
  constexpr absl::string_view kKey = "\"cost_estimate\":";
  const size_t key = backend_config.find(kKey);
  if (key == absl::string_view::npos) return std::nullopt;
  const size_t begin = backend_config.find_first_not_of(' ', key + kKey.size());
  const size_t end = backend_config.find('}', key);
  if (begin == absl::string_view::npos || end == absl::string_view::npos || end < begin)
    return std::nullopt;
  const absl::string_view text = backend_config.substr(begin, end + 1 - begin);
  const Json object = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
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
  const Json list = ListAt(instruction.backend_config(), "\"input_memory_space_colors\":");
  if (!list.is_array()) return {};
  std::vector<RequiredSpace> spaces;
  for (const Json& entry : list) {
    if (!entry.is_object() || !entry.contains("color")) return {};
    const std::optional<int32_t> operand = Place(Number(entry, "operand_index"));
    const std::optional<int64_t> space = Number(entry, "color");
    if (!operand || !space) return {};
    RequiredSpace& required = spaces.emplace_back();
    required.operand = *operand;
    required.memory_space = *space;
    for (const Json& place : entry.value("shape_index", Json::array())) {
      const std::optional<int32_t> number = Place(Number(place));
      if (!number) return {};
      required.index.push_back(*number);
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
