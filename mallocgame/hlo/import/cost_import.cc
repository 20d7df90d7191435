// Joins the module with the prices: it finds an instruction's rows by name, and pools them by
// structure.
#include "mallocgame/hlo/import/cost_import.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/hlo/cost/arithmetic.h"
#include "mallocgame/hlo/cost/async_work.h"
#include "mallocgame/hlo/cost/collectives.h"
#include "mallocgame/hlo/cost/cost_analysis.h"
#include "mallocgame/hlo/cost/cost_bits.h"
#include "mallocgame/hlo/cost/host_transfers.h"
#include "mallocgame/hlo/cost/kernels.h"
#include "mallocgame/hlo/cost/price_table.h"
#include "mallocgame/hlo/cost/transfer_waits.h"
#include "mallocgame/hlo/cost/work_class.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/module/opcodes.h"
#include "mallocgame/hlo/module/structure.h"
#include "mallocgame/program/cost_model.h"

namespace mallocgame::hlo {
namespace {

constexpr int64_t kPointerBytes = 8;  // for each element in the table that a tuple is stored as

// True for instructions that take no time if they have no price. Any other instruction without a
// price is taken to move its output.
bool FreeUnlessPriced(Opcode opcode) {
  return IsAsynchronous(opcode) || opcode == kIota || opcode == kPartitionId;
}

void SetNoneAccessed(std::vector<CostArray>& arrays) {
  for (CostArray& array : arrays) array.accessed_bytes = 0;
}

// Adds up the bytes of the arrays that share a cost array.
void SetAccessed(const std::vector<int64_t>& bytes, const CostBits& bits,
                 std::vector<CostArray>& arrays) {
  SetNoneAccessed(arrays);
  for (size_t k = 0; k < std::min(bytes.size(), bits.of.size()); ++k) {
    int64_t& accessed = arrays[bits.of[k]].accessed_bytes;
    accessed = AddUpTo(accessed, bytes[k], kMaxAccessedBytes);
  }
}

void AddRoofline(const Module& module, const CostAnalysis& analysis, int32_t instruction,
                 InstructionCost& cost) {
  const Opcode opcode = module.opcode(instruction);
  if (opcode == kTuple) {
    const int64_t table = kPointerBytes * std::ssize(module.operands(instruction));
    if (table > 0) cost.outputs = {{table, table, kNone, true}};
    return;
  }
  if (MovesNothing(module.instruction(instruction))) return;
  // The plan prices transfers, so the instructions that start and end them access nothing. Of what
  // the end of a collective holds, the start has the operands.
  if (EndsCollective(opcode)) cost.operands.clear();
  if (IsAsynchronous(opcode)) {
    SetNoneAccessed(cost.operands);
    SetNoneAccessed(cost.outputs);
    return;
  }
  const Work work = analysis.Of(instruction);
  SetAccessed(work.read, OperandBits(module, instruction), cost.operands);
  SetAccessed(work.written, OutputBits(module, instruction), cost.outputs);
  cost.flops = work.operations.flops;
  cost.transcendentals = work.operations.transcendentals;
}

absl::StatusOr<PriceTable> ReadPrices(const CostImportContext& context) {
  PriceTable table(context.module);
  for (size_t i = 0; i < context.input.priced.size(); ++i) {
    MG_RETURN_IF_ERROR(table.AddModule(context.input.priced[i], absl::StrCat("priced module ", i),
                                       context.hardware.fast_memory_space));
  }
  if (!context.input.profile.empty()) MG_RETURN_IF_ERROR(table.AddProfile(context.input.profile));
  table.Finish();
  return table;
}

// Sorts the rows and leaves one for each placement. Returns how many disagreed with the one that
// stayed.
int64_t Normalize(std::vector<CostRow>& rows) {
  const auto placement = [](const CostRow& r) { return std::tie(r.operands, r.outputs); };
  std::sort(rows.begin(), rows.end(), [&](const CostRow& a, const CostRow& b) {
    return std::tuple_cat(placement(a), std::tie(a.cycles)) <
           std::tuple_cat(placement(b), std::tie(b.cycles));
  });
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  int64_t conflicts = 0;
  size_t kept = 0;
  for (size_t begin = 0, end = 0; begin < rows.size(); begin = end) {
    while (end < rows.size() && placement(rows[end]) == placement(rows[begin])) ++end;
    rows[kept++] = rows[begin + (end - begin - 1) / 2];
    conflicts += end - begin - 1;
  }
  rows.resize(kept);
  return conflicts;
}

class Pooling {
 public:
  Pooling(const CostImportContext& context, ProgramData& data)
      : context_(context), module_(context.module), data_(data), structures_(context.module),
        work_classes_(context.module), structure_(context.schedule.ticks.size()) {}

