// Finds what begins at a *-start and ends at its *-done.
#include "mallocgame/hlo/cost/async_work.h"

#include <map>
#include <optional>

#include "mallocgame/hlo/cost/arithmetic.h"
#include "mallocgame/hlo/cost/host_transfers.h"
#include "mallocgame/hlo/module/async_chains.h"
#include "mallocgame/hlo/module/collective_steps.h"
#include "mallocgame/hlo/module/hlo.pb.h"

namespace mallocgame::hlo {
namespace {

int64_t SumOf(absl::Span<const Array> arrays) {
  int64_t sum = 0;
  for (const Array& array : arrays) sum = AddUpTo(sum, array.size_bytes, kMaxAccessedBytes);
  return sum;
}

class AsyncFinder {
 public:
  AsyncFinder(const Module& module, const CostAnalysis& analysis)
      : module_(module), analysis_(analysis), chains_(module) {}

  void Visit(int32_t i, Tick tick) {
    const Opcode opcode = module_.opcode(i);
    if (opcode == kAsyncStart || opcode == kAsyncUpdate) {
      VisitComputation(i, tick);
    } else if (opcode == kCopyStart) {
      const auto made = module_.SubShape(i, {0});
      if (made.ok())
        Begin(i, tick, 2 * SumOf(module_.arrays(i).subspan(made->first, made->count)), {});
    } else if (const std::optional<HandedOver> handed = HandedOverBy(module_, i)) {
      int64_t bytes = SumOf(module_.arrays(i).subspan(handed->result.first, handed->result.count));
      for (const int32_t operand : module_.operands(i))
        bytes = AddUpTo(bytes, SumOf(module_.arrays(operand)), kMaxAccessedBytes);
      Begin(i, tick, bytes, {});
    } else if (IsDone(opcode)) {
      const auto begun = by_start_.find(StartOfDone(module_, i));
      if (begun != by_start_.end()) found_[begun->second].end = tick;
    }
  }

  std::vector<AsyncWork> Found() && { return std::move(found_); }

 private:
  // A computation begins when it has its operands. An async-update may bring the first of them.
  void VisitComputation(int32_t i, Tick tick) {
    const int32_t start = chains_.StartOf(i);
    if (start == kNone || module_.called(start).empty() || RunsOnHost(module_, start)) return;
    const int32_t wrapped = module_.called(start)[0];
    const bool brings = module_.operands(i).size() > (i == start ? 0 : 1);
    const bool needs_none = i == start && module_.computation(wrapped).parameters.empty();
    if (by_start_.contains(start) || !(brings || needs_none)) return;
    Begin(start, tick, analysis_.BytesOfRun(wrapped), analysis_.OperationsOfRun(wrapped));
  }

  void Begin(int32_t start, Tick tick, int64_t bytes, const Operations& operations) {
    by_start_[start] = found_.size();
    found_.push_back({tick, tick, bytes, operations});
  }

  const Module& module_;
  const CostAnalysis& analysis_;
  const AsyncChains chains_;
  std::vector<AsyncWork> found_;
  std::map<int32_t, size_t> by_start_;  // place in found_ by the *-start
};

}  // namespace

std::vector<AsyncWork> AsyncWorkOf(const Module& module, const Schedule& schedule,
                                   const CostAnalysis& analysis) {
  AsyncFinder finder(module, analysis);
  for (Tick tick = 0; tick < static_cast<Tick>(schedule.ticks.size()); ++tick) {
    const Schedule::Entry& entry = schedule.ticks[tick];
    if (entry.kind == InstructionKind::kOrdinary) finder.Visit(entry.instruction, tick);
  }
  return std::move(finder).Found();
}

}  // namespace mallocgame::hlo
