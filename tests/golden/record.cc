#include "tests/golden/record.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "mallocgame/base/error.h"
#include "mallocgame/game/position.h"
#include "mallocgame/game/time/state.h"
#include "mallocgame/game/time/time_game.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/plan/validate.h"
#include "mallocgame/program/cost_model.h"
#include "mallocgame/simulator/simulate.h"

namespace mallocgame::golden {
namespace {

constexpr int kMostSlots = 2;  // of an instruction whose prices are written out one by one

class Recorder {
 public:
  explicit Recorder(const Game& game) : game_(game), program_(game.program()) {}

  std::string ProblemText() {
    AddHardware();
    AddOptions();
    AddBuffers();
    AddInstructions();
    return std::move(text_);
  }

  std::string GameText(const Play& play, size_t number) {
    absl::StrAppend(&text_, "\nGame ", number, ": ", play.shows, "\n");
    const std::unique_ptr<Position> position = game_.NewInitialPosition();
    for (const Choice& choice : play.actions) {
      if (!AddDecision(*position, choice.number)) return std::move(text_);
    }
    if (!position->IsTerminal()) {
      absl::StrAppend(&text_, "  Not over: ", AccessText(position->AskedAbout()[0].first),
                      " is asked.\n");
      return std::move(text_);
    }
    AddEnd(*position);
    return std::move(text_);
  }

 private:
  // "tick 2, use reads p"
  std::string AccessText(AccessId id) const {
    constexpr const char* kKinds[] = {"reads", "updates", "writes", "carries"};
    const Access& access = program_.access(id);
    return absl::StrCat("tick ", access.tick, ", ", program_.instruction(access.tick).name, " ",
                        kKinds[static_cast<int>(access.kind)], " ",
                        program_.buffer(access.buffer).name);
  }

  std::string AccessList(const std::vector<AccessId>& ids) const {
    return absl::StrJoin(
        ids, "; ", [&](std::string* text, AccessId id) { absl::StrAppend(text, AccessText(id)); });
  }

  void AddHardware() {
    const Hardware& h = game_.hardware();
    absl::StrAppend(&text_, "\nHardware: ", h.fast_bytes, " bytes of fast memory, aligned to ",
                    h.alignment_bytes, "; a copy takes ", h.TransferPs(1), " ps for each byte;\n",
                    "  prefetches at a time: ", h.max_outstanding_prefetches,
                    ", evictions at a time: ", h.max_outstanding_evictions,
                    ", preloads: ", h.max_preloads, "\n");
  }

  void AddOptions() {
    const GameOptions& o = game_.options();
    absl::StrAppend(
        &text_, "Options: ",
        is_priority_game() ? absl::StrCat("the priority game with ",
                                          game_.num_actions() / kActionModes, " candidates")
        : game_.num_actions() == kPaperActions ? "the paper's actions"
                                               : "all actions",
        ", buffers from ", o.min_buffer_bytes, " bytes, share kept free ", o.keep_free, "\n");
    if (!o.forbidden.empty())
      absl::StrAppend(&text_, "  must be served from main memory: ", AccessList(o.forbidden), "\n");
  }

  void AddBuffers() {
    constexpr const char* kOrigins[] = {"written by its first access", "a parameter", "a constant",
                                        "storage without a value"};
    absl::StrAppend(&text_, "Buffers:\n");
    for (const Buffer& b : program_.buffers()) {
      absl::StrAppend(&text_, "  ", b.name, ", ", b.size_bytes, " bytes, ",
                      kOrigins[static_cast<int>(b.origin)], b.is_output ? ", an output" : "",
                      b.eligible ? "" : ", always in main memory: ", b.ineligible_because, "\n");
    }
  }

  // One line a tick, indented by the regions around it.
  void AddInstructions() {
    absl::StrAppend(&text_, "Instructions, with their time and the time they leave to copies:\n");
    for (Tick t = 0; t < program_.ticks(); ++t) {
      const int32_t region = program_.instruction(t).region;
      for (size_t r = 1; r < program_.regions().size(); ++r) {
        if (program_.regions()[r].begin == t) AddRegionTitle(program_.regions()[r]);
      }
      absl::StrAppend(&text_, absl::StrFormat("  %2d  ", t), Indent(region), InstructionText(t),
                      "\n");
    }
  }

