#include "mallocgame/game/schedule/schedule_observation.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string_view>

#include "mallocgame/game/feature_scale.h"
#include "mallocgame/game/priority/priority_observation.h"

namespace mallocgame {
namespace {

using scale::Bytes;
using scale::Count;
using scale::Part;
using scale::Share;
using scale::Ticks;
using scale::Time;

// What changes during a game comes last.
constexpr Feature kUnitFeatures[] = {
    {"present", "1; 0 if fewer units are shown, and then all else is 0"},
    {"time", "time(the unit takes with everything in main memory, all trips)"},
    {"share", "x / (x + m / 256), where x is that time and m the all-main latency"},
    {"saving", "time(the unit saves with everything in fast memory, all trips)"},
    {"idle", "time(it then leaves to copies, all trips)"},
    {"fetch", "time(one transfer of each parameter and constant that it uses)"},
    {"bytes", "bytes(the buffers that it uses)"},
    {"critical", "the longest chain of dependent units that it begins / the longest of its region"},
    {"after", "log2(1 + units that depend on it directly) / 16"},
    {"inside", "1 if the order of units inside it is decided when it is taken"},
    {"behind", "ticks(from the first unit that is left to it, in the program's own order)"},
    {"growth", "bytes(that begin to live in main memory with it, less those that end)"},
    {"room", "share of the limit of main memory that is left behind it"},
    {"unlocks", "log2(1 + units that wait for it alone) / 16"},
    {"shared_now", "share of its bytes that the unit before uses too"},
    {"shared_soon", "share of its bytes that one of the eight units before uses too"},
};
constexpr int kUnitColumns = std::size(kUnitFeatures);
constexpr int kRecentUnits = 8;

// Behind the priority game's.
constexpr Feature kOwnScalarFeatures[] = {
    {"ordering",
     "1 while the order of instructions is decided; what the priority game says is then 0"},
    {"ordered", "share of the instructions whose place is decided"},
    {"ready", "log2(1 + units that can come next) / 16"},
    {"page", "log2(1 + pages turned since the last unit was taken) / 16"},
    {"inside", "1 if the units stand in a loop or another region inside the entry"},
    {"live", "live temporaries in main memory / the limit"},
    {"main", "bytes(the limit of main memory for temporaries)"},
    {"own_order", "1 if the program's own order was chosen"},
    {"fell_back", "1 if main memory was too small for the order that was decided"},
};
constexpr int kOwnScalars = std::size(kOwnScalarFeatures);

consteval size_t UnitColumn(std::string_view name) { return ColumnOf(kUnitFeatures, name); }
consteval size_t OwnColumn(std::string_view name) { return ColumnOf(kOwnScalarFeatures, name); }

std::vector<Feature> AllScalars() {
  const absl::Span<const Feature> placement = PriorityScalarFeatures();
  std::vector<Feature> all(placement.begin(), placement.end());
  all.insert(all.end(), std::begin(kOwnScalarFeatures), std::end(kOwnScalarFeatures));
  return all;
}

}  // namespace

std::vector<ObservationPart> ScheduleGameOptions::Layout(const ObservationOptions& options) const {
  static const std::vector<Feature>& scalars = *new std::vector<Feature>(AllScalars());
  std::vector<ObservationPart> layout;
  AddPart("units", {kReadyShown}, kUnitFeatures, &layout);
  AddPart("candidates", {candidates + options.neighbours}, CandidateFeatures(), &layout);
  AddPart("actions", {num_actions()}, PriorityActionFeatures(), &layout);
  AddPart("occupancy", {options.columns(), options.address_cells}, {}, &layout);
  AddPart("idle", {options.columns(), 2}, {}, &layout);
  AddPart("demand", {options.columns(), 2}, {}, &layout);
  AddPart("scalars", {}, scalars, &layout);
  AddPart("action_mask", {num_actions()}, {}, &layout);
  return layout;
}

ScheduleObserver::ScheduleObserver(const ScheduleGame& game, const ObservationOptions& options)
    : game_(game), tables_(game.schedule_tables()), options_(options) {
  const int placing = game.num_actions() - kOrderingActions;
  const auto columns = [](absl::Span<const Feature> features) {
    return static_cast<int>(features.size());
  };
  candidate_numbers_ = (placing / kActionModes + options.neighbours) * columns(CandidateFeatures());
  placement_numbers_ = candidate_numbers_ + placing * columns(PriorityActionFeatures()) +
                       options.columns() * (options.address_cells + 4) +
                       columns(PriorityScalarFeatures());
  MakeRows();
}

void ScheduleObserver::MakeRows() {
  const Program& program = game_.program();
  rows_.assign(tables_.all.size() * kUnitColumns, 0.0F);
  std::vector<int64_t> longest(tables_.decided.size(), 1);
  for (const GameUnit& unit : tables_.all)
    longest[unit.region] = std::max(longest[unit.region], unit.critical_ps);
  for (size_t u = 0; u < tables_.all.size(); ++u) {
    const GameUnit& unit = tables_.all[u];
    float* row = rows_.data() + u * kUnitColumns;
    row[UnitColumn("present")] = 1.0F;
    row[UnitColumn("time")] = Time(unit.time_ps);
    row[UnitColumn("share")] =
        Part(static_cast<double>(unit.time_ps), static_cast<double>(game_.all_main_ps()) / 256);
    row[UnitColumn("saving")] = Time(unit.saving_ps);
    row[UnitColumn("idle")] = Time(unit.idle_ps);
    row[UnitColumn("fetch")] = Time(unit.fetch_ps);
    int64_t bytes = 0;
    for (const int32_t buffer : unit.buffers) bytes += program.buffers()[buffer].size_bytes;
    row[UnitColumn("bytes")] = Bytes(bytes);
    row[UnitColumn("critical")] = Share(unit.critical_ps, longest[unit.region]);
    row[UnitColumn("after")] = Count(static_cast<int64_t>(unit.after.size()) + 1);
    row[UnitColumn("inside")] = !unit.parts.empty();
  }
}

void ScheduleObserver::Write(const Position& position, float* out) const {
  const auto& state = static_cast<const ScheduleState&>(position);
  const int actions = game_.num_actions(),
            action_columns = static_cast<int>(PriorityActionFeatures().size());
  WriteUnits(state, out);
  out += kReadyShown * kUnitColumns;
  const int ordering = kOrderingActions * action_columns;
  std::fill(out + candidate_numbers_, out + candidate_numbers_ + ordering, 0.0F);
  const ActionSet legal = state.legal_actions();
  if (const PriorityState* const placement = state.placement(); placement != nullptr) {
    state.ordered().ObserverOf(options_).Write(*placement, ordering, out);
  } else {
    std::fill(out, out + placement_numbers_ + ordering, 0.0F);
    for (const int action : legal)
      out[candidate_numbers_ + action * action_columns + kLegalColumn] = 1.0F;
  }
  out += placement_numbers_ + ordering;
  WriteScalars(state, out);
  out += kOwnScalars;
  for (int a = 0; a < actions; ++a) out[a] = legal.Has(a) ? 1.0F : 0.0F;
}

void ScheduleObserver::WriteUnits(const ScheduleState& state, float* out) const {
  const absl::Span<const int32_t> shown = state.shown();
  const PartialOrder& order = state.order();
  const auto count = static_cast<int>(shown.size());
  std::fill(out + count * kUnitColumns, out + kReadyShown * kUnitColumns, 0.0F);
  if (shown.empty()) return;
  const Program& program = game_.program();
  const std::vector<int32_t> recent = order.LastUnits(kRecentUnits);
  const int32_t lowest = order.lowest();
  for (int i = 0; i < count; ++i) {
    const GameUnit& unit = tables_.all[shown[i]];
    float* row = out + i * kUnitColumns;
    std::memcpy(row, rows_.data() + static_cast<size_t>(shown[i]) * kUnitColumns,
                kUnitColumns * sizeof(float));
    row[UnitColumn("behind")] = Ticks(unit.begin - tables_.all[lowest].begin);
    const int64_t growth = order.GrowthOf(shown[i]);
    row[UnitColumn("growth")] = growth < 0 ? -Bytes(-growth) : Bytes(growth);
    row[UnitColumn("room")] =
        Share(tables_.limit_bytes - order.live_bytes() - growth, tables_.limit_bytes);
    int64_t unlocks = 0, bytes = 0, now = 0, soon = 0;
    for (const int32_t after : unit.after) unlocks += order.waits(after) == 1;
    row[UnitColumn("unlocks")] = Count(unlocks + 1);
    for (const int32_t buffer : unit.buffers) {
      const int64_t size = program.buffers()[buffer].size_bytes;
      bytes += size;
      for (size_t r = 0; r < recent.size(); ++r) {
        const std::vector<int32_t>& used = tables_.all[recent[r]].buffers;
        if (!std::binary_search(used.begin(), used.end(), buffer)) continue;
        soon += size;
        if (r == 0) now += size;
        break;
      }
    }
    row[UnitColumn("shared_now")] = Share(now, bytes);
    row[UnitColumn("shared_soon")] = Share(soon, bytes);
  }
}

void ScheduleObserver::WriteScalars(const ScheduleState& state, float* out) const {
  const PartialOrder& order = state.order();
  const bool ordering = state.placement() == nullptr;
  out[OwnColumn("ordering")] = ordering;
  out[OwnColumn("ordered")] = ordering ? Share(order.ticks_put(), game_.program().ticks()) : 1.0F;
  out[OwnColumn("ready")] = Count(ordering ? order.num_ready() + 1 : 1);
  out[OwnColumn("page")] = Count(state.page() + 1);
  out[OwnColumn("inside")] = ordering && order.region() > 0;
  out[OwnColumn("live")] = ordering ? Share(order.live_bytes(), tables_.limit_bytes) : 0.0F;
  out[OwnColumn("main")] = Bytes(tables_.limit_bytes);
  out[OwnColumn("own_order")] = !ordering && state.ordered().own;
  out[OwnColumn("fell_back")] = state.fell_back();
}

}  // namespace mallocgame
