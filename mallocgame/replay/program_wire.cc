// Converts programs, table by table in the order of replay.proto.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "mallocgame/base/error.h"
#include "mallocgame/replay/columns.h"
#include "mallocgame/replay/replay.pb.h"
#include "mallocgame/replay/wire.h"

namespace mallocgame::replay {
namespace {

// The cost of an instruction as a row. Its arrays are rows of a table of their own.
struct CostShape {
  int64_t operand_count = 0;
  int64_t output_count = 0;
  int32_t pool = -1;
  int64_t unpriced_bytes = 0;
  int64_t flops = 0;
  int64_t transcendentals = 0;
  int64_t link_ps = 0;
  bool kernel = false;
};

// What a pool is, but for its rows.
struct PoolShape {
  WorkClass work = WorkClass::kUnknown;
  int32_t element_bits = 0;
};

// Hands out the rows of a table, from the first on.
template <class Row>
class RowQueue {
 public:
  explicit RowQueue(absl::Span<const Row> rows) : left_(rows) {}

  size_t left() const { return left_.size(); }
  // The next `count` rows; none if fewer are left.
  std::optional<std::vector<Row>> Take(int64_t count) {
    if (count < 0 || count > std::ssize(left_)) return std::nullopt;
    const absl::Span<const Row> taken = left_.first(count);
    left_.remove_prefix(count);
    return std::vector<Row>(taken.begin(), taken.end());
  }

 private:
  absl::Span<const Row> left_;
};

void WriteCost(const CostData& cost, Cost* wire) {
  std::vector<CostShape> shapes;
  std::vector<CostArray> arrays;
  for (const InstructionCost& c : cost.instructions) {
    shapes.push_back({std::ssize(c.operands), std::ssize(c.outputs), c.pool, c.unpriced_bytes,
                      c.flops, c.transcendentals, c.link_ps, c.kernel});
    arrays.insert(arrays.end(), c.operands.begin(), c.operands.end());
    arrays.insert(arrays.end(), c.outputs.begin(), c.outputs.end());
  }
  std::vector<int64_t> pool_rows;
  std::vector<CostRow> rows;
  std::vector<PoolShape> pools;
  for (const CostPool& pool : cost.pools) {
    pool_rows.push_back(std::ssize(pool.rows));
    pools.push_back({pool.work, pool.element_bits});
    rows.insert(rows.end(), pool.rows.begin(), pool.rows.end());
  }

  wire->set_kind(static_cast<int64_t>(cost.kind));
  InstructionCosts* i = wire->mutable_instructions();
  WriteColumn(shapes, &CostShape::operand_count, i->mutable_operand_count());
  WriteColumn(shapes, &CostShape::output_count, i->mutable_output_count());
  WriteColumn(shapes, &CostShape::pool, i->mutable_pool());
  WriteColumn(shapes, &CostShape::unpriced_bytes, i->mutable_unpriced_bytes());
  WriteColumn(shapes, &CostShape::flops, i->mutable_flops());
  WriteColumn(shapes, &CostShape::transcendentals, i->mutable_transcendentals());
  if (std::any_of(shapes.begin(), shapes.end(),
                  [](const CostShape& shape) { return shape.link_ps != 0; })) {
    WriteColumn(shapes, &CostShape::link_ps, i->mutable_link_ps());
  }
  if (std::any_of(shapes.begin(), shapes.end(),
                  [](const CostShape& shape) { return shape.kernel; })) {
    WriteColumn(shapes, &CostShape::kernel, i->mutable_kernel());
  }
  CostArrays* a = wire->mutable_arrays();
  WriteColumn(arrays, &CostArray::size_bytes, a->mutable_size_bytes());
  WriteColumn(arrays, &CostArray::accessed_bytes, a->mutable_accessed_bytes());
  WriteColumn(arrays, &CostArray::slot, a->mutable_slot());
  WriteColumn(arrays, &CostArray::in_main, a->mutable_in_main());
  WriteList(pool_rows, wire->mutable_pool_rows());
  CostRows* r = wire->mutable_rows();
  WriteColumn(rows, &CostRow::operands, r->mutable_operands());
  WriteColumn(rows, &CostRow::outputs, r->mutable_outputs());
  WriteColumn(rows, &CostRow::cycles, r->mutable_cycles());
  if (std::any_of(pools.begin(), pools.end(),
                  [](const PoolShape& pool) { return pool.work != WorkClass::kUnknown; })) {
    WriteColumn(pools, &PoolShape::work, wire->mutable_pool_work());
    WriteColumn(pools, &PoolShape::element_bits, wire->mutable_pool_element_bits());
  }
}

absl::StatusOr<CostData> ReadCost(const Cost& wire) {
  CostData cost;
  if (wire.kind() < 0 || wire.kind() > static_cast<int64_t>(CostKind::kCalibrated)) {
    return absl::InvalidArgumentError(absl::StrCat("cost: kind ", wire.kind(), " is out of range"));
  }
  cost.kind = static_cast<CostKind>(wire.kind());
  std::vector<CostShape> shapes;
  const InstructionCosts& i = wire.instructions();
  MG_RETURN_IF_ERROR(ColumnReader<CostShape>("instruction costs", shapes)
                         .Read("operand_count", i.operand_count(), &CostShape::operand_count)
                         .Read("output_count", i.output_count(), &CostShape::output_count)
                         .Read("pool", i.pool(), &CostShape::pool)
                         .Read("unpriced_bytes", i.unpriced_bytes(), &CostShape::unpriced_bytes)
                         .Read("flops", i.flops(), &CostShape::flops)
                         .Read("transcendentals", i.transcendentals(), &CostShape::transcendentals)
                         .ReadIfAny("link_ps", i.link_ps(), &CostShape::link_ps)
                         .ReadIfAny("kernel", i.kernel(), &CostShape::kernel)
                         .status());
  std::vector<CostArray> arrays;
  const CostArrays& a = wire.arrays();
  MG_RETURN_IF_ERROR(ColumnReader<CostArray>("cost arrays", arrays)
                         .Read("size_bytes", a.size_bytes(), &CostArray::size_bytes)
                         .Read("accessed_bytes", a.accessed_bytes(), &CostArray::accessed_bytes)
                         .Read("slot", a.slot(), &CostArray::slot)
                         .Read("in_main", a.in_main(), &CostArray::in_main)
                         .status());
  MG_ASSIGN_OR_RETURN(const std::vector<int64_t> pool_rows,
                      ReadList<int64_t>("pools", wire.pool_rows()));
  std::vector<PoolShape> pools;
  if (!wire.pool_work().empty()) {
    MG_RETURN_IF_ERROR(ColumnReader<PoolShape>("pools", pools)
                           .ReadEnum("work", wire.pool_work(), &PoolShape::work, WorkClass::kKernel)
                           .Read("element_bits", wire.pool_element_bits(), &PoolShape::element_bits)
                           .status());
    if (pools.size() != pool_rows.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("pools: ", pools.size(), " have a class of work, of ", pool_rows.size()));
    }
  }
  pools.resize(pool_rows.size());
  std::vector<CostRow> rows;
  const CostRows& r = wire.rows();
  MG_RETURN_IF_ERROR(ColumnReader<CostRow>("cost rows", rows)
                         .Read("operands", r.operands(), &CostRow::operands)
                         .Read("outputs", r.outputs(), &CostRow::outputs)
                         .Read("cycles", r.cycles(), &CostRow::cycles)
                         .status());