  std::string Indent(int32_t region) const {
    std::string indent;
    for (; program_.regions()[region].parent >= 0; region = program_.regions()[region].parent)
      indent += "  ";
    return indent;
  }

  void AddRegionTitle(const Region& region) {
    constexpr const char* kKinds[] = {"entry", "condition", "body", "branch", "call"};
    absl::StrAppend(&text_, "      ", Indent(region.parent), kKinds[static_cast<int>(region.kind)],
                    ":\n");
  }

  std::string InstructionText(Tick tick) const {
    const Instruction& i = program_.instruction(tick);
    if (i.kind == InstructionKind::kLoopEntry) {
      return absl::StrCat("loop ", i.name, ", ", program_.loop_at(tick).trips, " trips",
                          AccessesText(i));
    }
    if (i.kind == InstructionKind::kLoopExit) return absl::StrCat("end of loop ", i.name);
    return absl::StrCat(
        i.name, i.plain_copy ? " (a plain copy)" : "",
        i.reserved_bytes > 0 ? absl::StrCat(" (reserves ", i.reserved_bytes, ")") : "",
        AccessesText(i), ": ", PricesText(tick));
  }

  // " reads p, q, writes x"
  std::string AccessesText(const Instruction& instruction) const {
    constexpr const char* kKinds[] = {" reads", " updates", " writes", ", carries"};
    std::string text;
    int last_kind = -1;
    for (int32_t slot = 0; slot < instruction.access_count; ++slot) {
      const Access& access = program_.accesses()[instruction.first_access + slot];
      const int kind = static_cast<int>(access.kind);
      absl::StrAppend(&text,
                      kind == last_kind ? ","
                      : slot > 0        ? ","
                                        : "",
                      kind == last_kind ? "" : kKinds[kind], " ",
                      program_.buffer(access.buffer).name,
                      access.writes_in_loop ? " (written inside)" : "");
      last_kind = kind;
    }
    return text;
  }

  // "10 ps, 6 idle; 3, 3 with p in fast memory": every placement of its buffers. Of many buffers,
  // which must not change the time, the two ends.
  std::string PricesText(Tick tick) const {
    const Instruction& i = program_.instruction(tick);
    const uint64_t placements = uint64_t{1} << i.access_count;
    const auto price_of = [&](uint64_t mask) { return game_.cost_model().PriceOf(tick, mask); };
    std::string text = absl::StrCat(price_of(0).time_ps, " ps, ", price_of(0).idle_ps, " idle");
    if (i.access_count > kMostSlots) {
      for (uint64_t mask = 0; mask < placements; ++mask)
        MG_CHECK(price_of(mask).time_ps == price_of(0).time_ps);
      return absl::StrCat(text, "; ", price_of(0).time_ps, ", ", price_of(placements - 1).idle_ps,
                          " with all of them in fast memory");
    }
    for (uint64_t mask = 1; mask < placements; ++mask) {
      std::vector<std::string> names;
      for (int32_t slot = 0; slot < i.access_count; ++slot) {
        if (mask >> slot & 1)
          names.push_back(program_.buffer(program_.accesses()[i.first_access + slot].buffer).name);
      }
      absl::StrAppend(&text, "; ", price_of(mask).time_ps, ", ", price_of(mask).idle_ps, " with ",
                      absl::StrJoin(names, " and "), " in fast memory");
    }
    return text;
  }

  bool is_priority_game() const { return game_.options().game() == std::string("priority"); }

  // The legal ones of `count` actions from `first` on.
  std::string LegalText(const Position& position, int first, int count) const {
    std::vector<std::string> legal;
    for (int action = first; action < first + count; ++action) {
      if (position.legal_actions().Has(action)) legal.push_back(game_.ActionToString(action));
    }
    return absl::StrJoin(legal, is_priority_game() ? ", " : " ");
  }

