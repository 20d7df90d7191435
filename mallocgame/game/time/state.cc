// The play: what an action does to the state, and how time goes on. legality.cc says what is
// allowed.
#include "mallocgame/game/time/state.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "mallocgame/base/error.h"
#include "mallocgame/game/tables.h"
#include "mallocgame/game/time/plan_recorder.h"

namespace mallocgame {

State::State(std::shared_ptr<const Game> game, PlanRecorder* recorder)
    : game_(std::move(game)), tables_(&game_->tables()),
      windows_(game_->program().ticks(), tables_->shortest_copy_ps),
      memory_(game_->usable_bytes(), game_->hardware().alignment_bytes),
      placements_(std::vector<uint64_t>(game_->program().ticks(), 0)),
      buffers_(FirstStates(*tables_)), under_way_(2 * game_->program().ticks(), 0),
      latency_(game_->all_main_ps()), recorder_(recorder) {
  const auto& options = static_cast<const TimeGameOptions&>(game_->options());
  drop_backup_ = options.drop_backup;
  if (drop_backup_) trail_.dropped.resize(tables_->decisions.size());
  penalty_ = std::llround(std::ceil(options.illegal_penalty * static_cast<double>(latency_)));
  FetchPins();
  GoToDecision(0);
}

std::vector<BufferState> State::FirstStates(const GameTables& tables) {
  std::vector<BufferState> states(tables.buffers.size());
  for (size_t i = 0; i < states.size(); ++i) states[i].has_value = !tables.buffers[i].undefined;
  return states;
}

const Decision& State::current() const { return tables_->decisions[cursor_]; }

AccessId State::current_access() const { return current().access; }

AccessId State::access_of(int i) const {
  return keeps_trail() ? trail_.decided[i].access : tables_->decisions[frames_[i].cursor].access;
}

TimeAndIdle State::PriceAt(Tick tick, uint64_t placement) const {
  return tables_->PriceAt(game_->cost_model(), tick, placement);
}

absl::StatusOr<int64_t> State::Apply(Action action) {
  const auto number = static_cast<uint8_t>(action);
  if (IsTerminal()) return absl::FailedPreconditionError("the game is over: no decision is left");
  if (static_cast<int>(action) >= game_->num_actions() || !IsLegal(action)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "action ", static_cast<int>(action), " (", ActionName(action), ") is illegal at decision ",
        num_decisions(), "; legal: ", [&] {
          std::string names;
          for (const int a : legal_actions())
            absl::StrAppend(&names, names.empty() ? "" : ", ", ActionName(static_cast<Action>(a)));
          return names;
        }()));
  }
  const int64_t before = latency_ + penalty_ps();
  if (keeps_trail()) {
    const uint8_t feasible = FeasibleBits();
    if ((feasible >> static_cast<int>(action) & 1) == 0) {
      trail_.penalised.push_back(num_decisions());
      action = static_cast<Action>(std::countr_zero(feasible));
    }
    trail_.decided.push_back({current_access(), action});
  }
  actions_.push_back(number);
  frames_.push_back(
      {windows_.moment(), log_.Mark(), action, cursor_, preloads_, latency_, stall_, {}, {}});
  if (action == Action::kDrop) {
    ServeFromMain(current());
  } else {
    ServeFromFast(current(), EffectOf(action));
  }
  GoToDecision(cursor_ + 1);
  if (drop_backup_) BackUp();
  return before - latency_ - penalty_ps();
}

absl::StatusOr<int64_t> State::Apply(int action) {
  if (action < 0 || action >= kActions) {
    return absl::InvalidArgumentError(absl::StrCat(
        "action ", action, " at decision ", num_decisions(), ": there is none of this number"));
  }
  return Apply(static_cast<Action>(action));
}

int64_t State::SavingOf(int action) const {
  if (keeps_trail()) return *State(*this).Apply(action);
  const Decision& d = current();
  const ActionEffect& effect = effects_[action];
  const bool fast = action != static_cast<int>(Action::kDrop);
  int64_t stall = !fast || d.writes || effect.transfer ? EvictionWait(d) : 0;
  // The copy is queued behind that eviction, so its stall has the wait in it.
  if (fast && effect.transfer) stall = std::max(stall, effect.window.stall_ps);
  int64_t saved = -stall * tables_->instructions[d.tick].trips;
  if (!fast) return saved;

  const auto replace = [&](Tick tick, uint64_t placement) {
    saved += (PriceAt(tick, placements_[tick]).time_ps - PriceAt(tick, placement).time_ps) *
             tables_->instructions[tick].trips;
  };
  const Decision* replaced = effect.transfer ? ReplacedWrite(d) : nullptr;
  if (replaced != nullptr && replaced != &d) replace(replaced->tick, kReplaced);
  const Tick forced_until = d.writes && effect.eviction_end == 0 ? kNever : d.covered_until;
  Tick tick = d.tick;
  uint64_t placement = replaced == &d ? kReplaced : placements_[tick] | uint64_t{1} << d.bit;
  for (int32_t n = d.next; n >= 0; n = tables_->decisions[n].next) {
    const Decision& later = tables_->decisions[n];
    if (later.tick >= forced_until) break;
    if (later.tick != tick) {
      replace(tick, placement);
      tick = later.tick;
      placement = placements_[tick];
    }
    placement |= uint64_t{1} << later.bit;
  }
  replace(tick, placement);
  return saved;
}

