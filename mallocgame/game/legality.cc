// What is allowed: for the current decision, whether each action is legal, and what exactly it
// would do. State::Apply then does just that. docs/rules.md states the rules in words.
#include <algorithm>

#include "mallocgame/game/state.h"
#include "mallocgame/game/tables.h"

namespace mallocgame {

uint8_t State::legal_mask() const {
  if (IsTerminal()) return 0;
  if (!considered_) Consider();
  return mask_;
}

std::vector<Action> State::LegalActions() const {
  std::vector<Action> actions;
  for (int a = 0; a < kActions; ++a) {
    if (IsLegal(static_cast<Action>(a))) actions.push_back(static_cast<Action>(a));
  }
  return actions;
}

void State::Consider() const {
  const Decision& d = current();
  OptionOf(Action::kDrop).legal = true;
  Option& copy = OptionOf(Action::kCopy);
  Option& early = OptionOf(Action::kCopyEarly);
  Option& no_copy = OptionOf(Action::kNoCopy);
  copy = early = no_copy = Option{};
  if (!d.forbidden) {
    copy = ConsiderCopy(d);
    no_copy = ConsiderNoCopy(d);
    if (d.kind == AccessKind::kRead && !game_->options().paper_actions)
      early = ConsiderCopyEarly(d, copy);
  }
  mask_ = 0;
  for (size_t a = 0; a < options_.size(); ++a)
    mask_ |= static_cast<uint8_t>(options_[a].legal << a);
  if (d.required && mask_ != 1) mask_ &= static_cast<uint8_t>(~1);
  considered_ = true;
}

State::Option State::ConsiderCopy(const Decision& d) const {
  const BufferState& b = buffers_[d.buffer];
  const int64_t copy_ps = tables_->buffers[d.buffer].copy_ps;
  Option option;
  if (d.inside_forbidden) return option;
  Tick end = d.kind == AccessKind::kLoopEntry ? d.loop_exit : d.tick + 1;
  if (d.writes) {
    option.write_back_end = CertainEnd(end, copy_ps);
    if (option.write_back_end == 0 || !HasRoom(true, end, option.write_back_end)) return option;
    end = option.write_back_end;
  }
  if (d.kind == AccessKind::kWrite ? ReplacedWrite(d) == nullptr : !b.has_value) {
    PlaceNew(d, d.tick, end, &option);
    return option;
  }
  // The old value of what is updated need not come from main memory if it is still here.
  if (d.writes && d.kind != AccessKind::kWrite) Extend(d, end, &option);
  if (!option.legal) PlaceTransfer(d, end, &option);
  return option;
}

State::Option State::ConsiderNoCopy(const Decision& d) const {
  const BufferState& b = buffers_[d.buffer];
  Option option;
  if (d.writes ? d.rest_forbidden : d.inside_forbidden) return option;
  const Tick end = d.writes                           ? d.pin_end
                   : d.kind == AccessKind::kLoopEntry ? d.loop_exit
                                                      : d.tick + 1;
  if (end == kNever) return option;
  if (d.kind == AccessKind::kWrite) {
    if (ReplacedWrite(d) != nullptr) {
      PlaceTransfer(d, end, &option);
    } else {
      PlaceNew(d, d.tick, end, &option);
    }
    return option;
  }
  if (!b.has_value) {
    PlaceNew(d, d.tick, end, &option);
    return option;
  }
  Extend(d, end, &option);
  if (!option.legal && ReplacedWrite(d) != nullptr) PlaceTransfer(d, end, &option);
  if (!option.legal && d.first && tables_->buffers[d.buffer].preloadable &&
      preloads_ < game_->hardware().max_preloads) {
    PlaceNew(d, 0, end, &option);
    option.preload = option.legal;
  }
  return option;
}

// The earliest window that has space, where that is another one than Copy's.
State::Option State::ConsiderCopyEarly(const Decision& d, const Option& copy) const {
  const GameBuffer& buffer = tables_->buffers[d.buffer];
  const Tick end = d.tick + 1;
  Option option;
  if (!copy.legal) return option;
  Tick available = MainSince(d);
  for (bool moved = false;; moved = true) {
    if (!windows_.FindEarliest(buffer.copy_ps, available, &option.window) ||
        option.window.begin >= copy.window.begin)
      return option;
    if (HasRoom(false, option.window.begin, option.window.end))
      PlaceNew(d, option.window.begin, end, &option);
    option.transfer = option.legal;
    if (option.legal || moved) return option;
    available = std::max(
        available, memory_.EarliestFree(buffer.size_bytes, tables_->ReservedBytes(available, end)));
  }
}

// A prefetch and a residence from its begin to `end`: in the latest window that hides it; or, where
// there is none or it has no space, behind the last booked copy, as soon as there is space.
void State::PlaceTransfer(const Decision& d, Tick end, Option* option) const {
  const int64_t copy_ps = tables_->buffers[d.buffer].copy_ps;
  const Tick available = MainSince(d);
  option->transfer = true;
  if (windows_.FindLatest(copy_ps, available, &option->window) &&
      HasRoom(false, option->window.begin, option->window.end)) {
    PlaceNew(d, option->window.begin, end, option);
    if (option->legal) return;
  }
  const Tick free_from = memory_.EarliestFree(tables_->buffers[d.buffer].size_bytes,
                                              tables_->ReservedBytes(available, end));
  if (free_from > d.tick) return;
  option->window = windows_.FindBehind(copy_ps, std::max(available, free_from));
  if (HasRoom(false, option->window.begin, option->window.end))
    PlaceNew(d, option->window.begin, end, option);
}

void State::PlaceNew(const Decision& d, Tick begin, Tick end, Option* option) const {
  option->offset = memory_.Find(tables_->buffers[d.buffer].size_bytes, begin,
                                tables_->ReservedBytes(begin, end));
  option->begin = begin;
  option->end = end;
  option->scope_end = begin == 0 ? game_->program().scope_end(0) : d.scope_end;
  option->legal = option->offset >= 0 && end <= option->scope_end;
}

// Keeps the residence that served the previous access until `end`, at the same offset.
void State::Extend(const Decision& d, Tick end, Option* option) const {
  const BufferState& b = buffers_[d.buffer];
  if (b.resident_end == 0) return;
  option->end = std::max(end, b.resident_end);
  const int64_t size = tables_->buffers[d.buffer].size_bytes;
  option->legal = option->extend = option->end <= b.scope_end &&
                                   memory_.IsFree(b.offset, size, b.resident_end) &&
                                   tables_->ReservedBytes(b.resident_end, option->end) <= b.offset;
}

bool State::HasRoom(bool write_back, Tick begin, Tick end) const {
  const int32_t limit = write_back ? game_->hardware().max_outstanding_write_backs
                                   : game_->hardware().max_outstanding_prefetches;
  const uint8_t* const counts = under_way_.data();
  return std::all_of(counts + UnderWayAt(write_back, begin), counts + UnderWayAt(write_back, end),
                     [&](uint8_t count) { return count < limit; });
}

// Since when the bytes a prefetch takes are in main memory; now, if a write-back must be waited
// for.
Tick State::MainSince(const Decision& d) const {
  const Decision* replaced = ReplacedWrite(d);
  const int32_t of = replaced != nullptr ? tables_->decisions[replaced->source].buffer : d.buffer;
  const BufferState& b = buffers_[of];
  if (b.write_back_begin == 0) return b.main_since;
  const Tick done = windows_.ServedBy(b.write_back_end_ps, b.write_back_begin);
  return done < 0 ? d.tick : done;
}

// The first tick before which a write-back that begins at `begin` is done whatever is decided from
// now on, copies queued before it included; 0: not certain within its segment.
Tick State::CertainEnd(Tick begin, int64_t length_ps) const {
  const Program& program = game_->program();
  if (begin >= program.ticks()) return 0;
  const bool next_tick = begin == tick() + 1;
  if (next_tick && tables_->starts_segment[begin] != 0) return 0;
  const std::vector<int64_t>& certain = tables_->certain_idle_before;
  int64_t ahead = 0;
  for (size_t i = upcoming_.size(); i-- > 0;) {
    const size_t buffer = upcoming_[i];
    if (buffers_[buffer].write_back_begin == begin) ahead += tables_->buffers[buffer].copy_ps;
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

// The plain copy's write that a transfer for `d` replaces: `d` itself, or the write before this
// update. Both ends of the copy must be in main memory so far; null: none.
const Decision* State::ReplacedWrite(const Decision& d) const {
  const Decision* write = d.source >= 0       ? &d
                          : d.plain_copy >= 0 ? &tables_->decisions[d.plain_copy]
                                              : nullptr;
  return write != nullptr && !write->forbidden && placements_[write->tick] == 0 ? write : nullptr;
}

}  // namespace mallocgame
