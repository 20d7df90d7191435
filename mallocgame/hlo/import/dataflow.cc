// Computes the must-alias closure by union-find over the arrays of the module.
#include "mallocgame/hlo/import/dataflow.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/hlo/cost/collectives.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/module/in_place.h"
#include "mallocgame/hlo/module/opcodes.h"

namespace mallocgame::hlo {
namespace {

// A run of arrays, by their indices among all arrays of the module.
struct Arrays {
  int32_t first = 0, count = 0;
};

class Closure {
 public:
  Closure(const Module& module, const Schedule& schedule)
      : module_(module), schedule_(schedule), in_place_(module),
        is_wrapped_(module.computations().size()) {
    parent_.resize(module.array_count());
    std::iota(parent_.begin(), parent_.end(), 0);
  }

  absl::StatusOr<std::vector<int32_t>> Run() {
    for (const Schedule::Entry& tick : schedule_.ticks) {
      if (tick.kind != InstructionKind::kLoopEntry)
        MG_RETURN_IF_ERROR(VisitNamed(tick.instruction));
    }
    while (!wrapped_.empty()) {
      const int32_t computation = wrapped_.back();
      wrapped_.pop_back();
      MG_RETURN_IF_ERROR(VisitWrapped(module_.computation(computation)));
    }
    MG_RETURN_IF_ERROR(UniteDonated());
    for (size_t array = 0; array < parent_.size(); ++array)
      parent_[array] = Find(static_cast<int32_t>(array));
    return std::move(parent_);
  }

 private:
  int32_t Find(int32_t array) {
    while (parent_[array] != array) {
      int32_t& up = parent_[array];
      up = parent_[up];
      array = up;
    }
    return array;
  }

  // The smaller root wins, so that a set is named by its smallest array.
  void Unite(int32_t a, int32_t b) {
    a = Find(a);
    b = Find(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

  Arrays Of(int32_t i) const {
    return {module_.instruction(i).first_array, module_.instruction(i).array_count};
  }
  Arrays RootOf(int32_t computation) const { return Of(module_.computation(computation).root); }

  absl::Status Unite(Arrays a, Arrays b, absl::string_view what) {
    if (a.count != b.count) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, ": ", a.count, " arrays against ", b.count));
    }
    for (int32_t k = 0; k < a.count; ++k) Unite(a.first + k, b.first + k);
    return absl::OkStatus();
  }

  absl::StatusOr<Arrays> ParameterOf(int32_t computation, size_t number) const {
    const std::vector<int32_t>& parameters = module_.computation(computation).parameters;
    if (number >= parameters.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the called computation has no parameter ", number));
    }
    return Of(parameters[number]);
  }

  absl::Status VisitNamed(int32_t i) {
    absl::Status status = Visit(i);
    if (status.ok() || absl::StrContains(status.message(), module_.Where(i))) return status;
    return absl::InvalidArgumentError(absl::StrCat(module_.Where(i), ": ", status.message()));
  }

  // What an asynchronous instruction wraps is not on the time axis, but says which of its arguments
  // is its result.
  absl::Status VisitWrapped(const Computation& computation) {
    for (int32_t k = 0; k < computation.instruction_count; ++k) {
      const int32_t i = computation.first_instruction + k;
      MG_RETURN_IF_ERROR(VisitNamed(i));
      if (!RunsComputations(module_.opcode(i))) continue;
      for (const int32_t called : module_.called(i)) AddWrapped(called);
    }
    return absl::OkStatus();
  }

  void AddWrapped(int32_t computation) {
    if (is_wrapped_[computation]) return;
    is_wrapped_[computation] = true;
    wrapped_.push_back(computation);
  }

