// The time of an instruction, given where its arrays lie. Two kinds behind one interface:
//
//   roofline  from flops and bytes of the HLO (XLA's own formula, XLA reference 2.2: bytes in fast
//             memory at its bandwidth, the others at the main-memory bandwidth, never less than the
//             compute time)
//   profile   the cycles XLA:TPU wrote for that placement, pooled over instructions of equal
//             structure. Unseen placements are predicted: the exact row with operands and outputs
//             under 16 KiB ignored; else by ordinary kriging from the pool's nearest rows, which
//             are alike to the degree that bytes lie alike. Between the least and the most of these
//             rows, not monotone: fast memory is sometimes slower. Instructions the compiler did
//             not price cost 2 x the bytes they move over the main-memory bandwidth, wherever their
//             arrays lie.
#ifndef MALLOCGAME_PROGRAM_COST_MODEL_H_
#define MALLOCGAME_PROGRAM_COST_MODEL_H_

#include <cstdint>
#include <memory>

#include "mallocgame/hardware/hardware.h"
#include "mallocgame/program/program.h"

namespace mallocgame {

enum class PriceSource : uint8_t {
  kFree,       // takes no time (parameter, tuple, bitcast ...)
  kExact,      // the compiler's own price of this placement
  kPredicted,  // from other placements
  kUnpriced,   // no price at all: from the bytes moved
  kRoofline,
};

struct Price {
  int64_t time_ps = 0;
  // Time in which the instruction leaves the main-memory channel to copies: time_ps less the
  // transfer time of its arrays in main memory, never negative. Of a profile whole arrays count, of
  // a roofline the bytes accessed; of unpriced instructions none is left. A plain copy leaves none:
  // it is a transfer itself, and may turn out to be replaced by one later.
  int64_t idle_ps = 0;
  PriceSource source = PriceSource::kFree;
};

// Arrays below this hardly change a price: of one flipped operand bit 96 to 100 % leave the
// compiler's cycles as they are.
inline constexpr int64_t kSmallArrayBytes = 16 * 1024;

class CostModel {
 public:
  CostModel(std::shared_ptr<const Program> program, const Hardware& hardware);

  const Program& program() const { return *program_; }
  const Hardware& hardware() const { return hardware_; }

  // One run of the instruction at `tick`; bit i of `fast_slots` = its access in slot i is served
  // from fast memory. Thread-safe.
  Price PriceOf(Tick tick, uint64_t fast_slots) const;

 private:
  Price ProfilePrice(const InstructionCost& cost, uint64_t fast_slots) const;
  Price RooflinePrice(const InstructionCost& cost, uint64_t fast_slots) const;

  std::shared_ptr<const Program> program_;
  Hardware hardware_;
};

// The profile predictor alone: cycles of the placement (operands, outputs) of an instruction with
// these arrays, from these rows (not empty). Separate so that it can be tested by leaving rows out.
struct PredictedCycles {
  int64_t cycles = 0;
  bool exact = false;
};
PredictedCycles PredictCycles(const InstructionCost& cost, absl::Span<const CostRow> rows,
                              uint64_t operands, uint64_t outputs);

}  // namespace mallocgame

#endif  // MALLOCGAME_PROGRAM_COST_MODEL_H_
