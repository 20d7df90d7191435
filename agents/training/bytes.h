// Numbers, strings and lists of them as bytes and back, for checkpoints. Little-endian machines
// only, like Torch's wheels.
#ifndef AGENTS_TRAINING_BYTES_H_
#define AGENTS_TRAINING_BYTES_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace mallocgame::training {

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

// Takes what WriteBytes wrote from the begin of `in`. InvalidArgument: there is less.
inline absl::Status CutShort() {
  return absl::InvalidArgumentError("the checkpoint is cut short or damaged");
}
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

#endif  // AGENTS_TRAINING_BYTES_H_