  absl::Status Visit(int32_t i) {
    const HloInstructionProto& proto = *module_.instruction(i).proto;
    const absl::Span<const int32_t> operands = module_.operands(i);
    const Opcode opcode = module_.opcode(i);
    if (opcode == kBitcast || opcode == kOptBarrier || opcode == kDomain ||
        opcode == kAddDependency || IsPlacementHint(proto)) {
      if (operands.empty()) return absl::InvalidArgumentError("it has no operand");
      return Unite(Of(i), Of(operands[0]), "operand and result");
    }
    if (opcode == kTuple) return VisitTuple(i);
    if (opcode == kGetTupleElement) {
      if (operands.size() != 1) return absl::InvalidArgumentError("it needs one operand");
      MG_ASSIGN_OR_RETURN(const Module::ArrayRange range,
                          module_.SubShape(operands[0], {proto.tuple_index()}));
      return Unite(Of(i), {Of(operands[0]).first + range.first, range.count}, "element and result");
    }
    if (opcode == kWhile) return VisitWhile(i);
    if (opcode == kConditional) return VisitConditional(i);
    if (opcode == kCall) return VisitCall(i);
    if (opcode == kCopyStart || opcode == kCopyDone) return VisitCopy(i);
    if (StartsOrEndsCollective(module_, i)) return VisitCollective(i);
    if (opcode == kAsyncStart || opcode == kAsyncUpdate || opcode == kAsyncDone)
      return VisitAsync(i);
    if (opcode == kCustomCall && proto.custom_call_target() == "ConcatBitcast") {
      // The operands are slices that lie side by side in one place, which is the whole.
      for (const int32_t operand : operands)
        MG_RETURN_IF_ERROR(Unite(Of(i), Of(operand), "slice and whole"));
      return absl::OkStatus();
    }
    return UniteInPlace(i);
  }

  absl::Status UniteInPlace(int32_t i) {
    MG_ASSIGN_OR_RETURN(const std::vector<InPlacePair> pairs, in_place_.PairsOf(i));
    for (const InPlacePair& pair : pairs) {
      const int32_t operand = module_.operands(i)[pair.operand];
      Unite(Of(i).first + pair.output_array, Of(operand).first + pair.operand_array);
    }
    return absl::OkStatus();
  }

  absl::Status VisitTuple(int32_t i) {
    Arrays left = Of(i);
    for (const int32_t operand : module_.operands(i)) {
      const Arrays part = Of(operand);
      if (part.count > left.count) break;
      MG_RETURN_IF_ERROR(Unite({left.first, part.count}, part, "operand and element"));
      left = {left.first + part.count, left.count - part.count};
    }
    int64_t given = 0;
    for (const int32_t operand : module_.operands(i)) given += Of(operand).count;
    if (given == Of(i).count) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("operands of ", given, " arrays make a tuple of ", Of(i).count));
  }

  absl::Status VisitWhile(int32_t i) {
    const int32_t body = module_.called(i)[0], condition = module_.called(i)[1];
    MG_RETURN_IF_ERROR(Unite(Of(i), Of(module_.operands(i)[0]), "while and its operand"));
    MG_ASSIGN_OR_RETURN(const Arrays carried, ParameterOf(body, 0));
    MG_RETURN_IF_ERROR(Unite(Of(i), carried, "while and its body's parameter"));
    MG_RETURN_IF_ERROR(Unite(Of(i), RootOf(body), "while and its body's result"));
    MG_ASSIGN_OR_RETURN(const Arrays tested, ParameterOf(condition, 0));
    return Unite(Of(i), tested, "while and its condition's parameter");
  }

  absl::Status VisitConditional(int32_t i) {
    const absl::Span<const int32_t> operands = module_.operands(i), branches = module_.called(i);
    if (operands.size() != branches.size() + 1) {
      return absl::InvalidArgumentError(
          absl::StrCat(operands.size(), " operands for ", branches.size(), " branches"));
    }
    for (size_t branch = 0; branch < branches.size(); ++branch) {
      MG_ASSIGN_OR_RETURN(const Arrays parameter, ParameterOf(branches[branch], 0));
      MG_RETURN_IF_ERROR(
          Unite(Of(operands[branch + 1]), parameter, "operand and branch parameter"));
      MG_RETURN_IF_ERROR(Unite(Of(i), RootOf(branches[branch]), "conditional and branch result"));
    }
    return absl::OkStatus();
  }