  void AddAsked(const Position& position) {
    const std::vector<AccessRun> asked = position.AskedAbout();
    if (!is_priority_game()) {
      absl::StrAppend(&text_, AccessText(asked[0].first),
                      "\n    legal: ", LegalText(position, 0, game_.num_actions()), "\n");
      return;
    }
    absl::StrAppend(&text_, "which run, and how is it served?\n");
    for (size_t i = 0; i < asked.size(); ++i) {
      const Access& first = program_.access(asked[i].first);
      const Tick last = program_.access(asked[i].last).tick;
      absl::StrAppend(
          &text_, "    ", program_.buffer(first.buffer).name, ", ",
          first.tick == last ? absl::StrCat("tick ", last)
                             : absl::StrCat("ticks ", first.tick, " to ", last),
          "; legal: ",
          LegalText(position, PriorityAction(static_cast<int>(i), Mode::kSkip), kActionModes),
          "\n");
    }
  }

  int64_t StallOf(const Position& position) const {
    return is_priority_game() ? static_cast<const PriorityState&>(position).stall_ps()
                              : static_cast<const State&>(position).stall_ps();
  }

  bool AddDecision(Position& position, int action) {
    if (position.IsTerminal()) {
      absl::StrAppend(&text_, "  Over: ", game_.ActionToString(action),
                      " is one action too many.\n");
      return false;
    }
    absl::StrAppend(&text_, "  decision ", position.num_decisions(), ": ");
    AddAsked(position);
    absl::StrAppend(&text_, "    action: ", game_.ActionToString(action));
    const auto saved = position.Apply(action);
    if (!saved.ok()) {
      absl::StrAppend(&text_, ", refused: ", std::string(saved.status().message()), "\n");
      return false;
    }
    absl::StrAppend(&text_, " saves ", *saved, " ps, latency ", position.latency_ps(),
                    " ps, stalls ", StallOf(position), " ps\n");
    const Plan plan = position.ToPlan();
    for (size_t i = 0; i < plan.residences.size(); ++i)
      absl::StrAppend(&text_, "    ", i == 0 ? "fast memory: " : "             ",
                      ResidenceText(plan.residences[i]), "\n");
    for (size_t i = 0; i < plan.copies.size(); ++i)
      absl::StrAppend(&text_, "    ", i == 0 ? "copies:      " : "             ",
                      CopyText(plan, plan.copies[i]), "\n");
    return true;
  }

  std::string ResidenceText(const Residence& r) const {
    return absl::StrCat(program_.buffer(r.buffer).name, " at bytes [", r.offset, ", ",
                        r.offset + program_.buffer(r.buffer).size_bytes, "), ticks [", r.begin,
                        ", ", r.end, ")");
  }

  std::string CopyText(const Plan& plan, const Copy& copy) const {
    const std::string& name = program_.buffer(plan.residences[copy.residence.index()].buffer).name;
    std::string text = absl::StrCat(copy.preload                       ? "preload of "
                                    : copy.kind == CopyKind::kEviction ? "eviction of "
                                                                       : "prefetch of ",
                                    name, ", window [", copy.begin, ", ", copy.end, ")");
    if (copy.replaces >= 0)
      absl::StrAppend(&text, ", in place of ", program_.instruction(copy.replaces).name);
    return text;
  }

  void AddEnd(const Position& end) {
    const Plan plan = end.ToPlan();
    absl::StrAppend(&text_, "  Plan:\n");
    for (size_t i = 0; i < plan.residences.size(); ++i) {
      absl::StrAppend(&text_, "    residence ", i, ": ", ResidenceText(plan.residences[i]),
                      ServedText(plan, i), "\n");
    }
    for (size_t i = 0; i < plan.copies.size(); ++i) {
      absl::StrAppend(&text_, "    copy ", i, ": ", CopyText(plan, plan.copies[i]), ", residence ",
                      plan.copies[i].residence.value, "\n");
    }
    if (plan.residences.empty()) absl::StrAppend(&text_, "    everything in main memory\n");
    const Verdict verdict = Validate(program_, game_.hardware(), plan);
    absl::StrAppend(&text_, "  Validate: ", verdict.ok() ? "valid" : RuleName(verdict.rule),
                    verdict.ok() ? "" : ": ", verdict.message, "\n");
    const auto report = Simulate(game_.cost_model(), plan);
    MG_CHECK(report.ok());
    AddReport(*report);
    AddPicture(plan, *report);
  }

