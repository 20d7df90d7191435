// Walks through the events of one buffer at a time, in time order. A loop is walked twice, because
// every further pass finds what the second one finds. For if the loop writes the buffer, where the
// newest value is at the end of a pass does not depend on where it was at its start. And if it does
// not, a pass only adds to the memories that hold the newest value.
#include "mallocgame/plan/value_rules.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "mallocgame/base/error.h"

namespace mallocgame {
namespace {

// Within a tick events happen in this order. A copy that is done before tick `end` counts as done
// after the instruction at `end` - 1: nothing happens in between, and that tick is in the same
// region as the copy's begin. An empty window is over as soon as it begins.
enum class EventKind : uint8_t {
  kResidenceBegin,
  kCopyBegin,
  kSourceBegin,
  kAccess,
  kSourceEnd,
  kCopyEnd
};

struct Event {
  BufferId buffer;
  Tick tick = 0;
  uint8_t phase = 0;
  int32_t sequence = 0;  // for a copy: its index in the plan
  EventKind kind = EventKind::kAccess;
  int32_t index = 0;  // of the residence, copy or access

  auto Key() const { return std::tuple(buffer, tick, phase, sequence, kind); }
};

std::vector<Event> CollectEvents(const Program& program, const Plan& plan) {
  std::vector<Event> events;
  events.reserve(program.accesses().size() + plan.residences.size() + 2 * plan.copies.size());
  const auto add = [&events](BufferId buffer, Tick tick, uint8_t phase, int32_t sequence,
                             EventKind kind, size_t index) {
    events.push_back({buffer, tick, phase, sequence, kind, static_cast<int32_t>(index)});
  };
  for (size_t r = 0; r < plan.residences.size(); ++r) {
    const Residence& residence = plan.residences[r];
    add(residence.buffer, residence.begin, 0, 0, EventKind::kResidenceBegin, r);
  }
  for (size_t i = 0; i < plan.copies.size(); ++i) {
    const Copy& c = plan.copies[i];
    const auto place = static_cast<int32_t>(i);
    const auto add_both = [&](BufferId buffer, EventKind begin, EventKind end) {
      const bool empty = c.begin == c.end;
      add(buffer, c.begin, 1, place, begin, i);
      add(buffer, empty ? c.begin : c.end - 1, empty ? 1 : 3, place, end, i);
    };
    add_both(plan.residences[c.residence.index()].buffer, EventKind::kCopyBegin,
             EventKind::kCopyEnd);
    if (c.replaces >= 0) {
      const Instruction& copy = program.instruction(c.replaces);
      add_both(program.accesses()[copy.first_access].buffer, EventKind::kSourceBegin,
               EventKind::kSourceEnd);
    }
  }
  for (size_t a = 0; a < program.accesses().size(); ++a) {
    add(program.accesses()[a].buffer, program.accesses()[a].tick, 2, 0, EventKind::kAccess, a);
  }
  std::sort(events.begin(), events.end(),
            [](const Event& a, const Event& b) { return a.Key() < b.Key(); });
  return events;
}

class ValueWalk {
 public:
  ValueWalk(const Program& program, const Plan& plan)
      : program_(program), plan_(plan), residences_(plan.residences.size()),
        promised_(plan.residences.size(), kNothing), replaced_(program.instructions().size(), -1),
        source_version_(program.instructions().size(), kNothing) {
    for (const Copy& c : plan.copies) {
      if (c.replaces >= 0) replaced_[c.replaces] = c.residence.value;
    }
    innermost_loop_.assign(program.regions().size(), -1);
    for (size_t i = 0; i < program.regions().size(); ++i) {
      int32_t r = static_cast<int32_t>(i);
      while (r >= 0 && region(r).loop < 0) r = region(r).parent;
      innermost_loop_[i] = r < 0 ? -1 : region(r).loop;
    }
  }

