// Hardware as a JSON object. Apart from hardware.cc, so that the core needs no JSON library.
#include <limits>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/hardware/hardware.h"
#include "nlohmann/json.hpp"

namespace mallocgame {
namespace {

using Json = nlohmann::ordered_json;

// Calls visit(name, member) for each numeric field: one list for both directions.
template <class H, class Visitor>
void ForEachNumber(H& h, Visitor visit) {
  visit("fast_bytes", h.fast_bytes);
  visit("alignment_bytes", h.alignment_bytes);
  visit("main_bytes_per_second", h.main_bytes_per_second);
  visit("fast_read_bytes_per_second", h.fast_read_bytes_per_second);
  visit("fast_write_bytes_per_second", h.fast_write_bytes_per_second);
  visit("flops_per_second", h.flops_per_second);
  visit("transcendentals_per_second", h.transcendentals_per_second);
  visit("clock_hz", h.clock_hz);
  visit("max_outstanding_prefetches", h.max_outstanding_prefetches);
  visit("max_outstanding_evictions", h.max_outstanding_evictions);
  visit("max_preloads", h.max_preloads);
  visit("fast_memory_space", h.fast_memory_space);
}

// The one field that may be missing, and isn't written where it is 0.
constexpr char kCopyLatency[] = "copy_latency_ps";

template <class Int>
absl::Status ReadInteger(const Json& object, const char* name, Int& out) {
  const auto it = object.find(name);
  if (it == object.end())
    return absl::InvalidArgumentError(absl::StrCat("hardware: field '", name, "' is missing"));
  // Unsigned values above the signed range are a type of their own in the JSON library.
  const bool fits =
      it->is_number_integer() &&
      !(it->is_number_unsigned() &&
        it->template get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<Int>::max())) &&
      it->template get<int64_t>() >= std::numeric_limits<Int>::min();
  if (!fits) {
    const std::string found = it->dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, 40);
    return absl::InvalidArgumentError(absl::StrCat("hardware: field '", name, "' is ", found,
                                                   ", allowed are integers up to ",
                                                   std::numeric_limits<Int>::max()));
  }
  out = it->template get<Int>();
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Hardware> HardwareFromJson(absl::string_view json) {
  const Json object =
      Json::parse(json.begin(), json.end(), /*cb=*/nullptr, /*allow_exceptions=*/false);
  if (!object.is_object())
    return absl::InvalidArgumentError("hardware: the text is not a JSON object");
  Hardware hardware;
  const auto name = object.find("name");
  if (name == object.end() || !name->is_string()) {
    return absl::InvalidArgumentError("hardware: field 'name' is missing or not a string");
  }
  hardware.name = name->get<std::string>();
  absl::Status status;
  ForEachNumber(hardware, [&](const char* field, auto& member) {
    status.Update(ReadInteger(object, field, member));
  });
  if (object.contains(kCopyLatency))
    status.Update(ReadInteger(object, kCopyLatency, hardware.copy_latency_ps));
  MG_RETURN_IF_ERROR(status);
  for (const auto& [key, value] : object.items()) {
    bool known = key == "name" || key == kCopyLatency;
    ForEachNumber(hardware,
                  [&known, &key = key](const char* field, auto&) { known |= key == field; });
    if (!known)
      return absl::InvalidArgumentError(absl::StrCat("hardware: field '", key, "' is not known"));
  }
  MG_RETURN_IF_ERROR(ValidateHardware(hardware));
  return hardware;
}

std::string HardwareToJson(const Hardware& hardware) {
  Json object;
  object["name"] = hardware.name;
  ForEachNumber(hardware, [&](const char* field, const auto& member) { object[field] = member; });
  if (hardware.copy_latency_ps != 0) object[kCopyLatency] = hardware.copy_latency_ps;
  return object.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace mallocgame