  // Pools the rows of every instruction that has some, and numbers pools in order of time.
  absl::Status AddRows(const PriceTable& table) {
    int64_t matched = 0;
    // By pool. A search would look for placements with such prices before all others.
    absl::flat_hash_map<int32_t, std::vector<CostRow>> too_low;
    for (size_t tick = 0; tick < structure_.size(); ++tick) {
      const Schedule::Entry& entry = context_.schedule.ticks[tick];
      if (entry.kind == InstructionKind::kLoopEntry) continue;
      const auto found =
          table.instructions().find(module_.instruction(entry.instruction).proto->name());
      if (found == table.instructions().end()) continue;
      ++matched;
      MG_RETURN_IF_ERROR(CheckCounts(entry.instruction, found->second));
      if (!CanHavePrice(entry) || found->second.rows.empty()) continue;
      const int32_t pool = PoolFor(tick);
      for (const CostRow& row : found->second.rows) {
        const int64_t floor =
            FloorPs(data_.cost.instructions[tick], row.operands, row.outputs, context_.hardware);
        const bool is_too_low = context_.hardware.CyclesToPs(row.cycles) < floor;
        (is_too_low ? too_low[pool] : data_.cost.pools[pool].rows).push_back(row);
      }
    }
    // Where nothing better is known, what is too low stays.
    for (auto& [pool, rows] : too_low) {
      Normalize(rows);
      std::vector<CostRow>& kept = data_.cost.pools[pool].rows;
      if (kept.empty()) {
        kept = std::move(rows);
      } else {
        summary_.too_low_rows += std::ssize(rows);
      }
    }
    const int64_t named = std::ssize(table.instructions());
    summary_.profile_names_unmatched = named - matched;
    if (matched < summary_.profile_names_unmatched) {
      return absl::InvalidArgumentError(absl::StrCat("prices: of ", named,
                                                     " instructions that have some the module has ",
                                                     matched, ": they are of another program"));
    }
    for (CostPool& pool : data_.cost.pools) {
      summary_.conflicting_rows += Normalize(pool.rows);
      summary_.rows += std::ssize(pool.rows);
    }
    summary_.pools = std::ssize(data_.cost.pools);
    return absl::OkStatus();
  }

  // Gives every instruction its pool, or says how it is priced without one. `collectives` may be
  // null; what they transfer moves over links.
  void Price(const CostAnalysis& analysis, const Collectives* collectives) {
    for (size_t tick = 0; tick < structure_.size(); ++tick) {
      const Schedule::Entry& entry = context_.schedule.ticks[tick];
      if (!CanHavePrice(entry)) continue;
      InstructionCost& cost = data_.cost.instructions[tick];
      if (const auto pool = pool_of_structure_.find(StructureOf(tick));
          pool != pool_of_structure_.end()) {
        cost.pool = pool->second;
        ++summary_.priced_instructions;
      } else if (collectives != nullptr && collectives->Transfers(static_cast<Tick>(tick))) {
        continue;
      } else if (const HloInstructionProto& proto = *module_.instruction(entry.instruction).proto;
                 IsKernel(proto)) {
        cost.kernel = true;
        ++summary_.kernels;
        // Nobody can give an estimate for a kernel of the compiler's own.
        if (!EstimateOf(proto) && !IsMadeByCompiler(proto)) ++summary_.kernels_without_estimate;
      } else if (!FreeUnlessPriced(module_.opcode(entry.instruction))) {
        ++summary_.unpriced_instructions;
        cost.unpriced_bytes = analysis.MovedBytes(entry.instruction);
      }
    }
  }

