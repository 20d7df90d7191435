// What XLA's allocator believes instructions cost: a roofline over the flops and bytes of the HLO,
// whatever the program's own cost model is (XLA reference 2.2, 2.3). Measured against the plans
// that XLA:TPU made, it decides more like XLA with these than with the prices that the same
// compiler writes into the code it generates (docs/xla-heuristic.md).
#pragma once

#include <cstdint>
#include <vector>

#include "mallocgame/hardware/hardware.h"
#include "mallocgame/program/program.h"
#include "mallocgame/solvers/xla/options.h"

namespace mallocgame {

class XlaCost {
 public:
  // `program` and `hardware` must outlive it. Of `options` it uses loop_weight and
  // kernels_move_arrays.
  XlaCost(const Program& program, const Hardware& hardware, const XlaOptions& options = {});

  // For each tick, the time with everything in main memory, at most 2^60.
  const std::vector<int64_t>& elapsed_ps() const { return elapsed_ps_; }
  // How much less time the instruction takes with this access alone in fast memory. An update
  // counts what it reads: XLA has its output for another value.
  int64_t SavedPs(AccessId id) const;
  // The seconds that the instruction saves in memory time that way, weighted by loops. For an
  // instruction that is bound by compute it is memory time less compute time, which is not above 0.
  float Benefit(AccessId id) const;
  // XLA's `memory boundedness` of a buffer: what all its uses save, in seconds per square root of a
  // byte. Entering a loop is no use, and of the definitions the first alone counts.
  float Boundedness(BufferId buffer) const;
  // How many bytes the instruction moves to or from the arrays of an access.
  int64_t AccessedBytes(AccessId id) const;

 private:
  struct Times {
    double compute_ps = 0, memory_ps = 0;
  };
  Times TimesOf(Tick tick) const;
  // What an array adds to the bytes of its instruction, and what of them leaves main memory if it
  // lies in fast memory.
  struct Bytes {
    int64_t all = 0, own = 0;
  };
  Bytes OperandBytes(const InstructionCost& cost, const CostArray& array) const;
  Bytes OutputBytes(const InstructionCost& cost, const CostArray& array) const;
  // The memory time with the operands of one slot and the outputs of one in fast memory. In single
  // precision and in the order in which XLA adds up: rounding decides between buffers that are
  // worth the same.
  float MemorySeconds(Tick tick, int32_t read_slot, int32_t written_slot) const;
  // How much less memory time there is with this access in fast memory.
  double MemorySavedPs(AccessId id) const;

  const Program& program_;
  const Hardware& hardware_;
  bool kernels_move_arrays_;
  std::vector<double> weight_;  // one for each region
  std::vector<int64_t> elapsed_ps_;
};

}  // namespace mallocgame
