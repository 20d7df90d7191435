// Protobuf's wire format, for messages of a few fields that are the compiler's own.
#ifndef MALLOCGAME_PJRT_WIRE_H_
#define MALLOCGAME_PJRT_WIRE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace mallocgame::pjrt {

// Appends a field with a number: an integer, a bool or an enum. Negative ones are two's complement.
void AppendNumber(int field, uint64_t value, std::string* message);

// Appends a field with a floating-point number.
void AppendDouble(int field, double value, std::string* message);

// Appends a field with bytes: a string, bytes or a message.
void AppendBytes(int field, absl::string_view value, std::string* message);

// A field as it was read.
struct WireField {
  int number = 0;
  absl::string_view bytes;  // empty where the field has a number
  bool has_bytes = false;
};

// Takes the first field from a message. InvalidArgument: it is damaged.
absl::Status TakeField(absl::string_view* message, WireField* field);

}  // namespace mallocgame::pjrt

#endif  // MALLOCGAME_PJRT_WIRE_H_