  const ImportSummary& summary() const { return summary_; }

 private:
  bool CanHavePrice(const Schedule::Entry& entry) const {
    return entry.kind == InstructionKind::kOrdinary &&
           !MovesNothing(module_.instruction(entry.instruction));
  }

  absl::Status CheckCounts(int32_t instruction, const PricedInstruction& priced) const {
    const int64_t operands = std::ssize(module_.operands(instruction));
    const int64_t outputs = std::ssize(module_.arrays(instruction));
    if (priced.operands == operands && priced.outputs == outputs) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(module_.Where(instruction), " has ", operands, " operands and ", outputs,
                     " output arrays, its prices are of ", priced.operands, " and ", priced.outputs,
                     ": they are of another program"));
  }

  int32_t StructureOf(size_t tick) {
    std::optional<int32_t>& structure = structure_[tick];
    if (!structure) structure = structures_.Of(context_.schedule.ticks[tick].instruction);
    return *structure;
  }

  // The pool of the tick's structure, which is made if there is none yet.
  int32_t PoolFor(size_t tick) {
    const auto next = static_cast<int32_t>(data_.cost.pools.size());
    const auto [pool, is_new] = pool_of_structure_.try_emplace(StructureOf(tick), next);
    if (is_new) {
      const int32_t instruction = context_.schedule.ticks[tick].instruction;
      CostPool& made = data_.cost.pools.emplace_back();
      made.work = work_classes_.Of(instruction);
      made.element_bits = WidestElementBits(module_, instruction);
    }
    return pool->second;
  }

  const CostImportContext& context_;
  const Module& module_;
  ProgramData& data_;
  ImportSummary summary_;
  Structures structures_;
  WorkClasses work_classes_;
  std::vector<std::optional<int32_t>> structure_;  // by tick, once it was asked for
  absl::flat_hash_map<int32_t, int32_t> pool_of_structure_;
};

int64_t RatePs(int64_t count, int64_t per_second) {
  __extension__ using Int128 = __int128;
  constexpr Int128 kPsPerSecond = 1'000'000'000'000, kMostPs = Int128{1} << 60;
  return static_cast<int64_t>(std::min(Int128{count} * kPsPerSecond / per_second, kMostPs));
}

// What runs beside the program and has no price of the compiler, with its time by the roofline.
// Transfers between chips and with the host have a time of their own.
std::vector<TimedTransfer> TimedAsyncWork(const CostImportContext& context,
                                          const CostAnalysis& analysis,
                                          const Collectives* collectives,
                                          absl::Span<const TimedTransfer> host,
                                          const CostData& data) {
  std::vector<TimedTransfer> timed;
  for (const AsyncWork& work : AsyncWorkOf(context.module, context.schedule, analysis)) {
    const auto begins_here = [&](const TimedTransfer& t) { return t.begin == work.begin; };
    if (collectives != nullptr && collectives->Transfers(work.begin)) continue;
    if (std::any_of(host.begin(), host.end(), begins_here)) continue;
    if (data.instructions[work.begin].pool >= 0) continue;
    const Hardware& chip = context.hardware;
    timed.push_back(
        {work.begin, work.end,
         std::max({RatePs(work.bytes, chip.main_bytes_per_second),
                   RatePs(work.operations.flops, chip.flops_per_second),
                   RatePs(work.operations.transcendentals, chip.transcendentals_per_second)})});
  }
  return timed;
}

// Counts what has no time of its own, or less than it takes.
void CountUnknown(const CostImportContext& context, bool has_prices, const CostData& data,
                  ImportSummary& summary) {
  const Module& module = context.module;
  for (size_t tick = 0; tick < context.schedule.ticks.size(); ++tick) {
    const Schedule::Entry& entry = context.schedule.ticks[tick];
    if (entry.kind != InstructionKind::kOrdinary) continue;
    const int32_t i = entry.instruction;
    summary.host_computations += RunsOnHost(module, i) ? 1 : 0;
    // What has a price, or counts as unpriced, is known or told.
    summary.opaque_calls += !has_prices && !RunsOnHost(module, i) && IsOpaque(module, i) ? 1 : 0;
    if (module.opcode(i) != kAsyncStart || RunsOnHost(module, i) ||
        data.instructions[tick].pool >= 0)
      continue;
    for (const int32_t wrapped : module.called(i)) {
      const Computation& computation = module.computation(wrapped);
      for (int32_t k = 0; k < computation.instruction_count; ++k)
        summary.opaque_calls += IsOpaque(module, computation.first_instruction + k) ? 1 : 0;
    }
  }
}

// Adds the waits for links between chips, for the host, and for what runs beside the program.
void AddWaits(const CostImportContext& context, const Collectives* collectives,
              absl::Span<const TimedTransfer> host, absl::Span<const TimedTransfer> beside,
              CostData& data) {
  // The time at the full rate of the chip. Prices would tell more, but then a wait would change
  // with what else was compiled.
  const auto least_ps = [&](Tick tick) {
    return RatePs(data.instructions[tick].flops, context.hardware.flops_per_second);
  };
  const auto add = [&](absl::Span<const int64_t> waits) {
    for (size_t tick = 0; tick < waits.size(); ++tick)
      data.instructions[tick].link_ps += waits[tick];
  };
  if (collectives != nullptr) add(collectives->Waits(*context.links, least_ps));
  add(TransferWaits(host, data.instructions.size(), least_ps));
  add(TransferWaits(beside, data.instructions.size(), least_ps));
}

}  // namespace

