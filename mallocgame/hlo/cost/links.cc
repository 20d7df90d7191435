#include "mallocgame/hlo/cost/links.h"

#include <algorithm>

#include "mallocgame/hardware/chips.h"

namespace mallocgame {
namespace {

__extension__ using Int128 = __int128;

constexpr int64_t kMaxPs = int64_t{1} << 60;
constexpr int64_t kHopPs = 1'000'000;  // on all chips

// `amount` bytes over `parts` links at a time.
Int128 TransferPs(Int128 amount, Int128 parts, const Links& links) {
  constexpr Int128 kPsPerSecond = 1'000'000'000'000;
  const Int128 rate = parts * links.bytes_per_second;
  return (amount * kPsPerSecond + rate - 1) / rate;
}

}  // namespace

std::optional<Links> LinksOf(absl::string_view hardware) {
  const Chip* const chip = FindChip(hardware);
  if (chip == nullptr || chip->link_bytes_per_second == 0) return std::nullopt;
  return Links{chip->link_bytes_per_second, kHopPs};
}

int64_t CollectivePs(CollectiveKind kind, int64_t bytes, int64_t members, const Links& links) {
  if (members <= 1) return 0;
  const Int128 n = members, ways = members == 2 ? 1 : 2;
  const Int128 steps = Int128{links.hop_ps} * (n / 2);
  // What each member of n sends on of a whole array of `bytes`, by parts.
  const auto ring = [&](Int128 whole) {
    return std::max(steps, TransferPs(whole * (n - 1), ways * n, links));
  };
  Int128 ps = 0;
  switch (kind) {
    case CollectiveKind::kAllGather: ps = ring(bytes * n); break;
    case CollectiveKind::kReduceScatter: ps = ring(bytes); break;
    case CollectiveKind::kAllReduce: ps = 2 * ring(bytes); break;
    case CollectiveKind::kAllToAll:
      // The distances to all others add up to n * n / 4.
      ps = std::max(steps, TransferPs(bytes * (n * n / 4), ways * n, links));
      break;
    case CollectiveKind::kPermute:
      ps = std::max<Int128>(links.hop_ps, TransferPs(bytes, 1, links));
      break;
  }
  return static_cast<int64_t>(std::min<Int128>(ps, kMaxPs));
}

}  // namespace mallocgame
