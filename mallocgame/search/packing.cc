#include "mallocgame/search/packing.h"

#include <algorithm>
#include <tuple>

#include "mallocgame/search/game_variants.h"

namespace mallocgame {
namespace {

std::shared_ptr<const Game> WithSmallBuffers(const Game& game) {
  const std::shared_ptr<const Game> fine = GameOfSmallBuffers(game);
  return fine != nullptr ? fine : game.shared_from_this();
}

}  // namespace

Packing::Packing(const Game& game, const Plan& plan)
    : game_(WithSmallBuffers(game)), tables_(*game_), arrangement_(tables_),
      intent_(ReadPacking(game_->program(), plan)),
      buffer_of_(game_->program().buffers().size(), -1), known_(game_->tables().decisions.size()) {
  const GameTables& tables = game_->tables();
  for (size_t b = 0; b < tables.buffers.size(); ++b)
    buffer_of_[tables.buffers[b].id.index()] = static_cast<int32_t>(b);
  for (const int32_t d : tables_.by_buffer) {
    if (tables_.may_be_fast[d] != 0) accesses_.push_back(tables.decisions[d].access);
  }
}

bool Packing::CanBePreloaded(BufferId buffer) const {
  const int32_t b = buffer_of_[buffer.index()];
  return b >= 0 && tables_.CanBePreloaded(b) &&
         tables_.may_be_fast[tables_.decisions_of(b)[0]] != 0;
}

int64_t Packing::Pack() {
  Ask();
  Place();
  const int64_t stall_ps = schedule_.Run(arrangement_);
  return arrangement_.compute_ps() + stall_ps;
}

// Collects the residences that the intent asks for, in the order of their ranks.
void Packing::Ask() {
  asked_.clear();
  const GameTables& tables = game_->tables();
  int preloads = 0;
  for (size_t b = 0; b < tables.buffers.size(); ++b) {
    const auto buffer = static_cast<int32_t>(b);
    const auto of = tables_.decisions_of(buffer);
    for (size_t i = 0; i < of.size();) {
      size_t end = i + 1;
      if (tables_.may_be_fast[of[i]] != 0 && wanted(of[i]).mode != Mode::kSkip) {
        const Decision& first = tables.decisions[of[i]];
        // A residence over a loop or a transfer serves everything inside.
        Tick covered = first.covered_until;
        for (; end < of.size(); ++end) {
          const Decision& d = tables.decisions[of[end]];
          const bool kept = wanted(of[end]).mode == Mode::kKeep;
          if (d.tick >= covered &&
              !(kept && tables_.may_be_fast[of[end]] != 0 && d.tick < first.scope_end))
            break;
          covered = std::max(covered, d.covered_until);
        }
        const Segment& own = wanted(of[i]);
        const bool preload = i == 0 && own.mode == Mode::kPreload &&
                             preloads < game_->hardware().max_preloads &&
                             tables_.CanBePreloaded(buffer);
        preloads += preload ? 1 : 0;
        asked_.push_back({own.rank, of[i], static_cast<int32_t>(i), static_cast<int32_t>(end) - 1,
                          preload, own.held, std::max(0, own.lead), own.offset});
      }
      i = end;
    }
  }
  std::sort(asked_.begin(), asked_.end(), [](const Asked& a, const Asked& b) {
    return std::tuple(a.rank, a.first_decision) < std::tuple(b.rank, b.first_decision);
  });
}

// Places what is asked for. What the last call placed first, in the same way, stays.
void Packing::Place() {
  size_t same = 0;
  while (same < asked_.size() && same < placed_.size() && asked_[same].SameAs(placed_[same]))
    ++same;
  for (size_t i = placed_.size(); i-- > same;) {
    if (was_placed_[i]) arrangement_.Undo();
  }
  was_placed_.resize(same);
  for (size_t i = same; i < asked_.size(); ++i) was_placed_.push_back(PlaceOne(asked_[i]));
  placed_ = asked_;
}

// False: there is no room, or no valid plan has the residence. Main memory then serves its
// accesses.
bool Packing::PlaceOne(const Asked& asked) {
  const int32_t buffer = game_->tables().decisions[asked.first_decision].buffer;
  Known& known = known_[asked.first_decision];
  if (known.last != asked.last || known.preload != asked.preload)
    known = {asked.last, asked.preload,
             tables_.Plan(buffer, asked.position, asked.last, asked.preload)};
  if (!known.planned.has_value()) return false;
  if (asked.held && known.planned->eviction_deadline > known.planned->end) {
    PlannedResidence held = *known.planned;
    held.end = held.eviction_deadline;
    if (PlaceAsAsked(asked, held)) return true;
  }
  return PlaceAsAsked(asked, *known.planned);
}

bool Packing::PlaceAsAsked(const Asked& asked, const PlannedResidence& planned) {
  const Tick begin =
      planned.fetched ? std::max(planned.earliest_fetch, planned.need - asked.lead) : planned.need;
  const auto place = [&](Tick from) { return arrangement_.Place(planned, from, asked.offset); };
  // A wanted offset goes before a wanted lead.
  if (begin < planned.need && asked.offset >= 0 &&
      !arrangement_.IsFree(begin, planned.end, asked.offset,
                           asked.offset + arrangement_.size(planned)) &&
      arrangement_.IsFree(planned.need, planned.end, asked.offset,
                          asked.offset + arrangement_.size(planned)))
    return place(planned.need);
  return place(begin) || (begin < planned.need && place(planned.need));
}

std::vector<std::pair<AccessId, int64_t>> Packing::Offsets() const {
  std::vector<std::pair<AccessId, int64_t>> offsets;
  for (const PlannedResidence& planned : arrangement_.placed()) {
    offsets.emplace_back(tables_.decision(planned.buffer, planned.first).access, planned.offset);
  }
  return offsets;
}

}  // namespace mallocgame
