// Transfers between the memory of the host and that of the chip: of arrays in memory space 5, as
// XLA's host offloading has them, of infeed and outfeed, of send and recv with the host, and of the
// operands and results of what the host computes. The compiler writes no price for them, so their
// time is a model: the bytes over 15 GB/s of PCIe, the figure of "How to Scale Your Model"
// (jax-ml.github.io/scaling-book, chapter TPUs), one transfer after another. Private to the folder.
#pragma once

#include <cstdint>
#include <vector>

#include "mallocgame/hlo/cost/transfer_waits.h"
#include "mallocgame/hlo/module/module.h"
#include "mallocgame/hlo/module/schedule.h"

namespace mallocgame::hlo {

inline constexpr int64_t kHostMemorySpace = 5;
inline constexpr int64_t kHostBytesPerSecond = 15'000'000'000;

// Whether the host runs what the instruction calls, as jax.experimental.compute_on has it. How long
// that takes isn't known.
bool RunsOnHost(const Module& module, int32_t instruction);

// The transfers of a schedule in the order of their begins, with their time on the way to the host.
std::vector<TimedTransfer> HostTransfers(const Module& module, const Schedule& schedule);

}  // namespace mallocgame::hlo
