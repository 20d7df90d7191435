// Reads prices from protobufs and JSON. Both are data from outside, so every row is checked.
#include "mallocgame/hlo/cost/price_table.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "mallocgame/base/error.h"
#include "mallocgame/hlo/module/backend_config.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/module/module.h"
#include "mallocgame/program/cost_model.h"
#include "nlohmann/json.hpp"

namespace mallocgame::hlo {
namespace {

constexpr int64_t kMaxCycles = 1'000'000'000'000'000;
constexpr size_t kMaxArrays = 1 << 16;

// The computations that run on the time axis, each once: those that while, conditional and call
// reach from the entry.
std::vector<int32_t> ControlComputations(const Module& module) {
  std::vector<int32_t> found = {module.entry()};
  std::vector<bool> seen(module.computations().size());
  seen[module.entry()] = true;
  for (size_t next = 0; next < found.size(); ++next) {
    const Computation& computation = module.computation(found[next]);
    for (int32_t i = 0; i < computation.instruction_count; ++i) {
      const int32_t instruction = computation.first_instruction + i;
      const Opcode opcode = module.opcode(instruction);
      if (!RunsComputations(opcode)) continue;
      for (const int32_t callee : module.called(instruction)) {
        if (seen[callee]) continue;
        seen[callee] = true;
        found.push_back(callee);
      }
    }
  }
  return found;
}

// By instruction: whether some array of its result lies in `memory_space`.
std::vector<bool> SomeArrayIn(const Module& module, int64_t memory_space) {
  std::vector<bool> some(module.instructions().size());
  for (int32_t i = 0; i < std::ssize(some); ++i) {
    for (const Array& array : module.arrays(i)) {
      some[i] = some[i] || array.memory_space == memory_space;
    }
  }
  return some;
}

// The bits that a string of '0' and '1' says. None if an array that shares its bit is in fast
// memory and too large to be overlooked.
std::optional<uint64_t> ToBits(absl::string_view text, const CostBits& bits_of) {
  uint64_t bits = 0;
  for (size_t k = 0; k < text.size(); ++k) {
    if (text[k] != '1') continue;
    if (!bits_of.shared(k)) {
      bits |= uint64_t{1} << bits_of.of[k];
    } else if (bits_of.size_bytes[k] >= kSmallArrayBytes) {
      return std::nullopt;
    }
  }
  return bits;
}

bool IsBitString(const nlohmann::json& value) {
  if (!value.is_string()) return false;
  const std::string& text = value.get_ref<const std::string&>();
  return text.size() <= kMaxArrays && text.find_first_not_of("01") == std::string::npos;
}

}  // namespace

std::optional<int64_t> EstimatedCycles(absl::string_view backend_config) {
  while (SkipToValue("estimated_cycles", &backend_config)) {
    absl::string_view rest = backend_config;
    absl::ConsumePrefix(&rest, "\"");
    const size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    int64_t cycles = 0;
    if (digits > 0 && absl::SimpleAtoi(rest.substr(0, digits), &cycles) && cycles <= kMaxCycles)
      return cycles;
  }
  return std::nullopt;
}

absl::Status PriceTable::AddModule(absl::string_view proto, absl::string_view what,
                                   int32_t fast_memory_space) {
  MG_ASSIGN_OR_RETURN(const std::unique_ptr<const Module> module, Module::Parse(proto, what));
  if (absl::Status status = CheckFastMemorySpace(*module, fast_memory_space); !status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": ", status.message()));
  }
  const std::vector<bool> some_fast = SomeArrayIn(*module, fast_memory_space);
  std::string operands, outputs;
  for (const int32_t c : ControlComputations(*module)) {
    const Computation& computation = module->computation(c);
    for (int32_t i = computation.first_instruction;
         i < computation.first_instruction + computation.instruction_count; ++i) {
      const std::optional<int64_t> cycles =
          EstimatedCycles(module->instruction(i).proto->backend_config());
      if (!cycles) continue;
      operands.clear();
      for (const int32_t operand : module->operands(i)) operands += some_fast[operand] ? '1' : '0';
      outputs.clear();
      for (const Array& array : module->arrays(i))
        outputs += array.memory_space == fast_memory_space ? '1' : '0';
      if (absl::Status status =
              AddRow(module->instruction(i).proto->name(), operands, outputs, *cycles);
          !status.ok()) {
        return absl::InvalidArgumentError(absl::StrCat(what, ": ", status.message()));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status PriceTable::AddProfile(absl::string_view json) {
  const nlohmann::json table =
      nlohmann::json::parse(json.begin(), json.end(), nullptr, /*allow_exceptions=*/false);
  if (!table.is_object()) {
    return absl::InvalidArgumentError(
        "profile: not JSON of the form {instruction: [[operands, outputs, cycles], ...]}");
  }
  for (const auto& [name, rows] : table.items()) {
    if (!rows.is_array()) {
      return absl::InvalidArgumentError(
          absl::StrCat("profile: instruction '", name, "': found ", rows.type_name(),
                       ", allowed is an array of [operands, outputs, cycles]"));
    }
    for (size_t r = 0; r < rows.size(); ++r) {
      const nlohmann::json& row = rows[r];
      const std::string where = absl::StrCat("profile: instruction '", name, "' row ", r, ": ");
      if (!row.is_array() || row.size() != 3 || !IsBitString(row[0]) || !IsBitString(row[1])) {
        return absl::InvalidArgumentError(absl::StrCat(
            where, "allowed is [operands, outputs, cycles], the first two strings of 0 and 1"));
      }
      // An unsigned value above the signed range becomes negative here.
      const int64_t cycles = row[2].is_number_integer() ? row[2].get<int64_t>() : -1;
      if (cycles < 0 || cycles > kMaxCycles) {
        return absl::InvalidArgumentError(
            absl::StrCat(where, "cycles must be an integer from 0 to ", kMaxCycles));
      }
      const absl::Status status = AddRow(name, row[0].get_ref<const std::string&>(),
                                         row[1].get_ref<const std::string&>(), cycles);
      if (!status.ok()) return absl::InvalidArgumentError(absl::StrCat(where, status.message()));
    }
  }
  return absl::OkStatus();
}

absl::Status PriceTable::AddRow(absl::string_view name, absl::string_view operands,
                                absl::string_view outputs, int64_t cycles) {
  auto found = instructions_.find(name);
  if (found == instructions_.end()) {
    PricedInstruction priced;
    priced.operands = std::ssize(operands);
    priced.outputs = std::ssize(outputs);
    if (const std::optional<int32_t> instruction = module_.FindByName(name)) {
      priced.operand_bits = OperandBits(module_, *instruction);
      priced.output_bits = OutputBits(module_, *instruction);
    }
    found = instructions_.emplace(std::string(name), std::move(priced)).first;
  }
  PricedInstruction& priced = found->second;
  if (priced.operands != std::ssize(operands) || priced.outputs != std::ssize(outputs)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "instruction '", name, "' has ", operands.size(), " operands and ", outputs.size(),
        " output arrays here, ", priced.operands, " and ", priced.outputs, " before"));
  }
  // The module does not have this instruction, or has it with other arrays. Whoever uses the table
  // judges that.
  if (priced.operand_bits.of.size() != operands.size() ||
      priced.output_bits.of.size() != outputs.size()) {
    return absl::OkStatus();
  }
  const std::optional<uint64_t> operand_bits = ToBits(operands, priced.operand_bits);
  const std::optional<uint64_t> output_bits = ToBits(outputs, priced.output_bits);
  if (operand_bits && output_bits) priced.rows.push_back({*operand_bits, *output_bits, cycles});
  return absl::OkStatus();
}

void PriceTable::Finish() {
  for (auto& [name, priced] : instructions_) {
    std::vector<CostRow>& rows = priced.rows;
    std::sort(rows.begin(), rows.end(), [](const CostRow& a, const CostRow& b) {
      return std::tie(a.operands, a.outputs, a.cycles) < std::tie(b.operands, b.outputs, b.cycles);
    });
    rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  }
}

}  // namespace mallocgame::hlo