void State::Undo() {
  MG_CHECK(!actions_.empty());
  if (!trail_.backups.empty() && trail_.backups.back() == num_decisions()) {
    // What the game went back on is played again.
    State again(game_, recorder_);
    for (const uint8_t action : absl::MakeConstSpan(actions_).first(actions_.size() - 1))
      MG_CHECK(again.Apply(static_cast<Action>(action)).ok());
    *this = std::move(again);
    return;
  }
  TakeBack();
  actions_.pop_back();
  if (!keeps_trail()) return;
  trail_.decided.pop_back();
  if (!trail_.penalised.empty() && trail_.penalised.back() == num_decisions())
    trail_.penalised.pop_back();
}

// At a dead end nothing is feasible, because the bytes of an alias group's residence are taken. The
// game goes back to the write that binds the group, where it can be dropped still.
void State::BackUp() {
  if (IsTerminal() || FeasibleBits() != 0) return;
  const int32_t write = buffers_[current().buffer].bound_by;
  while (cursor_ != write) TakeBack();
  trail_.dropped[write] = true;
  trail_.backups.push_back(num_decisions());
}

// Takes back the last decision that stands.
void State::TakeBack() {
  const Frame& frame = frames_.back();
  windows_.Rollback(frame.windows, log_, frame.log);
  memory_.Rollback(log_, frame.log);
  placements_.Rollback(log_, frame.log);
  buffers_.Rollback(log_, frame.log);
  upcoming_.Rollback(log_, frame.log);
  log_.Rollback(frame.log);
  CountUnderWay(false, frame.prefetch, -1);
  CountUnderWay(true, frame.eviction, -1);
  cursor_ = frame.cursor;
  preloads_ = frame.preloads;
  latency_ = frame.latency;
  stall_ = frame.stall;
  considered_ = false;
  frames_.pop_back();
}

void State::ServeFromMain(const Decision& d) {
  WaitForEviction(d, /*keeps_residence=*/false);
  BufferState b = buffers_[d.buffer];
  b.resident_end = 0;
  // At a loop's entry the loop's boundary counts: from the second trip on, storage without a value
  // holds what the first trip left in it.
  if (d.kind == AccessKind::kLoopEntry) {
    if (!b.has_value) b.main_since = d.tick;
  } else if (d.writes) {
    b.main_since = d.UsedUntil();
  }
  if (d.holds) b.forced_until = d.covered_until;
  b.has_value = true;
  buffers_.Set(&log_, d.buffer, b);
}

void State::ServeFromFast(const Decision& d, const ActionEffect& effect) {
  const BufferId id = tables_->buffers[d.buffer].id;
  const int64_t size = tables_->buffers[d.buffer].size_bytes;
  const Decision* replaced = effect.transfer ? ReplacedWrite(d) : nullptr;

  ActionEffect use = effect;
  if ((d.writes || effect.transfer) && WaitForEviction(d, effect.extend) &&
      use.window.stall_ps > 0) {
    // The wait for the eviction has paid a part of the stall.
    use.window = windows_.FindBehind(tables_->buffers[d.buffer].copy_ps, MainSince(d));
  }

  BufferState b = buffers_[d.buffer];
  if (use.extend) {
    if (use.end > b.resident_end) {
      memory_.Take(&log_, b.offset, size, use.end);
      b.resident_end = use.end;
      if (recorder_ != nullptr) recorder_->SetEnd(id, use.end);
    }
  } else {
    memory_.Take(&log_, use.offset, size, use.end);
    b.offset = use.offset;
    b.resident_end = use.end;
    b.scope_end = use.scope_end;
    if (recorder_ != nullptr) recorder_->Open(id, use.offset, use.begin, use.end);
  }
  if (use.preload) {
    ++preloads_;
    if (recorder_ != nullptr) recorder_->Preload(id, d.tick);
  }
  if (use.transfer) BookTransfer(d, use.window, replaced);
  if (replaced != nullptr) SetPlacement(*replaced, kReplaced);
  if (replaced != &d) SetPlacement(d, placements_[d.tick] | uint64_t{1} << d.bit);

  b.used_until = d.UsedUntil();
  b.has_value = true;
  if (d.covered_until > 0) b.forced_until = d.covered_until;
  if (d.writes) {
    b.main_since = kNever;
    if (use.eviction_end == 0) {
      if (!drop_backup_) b.forced_until = kNever;
      if (drop_backup_ && b.bound_by < 0) b.bound_by = cursor_;
    }
  }
  if (use.eviction_end != 0) {
    b.eviction_begin = b.used_until;
    b.eviction_end_ps = -1;
  }
  buffers_.Set(&log_, d.buffer, b);
  if (use.eviction_end != 0) QueueEviction(d, {b.eviction_begin, use.eviction_end});
  for (int32_t n = d.next; n >= 0; n = tables_->decisions[n].next) {
    const Decision& later = tables_->decisions[n];
    if (later.tick >= b.forced_until) break;
    SetPlacement(later, placements_[later.tick] | uint64_t{1} << later.bit);
  }
}

