// From wishes to residences and their places. arrangement_copies.cc adds the copies.
#include "mallocgame/solvers/planning/arranger.h"

#include <algorithm>
#include <limits>

#include "mallocgame/base/error.h"
#include "mallocgame/base/rounding.h"
#include "mallocgame/simulator/simulate.h"

namespace mallocgame {
namespace {

constexpr int64_t kTinyBytes = 512;  // a scalar in all but name is smaller
constexpr Tick kBlock = 16;          // ticks

}  // namespace

Arranger::Arranger(const Game& game, const Plan& plan)
    : game_(game), program_(game.program()), hardware_(game.hardware()),
      capacity_(game.usable_bytes()), max_preloads_(hardware_.max_preloads),
      may_be_fast_(program_.accesses().size()), replaceable_(program_.instructions().size()),
      wishes_(program_.accesses().size()), fixed_(AllMainPlan(program_, hardware_)),
      fixed_begins_(program_.instructions().size() + 1),
      fixed_ends_(program_.instructions().size() + 1), run_of_(program_.accesses().size(), -1),
      places_near_(program_.instructions().size() / kBlock + 1),
      prices_(program_.instructions().size()) {
  for (Tick t = 0; t < program_.ticks(); ++t) simple_.push_back(InSimpleRegion(t));
  all_simple_ = std::find(simple_.begin(), simple_.end(), false) == simple_.end();
  for (size_t b = 0; b < program_.buffers().size(); ++b) {
    const BufferId buffer(static_cast<int64_t>(b));
    if (IsFree(buffer)) buffers_.push_back(buffer);
  }
  for (const Copy& copy : plan.copies) {  // what another copy reads is not to be changed
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

// A plain copy of what is never written: in place of it a prefetch may fill its result at any time.
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
    fixed_places_.push_back({residence.begin, residence.end, residence.offset,
                             residence.offset + program_.buffer(residence.buffer).size_bytes, -1});
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
      fixed_places_.push_back({t, t + 1, 0, program_.instruction(t).reserved_bytes, -1});
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
  MakeRuns();
  PlaceRuns();
  MakeJobs();
  const int64_t compute_ps = PricePs(), stall_ps = SchedulePs();
  if (all_simple_) return compute_ps + stall_ps;
  // What the channel does in loops only the simulator knows.
  const auto report = Simulate(game_.cost_model(), ToPlan());
  MG_CHECK(report.ok());
  return report->latency_ps;
}

void Arranger::MakeRuns() {
  runs_.clear();
  for (const BufferId buffer : buffers_) {
    const auto accesses = program_.accesses_of(buffer);
    const auto fast = [&](size_t i) {
      return may_be_fast_[accesses[i].index()] && wishes_[accesses[i].index()].fast;
    };
    for (size_t i = 0; i < accesses.size();) {
      size_t end = i + 1;
      if (fast(i)) {
        while (end < accesses.size() && fast(end) && wishes_[accesses[end].index()].kept) ++end;
        AddRun(buffer, static_cast<int32_t>(i), static_cast<int32_t>(end) - 1);
      }
      i = end;
    }
  }
}

void Arranger::AddRun(BufferId buffer, int32_t first, int32_t last) {
  Run run;
  run.buffer = buffer;
  run.accesses = program_.accesses_of(buffer);
  run.first = first;
  run.last = last;
  run.size = program_.buffer(buffer).size_bytes;
  const Access& from = access(run, first);
  run.need = from.tick;
  run.end = access(run, last).tick + 1;
  for (int32_t i = first; i <= last; ++i) {
    if (access(run, i).kind != AccessKind::kRead) run.written = access(run, i).tick + 1;
  }
  if (from.kind == AccessKind::kWrite) {
    if (replaceable_[from.tick]) {
      if (first == last) return;  // nobody reads it
      run.replaces = from.tick;
      run.need = access(run, first + 1).tick;
      run.written = std::max(run.written, run.need);
      run.fetched = true;
    }
  } else {
    run.fetched = program_.buffer(buffer).origin != BufferOrigin::kUndefined;
    for (int32_t i = 0; i < first; ++i) run.fetched |= access(run, i).kind != AccessKind::kRead;
    if (first == 0 && std::find(preloaded_.begin(), preloaded_.end(), buffer) != preloaded_.end()) {
      run.need = 0;
      run.fetched = false;
      run.preload = true;
    }
  }
  runs_.push_back(run);
}

void Arranger::PlaceRuns() {
  order_.clear();
  for (size_t r = 0; r < runs_.size(); ++r) {
    order_.emplace_back(wishes_[id(runs_[r], runs_[r].first).index()].rank,
                        static_cast<int32_t>(r));
  }
  std::sort(order_.begin(), order_.end());
  places_.clear();
  for (std::vector<int32_t>& near : places_near_) near.clear();
  for (const Place& place : fixed_places_) AddPlace(place);
  std::fill(run_of_.begin(), run_of_.end(), -1);
  for (const auto& [rank, r] : order_) {
    Run& run = runs_[r];
    const Wish& wish = wishes_[id(run, run.first).index()];
    const Tick begin = run.fetched ? std::max(EarliestFetch(run), run.need - wish.lead) : run.need;
    const bool placed =
        PlaceAt(run, begin, wish.offset) ||
        (begin < run.need && PlaceAt(run, run.need, wish.offset)) ||
        PlaceAt(run, begin, BestFit(begin, run.end, run.size)) ||
        (begin < run.need && PlaceAt(run, run.need, BestFit(run.need, run.end, run.size)));
    if (!placed) continue;  // main memory serves what it should have served
    for (int32_t i = run.first; i <= run.last; ++i) run_of_[id(run, i).index()] = r;
  }
}

// The first tick at which a prefetch for the run may begin, whatever lies at its place.
Tick Arranger::EarliestFetch(const Run& run) const {
  if (run.need == 0 || !simple_[run.need - 1]) return run.need;
  Tick earliest = program_.segment_begin(run.need - 1);
  if (run.replaces >= 0)
    return program_.instruction(run.replaces).region == program_.instruction(earliest).region
               ? earliest
               : run.need;
  for (int32_t i = run.first; i-- > 0;) {
    if (access(run, i).kind != AccessKind::kRead)
      return std::min(run.need, std::max(earliest, access(run, i).tick + 1));
  }
  return earliest;
}

void Arranger::AddPlace(const Place& place) {
  for (Tick block = place.begin / kBlock; block <= (place.end - 1) / kBlock; ++block) {
    places_near_[block].push_back(static_cast<int32_t>(places_.size()));
  }
  places_.push_back(place);
}

template <class Visit>
void Arranger::VisitPlaces(Tick begin, Tick end, const Visit& visit) const {
  const size_t first = begin / kBlock, last = (end - 1) / kBlock;
  size_t near = 0;
  for (size_t block = first; block <= last; ++block) near += places_near_[block].size();
  if (near >= places_.size()) {
    for (const Place& place : places_) {
      if (!visit(place)) return;
    }
    return;
  }
  for (size_t block = first; block <= last; ++block) {
    for (const int32_t place : places_near_[block]) {
      if (!visit(places_[place])) return;
    }
  }
}

bool Arranger::PlaceAt(Run& run, Tick begin, int64_t offset) {
  const int64_t top = offset + run.size;
  if (offset < 0 || top > capacity_ || offset % hardware_.alignment_bytes != 0) return false;
  bool is_free = true;
  VisitPlaces(begin, run.end, [&](const Place& place) {
    return is_free = place.begin >= run.end || begin >= place.end || place.offset >= top ||
                     offset >= place.top;
  });
  if (!is_free) return false;
  run.offset = offset;
  AddPlace({begin, run.end, offset, top, static_cast<int32_t>(&run - runs_.data())});
  return true;
}

// The smallest gap that holds `size` bytes over [begin, end), ties to the lower; -1: none.
int64_t Arranger::BestFit(Tick begin, Tick end, int64_t size) {
  taken_.clear();
  VisitPlaces(begin, end, [&](const Place& place) {
    if (place.begin < end && begin < place.end) taken_.emplace_back(place.offset, place.top);
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

std::vector<std::pair<AccessId, int64_t>> Arranger::Places() const {
  std::vector<std::pair<AccessId, int64_t>> places;
  for (const Run& run : runs_) {
    if (run.offset >= 0) places.emplace_back(id(run, run.first), run.offset);
  }
  return places;
}

Plan Arranger::ToPlan() const {
  Plan plan = fixed_;
  std::erase_if(plan.copies, [](const Copy& copy) { return !copy.preload; });
  std::vector<ResidenceId> id_of(runs_.size());
  for (size_t r = 0; r < runs_.size(); ++r) {
    const Run& run = runs_[r];
    if (run.offset < 0) continue;
    id_of[r] = ResidenceId(plan.residences.size());
    plan.residences.push_back({run.buffer, run.offset, run.need, run.end});
    if (run.preload)
      plan.copies.push_back(
          {CopyKind::kPrefetch, id_of[r], 0, access(run, run.first).tick, 0, run.size, true, -1});
  }
  for (size_t a = 0; a < run_of_.size(); ++a) {
    if (run_of_[a] >= 0) plan.served_by[a] = id_of[run_of_[a]];
  }
  for (const int32_t j : issued_) {
    if (j < 0) {
      plan.copies.push_back(fixed_.copies[-1 - j]);
      continue;
    }
    const Job& job = jobs_[j];
    const ResidenceId id = id_of[job.run];
    Residence& residence = plan.residences[id.index()];
    residence.begin = std::min(residence.begin, job.begin);
    residence.end = std::max(residence.end, job.done);
    plan.copies.push_back({job.write_back ? CopyKind::kWriteBack : CopyKind::kPrefetch, id,
                           job.begin, job.done, job.part_begin, job.part_end, false,
                           job.write_back ? -1 : run(job.run).replaces});
  }
  return plan;
}

}  // namespace mallocgame
