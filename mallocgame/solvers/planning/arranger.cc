// Turns wishes into residences and gives these their offsets. arranger_copies.cc adds the copies.
#include "mallocgame/solvers/planning/arranger.h"

#include <algorithm>
#include <limits>

#include "mallocgame/base/error.h"
#include "mallocgame/base/rounding.h"
#include "mallocgame/simulator/simulate.h"

namespace mallocgame {
namespace {

constexpr int64_t kTinyBytes = 512;  // a smaller buffer is as good as a scalar
constexpr Tick kBlock = 16;          // ticks

}  // namespace

Arranger::Arranger(const Game& game, const Plan& plan)
    : game_(game), program_(game.program()), hardware_(game.hardware()),
      capacity_(game.usable_bytes()), max_preloads_(hardware_.max_preloads),
      may_be_fast_(program_.accesses().size()), replaceable_(program_.instructions().size()),
      wishes_(program_.accesses().size()), fixed_(AllMainPlan(program_, hardware_)),
      fixed_begins_(program_.instructions().size() + 1),
      fixed_ends_(program_.instructions().size() + 1), planned_for_(program_.accesses().size(), -1),
      occupied_near_(program_.instructions().size() / kBlock + 1),
      prices_(program_.instructions().size()) {
  for (Tick t = 0; t < program_.ticks(); ++t) simple_.push_back(InSimpleRegion(t));
  all_simple_ = std::find(simple_.begin(), simple_.end(), false) == simple_.end();
  for (size_t b = 0; b < program_.buffers().size(); ++b) {
    const BufferId buffer(b);
    if (IsFree(buffer)) buffers_.push_back(buffer);
  }
  for (const Copy& copy : plan.copies) {  // what a replaced copy reads must stay as it is
    if (copy.replaces < 0 || IsFree(plan.residences[copy.residence.index()].buffer)) continue;
    std::erase(buffers_,
               program_.accesses()[program_.instruction(copy.replaces).first_access].buffer);
  }
  for (const BufferId buffer : buffers_) {
    for (const AccessId id : program_.accesses_of(buffer)) may_be_fast_[id.index()] = true;
  }
  for (const AccessId id : game.options().forbidden) may_be_fast_[id.index()] = false;
  for (Tick t = 0; t < program_.ticks(); ++t) {
    if (!Replaceable(t)) continue;
    replaceable_[t] = true;
    may_be_fast_[program_.instruction(t).first_access] = false;
  }
  for (const BufferId buffer : buffers_) {
    for (const AccessId id : program_.accesses_of(buffer)) {
      if (may_be_fast_[id.index()]) accesses_.push_back(id);
    }
  }
  ReadPlan(plan);
}

bool Arranger::InSimpleRegion(Tick tick) const {
  for (int32_t r = program_.instruction(tick).region; r >= 0; r = program_.regions()[r].parent) {
    const RegionKind kind = program_.regions()[r].kind;
    if (kind != RegionKind::kEntry && kind != RegionKind::kCall) return false;
  }
  return true;
}

bool Arranger::IsFree(BufferId id) const {
  const Buffer& buffer = program_.buffer(id);
  const auto accesses = program_.accesses_of(id);
  const int64_t least = std::min(kTinyBytes, game_.options().min_buffer_bytes);
  return buffer.eligible && !accesses.empty() && buffer.size_bytes >= least &&
         buffer.size_bytes <= capacity_ &&
         std::all_of(accesses.begin(), accesses.end(), [this](AccessId a) {
           return program_.access(a).kind != AccessKind::kLoopEntry &&
                  simple_[program_.access(a).tick];
         });
}

// A plain copy of a buffer that is never written can be replaced: a prefetch may fill its result at
// any time.
bool Arranger::Replaceable(Tick tick) const {
  const Instruction& i = program_.instruction(tick);
  if (!i.plain_copy) return false;
  const size_t source = i.first_access;
  const BufferId operand = program_.accesses()[source].buffer;
  const auto accesses = program_.accesses_of(operand);
  return may_be_fast_[source] && may_be_fast_[source + 1] &&
         program_.buffer(operand).origin != BufferOrigin::kUndefined &&
         std::all_of(accesses.begin(), accesses.end(),
                     [this](AccessId a) { return program_.access(a).kind == AccessKind::kRead; });
}

bool Arranger::CanBePreloaded(BufferId buffer) const {
  const auto accesses = program_.accesses_of(buffer);
  return simple_[0] && program_.buffer(buffer).origin == BufferOrigin::kParameter &&
         program_.access(accesses[0]).kind != AccessKind::kWrite &&
         may_be_fast_[accesses[0].index()];
}

void Arranger::ReadPlan(const Plan& plan) {
  std::vector<bool> is_free(program_.buffers().size());
  for (const BufferId buffer : buffers_) is_free[buffer.index()] = true;
  std::vector<ResidenceId> new_id(plan.residences.size());
  for (size_t r = 0; r < plan.residences.size(); ++r) {
    const Residence& residence = plan.residences[r];
    if (is_free[residence.buffer.index()]) continue;
    new_id[r] = ResidenceId(fixed_.residences.size());
    fixed_.residences.push_back(residence);
    fixed_occupied_.push_back({residence.begin, residence.end, residence.offset,
                               residence.offset + program_.buffer(residence.buffer).size_bytes,
                               -1});
  }
  for (const Copy& copy : plan.copies) {
    const BufferId buffer = plan.residences[copy.residence.index()].buffer;
    if (!is_free[buffer.index()]) {
      fixed_.copies.push_back(copy);
      fixed_.copies.back().residence = new_id[copy.residence.index()];
      if (copy.preload) --max_preloads_;
    } else if (copy.preload && CanBePreloaded(buffer)) {
      preloaded_.push_back(buffer);
    }
  }
  for (size_t c = 0; c < fixed_.copies.size(); ++c) {
    if (fixed_.copies[c].preload) continue;
    fixed_begins_[fixed_.copies[c].begin].push_back(static_cast<int32_t>(c));
    fixed_ends_[fixed_.copies[c].end].push_back(static_cast<int32_t>(c));
  }
  free_windows_[0].assign(program_.instructions().size(), hardware_.max_outstanding_prefetches);
  free_windows_[1].assign(program_.instructions().size(), hardware_.max_outstanding_write_backs);
  for (const Copy& copy : fixed_.copies) {
    if (copy.preload) continue;
    for (Tick t = copy.begin; t < copy.end; ++t)
      --free_windows_[copy.kind == CopyKind::kWriteBack][t];
  }
  for (Tick t = 0; t < program_.ticks(); ++t) {
    if (program_.instruction(t).reserved_bytes > 0)
      fixed_occupied_.push_back({t, t + 1, 0, program_.instruction(t).reserved_bytes, -1});
  }
  for (size_t a = 0; a < plan.served_by.size(); ++a) {
    const ResidenceId r = plan.served_by[a];
    if (!r.valid()) continue;
    const Access& served = program_.accesses()[a];
    if (!is_free[served.buffer.index()]) {
      fixed_.served_by[a] = new_id[r.index()];
      continue;
    }
    const auto accesses = program_.accesses_of(served.buffer);
    const auto here = std::lower_bound(accesses.begin(), accesses.end(), AccessId(a));
    const bool kept = here != accesses.begin() && plan.served_by[std::prev(here)->index()] == r;
    const Residence& residence = plan.residences[r.index()];
    wishes_[a] = {true, kept, 1, std::max(0, served.tick - residence.begin), residence.offset};
  }
}

int64_t Arranger::Arrange() {
  PlanResidences();
  PlaceResidences();
  MakeTransfers();
  const int64_t compute_ps = PricePs(), stall_ps = SchedulePs();
  if (all_simple_) return compute_ps + stall_ps;
  // Only the simulator knows what the channel does in loops.
  const auto report = Simulate(game_.cost_model(), ToPlan());
  MG_CHECK(report.ok());
  return report->latency_ps;
}

void Arranger::PlanResidences() {
  planned_.clear();
  for (const BufferId buffer : buffers_) {
    const auto accesses = program_.accesses_of(buffer);
    const auto fast = [&](size_t i) {
      return may_be_fast_[accesses[i].index()] && wishes_[accesses[i].index()].fast;
    };
    for (size_t i = 0; i < accesses.size();) {
      size_t end = i + 1;
      if (fast(i)) {
        while (end < accesses.size() && fast(end) && wishes_[accesses[end].index()].kept) ++end;
        AddResidence(buffer, static_cast<int32_t>(i), static_cast<int32_t>(end) - 1);
      }
      i = end;
    }
  }
}

void Arranger::AddResidence(BufferId buffer, int32_t first, int32_t last) {
  PlannedResidence planned;
  planned.buffer = buffer;
  planned.accesses = program_.accesses_of(buffer);
  planned.first = first;
  planned.last = last;
  planned.size = program_.buffer(buffer).size_bytes;
  const Access& from = access(planned, first);
  planned.need = from.tick;
  planned.end = access(planned, last).tick + 1;
  for (int32_t i = first; i <= last; ++i) {
    if (access(planned, i).kind != AccessKind::kRead) planned.written = access(planned, i).tick + 1;
  }
  if (from.kind == AccessKind::kWrite) {
    if (replaceable_[from.tick]) {
      if (first == last) return;  // nothing reads the copy
      planned.replaces = from.tick;
      planned.need = access(planned, first + 1).tick;
      planned.written = std::max(planned.written, planned.need);
      planned.fetched = true;
    }
  } else {
    planned.fetched = program_.buffer(buffer).origin != BufferOrigin::kUndefined;
    for (int32_t i = 0; i < first; ++i)
      planned.fetched |= access(planned, i).kind != AccessKind::kRead;
    if (first == 0 && std::find(preloaded_.begin(), preloaded_.end(), buffer) != preloaded_.end()) {
      planned.need = 0;
      planned.fetched = false;
      planned.preload = true;
    }
  }
  planned_.push_back(planned);
}

void Arranger::PlaceResidences() {
  order_.clear();
  for (size_t r = 0; r < planned_.size(); ++r) {
    order_.emplace_back(wishes_[id(planned_[r], planned_[r].first).index()].rank,
                        static_cast<int32_t>(r));
  }
  std::sort(order_.begin(), order_.end());
  occupied_.clear();
  for (std::vector<int32_t>& near : occupied_near_) near.clear();
  for (const Occupied& occupied : fixed_occupied_) AddOccupied(occupied);
  std::fill(planned_for_.begin(), planned_for_.end(), -1);
  for (const auto& [rank, r] : order_) {
    PlannedResidence& planned = planned_[r];
    const Wish& wish = wishes_[id(planned, planned.first).index()];
    const Tick begin =
        planned.fetched ? std::max(EarliestFetch(planned), planned.need - wish.lead) : planned.need;
    const bool placed =
        PlaceAt(planned, begin, wish.offset) ||
        (begin < planned.need && PlaceAt(planned, planned.need, wish.offset)) ||
        PlaceAt(planned, begin, BestFit(begin, planned.end, planned.size)) ||
        (begin < planned.need &&
         PlaceAt(planned, planned.need, BestFit(planned.need, planned.end, planned.size)));
    if (!placed) continue;  // main memory serves its accesses
    for (int32_t i = planned.first; i <= planned.last; ++i)
      planned_for_[id(planned, i).index()] = r;
  }
}

// The first tick at which a prefetch for the residence may begin, whatever lies at its offset.
Tick Arranger::EarliestFetch(const PlannedResidence& planned) const {
  if (planned.need == 0 || !simple_[planned.need - 1]) return planned.need;
  Tick earliest = program_.segment_begin(planned.need - 1);
  if (planned.replaces >= 0)
    return program_.instruction(planned.replaces).region == program_.instruction(earliest).region
               ? earliest
               : planned.need;
  for (int32_t i = planned.first; i-- > 0;) {
    if (access(planned, i).kind != AccessKind::kRead)
      return std::min(planned.need, std::max(earliest, access(planned, i).tick + 1));
  }
  return earliest;
}

void Arranger::AddOccupied(const Occupied& occupied) {
  for (Tick block = occupied.begin / kBlock; block <= (occupied.end - 1) / kBlock; ++block) {
    occupied_near_[block].push_back(static_cast<int32_t>(occupied_.size()));
  }
  occupied_.push_back(occupied);
}

template <class Visit>
void Arranger::VisitOccupied(Tick begin, Tick end, const Visit& visit) const {
  const size_t first = begin / kBlock, last = (end - 1) / kBlock;
  size_t near = 0;
  for (size_t block = first; block <= last; ++block) near += occupied_near_[block].size();
  if (near >= occupied_.size()) {
    for (const Occupied& occupied : occupied_) {
      if (!visit(occupied)) return;
    }
    return;
  }
  for (size_t block = first; block <= last; ++block) {
    for (const int32_t occupied : occupied_near_[block]) {
      if (!visit(occupied_[occupied])) return;
    }
  }
}

bool Arranger::PlaceAt(PlannedResidence& planned, Tick begin, int64_t offset) {
  const int64_t top = offset + planned.size;
  if (offset < 0 || top > capacity_ || offset % hardware_.alignment_bytes != 0) return false;
  bool is_free = true;
  VisitOccupied(begin, planned.end, [&](const Occupied& occupied) {
    return is_free = occupied.begin >= planned.end || begin >= occupied.end ||
                     occupied.offset >= top || offset >= occupied.top;
  });
  if (!is_free) return false;
  planned.offset = offset;
  AddOccupied({begin, planned.end, offset, top, static_cast<int32_t>(&planned - planned_.data())});
  return true;
}

// The offset of the smallest gap that holds `size` bytes over [begin, end); of equal gaps, the
// lower one. -1: there is none.
int64_t Arranger::BestFit(Tick begin, Tick end, int64_t size) {
  taken_.clear();
  VisitOccupied(begin, end, [&](const Occupied& occupied) {
    if (occupied.begin < end && begin < occupied.end)
      taken_.emplace_back(occupied.offset, occupied.top);
    return true;
  });
  std::sort(taken_.begin(), taken_.end());
  taken_.emplace_back(capacity_, capacity_);
  int64_t best = -1, least = std::numeric_limits<int64_t>::max(), free_from = 0;
  for (const auto& [from, top] : taken_) {
    if (from - free_from >= size && from - free_from < least) {
      least = from - free_from;
      best = free_from;
    }
    free_from = std::max(free_from, RoundUp(top, hardware_.alignment_bytes));
  }
  return best;
}

std::vector<std::pair<AccessId, int64_t>> Arranger::Offsets() const {
  std::vector<std::pair<AccessId, int64_t>> offsets;
  for (const PlannedResidence& planned : planned_) {
    if (planned.offset >= 0) offsets.emplace_back(id(planned, planned.first), planned.offset);
  }
  return offsets;
}

Plan Arranger::ToPlan() const {
  Plan plan = fixed_;
  std::erase_if(plan.copies, [](const Copy& copy) { return !copy.preload; });
  std::vector<ResidenceId> id_of(planned_.size());
  for (size_t r = 0; r < planned_.size(); ++r) {
    const PlannedResidence& planned = planned_[r];
    if (planned.offset < 0) continue;
    id_of[r] = ResidenceId(plan.residences.size());
    plan.residences.push_back({planned.buffer, planned.offset, planned.need, planned.end});
    if (planned.preload)
      plan.copies.push_back({CopyKind::kPrefetch, id_of[r], 0, access(planned, planned.first).tick,
                             0, planned.size, true, -1});
  }
  for (size_t a = 0; a < planned_for_.size(); ++a) {
    if (planned_for_[a] >= 0) plan.served_by[a] = id_of[planned_for_[a]];
  }
  for (const int32_t j : issued_) {
    if (j < 0) {
      plan.copies.push_back(fixed_.copies[-1 - j]);
      continue;
    }
    const Transfer& transfer = transfers_[j];
    const ResidenceId id = id_of[transfer.planned];
    Residence& residence = plan.residences[id.index()];
    residence.begin = std::min(residence.begin, transfer.begin);
    residence.end = std::max(residence.end, transfer.done);
    plan.copies.push_back({transfer.write_back ? CopyKind::kWriteBack : CopyKind::kPrefetch, id,
                           transfer.begin, transfer.done, transfer.part_begin, transfer.part_end,
                           false, transfer.write_back ? -1 : planned(transfer.planned).replaces});
  }
  return plan;
}

}  // namespace mallocgame
