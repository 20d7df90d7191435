// Follows values through the computations that run, in the order in which they do. A loop's
// parameters count as values of their own until its body is known.
#include "mallocgame/hlo/check/value_sources.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "mallocgame/base/error.h"
#include "mallocgame/hlo/check/phase_rules.h"
#include "mallocgame/hlo/cost/collectives.h"
#include "mallocgame/hlo/module/async_chains.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/module/opcodes.h"

namespace mallocgame::hlo {

class ValueSources::Builder {
 public:
  Builder(const Module& module, const Positions& positions, ValueSources& flow)
      : module_(module), positions_(positions), flow_(flow), chains_(module) {
    flow_.source_.assign(positions.size(), kNone);
    flow_.wrapped_by_.assign(module.instructions().size(), kNone);
    flow_.runs_.assign(module.instructions().size(), false);
  }

  absl::Status Run() {
    for (const int32_t parameter : module_.computation(module_.entry()).parameters) Make(parameter);
    MG_RETURN_IF_ERROR(Visit(module_.entry(), kNone));
    for (int32_t p = 0; p < std::ssize(flow_.source_); ++p) {
      if (flow_.source_[p] != kNone) flow_.source_[p] = Find(p);
    }
    for (LoopLeaf& leaf : flow_.loop_leaves_) {
      leaf.init = Find(leaf.init);
      leaf.next = Find(leaf.next);
    }
    return absl::OkStatus();
  }

 private:
  int32_t Find(int32_t p) const {
    while (flow_.source_[p] != p) p = flow_.source_[p];
    return p;
  }

  absl::Status Bad(int32_t i, absl::string_view what) const {
    return Refuse(PhaseRule::kShape, module_.Where(i), ": ", what);
  }

  void Make(int32_t i) {
    const PositionRange own = positions_.Of(i);
    for (int32_t k = 0; k < own.count; ++k) flow_.source_[own.first + k] = own.first + k;
  }

  absl::Status Pass(int32_t i, PositionRange from, PositionRange to, absl::string_view what) {
    if (from.count != to.count) {
      return Bad(i, absl::StrCat(what, ": ", from.count, " arrays and tuples are handed on as ",
                                 to.count, "; they must be as many"));
    }
    for (int32_t k = 0; k < to.count; ++k)
      flow_.source_[to.first + k] = flow_.source_[from.first + k];
    return absl::OkStatus();
  }

  absl::Status Visit(int32_t computation, int32_t wrapped_by) {
    for (const int32_t i : module_.computation(computation).schedule) {
      flow_.runs_[i] = true;
      flow_.wrapped_by_[i] = wrapped_by;
      MG_RETURN_IF_ERROR(VisitInstruction(i, wrapped_by));
    }
    return absl::OkStatus();
  }

  absl::Status VisitInstruction(int32_t i, int32_t wrapped_by) {
    const HloInstructionProto& proto = *module_.instruction(i).proto;
    const Opcode opcode = module_.opcode(i);
    const absl::Span<const int32_t> operands = module_.operands(i);
    if (opcode == kParameter) return absl::OkStatus();  // The caller has given it its values.
    if (opcode == kBitcast || opcode == kOptBarrier || opcode == kDomain ||
        opcode == kAddDependency || IsPlacementHint(proto)) {
      if (operands.empty()) return Bad(i, "it has no operand");
      return Pass(i, positions_.Of(operands[0]), positions_.Of(i), "operand and result");
    }
    if (opcode == kGetTupleElement) {
      if (operands.size() != 1) return Bad(i, "it needs one operand");
      const auto element =
          positions_.Element(positions_.Of(operands[0]).first, proto.tuple_index());
      if (!element) return Bad(i, "its operand has no such element");
      return Pass(i, *element, positions_.Of(i), "element and result");
    }
    Make(i);
    if (opcode == kTuple) return PassElements(i, positions_.Of(i).first, operands);
    if (opcode == kWhile) return VisitWhile(i, wrapped_by);
    if (opcode == kConditional) return VisitConditional(i, wrapped_by);
    if (opcode == kCall) return VisitCall(i, wrapped_by);
    if (opcode == kCopyStart) return VisitCopyStart(i);
    if (opcode == kCopyDone) return PassFromOperand(i, {0});
    if (opcode == kAsyncUpdate && operands.size() == 1) return PassFromOperand(i, {});
    if (opcode == kAsyncStart || opcode == kAsyncUpdate) return VisitAsync(i);
    if (opcode == kAsyncDone) return PassFromOperand(i, {1});
    if (StartsOrEndsCollective(module_, i)) return VisitCollective(i);
    return absl::OkStatus();
  }

