#include "mallocgame/hlo/import/window.h"

#include <cstddef>
#include <vector>

#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/module/module.h"

namespace mallocgame::hlo {
namespace {

constexpr int64_t kSmallArrayBytes = 1 << 20;

}  // namespace

int64_t WindowBytes(const Module& module) {
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < module.instructions().size(); ++i) {
    const HloInstruction& of = module.instructions()[i];
    if (of.opcode == kBitcast || of.proto->shape().element_type() == TUPLE) continue;
    for (const Array& array : module.arrays(static_cast<int32_t>(i))) {
      if (array.size_bytes > kSmallArrayBytes) sizes.push_back(array.size_bytes);
    }
  }
  if (sizes.empty()) return 0;
  const auto median = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2);
  std::nth_element(sizes.begin(), median, sizes.end());
  return *median;
}

}  // namespace mallocgame::hlo
