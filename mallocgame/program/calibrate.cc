// Applies the law to the rows of each pool, by the first instruction that has it: all instructions
// of a pool have equal arrays.
#include "mallocgame/program/calibrate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/program/cost_model.h"

namespace mallocgame {
namespace {

constexpr double kFullBits = 32;  // of an element, as the compiler prices all of them
constexpr double kMostCycles = 1e15;

// `ps` in cycles, rounded up.
int64_t CyclesOf(int64_t ps, int64_t clock_hz) {
  __extension__ using Wide = unsigned __int128;
  constexpr Wide kPs = 1'000'000'000'000;
  const Wide product = static_cast<Wide>(ps) * static_cast<Wide>(clock_hz);
  return static_cast<int64_t>((product + kPs - 1) / kPs);
}

// Whether all that `less` has in fast memory `more` has there, too.
bool IsBelow(const CostRow& less, const CostRow& more) {
  return (less.operands & ~more.operands) == 0 && (less.outputs & ~more.outputs) == 0;
}

// What the rows leave after the transfer of their bytes in main memory, in cycles, at the hardware
// that the compiler priced them for.
int64_t WorkOf(const InstructionCost& cost, const CostPool& pool, const Hardware& hardware) {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const CostRow& row : pool.rows) {
    const int64_t transfer =
        CyclesOf(FloorPs(cost, row.operands, row.outputs, hardware), hardware.clock_hz);
    least = std::min(least, std::max<int64_t>(0, row.cycles - transfer));
  }
  return least;
}

int64_t Scaled(int64_t cycles, double factor) {
  return static_cast<int64_t>(
      std::min(kMostCycles, std::ceil(static_cast<double>(cycles) * factor)));
}

// The cycles that flops take at the public rate, rounded up.
int64_t PeakCycles(int64_t flops, const Hardware& hardware) {
  __extension__ using Wide = unsigned __int128;
  const Wide rate = static_cast<Wide>(hardware.flops_per_second);
  const Wide product = static_cast<Wide>(flops) * static_cast<Wide>(hardware.clock_hz);
  return static_cast<int64_t>(std::min<Wide>((product + rate - 1) / rate, int64_t{1} << 60));
}

// `hardware` is the compiler's, `calibrated` the same with what it was measured to reach.
void Calibrate(const InstructionCost& cost, const Hardware& hardware, const Hardware& calibrated,
               const PriceLaw& law, CostPool& pool) {
  const bool matmul = pool.work == WorkClass::kMatmul;
  const double width = pool.element_bits > 0 ? std::min(1.0, pool.element_bits / kFullBits) : 1.0;
  const int64_t work = matmul ? 0 : Scaled(WorkOf(cost, pool, hardware), law.speed * width);
  const int64_t peak = PeakCycles(cost.flops, hardware);
  for (CostRow& row : pool.rows) {
    const int64_t transfer =
        CyclesOf(FloorPs(cost, row.operands, row.outputs, calibrated), calibrated.clock_hz);
    const int64_t product = std::max(Scaled(row.cycles, law.speed), std::min(row.cycles, peak));
    row.cycles = std::max(matmul ? product : work, transfer);
  }
  std::vector<CostRow> capped = pool.rows;
  for (CostRow& row : capped) {
    for (const CostRow& other : pool.rows) {
      if (IsBelow(other, row)) row.cycles = std::min(row.cycles, other.cycles);
    }
  }
  pool.rows = std::move(capped);
}

absl::Status CheckCanBeCalibrated(const Program& program) {
  const auto refuse = [&program](absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("program '", program.name(), "' can't have calibrated prices: ", why));
  };
  const CostData& cost = program.cost();
  if (cost.kind == CostKind::kCalibrated) return refuse("it has them already");
  if (cost.kind == CostKind::kRoofline)
    return refuse("it was imported without prices of the compiler");
  for (const CostPool& pool : cost.pools) {
    if (pool.work == WorkClass::kUnknown) {
      return refuse(
          "its file doesn't say what kind of work its instructions do; importing or capturing it "
          "again with this version does");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Calibrated> CalibratePrices(const Program& program, const Hardware& hardware,
                                           const PriceLaw& law) {
  MG_RETURN_IF_ERROR(CheckCanBeCalibrated(program));
  MG_ASSIGN_OR_RETURN(const Hardware calibrated, CalibrateHardware(hardware, law));
  ProgramData data = program.data();
  data.cost.kind = CostKind::kCalibrated;
  std::vector<bool> done(data.cost.pools.size(), false);
  for (const InstructionCost& cost : data.cost.instructions) {
    if (cost.pool < 0 || done[cost.pool]) continue;
    done[cost.pool] = true;
    Calibrate(cost, hardware, calibrated, law, data.cost.pools[cost.pool]);
  }
  MG_ASSIGN_OR_RETURN(std::shared_ptr<const Program> made, Program::Create(std::move(data)));
  if (program.caution() > 0) made = Program::WithCaution(*made, program.caution());
  return Calibrated{std::move(made), calibrated};
}

}  // namespace mallocgame