  absl::Status PassElements(int32_t i, int32_t tuple, absl::Span<const int32_t> operands) {
    if (positions_[tuple].shape->tuple_shapes_size() != std::ssize(operands))
      return Bad(i, "its tuple has another number of elements than there are operands");
    for (size_t k = 0; k < operands.size(); ++k) {
      MG_RETURN_IF_ERROR(Pass(i, positions_.Of(operands[k]),
                              *positions_.Element(tuple, static_cast<int64_t>(k)),
                              "operand and element"));
    }
    return absl::OkStatus();
  }

  absl::Status PassFromOperand(int32_t i, absl::Span<const int64_t> index) {
    if (module_.operands(i).size() != 1) return Bad(i, "it needs one operand");
    const auto from = positions_.Find(module_.operands(i)[0], index);
    if (!from) return Bad(i, "its operand has not the form of a *-start");
    return Pass(i, positions_.At(*from), positions_.Of(i), "operand and result");
  }

  absl::Status PassToParameter(int32_t i, int32_t operand, int32_t computation, size_t number) {
    const std::vector<int32_t>& parameters = module_.computation(computation).parameters;
    if (number >= parameters.size()) return Bad(i, "what it calls has too few parameters");
    return Pass(i, positions_.Of(operand), positions_.Of(parameters[number]),
                "operand and parameter");
  }

  absl::Status VisitWhile(int32_t i, int32_t wrapped_by) {
    if (module_.operands(i).size() != 1 || module_.called(i).size() != 2)
      return Bad(i, "a while has one operand, a body and a condition");
    const int32_t body = module_.called(i)[0], condition = module_.called(i)[1];
    for (const int32_t called : {body, condition}) {
      if (module_.computation(called).parameters.size() != 1)
        return Bad(i, "its body and condition have one parameter each");
      Make(module_.computation(called).parameters[0]);
    }
    MG_RETURN_IF_ERROR(Visit(condition, wrapped_by));
    MG_RETURN_IF_ERROR(Visit(body, wrapped_by));
    const PositionRange own = positions_.Of(i), init = positions_.Of(module_.operands(i)[0]),
                        given = positions_.Of(module_.computation(body).parameters[0]),
                        tested = positions_.Of(module_.computation(condition).parameters[0]),
                        root = positions_.Of(module_.computation(body).root);
    for (const PositionRange& other : {init, given, tested, root}) {
      if (other.count != own.count)
        return Bad(i, "its operand, body, condition and result have other numbers of arrays");
    }
    for (int32_t k = 0; k < own.count; ++k) {
      if (Find(root.first + k) == given.first + k) {
        for (const PositionRange& passed : {own, given, tested})
          flow_.source_[passed.first + k] = flow_.source_[init.first + k];
      } else {
        flow_.loop_leaves_.push_back(
            {i, init.first + k, tested.first + k, given.first + k, root.first + k, own.first + k});
      }
    }
    return absl::OkStatus();
  }

  absl::Status VisitConditional(int32_t i, int32_t wrapped_by) {
    const absl::Span<const int32_t> operands = module_.operands(i), branches = module_.called(i);
    if (branches.empty() || operands.size() != branches.size() + 1)
      return Bad(i, "each branch needs one operand");
    for (size_t b = 0; b < branches.size(); ++b) {
      MG_RETURN_IF_ERROR(PassToParameter(i, operands[b + 1], branches[b], 0));
      MG_RETURN_IF_ERROR(Visit(branches[b], wrapped_by));
      if (positions_.Of(module_.computation(branches[b]).root).count != positions_.Of(i).count)
        return Bad(i, "a branch gives another number of arrays");
    }
    // What every branch hands on is no new value.
    const PositionRange own = positions_.Of(i);
    for (int32_t k = 0; k < own.count; ++k) {
      const auto given_by = [&](int32_t branch) {
        return flow_.source_[positions_.Of(module_.computation(branch).root).first + k];
      };
      const int32_t first = given_by(branches[0]);
      if (absl::c_all_of(branches, [&](int32_t branch) { return given_by(branch) == first; }))
        flow_.source_[own.first + k] = first;
    }
    return absl::OkStatus();
  }

