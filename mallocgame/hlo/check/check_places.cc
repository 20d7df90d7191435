// Values that must lie at one place, or side by side.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "mallocgame/base/error.h"
#include "mallocgame/hlo/check/phase_reading.h"
#include "mallocgame/hlo/check/phase_rules.h"
#include "mallocgame/hlo/cost/kernels.h"
#include "mallocgame/hlo/module/async_chains.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/module/in_place.h"

namespace mallocgame::hlo {
namespace {

class PlaceChecker {
 public:
  PlaceChecker(const PhaseReading& written, const Hardware& hardware)
      : written_(written), module_(*written.module), positions_(*written.positions),
        hardware_(hardware), in_place_(module_) {}

  absl::Status Run() {
    for (const LoopLeaf& leaf : written_.flow.loop_leaves()) MG_RETURN_IF_ERROR(CheckLeaf(leaf));
    for (int32_t i = 0; i < std::ssize(module_.instructions()); ++i) {
      if (!written_.flow.Runs(i)) continue;
      MG_RETURN_IF_ERROR(CheckInPlace(i));
      if (JoinsSlices(written_.proto(i))) MG_RETURN_IF_ERROR(CheckSlices(i));
      if (written_.opcode(i) == kConditional) MG_RETURN_IF_ERROR(CheckBranches(i));
    }
    for (const CrossProgramPrefetch& preload : module_.module().cross_program_prefetches())
      MG_RETURN_IF_ERROR(CheckPreload(preload));
    for (int32_t i = 0; i < std::ssize(module_.instructions()); ++i) {
      if (written_.flow.Runs(i)) MG_RETURN_IF_ERROR(CheckPins(i));
    }
    return absl::OkStatus();
  }

 private:
  // Where the value at a position lies.
  const Placement& At(int32_t position) const {
    return written_.placements.At(written_.flow.SourceOf(position));
  }

  absl::Status SamePlace(PhaseRule rule, int32_t a, int32_t b, int32_t i) const {
    const Placement &x = At(a), &y = At(b);
    if (x.allocation == nullptr || y.allocation == nullptr || x.SharesPlaceWith(y))
      return absl::OkStatus();
    return Refuse(rule, {module_.NameOf(i), positions_.MakerOf(a), positions_.MakerOf(b)},
                  module_.Where(i), ": ", positions_.Name(a), " lies at ", Where(x), ", and ",
                  positions_.Name(b), " at ", Where(y), "; they must begin at one place");
  }

  absl::Status CheckLeaf(const LoopLeaf& leaf) const {
    for (const int32_t other :
         {leaf.init, leaf.condition_parameter, leaf.body_parameter, leaf.next})
      MG_RETURN_IF_ERROR(SamePlace(PhaseRule::kLoopLeaf, leaf.result, other, leaf.loop));
    return absl::OkStatus();
  }