  Verdict Run() {
    const std::vector<Event> events = CollectEvents(program_, plan_);
    for (size_t i = 0; i < events.size() && verdict_.ok();) {
      size_t end = i;
      while (end < events.size() && events[end].buffer == events[i].buffer) ++end;
      Start(events[i].buffer);
      Walk(absl::MakeConstSpan(events).subspan(i, end - i), -1);
      if (verdict_.ok() && buffer().is_output && !valueless_ && main_ != newest_) {
        Break(Rule::kMainValue,
              "at the end of the program: the value of the output is not in main memory");
      }
      i = end;
    }
    return verdict_;
  }

 private:
  // The versions of a buffer's value are numbered; kNothing is older than all.
  static constexpr int64_t kNothing = -1;

  struct Held {
    int64_t version = kNothing;   // the version that the residence holds
    int64_t arriving = kNothing;  // the version that its prefetches carry
    int32_t filling = 0;          // the number of its prefetches that are not done
  };

  const Buffer& buffer() const { return program_.buffer(buffer_); }
  const Region& region(int32_t index) const { return program_.regions()[index]; }

  void Break(Rule rule, const std::string& what) {
    if (verdict_.ok()) verdict_ = {rule, absl::StrCat("buffer '", buffer().name, "' ", what)};
  }
  std::string At(Tick tick) const {
    return tick < program_.ticks()
               ? absl::StrCat("at tick ", tick, " ('", program_.instruction(tick).name, "'): ")
               : absl::StrCat("at tick ", tick, " (the end): ");
  }
  std::string Name(const Copy& c) const {
    return absl::StrCat(c.kind == CopyKind::kPrefetch ? "prefetch [" : "eviction [", c.begin, ", ",
                        c.end, ") ");
  }

  void Start(BufferId id) {
    buffer_ = id;
    evictions_ = sources_ = 0;
    Restart();
  }

  // Sets the buffer to what it is before its first access. If it lives only inside a loop, that
  // happens again at each pass.
  void Restart() {
    ++newest_;
    const BufferOrigin origin = buffer().origin;
    valueless_ = origin == BufferOrigin::kInstruction || origin == BufferOrigin::kUndefined;
    main_ = valueless_ ? kNothing : newest_;
  }

  bool MainHolds() const {
    return main_ == newest_ || (valueless_ && buffer().origin == BufferOrigin::kUndefined);
  }
  bool Holds(const Held& held) const {
    return held.filling == 0 &&
           (held.version == newest_ || (valueless_ && buffer().origin == BufferOrigin::kUndefined));
  }

  int32_t LoopAt(Tick tick) const {
    return tick < program_.ticks() ? innermost_loop_[program_.instruction(tick).region] : -1;
  }
  const Loop& loop(int32_t index) const { return program_.loops()[index]; }

  // Walks through events of one buffer that lie in the loop `around`, -1 for none, or deeper.
  void Walk(absl::Span<const Event> events, int32_t around) {
    for (size_t i = 0; i < events.size() && verdict_.ok();) {
      int32_t inner = LoopAt(events[i].tick);
      if (inner == around) {
        Handle(events[i++]);
        continue;
      }
      while (LoopAt(loop(inner).entry) != around) inner = LoopAt(loop(inner).entry);
      size_t end = i;
      while (end < events.size() && events[end].tick < loop(inner).exit) ++end;
      WalkLoop(events.subspan(i, end - i), inner);
      i = end;
    }
  }

  void WalkLoop(absl::Span<const Event> events, int32_t index) {
    const Loop& l = loop(index);
    const auto accesses = program_.accesses_of(buffer_);
    const auto first =
        std::lower_bound(accesses.begin(), accesses.end(), l.entry,
                         [this](AccessId a, Tick t) { return program_.access(a).tick < t; });
    const bool carried = first != accesses.end() && program_.access(*first).tick == l.entry;
    const bool local = !carried && first != accesses.end() && program_.access(*first).tick < l.exit;
    const bool in_main = carried && !plan_.served_by[first->index()].valid();
    const Tick condition_end = ConditionEnd(l);
    const auto split = std::find_if(events.begin(), events.end(),
                                    [&](const Event& e) { return e.tick >= condition_end; });
    const size_t head = split - events.begin();
    for (int pass = 0; pass < 2; ++pass) {
      if (local) Restart();
      Walk(events.subspan(0, head), index);
      CheckBoundary(in_main, condition_end, "condition");
      Walk(events.subspan(head), index);
      CheckBoundary(in_main, l.exit, "body");
    }
  }