absl::StatusOr<ImportSummary> BuildCost(const CostImportContext& context, ProgramData& data) {
  const CostAnalysis analysis(context.module);
  const Collectives found(context.module, context.schedule);
  const Collectives* const collectives = context.links ? &found : nullptr;
  for (size_t tick = 0; tick < context.schedule.ticks.size(); ++tick) {
    const Schedule::Entry& entry = context.schedule.ticks[tick];
    if (entry.kind != InstructionKind::kOrdinary) continue;
    InstructionCost& cost = data.cost.instructions[tick];
    AddRoofline(context.module, analysis, entry.instruction, cost);
    // What else a fusion does moves its arrays.
    if (collectives != nullptr && collectives->Transfers(static_cast<Tick>(tick)) &&
        context.module.opcode(entry.instruction) != kFusion) {
      SetNoneAccessed(cost.operands);
      SetNoneAccessed(cost.outputs);
    }
  }
  ImportSummary summary;
  data.cost.kind = CostKind::kRoofline;
  if (!context.input.priced.empty() || !context.input.profile.empty()) {
    data.cost.kind = CostKind::kProfile;
    MG_ASSIGN_OR_RETURN(const PriceTable table, ReadPrices(context));
    Pooling pooling(context, data);
    MG_RETURN_IF_ERROR(pooling.AddRows(table));
    pooling.Price(analysis, collectives);
    summary = pooling.summary();
  }
  for (Tick tick = 0; tick < static_cast<Tick>(context.schedule.ticks.size()); ++tick) {
    if (!found.Transfers(tick)) continue;
    if (collectives != nullptr) {
      ++summary.modelled_instructions;
    } else if (data.cost.instructions[tick].pool < 0) {
      const int32_t i = context.schedule.ticks[tick].instruction;
      summary.linkless_collectives += IsDone(context.module.opcode(i)) ? 0 : 1;
    }
  }
  const std::vector<TimedTransfer> host = HostTransfers(context.module, context.schedule),
                                   beside = TimedAsyncWork(context, analysis, collectives, host,
                                                           data.cost);
  summary.host_transfers = std::ssize(host);
  summary.async_computations = std::ssize(beside);
  CountUnknown(context, data.cost.kind == CostKind::kProfile, data.cost, summary);
  AddWaits(context, collectives, host, beside, data.cost);
  return summary;
}

}  // namespace mallocgame::hlo