// How long the instruction waits at the current tick for an eviction of the buffer.
int64_t State::EvictionWait(const Decision& d) const {
  const BufferState& b = buffers_[d.buffer];
  if (b.eviction_begin == 0) return 0;
  return std::max<int64_t>(0, b.eviction_end_ps - windows_.now_ps());
}

// The value is about to be read from main memory or overwritten, so an eviction of it that is
// under way must be done first. True if that stalls. The bytes of the residence that it empties are
// given back unless the residence is kept.
bool State::WaitForEviction(const Decision& d, bool keeps_residence) {
  BufferState b = buffers_[d.buffer];
  if (b.eviction_begin == 0) return false;
  Tick done = windows_.ServedBy(b.eviction_end_ps, b.eviction_begin);
  const bool stalls = done == kNever;
  if (stalls) {
    Stall(windows_.WaitUntil(b.eviction_end_ps));
    done = d.tick;
  }
  const GameBuffer& buffer = tables_->buffers[d.buffer];
  if (recorder_ != nullptr) recorder_->SetEvictionEnd(buffer.id, done);
  // Bytes can be given back only ahead of time: those that were booked up to an earlier tick may
  // belong to another residence by now.
  const Tick needed_until = std::max(done, b.used_until);
  if (!keeps_residence && b.resident_end > d.tick && needed_until < b.resident_end) {
    memory_.Release(&log_, b.offset, buffer.size_bytes, needed_until);
    b.resident_end = needed_until;
    if (recorder_ != nullptr) recorder_->SetEnd(buffer.id, needed_until);
  }
  b.eviction_begin = 0;
  b.main_since = done;
  buffers_.Set(&log_, d.buffer, b);
  return stalls;
}

void State::BookTransfer(const Decision& d, const CopyWindow& window, const Decision* replaced) {
  const GameBuffer& buffer = tables_->buffers[d.buffer];
  windows_.Book(&log_, window, buffer.copy_ps);
  Stall(window.stall_ps);
  frames_.back().prefetch = {window.begin, window.end};
  CountUnderWay(false, frames_.back().prefetch, 1);
  if (recorder_ != nullptr) {
    recorder_->Prefetch(buffer.id, window.begin, window.end, window.start_ps,
                        replaced != nullptr ? replaced->tick : -1);
  }
}

void State::QueueEviction(const Decision& d, TickRange window) {
  // Of evictions that begin at the same tick, the one decided first begins first.
  size_t at = upcoming_.size();
  while (at > 0 && buffers_[upcoming_[at - 1]].eviction_begin <= window.begin) --at;
  upcoming_.Splice(&log_, at, 0, absl::MakeConstSpan(&d.buffer, 1));
  frames_.back().eviction = window;
  CountUnderWay(true, window, 1);
  if (recorder_ != nullptr)
    recorder_->Eviction(tables_->buffers[d.buffer].id, window.begin, window.end);
}

// `d` is served from fast memory, which changes its instruction's placement.
void State::SetPlacement(const Decision& d, uint64_t placement) {
  const size_t tick = d.tick;
  const int64_t before = PriceAt(d.tick, placements_[tick]).time_ps;
  placements_.Set(&log_, tick, placement);
  latency_ += (PriceAt(d.tick, placement).time_ps - before) * tables_->instructions[tick].trips;
  if (recorder_ != nullptr) recorder_->Serve(d.access, tables_->buffers[d.buffer].id);
}

