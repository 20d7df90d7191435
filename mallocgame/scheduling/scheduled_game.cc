#include "mallocgame/scheduling/scheduled_game.h"

#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "mallocgame/base/error.h"
#include "mallocgame/game/priority/priority_tables.h"

namespace mallocgame {
namespace {

std::vector<int32_t> Inverse(const std::vector<int32_t>& of) {
  std::vector<int32_t> inverse(of.size());
  for (size_t i = 0; i < of.size(); ++i) inverse[of[i]] = static_cast<int32_t>(i);
  return inverse;
}

}  // namespace

ScheduledGame::ScheduledGame(const ScheduleUnits& units, const Game& base, UnitOrder order,
                             const std::vector<ServedAccesses>& served)
    : order_(std::move(order)), ticks_(units.TicksOf(order_)), place_(Inverse(ticks_)) {
  made_ = ReorderedLegally(units.program(), ticks_);
  base_buffer_ = Inverse(made_.buffer_of);
  base_access_ = Inverse(made_.access_of);
  game_ = base.Reordered(made_.program, ticks_, made_.access_of);
  search_ = std::make_unique<GameSearch>(*game_, IntentOf(served));
}

ScheduledGame::ScheduledGame(const ScheduleUnits& units, const Game& base, Intent intent)
    : order_(units.ProgramOrder()), ticks_(units.TicksOf(order_)), place_(Inverse(ticks_)) {
  made_.program = units.shared_program();
  for (size_t b = 0; b < made_.program->buffers().size(); ++b)
    made_.buffer_of.push_back(static_cast<int32_t>(b));
  for (size_t a = 0; a < made_.program->accesses().size(); ++a)
    made_.access_of.push_back(static_cast<int32_t>(a));
  base_buffer_ = made_.buffer_of;
  base_access_ = made_.access_of;
  game_ = base.shared_from_this();
  search_ = std::make_unique<GameSearch>(*game_, std::move(intent));
}

std::vector<ServedAccesses> ScheduledGame::Served() const {
  const PriorityTables& tables = game_->priority_tables();
  std::vector<ServedAccesses> served;
  for (int32_t i = 0; i < search_->decisions(); ++i) {
    const int32_t r = search_->segment(i);
    const Run& run = tables.runs[r];
    const Segment& segment = search_->intent()[r];
    ServedAccesses one;
    one.buffer = base_buffer_[tables.arrangement.tables.buffers[run.buffer].id.index()];
    one.first = one.last = -1;
    if (run.parent >= 0) {
      one.first = base_access_[segment.first.index()];
      one.last = base_access_[segment.last.index()];
    }
    one.mode = segment.mode;
    served.push_back(one);
  }
  return served;
}

// Runs that the other order hasn't got, because their accesses stand otherwise there, come last and
// are left to greedy.
Intent ScheduledGame::IntentOf(const std::vector<ServedAccesses>& served) const {
  const PriorityTables& tables = game_->priority_tables();
  absl::flat_hash_map<std::tuple<int32_t, int32_t, int32_t>, int32_t> runs;
  Intent intent = OpenIntent(*game_);
  for (size_t r = 0; r < tables.runs.size(); ++r) {
    const auto index = static_cast<int32_t>(r);
    intent[r].rank += static_cast<double>(served.size());
    const Run& run = tables.runs[r];
    std::tuple<int32_t, int32_t, int32_t> key(
        base_buffer_[tables.arrangement.tables.buffers[run.buffer].id.index()], -1, -1);
    if (run.parent >= 0) {
      std::get<1>(key) = base_access_[intent[r].first.index()];
      std::get<2>(key) = base_access_[intent[r].last.index()];
    }
    runs.emplace(key, index);
  }
  double rank = 0;
  for (const ServedAccesses& one : served) {
    const auto run = runs.find({one.buffer, one.first, one.last});
    if (run != runs.end()) {
      intent[run->second].mode = one.mode;
      intent[run->second].rank = rank;
    }
    ++rank;
  }
  return intent;
}

void ScheduledGame::TryPlacement(int64_t worse, Rng& rng) {
  if (search_->empty()) return;
  search_->Propose(rng);
  if (search_->Try(search_->latency_ps() + worse)) {
    search_->Accept();
  } else {
    search_->Reject();
  }
}

}  // namespace mallocgame
