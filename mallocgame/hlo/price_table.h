// The prices XLA:TPU wrote, by instruction name: read from modules after code generation and from
// profile tables. Private to the folder.
#ifndef MALLOCGAME_HLO_PRICE_TABLE_H_
#define MALLOCGAME_HLO_PRICE_TABLE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "mallocgame/hlo/cost_bits.h"
#include "mallocgame/hlo/module.h"
#include "mallocgame/program/program.h"

namespace mallocgame::hlo {

struct PricedInstruction {
  // of the module's instruction; empty if it has none of this name
  CostBits operand_bits, output_bits;
  int64_t operands = 0;       // how many there are, which may be more than a CostRow has bits for
  int64_t outputs = 0;        // output arrays, likewise
  std::vector<CostRow> rows;  // sorted and distinct after Finish
};

class PriceTable {
 public:
  // Of the instructions of `module`, which must outlive the table: rows have the bits that
  // cost_bits.h gives their arrays. Prices of others are kept without rows.
  explicit PriceTable(const Module& module) : module_(module) {}

  // Every instruction on the time axis of an HloProto after code generation that has a price. Bit =
  // some array of the operand (the output array) lies in `fast_memory_space`. InvalidArgument names
  // `what` and the instruction.
  absl::Status AddModule(absl::string_view proto, absl::string_view what,
                         int32_t fast_memory_space);

  // JSON {instruction: [[operands, outputs, cycles], ...]}: the first two one character an array,
  // '1' = in fast memory. InvalidArgument says which instruction and row are not so.
  absl::Status AddProfile(absl::string_view json);

  // Sorts the rows and removes repetitions. Call once, after the last Add.
  void Finish();

  const std::map<std::string, PricedInstruction, std::less<>>& instructions() const {
    return instructions_;
  }

 private:
  // Bits of one row as 0 and 1 characters. Of arrays that share a bit those under kSmallArrayBytes
  // count as in main memory; rows in which a larger one was fast are left out.
  absl::Status AddRow(absl::string_view name, absl::string_view operands, absl::string_view outputs,
                      int64_t cycles);

  const Module& module_;
  std::map<std::string, PricedInstruction, std::less<>> instructions_;
};

// The compiler's estimate in the JSON text of a backend_config; none if it has none (or a negative
// one: "unknown").
std::optional<int64_t> EstimatedCycles(absl::string_view backend_config);

}  // namespace mallocgame::hlo

#endif  // MALLOCGAME_HLO_PRICE_TABLE_H_
