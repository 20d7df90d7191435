// Which instructions begin and end a collective, and what they hold. Private to the folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "mallocgame/hlo/module/module.h"

namespace mallocgame::hlo {

// The custom calls at the roots of fusions in which a collective begins, and ends.
inline constexpr absl::string_view kBeginsCollective = "AsyncCollectiveStart",
                                   kEndsCollective = "AsyncCollectiveDone";

// What a *-start of a collective holds: its operands again, and the result that its *-done gives.
struct HandedOver {
  size_t operand_count = 0;  // how many operands it holds, from the first on
  Module::ArrayRange operands;
  Module::ArrayRange result;
};

// None if `start` is no such instruction, or has another form.
std::optional<HandedOver> HandedOverBy(const Module& module, int32_t start);

// By array of the result: whether it is an operand that the instruction hands on as it is. So it
// is with what a collective still reads, in a *-start and in fusions that go on with one.
std::vector<bool> HandsOn(const Module& module, int32_t i);

// Whether it is a fusion in which a collective begins that another one ends.
bool BeginsCollectiveFusion(const Module& module, int32_t i);

// True for a start with a HandedOver, and for the instruction that ends it.
bool StartsOrEndsCollective(const Module& module, int32_t i);

}  // namespace mallocgame::hlo
