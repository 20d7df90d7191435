// Runs the program with the copies left out, and looks at each read whether the storage still holds
// the value that is wanted. If not, some copy is needed, and all of it begins again.
#include "mallocgame/hlo/import/needed_copies.h"

#include <map>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "mallocgame/base/error.h"
#include "mallocgame/hlo/module/collective_steps.h"
#include "mallocgame/hlo/module/dataflow.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/module/opcodes.h"
#include "mallocgame/hlo/module/value_flow.h"

namespace mallocgame::hlo {
namespace {

class Run {
 public:
  Run(const Module& module, const Dataflow& dataflow, const ValueFlow& flow,
      absl::Span<const CopyOfArray> copies, std::vector<bool>& needed)
      : module_(module), flow_(flow), copies_(copies), needed_(needed),
        value_(module.array_count(), 0), via_(module.array_count(), kNone) {
    storage_.reserve(module.array_count());
    for (size_t a = 0; a < module.array_count(); ++a)
      storage_.push_back(dataflow.SetOf(static_cast<int32_t>(a)));
    united_.resize(module.array_count());
    std::iota(united_.begin(), united_.end(), 0);
    for (size_t c = 0; c < copies.size(); ++c) {
      if (needed[c]) continue;
      united_[Storage(copies[c].result)] = Storage(copies[c].source);
      copy_of_.emplace(copies[c].result, static_cast<int32_t>(c));
      for (const int32_t array : copies[c].begun_as)
        copy_of_.emplace(array, static_cast<int32_t>(c));
    }
    holds_.assign(module.array_count(), 0);
    is_wrong_.assign(module.array_count(), false);
  }

  // Whether it could do without the copies that aren't needed yet. If not, more are needed now.
  bool Succeeds() {
    Visit(module_.entry());
    CheckEnd(module_.computation(module_.entry()));
    return !failed_;
  }

 private:
  // The storage of an array: the set that Dataflow has it in, united by copies.
  int32_t Storage(int32_t array) {
    int32_t at = storage_[array];
    while (united_[at] != at) at = united_[at] = united_[united_[at]];
    return at;
  }
  int32_t First(int32_t i) const { return module_.instruction(i).first_array; }
  int32_t Count(int32_t i) const { return module_.instruction(i).array_count; }

  void Make(int32_t array) { holds_[Storage(array)] = value_[array] = ++last_value_; }
  void HandOn(int32_t from, int32_t to) {
    value_[to] = value_[from];
    if (via_[to] == kNone) via_[to] = via_[from];
  }

  void CheckRead(int32_t i) {
    for (int32_t array = First(i); array < First(i) + Count(i); ++array) CheckHolds(array);
  }

  void CheckHolds(int32_t array) {
    const int32_t storage = Storage(array);
    // What follows the first wrong read of a storage is of no meaning.
    if (holds_[storage] == value_[array] || is_wrong_[storage]) return;
    is_wrong_[storage] = true;
    // The copy is needed by which the value came. If it came by none, then it has been changed in
    // the other end of one.
    if (const int32_t copy = via_[array]; copy != kNone && !needed_[copy]) {
      needed_[copy] = failed_ = true;
    } else {
      NeedFor(array);
    }
  }

  // Results are there, and so are constants and those arguments that were not given away. None of
  // them share storage.
  void CheckEnd(const Computation& entry) {
    CheckRead(entry.root);
    absl::flat_hash_map<int32_t, int32_t> owner;  // by storage: the set that has it
    absl::flat_hash_set<int32_t> results;
    const auto own = [&](int32_t array) {
      const auto [found, is_new] = owner.emplace(Storage(array), storage_[array]);
      if (is_new || found->second == storage_[array] || is_wrong_[found->first]) return;
      is_wrong_[found->first] = true;
      NeedFor(array);
    };
    for (int32_t array = First(entry.root); array < First(entry.root) + Count(entry.root);
         ++array) {
      results.insert(storage_[array]);
      own(array);
    }
    for (int32_t i = 0; i < std::ssize(module_.instructions()); ++i) {
      const HloInstruction& instruction = module_.instruction(i);
      const bool stays =
          instruction.opcode == kConstant || (instruction.opcode == kParameter && IsInEntry(i));
      // What is no value of the program's own, such as a constant of a fusion, was never made.
      if (!stays) continue;
      for (int32_t array = First(i); array < First(i) + Count(i); ++array) {
        if (value_[array] == 0 || results.contains(storage_[array])) continue;
        own(array);
        CheckHolds(array);
      }
    }
  }

