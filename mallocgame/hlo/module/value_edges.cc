#include "mallocgame/hlo/module/value_edges.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/hlo/module/collective_steps.h"
#include "mallocgame/hlo/module/hlo.pb.h"

namespace mallocgame::hlo {
namespace {

using Index = std::vector<int64_t>;

absl::Status Bad(absl::string_view what) { return absl::InvalidArgumentError(what); }

class EdgeFinder {
 public:
  EdgeFinder(const Module& module, const AsyncChains& chains, int32_t i)
      : module_(module), chains_(chains), i_(i), own_(module.instruction(i)),
        operands_(module.operands(i)), called_(module.called(i)) {}

  absl::StatusOr<std::vector<ValueEdge>> Run() && {
    MG_RETURN_IF_ERROR(Find());
    for (const ValueEdge& edge : edges_) {
      MG_RETURN_IF_ERROR(CountAt(edge.from.instruction, edge.from.index).status());
      MG_RETURN_IF_ERROR(CountAt(edge.to.instruction, edge.to.index).status());
    }
    return std::move(edges_);
  }

 private:
  absl::Status Find() {
    if (HandsOperandOn(own_)) {
      if (operands_.empty()) return Bad("it has no operand");
      Add(Handing::kName, "operand and result", operands_[0], {}, {});
      return absl::OkStatus();
    }
    switch (own_.opcode) {
      case kTuple: return FindTuple();
      case kGetTupleElement:
        return Take(Handing::kName, "element and result", {own_.proto->tuple_index()});
      case kWhile: return FindWhile();
      case kConditional: return FindConditional();
      case kCall: return FindCall();
      case kCopyStart:  // It gives (destination, source, context).
        if (operands_.size() != 1) return Bad("it needs one operand");
        Add(Handing::kStep, "copied and passed on", operands_[0], {}, {1});
        Add(Handing::kCopy, "source and destination", operands_[0], {}, {0});
        return absl::OkStatus();
      case kCopyDone: return Take(Handing::kStep, "copied and passed on", {0});
      case kAsyncStart: return FindAsyncStart();
      case kAsyncUpdate: return FindAsyncUpdate();
      case kAsyncDone: return FindAsyncDone();
      case kCustomCall:
        if (!JoinsSlices(*own_.proto)) return absl::OkStatus();
        for (const int32_t operand : operands_)
          Add(Handing::kBytes, "slice and whole", operand, {}, {});
        return absl::OkStatus();
      default: return StartsOrEndsCollective(module_, i_) ? FindCollective() : absl::OkStatus();
    }
  }

  int32_t CountOf(int32_t i) const { return module_.instruction(i).array_count; }
  int32_t RootOf(int32_t computation) const { return module_.computation(computation).root; }
  absl::StatusOr<int32_t> CountAt(int32_t i, const Index& index) const {
    MG_ASSIGN_OR_RETURN(const Module::ArrayRange range, module_.SubShape(i, index));
    return range.count;
  }

  // To a part of the instruction's own result. Run looks whether there are such parts.
  void Add(Handing how, absl::string_view what, int32_t from, Index part, Index to) {
    edges_.push_back({how, what, {from, std::move(part)}, {i_, std::move(to)}});
  }
  // The result is a part of the only operand.
  absl::Status Take(Handing how, absl::string_view what, Index part) {
    if (operands_.size() != 1) return Bad("it needs one operand");
    Add(how, what, operands_[0], std::move(part), {});
    return absl::OkStatus();
  }
  absl::Status Enter(absl::string_view what, int32_t from, int32_t computation, int64_t number = 0,
                     Handing how = Handing::kEnter) {
    const std::vector<int32_t>& parameters = module_.computation(computation).parameters;
    if (number >= std::ssize(parameters))
      return Bad(absl::StrCat("the called computation has no parameter ", number));
    edges_.push_back({how, what, {from, {}}, {parameters[number], {}}});
    return absl::OkStatus();
  }

  absl::Status FindTuple() {
    int64_t given = 0, element = 0;
    for (const int32_t operand : operands_) {
      given += CountOf(operand);
      Add(Handing::kName, "operand and element", operand, {}, {element++});
    }
    if (given == own_.array_count && element == own_.element_count) return absl::OkStatus();
    return Bad(absl::StrCat("operands of ", given, " arrays make a tuple of ", own_.array_count));
  }

  absl::Status FindWhile() {
    if (operands_.size() != 1 || called_.size() != 2)
      return Bad("a while has one operand, a body and a condition");
    const int32_t root = RootOf(called_[0]);
    Add(Handing::kReturn, "while and its operand", operands_[0], {}, {});
    Add(Handing::kReturn, "while and its body's result", root, {}, {});
    for (const int32_t called : called_) {
      MG_RETURN_IF_ERROR(Enter("operand and parameter of a loop", operands_[0], called));
      MG_RETURN_IF_ERROR(
          Enter("result and parameter of a loop", root, called, 0, Handing::kRepeat));
    }
    return absl::OkStatus();
  }

  absl::Status FindConditional() {
    if (operands_.size() != called_.size() + 1)
      return Bad(absl::StrCat(operands_.size(), " operands for ", called_.size(), " branches"));
    for (size_t b = 0; b < called_.size(); ++b) {
      MG_RETURN_IF_ERROR(Enter("operand and branch parameter", operands_[b + 1], called_[b]));
      Add(Handing::kReturn, "conditional and branch result", RootOf(called_[b]), {}, {});
    }
    return absl::OkStatus();
  }

