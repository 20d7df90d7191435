#include "mallocgame/pjrt/wire.h"

#include <bit>
#include <optional>

#include "absl/strings/str_cat.h"

namespace mallocgame::pjrt {
namespace {

enum WireType { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

void AppendVarint(uint64_t value, std::string* message) {
  for (; value >= 0x80; value >>= 7) message->push_back(static_cast<char>(value | 0x80));
  message->push_back(static_cast<char>(value));
}

void AppendTag(int field, WireType type, std::string* message) {
  AppendVarint(static_cast<uint64_t>(field) << 3 | type, message);
}

std::optional<uint64_t> TakeVarint(absl::string_view* message) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64 && !message->empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(message->front());
    message->remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

// How many bytes the value takes that the message begins with.
std::optional<uint64_t> TakeLength(uint64_t type, absl::string_view* message) {
  switch (type) {
    case kBytes: return TakeVarint(message);
    case kFixed64: return 8;
    case kFixed32: return 4;
    case kVarint: return TakeVarint(message) ? std::optional<uint64_t>(0) : std::nullopt;
    default: return std::nullopt;
  }
}

}  // namespace

void AppendNumber(int field, uint64_t value, std::string* message) {
  AppendTag(field, kVarint, message);
  AppendVarint(value, message);
}

void AppendDouble(int field, double value, std::string* message) {
  AppendTag(field, kFixed64, message);
  for (uint64_t bits = std::bit_cast<uint64_t>(value), i = 0; i < 8; ++i, bits >>= 8)
    message->push_back(static_cast<char>(bits));
}

void AppendBytes(int field, absl::string_view value, std::string* message) {
  AppendTag(field, kBytes, message);
  AppendVarint(value.size(), message);
  message->append(value.data(), value.size());
}

absl::Status TakeField(absl::string_view* message, WireField* field) {
  const size_t left = message->size();
  const std::optional<uint64_t> tag = TakeVarint(message);
  const std::optional<uint64_t> length = tag ? TakeLength(*tag & 7, message) : std::nullopt;
  if (!length || *length > message->size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a field is damaged, ", left, " bytes before the end of the message"));
  }
  field->number = static_cast<int>(*tag >> 3);
  field->has_bytes = (*tag & 7) == kBytes;
  field->bytes = field->has_bytes ? message->substr(0, *length) : absl::string_view();
  message->remove_prefix(*length);
  return absl::OkStatus();
}

}  // namespace mallocgame::pjrt
