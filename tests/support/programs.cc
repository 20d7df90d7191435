// ProgramBuilder, and the hardware it goes with.
#include "tests/support/programs.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "mallocgame/base/error.h"

namespace mallocgame::testing {
namespace {

// Returns the rows of a profile pool, one for each mask of slots. The slot of an update is a bit of
// the operands and a bit of the outputs.
CostPool PoolOf(const Op& op, size_t operands) {
  CostPool pool;
  const size_t slots = operands + op.writes.size();
  MG_CHECK(op.cycles.size() == 1 || op.cycles.size() == size_t{1} << slots);
  // There may be 64 slots, more than a shift can take.
  if (op.cycles.size() == 1) return {{{0, 0, op.cycles[0]}}};
  for (uint64_t mask = 0; mask < op.cycles.size(); ++mask) {
    pool.rows.push_back(
        {mask & ((uint64_t{1} << operands) - 1), mask >> op.reads.size(), op.cycles[mask]});
  }
  std::sort(pool.rows.begin(), pool.rows.end(), [](const CostRow& a, const CostRow& b) {
    return std::pair(a.operands, a.outputs) < std::pair(b.operands, b.outputs);
  });
  return pool;
}

}  // namespace

Hardware TestHardware(int64_t fast_bytes, int64_t alignment_bytes) {
  Hardware h;
  h.name = "test";
  h.fast_bytes = fast_bytes;
  h.alignment_bytes = alignment_bytes;
  h.main_bytes_per_second = h.flops_per_second = h.transcendentals_per_second = h.clock_hz =
      1'000'000'000'000;
  h.fast_read_bytes_per_second = h.fast_write_bytes_per_second = 2'000'000'000'000;
  h.max_outstanding_prefetches = h.max_outstanding_evictions = 4;
  h.max_preloads = 1;
  return h;
}

ProgramBuilder::ProgramBuilder(std::string name, CostKind kind) {
  data_.name = std::move(name);
  data_.cost.kind = kind;
  data_.regions.push_back({});
}

BufferId ProgramBuilder::AddBuffer(std::string name, int64_t size_bytes, BufferOrigin origin) {
  Buffer buffer;
  buffer.name = std::move(name);
  buffer.size_bytes = size_bytes;
  buffer.origin = origin;
  data_.buffers.push_back(std::move(buffer));
  return BufferId(static_cast<int64_t>(data_.buffers.size()) - 1);
}

BufferId ProgramBuilder::Parameter(std::string name, int64_t size_bytes) {
  data_.argument_bytes += size_bytes;
  return AddBuffer(std::move(name), size_bytes, BufferOrigin::kParameter);
}
BufferId ProgramBuilder::Constant(std::string name, int64_t size_bytes) {
  return AddBuffer(std::move(name), size_bytes, BufferOrigin::kConstant);
}
BufferId ProgramBuilder::Undefined(std::string name, int64_t size_bytes) {
  return AddBuffer(std::move(name), size_bytes, BufferOrigin::kUndefined);
}
BufferId ProgramBuilder::Result(std::string name, int64_t size_bytes) {
  return AddBuffer(std::move(name), size_bytes, BufferOrigin::kInstruction);
}
void ProgramBuilder::MarkOutput(BufferId buffer) { data_.buffers[buffer.index()].is_output = true; }
void ProgramBuilder::MarkIneligible(BufferId buffer, std::string because) {
  data_.buffers[buffer.index()].eligible = false;
  data_.buffers[buffer.index()].ineligible_because = std::move(because);
}

Tick ProgramBuilder::AddInstruction(const std::string& name, const std::string& opcode,
                                    InstructionKind kind) {
  Instruction instruction;
  instruction.name = name;
  instruction.opcode = opcode;
  instruction.kind = kind;
  instruction.region = region_;
  data_.instructions.push_back(std::move(instruction));
  data_.cost.instructions.push_back({});
  accesses_.emplace_back();
  return static_cast<Tick>(data_.instructions.size()) - 1;
}

void ProgramBuilder::Access(Tick tick, BufferId buffer, AccessKind kind) {
  accesses_[tick].push_back({tick, buffer, kind, false});
}

Tick ProgramBuilder::Add(const Op& op) {
  const Tick tick =
      AddInstruction(op.name, op.plain_copy ? "copy" : "fusion", InstructionKind::kOrdinary);
  data_.instructions.back().reserved_bytes = op.reserved_bytes;
  data_.instructions.back().plain_copy = op.plain_copy;
  data_.instructions.back().results_in_main = op.results_in_main;
  InstructionCost& cost = data_.cost.instructions.back();
  cost.flops = op.flops;
  cost.transcendentals = op.transcendentals;
  int32_t slot = 0;
  const auto add = [&](BufferId buffer, AccessKind kind) {
    Access(tick, buffer, kind);
    const int64_t size = data_.buffers[buffer.index()].size_bytes;
    if (kind != AccessKind::kWrite) cost.operands.push_back({size, size, slot, true});
    if (kind != AccessKind::kRead) cost.outputs.push_back({size, size, slot, true});
    ++slot;
  };
  for (const BufferId b : op.reads) add(b, AccessKind::kRead);
  for (const BufferId b : op.updates) add(b, AccessKind::kUpdate);
  for (const BufferId b : op.writes) add(b, AccessKind::kWrite);
  if (!op.cycles.empty()) {
    cost.pool = static_cast<int32_t>(data_.cost.pools.size());
    data_.cost.pools.push_back(PoolOf(op, op.reads.size() + op.updates.size()));
  }
  return tick;
}

void ProgramBuilder::OpenRegion(RegionKind kind, int32_t loop, int64_t trips) {
  Region region;
  region.kind = kind;
  region.parent = region_;
  region.loop = loop;
  region.begin = static_cast<Tick>(data_.instructions.size());
  region.trips = data_.regions[region_].trips * trips;
  region_ = static_cast<int32_t>(data_.regions.size());
  data_.regions.push_back(region);
}

void ProgramBuilder::CloseRegion() {
  Region& region = data_.regions[region_];
  if (region.begin == static_cast<Tick>(data_.instructions.size())) {
    AddInstruction("nothing." + std::to_string(region.begin), "tuple", InstructionKind::kOrdinary);
  }
  region.end = static_cast<Tick>(data_.instructions.size());
  region_ = region.parent;
}

Tick ProgramBuilder::BeginLoop(const std::string& name, int64_t trips) {
  const Tick entry = AddInstruction(name, "while", InstructionKind::kLoopEntry);
  open_loops_.push_back(static_cast<int32_t>(data_.loops.size()));
  data_.loops.push_back({entry, 0, trips, true});
  OpenRegion(RegionKind::kLoopCondition, open_loops_.back(), trips);
  return entry;
}

void ProgramBuilder::BeginBody() {
  CloseRegion();
  OpenRegion(RegionKind::kLoopBody, open_loops_.back(), data_.loops[open_loops_.back()].trips);
}

Tick ProgramBuilder::EndLoop() {
  CloseRegion();
  Loop& loop = data_.loops[open_loops_.back()];
  open_loops_.pop_back();
  loop.exit = static_cast<Tick>(data_.instructions.size());
  const std::string name = data_.instructions[loop.entry].name;
  return AddInstruction(name, "while", InstructionKind::kLoopExit);
}

void ProgramBuilder::Hold(BufferId buffer, Tick begin, Tick end) {
  for (mallocgame::Access& access : accesses_[begin]) {
    if (access.buffer == buffer) access.held_until = end + 1;
  }
}

void ProgramBuilder::BeginBranch() { OpenRegion(RegionKind::kBranch, -1, 1); }
void ProgramBuilder::EndBranch() { CloseRegion(); }
void ProgramBuilder::BeginCall() { OpenRegion(RegionKind::kCall, -1, 1); }
void ProgramBuilder::EndCall() { CloseRegion(); }

void ProgramBuilder::AddLoopEntryAccesses(
    std::vector<std::vector<mallocgame::Access>>& accesses) const {
  for (const Loop& loop : data_.loops) {
    for (size_t b = 0; b < data_.buffers.size(); ++b) {
      bool inside = false, written = false;
      bool outside =
          data_.buffers[b].origin == BufferOrigin::kParameter || data_.buffers[b].is_output;
      for (const auto& list : accesses_) {
        for (const mallocgame::Access& a : list) {
          if (a.buffer.index() != b) continue;
          const bool in = a.tick > loop.entry && a.tick < loop.exit;
          inside |= in;
          outside |= !in;
          written |= in && a.kind != AccessKind::kRead;
        }
      }
      if (!inside || !outside) continue;
      accesses[loop.entry].push_back({loop.entry, BufferId(b), AccessKind::kLoopEntry, written});
    }
  }
}

ProgramData ProgramBuilder::Data() const {
  MG_CHECK(region_ == 0 && !data_.instructions.empty());
  ProgramData data = data_;
  data.regions[0].end = static_cast<Tick>(data.instructions.size());
  auto accesses = accesses_;
  AddLoopEntryAccesses(accesses);
  int32_t time = 0;
  for (size_t t = 0; t < data.instructions.size(); ++t) {
    Instruction& i = data.instructions[t];
    i.logical_time = time;
    time += i.kind != InstructionKind::kLoopEntry;
    i.first_access = static_cast<int32_t>(data.accesses.size());
    for (const mallocgame::Access& a : accesses[t]) {
      if (data.buffers[a.buffer.index()].eligible) data.accesses.push_back(a);
    }
    i.access_count = static_cast<int32_t>(data.accesses.size()) - i.first_access;
    // Where the access of an ineligible buffer is left out, later slots move up; its array stays in
    // main memory.
    std::vector<int32_t> slot_of;
    int32_t slot = 0;
    for (const mallocgame::Access& a : accesses[t]) {
      slot_of.push_back(data.buffers[a.buffer.index()].eligible ? slot++ : -1);
    }
    for (auto* arrays : {&data.cost.instructions[t].operands, &data.cost.instructions[t].outputs}) {
      for (CostArray& array : *arrays) {
        if (array.slot >= 0) array.slot = slot_of[array.slot];
      }
    }
    if (i.access_count != static_cast<int32_t>(accesses[t].size())) i.plain_copy = false;
  }
  return data;
}

std::shared_ptr<const Program> ProgramBuilder::Build() const {
  auto program = Program::Create(Data());
  if (!program.ok()) std::fprintf(stderr, "%s\n", program.status().ToString().c_str());
  MG_CHECK(program.ok());
  return *std::move(program);
}

std::shared_ptr<const Program> WithOtherPrices(const Program& program, Rng& rng) {
  ProgramData data = program.data();
  for (CostPool& pool : data.cost.pools) {
    for (CostRow& row : pool.rows) row.cycles = row.cycles * (1 + rng.Below(6)) / 3;
  }
  return Program::WithBoth(program, {.other = *Program::Create(std::move(data)),
                                     .law = {.main_share = 0.6, .copy_latency_ps = 2},
                                     .own_reference_ps = 3,
                                     .other_reference_ps = 2,
                                     .lean = 0.1 * rng.Below(3) - 0.1});
}

ProgramBuilder ReadAtTheEnd() {
  ProgramBuilder b;
  const BufferId p = b.Parameter("p", 4);
  b.Add({.name = "a", .cycles = {10}});
  b.Add({.name = "b", .cycles = {10}});
  b.Add({.name = "use", .reads = {p}, .cycles = {10, 3}});
  return b;
}

}  // namespace mallocgame::testing