  // ", serves ticks 2 and 5"
  std::string ServedText(const Plan& plan, size_t residence) const {
    std::vector<Tick> ticks;
    for (size_t a = 0; a < plan.served_by.size(); ++a) {
      if (plan.served_by[a] == ResidenceId(static_cast<int64_t>(residence)))
        ticks.push_back(program_.accesses()[a].tick);
    }
    return absl::StrCat(", serves tick", ticks.size() == 1 ? " " : "s ",
                        absl::StrJoin(ticks, ", "));
  }

  void AddReport(const Report& r) {
    absl::StrAppend(&text_, "  Simulate: latency ", r.latency_ps, " ps = compute ", r.compute_ps,
                    " + stalls ", r.stall_ps, "; all in main memory ", r.all_main_ps,
                    "; cold start ", r.latency_cold_ps, "\n    prefetched ", r.prefetched_bytes,
                    ", evicted ", r.written_back_bytes, ", preloaded ", r.preloaded_bytes,
                    ", at most ", r.peak_fast_bytes, " resident bytes\n");
  }

  // Fast memory drawn over the ticks, a row for each run of bytes that hold the same; below it the
  // stalls.
  void AddPicture(const Plan& plan, const Report& report) {
    if (plan.residences.empty()) return;
    const size_t bytes = game_.hardware().fast_bytes, ticks = program_.ticks();
    std::vector<std::vector<std::string>> rows(bytes, std::vector<std::string>(ticks, "."));
    for (const Residence& r : plan.residences) {
      const Buffer& buffer = program_.buffer(r.buffer);
      for (int64_t byte = r.offset; byte < r.offset + buffer.size_bytes; ++byte) {
        for (Tick t = r.begin; t < r.end; ++t) {
          std::string& cell = rows[byte][t];
          cell = cell == "." ? buffer.name : "!!";
        }
      }
    }
    size_t width = 2;
    for (const Buffer& b : program_.buffers()) width = std::max(width, b.name.size());
    const auto add_line = [&](const std::string& title, const auto& cell) {
      std::string line = absl::StrFormat("    %-14s", title);
      for (size_t t = 0; t < ticks; ++t)
        absl::StrAppend(&line, absl::StrFormat(" %*s", static_cast<int>(width), cell(t)));
      absl::StrAppend(&text_, line, "\n");
    };
    add_line("tick", [](size_t t) { return absl::StrCat(t); });
    for (size_t end = bytes; end > 0;) {
      size_t begin = end - 1;
      while (begin > 0 && rows[begin - 1] == rows[end - 1]) --begin;
      add_line(absl::StrCat("bytes [", begin, ", ", end, ")"),
               [&](size_t t) { return rows[begin][t]; });
      end = begin;
    }
    if (report.stall_ps > 0)
      add_line("stall, ps", [&](size_t t) { return absl::StrCat(report.stall_at_ps[t]); });
  }

  const Game& game_;
  const Program& program_;
  std::string text_;
};

}  // namespace

std::string Record(const Example& example) {
  const auto game = Game::Create(example.program.Build(), example.hardware, example.game_options());
  MG_CHECK(game.ok());
  Recorder recorder(**game);
  std::string text = absl::StrCat(example.rule, "\n", recorder.ProblemText());
  for (size_t i = 0; i < example.plays.size(); ++i)
    absl::StrAppend(&text, recorder.GameText(example.plays[i], i + 1));
  return text;
}

}  // namespace mallocgame::golden
