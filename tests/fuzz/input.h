// Numbers that a fuzzer's bytes choose.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace mallocgame::fuzz {

// Takes numbers off the front of the input. When the input is used up, it gives zeros.
class Input {
 public:
  explicit Input(absl::string_view bytes) : bytes_(bytes) {}
  bool empty() const { return bytes_.empty(); }
  uint8_t Byte() {
    if (bytes_.empty()) return 0;
    const uint8_t byte = static_cast<uint8_t>(bytes_[0]);
    bytes_.remove_prefix(1);
    return byte;
  }
  size_t Below(size_t n) { return n == 0 ? 0 : (Byte() | static_cast<size_t>(Byte()) << 8) % n; }

  // A number near the old one, a small one, or one at which arithmetic overflows.
  int64_t Value(int64_t old) {
    const uint8_t how = Byte();
    if (how < 128) return static_cast<int64_t>(static_cast<uint64_t>(old) + how - 64u);
    if (how < 192) return how - 130;
    const int64_t power = static_cast<int64_t>(uint64_t{1} << (how & 63));
    return Byte() % 2 == 0 ? power : static_cast<int64_t>(0 - static_cast<uint64_t>(power));
  }

 private:
  absl::string_view bytes_;
};

}  // namespace mallocgame::fuzz
