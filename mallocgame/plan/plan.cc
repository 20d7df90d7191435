// The plan with everything in main memory, the check that a plan is well formed, and its text.
#include "mallocgame/plan/plan.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/plan/pinned.h"

namespace mallocgame {
namespace {

template <class... Parts>
absl::Status Malformed(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("plan: ", parts...));
}

bool IsIndex(int32_t value, size_t size) { return value >= 0 && static_cast<size_t>(value) < size; }

absl::Status CheckResidence(const Program& program, size_t index, const Residence& r) {
  if (!IsIndex(r.buffer.value, program.buffers().size())) {
    return Malformed("residence ", index, ": buffer ", r.buffer.value, ", there are ",
                     program.buffers().size());
  }
  if (r.begin < 0 || r.begin >= r.end || r.end > program.ticks()) {
    return Malformed("residence ", index, " of buffer '", program.buffer(r.buffer).name,
                     "': ticks [", r.begin, ", ", r.end, ") are no interval inside [0, ",
                     program.ticks(), ")");
  }
  return absl::OkStatus();
}

absl::Status CheckCopy(const Program& program, const Plan& plan, size_t index) {
  const Copy& c = plan.copies[index];
  if (!IsIndex(c.residence.value, plan.residences.size())) {
    return Malformed("copy ", index, ": residence ", c.residence.value, ", there are ",
                     plan.residences.size());
  }
  const Buffer& buffer = program.buffer(plan.residences[c.residence.index()].buffer);
  const auto where = [&] {
    return absl::StrCat("copy ", index, " of buffer '", buffer.name, "': ");
  };
  if (c.kind != CopyKind::kPrefetch && c.kind != CopyKind::kEviction)
    return Malformed(where(), "kind is not known");
  if (c.begin < 0 || c.begin > c.end || c.end > program.ticks()) {
    return Malformed(where(), "window [", c.begin, ", ", c.end, "), allowed is inside [0, ",
                     program.ticks(), "]");
  }
  if (index > 0 && plan.copies[index - 1].begin > c.begin) {
    return Malformed(where(), "begins at ", c.begin, ", before the copy in front of it at ",
                     plan.copies[index - 1].begin);
  }
  if (c.part_begin < 0 || c.part_begin >= c.part_end || c.part_end > buffer.size_bytes) {
    return Malformed(where(), "bytes [", c.part_begin, ", ", c.part_end, ") are no part of its ",
                     buffer.size_bytes);
  }
  if (c.preload && (c.kind != CopyKind::kPrefetch || c.begin != 0 || c.replaces != -1)) {
    return Malformed(where(),
                     "a preload must be a prefetch that begins at tick 0 and replaces nothing");
  }
  if (c.replaces != -1 &&
      (c.kind != CopyKind::kPrefetch || !IsIndex(c.replaces, program.instructions().size()) ||
       !program.instruction(c.replaces).plain_copy)) {
    return Malformed(where(), "replaces tick ", c.replaces,
                     ", which must be a plain copy, by a prefetch");
  }
  return absl::OkStatus();
}

}  // namespace

Plan AllMainPlan(const Program& program, const Hardware& hardware) {
  Plan plan;
  plan.program_fingerprint = program.fingerprint();
  plan.hardware = hardware.name;
  plan.served_by.resize(program.accesses().size());
  for (const PlacedPin& pin : PlacePins(program, hardware)) {
    const PinnedStay& stay = pin.stay;
    const auto id = ResidenceId(plan.residences.size());
    plan.residences.push_back({stay.buffer, pin.offset, stay.begin, stay.end});
    for (const AccessId access : stay.serves) plan.served_by[access.index()] = id;
    if (!stay.fetched) continue;
    plan.copies.push_back({CopyKind::kPrefetch, id, stay.begin, stay.begin, 0,
                           program.buffer(stay.buffer).size_bytes, false, -1});
  }
  return plan;
}

Plan InMainMemory(const Plan& plan, BufferId buffer) {
  Plan result = plan;
  result.residences.clear();
  std::vector<ResidenceId> now(plan.residences.size());
  for (size_t r = 0; r < plan.residences.size(); ++r) {
    if (plan.residences[r].buffer == buffer) continue;
    now[r] = ResidenceId(static_cast<int32_t>(result.residences.size()));
    result.residences.push_back(plan.residences[r]);
  }
  result.copies.clear();
  for (Copy copy : plan.copies) {
    copy.residence = now[copy.residence.index()];
    if (copy.residence.valid()) result.copies.push_back(copy);
  }
  for (ResidenceId& served : result.served_by)
    if (served.valid()) served = now[served.index()];
  return result;
}

absl::Status CheckWellFormed(const Program& program, const Hardware& hardware, const Plan& plan) {
  if (plan.program_fingerprint != program.fingerprint()) {
    return Malformed("made for the program with fingerprint '", plan.program_fingerprint,
                     "', not for '", program.name(), "' with ", program.fingerprint());
  }
  if (plan.hardware != hardware.name) {
    return Malformed("made for the hardware '", plan.hardware, "', not for '", hardware.name, "'");
  }
  if (plan.served_by.size() != program.accesses().size()) {
    return Malformed("says of ", plan.served_by.size(),
                     " accesses what serves them, the program has ", program.accesses().size());
  }
  for (size_t i = 0; i < plan.residences.size(); ++i)
    MG_RETURN_IF_ERROR(CheckResidence(program, i, plan.residences[i]));
  for (size_t i = 0; i < plan.copies.size(); ++i) MG_RETURN_IF_ERROR(CheckCopy(program, plan, i));
  for (size_t i = 0; i < plan.served_by.size(); ++i) {
    const int32_t value = plan.served_by[i].value;
    if (value != -1 && !IsIndex(value, plan.residences.size())) {
      return Malformed("access ", i, " is served by residence ", value, ", there are ",
                       plan.residences.size());
    }
  }
  return absl::OkStatus();
}

std::string PlanToString(const Program& program, const Plan& plan) {
  // Lines are sorted by begin. At one tick copies come after residences, each in the plan's order.
  std::vector<std::tuple<Tick, int, size_t>> order;
  for (size_t i = 0; i < plan.residences.size(); ++i)
    order.emplace_back(plan.residences[i].begin, 0, i);
  for (size_t i = 0; i < plan.copies.size(); ++i) order.emplace_back(plan.copies[i].begin, 1, i);
  std::sort(order.begin(), order.end());
  std::string text;
  for (const auto& [begin, is_copy, index] : order) {
    if (!is_copy) {
      const Residence& r = plan.residences[index];
      const Buffer& b = program.buffer(r.buffer);
      absl::StrAppend(&text, "[", r.begin, ", ", r.end, ") resident ", index, ": ", b.name, ", ",
                      b.size_bytes, " bytes at offset ", r.offset, "\n");
      continue;
    }
    const Copy& c = plan.copies[index];
    absl::StrAppend(&text, "[", c.begin, ", ", c.end, ") ",
                    c.preload                       ? "preload"
                    : c.kind == CopyKind::kPrefetch ? "prefetch"
                                                    : "eviction",
                    " of resident ", c.residence.value, ": ",
                    program.buffer(plan.residences[c.residence.index()].buffer).name, ", part [",
                    c.part_begin, ", ", c.part_end, ")");
    if (c.replaces >= 0)
      absl::StrAppend(&text, ", in place of ", program.instruction(c.replaces).name);
    absl::StrAppend(&text, "\n");
  }
  return text;
}

}  // namespace mallocgame
