// Follows values through the computations that run, in the order in which they do. A loop's
// parameters count as values of their own until its body is known.
#include "mallocgame/hlo/check/value_sources.h"

#include "absl/algorithm/container.h"
#include "mallocgame/base/error.h"
#include "mallocgame/hlo/check/phase_rules.h"
#include "mallocgame/hlo/module/async_chains.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/module/value_edges.h"

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
    return Refuse(PhaseRule::kShape, {module_.NameOf(i)}, module_.Where(i), ": ", what);
  }

  void Make(int32_t i) {
    const PositionRange own = positions_.Of(i);
    for (int32_t k = 0; k < own.count; ++k) flow_.source_[own.first + k] = own.first + k;
  }

  absl::Status Check(int32_t i, const ValueEdge& edge) const {
    const PositionRange from = positions_.At(edge.from), to = positions_.At(edge.to);
    if (from.count == to.count) return absl::OkStatus();
    return Bad(i, absl::StrCat(edge.what, ": ", from.count, " arrays and tuples are handed on as ",
                               to.count, "; they must be as many"));
  }

  void Pass(const ValueEdge& edge) {
    const PositionRange from = positions_.At(edge.from), to = positions_.At(edge.to);
    for (int32_t k = 0; k < to.count; ++k)
      flow_.source_[to.first + k] = flow_.source_[from.first + k];
  }

  absl::Status Visit(int32_t computation, int32_t wrapped_by) {
    for (const int32_t i : module_.computation(computation).schedule) {
      flow_.runs_[i] = true;
      flow_.wrapped_by_[i] = wrapped_by;
      // The caller has given a parameter its values.
      if (module_.opcode(i) != kParameter) MG_RETURN_IF_ERROR(VisitInstruction(i, wrapped_by));
    }
    return absl::OkStatus();
  }

  absl::Status VisitInstruction(int32_t i, int32_t wrapped_by) {
    const absl::StatusOr<std::vector<ValueEdge>> edges = EdgesOf(module_, chains_, i);
    if (!edges.ok()) return Bad(i, edges.status().message());
    for (const ValueEdge& edge : *edges) {
      if (edge.how != Handing::kBytes) MG_RETURN_IF_ERROR(Check(i, edge));
    }
    Make(i);
    if (module_.opcode(i) == kWhile) return VisitWhile(i, wrapped_by);
    for (const ValueEdge& edge : *edges) {
      if (edge.how == Handing::kName || edge.how == Handing::kStep || edge.how == Handing::kEnter)
        Pass(edge);
    }
    for (const int32_t called : RunBy(i))
      MG_RETURN_IF_ERROR(Visit(called, RunsComputations(module_.opcode(i)) ? wrapped_by : i));
    TakeReturned(*edges);
    return absl::OkStatus();
  }

  // What begins to run at an instruction that is no loop. What is wrapped does where its last
  // operand is given.
  absl::Span<const int32_t> RunBy(int32_t i) const {
    if (RunsComputations(module_.opcode(i))) return module_.called(i);
    const int32_t start = chains_.StartOf(i);
    if (start == kNone) return {};
    const absl::Span<const int32_t> wrapped = module_.called(start);
    const bool runs = flow_.runs_[module_.computation(wrapped[0]).root];
    return runs || !chains_.HasAllAt(module_, i) ? absl::Span<const int32_t>() : wrapped;
  }

  // What all that may return give is no new value.
  void TakeReturned(absl::Span<const ValueEdge> edges) {
    std::vector<const ValueEdge*> returned;
    for (const ValueEdge& edge : edges) {
      if (edge.how == Handing::kReturn) returned.push_back(&edge);
    }
    if (returned.empty()) return;
    const PositionRange to = positions_.At(returned[0]->to);
    for (int32_t k = 0; k < to.count; ++k) {
      const auto given = [&](const ValueEdge* edge) {
        return flow_.source_[positions_.At(edge->from).first + k];
      };
      const int32_t first = given(returned[0]);
      if (absl::c_all_of(returned, [&](const ValueEdge* edge) { return given(edge) == first; }))
        flow_.source_[to.first + k] = first;
    }
  }

  absl::Status VisitWhile(int32_t i, int32_t wrapped_by) {
    const Computation &body = module_.computation(module_.called(i)[0]),
                      &condition = module_.computation(module_.called(i)[1]);
    for (const Computation* called : {&body, &condition}) Make(called->parameters[0]);
    MG_RETURN_IF_ERROR(Visit(module_.called(i)[1], wrapped_by));
    MG_RETURN_IF_ERROR(Visit(module_.called(i)[0], wrapped_by));
    const int32_t own = positions_.Of(i).first, init = positions_.Of(module_.operands(i)[0]).first,
                  given = positions_.Of(body.parameters[0]).first,
                  tested = positions_.Of(condition.parameters[0]).first,
                  root = positions_.Of(body.root).first;
    for (int32_t k = 0; k < positions_.Of(i).count; ++k) {
      if (Find(root + k) == given + k) {
        for (const int32_t passed : {own, given, tested})
          flow_.source_[passed + k] = flow_.source_[init + k];
      } else {
        flow_.loop_leaves_.push_back({i, init + k, tested + k, given + k, root + k, own + k});
      }
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
