#include "mallocgame/game/priority/priority_state.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "mallocgame/base/error.h"

namespace mallocgame {
namespace {

uint8_t Bit(Mode mode) { return static_cast<uint8_t>(1u << static_cast<unsigned>(mode)); }

}  // namespace

const char* ModeName(Mode mode) {
  constexpr const char* kNames[] = {"Skip", "Late", "Early", "Preload", "Split"};
  const size_t index = static_cast<size_t>(mode);
  return index < std::size(kNames) ? kNames[index] : "unknown";
}

PriorityState::PriorityState(const std::shared_ptr<const PriorityGame>& game)
    : PriorityState(game, game->priority_tables()) {}

PriorityState::PriorityState(std::shared_ptr<const PriorityGame> game, const PriorityTables& tables)
    : game_(std::move(game)), tables_(&tables), arrangement_(tables_->arrangement),
      open_(tables_->runs.size() / 64 + 1), due_ps_(game_->program().ticks() + 1),
      stall_of_(tables_->segment_begin.size()), slack_(tables_->segment_begin) {
  for (Tick t = 0; t < game_->program().ticks(); ++t) {
    const int32_t segment = tables_->segment_of[t];
    if ((t - tables_->segment_begin[segment]) % ChannelSlack::kBlock == 0)
      slack_.Update(segment, t, [this](Tick at) { return arrangement_.idle_ps(at); });
  }
  candidates_.fill(-1);
  for (const int32_t root : tables_->roots) SetOpen(root, true);
}

void PriorityState::SetOpen(int32_t run, bool open) {
  wanted_space_.Add(tables_->runs[run].space, open ? 1 : -1);
  wanted_copies_.Add(tables_->runs[run].copies, open ? 1 : -1);
  const uint64_t bit = uint64_t{1} << run % 64;
  if (open) {
    open_[run / 64] |= bit;
    AddCandidate(run);
  } else {
    open_[run / 64] &= ~bit;
    RemoveCandidate(run);
  }
}

int32_t PriorityState::NextOpen(int32_t run) const {
  size_t word = (run + 1) / 64;
  uint64_t bits = open_[word] & ~uint64_t{0} << (run + 1) % 64;
  while (bits == 0) {
    if (++word == open_.size()) return -1;
    bits = open_[word];
  }
  return static_cast<int32_t>(64 * word + std::countr_zero(bits));
}

int PriorityState::num_open() const {
  int count = 0;
  for (const uint64_t word : open_) count += std::popcount(word);
  return count;
}

// A run that has been opened becomes a candidate if it is important enough.
void PriorityState::AddCandidate(int32_t run) {
  const auto begin = candidates_.begin(), end = begin + num_candidates_;
  const bool full = num_candidates_ == candidates().size();
  if (full && end[-1] < run) return;
  const auto at = std::lower_bound(begin, end, run);
  if (full) {
    std::copy_backward(at, end - 1, end);
  } else {
    std::copy_backward(at, end, end + 1);
    ++num_candidates_;
  }
  *at = run;
}

// The candidate after the last one takes the place of a run that has been closed.
void PriorityState::RemoveCandidate(int32_t run) {
  const auto begin = candidates_.begin(), end = begin + num_candidates_;
  const auto at = std::lower_bound(begin, end, run);
  if (at == end || *at != run) return;
  const bool full = num_candidates_ == candidates().size();
  const int32_t next = full ? NextOpen(end[-1]) : -1;
  std::copy(at + 1, end, at);
  end[-1] = next;
  if (next < 0) --num_candidates_;
}

PriorityState::Considered PriorityState::Consider(int32_t index) const {
  const Run& run = tables_->runs[index];
  uint8_t legal = run.splits ? Bit(Mode::kSplit) : 0;
  Tick late_begin = run.planned.latest_fetch;
  const auto fits = [&](const PlannedResidence& planned, Tick begin) {
    return arrangement_.HasRoom(planned, begin);
  };
  if (run.placeable) {
    const PlannedResidence& planned = run.planned;
    bool late = fits(planned, late_begin);
    if (!late && late_begin < planned.need) {
      late_begin = planned.need;
      late = fits(planned, late_begin);
    }
    if (late) legal |= Bit(Mode::kLate);
    if (HasEarly(run) && fits(run.roomy, run.roomy.earliest_fetch)) legal |= Bit(Mode::kEarly);
  }
  if (run.preloadable && arrangement_.preloads() < game_->hardware().max_preloads &&
      fits(run.preloaded, 0))
    legal |= Bit(Mode::kPreload);
  legal |= Bit(Mode::kSkip);
  return {index, legal, late_begin};
}

// What is known of a candidate, of which there must be so many.
const PriorityState::Considered& PriorityState::ConsideredOf(size_t candidate) const {
  const int32_t run = candidates_[candidate];
  // One place for each candidate.
  const auto places = absl::MakeSpan(considered_).subspan(0, candidates().size());
  auto known = std::find_if(places.begin(), places.end(),
                            [run](const Considered& c) { return c.run == run; });
  if (known == places.end()) {
    // In the place of a run that is no candidate any more.
    known = std::find_if(places.begin(), places.end(), [this](const Considered& c) {
      return c.run < 0 ||
             std::find(candidates().begin(), candidates().end(), c.run) == candidates().end();
    });
    *known = Consider(run);
    any_considered_ = true;
  }
  return *known;
}

ActionSet PriorityState::legal_actions() const {
  ActionSet legal;
  for (size_t i = 0; i < candidates().size() && candidates_[i] >= 0; ++i)
    legal.Add(kActionModes * static_cast<int>(i), ConsideredOf(i).legal);
  return legal;
}

// Carries out what a mode asks of memory: false if that is illegal, and nothing has changed.
bool PriorityState::Serve(int32_t index, Mode mode) {
  const Run& run = tables_->runs[index];
  const PlannedResidence& planned = run.planned;
  switch (mode) {
    case Mode::kSkip: return true;
    case Mode::kLate:
      return run.placeable &&
             (arrangement_.Place(planned, planned.latest_fetch) ||
              (planned.latest_fetch < planned.need && arrangement_.Place(planned, planned.need)));
    case Mode::kEarly:
      return HasEarly(run) && arrangement_.Place(run.roomy, run.roomy.earliest_fetch);
    case Mode::kPreload:
      return run.preloadable && arrangement_.preloads() < game_->hardware().max_preloads &&
             arrangement_.Place(run.preloaded, 0);
    case Mode::kSplit: return run.splits;
    default: return false;  // no action
  }
}

bool PriorityState::TryApply(int action) {
  if (action < 0 || action >= game_->num_actions()) return false;
  const auto mode = static_cast<Mode>(action % kActionModes);
  const int32_t index = candidates_[action / kActionModes];
  const int64_t compute_ps = arrangement_.compute_ps();
  if (index < 0 || !Serve(index, mode)) return false;
  Decide(action, compute_ps);
  return true;
}

bool PriorityState::TryApply(int action, const PlannedResidence& placed) {
  if (placed.preload && arrangement_.preloads() >= game_->hardware().max_preloads) return false;
  const int64_t compute_ps = arrangement_.compute_ps();
  arrangement_.PlaceAt(placed, placed.begin, placed.offset);
  Decide(action, compute_ps);
  return true;
}

// Notes the decision, whose residence has been placed; `compute_ps` is of before that.
void PriorityState::Decide(int action, int64_t compute_ps) {
  const auto mode = static_cast<Mode>(action % kActionModes);
  const int32_t index = candidates_[action / kActionModes];
  const Run& run = tables_->runs[index];
  decided_.push_back({index, mode, stall_ < 0 ? -1 : compute_ps + stall_, stall_});
  actions_.push_back(static_cast<uint8_t>(action));
  SetOpen(index, false);
  const bool places = mode != Mode::kSkip && mode != Mode::kSplit;
  if (mode == Mode::kSplit) {
    for (const int32_t part : run.parts) {
      if (part >= 0) SetOpen(part, true);
    }
  } else if (places) {
    const PlannedResidence& placed = arrangement_.placed().back();
    Count(placed, 1);
    UpdateStalls(placed);
    Forget(placed);
  }
  if (!tables_->options.exact_stalls) {
    if (IsTerminal()) stall_ = ScheduledStall();
  } else if (places) {
    stall_ = KnownStallWith(action);
  }
  stall_with_.clear();
}

// With the action, if it has been asked about at this position; else -1.
int64_t PriorityState::KnownStallWith(int action) const {
  const auto known = std::find_if(stall_with_.begin(), stall_with_.end(),
                                  [action](const auto& one) { return one.first == action; });
  return known == stall_with_.end() ? -1 : known->second;
}

int64_t PriorityState::ScheduledStall() const {
  return tables_->options.exact_stalls ? own_copy_times_.StallOf(arrangement_)
                                       : TimesOfThread().Run(arrangement_);
}

CopyTimes& PriorityState::TimesOfThread() {
  static thread_local CopyTimes times;
  return times;
}

int64_t PriorityState::OwnCopyTimes::StallOf(const Arrangement& arrangement) {
  if (copy_times_ == nullptr) copy_times_ = std::make_unique<CopyTimes>();
  const absl::Span<const uint64_t> stamps = arrangement.stamps();
  if (count_ <= stamps.size() && (count_ == 0 || stamps[count_ - 1] == last_)) copy_times_->Keep();
  count_ = stamps.size();
  last_ = stamps.empty() ? 0 : stamps.back();
  return copy_times_->Try(arrangement, std::numeric_limits<int64_t>::max());
}

PriorityState::Placing PriorityState::PlacingOf(size_t candidate, Mode mode) const {
  const Run& run = tables_->runs[candidates_[candidate]];
  if (mode == Mode::kLate) return {&run.planned, ConsideredOf(candidate).late_begin};
  if (mode == Mode::kEarly) return {&run.roomy, run.roomy.earliest_fetch};
  return {&run.preloaded, 0};
}

// The latency with one more residence, if nothing else were placed.
int64_t PriorityState::LatencyWith(int action, const Placing& placing) const {
  MG_CHECK(arrangement_.Place(*placing.planned, placing.begin));
  int64_t stall_ps = KnownStallWith(action);
  if (stall_ps < 0) {
    stall_ps = ScheduledStall();
    stall_with_.emplace_back(action, stall_ps);
  }
  const int64_t latency_ps = arrangement_.compute_ps() + stall_ps;
  arrangement_.Undo();
  return latency_ps;
}

int64_t PriorityState::SavingOf(int action) const {
  const auto mode = static_cast<Mode>(action % kActionModes);
  if (mode == Mode::kSkip || mode == Mode::kSplit) return 0;
  const Placing placing = PlacingOf(action / kActionModes, mode);
  if (tables_->options.exact_stalls) return latency_ps() - LatencyWith(action, placing);
  const PlannedResidence& planned = *placing.planned;
  const GameTables& tables = tables_->arrangement.tables;
  const auto of = tables_->arrangement.decisions_of(planned.buffer);
  const int64_t copy_ps = tables.buffers[planned.buffer].copy_ps;
  // Scratch space of the thread.
  static thread_local std::vector<ChannelSlack::Change> changes;
  changes.clear();
  int64_t saved = 0;
  for (int32_t i = planned.first; i <= planned.last;) {
    const Tick tick = tables.decisions[of[i]].tick;
    const uint64_t before = arrangement_.placements()[tick];
    uint64_t after = before;
    for (; i <= planned.last && tables.decisions[of[i]].tick == tick; ++i)
      after ^= uint64_t{1} << tables.decisions[of[i]].bit;
    if (tick == planned.replaces) after = kReplaced;
    const TimeAndIdle price = tables.PriceAt(game_->cost_model(), tick, after);
    saved += (tables.PriceAt(game_->cost_model(), tick, before).time_ps - price.time_ps) *
             tables.instructions[tick].trips;
    changes.push_back({tick, price.idle_ps - arrangement_.idle_ps(tick)});
  }
  const auto add_copy = [&](Tick due) {
    const auto behind = std::find_if(changes.begin(), changes.end(),
                                     [due](const auto& change) { return change.tick > due; });
    changes.insert(behind, {due, -copy_ps});
  };
  if (planned.fetched) add_copy(DueAt(planned));
  if (const Tick due = EvictionDueAt(planned); due >= 0) add_copy(due);

  const auto slack = [this](Tick t) { return arrangement_.idle_ps(t) - due_ps_[t]; };
  for (auto first = changes.begin(); first != changes.end();) {
    const int32_t segment = tables_->segment_of[first->tick];
    const Tick end = tables_->segment_begin[segment + 1];
    const auto last = std::find_if(first, changes.end(),
                                   [end](const auto& change) { return change.tick >= end; });
    const absl::Span<const ChannelSlack::Change> own(&*first, last - first);
    saved -= slack_.LateWith(segment, own, slack) * tables_->arrangement.passes[end - 1] -
             stall_of_[segment];
    first = last;
  }
  return saved;
}

int64_t PriorityState::FreePs(Tick begin, Tick end) const {
  if (begin >= end) return 0;
  return slack_.Sum(tables_->segment_of[begin], begin, end,
                    [this](Tick t) { return arrangement_.idle_ps(t) - due_ps_[t]; });
}

ChannelSlack::Stretch PriorityState::FreeOver(Tick begin, Tick end) const {
  return slack_.Over(tables_->segment_of[begin], begin, end,
                     [this](Tick t) { return arrangement_.idle_ps(t) - due_ps_[t]; });
}

absl::StatusOr<int64_t> PriorityState::Apply(int action) {
  if (IsTerminal()) return absl::FailedPreconditionError("the game is over: no run is open");
  const int64_t before = latency_ps();
  if (TryApply(action)) return before - latency_ps();
  std::string legal;
  for (const int other : legal_actions()) absl::StrAppend(&legal, legal.empty() ? "" : ", ", other);
  return absl::InvalidArgumentError(
      absl::StrCat("action ", action, " (", game_->ActionToString(action),
                   ") is illegal at decision ", num_decisions(), "; legal: ", legal));
}

void PriorityState::Undo() {
  MG_CHECK(!decided_.empty());
  const Decided last = decided_.back();
  const Run& run = tables_->runs[last.run];
  if (last.mode == Mode::kSplit) {
    for (const int32_t part : run.parts) {
      if (part >= 0) SetOpen(part, false);
    }
  } else if (last.mode != Mode::kSkip) {
    const PlannedResidence placed = arrangement_.placed().back();
    arrangement_.Undo();
    Count(placed, -1);
    UpdateStalls(placed);
    Forget(placed);
  }
  SetOpen(last.run, true);
  stall_ = last.stall_ps;
  stall_with_.clear();
  decided_.pop_back();
  actions_.pop_back();
}

// Forgets what was said of candidates that would take ticks of the residence.
void PriorityState::Forget(const PlannedResidence& placed) {
  if (!any_considered_) return;
  for (Considered& considered : absl::MakeSpan(considered_).subspan(0, candidates().size())) {
    if (considered.run < 0) continue;
    const Run& run = tables_->runs[considered.run];
    const Tick begin = run.preloadable ? 0 : run.planned.earliest_fetch;
    const Tick end = std::max(run.roomy.end, run.preloaded.end);
    if (begin < placed.end && placed.begin < end) considered.run = -1;
  }
}

// Counts the residence's copies as due, or takes them back.
void PriorityState::Count(const PlannedResidence& placed, int sign) {
  const int64_t copy_ps = sign * tables_->arrangement.tables.buffers[placed.buffer].copy_ps;
  if (placed.fetched) due_ps_[DueAt(placed)] += copy_ps;
  if (const Tick tick = EvictionDueAt(placed); tick >= 0) due_ps_[tick] += copy_ps;
}

Tick PriorityState::EvictionDueAt(const PlannedResidence& placed) const {
  if (placed.eviction_deadline < 0 || placed.written >= game_->program().ticks()) return -1;
  const Tick end = tables_->segment_begin[tables_->segment_of[placed.written] + 1];
  if (placed.eviction_deadline > end) return -1;
  return std::max(placed.written, placed.eviction_deadline - 1);
}

// The least stall of a segment: behind each tick the channel must have served what is due, in the
// time that the segment's instructions left to it until then.
void PriorityState::UpdateStalls(const PlannedResidence& placed) {
  const auto slack = [this](Tick t) { return arrangement_.idle_ps(t) - due_ps_[t]; };
  int32_t segment = -1;
  const auto settle = [&] {
    if (segment < 0) return;
    const Tick end = tables_->segment_begin[segment + 1];
    const int64_t stall = slack_.Late(segment) * tables_->arrangement.passes[end - 1];
    stall_ += stall - stall_of_[segment];
    stall_of_[segment] = stall;
  };
  // Most of the ticks share their segment with the one before, and many their block.
  Tick block_begin = 0, block_end = 0;
  const auto update = [&](Tick tick) {
    if (block_begin <= tick && tick < block_end) return;
    if (const int32_t its = tables_->segment_of[tick]; its != segment) {
      settle();
      segment = its;
    }
    slack_.Update(segment, tick, slack);
    const Tick begin = tables_->segment_begin[segment];
    block_begin = tick - (tick - begin) % ChannelSlack::kBlock;
    block_end = std::min(block_begin + ChannelSlack::kBlock, tables_->segment_begin[segment + 1]);
  };
  const auto of = tables_->arrangement.decisions_of(placed.buffer);
  if (placed.fetched) update(DueAt(placed));
  for (int32_t i = placed.first; i <= placed.last; ++i)
    update(tables_->arrangement.tables.decisions[of[i]].tick);
  if (const Tick tick = EvictionDueAt(placed); tick >= 0) update(tick);
  settle();
}

Plan PriorityState::ToPlan() const {
  TimesOfThread().Run(arrangement_);
  return TimesOfThread().ToPlan(arrangement_);
}

std::string PriorityState::ToString() const {
  const Program& program = game_->program();
  std::string text = absl::StrFormat(
      "%s on %s, decision %d, latency %.3f us (all main %.3f us), stall %.3f us, %d residences\n",
      program.name(), game_->hardware().name, num_decisions(),
      static_cast<double>(latency_ps()) * 1e-6, static_cast<double>(game_->all_main_ps()) * 1e-6,
      static_cast<double>(stall_ps()) * 1e-6, arrangement_.placed().size());
  if (IsTerminal()) return absl::StrCat(text, "game over\n");
  const ActionSet legal = legal_actions();
  for (size_t i = 0; i < candidates().size() && candidates_[i] >= 0; ++i) {
    const Run& run = tables_->runs[candidates_[i]];
    const Buffer& buffer = program.buffer(tables_->arrangement.tables.buffers[run.buffer].id);
    absl::StrAppendFormat(&text, "%d: %s, %d KiB, accesses %d to %d at ticks %d to %d; legal:", i,
                          buffer.name, buffer.size_bytes >> 10, run.first, run.last,
                          tables_->arrangement.decision(run.buffer, run.first).tick,
                          tables_->arrangement.decision(run.buffer, run.last).tick);
    for (int m = 0; m < kActionModes; ++m) {
      const auto mode = static_cast<Mode>(m);
      if (legal.Has(PriorityAction(static_cast<int>(i), mode)))
        absl::StrAppend(&text, " ", ModeName(mode));
    }
    absl::StrAppend(&text, "\n");
  }
  return text;
}

}  // namespace mallocgame