  // Keeps what was united with the array's own set, or else all copies of its storage.
  void NeedFor(int32_t array) {
    const bool near = NeedAll([&](const CopyOfArray& copy) {
      return storage_[copy.source] == storage_[array] || storage_[copy.result] == storage_[array];
    });
    if (near) return;
    const int32_t storage = Storage(array);
    NeedAll([&](const CopyOfArray& copy) { return Storage(copy.result) == storage; });
  }

  // Whether there are any such that were not needed before.
  template <class Predicate>
  bool NeedAll(const Predicate& predicate) {
    bool any = false;
    for (size_t c = 0; c < copies_.size(); ++c) {
      if (needed_[c] || !predicate(copies_[c])) continue;
      needed_[c] = any = failed_ = true;
    }
    return any;
  }

  void Visit(int32_t computation) {
    for (const int32_t i : module_.computation(computation).schedule) {
      const Opcode opcode = module_.opcode(i);
      if (opcode == kWhile) {
        VisitLoop(i);
      } else if (opcode == kConditional) {
        VisitConditional(i);
      } else if (opcode == kCall) {
        VisitCall(i);
      } else {
        VisitOrdinary(i);
      }
    }
  }

  void VisitOrdinary(int32_t i) {
    const Opcode opcode = module_.opcode(i);
    if (!MovesNothing(module_.instruction(i))) {
      for (const int32_t operand : module_.operands(i)) CheckRead(operand);
    }
    const std::vector<bool> hands_on = HandsOn(module_, i);
    const bool is_step = IsAsynchronous(opcode) && !EndsCollective(opcode);
    for (int32_t array = First(i); array < First(i) + Count(i); ++array) {
      const auto copy = copy_of_.find(array);
      const int32_t before = flow_.Before(array);
      int32_t operand = kNone;
      if (is_step || hands_on[array - First(i)]) operand = OperandIn(i, storage_[array]);
      if (copy != copy_of_.end()) {
        value_[array] = value_[copies_[copy->second].source];
        via_[array] = copy->second;
      } else if (before != kNone) {
        HandOn(before, array);
      } else if (operand != kNone) {
        HandOn(operand, array);
      } else if (opcode != kParameter || IsInEntry(i)) {
        Make(array);
      }
    }
  }

  bool IsInEntry(int32_t i) const { return module_.instruction(i).computation == module_.entry(); }

  // The array of an operand that is the same storage without any copy; kNone: there is none.
  int32_t OperandIn(int32_t i, int32_t storage) const {
    for (const int32_t operand : module_.operands(i)) {
      for (int32_t array = First(operand); array < First(operand) + Count(operand); ++array) {
        if (storage_[array] == storage) return array;
      }
    }
    return kNone;
  }

  // Gives the arrays from `to` on new values, one for each value that those from `from` on have in
  // one storage.
  void MakeAnew(int32_t from, int32_t to, int32_t count) {
    std::map<std::pair<int32_t, int64_t>, int64_t> made;
    for (int32_t k = 0; k < count; ++k) {
      const int32_t storage = Storage(to + k);
      int64_t& value = made[{storage, value_[from + k]}];
      if (value == 0) value = ++last_value_;
      holds_[storage] = value_[to + k] = value;
      via_[to + k] = via_[from + k];
    }
  }

