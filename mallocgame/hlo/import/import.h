// Makes a Program of scheduled HLO, and a Plan of XLA's own assignment. No other folder knows HLO.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "mallocgame/hardware/hardware.h"
#include "mallocgame/hlo/cost/links.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/program/import_summary.h"
#include "mallocgame/program/program.h"

namespace mallocgame {

struct ImportOptions {
  std::string name;  // for the program; empty: it gets the module's
  // trip count for loops whose own cannot be read from the module; 5 is XLA's default
  int64_t default_trips = 5;
  std::optional<Links> links;  // of the chip; none: what LinksOf knows of the hardware
  // trip counts by the name of the `while`; they come before what the module says
  std::map<std::string, int64_t> trips;
  // Refuse a module that doesn't say in which order its instructions run. Without this the order in
  // which they stand in it is taken: operands come before their users there too.
  bool requires_schedule = false;
};

// The bytes of the files involved, decompressed. All files are of one program; the names of
// instructions tie them together.
struct ImportInput {
  // A module from before memory space assignment, as an HloProto, HloModuleProto,
  // HloModuleProtoWithConfig or HloSnapshot. One from after it is brought back to main memory.
  absl::string_view module;
  // modules from after code generation, with estimated cycles; may be empty
  std::vector<absl::string_view> priced;
  // JSON text {instruction: [[operands, outputs, cycles], ...]}; may be empty
  absl::string_view profile;
};

struct Imported {
  std::shared_ptr<const Program> program;
  ImportSummary summary;
};

// The cost model is a profile if `priced` or `profile` is given, else a roofline. In both there are
// models for what the compiler doesn't price:
// - A kernel (tpu_custom_call) has the roofline of its cost_estimate, or of its arrays, each moved
//   once, where it has none. bytes_accessed is shared out to the arrays (hlo/cost/kernels.h).
// - A transfer between chips takes as long as the links need (hlo/cost/links.h). Where nothing is
//   known of the links it is priced like other instructions.
// - A transfer between the host and the chip takes as long as PCIe needs
//   (hlo/cost/host_transfers.h).
// - What an async-start wraps has the roofline of its instructions, with their arrays in main
//   memory. It runs beside the program until its end waits for it (hlo/cost/async_work.h).
// A loop gets fewer trips than it has where a run would take longer than RunFits() allows
// (program/cost_model.h). A computation that is called from several places is copied
// (hlo/module/call_graph.h).
// InvalidArgument names what is wrong, and where: damaged or contradictory input, prices of another
// program (the module lacks most of the instructions that have prices) or of other hardware (the
// modules use another memory space).
absl::StatusOr<Imported> ImportHlo(const ImportInput& input, const Hardware& hardware,
                                   const ImportOptions& options = {});

// Reads XLA's own answer. `module` is what ImportHlo made `program` of; `assigned` is the HloProto
// of the same program after memory space assignment, with its BufferAssignment. The plan holds
// pinned buffers, prefetches (whole and sliced), evictions and cross-program prefetches (as
// preloads) with XLA's offsets. What loops carry differs in three ways, because a Plan keeps it in
// one place over the whole loop or in main memory:
// - Where XLA reuses its bytes while they hold nothing, the other buffer gets other bytes. If there
//   are none, it goes through main memory in each trip, by copies that XLA doesn't need.
// - What XLA fetches at the end of a trip for the next is fetched at the start of each, and a plain
//   copy that makes its first value is not replaced.
// - What XLA reads from one place and writes to another is in one place.
// Where a transfer does the work of a plain copy and is no prefetch between buffers that may move,
// the copy does that work: it reads and writes in the places of the transfer.
// Where XLA gives kernels scratch among the buffers (tpu7x), fast memory is turned so that the
// scratch lies lowest, as Instruction::reserved_bytes has it.
// InvalidArgument: an input is damaged, is not of this program or hardware, or takes more fast
// memory than the hardware has.
absl::StatusOr<Plan> ReadAssignment(const Program& program, absl::string_view module,
                                    absl::string_view assigned, const Hardware& hardware);

}  // namespace mallocgame