  absl::Status VisitCall(int32_t i) {
    if (module_.called(i).size() != 1)
      return absl::InvalidArgumentError("a call calls one computation");
    const int32_t callee = module_.called(i)[0];
    for (size_t k = 0; k < module_.operands(i).size(); ++k) {
      MG_ASSIGN_OR_RETURN(const Arrays parameter, ParameterOf(callee, k));
      MG_RETURN_IF_ERROR(Unite(Of(module_.operands(i)[k]), parameter, "operand and parameter"));
    }
    if (is_wrapped_[module_.instruction(i).computation] && Of(i).count == 0)
      return absl::OkStatus();
    return Unite(Of(i), RootOf(callee), "call and its result");
  }

  // copy-start gives (destination, source, context).
  absl::Status VisitCopy(int32_t i) {
    const absl::Span<const int32_t> operands = module_.operands(i);
    if (operands.size() != 1) return absl::InvalidArgumentError("it needs one operand");
    const bool starts = module_.opcode(i) == kCopyStart;
    const int32_t start = starts ? i : operands[0];
    MG_ASSIGN_OR_RETURN(const Module::ArrayRange passed, module_.SubShape(start, {starts ? 1 : 0}));
    return Unite({Of(start).first + passed.first, passed.count}, Of(starts ? operands[0] : i),
                 "copied and passed on");
  }

  absl::Status VisitCollective(int32_t i) {
    const absl::Span<const int32_t> operands = module_.operands(i);
    const std::optional<HandedOver> starts = HandedOverBy(module_, i);
    if (!starts) {
      const Module::ArrayRange result = HandedOverBy(module_, operands[0])->result;
      return Unite(Of(i), {Of(operands[0]).first + result.first, result.count}, "result");
    }
    int32_t passed = Of(i).first + starts->operands.first;
    for (const int32_t operand : operands.first(starts->operand_count)) {
      MG_RETURN_IF_ERROR(Unite({passed, Of(operand).count}, Of(operand), "operand"));
      passed += Of(operand).count;
    }
    return UniteInPlace(i);
  }

  // async-start and async-update give ((arguments), result of what is wrapped, contexts ...), and
  // async-done the result. An async-start may leave arguments or the result empty, so that an
  // async-update gives them. What is wrapped may then have none of them either.
  absl::Status VisitAsync(int32_t i) {
    const absl::Span<const int32_t> operands = module_.operands(i);
    const Opcode opcode = module_.opcode(i);
    const int32_t start = in_place_.chains().StartOf(i);
    if (opcode == kAsyncStart) {
      if (module_.called(i).size() != 1)
        return absl::InvalidArgumentError("it wraps one computation");
      AddWrapped(module_.called(i)[0]);
      MG_RETURN_IF_ERROR(VisitArguments(i, {}, operands));
    } else if (operands.empty() || (opcode == kAsyncDone && operands.size() != 1)) {
      return absl::InvalidArgumentError("it needs one operand");
    } else if (start == kNone && operands.size() > 1) {
      return absl::InvalidArgumentError("it brings operands, and its first is no async-start");
    } else if (opcode == kAsyncUpdate) {
      if (start == kNone) return Unite(Of(i), Of(operands[0]), "operand and result");
      MG_ASSIGN_OR_RETURN(const Arrays before, PartOf(operands[0], 0));
      MG_RETURN_IF_ERROR(VisitArguments(i, before, operands.subspan(1)));
      for (int64_t k = 1;; ++k) {
        const absl::StatusOr<Arrays> mine = PartOf(i, k), given = PartOf(operands[0], k);
        if (!mine.ok() || !given.ok()) break;
        if (mine->count == given->count) MG_RETURN_IF_ERROR(Unite(*mine, *given, "context"));
      }
    }
    Arrays result = Of(i);
    if (opcode == kAsyncDone) {
      MG_ASSIGN_OR_RETURN(const Arrays given, PartOf(operands[0], 1));
      if (start == kNone || given.count > 0) MG_RETURN_IF_ERROR(Unite(result, given, "result"));
    } else {
      MG_ASSIGN_OR_RETURN(result, PartOf(i, 1));
    }
    if (start == kNone || result.count == 0) return UniteInPlace(i);
    const Arrays wrapped = RootOf(module_.called(start)[0]);
    if (wrapped.count > 0) MG_RETURN_IF_ERROR(Unite(result, wrapped, "result and wrapped result"));
    return UniteInPlace(i);
  }