  RowQueue<CostArray> array_queue(arrays);
  for (const CostShape& s : shapes) {
    auto operands = array_queue.Take(s.operand_count);
    auto outputs = operands ? array_queue.Take(s.output_count) : std::nullopt;
    if (!outputs) {
      return absl::InvalidArgumentError(
          absl::StrCat("instruction costs: row ", cost.instructions.size(), " has ",
                       s.operand_count, " operands and ", s.output_count, " outputs, but ",
                       array_queue.left(), " arrays are left"));
    }
    InstructionCost c;
    c.operands = *std::move(operands);
    c.outputs = *std::move(outputs);
    c.pool = s.pool;
    c.unpriced_bytes = s.unpriced_bytes;
    c.flops = s.flops;
    c.transcendentals = s.transcendentals;
    c.link_ps = s.link_ps;
    c.kernel = s.kernel;
    cost.instructions.push_back(std::move(c));
  }
  RowQueue<CostRow> row_queue(rows);
  for (const int64_t count : pool_rows) {
    auto own = row_queue.Take(count);
    if (!own) {
      return absl::InvalidArgumentError(absl::StrCat("pools: pool ", cost.pools.size(), " has ",
                                                     count, " rows, but ", row_queue.left(),
                                                     " are left"));
    }
    const PoolShape& shape = pools[cost.pools.size()];
    cost.pools.push_back({*std::move(own), shape.work, shape.element_bits});
  }
  if (array_queue.left() != 0 || row_queue.left() != 0) {
    return absl::InvalidArgumentError(absl::StrCat("cost: ", array_queue.left(), " arrays and ",
                                                   row_queue.left(), " rows belong to nothing"));
  }
  return cost;
}

}  // namespace

