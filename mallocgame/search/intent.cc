#include "mallocgame/search/intent.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "mallocgame/game/priority/priority_state.h"
#include "mallocgame/game/state.h"

namespace mallocgame {
namespace {

// By Action.
constexpr std::array<Mode, kActions> kModeOfAction = {Mode::kSkip, Mode::kLate, Mode::kKeep,
                                                      Mode::kEarly};

bool IsPriorityGame(const Game& game) { return game.options().kind == GameKind::kPriority; }

bool Writes(const Access& access) {
  return access.kind == AccessKind::kWrite || access.kind == AccessKind::kUpdate ||
         access.writes_in_loop;
}

// Answers what a plan does with one segment after the other.
class PlanReader {
 public:
  PlanReader(const Program& program, const Plan& plan)
      : program_(program), plan_(plan), preloaded_(plan.residences.size()),
        written_back_(plan.residences.size()) {
    for (const Copy& copy : plan.copies) {
      if (copy.preload) preloaded_[copy.residence.index()] = true;
      if (copy.kind == CopyKind::kEviction) written_back_[copy.residence.index()] = true;
    }
  }

  ResidenceId residence(AccessId access) const { return plan_.served_by[access.index()]; }
  Tick begin(AccessId access) const { return plan_.residences[residence(access).index()].begin; }
  bool preloaded(ResidenceId r) const { return preloaded_[r.index()]; }
  bool written_back(ResidenceId r) const { return written_back_[r.index()]; }

  // A segment that residence `r` serves; none: main memory. Its prefetch is late if the bytes are
  // reserved from tick `late_from` on or later.
  Segment Read(AccessId first, AccessId last, ResidenceId r, Tick late_from) const {
    if (!r.valid()) return {first, last, Mode::kSkip};
    const Residence& residence = plan_.residences[r.index()];
    const bool starts = program_.accesses_of(program_.access(first).buffer)[0] == first;
    const Mode mode = starts && preloaded(r)        ? Mode::kPreload
                      : residence.begin < late_from ? Mode::kEarly
                                                    : Mode::kLate;
    return {first, last, mode};
  }

  // The same for one access, which the residence of the buffer's previous access may serve too.
  Segment Read(AccessId access, Tick late_from) const {
    const ResidenceId r = residence(access);
    Segment segment = Read(access, access, r, late_from);
    if (!r.valid()) return segment;
    const auto accesses = program_.accesses_of(program_.access(access).buffer);
    const auto here = std::lower_bound(accesses.begin(), accesses.end(), access);
    if (here != accesses.begin() && residence(*std::prev(here)) == r) segment.mode = Mode::kKeep;
    return segment;
  }

