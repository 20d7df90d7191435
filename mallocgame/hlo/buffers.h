// From arrays to a program: which buffers there are, which may move, and what accesses them when.
// Private to the folder.
#ifndef MALLOCGAME_HLO_BUFFERS_H_
#define MALLOCGAME_HLO_BUFFERS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "mallocgame/hlo/module.h"
#include "mallocgame/program/program.h"

namespace mallocgame::hlo {

struct BufferTable {
  std::vector<Buffer> buffers;  // in the order in which they appear on the time axis
  // by array of the module: its buffer; -1 for zero bytes or off the time axis
  std::vector<int32_t> of_array;
};

// The sets of arrays that share storage as buffers, eligible by the rules of XLA reference 1.5.
absl::StatusOr<BufferTable> BuildBuffers(const Module& module, const Timeline& timeline);

// Fills data.instructions, .regions, .loops, .buffers, .accesses and what BuildCost expects in
// .cost. Where an instruction or a loop would have more than 64 accesses, the smallest buffers
// become not eligible.
void BuildAccesses(const Module& module, const Timeline& timeline, BufferTable table,
                   ProgramData& data);

// InvalidArgument unless `program` is what ImportHlo makes of this module.
absl::Status CheckMadeOf(const Program& program, const Module& module, const Timeline& timeline,
                         const BufferTable& table);

}  // namespace mallocgame::hlo

#endif  // MALLOCGAME_HLO_BUFFERS_H_