void ToWire(const ProgramData& data, Program* wire) {
  wire->set_name(data.name);
  wire->set_argument_bytes(data.argument_bytes);
  wire->set_window_bytes(data.window_bytes);
  Instructions* i = wire->mutable_instructions();
  WriteColumn(data.instructions, &Instruction::name, i->mutable_name());
  WriteColumn(data.instructions, &Instruction::opcode, i->mutable_opcode());
  WriteColumn(data.instructions, &Instruction::kind, i->mutable_kind());
  WriteColumn(data.instructions, &Instruction::region, i->mutable_region());
  WriteColumn(data.instructions, &Instruction::logical_time, i->mutable_logical_time());
  WriteColumn(data.instructions, &Instruction::reserved_bytes, i->mutable_reserved_bytes());
  WriteColumn(data.instructions, &Instruction::first_access, i->mutable_first_access());
  WriteColumn(data.instructions, &Instruction::access_count, i->mutable_access_count());
  WriteColumn(data.instructions, &Instruction::plain_copy, i->mutable_plain_copy());
  if (std::any_of(data.instructions.begin(), data.instructions.end(),
                  [](const Instruction& instruction) { return instruction.results_in_main; })) {
    WriteColumn(data.instructions, &Instruction::results_in_main, i->mutable_results_in_main());
  }
  if (std::any_of(data.instructions.begin(), data.instructions.end(),
                  [](const Instruction& instruction) { return !instruction.op_name.empty(); })) {
    WriteColumn(data.instructions, &Instruction::op_name, i->mutable_op_name());
  }
  Regions* r = wire->mutable_regions();
  WriteColumn(data.regions, &Region::kind, r->mutable_kind());
  WriteColumn(data.regions, &Region::parent, r->mutable_parent());
  WriteColumn(data.regions, &Region::loop, r->mutable_loop());
  WriteColumn(data.regions, &Region::begin, r->mutable_begin());
  WriteColumn(data.regions, &Region::end, r->mutable_end());
  WriteColumn(data.regions, &Region::trips, r->mutable_trips());
  Loops* l = wire->mutable_loops();
  WriteColumn(data.loops, &Loop::entry, l->mutable_entry());
  WriteColumn(data.loops, &Loop::exit, l->mutable_exit());
  WriteColumn(data.loops, &Loop::trips, l->mutable_trips());
  WriteColumn(data.loops, &Loop::trips_known, l->mutable_trips_known());
  Buffers* b = wire->mutable_buffers();
  WriteColumn(data.buffers, &Buffer::name, b->mutable_name());
  WriteColumn(data.buffers, &Buffer::size_bytes, b->mutable_size_bytes());
  WriteColumn(data.buffers, &Buffer::origin, b->mutable_origin());
  WriteColumn(data.buffers, &Buffer::is_output, b->mutable_is_output());
  WriteColumn(data.buffers, &Buffer::eligible, b->mutable_eligible());
  WriteColumn(data.buffers, &Buffer::ineligible_because, b->mutable_ineligible_because());
  if (std::any_of(data.buffers.begin(), data.buffers.end(),
                  [](const Buffer& buffer) { return buffer.unit_bytes != 0; })) {
    WriteColumn(data.buffers, &Buffer::unit_bytes, b->mutable_unit_bytes());
  }
  Accesses* a = wire->mutable_accesses();
  WriteColumn(data.accesses, &Access::tick, a->mutable_tick());
  WriteColumn(data.accesses, &Access::buffer, a->mutable_buffer());
  WriteColumn(data.accesses, &Access::kind, a->mutable_kind());
  WriteColumn(data.accesses, &Access::writes_in_loop, a->mutable_writes_in_loop());
  if (std::any_of(data.accesses.begin(), data.accesses.end(),
                  [](const Access& access) { return access.held_until != 0; })) {
    WriteColumn(data.accesses, &Access::held_until, a->mutable_held_until());
  }
  if (std::any_of(data.accesses.begin(), data.accesses.end(),
                  [](const Access& access) { return access.pin != Pin::kNone; })) {
    WriteColumn(data.accesses, &Access::pin, a->mutable_pin());
  }
  WriteCost(data.cost, wire->mutable_cost());
  if (data.has_dependences) {
    Dependences* d = wire->mutable_dependences();
    WriteColumn(data.dependences, &Dependence::before, d->mutable_before());
    WriteColumn(data.dependences, &Dependence::after, d->mutable_after());
  }
  if (data.main_uses.empty()) return;
  MainUses* m = wire->mutable_main_uses();
  WriteColumn(data.main_uses, &MainUse::tick, m->mutable_tick());
  WriteColumn(data.main_uses, &MainUse::buffer, m->mutable_buffer());
}