  // What is wrapped may be a call that has neither the arguments nor the result of its callee.
  absl::Status FindCall() {
    if (called_.size() != 1) return Bad("a call calls one computation");
    for (size_t k = 0; k < operands_.size(); ++k)
      MG_RETURN_IF_ERROR(Enter("operand and parameter", operands_[k], called_[0], k));
    const int32_t root = RootOf(called_[0]);
    if (own_.array_count > 0 || CountOf(root) == 0)
      Add(Handing::kReturn, "call and its result", root, {}, {});
    return absl::OkStatus();
  }

  // A *-start gives (operands, results) or, of an all-reduce, the results. Several operands or
  // results are a tuple: a *-done gives the elements of it in a tuple of its own.
  absl::Status FindCollective() {
    if (const std::optional<HandedOver> starts = HandedOverBy(module_, i_)) {
      for (int64_t k = 0; k < std::ssize(operands_.first(starts->operand_count)); ++k) {
        Add(Handing::kStep, "operand", operands_[k], {},
            starts->operand_count > 1 ? Index{0, k} : Index{0});
      }
      return absl::OkStatus();
    }
    const Index results =
        HandedOverBy(module_, operands_[0])->operand_count > 0 ? Index{1} : Index{};
    if (own_.element_count == 0) Add(Handing::kStep, "result", operands_[0], results, {});
    for (int64_t k = 0; k < own_.element_count; ++k) {
      Index part = results;
      part.push_back(k);
      Add(Handing::kStep, "result", operands_[0], std::move(part), {k});
    }
    return absl::OkStatus();
  }

  // async-start and async-update give ((arguments), result of what is wrapped, contexts ...), and
  // async-done the result. An async-start may leave arguments or the result empty, so that an
  // async-update gives them. What is wrapped may then have none of them either.
  absl::Status FindAsyncStart() {
    if (called_.size() != 1) return Bad("it wraps one computation");
    MG_RETURN_IF_ERROR(FindArguments(operands_));
    return FindReturned({1});
  }

  absl::Status FindAsyncUpdate() {
    if (operands_.empty()) return Bad("it needs an operand");
    const bool has_start = chains_.StartOf(i_) != kNone;
    if (!has_start && operands_.size() > 1)
      return Bad("it brings operands, and its first is no async-start");
    if (operands_.size() == 1 && (!has_start || CountOf(operands_[0]) == own_.array_count))
      return Take(Handing::kStep, "operand and result", {});
    MG_RETURN_IF_ERROR(FindArguments(operands_.subspan(1)));
    for (int64_t k = 1;; ++k) {
      const absl::StatusOr<int32_t> mine = CountAt(i_, {k}), given = CountAt(operands_[0], {k});
      if (!mine.ok() || !given.ok()) break;
      if (*mine == *given) Add(Handing::kBytes, "context", operands_[0], {k}, {k});
    }
    return FindReturned({1});
  }

  absl::Status FindAsyncDone() {
    if (operands_.size() != 1) return Bad("it needs one operand");
    MG_ASSIGN_OR_RETURN(const int32_t given, CountAt(operands_[0], {1}));
    if (chains_.StartOf(i_) != kNone && given == 0 && own_.array_count > 0) return FindReturned({});
    return Take(Handing::kStep, "result", {1});
  }

  // The arguments that the instruction holds are those given before it, and `given`.
  absl::Status FindArguments(absl::Span<const int32_t> given) {
    const int32_t wrapped = module_.called(chains_.StartOf(i_))[0];
    const int64_t before = chains_.GivenBefore(i_);
    int64_t count = 0;
    if (before > 0) {
      MG_ASSIGN_OR_RETURN(count, CountAt(operands_[0], {0}));
    }
    for (const int32_t operand : given) count += CountOf(operand);
    MG_ASSIGN_OR_RETURN(const int32_t mine, CountAt(i_, {0}));
    if (count != mine) return Bad(absl::StrCat("arguments: ", mine, " arrays, given ", count));
    for (int64_t k = 0; k < before; ++k)
      Add(Handing::kStep, "arguments", operands_[0], {0, k}, {0, k});
    for (int64_t k = 0; k < std::ssize(given); ++k) {
      Add(Handing::kStep, "operand and argument", given[k], {}, {0, before + k});
      if (module_.computation(wrapped).parameters.empty()) continue;
      MG_RETURN_IF_ERROR(Enter("operand and wrapped parameter", given[k], wrapped, before + k));
    }
    return absl::OkStatus();
  }

  // Unless operands are still to come, or one side is empty.
  absl::Status FindReturned(Index to) {
    const int32_t wrapped = module_.called(chains_.StartOf(i_))[0], root = RootOf(wrapped);
    MG_ASSIGN_OR_RETURN(const int32_t count, CountAt(i_, to));
    if (chains_.HasAllAt(module_, i_) && (count == 0) == (CountOf(root) == 0))
      Add(Handing::kReturn, "result and wrapped result", root, {}, std::move(to));
    return absl::OkStatus();
  }

  const Module& module_;
  const AsyncChains& chains_;
  const int32_t i_;
  const HloInstruction& own_;
  const absl::Span<const int32_t> operands_, called_;
  std::vector<ValueEdge> edges_;
};

}  // namespace

absl::StatusOr<std::vector<ValueEdge>> EdgesOf(const Module& module, const AsyncChains& chains,
                                               int32_t instruction) {
  return EdgeFinder(module, chains, instruction).Run();
}

bool HandsOperandOn(const HloInstruction& instruction) {
  return instruction.opcode == kBitcast || instruction.opcode == kOptBarrier ||
         instruction.opcode == kDomain || instruction.opcode == kAddDependency ||
         IsPlacementHint(*instruction.proto);
}

}  // namespace mallocgame::hlo
