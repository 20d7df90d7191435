// A module from after memory space assignment, with all arrays back in main memory. Private to the
// folder.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "mallocgame/hlo/module/module.h"

namespace mallocgame::hlo {

struct UnassignedModule {
  std::unique_ptr<const Module> module;
  int64_t arrays = 0;  // results of instructions that lay in fast memory
  int64_t copies = 0;  // between main and fast memory that were taken out
  // those that stay, as a copy or slice within main memory: the program needs them
  int64_t kept_copies = 0;
};

// Takes out what memory space assignment has put in: memory spaces of shapes, and the copies and
// slices between the two memories. What used a copy uses what was copied, unless one of the two is
// changed while the other is still read (needed_copies.h). Such a copy was a plain one before the
// assignment, and so is a slice. InvalidArgument: the module is malformed.
absl::StatusOr<UnassignedModule> Unassign(const Module& assigned, int64_t fast_memory_space);

// Reads a module of either kind (Module::Parse), and brings it back to main memory if it has to be.
absl::StatusOr<UnassignedModule> ParseUnassigned(absl::string_view bytes,
                                                 int64_t fast_memory_space);

}  // namespace mallocgame::hlo