  absl::Status VisitCall(int32_t i, int32_t wrapped_by) {
    if (module_.called(i).size() != 1) return Bad(i, "a call calls one computation");
    const int32_t callee = module_.called(i)[0];
    for (size_t k = 0; k < module_.operands(i).size(); ++k)
      MG_RETURN_IF_ERROR(PassToParameter(i, module_.operands(i)[k], callee, k));
    MG_RETURN_IF_ERROR(Visit(callee, wrapped_by));
    return Pass(i, positions_.Of(module_.computation(callee).root), positions_.Of(i),
                "what is called and result");
  }

  // A copy-start gives (destination, source, context).
  absl::Status VisitCopyStart(int32_t i) {
    const int64_t source = 1;
    const auto passed = positions_.Find(i, {source});
    if (module_.operands(i).size() != 1 || !passed)
      return Bad(i, "a copy-start has one operand and three results");
    return Pass(i, positions_.Of(module_.operands(i)[0]), positions_.At(*passed),
                "operand and source");
  }

  // An async-start and an async-update give ((operands), result, contexts ...). Both may give some
  // operands of what they wrap only. It runs from the one on that gives the last.
  absl::Status VisitAsync(int32_t i) {
    const int64_t arguments = 0, result = 1;
    const auto held = positions_.Find(i, {arguments}), filled = positions_.Find(i, {result});
    const int32_t start = chains_.StartOf(i);
    if (start == kNone || module_.called(start).size() != 1 || !held || !filled)
      return Bad(i, "an async-start wraps one computation, and gives operands and result");
    const int32_t wrapped = module_.called(start)[0];
    const auto before = static_cast<size_t>(chains_.GivenBefore(i));
    const absl::Span<const int32_t> given = module_.operands(i).subspan(i == start ? 0 : 1);
    for (size_t k = 0; k < before + given.size(); ++k) {
      const auto number = static_cast<int64_t>(k);
      const auto own = positions_.Element(*held, number);
      const auto from = k < before ? positions_.Find(module_.operands(i)[0], {arguments, number})
                                   : positions_.Of(given[k - before]).first;
      if (!own || !from) return Bad(i, "its first result is no tuple of its operands");
      MG_RETURN_IF_ERROR(Pass(i, positions_.At(*from), *own, "operand and its place"));
      if (k >= before) MG_RETURN_IF_ERROR(PassToParameter(i, given[k - before], wrapped, k));
    }
    if (before + given.size() < module_.computation(wrapped).parameters.size())
      return absl::OkStatus();
    const int32_t root = module_.computation(wrapped).root;
    if (!flow_.runs_[root]) MG_RETURN_IF_ERROR(Visit(wrapped, i));
    return Pass(i, positions_.Of(root), positions_.At(*filled), "what is wrapped and result");
  }

  // Its *-start holds its operands again, and what its *-done gives.
  absl::Status VisitCollective(int32_t i) {
    const absl::Span<const int32_t> operands = module_.operands(i);
    const std::optional<HandedOver> starts = HandedOverBy(module_, i);
    const auto pass_arrays = [&](int32_t from, Module::ArrayRange arrays, int32_t to,
                                 int32_t first) {
      for (int32_t k = 0; k < arrays.count; ++k) {
        flow_.source_[positions_.OfArray(to, first + k)] =
            flow_.source_[positions_.OfArray(from, arrays.first + k)];
      }
    };
    if (!starts) {
      const Module::ArrayRange result = HandedOverBy(module_, operands[0])->result;
      if (result.count != module_.instruction(i).array_count) return Bad(i, "other results");
      pass_arrays(operands[0], result, i, 0);
      return absl::OkStatus();
    }
    if (starts->operands.first == starts->result.first) return absl::OkStatus();
    int32_t passed = starts->operands.first;
    for (const int32_t operand : operands.first(starts->operand_count)) {
      const int32_t count = module_.instruction(operand).array_count;
      if (passed + count > starts->operands.first + starts->operands.count)
        return Bad(i, "its operands have more arrays than it holds");
      pass_arrays(operand, {0, count}, i, passed);
      passed += count;
    }
    return absl::OkStatus();
  }

  const Module& module_;
  const Positions& positions_;
  ValueSources& flow_;
  AsyncChains chains_;
};

absl::StatusOr<ValueSources> ValueSources::Build(const Module& module, const Positions& positions) {
  ValueSources flow;
  MG_RETURN_IF_ERROR(Builder(module, positions, flow).Run());
  return flow;
}

}  // namespace mallocgame::hlo
