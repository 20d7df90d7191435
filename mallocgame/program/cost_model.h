// The time of an instruction, given where its arrays lie. Three kinds behind one interface:
//
//   roofline  The time is computed from flops and bytes of the HLO by XLA's own formula (XLA
//             reference 2.2): bytes in fast memory go at its bandwidth, all others at the
//             main-memory bandwidth, and the time is never less than the compute time.
//   profile   The time is the cycles that XLA:TPU wrote for the placement. Its prices are pooled
//             over instructions of equal structure. A placement without a price is predicted: by
//             the row that agrees in all arrays of 16 KiB or more; else by ordinary kriging from
//             the pool's nearest rows, where rows are the nearer, the more bytes lie in the same
//             memory in both. A prediction lies between the least and the largest of the rows it is
//             made from, and is not monotone: fast memory is sometimes slower. It is not below
//             FloorPs, unless a row of the pool is, too: there the bytes are counted too high. An
//             instruction that the compiler did not price costs twice the transfer of the bytes it
//             moves over the main-memory bandwidth, wherever its arrays lie; a kernel has its
//             roofline.
//
//   calibrated  A profile whose rows a law has made (calibrate.h). A prediction is never below
//             FloorPs, and neither above a row with less in fast memory nor below one with more.
//   cautious    A profile of either kind (Program::caution). A placement without a price costs no
//             less than the cheapest row of the pool with nothing more in fast memory, and by the
//             share of the caution more. What a search gains is then what prices are known for.
//
// To all comes the time that the program waits for links between chips (InstructionCost::link_ps).
#pragma once

#include <cstdint>
#include <memory>

#include "mallocgame/hardware/hardware.h"
#include "mallocgame/program/program.h"

namespace mallocgame {

enum class PriceSource : uint8_t {
  kFree,       // the instruction takes no time (parameter, tuple, bitcast ...)
  kExact,      // the compiler's own price of this placement
  kPredicted,  // predicted from the compiler's prices of other placements
  kUnpriced,   // computed from the bytes moved, as the compiler priced no placement
  kRoofline,   // computed by the roofline
  kModelled,   // nothing but a wait for links between chips
  kKernel,     // computed by the roofline for a kernel, as the compiler priced no placement
};

struct Price {
  int64_t time_ps = 0;
  // The time in which the instruction leaves the main-memory channel to copies: time_ps less the
  // transfer time of its arrays in main memory, never negative. A profile counts whole arrays, a
  // roofline the bytes accessed. An unpriced instruction leaves no time. A plain copy leaves none
  // either: it is a transfer itself, and a plan may still replace it by one.
  int64_t idle_ps = 0;
  PriceSource source = PriceSource::kFree;
  // The part of time_ps that is a wait for links. `source` says where the rest is from.
  int64_t link_ps = 0;
};

// Arrays smaller than this hardly change a price: moving one such operand to the other memory
// leaves the compiler's cycles as they are in 96 to 100 % of the cases.
inline constexpr int64_t kSmallArrayBytes = 16 * 1024;

class CostModel {
 public:
  CostModel(std::shared_ptr<const Program> program, const Hardware& hardware);

  const Program& program() const { return *program_; }
  const Hardware& hardware() const { return hardware_; }

  // The price of one run of the instruction at `tick`. Bit i of `fast_slots` is set if its access
  // in slot i is served from fast memory. Thread-safe.
  Price PriceOf(Tick tick, uint64_t fast_slots) const;

 private:
  Price ProfilePrice(const InstructionCost& cost, uint64_t fast_slots) const;
  Price RooflinePrice(const InstructionCost& cost, uint64_t fast_slots) const;
  // `time` as a prediction of calibrated prices, which keeps to the floor and to the rows with more
  // and with less in fast memory.
  int64_t MonotonePs(const InstructionCost& cost, absl::Span<const CostRow> rows, uint64_t operands,
                     uint64_t outputs, int64_t time) const;
  // `time` as a prediction of cautious prices.
  int64_t CautiousPs(const InstructionCost& cost, absl::Span<const CostRow> rows, uint64_t operands,
                     uint64_t outputs, int64_t time) const;
  // of all arrays in main memory
  int64_t MainTransferPs(const InstructionCost& cost, uint64_t fast_slots) const;
  void AddLinkTime(const InstructionCost& cost, uint64_t fast_slots, Price& price) const;

  std::shared_ptr<const Program> program_;
  Hardware hardware_;
};

// The longest run that a game plays, thirteen days: it adds up times without looking at each sum.
inline constexpr int64_t kMaxRunPs = int64_t{1} << 60;

// Whether a run takes at most kMaxRunPs, whatever the plan and its copies are.
bool RunFits(const CostModel& cost_model);

// The time that the chip takes for the bytes alone which the instruction moves of arrays in main
// memory, at the placement (operands, outputs). A price below it is none that the chip reaches; the
// compiler writes some, of fusions whose results lie in both memories.
int64_t FloorPs(const InstructionCost& cost, uint64_t operands, uint64_t outputs,
                const Hardware& hardware);

// The profile's predictor alone: the cycles of an instruction with the arrays of `cost` at the
// placement (operands, outputs), from the prices in `rows`, which must not be empty. It is separate
// so that a test can leave rows out.
struct PredictedCycles {
  int64_t cycles = 0;
  bool exact = false;  // the compiler's own price of this placement, not a prediction
};
PredictedCycles PredictCycles(const InstructionCost& cost, absl::Span<const CostRow> rows,
                              uint64_t operands, uint64_t outputs);

}  // namespace mallocgame
