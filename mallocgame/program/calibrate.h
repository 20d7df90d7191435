// Calibrated prices: the compiler's prices after a law that was fitted to published measurements
// (docs/results/measured.md), because the compiler's own rank programs well but are no times.
//
//   time = max(speed x price, peak, transfer)     of a matmul
//   time = max(speed x width x work, transfer)    of all other instructions
//
//   transfer  the time of the bytes in main memory (FloorPs) at the bandwidth that was achieved. A
//             price below it is none that the chip reaches.
//   peak      the time of the flops at the chip's public rate, or the price if that is less, as it
//             is of narrow types.
//   work      what the compiler's prices leave after the transfer of the bytes in main memory at
//             the public bandwidth, the least of all prices of the pool. The compiler adds the two
//             where the chip overlaps them, and what is to be computed doesn't depend on where
//             arrays lie: so no result is dearer in fast memory than in main memory.
//   width     of the widest elements over 32 bits, at most 1: the compiler prices work by the
//             number of elements, as if each took four bytes, but registers are full of narrow
//             ones, too.
//
// More in fast memory is never dearer than less: a matmul's price above one with less in fast
// memory is lowered to it, and a predicted price keeps to that (cost_model.h). A kernel without a
// price has the roofline with the flops that kernels reach, an instruction without a price its
// bytes at the achieved bandwidth. A copy takes the transfer of its bytes at that bandwidth, and a
// latency. Waits for links between chips and for the host stay as they are.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "mallocgame/hardware/hardware.h"
#include "mallocgame/hardware/price_law.h"
#include "mallocgame/program/program.h"

namespace mallocgame {

struct Calibrated {
  std::shared_ptr<const Program> program;  // of CostKind::kCalibrated; it has another fingerprint
  Hardware hardware;                       // CalibrateHardware
};

// `hardware` is that of the compiler's prices, or the same with another size of fast memory or
// number of copies. A plan of one program is one of the other, as they differ in prices only.
//
// InvalidArgument: the program has no prices of the compiler, or is calibrated already, or it was
// imported before programs had classes of work (WorkClass::kUnknown), or the hardware is
// calibrated already.
absl::StatusOr<Calibrated> CalibratePrices(const Program& program, const Hardware& hardware,
                                           const PriceLaw& law);

}  // namespace mallocgame