  Tick ConditionEnd(const Loop& l) const {
    // The tick after the entry may lie in a region inside the condition.
    int32_t r = program_.instruction(l.entry + 1).region;
    while (region(r).parent != program_.instruction(l.entry).region) r = region(r).parent;
    return region(r).end;
  }

  void CheckBoundary(bool in_main, Tick tick, const char* what) {
    if (in_main && !MainHolds()) {
      Break(Rule::kMainValue,
            absl::StrCat(At(tick), "at the end of the loop's ", what,
                         " the value is not in main memory, where the next trip looks for it"));
    }
  }

  void Handle(const Event& event) {
    switch (event.kind) {
      case EventKind::kResidenceBegin:
        residences_[event.index] = Held();
        residences_[event.index].version = promised_[event.index];
        break;
      case EventKind::kCopyBegin:
      case EventKind::kCopyEnd: {
        const Copy& c = plan_.copies[event.index];
        Held& held = residences_[c.residence.index()];
        const bool begin = event.kind == EventKind::kCopyBegin;
        if (c.kind == CopyKind::kPrefetch) {
          begin ? BeginPrefetch(c, held) : EndPrefetch(c, held);
        } else {
          begin ? BeginEviction(c, held) : EndEviction(c);
        }
        break;
      }
      case EventKind::kSourceBegin: BeginSource(plan_.copies[event.index]); break;
      case EventKind::kSourceEnd: --sources_; break;
      case EventKind::kAccess: HandleAccess(AccessId(event.index)); break;
    }
  }

  void BeginPrefetch(const Copy& c, Held& held) {
    ++held.filling;
    // The bytes come from another buffer; they become this one's value at the replaced tick.
    if (c.replaces >= 0) return;
    const bool first = held.filling == 1 && held.version == kNothing && held.arriving == kNothing;
    ++sources_;
    if (!MainHolds()) {
      Break(Rule::kMainValue,
            absl::StrCat(At(c.begin), Name(c), "finds no newest value in main memory"));
    }
    // Slices of different versions do not make a value.
    held.arriving = first || held.arriving == newest_ ? newest_ : kNothing;
  }

  void EndPrefetch(const Copy& c, Held& held) {
    --held.filling;
    if (c.replaces >= 0) return;
    --sources_;
    if (held.filling == 0) held.version = held.arriving;
  }

  void BeginSource(const Copy& c) {
    ++sources_;
    int64_t& version = source_version_[c.replaces];
    const Tick residence_begin = plan_.residences[c.residence.index()].begin;
    const bool first = c.begin == residence_begin && residence_begin <= c.replaces;
    if (!MainHolds() || (!first && version != newest_)) {
      Break(Rule::kMainValue, absl::StrCat(At(c.begin), Name(c), "in place of '",
                                           program_.instruction(c.replaces).name,
                                           "' does not find its operand's value in main memory"));
    }
    version = newest_;
  }

  void BeginEviction(const Copy& c, const Held& held) {
    ++evictions_;
    if (!Holds(held) || valueless_) {
      Break(Rule::kCopy, absl::StrCat(At(c.begin), Name(c),
                                      "of a residence that does not hold the newest value"));
    }
    if (written_version_ != newest_) {
      written_parts_.clear();
      written_bytes_ = 0;
      written_version_ = newest_;
    }
  }

  void EndEviction(const Copy& c) {
    --evictions_;
    if (main_ == newest_) return;  // main memory has this version already
    const auto next = written_parts_.lower_bound(c.part_begin);
    const bool overlaps =
        (next != written_parts_.end() && next->first < c.part_end) ||
        (next != written_parts_.begin() && std::prev(next)->second > c.part_begin);
    const int64_t bytes = c.part_end - c.part_begin;
    if (overlaps) {
      Break(Rule::kCopy, absl::StrCat(At(c.end), Name(c), "of bytes [", c.part_begin, ", ",
                                      c.part_end, "), some of which were evicted before"));
    }
    written_parts_[c.part_begin] = c.part_end;
    written_bytes_ += bytes;
    if (written_bytes_ == buffer().size_bytes) main_ = newest_;
  }

