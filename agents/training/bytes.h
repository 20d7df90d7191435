// Numbers, strings and lists of numbers as bytes and back, for checkpoints. The byte order is that
// of the machine, which must be little-endian, as Torch's wheels require too.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace mallocgame::training {

static_assert(std::endian::native == std::endian::little);

// Each function appends its value to `out`. Strings and lists are preceded by their size in bytes.
template <class T>
  requires std::is_arithmetic_v<T>
void WriteBytes(T value, std::string& out) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}
inline void WriteBytes(absl::string_view text, std::string& out) {
  WriteBytes(static_cast<uint64_t>(text.size()), out);
  out.append(text.data(), text.size());
}
template <class T>
  requires std::is_arithmetic_v<T>
void WriteBytes(const std::vector<T>& values, std::string& out) {
  WriteBytes(
      absl::string_view(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)),
      out);
}

// The error for bytes that end too early or say what cannot be.
inline absl::Status CutShort() {
  return absl::InvalidArgumentError("the checkpoint is cut short or damaged");
}

// Each function takes from the front of `in` what WriteBytes wrote. CutShort: there is less.
template <class T>
  requires std::is_arithmetic_v<T>
absl::Status ReadBytes(absl::string_view& in, T& value) {
  if (in.size() < sizeof(T)) return CutShort();
  std::memcpy(&value, in.data(), sizeof(T));
  in.remove_prefix(sizeof(T));
  return absl::OkStatus();
}
inline absl::Status ReadBytes(absl::string_view& in, absl::string_view& text) {
  uint64_t size = 0;
  if (!ReadBytes(in, size).ok() || size > in.size()) return CutShort();
  text = in.substr(0, size);
  in.remove_prefix(size);
  return absl::OkStatus();
}
inline absl::Status ReadBytes(absl::string_view& in, std::string& text) {
  absl::string_view view;
  if (absl::Status status = ReadBytes(in, view); !status.ok()) return status;
  text = std::string(view);
  return absl::OkStatus();
}
template <class T>
  requires std::is_arithmetic_v<T>
absl::Status ReadBytes(absl::string_view& in, std::vector<T>& values) {
  absl::string_view text;
  if (!ReadBytes(in, text).ok() || text.size() % sizeof(T) != 0) return CutShort();
  values.resize(text.size() / sizeof(T));
  if (!text.empty()) std::memcpy(values.data(), text.data(), text.size());
  return absl::OkStatus();
}

}  // namespace mallocgame::training
