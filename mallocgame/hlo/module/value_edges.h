// Which results come from which operands: the one place that knows what each opcode hands on. Who
// asks which arrays share bytes, which values are one, and where a value was made, folds over these
// edges. Private to the folder.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "mallocgame/hlo/module/async_chains.h"
#include "mallocgame/hlo/module/module.h"

namespace mallocgame::hlo {

// An array or a tuple within the result of an instruction.
struct ValuePlace {
  int32_t instruction = 0;
  std::vector<int64_t> index;  // its shape index
};

enum class Handing : uint8_t {
  kName,    // the instruction names, groups or takes out the value, and nothing else
  kStep,    // a step of a transfer holds it, or gives what the transfer has made
  kCopy,    // a copy-start makes the same value elsewhere
  kBytes,   // another value, which lies at the same bytes
  kEnter,   // a parameter of what the instruction runs gets it
  kReturn,  // it is what the instruction runs gives; or what a loop is given, if it runs no trip
  kRepeat,  // the next trip of a loop gets it
};

struct ValueEdge {
  Handing how = Handing::kName;
  absl::string_view what;  // both sides, for messages: "operand and result"
  ValuePlace from, to;
};

// The edges to the result of an instruction, and to the parameters of what it runs. A branch's or a
// callee's parameters come before its result. `chains` is of the module.
//
// Of an asynchronous chain, the instruction that gives the last operand returns what is wrapped. An
// async-start or an async-update may leave the result empty: then the first one that has it does.
//
// InvalidArgument: it has another form than its opcode has. The number of arrays may differ on both
// sides of an edge.
absl::StatusOr<std::vector<ValueEdge>> EdgesOf(const Module& module, const AsyncChains& chains,
                                               int32_t instruction);

// Whether all it does is to name its operand: bitcast, domain, add-dependency, opt-barrier, and
// placement hints.
bool HandsOperandOn(const HloInstruction& instruction);

}  // namespace mallocgame::hlo
