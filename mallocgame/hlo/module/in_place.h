// Which results of an instruction are updates of its operands in place: the rules of XLA's
// AliasInfo::GetInPlaceInputOutputPairs (xla/hlo/analysis/alias_info.cc). Private to the folder.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "mallocgame/hlo/module/async_chains.h"
#include "mallocgame/hlo/module/module.h"

namespace mallocgame::hlo {

// Array `output_array` of the result is array `operand_array` of operand `operand`, updated.
struct InPlacePair {
  int32_t operand = 0;
  int32_t operand_array = 0;
  int32_t output_array = 0;
  friend bool operator==(const InPlacePair&, const InPlacePair&) = default;
};

// Finds the pairs of instructions, and remembers what it found in fused computations. Not
// thread-safe.
class InPlaceFinder {
 public:
  explicit InPlaceFinder(const Module& module)
      : module_(module), chains_(module), fused_(module.computations().size()) {}

  // The pairs of:
  // - dynamic-update-slice, scatter, set-dimension-size, all-reduce-start: the operands that they
  //   update are their results
  // - ragged-all-to-all, and a collective-permute that writes into an operand, or its *-start: the
  //   result is the second operand
  // - custom calls and others that declare aliases
  // - fusions: what they declare, and the updates at the root of their computation
  // - async-start, async-update and async-done, where the async-start declares that the result of
  //   what it wraps is an argument of it
  // InvalidArgument if what an instruction declares does not fit its shapes. Of an asynchronous
  // one it need not, because operands and results may be given later: those it has count.
  absl::StatusOr<std::vector<InPlacePair>> PairsOf(int32_t instruction);

  const AsyncChains& chains() const { return chains_; }

 private:
  // An array of an instruction's result.
  struct Place {
    int32_t instruction = 0;
    int32_t array = 0;
  };
  using Pairs = std::vector<InPlacePair>;

  void AddByOpcode(int32_t instruction, Pairs& pairs) const;
  void AddOfChain(int32_t instruction, Pairs& pairs) const;
  absl::Status AddDeclared(int32_t instruction, Pairs& pairs) const;
  // The pair with an array of a fusion's result that its computation tells.
  std::optional<InPlacePair> FusedPair(int32_t fusion, int32_t array);
  // By array of the root of a fused computation: the parameter that it is an update of, if it is.
  const std::vector<std::optional<Place>>& SourcesOf(int32_t computation);
  std::optional<Place> Trace(Place root);
  std::optional<Place> UpdatedBy(Place place, bool declared);
  Place PassedOn(Place place) const;

  const Module& module_;
  const AsyncChains chains_;
  // by computation, once it was asked for
  std::vector<std::optional<std::vector<std::optional<Place>>>> fused_;
};

}  // namespace mallocgame::hlo
