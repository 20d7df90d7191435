// What one instruction hands on to another has one shape and one memory space on both sides: at
// calls of every kind, in transfers, and where values are passed on.
#include <string>
#include <utility>
#include <vector>

#include "mallocgame/base/error.h"
#include "mallocgame/hlo/check/phase_reading.h"
#include "mallocgame/hlo/check/phase_rules.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/module/memory_spaces.h"
#include "mallocgame/hlo/module/value_edges.h"

namespace mallocgame::hlo {
namespace {

class HandedOnChecker {
 public:
  explicit HandedOnChecker(const PhaseReading& written)
      : written_(written), module_(*written.module), positions_(*written.positions),
        chains_(module_) {}

  absl::Status Run() {
    for (int32_t i = 0; i < std::ssize(module_.instructions()); ++i) {
      const Opcode opcode = written_.opcode(i);
      const bool runs = written_.flow.Runs(i);
      if (opcode == kFusion || (opcode == kCall && runs)) MG_RETURN_IF_ERROR(CheckCall(i));
      if (runs) MG_RETURN_IF_ERROR(Check(i));
    }
    for (const Computation& computation : module_.computations())
      MG_RETURN_IF_ERROR(CheckProgramShape(computation));
    return absl::OkStatus();
  }

 private:
  std::vector<std::string> Handing(int32_t i, int32_t a, int32_t b) const {
    return {module_.NameOf(i), positions_.MakerOf(a), positions_.MakerOf(b)};
  }

  // `a` and `b` are arrays, or tuples of as many.
  absl::Status Agree(int32_t i, PositionRange a, PositionRange b, bool spaces = true) const {
    if (a.count != b.count)
      return Refuse(PhaseRule::kShape, Handing(i, a.first, b.first), module_.Where(i), ": ",
                    positions_.Name(a.first), " and ", positions_.Name(b.first),
                    " have other numbers of arrays");
    for (int32_t k = 0; k < a.count; ++k) {
      const Position &x = positions_[a.first + k], &y = positions_[b.first + k];
      if (x.is_tuple != y.is_tuple ||
          (!x.is_tuple && ArrayWithoutSpace(*x.shape) != ArrayWithoutSpace(*y.shape))) {
        return Refuse(PhaseRule::kShape, Handing(i, a.first + k, b.first + k), module_.Where(i),
                      ": ", positions_.Name(a.first + k), " has another shape than ",
                      positions_.Name(b.first + k), "; they must agree");
      }
      if (spaces && x.memory_space != y.memory_space) {
        return Refuse(PhaseRule::kMemorySpace, Handing(i, a.first + k, b.first + k),
                      module_.Where(i), ": ", positions_.Name(a.first + k),
                      " lies in memory space ", x.memory_space, ", and ",
                      positions_.Name(b.first + k), " in ", y.memory_space, "; they must agree");
      }
    }
    return absl::OkStatus();
  }

  PositionRange Of(int32_t i) const { return positions_.Of(i); }
  PositionRange At(const ValuePlace& place) const { return positions_.At(place); }
  absl::Status CheckCall(int32_t i, size_t first_operand = 0) const {
    if (module_.called(i).empty()) return absl::OkStatus();
    const int32_t callee = module_.called(i)[0];
    const std::vector<int32_t>& parameters = module_.computation(callee).parameters;
    const absl::Span<const int32_t> operands = module_.operands(i);
    if (parameters.size() != operands.size())
      return Refuse(PhaseRule::kShape, {module_.NameOf(i)}, module_.Where(i), ": it has ",
                    operands.size(), " operands, and what it calls has ", parameters.size(),
                    " parameters");
    for (size_t k = first_operand; k < operands.size(); ++k)
      MG_RETURN_IF_ERROR(Agree(i, Of(operands[k]), Of(parameters[k])));
    return Agree(i, Of(i), Of(module_.computation(callee).root));
  }

  absl::Status Check(int32_t i) const {
    const Opcode opcode = written_.opcode(i);
    if (opcode == kBitcast) return CheckBitcast(i);
    MG_ASSIGN_OR_RETURN(const std::vector<ValueEdge> edges, EdgesOf(module_, chains_, i));
    for (const ValueEdge& edge : edges) {
      // What a collective or an asynchronous chain holds of its operands says nothing new.
      const bool says = edge.how == Handing::kStep
                            ? opcode == kCopyStart || opcode == kCopyDone || opcode == kAsyncDone
                            : edge.how != Handing::kBytes;
      const bool names = edge.how == Handing::kName && HandsOperandOn(module_.instruction(i)) &&
                         opcode != kOptBarrier;
      if (says && !names)
        MG_RETURN_IF_ERROR(Agree(i, At(edge.from), At(edge.to), edge.how != Handing::kCopy));
    }
    return absl::OkStatus();
  }

  absl::Status CheckBitcast(int32_t i) const {
    const Position &from = positions_[Of(module_.operands(i)[0]).first],
                   &to = positions_[Of(i).first];
    if (from.memory_space == to.memory_space) return absl::OkStatus();
    return Refuse(PhaseRule::kMemorySpace, {module_.NameOf(i)}, module_.Where(i),
                  ": it lies in memory space ", to.memory_space, ", its operand in ",
                  from.memory_space, "; they must agree");
  }

  absl::Status CheckProgramShape(const Computation& computation) const {
    const ProgramShapeProto& shape = computation.proto->program_shape();
    const auto agree = [&](const ShapeProto& declared, int32_t i) {
      if (declared.SerializeAsString() == written_.proto(i).shape().SerializeAsString())
        return absl::OkStatus();
      return Refuse(PhaseRule::kMemorySpace, {module_.NameOf(i)}, module_.Where(i),
                    ": the program shape of its computation has another shape or memory space");
    };
    if (shape.parameters_size() != std::ssize(computation.parameters))
      return Refuse(PhaseRule::kShape, {}, "computation '", computation.proto->name(), "': it has ",
                    computation.parameters.size(), " parameters, its program shape ",
                    shape.parameters_size());
    for (int k = 0; k < shape.parameters_size(); ++k)
      MG_RETURN_IF_ERROR(agree(shape.parameters(k), computation.parameters[k]));
    return agree(shape.result(), computation.root);
  }

  const PhaseReading& written_;
  const Module& module_;
  const Positions& positions_;
  const AsyncChains chains_;
};

}  // namespace

absl::Status CheckHandedOn(const PhaseReading& written) { return HandedOnChecker(written).Run(); }

}  // namespace mallocgame::hlo
