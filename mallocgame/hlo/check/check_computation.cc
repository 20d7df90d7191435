// Compares what two modules compute. The numbers of computation_numbers.h are equal where values
// are; what is left here is to find the instruction that makes the difference.
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "mallocgame/base/error.h"
#include "mallocgame/hlo/check/computation_numbers.h"
#include "mallocgame/hlo/check/phase_reading.h"
#include "mallocgame/hlo/check/phase_rules.h"
#include "mallocgame/hlo/module/hlo.pb.h"

namespace mallocgame::hlo {
namespace {

class ComputationChecker {
 public:
  ComputationChecker(const PhaseReading& original, const PhaseReading& written,
                     const Hardware& hardware)
      : original_(*original.module), written_(*written.module), table_(hardware.fast_memory_space),
        before_(original_, table_), after_(written_, table_) {}

  absl::Status Run() const {
    MG_RETURN_IF_ERROR(CheckControlOrder());
    if (before_.OfComputation(original_.entry()) == after_.OfComputation(written_.entry()))
      return absl::OkStatus();
    // Callees stand before callers, and operands before users: the first one is where it begins.
    const absl::flat_hash_set<int32_t> known = AllOf(original_, before_);
    for (int32_t i = 0; i < std::ssize(written_.instructions()); ++i) {
      if (after_.OfInstruction(i) == kNone || known.contains(after_.OfInstruction(i))) continue;
      return Refuse(PhaseRule::kComputation, {written_.NameOf(i)}, written_.Where(i),
                    " makes a value that the original does not make: ", Difference(i));
    }
    const absl::flat_hash_set<int32_t> made = AllOf(written_, after_);
    for (int32_t i = 0; i < std::ssize(original_.instructions()); ++i) {
      if (before_.OfInstruction(i) == kNone || made.contains(before_.OfInstruction(i))) continue;
      return Refuse(PhaseRule::kComputation, {original_.NameOf(i)}, original_.Where(i),
                    " of the original makes a value that the written module does not make");
    }
    return OtherResults();
  }

 private:
  static absl::flat_hash_set<int32_t> AllOf(const Module& module, const ModuleNumbers& numbers) {
    absl::flat_hash_set<int32_t> all;
    for (int32_t i = 0; i < std::ssize(module.instructions()); ++i)
      all.insert(numbers.OfInstruction(i));
    return all;
  }

  // How an instruction differs from the original of its name.
  std::string Difference(int32_t i) const {
    const std::optional<int32_t> before =
        original_.FindByName(written_.instruction(i).proto->name());
    if (!before) return "the original has no instruction of its name";
    const absl::Span<const int32_t> own = written_.operands(i), other = original_.operands(*before);
    if (own.size() != other.size())
      return absl::StrCat("it has ", own.size(), " operands, the original has ", other.size());
    for (size_t k = 0; k < own.size(); ++k) {
      const int32_t count = written_.instruction(own[k]).array_count;
      if (count != original_.instruction(other[k]).array_count)
        return absl::StrCat("operand ", k, " has another shape");
      for (int32_t a = 0; a < count; ++a) {
        if (after_.OfArray(own[k], a) == before_.OfArray(other[k], a)) continue;
        return absl::StrCat("operand ", k, ", '", written_.instruction(own[k]).proto->name(),
                            "', is another value than the original's, '",
                            original_.instruction(other[k]).proto->name(), "'");
      }
    }
    return "its operands are the original's, its attributes, its shape or what it calls are not";
  }

  // All values are made in both. Some is made more often, or others are results.
  absl::Status OtherResults() const {
    for (int32_t i = 0; i < std::ssize(written_.computations()); ++i) {
      const int32_t root = written_.computation(i).root;
      const std::optional<int32_t> before =
          original_.FindByName(written_.instruction(root).proto->name());
      if (!before ||
          original_.instruction(*before).array_count != written_.instruction(root).array_count)
        continue;
      for (int32_t k = 0; k < written_.instruction(root).array_count; ++k) {
        if (after_.OfArray(root, k) == before_.OfArray(*before, k)) continue;
        return Refuse(PhaseRule::kComputation, {}, "result ", k, " of computation '",
                      written_.computation(i).proto->name(),
                      "' is another value than in the original");
      }
    }
    return Refuse(PhaseRule::kComputation, {},
                  "an instruction runs more or less often than in the original, or instructions "
                  "with effects run in another order");
  }

  // What the original orders by control edges stays in that order, where both are left.
  absl::Status CheckControlOrder() const {
    std::vector<int32_t> place(written_.instructions().size(), kNone);
    for (const Computation& computation : written_.computations()) {
      for (size_t k = 0; k < computation.schedule.size(); ++k)
        place[computation.schedule[k]] = static_cast<int32_t>(k);
    }
    for (int32_t i = 0; i < std::ssize(original_.instructions()); ++i) {
      const std::optional<int32_t> own = Counterpart(i);
      if (!own) continue;
      for (const int64_t id : original_.instruction(i).proto->control_predecessor_ids()) {
        const std::optional<int32_t> first = original_.FindById(id);
        const std::optional<int32_t> before = first ? Counterpart(*first) : std::nullopt;
        if (!before || place[*before] < place[*own] ||
            written_.instruction(*before).computation != written_.instruction(*own).computation)
          continue;
        return Refuse(PhaseRule::kSchedule, {written_.NameOf(*own), written_.NameOf(*before)},
                      written_.Where(*own), " runs before '",
                      written_.instruction(*before).proto->name(),
                      "', which the original orders before it");
      }
    }
    return absl::OkStatus();
  }

  std::optional<int32_t> Counterpart(int32_t i) const {
    const HloInstructionProto& proto = *original_.instruction(i).proto;
    const std::optional<int32_t> own = written_.FindByName(proto.name());
    if (!own || written_.opcode(*own) != original_.opcode(i)) return std::nullopt;
    return own;
  }

  const Module& original_;
  const Module& written_;
  ValueTable table_;
  ModuleNumbers before_, after_;
};

}  // namespace

absl::Status CheckComputation(const PhaseReading& original, const PhaseReading& written,
                              const Hardware& hardware) {
  return ComputationChecker(original, written, hardware).Run();
}

}  // namespace mallocgame::hlo
