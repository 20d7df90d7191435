#include "mallocgame/game/priority/priority_observation.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "absl/container/inlined_vector.h"
#include "mallocgame/game/feature_scale.h"
#include "mallocgame/game/priority/priority_features.h"
#include "mallocgame/game/tables.h"

namespace mallocgame {
namespace {

using scale::Bytes;
using scale::Count;
using scale::Part;
using scale::Ratio;
using scale::Share;
using scale::Ticks;
using scale::Time;

float ShareOfUnits(int64_t units) {
  return static_cast<float>(static_cast<double>(units) / PriorityObserver::kUnits);
}

// A sum of rounded shares may be a little outside.
float Clamped(float share) { return std::clamp(share, 0.0F, 1.0F); }

}  // namespace

absl::Span<const Feature> CandidateFeatures() { return kCandidateFeatures; }
absl::Span<const Feature> PriorityActionFeatures() { return kPriorityActionFeatures; }
absl::Span<const Feature> PriorityScalarFeatures() { return kPriorityScalarFeatures; }

std::vector<ObservationPart> PriorityGameOptions::Layout(const ObservationOptions& options) const {
  std::vector<ObservationPart> layout;
  AddPart("candidates", {candidates + options.neighbours}, kCandidateFeatures, &layout);
  AddPart("actions", {num_actions()}, kPriorityActionFeatures, &layout);
  AddPart("occupancy", {options.columns(), options.address_cells}, {}, &layout);
  AddPart("idle", {options.columns(), 2}, {}, &layout);
  AddPart("demand", {options.columns(), 2}, {}, &layout);
  AddPart("scalars", {}, kPriorityScalarFeatures, &layout);
  AddPart("action_mask", {num_actions()}, {}, &layout);
  return layout;
}

PriorityObserver::PriorityObserver(const PriorityGame& game, const ObservationOptions& options,
                                   std::shared_ptr<const PriceSums> prices)
    : id_(NextTablesId()), game_(game), tables_(game.priority_tables()), options_(options),
      prices_(std::move(prices)) {
  const GameTables& tables = game.tables();
  for (Tick t = 0; t <= game.program().ticks(); ++t) position_.push_back(tables_.position(t));
  for (const GameBuffer& buffer : tables.buffers)
    shares_.push_back(Share(buffer.size_bytes, game.usable_bytes()));
  MakeRows();
  if (options.columns() > 0) MakeIdleTicks();
}

void PriorityObserver::MakeRows() {
  const GameTables& tables = game_.tables();
  const Program& program = game_.program();
  const auto runs = static_cast<int64_t>(tables_.runs.size());
  rows_.assign(tables_.runs.size() * kCandidateColumns, 0.0F);
  for (int64_t r = 0; r < runs; ++r) {
    const Run& run = tables_.runs[r];
    const GameBuffer& b = tables.buffers[run.buffer];
    const auto accesses = static_cast<int32_t>(tables_.arrangement.decisions_of(run.buffer).size());
    std::array<int64_t, 4> kinds = {};
    for (int32_t i = run.first; i <= run.last; ++i)
      ++kinds[static_cast<size_t>(tables_.arrangement.decision(run.buffer, i).kind)];
    const Tick begin = tables_.arrangement.decision(run.buffer, run.first).tick;
    const Decision& last = tables_.arrangement.decision(run.buffer, run.last);
    const Tick end = run.placeable ? run.planned.end : std::max(last.tick + 1, last.covered_until);
    const PlannedResidence& planned = run.planned;
    float* row = rows_.data() + r * kCandidateColumns;
    row[CandidateColumn("present")] = 1.0F;
    for (size_t kind = 0; kind < kinds.size(); ++kind)
      row[CandidateColumn("reads") + kind] = Count(kinds[kind] + 1);
    row[CandidateColumn("share")] = ShareOfMemory(run.buffer);
    row[CandidateColumn("bytes")] = Bytes(b.size_bytes);
    row[CandidateColumn("copy_time")] = Time(b.copy_ps);
    row[CandidateColumn("trips")] = Count(program.trips(begin));
    row[CandidateColumn("saving")] = Time(run.saving_ps);
    row[CandidateColumn("saving_per_copy")] = Ratio(run.saving_ps, b.copy_ps);
    row[CandidateColumn("rank")] = Share(r, runs);
    row[CandidateColumn("begin")] = static_cast<float>(position_[begin]);
    row[CandidateColumn("end")] = static_cast<float>(position_[end]);
    row[CandidateColumn("held")] =
        Time(tables.all_main_before[end] - tables.all_main_before[begin]);
    row[CandidateColumn("ticks")] = Ticks(end - begin);
    if (run.placeable) {
      row[CandidateColumn("late_lead")] = Ticks(planned.need - run.planned.latest_fetch);
      row[CandidateColumn("early_lead")] = Ticks(planned.need - run.roomy.earliest_fetch);
      row[CandidateColumn("early_stay")] = Ticks(run.roomy.end - planned.end);
      row[CandidateColumn("fetched")] = planned.fetched;
      row[CandidateColumn("replaces")] = planned.replaces >= 0;
    }
    row[CandidateColumn("eviction")] =
        (run.placeable ? planned : run.preloaded).eviction_deadline >= 0;
    row[CandidateColumn("placeable")] = run.placeable;
    row[CandidateColumn("preloadable")] = run.preloadable;
    row[CandidateColumn("splits")] = run.splits;
    row[CandidateColumn("is_output")] = program.buffer(b.id).is_output;
    row[CandidateColumn("accesses_before")] = Count(run.first + 1);
    row[CandidateColumn("accesses_after")] = Count(accesses - run.last);
  }
}

void PriorityObserver::Write(const Position& position, int left_out, float* out) const {
  const auto& state = static_cast<const PriorityState&>(position);
  const ActionSet legal = state.legal_actions();
  const int actions = game_.num_actions(), columns = options_.columns();
  const Sums& sums = SumsOf(state);
  const Pressure pressure = PressureOf(state, sums);
  WriteCandidates(state, out);
  out += (game_.options().candidates + options_.neighbours) * kCandidateColumns + left_out;
  WriteActions(state, legal, pressure, out);
  out += actions * kPriorityActionColumns;
  if (columns > 0) {
    WriteOccupancy(sums, out);
    out += columns * options_.address_cells;
    WriteIdle(state, sums, out);
    out += columns * 2;
    WriteDemand(sums, out);
    out += columns * 2;
  }
  WriteScalars(state, pressure, out);
  out += kPriorityScalarColumns;
  for (int a = 0; a < actions; ++a) out[a] = legal.Has(a) ? 1.0F : 0.0F;
}

PriorityObserver::Pressure PriorityObserver::PressureOf(const PriorityState& state,
                                                        const Sums& sums) const {
  constexpr double kShare = static_cast<double>(kPieces) / PriorityTables::kSpaceUnits;
  Pressure pressure;
  int64_t taken = 0, space = 0, copies = 0;
  for (Pieces* pieces : {&pressure.taken, &pressure.wanted, &pressure.excess, &pressure.copies})
    pieces->before[0] = 0;
  for (size_t piece = 0; piece < kPieces; ++piece) {
    const auto add = [piece](Pieces& pieces, double amount) {
      pieces.before[piece + 1] = pieces.before[piece] + amount;
    };
    taken += sums.pressure[piece];
    space += state.wanted_space().step(piece);
    copies += state.wanted_copies().step(piece);
    const double taken_share = Clamped(ShareOfUnits(taken)),
                 wanted_share = kShare * static_cast<double>(space);
    add(pressure.taken, taken_share);
    add(pressure.wanted, wanted_share);
    add(pressure.excess, std::max(0.0, taken_share + wanted_share - 1));
    add(pressure.copies, static_cast<double>(copies));
  }
  return pressure;
}

PriorityObserver::Place::Place(double position)
    : piece(std::min(static_cast<size_t>(position * static_cast<double>(kPieces)), kPieces - 1)),
      part(position * static_cast<double>(kPieces) - static_cast<double>(piece)) {}

double PriorityObserver::Between(const Pieces& pieces, const Place& begin, const Place& end) {
  const auto until = [&pieces](const Place& place) {
    const double before = pieces.before[place.piece];
    return before + place.part * (pieces.before[place.piece + 1] - before);
  };
  return std::max(0.0, until(end) - until(begin));
}

void PriorityObserver::WriteCandidates(const PriorityState& state, float* out) const {
  const int count = game_.options().candidates + options_.neighbours;
  int written = 0;
  for (int32_t r = state.candidates()[0]; r >= 0 && written < count;
       r = state.NextOpen(r), ++written) {
    float* row = out + written * kCandidateColumns;
    std::memcpy(row, rows_.data() + static_cast<size_t>(r) * kCandidateColumns,
                kCandidateColumns * sizeof(float));
    const Run& run = tables_.runs[r];
    const auto of = tables_.arrangement.decisions_of(run.buffer);
    const auto served = state.arrangement().served_by();
    if (run.first > 0) row[CandidateColumn("fast_before")] = served[of[run.first - 1]] >= 0;
    if (run.last + 1 < static_cast<int32_t>(of.size()))
      row[CandidateColumn("fast_after")] = served[of[run.last + 1]] >= 0;
  }
  std::fill(out + written * kCandidateColumns, out + count * kCandidateColumns, 0.0F);
}

// For each candidate, the time that the channel has left before its residence is needed, without
// delaying what is due already. What is due at a tick must be done in the time that the segment's
// instructions left to the channel until then.
PriorityObserver::Slacks PriorityObserver::SlacksOf(const PriorityState& state) const {
  struct Deadline {
    Tick tick;
    size_t candidate;
  };
  Slacks slacks = {};
  std::array<Deadline, kMaxCandidates> deadlines;
  size_t count = 0;
  for (size_t i = 0; i < state.candidates().size() && state.candidates()[i] >= 0; ++i) {
    const Run& run = tables_.runs[state.candidates()[i]];
    if (!run.placeable || !run.planned.fetched) continue;
    // Sorted by tick.
    const Deadline deadline = {PriorityState::DueAt(run.planned), i};
    size_t place = count++;
    for (; place > 0 && deadlines[place - 1].tick > deadline.tick; --place)
      deadlines[place] = deadlines[place - 1];
    deadlines[place] = deadline;
  }
  for (size_t first = 0; first < count;) {
    const int32_t segment = tables_.segment_of[deadlines[first].tick];
    const Tick end = tables_.segment_begin[segment + 1];
    Tick t = tables_.segment_begin[segment];
    int64_t left = 0;
    const auto least_until = [&](Tick until) {
      if (t >= until) return std::numeric_limits<int64_t>::max();
      const ChannelSlack::Stretch free = state.FreeOver(t, until);
      t = until;
      left += free.sum;
      return left - free.sum + free.least;
    };
    // The least time left before each deadline, and from it on.
    std::array<int64_t, kMaxCandidates> before, behind;
    before[first] = std::min<int64_t>(0, least_until(deadlines[first].tick));
    size_t last = first;
    for (; last < count && deadlines[last].tick < end; ++last) {
      const bool more = last + 1 < count && deadlines[last + 1].tick < end;
      behind[last] = least_until(more ? deadlines[last + 1].tick : end);
      if (more) before[last + 1] = std::min(before[last], behind[last]);
    }
    for (size_t i = last; i-- > first;) {
      if (i + 1 < last) behind[i] = std::min(behind[i], behind[i + 1]);
      slacks[deadlines[i].candidate] = std::max<int64_t>(0, behind[i] - before[i]);
    }
    first = last;
  }
  return slacks;
}

void PriorityObserver::WriteActions(const PriorityState& state, const ActionSet& legal,
                                    const Pressure& pressure, float* out) const {
  std::fill(out, out + game_.num_actions() * kPriorityActionColumns, 0.0F);
  const Slacks slacks = SlacksOf(state);
  int64_t saved = 0;
  for (const int action : legal) {
    const size_t candidate = action / kActionModes;
    const auto mode = static_cast<Mode>(action % kActionModes);
    // Without exact stalls Early saves what Late saves, which is the action before it.
    if (mode != Mode::kEarly || !legal.Has(action - 1) || game_.options().exact_stalls)
      saved = state.SavingOf(action);
    float* row = out + action * kPriorityActionColumns;
    row[PriorityActionColumn("legal")] = 1.0F;
    if (mode == Mode::kSkip || mode == Mode::kSplit) continue;
    const PriorityState::Placing placing = state.PlacingOf(candidate, mode);
    WriteResidence(placing, saved, slacks[candidate], row);
    WritePressure(state, placing, pressure, row);
    if (prices_ != nullptr) WriteRent(placing, saved, row);
  }
}

void PriorityObserver::WriteResidence(const PriorityState::Placing& placing, int64_t saved_ps,
                                      int64_t slack, float* row) const {
  const PlannedResidence& planned = *placing.planned;
  const auto all_main = static_cast<double>(std::max<int64_t>(1, game_.all_main_ps()));
  const double space = static_cast<double>(ShareOfMemory(planned.buffer)) *
                       (position_[planned.end] - position_[placing.begin]);
  const double share = static_cast<double>(saved_ps) / all_main;
  const int64_t copy_ps = game_.tables().buffers[planned.buffer].copy_ps;
  const int copies = static_cast<int>(planned.fetched) + (planned.eviction_deadline >= 0 ? 1 : 0);
  row[PriorityActionColumn("places")] = 1.0F;
  row[PriorityActionColumn("saved")] = Time(saved_ps);
  row[PriorityActionColumn("saved_share")] = Ratio(saved_ps, game_.all_main_ps() / 256);
  row[PriorityActionColumn("space")] = scale::Space(space);
  row[PriorityActionColumn("saved_per_space")] = Part(share, space);
  row[PriorityActionColumn("lead")] = Ticks(planned.need - placing.begin);
  row[PriorityActionColumn("copies")] =
      Time(copies * copy_ps * tables_.arrangement.passes[planned.need]);
  row[PriorityActionColumn("slack")] = planned.fetched ? Ratio(slack, copy_ps) : 1.0F;
}

void PriorityObserver::WritePressure(const PriorityState& state,
                                     const PriorityState::Placing& placing,
                                     const Pressure& pressure, float* row) const {
  const PlannedResidence& planned = *placing.planned;
  const Place begin(position_[placing.begin]), end(position_[planned.end]);
  const double length =
      static_cast<double>(kPieces) * (position_[planned.end] - position_[placing.begin]);
  if (length > 0) {
    row[PriorityActionColumn("full")] =
        std::min(1.0F, static_cast<float>(Between(pressure.taken, begin, end) / length));
    row[PriorityActionColumn("demand")] = Part(Between(pressure.wanted, begin, end), length);
    row[PriorityActionColumn("excess")] = Part(Between(pressure.excess, begin, end), length);
  }
  if (!planned.fetched) return;
  const int64_t free =
      state.FreePs(placing.begin, planned.need) * tables_.arrangement.passes[planned.need];
  const double copies = Between(pressure.copies, begin, Place(position_[planned.need]));
  row[PriorityActionColumn("contention")] =
      Part(copies, static_cast<double>(std::max<int64_t>(0, free)));
}

void PriorityObserver::WriteRent(const PriorityState::Placing& placing, int64_t saved_ps,
                                 float* row) const {
  const PlannedResidence& planned = *placing.planned;
  const GameBuffer& buffer = game_.tables().buffers[planned.buffer];
  double channel = 0;
  if (planned.fetched) channel += prices_->OfCopy(buffer.copy_ps, placing.begin, planned.need);
  if (planned.eviction_deadline >= 0) {
    channel += prices_->OfCopy(buffer.copy_ps, planned.written,
                               std::max(planned.written, planned.eviction_deadline));
  }
  const double space = prices_->OfSpace(buffer.size_bytes, placing.begin, planned.end);
  row[PriorityActionColumn("space_rent")] = scale::Price(space);
  row[PriorityActionColumn("channel_rent")] = scale::Price(channel);
  row[PriorityActionColumn("profit")] = scale::Profit(saved_ps, space + channel);
}

void PriorityObserver::WriteOccupancy(const Sums& sums, float* out) const {
  const int columns = options_.columns(), cells = options_.address_cells;
  for (int cell = 0; cell < cells; ++cell) {
    int64_t taken = 0;
    for (int i = cell; i < columns * cells; i += cells) {
      taken += sums.occupancy[i];
      out[i] = Clamped(ShareOfUnits(taken));
    }
  }
}

void PriorityObserver::WriteIdle(const PriorityState& state, const Sums& sums, float* out) const {
  const int columns = options_.columns();
  absl::InlinedVector<double, 64> left(columns);  // of idle time, less what is due
  for (const auto& [column, begin, end, share] : idle_ticks_) {
    const int64_t free = state.FreePs(begin, end) * tables_.arrangement.passes[begin];
    left[column] += share * static_cast<double>(free);
  }
  const double per_column =
      columns / static_cast<double>(std::max<int64_t>(1, game_.all_main_ps()));
  for (int column = 0; column < columns; ++column) {
    const double idle = left[column] + static_cast<double>(sums.due[column]);
    out[2 * column] = std::clamp(static_cast<float>(idle * per_column), -1.0F, 1.0F);
    out[2 * column + 1] = std::clamp(static_cast<float>(left[column] * per_column), -1.0F, 1.0F);
  }
}

void PriorityObserver::WriteDemand(const Sums& sums, float* out) const {
  int64_t taken = 0, wanted = 0;
  for (int column = 0; column < options_.columns(); ++column) {
    taken += sums.taken[column];
    wanted += sums.wanted[column];
    out[2 * column] = Clamped(ShareOfUnits(taken));
    const float wish = std::max(0.0F, ShareOfUnits(wanted));
    out[2 * column + 1] = wish / (1.0F + wish);
  }
}

void PriorityObserver::WriteScalars(const PriorityState& state, const Pressure& pressure,
                                    float* out) const {
  const Hardware& hardware = game_.hardware();
  const int64_t all_main_ps = game_.all_main_ps();
  const auto runs = static_cast<int64_t>(tables_.runs.size());
  const int32_t first = state.candidates()[0];
  out[PriorityScalarColumn("progress")] = Share(state.num_decisions(), game_.max_decisions());
  out[PriorityScalarColumn("return")] = Share(all_main_ps - state.latency_ps(), all_main_ps);
  out[PriorityScalarColumn("stalled")] = Share(state.stall_ps(), all_main_ps);
  out[PriorityScalarColumn("taken")] =
      static_cast<float>(pressure.taken.before[kPieces] / static_cast<double>(kPieces));
  out[PriorityScalarColumn("residences")] =
      Count(static_cast<int64_t>(state.arrangement().placed().size()) + 1);
  out[PriorityScalarColumn("open")] = Count(state.num_open() + 1);
  out[PriorityScalarColumn("rank")] = first < 0 ? 1.0F : Share(first, runs);
  out[PriorityScalarColumn("preloads_left")] =
      Share(hardware.max_preloads - state.arrangement().preloads(), hardware.max_preloads);
  out[PriorityScalarColumn("capacity")] = Bytes(game_.usable_bytes());
  out[PriorityScalarColumn("runs")] = Count(runs + 1);
  out[PriorityScalarColumn("all_main")] = Time(all_main_ps);
  out[PriorityScalarColumn("priced")] = prices_ != nullptr;
}

}  // namespace mallocgame
