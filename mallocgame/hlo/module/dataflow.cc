// Computes the must-alias closure by union-find over the arrays of the module.
#include "mallocgame/hlo/module/dataflow.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/base/refusal.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/module/in_place.h"
#include "mallocgame/hlo/module/value_edges.h"

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

  absl::Status VisitNamed(int32_t i) {
    absl::Status status = Visit(i);
    if (status.ok()) return status;
    Refusal refusal = RefusalOf(status);
    if (absl::c_linear_search(refusal.instructions, module_.NameOf(i))) return status;
    refusal.instructions.push_back(module_.NameOf(i));
    return Refused(refusal, Prefixed(module_.Where(i), status));
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
    if (module_.opcode(i) == kAsyncStart && module_.called(i).size() == 1)
      AddWrapped(module_.called(i)[0]);
    MG_ASSIGN_OR_RETURN(const std::vector<ValueEdge> edges,
                        EdgesOf(module_, in_place_.chains(), i));
    for (const ValueEdge& edge : edges) {
      if (edge.how != Handing::kCopy) MG_RETURN_IF_ERROR(Unite(edge));
    }
    MG_ASSIGN_OR_RETURN(const std::vector<InPlacePair> pairs, in_place_.PairsOf(i));
    for (const InPlacePair& pair : pairs) {
      const int32_t operand = module_.operands(i)[pair.operand];
      Unite(module_.instruction(i).first_array + pair.output_array,
            module_.instruction(operand).first_array + pair.operand_array);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Arrays> At(const ValuePlace& place) const {
    MG_ASSIGN_OR_RETURN(const Module::ArrayRange range,
                        module_.SubShape(place.instruction, place.index));
    return Arrays{module_.instruction(place.instruction).first_array + range.first, range.count};
  }

  absl::Status Unite(const ValueEdge& edge) {
    MG_ASSIGN_OR_RETURN(const Arrays to, At(edge.to));
    MG_ASSIGN_OR_RETURN(const Arrays from, At(edge.from));
    if (to.count != from.count) {
      return absl::InvalidArgumentError(
          absl::StrCat(edge.what, ": ", to.count, " arrays against ", from.count));
    }
    for (int32_t k = 0; k < to.count; ++k) Unite(to.first + k, from.first + k);
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
      const auto &input = alias.parameter_shape_index(), &output = alias.output_shape_index();
      MG_RETURN_IF_ERROR(
          Unite(ValueEdge{Handing::kBytes,
                          "input_output_alias",
                          {entry.root, {output.begin(), output.end()}},
                          {entry.parameters[number], {input.begin(), input.end()}}}));
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