void State::Stall(int64_t stall_ps) {
  const int64_t all_trips = stall_ps * tables_->instructions[tick()].trips;
  stall_ += all_trips;
  latency_ += all_trips;
}

size_t State::UnderWayAt(bool eviction, Tick tick) const {
  return tick + (eviction ? under_way_.size() / 2 : 0);
}

void State::CountUnderWay(bool eviction, TickRange window, int change) {
  const size_t end = UnderWayAt(eviction, window.end);
  for (size_t i = UnderWayAt(eviction, window.begin); i < end; ++i)
    under_way_[i] = static_cast<uint8_t>(under_way_[i] + change);
}

// Plays the instructions up to the first decision, from `next` on, that no earlier one forces.
void State::GoToDecision(int32_t next) {
  considered_ = false;
  const auto count = static_cast<int32_t>(tables_->decisions.size());
  while (next < count &&
         tables_->decisions[next].tick < buffers_[tables_->decisions[next].buffer].forced_until) {
    ++next;
  }
  cursor_ = next < count ? next : -1;
  const Tick until = cursor_ < 0 ? game_->program().ticks() : tables_->decisions[next].tick;
  while (tick() < until) AdvanceTick();
}

void State::AdvanceTick() {
  const size_t at = tick();
  windows_.Advance(&log_, PriceAt(tick(), placements_[at]).idle_ps,
                   tables_->starts_segment[at + 1] != 0);
  while (upcoming_.size() > 0) {
    const size_t index = upcoming_[upcoming_.size() - 1];
    const GameBuffer& buffer = tables_->buffers[index];
    BufferState b = buffers_[index];
    if (b.eviction_begin != tick()) break;
    b.eviction_end_ps = windows_.Append(&log_, buffer.copy_ps);
    buffers_.Set(&log_, index, b);
    upcoming_.Splice(&log_, upcoming_.size() - 1, 1, {});
    if (recorder_ != nullptr)
      recorder_->EvictionStarts(buffer.id, b.eviction_end_ps - buffer.copy_ps);
  }
  FetchPins();
}

// The copies that fill pins at this tick, for which the program waits. Their own time is in
// latency_ from the beginning, but not that of the copies before them.
void State::FetchPins() {
  const auto pins = tables_->fetched_pins.size();
  for (size_t k = tables_->FirstFetched(tick()); k < pins && tables_->FetchedAt(k) == tick(); ++k) {
    const int64_t copy_ps = tables_->FetchPs(*game_, k);
    const int64_t end_ps = windows_.Append(&log_, copy_ps);
    if (recorder_ != nullptr) recorder_->PinStarts(k, end_ps - copy_ps);
    Stall(windows_.WaitUntil(end_ps) - copy_ps);
  }
}

int64_t State::settled_ps() const {
  int64_t settled = stall_;
  for (Tick t = 0; t < tick(); ++t) {
    const size_t at = t;
    if (game_->program().instruction(t).plain_copy) continue;
    settled += PriceAt(t, placements_[at]).time_ps * tables_->instructions[at].trips;
  }
  return settled;
}

Plan State::ToPlan() const {
  PlanRecorder recorder(game_->program(), game_->hardware());
  State replay(game_, &recorder);
  for (const Frame& frame : frames_) MG_CHECK(replay.Apply(frame.action).ok());
  return recorder.Finish();
}

std::string State::ToString() const {
  const Program& program = game_->program();
  std::string text = absl::StrFormat(
      "%s on %s, decision %d, latency %.3f us (all main %.3f us), stall %.3f us, %d KiB resident\n",
      program.name(), game_->hardware().name, num_decisions(), static_cast<double>(latency_) * 1e-6,
      static_cast<double>(game_->all_main_ps()) * 1e-6, static_cast<double>(stall_) * 1e-6,
      resident_bytes() >> 10);
  if (IsTerminal()) return absl::StrCat(text, "game over\n");
  const Access& access = program.access(current_access());
  const Instruction& instruction = program.instruction(access.tick);
  const Buffer& buffer = program.buffer(access.buffer);
  constexpr const char* kKinds[] = {"reads", "updates", "writes", "is a loop that carries"};
  absl::StrAppendFormat(&text, "tick %d: %s (%s) %s %s, %d KiB\nlegal:", access.tick,
                        instruction.name, instruction.opcode,
                        kKinds[static_cast<size_t>(access.kind)], buffer.name,
                        buffer.size_bytes >> 10);
  for (const int action : legal_actions())
    absl::StrAppend(&text, " ", ActionName(static_cast<Action>(action)));
  return absl::StrCat(text, "\n");
}

}  // namespace mallocgame
