#include "mallocgame/search/packing_search.h"

#include <algorithm>

namespace mallocgame {
namespace {

constexpr int64_t kSmallBytes = 16 << 10;  // smaller buffers are seldom worth a move

}  // namespace

PackingSearch::PackingSearch(const Game& game, const Plan& plan)
    : program_(game.program()), max_preloads_(game.hardware().max_preloads), packing_(game, plan) {
  for (const AccessId id : packing_.accesses()) {
    const BufferId buffer = program_.access(id).buffer;
    all_.push_back(id);
    if (program_.buffer(buffer).size_bytes >= kSmallBytes) large_.push_back(id);
  }
  if (large_.empty()) large_ = all_;
  for (const AccessId id : large_) {
    const auto accesses = program_.accesses_of(program_.access(id).buffer);
    if (std::any_of(accesses.begin(), accesses.end(), [this](AccessId other) {
          const AccessKind kind = program_.access(other).kind;
          return kind == AccessKind::kWrite || kind == AccessKind::kUpdate;
        }))
      written_.push_back(id);
  }
  trial_ = packing_.Pack();
  Accept();
}

Plan PackingSearch::PlanOf(const Intent& intent) {
  packing_.intent() = intent;
  packing_.Pack();
  return packing_.ToPlan();
}

bool PackingSearch::Try(int64_t most) {
  trial_ = packing_.Pack();
  return trial_ <= most;
}

void PackingSearch::Accept() {
  latency_ = trial_;
  for (const auto& [access, offset] : packing_.Offsets())
    packing_.intent()[access.index()].offset = offset;
  changed_.clear();
}

void PackingSearch::Reject() {
  for (size_t i = changed_.size(); i-- > 0;)
    packing_.intent()[changed_[i].first.index()] = changed_[i].second;
  changed_.clear();
}

Segment& PackingSearch::Changed(AccessId id) {
  Segment& segment = packing_.intent()[id.index()];
  changed_.emplace_back(id, segment);
  return segment;
}

AccessId PackingSearch::AnyAccess(Rng& rng) const {
  return rng.Pick(rng.Below(8) == 0 ? all_ : large_);
}

// Half of the leads are short.
Tick PackingSearch::AnyLead(AccessId id, Rng& rng) const {
  const Tick tick = program_.access(id).tick;
  const uint32_t most = rng.Below(2) == 0 ? 16 : static_cast<uint32_t>(tick);
  return std::min(tick, static_cast<Tick>(rng.Below(most + 1)));
}

void PackingSearch::Propose(Rng& rng) {
  const AccessId id = AnyAccess(rng);
  const uint32_t kind = rng.Below(16);
  if (!written_.empty() && rng.Below(16) == 0) {
    Changed(rng.Pick(written_)).held ^= true;
  } else if (kind < 5) {
    Reassign(id, rng);
  } else if (kind < 8) {
    CutOrCoalesce(id);
  } else if (kind < 10) {
    Changed(id).lead = AnyLead(id, rng);
  } else if (kind < 12) {
    Changed(id).rank = rng.Uniform();
  } else if (kind < 13) {
    Relocate(id, rng);
  } else if (kind < 15) {
    ReassignBuffer(id, rng);
  } else {
    Preload(program_.access(id).buffer, rng);
  }
}

void PackingSearch::Reassign(AccessId id, Rng& rng) {
  Segment& segment = Changed(id);
  if (segment.mode != Mode::kSkip) {
    segment.mode = Mode::kSkip;
    return;
  }
  segment.mode = rng.Below(2) == 0 ? Mode::kKeep : Mode::kLate;
  segment.rank = rng.Uniform();
  segment.lead = AnyLead(id, rng);
  segment.offset = -1;
  segment.held = rng.Below(4) == 0;
}

void PackingSearch::CutOrCoalesce(AccessId id) {
  Mode& mode = Changed(id).mode;
  if (mode == Mode::kKeep) {
    mode = Mode::kLate;
  } else if (mode != Mode::kSkip && mode != Mode::kPreload) {
    mode = Mode::kKeep;
  }
}

void PackingSearch::Relocate(AccessId id, Rng& rng) {
  Segment& segment = Changed(id);
  segment.rank = rng.Uniform() / 16;
  segment.offset = rng.Below(2) == 0 ? -1 : packing_.intent()[AnyAccess(rng).index()].offset;
}

void PackingSearch::ReassignBuffer(AccessId id, Rng& rng) {
  constexpr Mode kModes[] = {Mode::kSkip, Mode::kLate, Mode::kKeep};
  const Mode mode = kModes[rng.Below(3)];
  const double rank = rng.Uniform();
  for (const AccessId other : program_.accesses_of(program_.access(id).buffer)) {
    if (other < id && rng.Below(2) == 0) continue;
    Segment& segment = Changed(other);
    if (mode == Mode::kSkip || segment.mode != Mode::kPreload) segment.mode = mode;
    if (mode != Mode::kSkip) segment.rank = rank;
  }
}

void PackingSearch::Preload(BufferId buffer, Rng& rng) {
  if (max_preloads_ == 0 || !packing_.CanBePreloaded(buffer)) return;
  const auto first = [this](BufferId of) { return program_.accesses_of(of)[0]; };
  if (packing_.intent()[first(buffer).index()].mode == Mode::kPreload) {
    Changed(first(buffer)).mode = Mode::kLate;
    return;
  }
  std::vector<BufferId> preloaded;
  for (const AccessId id : all_) {
    if (packing_.intent()[id.index()].mode == Mode::kPreload)
      preloaded.push_back(program_.access(id).buffer);
  }
  if (preloaded.size() >= max_preloads_) Changed(first(rng.Pick(preloaded))).mode = Mode::kLate;
  Segment& segment = Changed(first(buffer));
  segment.mode = Mode::kPreload;
  segment.rank = rng.Uniform() / 16;
}

}  // namespace mallocgame
