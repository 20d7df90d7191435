// Writes what runs computations: loops, conditionals and calls.
#include <utility>

#include "mallocgame/base/error.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/write/plan_writer.h"

namespace mallocgame::hlo {

// What a loop carries lies in one place over all of it: as initial value, parameter of body and
// condition, result of the body, and result.
absl::Status PlanWriter::WriteLoop(int32_t i) {
  const int32_t around = draft_.computation(i);
  const Loop& loop = program_.loop_at(tick_);
  MG_RETURN_IF_ERROR(copies_.At(tick_, around));
  const Locations carried = CarriedBy(i, loop.entry, loop.exit);
  MG_ASSIGN_OR_RETURN(const int32_t initial, values_.ResultAt(module_.operands(i)[0], carried));
  ++tick_;
  const std::vector<int32_t> outside = newest_;
  const int32_t body = module_.called(i)[0], condition = module_.called(i)[1];
  EmitParameter(module_.computation(condition).parameters[0], carried);
  const Locations answer = {kMainMemory};
  MG_RETURN_IF_ERROR(WriteComputation(condition, &answer).status());
  EmitParameter(module_.computation(body).parameters[0], carried);
  MG_RETURN_IF_ERROR(WriteComputation(body, &carried).status());
  newest_ = outside;
  SetOperand(i, 0, initial);
  draft_.Emit(i);
  for (int32_t k = 0; k < ArrayCount(i); ++k) {
    const int32_t array = FirstArray(i) + k;
    values_.Define(array, carried[k]);
    if (flow_.Before(array) == kNone) Renew(array);
  }
  MG_RETURN_IF_ERROR(copies_.At(tick_, around));
  ++tick_;
  return absl::OkStatus();
}

Locations PlanWriter::CarriedBy(int32_t i, Tick entry, Tick exit) const {
  Locations locations;
  const int32_t given = FirstArray(module_.operands(i)[0]);
  for (int32_t k = 0; k < ArrayCount(i); ++k) {
    std::optional<int32_t> location = ServedFrom(entry, FirstArray(i) + k);
    // The loop doesn't touch it. So it is where it stays until the loop's end.
    for (int32_t r = 0; !location && r < std::ssize(plan_.residences); ++r) {
      const Residence& residence = plan_.residences[r];
      if (values_.IsAt(given + k, kMainMemory)) break;
      if (residence.buffer.value == BufferOf(given + k) && residence.begin <= entry &&
          residence.end >= exit && values_.IsAt(given + k, r)) {
        location = r;
      }
    }
    locations.push_back(location.value_or(kMainMemory));
  }
  return locations;
}

Locations PlanWriter::NeededFirst(int32_t i, Tick begin, Tick end) const {
  Locations locations;
  for (int32_t array = FirstArray(i); array < FirstArray(i) + ArrayCount(i); ++array) {
    int32_t location = values_.AnyLocationOf(array);
    if (location != kMainMemory && plan_.residences[location].end <= begin &&
        values_.CanBeAt(array, kMainMemory))
      location = kMainMemory;
    if (BufferOf(array) != kNone) {
      for (const AccessId a : program_.accesses_of(BufferId(BufferOf(array)))) {
        const Tick tick = program_.access(a).tick;
        const int32_t served = plan_.served_by[a.index()].value;
        if (tick < begin || tick >= end || !values_.IsAt(array, served)) continue;
        location = served;
        break;
      }
    }
    locations.push_back(location);
  }
  return locations;
}

// What all branches hand on, they hand on at one location: that of the first which accesses it in
// fast memory, if it stays there until all are done or is nowhere else.
Locations PlanWriter::HandOn(int32_t i, std::vector<Locations>& given) const {
  Locations result(ArrayCount(i), kMainMemory);
  const Tick end = program_.regions()[region_of_[module_.called(i).back()]].end;
  for (int32_t k = 0; k < ArrayCount(i); ++k) {
    const int32_t value = flow_.Before(FirstArray(i) + k);
    if (value == kNone) continue;
    std::vector<int32_t*> all;
    bool can_change = values_.IsAt(value, kMainMemory);
    for (size_t b = 0; b < given.size(); ++b) {
      const int32_t called = module_.called(i)[b];
      const int32_t parameter = module_.computation(called).parameters[0];
      all.push_back(&given[b][flow_.PassedBy(called, k) - FirstArray(parameter)]);
      can_change &= module_.instruction(parameter).proto->shape().element_type() == TUPLE;
    }
    for (const int32_t* location : all) {
      if (result[k] != kMainMemory || !values_.IsAt(value, *location)) continue;
      if (can_change && *location != kMainMemory && plan_.residences[*location].end < end) continue;
      result[k] = *location;
    }
    if (result[k] == kMainMemory && can_change) continue;
    for (int32_t* location : all) *location = result[k];
  }
  return result;
}

// It isn't known which branch runs, so what one of them makes is in main memory.
absl::Status PlanWriter::WriteBranches(int32_t i) {
  const int32_t around = draft_.computation(i);
  copies_.EndDue(tick_, around);
  const absl::Span<const int32_t> operands = module_.operands(i), branches = module_.called(i);
  MG_ASSIGN_OR_RETURN(const int32_t chosen,
                      values_.ResultAt(operands[0], LocationsAt(tick_, operands[0])));
  SetOperand(i, 0, chosen);
  std::vector<Locations> given;
  for (size_t b = 0; b < branches.size(); ++b) {
    const Region& region = program_.regions()[region_of_[branches[b]]];
    given.push_back(NeededFirst(operands[b + 1], region.begin, region.end));
  }
  const Locations result = HandOn(i, given);
  for (size_t b = 0; b < branches.size(); ++b) {
    MG_ASSIGN_OR_RETURN(const int32_t operand, values_.ResultAt(operands[b + 1], given[b]));
    // Another branch may be given the same values elsewhere.
    if (module_.instruction(operands[b + 1]).proto->shape().element_type() == TUPLE)
      values_.SetTableApart(operand);
    SetOperand(i, b + 1, operand);
  }
  const std::vector<int32_t> outside = newest_;
  for (size_t b = 0; b < branches.size(); ++b) {
    const int32_t parameter = module_.computation(branches[b]).parameters[0];
    EmitParameter(parameter, given[b]);
    values_.Give(parameter, operands[b + 1]);
    MG_RETURN_IF_ERROR(WriteComputation(branches[b], &result).status());
    newest_ = outside;
    MG_ASSIGN_OR_RETURN(const std::optional<int32_t> widened, values_.Widened(parameter, given[b]));
    if (widened) SetOperand(i, b + 1, *widened);
  }
  draft_.Emit(i);
  for (int32_t k = 0; k < ArrayCount(i); ++k) {
    values_.Define(FirstArray(i) + k, result[k]);
    if (flow_.Before(FirstArray(i) + k) == kNone) Renew(FirstArray(i) + k);
  }
  // What begins at this tick is behind the branches.
  MG_RETURN_IF_ERROR(copies_.At(tick_, around));
  ++tick_;
  return absl::OkStatus();
}

absl::Status PlanWriter::WriteCall(int32_t i) {
  const int32_t around = draft_.computation(i), callee = module_.called(i)[0];
  copies_.EndDue(tick_, around);
  const Region& region = program_.regions()[region_of_[callee]];
  std::vector<Locations> given;
  for (size_t k = 0; k < module_.operands(i).size(); ++k) {
    const int32_t operand = module_.operands(i)[k];
    given.push_back(NeededFirst(operand, region.begin, region.end));
    MG_ASSIGN_OR_RETURN(const int32_t own, values_.ResultAt(operand, given[k]));
    SetOperand(i, k, own);
  }
  const std::vector<int32_t> outside = newest_;
  for (size_t k = 0; k < given.size(); ++k)
    EmitParameter(module_.computation(callee).parameters[k], given[k]);
  MG_ASSIGN_OR_RETURN(const Locations result, WriteComputation(callee, nullptr));
  newest_ = outside;
  draft_.Emit(i);
  for (int32_t k = 0; k < ArrayCount(i); ++k) {
    values_.Define(FirstArray(i) + k, result[k]);
    Renew(FirstArray(i) + k);
  }
  MG_RETURN_IF_ERROR(copies_.At(tick_, around));
  ++tick_;
  return absl::OkStatus();
}

}  // namespace mallocgame::hlo
