// Finds transfers by where the arrays of an instruction lie.
#include "mallocgame/hlo/host_transfers.h"

#include <algorithm>
#include <map>
#include <string>

#include "absl/strings/match.h"
#include "mallocgame/hlo/async_chains.h"
#include "mallocgame/hlo/hlo.pb.h"
#include "mallocgame/hlo/opcodes.h"

namespace mallocgame::hlo {
namespace {

struct Bytes {
  int64_t host = 0;  // of the largest array there
  int64_t chip = 0;
};

void Add(absl::Span<const Array> arrays, Bytes& bytes) {
  for (const Array& array : arrays) {
    if (array.memory_space == kHostMemorySpace) {
      bytes.host = std::max(bytes.host, array.size_bytes);
    } else if (array.memory_space == 0 && array.shape->dimensions_size() > 0) {  // no index
      bytes.chip += array.size_bytes;
    }
  }
}

int64_t BytesOf(absl::Span<const Array> arrays) {
  int64_t sum = 0;
  for (const Array& array : arrays) sum += array.size_bytes;
  return sum;
}

// The bytes that the instruction, or what it begins, moves to or from the host; 0 if it is no
// transfer. Of a slice of an array on the host, and of an update of one, only the part moves.
int64_t MovedBytes(const Module& module, int32_t i) {
  const HloInstructionProto& proto = *module.instruction(i).proto;
  const std::string& opcode = proto.opcode();
  const absl::Span<const int32_t> operands = module.operands(i);
  if (opcode == "infeed" || (opcode == "recv" && proto.is_host_transfer()))
    return BytesOf(module.arrays(i));
  if (opcode == "outfeed" || (opcode == "send" && proto.is_host_transfer()))
    return operands.empty() ? 0 : BytesOf(module.arrays(operands[0]));
  const bool starts = opcode == "copy-start" || opcode == "async-start";
  if (!starts && (MovesNothing(proto) || opcode == "while" || opcode == "conditional" ||
                  opcode == "call" || IsAsynchronous(opcode))) {
    return 0;
  }
  Bytes bytes;
  for (const int32_t operand : operands) Add(module.arrays(operand), bytes);
  // A start hands its operands on beside its result.
  const auto result = module.SubShape(
      i, starts ? std::vector<int64_t>{opcode == "copy-start" ? 0 : 1} : std::vector<int64_t>{});
  if (!result.ok()) return 0;
  Add(module.arrays(i).subspan(result->first, result->count), bytes);
  return std::min(bytes.host, bytes.chip);
}

bool Ends(absl::string_view opcode) {
  return opcode == "copy-done" || opcode == "async-done" || opcode == "send-done" ||
         opcode == "recv-done";
}

}  // namespace

std::vector<TimedTransfer> HostTransfers(const Module& module, const Schedule& schedule) {
  __extension__ using Int128 = __int128;
  constexpr Int128 kPsPerSecond = 1'000'000'000'000;
  std::vector<TimedTransfer> transfers;
  std::map<int32_t, size_t> begun;  // by the instruction that begins it
  for (Tick tick = 0; tick < static_cast<Tick>(schedule.ticks.size()); ++tick) {
    const Schedule::Entry& entry = schedule.ticks[tick];
    if (entry.kind != InstructionKind::kOrdinary) continue;
    const int32_t i = entry.instruction;
    if (Ends(module.instruction(i).proto->opcode())) {
      if (const auto found = begun.find(StartOfDone(module, i)); found != begun.end())
        transfers[found->second].end = tick;
      continue;
    }
    const int64_t bytes = MovedBytes(module, i);
    if (bytes == 0) continue;
    begun[i] = transfers.size();
    transfers.push_back(
        {tick, tick, static_cast<int64_t>(bytes * kPsPerSecond / kHostBytesPerSecond)});
  }
  return transfers;
}

}  // namespace mallocgame::hlo