  absl::Status CheckBranches(int32_t i) const {
    const PositionRange own = positions_.Of(i);
    for (const int32_t branch : module_.called(i)) {
      const PositionRange root = positions_.Of(module_.computation(branch).root);
      for (int32_t k = 0; k < own.count; ++k) {
        if (positions_[own.first + k].is_tuple) continue;
        MG_RETURN_IF_ERROR(SamePlace(PhaseRule::kBranch, own.first + k, root.first + k, i));
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckInPlace(int32_t i) {
    absl::StatusOr<std::vector<InPlacePair>> pairs = in_place_.PairsOf(i);
    if (!pairs.ok())
      return Refuse(PhaseRule::kShape, {module_.NameOf(i)}, pairs.status().message());
    for (const InPlacePair& pair : *pairs) {
      const int32_t operand = module_.operands(i)[pair.operand];
      MG_RETURN_IF_ERROR(SamePlace(PhaseRule::kInPlace,
                                   positions_.OfArray(operand, pair.operand_array),
                                   positions_.OfArray(i, pair.output_array), i));
    }
    return absl::OkStatus();
  }

  absl::Status CheckSlices(int32_t i) const {
    const Placement& whole = At(positions_.Of(i).first);
    if (whole.allocation == nullptr) return absl::OkStatus();
    const absl::Span<const int32_t> operands = module_.operands(i);
    std::vector<int32_t> slices(operands.begin(), operands.end());
    // They stand in the order in which they are copied.
    std::sort(slices.begin(), slices.end(),
              [this](int32_t a, int32_t b) { return StartsOf(a) < StartsOf(b); });
    int64_t offset = whole.offset;
    for (const int32_t slice : slices) {
      const Placement& part = At(positions_.Of(slice).first);
      if (part.allocation != whole.allocation || part.offset != offset) {
        return Refuse(PhaseRule::kSlicePlace, {module_.NameOf(i), module_.NameOf(slice)},
                      module_.Where(i), ": '", written_.proto(slice).name(), "' lies at ",
                      part.allocation == nullptr ? std::string("no place") : Where(part),
                      "; of the whole at ", Where(whole), " it must begin at byte ", offset);
      }
      offset += part.size;
    }
    if (offset == whole.end()) return absl::OkStatus();
    return Refuse(PhaseRule::kSlicePlace, {module_.NameOf(i)}, module_.Where(i),
                  ": its slices end at byte ", offset, ", and the whole lies at ", Where(whole));
  }

  // Where in its array a slice begins that a *-done hands on.
  std::vector<int64_t> StartsOf(int32_t done) const {
    const int32_t start = StartOfDone(module_, done);
    std::vector<int64_t> starts;
    if (module_.called(start).empty()) return starts;
    const int32_t slice = module_.computation(module_.called(start)[0]).root;
    for (const auto& dimension : written_.proto(slice).slice_dimensions())
      starts.push_back(dimension.start());
    return starts;
  }

  // The copies of an entry parameter that are a preload (`first`), or prepare the next run's.
  std::vector<int32_t> CopiesOf(int32_t source, bool first) const {
    std::vector<int32_t> copies;
    for (const int32_t i : module_.computation(module_.entry()).schedule) {
      if (written_.opcode(i) != kCopyStart ||
          written_.proto(i).has_cross_program_prefetch_index() != first ||
          written_.flow.SourceOf(positions_.Of(module_.operands(i)[0]).first) != source)
        continue;
      const std::vector<int32_t>& dones = written_.users[i];
      if (first || (dones.size() == 1 && written_.users[dones[0]].empty())) copies.push_back(i);
    }
    return copies;
  }

  absl::Status CheckPreload(const CrossProgramPrefetch& preload) const {
    const std::vector<int32_t>& parameters = module_.computation(module_.entry()).parameters;
    const std::optional<int32_t> source =
        preload.parameter() >= 0 && preload.parameter() < std::ssize(parameters)
            ? positions_.Find(parameters[preload.parameter()], preload.index())
            : std::optional<int32_t>();
    if (!source)
      return Refuse(PhaseRule::kPreload, {}, "no entry parameter ", preload.parameter(),
                    " to preload");
    for (const bool first : {true, false}) {
      const std::vector<int32_t> copies = CopiesOf(*source, first);
      // Without a copy for the next run, what the first one brought stays.
      if (!first && copies.empty()) return absl::OkStatus();
      if (copies.size() != 1) {
        return Refuse(PhaseRule::kPreload, {positions_.MakerOf(*source)}, positions_.Name(*source),
                      " is preloaded by ", copies.size(),
                      first ? " copies" : " copies for the next run", "; allowed is one");
      }
      const Placement& placement = At(positions_.Of(copies[0]).first + 1);
      if (placement.allocation == nullptr || placement.offset == preload.offset()) continue;
      return Refuse(PhaseRule::kPreload, {module_.NameOf(copies[0])}, module_.Where(copies[0]),
                    " copies to ", Where(placement), "; the module preloads to byte ",
                    preload.offset());
    }
    return absl::OkStatus();
  }

  // Memory space assignment leaves a single element where it is.
  static bool IsElement(const Array& array) {
    const auto& extents = array.shape->dimensions();
    return std::all_of(extents.begin(), extents.end(), [](int64_t extent) { return extent == 1; });
  }

  absl::Status CheckPins(int32_t i) const {
    for (const RequiredSpace& required : RequiredSpacesOf(written_.proto(i))) {
      const int64_t pinned = required.memory_space;
      if (pinned != 0 && pinned != hardware_.fast_memory_space) continue;
      const absl::Span<const int32_t> operands = module_.operands(i);
      if (required.operand && *required.operand >= std::ssize(operands)) continue;
      const int32_t of = required.operand ? operands[*required.operand] : i;
      const std::vector<int64_t> index(required.index.begin(), required.index.end());
      const absl::StatusOr<Module::ArrayRange> range = module_.SubShape(of, index);
      for (int32_t k = 0; range.ok() && k < range->count; ++k) {
        const Array& array = module_.arrays(of)[range->first + k];
        if (array.memory_space == pinned || array.size_bytes == 0 || IsElement(array)) continue;
        return Refuse(PhaseRule::kPin, {module_.NameOf(i), module_.NameOf(of)}, module_.Where(i),
                      ": '", written_.proto(of).name(), "' lies in memory space ",
                      array.memory_space, ", and the kernel pins it to ", pinned);
      }
    }
    return absl::OkStatus();
  }

  const PhaseReading& written_;
  const Module& module_;
  const Positions& positions_;
  const Hardware& hardware_;
  InPlaceFinder in_place_;
};

}  // namespace

absl::Status CheckPlaces(const PhaseReading& written, const Hardware& hardware) {
  return PlaceChecker(written, hardware).Run();
}

}  // namespace mallocgame::hlo
