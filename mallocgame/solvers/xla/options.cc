#include "mallocgame/solvers/xla/options.h"

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace mallocgame {
namespace {

struct Ratio {
  const char* name;
  double XlaOptions::* member;
  double least = 0;
};
constexpr Ratio kRatios[] = {
    {"xla_msa_min_overlap_to_async_copy_ratio", &XlaOptions::min_overlap},
    {"xla_msa_preferred_overlap_to_async_copy_ratio", &XlaOptions::preferred_overlap},
    {"xla_msa_max_overlap_to_mem_size_async_copy_ratio", &XlaOptions::max_overlap},
    {"xla_tpu_async_copy_bandwidth_scaling_factor", &XlaOptions::copy_rate},
    {"xla_tpu_memory_space_assignment_while_execution_count", &XlaOptions::loop_weight, 1},
};
struct Count {
  const char* name;
  int XlaOptions::* member;
};
constexpr Count kCounts[] = {
    {"xla_tpu_sliced_prefetch_max_slices", &XlaOptions::max_slices},
    {"xla_msa_max_outstanding_prefetches", &XlaOptions::max_prefetches},
    {"xla_msa_max_repacks", &XlaOptions::max_repacks},
};
constexpr char kSliceBytes[] = "xla_tpu_sliced_prefetch_preferred_slice_size";
constexpr char kFreesPreloads[] = "xla_msa_enable_cross_program_prefetch_freeing";
constexpr char kEagerness[] = "xla_tpu_preferred_prefetch_overrides";
// The text that says it of all copies.
constexpr char kOfAllUses[] =
    "overrides { hlo_operand_filter { } override_options { prefetch_eagerness: ";

bool Assign(XlaOptions& options, absl::string_view name, absl::string_view value) {
  for (const Ratio& one : kRatios) {
    if (name != one.name) continue;
    double ratio = 0;
    if (!absl::SimpleAtod(value, &ratio) || !(ratio >= one.least && ratio <= 1e6)) return false;
    options.*one.member = ratio;
    return true;
  }
  for (const Count& one : kCounts) {
    if (name != one.name) continue;
    int32_t count = 0;
    if (!absl::SimpleAtoi(value, &count) || count < 0) return false;
    options.*one.member = count;
    return true;
  }
  if (name == kSliceBytes) {
    int64_t bytes = 0;
    if (!absl::SimpleAtoi(value, &bytes) || bytes < 1) return false;
    options.slice_bytes = bytes;
    return true;
  }
  if (name == kFreesPreloads) {
    options.frees_preloads = value == "true";
    return value == "true" || value == "false";
  }
  double eagerness = 0;
  if (name != kEagerness || !absl::ConsumePrefix(&value, kOfAllUses) ||
      !absl::ConsumeSuffix(&value, " } }") || !absl::SimpleAtod(value, &eagerness) ||
      !(eagerness >= 0 && eagerness <= 1)) {
    return false;
  }
  options.eagerness = eagerness;
  return true;
}

}  // namespace

absl::Status SetXlaOption(XlaOptions& options, absl::string_view name, absl::string_view value) {
  if (Assign(options, name, value)) return absl::OkStatus();
  std::string known;
  for (const Ratio& one : kRatios) absl::StrAppend(&known, one.name, ", ");
  for (const Count& one : kCounts) absl::StrAppend(&known, one.name, ", ");
  return absl::InvalidArgumentError(absl::StrCat(
      "XLA option: found ", name, "=", value, ", allowed: a number of ", known, kSliceBytes,
      ", true or false of ", kFreesPreloads, ", or ", kEagerness, "=", kOfAllUses, "0 to 1 } }"));
}

}  // namespace mallocgame
