// Changes a few numbers of a random program directly, so that no file format stands in the way.
#include "tests/fuzz/edited_program.h"

#include <cstddef>

#include "mallocgame/base/rng.h"
#include "tests/fuzz/input.h"
#include "tests/support/programs.h"

namespace mallocgame::fuzz {
namespace {

template <class T>
void Edit(Input& in, T& number) {
  number = static_cast<T>(in.Value(static_cast<int64_t>(number)));
}
void Edit(Input& in, bool& flag) { flag = in.Byte() % 2 == 1; }
template <class Tag>
void Edit(Input& in, Id<Tag>& id) {
  Edit(in, id.value);
}
// An enum gets one of its values: readers of files refuse others before they make a Program.
template <class E>
void EditEnum(Input& in, E& value, E last) {
  value = static_cast<E>(in.Byte() % (static_cast<int>(last) + 1));
}

void EditInstruction(Input& in, Instruction& i) {
  switch (in.Byte() % 8) {
    case 0: return EditEnum(in, i.kind, InstructionKind::kLoopExit);
    case 1: return Edit(in, i.region);
    case 2: return Edit(in, i.logical_time);
    case 3: return Edit(in, i.reserved_bytes);
    case 4: return Edit(in, i.first_access);
    case 5: return Edit(in, i.access_count);
    case 6: return Edit(in, i.plain_copy);
    case 7: return Edit(in, i.results_in_main);
  }
}

void EditRegion(Input& in, Region& r) {
  switch (in.Byte() % 6) {
    case 0: return EditEnum(in, r.kind, RegionKind::kCall);
    case 1: return Edit(in, r.parent);
    case 2: return Edit(in, r.loop);
    case 3: return Edit(in, r.begin);
    case 4: return Edit(in, r.end);
    case 5: return Edit(in, r.trips);
  }
}

void EditLoop(Input& in, Loop& l) {
  switch (in.Byte() % 3) {
    case 0: return Edit(in, l.entry);
    case 1: return Edit(in, l.exit);
    case 2: return Edit(in, l.trips);
  }
}

void EditBuffer(Input& in, Buffer& b) {
  switch (in.Byte() % 4) {
    case 0: return Edit(in, b.size_bytes);
    case 1: return EditEnum(in, b.origin, BufferOrigin::kUndefined);
    case 2: return Edit(in, b.is_output);
    case 3: return Edit(in, b.eligible);
  }
}

void EditAccess(Input& in, Access& a) {
  switch (in.Byte() % 5) {
    case 0: return Edit(in, a.tick);
    case 1: return Edit(in, a.buffer);
    case 2: return EditEnum(in, a.kind, AccessKind::kLoopEntry);
    case 3: return Edit(in, a.writes_in_loop);
    case 4: return Edit(in, a.held_until);
  }
}

void EditArrays(Input& in, std::vector<CostArray>& arrays) {
  if (arrays.empty()) return arrays.resize(in.Byte());
  CostArray& a = arrays[in.Below(arrays.size())];
  switch (in.Byte() % 5) {
    case 0: return Edit(in, a.size_bytes);
    case 1: return Edit(in, a.accessed_bytes);
    case 2: return Edit(in, a.slot);
    case 3: return Edit(in, a.in_main);
    case 4: return arrays.pop_back();
  }
}

void EditCost(Input& in, CostData& cost) {
  if (!cost.pools.empty() && in.Byte() % 3 == 0) {
    std::vector<CostRow>& rows = cost.pools[in.Below(cost.pools.size())].rows;
    if (rows.empty()) return;
    CostRow& row = rows[in.Below(rows.size())];
    switch (in.Byte() % 4) {
      case 0: return Edit(in, row.operands);
      case 1: return Edit(in, row.outputs);
      case 2: return Edit(in, row.cycles);
      case 3: return rows.pop_back();
    }
  }
  if (cost.instructions.empty()) return;
  InstructionCost& c = cost.instructions[in.Below(cost.instructions.size())];
  switch (in.Byte() % 9) {
    case 0: return Edit(in, c.pool);
    case 8: c.kernel = !c.kernel; return;
    case 7: return Edit(in, c.link_ps);
    case 1: return Edit(in, c.unpriced_bytes);
    case 2: return Edit(in, c.flops);
    case 3: return Edit(in, c.transcendentals);
    case 4: return EditArrays(in, c.operands);
    case 5: return EditArrays(in, c.outputs);
    case 6: return EditEnum(in, cost.kind, CostKind::kCalibrated);
  }
}

template <class Row, class EditRow>
void EditOne(Input& in, std::vector<Row>& rows, EditRow edit) {
  if (!rows.empty()) edit(in, rows[in.Below(rows.size())]);
}

void EditProgram(Input& in, ProgramData& data) {
  switch (in.Byte() % 6) {
    case 0: return EditOne(in, data.instructions, EditInstruction);
    case 1: return EditOne(in, data.regions, EditRegion);
    case 2: return EditOne(in, data.loops, EditLoop);
    case 3: return EditOne(in, data.buffers, EditBuffer);
    case 4: return EditOne(in, data.accesses, EditAccess);
    case 5: return EditCost(in, data.cost);
  }
}

void EditHardware(Input& in, Hardware& h) {
  switch (in.Byte() % 12) {
    case 0: return Edit(in, h.fast_bytes);
    case 1: return Edit(in, h.alignment_bytes);
    case 2: return Edit(in, h.main_bytes_per_second);
    case 3: return Edit(in, h.fast_read_bytes_per_second);
    case 4: return Edit(in, h.fast_write_bytes_per_second);
    case 5: return Edit(in, h.flops_per_second);
    case 6: return Edit(in, h.transcendentals_per_second);
    case 7: return Edit(in, h.clock_hz);
    case 8: return Edit(in, h.max_outstanding_prefetches);
    case 9: return Edit(in, h.max_outstanding_evictions);
    case 10: return Edit(in, h.max_preloads);
    case 11: return Edit(in, h.fast_memory_space);
  }
}

}  // namespace

EditedProgram MakeEditedProgram(absl::string_view bytes) {
  Input in(bytes);
  Rng rng(in.Byte());
  const uint8_t shape = in.Byte();
  const auto program = testing::RandomProgram(
      rng, {.instructions = 1 + shape % 16, .branches = shape / 16 % 3, .roofline = shape >= 128});
  EditedProgram edited{program->data(), testing::TestHardware(1 + in.Byte())};
  while (!in.empty()) {
    if (in.Byte() % 8 == 0) {
      EditHardware(in, edited.hardware);
    } else {
      EditProgram(in, edited.program);
    }
  }
  return edited;
}

}  // namespace mallocgame::fuzz
