// The prices that XLA:TPU wrote, by instruction name, read from modules after code generation and
// from profile tables. Private to the folder.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "mallocgame/hlo/cost/cost_bits.h"
#include "mallocgame/hlo/module/module.h"
#include "mallocgame/program/program.h"

namespace mallocgame::hlo {

struct PricedInstruction {
  // the module's instruction of this name has these; both are empty if it has no such instruction
  CostBits operand_bits, output_bits;
  int64_t operands = 0;       // how many operands, which may be more than a CostRow has bits for
  int64_t outputs = 0;        // how many output arrays, likewise
  std::vector<CostRow> rows;  // sorted and distinct after Finish
};

class PriceTable {
 public:
  // The table is for the instructions of `module`, which must outlive it. Rows have the bits that
  // cost_bits.h gives the arrays. Prices of other instructions are kept without rows.
  explicit PriceTable(const Module& module) : module_(module) {}

  // Adds every instruction on the time axis that has a price, from an HloProto after code
  // generation. A bit says that some array of the operand, or that the output array, lies in
  // `fast_memory_space`. InvalidArgument names `what` and the instruction.
  absl::Status AddModule(absl::string_view proto, absl::string_view what,
                         int32_t fast_memory_space);

  // Adds JSON text {instruction: [[operands, outputs, cycles], ...]}. The first two have one
  // character for each array; '1' means in fast memory. InvalidArgument says which instruction and
  // row are of another form.
  absl::Status AddProfile(absl::string_view json);

  // Sorts the rows and removes repetitions. Call once, after the last Add.
  void Finish();

  const std::map<std::string, PricedInstruction, std::less<>>& instructions() const {
    return instructions_;
  }

 private:
  // Adds one row, whose bits are given as 0 and 1 characters. Arrays that share a bit count as in
  // main memory if they are under kSmallArrayBytes. A row in which a larger one was in fast memory
  // is left out.
  absl::Status AddRow(absl::string_view name, absl::string_view operands, absl::string_view outputs,
                      int64_t cycles);

  const Module& module_;
  std::map<std::string, PricedInstruction, std::less<>> instructions_;
};

// The compiler's estimate in the JSON text of a backend_config. None if the text has no estimate,
// or a negative one, which means "unknown".
std::optional<int64_t> EstimatedCycles(absl::string_view backend_config);

}  // namespace mallocgame::hlo