 private:
  const Program& program_;
  const Plan& plan_;
  std::vector<bool> preloaded_, written_back_;
};

Segment ReadDecision(const Program& program, const PlanReader& reader, AccessId id) {
  const Access& access = program.access(id);
  Segment segment = reader.Read(id, access.kind == AccessKind::kLoopEntry ? 0 : kNever);
  if (segment.mode == Mode::kSkip) return segment;
  // The residence of a plain copy's result may begin later than the copy; it is decided then.
  if (reader.begin(id) > access.tick) {
    segment.mode = Mode::kSkip;
  } else if (Writes(access)) {
    segment.mode = reader.written_back(reader.residence(id)) ? Mode::kLate : Mode::kKeep;
  }
  return segment;
}

Segment ReadRun(const PriorityTables& tables, const PlanReader& reader, const Run& run) {
  const auto access = [&](int32_t i) { return tables.arrangement.decision(run.buffer, i).access; };
  const ResidenceId r = reader.residence(access(run.first));
  bool same = true, any = false;
  for (int32_t i = run.first; i <= run.last; ++i) {
    same &= reader.residence(access(i)) == r;
    any |= reader.residence(access(i)).valid();
  }
  if (any && !same) return {access(run.first), access(run.last), Mode::kSplit};
  return reader.Read(access(run.first), access(run.last), r, run.planned.latest_fetch);
}

}  // namespace

Mode ModeOf(Action action) { return kModeOfAction[static_cast<size_t>(action)]; }

Intent OpenIntent(const Game& game) {
  Intent intent;
  if (IsPriorityGame(game)) {
    const PriorityTables& tables = game.priority_tables();
    for (const Run& run : tables.runs) {
      intent.push_back({tables.arrangement.decision(run.buffer, run.first).access,
                        tables.arrangement.decision(run.buffer, run.last).access});
    }
  } else {
    const bool dense = game.options().kind == GameKind::kTime;
    for (size_t a = 0; dense && a < game.program().accesses().size(); ++a)
      intent.push_back({AccessId(a), AccessId(a)});
  }
  for (size_t i = 0; i < intent.size(); ++i) intent[i].rank = static_cast<double>(i);
  return intent;
}

Intent ReadPlan(const Game& game, const Plan& plan) {
  const PlanReader reader(game.program(), plan);
  Intent intent = OpenIntent(game);
  for (size_t i = 0; i < intent.size(); ++i) {
    const double rank = intent[i].rank;
    intent[i] = IsPriorityGame(game)
                    ? ReadRun(game.priority_tables(), reader, game.priority_tables().runs[i])
                    : ReadDecision(game.program(), reader, AccessId(i));
    intent[i].rank = rank;
  }
  return intent;
}

Mode DecidedMode(const Position& position, int i) {
  const uint8_t action = position.actions()[i];
  return IsPriorityGame(position.game()) ? static_cast<Mode>(action % kActionModes)
                                         : kModeOfAction[action];
}

int32_t DecidedSegment(const Position& position, int i) {
  return IsPriorityGame(position.game())
             ? static_cast<const PriorityState&>(position).decided()[i].run
             : static_cast<const State&>(position).access_of(i).value;
}

Intent ReadGame(const Position& position) {
  Intent decided;
  for (int i = 0; i < position.num_decisions(); ++i) {
    AccessId first, last;
    if (IsPriorityGame(position.game())) {
      const PriorityTables& tables = static_cast<const PriorityState&>(position).tables();
      const Run& run = tables.runs[DecidedSegment(position, i)];
      first = tables.arrangement.decision(run.buffer, run.first).access;
      last = tables.arrangement.decision(run.buffer, run.last).access;
    } else {
      first = last = AccessId(DecidedSegment(position, i));
    }
    decided.push_back({first, last, DecidedMode(position, i), static_cast<double>(i)});
  }
  return decided;
}

Segment OwnSegment(const Game& game, int32_t run, Mode mode, absl::Span<const int32_t> own_access) {
  const PriorityTables& tables = game.priority_tables();
  const Run& one = tables.runs[run];
  const auto own = [&](AccessId id) { return AccessId(own_access[id.index()]); };
  const auto access = [&](int32_t i) {
    return own(tables.arrangement.decision(one.buffer, i).access);
  };
  if (one.parent >= 0) return {access(one.first), access(one.last), mode};
  AccessId first = access(one.first);
  for (const AccessId id : game.program().accesses_of(game.tables().buffers[one.buffer].id))
    first = std::min(first, own(id));
  return {first, AccessId(), mode};
}

Intent IntentLike(const Game& game, absl::Span<const Segment> decided,
                  absl::Span<const int32_t> own_access) {
  Intent intent = OpenIntent(game);
  absl::flat_hash_map<std::pair<int32_t, int32_t>, size_t> segments;
  segments.reserve(intent.size());
  for (size_t i = 0; i < intent.size(); ++i) {
    const Segment named = own_access.empty()
                              ? intent[i]
                              : OwnSegment(game, static_cast<int32_t>(i), Mode::kOpen, own_access);
    segments.emplace(std::pair(named.first.value, named.last.value), i);
    intent[i].rank += static_cast<double>(decided.size());
  }
  double rank = 0;
  for (const Segment& segment : decided) {
    const auto found = segments.find({segment.first.value, segment.last.value});
    if (found == segments.end()) continue;
    intent[found->second].mode = segment.mode;
    intent[found->second].rank = rank++;
  }
  return intent;
}

}  // namespace mallocgame
