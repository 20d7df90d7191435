// A scheduled module with its buffer assignment, read for the placements of its instructions.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "mallocgame/hlo/write/isolated_module.h"

namespace mallocgame::hlo {

class BufferAssignmentProto;
class Module;

// Never changes after Read, so any number of threads may read it.
class PlacedModule {
 public:
  // `module` is a message of any form that holds a scheduled HloModuleProto, `buffer_assignment` a
  // BufferAssignmentProto. InvalidArgument: one is damaged, or they don't belong together.
  static absl::StatusOr<PlacedModule> Read(absl::string_view module,
                                           absl::string_view buffer_assignment);
  PlacedModule(PlacedModule&&) noexcept;
  PlacedModule& operator=(PlacedModule&&) noexcept;
  ~PlacedModule();

  // Of instructions that have one hash, and so one isolated module, lowered once for all of them:
  // the placement of the one with the lowest id, and the arrays that any of them shares.
  // InvalidArgument: there is no such instruction, or `instructions` is empty.
  absl::StatusOr<InstructionPlacement> PlacementOf(
      absl::Span<const std::string> instructions) const;

 private:
  PlacedModule() = default;
  absl::Status ReadHomes(const BufferAssignmentProto& assignment);
  absl::StatusOr<int32_t> Find(absl::string_view instruction) const;
  InstructionPlacement PlacementOfOne(int32_t instruction) const;
  std::vector<SharedArray> SharedArrays(int32_t instruction) const;

  std::unique_ptr<const Module> module_;
  std::vector<int32_t> storage_;             // by array: the smallest array that shares its storage
  using Home = std::pair<int64_t, int64_t>;  // an allocation, and an offset in it
  std::vector<std::optional<Home>> home_;    // by storage
};

}  // namespace mallocgame::hlo