  // What a loop carries has in each trip the value of the trip before.
  void VisitLoop(int32_t i) {
    const int32_t body = module_.called(i)[0], condition = module_.called(i)[1];
    const int32_t given = module_.operands(i)[0], root = module_.computation(body).root;
    const int32_t parameter = First(module_.computation(body).parameters[0]);
    const int32_t tested = First(module_.computation(condition).parameters[0]);
    CheckRead(given);
    MakeAnew(First(given), parameter, Count(i));
    for (int32_t k = 0; k < Count(i); ++k) HandOn(parameter + k, tested + k);
    Visit(condition);
    Visit(body);
    CheckRead(root);
    std::vector<bool> passes(Count(i));
    for (int32_t k = 0; k < Count(i); ++k)
      passes[k] = value_[First(root) + k] == value_[parameter + k];
    MakeAnew(First(root), First(i), Count(i));
    for (int32_t k = 0; k < Count(i); ++k) {
      if (!passes[k]) continue;
      const int32_t array = First(i) + k;
      holds_[Storage(array)] = value_[array] = value_[First(given) + k];
    }
  }

  // Nobody knows which branch runs. So what some branch changes has changed.
  void VisitConditional(int32_t i) {
    const std::vector<int64_t> before = holds_;
    std::vector<bool> changed(holds_.size(), false);
    int32_t last_root = kNone;
    for (size_t branch = 0; branch < module_.called(i).size(); ++branch) {
      holds_ = before;
      const Computation& computation = module_.computation(module_.called(i)[branch]);
      const int32_t given = module_.operands(i)[branch + 1];
      const int32_t parameter = computation.parameters[0];
      for (int32_t k = 0; k < Count(parameter); ++k) HandOn(First(given) + k, First(parameter) + k);
      Visit(module_.called(i)[branch]);
      CheckRead(last_root = computation.root);
      for (size_t s = 0; s < holds_.size(); ++s) changed[s] = changed[s] || holds_[s] != before[s];
    }
    holds_ = before;
    for (size_t s = 0; s < holds_.size(); ++s) {
      if (changed[s]) holds_[s] = ++last_value_;
    }
    if (last_root != kNone) MakeAnew(First(last_root), First(i), Count(i));
  }

  void VisitCall(int32_t i) {
    const Computation& callee = module_.computation(module_.called(i)[0]);
    for (size_t p = 0; p < callee.parameters.size() && p < module_.operands(i).size(); ++p) {
      const int32_t given = module_.operands(i)[p], parameter = callee.parameters[p];
      for (int32_t k = 0; k < Count(parameter); ++k) HandOn(First(given) + k, First(parameter) + k);
    }
    Visit(module_.called(i)[0]);
    for (int32_t k = 0; k < Count(i); ++k) HandOn(First(callee.root) + k, First(i) + k);
  }

  const Module& module_;
  const ValueFlow& flow_;
  const absl::Span<const CopyOfArray> copies_;
  std::vector<bool>& needed_;
  std::vector<int32_t> storage_, united_;          // by array; united_ of sets' names
  absl::flat_hash_map<int32_t, int32_t> copy_of_;  // by array: the copy that makes it
  std::vector<int64_t> value_, holds_;             // by array; by storage
  std::vector<int32_t> via_;                       // by array: the last copy it came by
  std::vector<bool> is_wrong_;                     // by storage
  int64_t last_value_ = 0;
  bool failed_ = false;
};

}  // namespace

absl::StatusOr<std::vector<bool>> NeededCopies(const Module& module, const Schedule& schedule,
                                               absl::Span<const CopyOfArray> copies) {
  MG_ASSIGN_OR_RETURN(const Dataflow dataflow, Dataflow::Build(module, schedule));
  const ValueFlow flow(module, schedule);
  std::vector<bool> needed(copies.size(), false);
  while (!Run(module, dataflow, flow, copies, needed).Succeeds()) {
  }
  return needed;
}

}  // namespace mallocgame::hlo