  void HandleAccess(AccessId id) {
    const Access& a = program_.access(id);
    const Instruction& i = program_.instruction(a.tick);
    const ResidenceId place = plan_.served_by[id.index()];
    const int32_t replacing = replaced_[a.tick];
    if (replacing >= 0 && program_.slot(id) == 0) return ReadBySource(a, replacing);
    const bool fills = replacing >= 0 && place.value == replacing;
    if (place.valid() && !fills && residences_[place.index()].filling > 0) {
      return Break(Rule::kServed, absl::StrCat(At(a.tick), "is served by residence ", place.value,
                                               ", whose prefetch is not done"));
    }
    if (a.kind != AccessKind::kWrite) CheckRead(a, place);
    if (a.kind == AccessKind::kWrite || a.kind == AccessKind::kUpdate) Write(a, i, place);
  }

  // The read of a replaced plain copy is done by the copy that replaces it, before or after this
  // tick; it must read the value of this tick.
  void ReadBySource(const Access& a, int32_t residence) {
    int64_t& version = source_version_[a.tick];
    if (plan_.residences[residence].begin > a.tick) version = newest_;
    if (version != newest_) {
      Break(Rule::kCopy,
            absl::StrCat(At(a.tick), "is written between the start of the copy in place of '",
                         program_.instruction(a.tick).name, "' and this tick"));
    }
  }

  void CheckRead(const Access& a, ResidenceId place) {
    const char* const what = a.kind == AccessKind::kLoopEntry ? "enters the loop" : "is read";
    if (!place.valid()) {
      if (!MainHolds()) {
        Break(Rule::kMainValue,
              absl::StrCat(At(a.tick), what, " from main memory, where its newest value is not",
                           evictions_ > 0 ? " yet: an eviction is on its way" : ""));
      }
    } else if (!Holds(residences_[place.index()])) {
      const Residence& r = plan_.residences[place.index()];
      Break(Rule::kServed,
            absl::StrCat(At(a.tick), what, " from residence ", place.value, " [", r.begin, ", ",
                         r.end, "), which does not hold its newest value"));
    }
  }

  void Write(const Access& a, const Instruction& i, ResidenceId place) {
    if (evictions_ > 0) {
      Break(Rule::kCopy, absl::StrCat(At(a.tick), "is written by '", i.name,
                                      "' while an eviction is on its way"));
    }
    if (!place.valid() && sources_ > 0) {
      Break(Rule::kCopy, absl::StrCat(At(a.tick), "is written in main memory by '", i.name,
                                      "' while a copy reads it there"));
    }
    ++newest_;
    valueless_ = false;
    if (place.valid()) {
      residences_[place.index()].version = newest_;
      if (plan_.residences[place.index()].begin > a.tick) promised_[place.index()] = newest_;
    } else {
      main_ = newest_;
    }
  }

  const Program& program_;
  const Plan& plan_;
  std::vector<Held> residences_;
  // For each residence: the version that a plain copy wrote before the residence began.
  std::vector<int64_t> promised_;
  // For each tick: the residence whose prefetch replaces the instruction, -1 if there is none, and
  // the version that this prefetch reads.
  std::vector<int32_t> replaced_;
  std::vector<int64_t> source_version_;
  std::vector<int32_t> innermost_loop_;  // for each region; -1 if there is none
  Verdict verdict_;

  BufferId buffer_;
  int64_t newest_ = 0;
  int64_t main_ = kNothing;  // the version in main memory
  bool valueless_ = false;   // nothing was written yet
  int32_t evictions_ = 0;    // the number under way
  int32_t sources_ = 0;      // the number of copies under way that read it in main memory
  int64_t written_version_ = kNothing;
  // The slices of this version that are back in main memory, from begin to end.
  std::map<int64_t, int64_t> written_parts_;
  int64_t written_bytes_ = 0;
};

}  // namespace

Verdict CheckValues(const Program& program, const Plan& plan) {
  return ValueWalk(program, plan).Run();
}

}  // namespace mallocgame
