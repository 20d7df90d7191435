// What is allowed: whether each action is legal at the current decision, and what exactly it would
// do. State::Apply then does just that. docs/rules.md states the rules in words.
#include <algorithm>
#include <optional>

#include "mallocgame/game/tables.h"
#include "mallocgame/game/time/state.h"

namespace mallocgame {

uint8_t State::LegalBits() const {
  const uint8_t feasible = FeasibleBits();
  if (penalty_ == 0 || IsTerminal()) return feasible;
  return static_cast<uint8_t>((1 << game_->num_actions()) - 1);
}

uint8_t State::FeasibleBits() const {
  if (IsTerminal()) return 0;
  if (!considered_) Consider();
  return mask_;
}

void State::Consider() const {
  const Decision& d = current();
  EffectOf(Action::kDrop).legal = true;
  ActionEffect& copy = EffectOf(Action::kCopy);
  ActionEffect& early = EffectOf(Action::kCopyEarly);
  ActionEffect& no_copy = EffectOf(Action::kNoCopy);
  copy = early = no_copy = ActionEffect{};
  if (buffers_[d.buffer].bound_by >= 0) {
    EffectOf(Action::kDrop).legal = false;
    Extend(d, KeptUntil(d), &no_copy);
  } else if (!d.forbidden && !(drop_backup_ && trail_.dropped[cursor_])) {
    copy = ConsiderCopy(d);
    no_copy = ConsiderNoCopy(d);
    if (d.kind == AccessKind::kRead && !d.writes && game_->num_actions() == kActions)
      early = ConsiderCopyEarly(d, copy);
  }
  mask_ = 0;
  for (size_t a = 0; a < effects_.size(); ++a)
    mask_ |= static_cast<uint8_t>(effects_[a].legal << a);
  considered_ = true;
}

ActionEffect State::ConsiderCopy(const Decision& d) const {
  const BufferState& b = buffers_[d.buffer];
  const int64_t copy_ps = tables_->buffers[d.buffer].copy_ps;
  ActionEffect effect;
  if (d.inside_forbidden) return effect;
  // Evictions that later decisions put in front would come between a transfer's end and this one.
  if (d.holds && d.writes) return effect;
  Tick end = d.UsedUntil();
  if (d.writes) {
    effect.eviction_end = CertainEnd(end, copy_ps);
    if (effect.eviction_end == 0 || !HasRoom(true, end, effect.eviction_end)) return effect;
    end = effect.eviction_end;
  }
  if (d.kind == AccessKind::kWrite ? ReplacedWrite(d) == nullptr : !b.has_value) {
    if (!d.replaced_only) PlaceNew(d, d.tick, end, &effect);
    return effect;
  }
  // The old value of what is updated need not come from main memory if it is still here.
  if (d.writes && d.kind != AccessKind::kWrite) Extend(d, end, &effect);
  if (!effect.legal) PlaceTransfer(d, end, &effect);
  return effect;
}

ActionEffect State::ConsiderNoCopy(const Decision& d) const {
  const BufferState& b = buffers_[d.buffer];
  ActionEffect effect;
  if (d.writes ? d.rest_forbidden : d.inside_forbidden) return effect;
  const Tick end = KeptUntil(d);
  if (end == kNever) return effect;
  if (d.kind == AccessKind::kWrite) {
    if (ReplacedWrite(d) != nullptr) {
      PlaceTransfer(d, end, &effect);
    } else if (!d.replaced_only) {
      PlaceNew(d, d.tick, end, &effect);
    }
    return effect;
  }
  if (!b.has_value) {
    PlaceNew(d, d.tick, end, &effect);
    return effect;
  }
  Extend(d, end, &effect);
  if (!effect.legal && ReplacedWrite(d) != nullptr) PlaceTransfer(d, end, &effect);
  if (!effect.legal && d.first && tables_->buffers[d.buffer].preloadable &&
      preloads_ < game_->hardware().max_preloads) {
    PlaceNew(d, 0, end, &effect);
    effect.preload = effect.legal;
  }
  return effect;
}

// Until when NoCopy keeps a residence: with drop_backup no longer than this member of the group
// needs it, but behind the last one as long as a group that is decided at once.
Tick State::KeptUntil(const Decision& d) const {
  const int32_t bound_by = buffers_[d.buffer].bound_by;
  if (!d.writes && bound_by < 0) return d.UsedUntil();
  const Tick end = bound_by < 0 ? d.pin_end : tables_->decisions[bound_by].pin_end;
  if (!drop_backup_ || end == kNever) return end;
  int32_t next = d.next;
  while (next >= 0 && tables_->decisions[next].tick < d.covered_until)
    next = tables_->decisions[next].next;
  return next < 0 ? end : d.UsedUntil();
}

const Decision* State::ReplacedWrite(const Decision& d) const {
  return tables_->ReplacedWrite(d, placements_.items());
}

// Books the earliest window in which fast memory has room, if that is another one than Copy's.
ActionEffect State::ConsiderCopyEarly(const Decision& d, const ActionEffect& copy) const {
  const GameBuffer& buffer = tables_->buffers[d.buffer];
  const Tick end = d.UsedUntil();
  ActionEffect effect;
  if (!copy.legal) return effect;
  Tick available = MainSince(d);
  for (bool moved = false;; moved = true) {
    const std::optional<CopyWindow> window = windows_.FindEarliest(buffer.copy_ps, available);
    if (!window.has_value() || window->begin >= copy.window.begin) return effect;
    if (HasRoom(false, window->begin, window->end)) PlaceNew(d, window->begin, end, &effect);
    if (effect.legal) {
      effect.transfer = true;
      effect.window = *window;
    }
    if (effect.legal || moved) return effect;
    available = std::max(
        available, memory_.EarliestFree(buffer.size_bytes, tables_->reserved.Most(available, end)));
  }
}

// A prefetch and a residence from its start to `end`: in the latest window that hides the copy; or,
// if there is none or fast memory has no room in it, behind the last booked copy, as soon as there
// is room.
void State::PlaceTransfer(const Decision& d, Tick end, ActionEffect* effect) const {
  const int64_t copy_ps = tables_->buffers[d.buffer].copy_ps;
  const Tick available = MainSince(d);
  effect->transfer = true;
  if (const std::optional<CopyWindow> window = windows_.FindLatest(copy_ps, available);
      window.has_value() && HasRoom(false, window->begin, window->end)) {
    effect->window = *window;
    PlaceNew(d, window->begin, end, effect);
    if (effect->legal) return;
  }
  const Tick free_from = memory_.EarliestFree(tables_->buffers[d.buffer].size_bytes,
                                              tables_->reserved.Most(available, end));
  if (free_from > d.tick) return;
  effect->window = windows_.FindBehind(copy_ps, std::max(available, free_from));
  if (HasRoom(false, effect->window.begin, effect->window.end))
    PlaceNew(d, effect->window.begin, end, effect);
}

void State::PlaceNew(const Decision& d, Tick begin, Tick end, ActionEffect* effect) const {
  effect->offset = memory_.Find(tables_->buffers[d.buffer].size_bytes, begin,
                                tables_->reserved.Most(begin, end));
  effect->begin = begin;
  effect->end = end;
  effect->scope_end = begin == 0 ? game_->program().scope_end(0) : d.scope_end;
  effect->legal = effect->offset >= 0 && end <= effect->scope_end;
}

// Keeps the residence that served the previous access until `end`, at the same offset.
void State::Extend(const Decision& d, Tick end, ActionEffect* effect) const {
  const BufferState& b = buffers_[d.buffer];
  if (b.resident_end == 0) return;
  effect->begin = b.resident_end;
  effect->end = std::max(end, b.resident_end);
  const int64_t size = tables_->buffers[d.buffer].size_bytes;
  effect->legal = effect->extend = effect->end <= b.scope_end &&
                                   memory_.IsFree(b.offset, size, b.resident_end) &&
                                   tables_->reserved.Most(b.resident_end, effect->end) <= b.offset;
}

bool State::HasRoom(bool eviction, Tick begin, Tick end) const {
  const int32_t limit = eviction ? game_->hardware().max_outstanding_evictions
                                 : game_->hardware().max_outstanding_prefetches;
  const uint8_t* const counts = under_way_.data();
  return std::all_of(counts + UnderWayAt(eviction, begin), counts + UnderWayAt(eviction, end),
                     [&](uint8_t count) { return count < limit; });
}

// The tick from which the bytes that a prefetch for `d` takes are in main memory; the tick of `d`
// if their eviction must be waited for.
Tick State::MainSince(const Decision& d) const {
  const Decision* replaced = ReplacedWrite(d);
  const int32_t of = replaced != nullptr ? tables_->decisions[replaced->source].buffer : d.buffer;
  const BufferState& b = buffers_[of];
  if (b.eviction_begin == 0) return b.main_since;
  const Tick done = windows_.ServedBy(b.eviction_end_ps, b.eviction_begin);
  return std::min(done, d.tick);
}

// The first tick before which an eviction that begins at `begin` is done, together with the copies
// queued before it, whatever is decided from now on; 0 if that is not certain within its segment.
Tick State::CertainEnd(Tick begin, int64_t length_ps) const {
  const Program& program = game_->program();
  if (begin >= program.ticks()) return 0;
  const bool next_tick = begin == tick() + 1;
  if (next_tick && tables_->starts_segment[begin] != 0) return 0;
  const std::vector<int64_t>& certain = tables_->certain_idle_before;
  int64_t ahead = 0;
  for (size_t i = upcoming_.size(); i-- > 0;) {
    const size_t buffer = upcoming_[i];
    if (buffers_[buffer].eviction_begin == begin) ahead += tables_->buffers[buffer].copy_ps;
  }
  int64_t start = certain[begin];
  if (next_tick) {
    start = std::max(start, certain[tick()] + windows_.booked_until_ps() - windows_.now_ps());
  }
  const auto first = certain.begin() + begin,
             last = certain.begin() + program.segment_end(begin) + 1;
  const auto done = std::lower_bound(first, last, start + ahead + length_ps);
  return done == last ? 0 : static_cast<Tick>(done - certain.begin());
}

}  // namespace mallocgame
