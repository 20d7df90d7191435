// Finds transfers by where the arrays of an instruction lie.
#include "mallocgame/hlo/cost/host_transfers.h"

#include <algorithm>
#include <map>

#include "mallocgame/hlo/module/async_chains.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/module/opcodes.h"

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

// The arrays of its result; of a start, which hands its operands on beside it, those to come.
absl::Span<const Array> ResultOf(const Module& module, int32_t i) {
  const Opcode opcode = module.opcode(i);
  std::vector<int64_t> index;
  if (opcode == kCopyStart || opcode == kAsyncStart) index.push_back(opcode == kCopyStart ? 0 : 1);
  const auto result = module.SubShape(i, index);
  if (!result.ok()) return {};
  return module.arrays(i).subspan(result->first, result->count);
}

int64_t BytesOnChip(absl::Span<const Array> arrays) {
  int64_t sum = 0;
  for (const Array& array : arrays) sum += array.memory_space == 0 ? array.size_bytes : 0;
  return sum;
}

// The bytes of each transfer to or from the host that the instruction is or begins. Of a slice of
// an array on the host, and of an update of one, only the part moves.
std::vector<int64_t> MovedBytes(const Module& module, int32_t i) {
  const HloInstructionProto& proto = *module.instruction(i).proto;
  const Opcode opcode = module.opcode(i);
  const absl::Span<const int32_t> operands = module.operands(i);
  if (RunsOnHost(module, i)) {
    int64_t given = 0;
    for (const int32_t operand : operands) given += BytesOnChip(module.arrays(operand));
    return {given, BytesOnChip(ResultOf(module, i))};
  }
  if (opcode == kInfeed || (opcode == kRecv && proto.is_host_transfer()))
    return {BytesOf(module.arrays(i))};
  if (opcode == kOutfeed || (opcode == kSend && proto.is_host_transfer()))
    return {operands.empty() ? 0 : BytesOf(module.arrays(operands[0]))};
  const bool starts = opcode == kCopyStart || opcode == kAsyncStart;
  if (!starts && (MovesNothing(module.instruction(i)) || IsAsynchronous(opcode))) return {};
  Bytes bytes;
  for (const int32_t operand : operands) Add(module.arrays(operand), bytes);
  Add(ResultOf(module, i), bytes);
  return {std::min(bytes.host, bytes.chip)};
}

}  // namespace

bool RunsOnHost(const Module& module, int32_t instruction) {
  const HloInstructionProto& proto = *module.instruction(instruction).proto;
  if (module.opcode(instruction) == kAsyncStart) return proto.async_execution_thread() == "host";
  return module.opcode(instruction) == kCustomCall && proto.custom_call_target() == "HostExecute";
}

std::vector<TimedTransfer> HostTransfers(const Module& module, const Schedule& schedule) {
  __extension__ using Int128 = __int128;
  constexpr Int128 kPsPerSecond = 1'000'000'000'000;
  std::vector<TimedTransfer> transfers;
  std::multimap<int32_t, size_t> begun;  // by the instruction that begins it
  for (Tick tick = 0; tick < static_cast<Tick>(schedule.ticks.size()); ++tick) {
    const Schedule::Entry& entry = schedule.ticks[tick];
    if (entry.kind != InstructionKind::kOrdinary) continue;
    const int32_t i = entry.instruction;
    if (IsDone(module.opcode(i))) {
      const auto [first, last] = begun.equal_range(StartOfDone(module, i));
      for (auto found = first; found != last; ++found) transfers[found->second].end = tick;
      continue;
    }
    for (const int64_t bytes : MovedBytes(module, i)) {
      if (bytes == 0) continue;
      begun.emplace(i, transfers.size());
      transfers.push_back(
          {tick, tick, static_cast<int64_t>(bytes * kPsPerSecond / kHostBytesPerSecond)});
    }
  }
  return transfers;
}

}  // namespace mallocgame::hlo