  // The arrays at an element of a tuple.
  absl::StatusOr<Arrays> PartOf(int32_t i, int64_t element) const {
    MG_ASSIGN_OR_RETURN(const Module::ArrayRange range, module_.SubShape(i, {element}));
    return Arrays{Of(i).first + range.first, range.count};
  }

  // The arguments that `i` holds are those `before` it and the operands `given`.
  absl::Status VisitArguments(int32_t i, Arrays before, absl::Span<const int32_t> given) {
    MG_ASSIGN_OR_RETURN(Arrays mine, PartOf(i, 0));
    int64_t count = before.count;
    for (const int32_t operand : given) count += Of(operand).count;
    if (count != mine.count) {
      return absl::InvalidArgumentError(
          absl::StrCat("arguments: ", mine.count, " arrays, given ", count));
    }
    MG_RETURN_IF_ERROR(Unite({mine.first, before.count}, before, "arguments"));
    mine.first += before.count;
    const int32_t wrapped = module_.called(in_place_.chains().StartOf(i))[0];
    for (size_t k = 0; k < given.size(); ++k) {
      const Arrays operand = Of(given[k]);
      MG_RETURN_IF_ERROR(Unite({mine.first, operand.count}, operand, "operand and argument"));
      mine.first += operand.count;
      if (module_.computation(wrapped).parameters.empty()) continue;
      MG_ASSIGN_OR_RETURN(const Arrays parameter,
                          ParameterOf(wrapped, in_place_.chains().GivenBefore(i) + k));
      MG_RETURN_IF_ERROR(Unite(operand, parameter, "operand and wrapped parameter"));
    }
    return absl::OkStatus();
  }

  absl::Status UniteDonated() {
    const Computation& entry = module_.computation(module_.entry());
    for (const auto& alias : module_.module().input_output_alias().entries()) {
      const int64_t number = alias.parameter_number();
      if (number < 0 || number >= std::ssize(entry.parameters)) {
        return absl::InvalidArgumentError(
            absl::StrCat("input_output_alias: the entry has no parameter ", number));
      }
      const int32_t parameter = entry.parameters[number];
      MG_ASSIGN_OR_RETURN(const Module::ArrayRange input,
                          module_.SubShape(parameter, alias.parameter_shape_index()));
      MG_ASSIGN_OR_RETURN(const Module::ArrayRange output,
                          module_.SubShape(entry.root, alias.output_shape_index()));
      MG_RETURN_IF_ERROR(Unite({Of(parameter).first + input.first, input.count},
                               {Of(entry.root).first + output.first, output.count},
                               "input_output_alias"));
    }
    return absl::OkStatus();
  }

  const Module& module_;
  const Schedule& schedule_;
  InPlaceFinder in_place_;
  std::vector<int32_t> wrapped_;  // computations still to be visited that run asynchronously
  std::vector<bool> is_wrapped_;  // by computation: it is, or was, one of them
  std::vector<int32_t> parent_;
};

}  // namespace

absl::StatusOr<Dataflow> Dataflow::Build(const Module& module, const Schedule& schedule) {
  Dataflow dataflow;
  MG_ASSIGN_OR_RETURN(dataflow.set_, Closure(module, schedule).Run());
  return dataflow;
}

}  // namespace mallocgame::hlo
