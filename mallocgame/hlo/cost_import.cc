// Joins the module with the prices: by name to find an instruction's rows, by structure to pool
// them.
#include "mallocgame/hlo/cost_import.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/hlo/arithmetic.h"
#include "mallocgame/hlo/cost_analysis.h"
#include "mallocgame/hlo/cost_bits.h"
#include "mallocgame/hlo/price_table.h"
#include "mallocgame/hlo/structure.h"

namespace mallocgame::hlo {
namespace {

constexpr int64_t kPointerBytes = 8;  // an entry of a tuple's table

// Asynchronous halves: their transfers are the plan's business, not the instruction's.
bool IsAsync(absl::string_view opcode) {
  return absl::EndsWith(opcode, "-start") || absl::EndsWith(opcode, "-done") ||
         opcode == "async-update";
}

// Without a price these take no time; any other instruction is taken to move its output.
bool FreeUnlessPriced(absl::string_view opcode) {
  return IsAsync(opcode) || opcode == "iota" || opcode == "partition-id";
}

void SetNoneAccessed(std::vector<CostArray>& arrays) {
  for (CostArray& array : arrays) array.accessed_bytes = 0;
}

// Bytes by array into cost arrays.
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
  const HloInstructionProto& proto = *module.instruction(instruction).proto;
  if (proto.opcode() == "tuple") {
    const int64_t table = kPointerBytes * static_cast<int64_t>(module.operands(instruction).size());
    if (table > 0) cost.outputs = {{table, table, -1, true}};
    return;
  }
  if (MovesNothing(proto)) return;
  if (IsAsync(proto.opcode())) {
    SetNoneAccessed(cost.operands);
    SetNoneAccessed(cost.outputs);
    return;
  }
  const Work work = analysis.Of(instruction);
  SetAccessed(work.read, OperandBits(module, instruction), cost.operands);
  SetAccessed(work.written, OutputBits(module, instruction), cost.outputs);
  cost.flops = work.flops;
  cost.transcendentals = work.transcendentals;
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

// Sorted rows, one a placement. Returns how many disagreed with the one that stayed.
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
    conflicts += static_cast<int64_t>(end - begin - 1);
  }
  rows.resize(kept);
  return conflicts;
}

class Pooling {
 public:
  Pooling(const CostImportContext& context, ProgramData& data, ImportSummary& summary)
      : context_(context), module_(context.module), data_(data), summary_(summary),
        structures_(context.module), structure_(context.timeline.ticks.size(), -1) {}

  // Pools the rows of every instruction that has some; pools are numbered in order of time.
  absl::Status AddRows(const PriceTable& table) {
    int64_t matched = 0;
    for (size_t tick = 0; tick < structure_.size(); ++tick) {
      const Timeline::Entry& entry = context_.timeline.ticks[tick];
      if (entry.kind == InstructionKind::kLoopEntry) continue;
      const auto found =
          table.instructions().find(module_.instruction(entry.instruction).proto->name());
      if (found == table.instructions().end()) continue;
      ++matched;
      MG_RETURN_IF_ERROR(CheckCounts(entry.instruction, found->second));
      if (!CanHavePrice(entry) || found->second.rows.empty()) continue;
      std::vector<CostRow>& rows = data_.cost.pools[PoolOf(tick, /*create=*/true)].rows;
      rows.insert(rows.end(), found->second.rows.begin(), found->second.rows.end());
    }
    const auto named = static_cast<int64_t>(table.instructions().size());
    summary_.profile_names_unmatched = named - matched;
    if (matched < summary_.profile_names_unmatched) {
      return absl::InvalidArgumentError(absl::StrCat("prices: of ", named,
                                                     " instructions that have some the module has ",
                                                     matched, ": they are of another program"));
    }
    for (CostPool& pool : data_.cost.pools) {
      summary_.conflicting_rows += Normalize(pool.rows);
      summary_.rows += static_cast<int64_t>(pool.rows.size());
    }
    summary_.pools = static_cast<int64_t>(data_.cost.pools.size());
    return absl::OkStatus();
  }

  // Gives every instruction its pool, or the bytes it moves.
  void Price(const CostAnalysis& analysis) {
    for (size_t tick = 0; tick < structure_.size(); ++tick) {
      const Timeline::Entry& entry = context_.timeline.ticks[tick];
      if (!CanHavePrice(entry)) continue;
      InstructionCost& cost = data_.cost.instructions[tick];
      cost.pool = PoolOf(tick, /*create=*/false);
      if (cost.pool >= 0) {
        ++summary_.priced_instructions;
      } else if (!FreeUnlessPriced(module_.instruction(entry.instruction).proto->opcode())) {
        ++summary_.unpriced_instructions;
        cost.unpriced_bytes = analysis.MovedBytes(entry.instruction);
      }
    }
  }

 private:
  bool CanHavePrice(const Timeline::Entry& entry) const {
    return entry.kind == InstructionKind::kOrdinary &&
           !MovesNothing(*module_.instruction(entry.instruction).proto);
  }

  absl::Status CheckCounts(int32_t instruction, const PricedInstruction& priced) const {
    const auto operands = static_cast<int64_t>(module_.operands(instruction).size());
    const auto outputs = static_cast<int64_t>(module_.arrays(instruction).size());
    if (priced.operands == operands && priced.outputs == outputs) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(module_.Where(instruction), " has ", operands, " operands and ", outputs,
                     " output arrays, its prices are of ", priced.operands, " and ", priced.outputs,
                     ": they are of another program"));
  }

  int32_t PoolOf(size_t tick, bool create) {
    if (structure_[tick] < 0)
      structure_[tick] = structures_.Of(context_.timeline.ticks[tick].instruction);
    const auto found = pool_of_structure_.find(structure_[tick]);
    if (found != pool_of_structure_.end()) return found->second;
    if (!create) return -1;
    const auto pool = static_cast<int32_t>(data_.cost.pools.size());
    data_.cost.pools.emplace_back();
    pool_of_structure_[structure_[tick]] = pool;
    return pool;
  }

  const CostImportContext& context_;
  const Module& module_;
  ProgramData& data_;
  ImportSummary& summary_;
  Structures structures_;
  std::vector<int32_t> structure_;  // by tick; -1: not asked for yet
  absl::flat_hash_map<int32_t, int32_t> pool_of_structure_;
};

}  // namespace

absl::Status BuildCost(const CostImportContext& context, ProgramData& data,
                       ImportSummary& summary) {
  const CostAnalysis analysis(context.module);
  for (size_t tick = 0; tick < context.timeline.ticks.size(); ++tick) {
    const Timeline::Entry& entry = context.timeline.ticks[tick];
    if (entry.kind == InstructionKind::kOrdinary) {
      AddRoofline(context.module, analysis, entry.instruction, data.cost.instructions[tick]);
    }
  }
  if (context.input.priced.empty() && context.input.profile.empty()) {
    data.cost.kind = CostKind::kRoofline;
    return absl::OkStatus();
  }
  data.cost.kind = CostKind::kProfile;
  MG_ASSIGN_OR_RETURN(const PriceTable table, ReadPrices(context));
  Pooling pooling(context, data, summary);
  MG_RETURN_IF_ERROR(pooling.AddRows(table));
  pooling.Price(analysis);
  return absl::OkStatus();
}

}  // namespace mallocgame::hlo