absl::StatusOr<ProgramData> ProgramFromWire(const Program& wire) {
  ProgramData data;
  MG_ASSIGN_OR_RETURN(data.name, ReadText("program name", wire.name()));
  data.argument_bytes = wire.argument_bytes();
  data.window_bytes = wire.window_bytes();
  const Instructions& i = wire.instructions();
  MG_RETURN_IF_ERROR(
      ColumnReader<Instruction>("instructions", data.instructions)
          .Read("name", i.name(), &Instruction::name)
          .Read("opcode", i.opcode(), &Instruction::opcode)
          .ReadEnum("kind", i.kind(), &Instruction::kind, InstructionKind::kLoopExit)
          .Read("region", i.region(), &Instruction::region)
          .Read("logical_time", i.logical_time(), &Instruction::logical_time)
          .Read("reserved_bytes", i.reserved_bytes(), &Instruction::reserved_bytes)
          .Read("first_access", i.first_access(), &Instruction::first_access)
          .Read("access_count", i.access_count(), &Instruction::access_count)
          .Read("plain_copy", i.plain_copy(), &Instruction::plain_copy)
          .ReadIfAny("results_in_main", i.results_in_main(), &Instruction::results_in_main)
          .ReadIfAny("op_name", i.op_name(), &Instruction::op_name)
          .status());
  const Regions& r = wire.regions();
  MG_RETURN_IF_ERROR(ColumnReader<Region>("regions", data.regions)
                         .ReadEnum("kind", r.kind(), &Region::kind, RegionKind::kCall)
                         .Read("parent", r.parent(), &Region::parent)
                         .Read("loop", r.loop(), &Region::loop)
                         .Read("begin", r.begin(), &Region::begin)
                         .Read("end", r.end(), &Region::end)
                         .Read("trips", r.trips(), &Region::trips)
                         .status());
  const Loops& l = wire.loops();
  MG_RETURN_IF_ERROR(ColumnReader<Loop>("loops", data.loops)
                         .Read("entry", l.entry(), &Loop::entry)
                         .Read("exit", l.exit(), &Loop::exit)
                         .Read("trips", l.trips(), &Loop::trips)
                         .Read("trips_known", l.trips_known(), &Loop::trips_known)
                         .status());
  const Buffers& b = wire.buffers();
  MG_RETURN_IF_ERROR(
      ColumnReader<Buffer>("buffers", data.buffers)
          .Read("name", b.name(), &Buffer::name)
          .Read("size_bytes", b.size_bytes(), &Buffer::size_bytes)
          .ReadEnum("origin", b.origin(), &Buffer::origin, BufferOrigin::kUndefined)
          .Read("is_output", b.is_output(), &Buffer::is_output)
          .Read("eligible", b.eligible(), &Buffer::eligible)
          .Read("ineligible_because", b.ineligible_because(), &Buffer::ineligible_because)
          .ReadIfAny("unit_bytes", b.unit_bytes(), &Buffer::unit_bytes)
          .status());
  const Accesses& a = wire.accesses();
  MG_RETURN_IF_ERROR(ColumnReader<Access>("accesses", data.accesses)
                         .Read("tick", a.tick(), &Access::tick)
                         .Read("buffer", a.buffer(), &Access::buffer)
                         .ReadEnum("kind", a.kind(), &Access::kind, AccessKind::kLoopEntry)
                         .Read("writes_in_loop", a.writes_in_loop(), &Access::writes_in_loop)
                         .ReadIfAny("held_until", a.held_until(), &Access::held_until)
                         .ReadEnumIfAny("pin", a.pin(), &Access::pin, Pin::kFast)
                         .status());
  MG_ASSIGN_OR_RETURN(data.cost, ReadCost(wire.cost()));
  data.has_dependences = wire.has_dependences();
  const Dependences& d = wire.dependences();
  MG_RETURN_IF_ERROR(ColumnReader<Dependence>("dependences", data.dependences)
                         .Read("before", d.before(), &Dependence::before)
                         .Read("after", d.after(), &Dependence::after)
                         .status());
  const MainUses& m = wire.main_uses();
  MG_RETURN_IF_ERROR(ColumnReader<MainUse>("main uses", data.main_uses)
                         .Read("tick", m.tick(), &MainUse::tick)
                         .Read("buffer", m.buffer(), &MainUse::buffer)
                         .status());
  return data;
}

}  // namespace mallocgame::replay
