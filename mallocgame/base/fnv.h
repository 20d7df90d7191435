// FNV-1a with 64 bits: a hash of bytes that is the same on every machine. It guards against
// accidents, not against somebody who looks for two inputs with one hash.
#pragma once

#include <cstdint>

namespace mallocgame {

class Fnv1a {
 public:
  void Add(uint8_t byte) { value_ = (value_ ^ byte) * 0x100000001B3u; }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xCBF29CE484222325u;
};

// Hashes a container of bytes.
template <class Bytes>
uint64_t Fnv1aOf(const Bytes& bytes) {
  Fnv1a hash;
  for (const auto byte : bytes) hash.Add(static_cast<uint8_t>(byte));
  return hash.value();
}

}  // namespace mallocgame
