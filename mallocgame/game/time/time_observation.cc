#include "mallocgame/game/time/time_observation.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string_view>
#include <utility>

#include "mallocgame/game/feature_scale.h"
#include "mallocgame/game/tables.h"
#include "mallocgame/game/time/time_game.h"

namespace mallocgame {
namespace {

using scale::Bytes;
using scale::Count;
using scale::Ratio;
using scale::Share;
using scale::Ticks;
using scale::Time;

// The four kinds stand in the order of AccessKind; what changes during a game comes last.
constexpr Feature kAccessFeatures[] = {
    {"present", "1; 0 if there is no such access, and then all else is 0"},
    {"is_read", "1 if it reads the buffer"},
    {"is_update", "1 if it updates the buffer in place"},
    {"is_write", "1 if it writes the buffer"},
    {"is_loop_entry", "1 if it is the entry of a loop that carries the buffer"},
    {"share", "size of the buffer / capacity of fast memory"},
    {"bytes", "bytes(size of the buffer)"},
    {"copy_time", "time(one transfer of the buffer)"},
    {"trips", "log2(how often the access runs) / 16"},
    {"saving",
     "time(saved by serving this access alone from fast memory, all trips); at a loop's entry, the "
     "sum over the accesses inside"},
    {"rest_saving",
     "time(sum over the later accesses of the buffer, each served alone from fast memory)"},
    {"saving_per_copy", "s / (|s| + c), where s is the saving of one trip and c one transfer"},
    {"idle_before",
     "x / (x + c), where x is the certain idle time since the buffer's previous access and c one "
     "transfer"},
    {"to_previous", "ticks(since the buffer's previous access); 1 if there is none"},
    {"to_next", "ticks(to the buffer's next access); 1 if there is none"},
    {"to_last", "ticks(to the buffer's last access)"},
    {"accesses_left", "log2(1 + later accesses of the buffer) / 16"},
    {"is_first", "1 if it is the buffer's first access"},
    {"is_parameter", "1 if the buffer is an entry parameter that may be preloaded"},
    {"is_output", "1 if the buffer's last value must be in main memory at the end"},
    {"is_undefined", "1 if the buffer has no value before its first write"},
    {"plain_copy", "1 if it is a write that a transfer may replace"},
    {"keepable", "1 if NoCopy may keep the buffer until its last access"},
    {"distance", "ticks(from now to the access), negative before now"},
    {"fast", "1 if it was decided to serve it from fast memory"},
    {"resident", "1 if the buffer is in fast memory after now"},
    {"in_main", "1 if the value is in main memory now"},
    {"forced", "1 if an earlier decision decides it too, so that the game does not ask"},
};

constexpr Feature kTimeActionFeatures[] = {
    {"legal", "1; 0 if the action is illegal, and then all else is 0"},
    {"saved",
     "time(what the action saves: at this instruction and at the accesses that it forces, less all "
     "stalls, all trips), which is its reward"},
    {"saved_here", "time(the part of it at this instruction, less the copy's stall)"},
    {"stall", "time(the stall for the copy, one trip)"},
    {"lead", "ticks(from the residence's begin to now)"},
    {"stay", "ticks(from now to the residence's end)"},
    {"offset", "offset of the residence / capacity"},
    {"transfer", "1 if it books a prefetch"},
    {"extend", "1 if it keeps the previous access's residence"},
    {"preload", "1 if it takes a preload"},
    {"eviction", "1 if it books an eviction"},
    {"space",
     "log2(1 + 2^32 x) / 32, where x is the share of all bytes of fast memory over all of the "
     "all-main time that the residence takes in addition"},
    {"demand",
     "x / (x + 1), where x is the mean share of fast memory that the accesses from this instruction"
     " on wish for while the residence lies there"},
    {"excess", "x / (x + 1), where x is the mean of the part of that share above 1"},
    {"contention",
     "x / (x + y), where x is the time of the prefetches that these accesses wish for in the "
     "windows of the action's copies, and y the idle time that is left there; 0 without a copy"},
    {"space_rent", "time(the price of the bytes and ticks that it takes); 0 if prices are unknown"},
    {"channel_rent", "time(the price of its copies); 0 if prices are unknown"},
    {"profit",
     "(s - r) / (|s| + r), where s is what the action saves and r the sum of both rents; 0 if "
     "prices are unknown"},
};

constexpr Feature kTimeScalarFeatures[] = {
    {"progress", "decisions passed / all decisions"},
    {"time", "current tick / ticks of the program"},
    {"return", "1 - latency so far / all-main latency"},
    {"stalled", "stalls so far / all-main latency"},
    {"taken", "share of fast memory that is taken now"},
    {"largest_free", "size of the largest range that is free from now on / capacity"},
    {"preloads_left", "share of the preloads that are left"},
    {"backlog", "time(the channel's idle time from now to the end of the last booked copy)"},
    {"prefetches", "copies to fast memory under way now / the most allowed"},
    {"evictions", "copies to main memory under way now / the most allowed"},
    {"capacity", "bytes(capacity of fast memory)"},
    {"decisions", "ticks(accesses the game can ask about)"},
    {"all_main", "time(all-main latency)"},
    {"priced", "1 if prices are known"},
};

consteval size_t AccessColumn(std::string_view name) { return ColumnOf(kAccessFeatures, name); }
consteval size_t TimeActionColumn(std::string_view name) {
  return ColumnOf(kTimeActionFeatures, name);
}
consteval size_t TimeScalarColumn(std::string_view name) {
  return ColumnOf(kTimeScalarFeatures, name);
}
constexpr int kAccessColumns = std::size(kAccessFeatures);
constexpr int kTimeActionColumns = std::size(kTimeActionFeatures);
constexpr int kTimeScalarColumns = std::size(kTimeScalarFeatures);

}  // namespace

std::vector<ObservationPart> TimeGameOptions::Layout(const ObservationOptions& options) const {
  std::vector<ObservationPart> layout;
  AddPart("accesses", {2 * options.neighbours + 1}, kAccessFeatures, &layout);
  AddPart("actions", {num_actions()}, kTimeActionFeatures, &layout);
  AddPart("occupancy", {options.columns(), options.address_cells}, {}, &layout);
  AddPart("idle", {options.columns(), 2}, {}, &layout);
  AddPart("scalars", {}, kTimeScalarFeatures, &layout);
  AddPart("action_mask", {num_actions()}, {}, &layout);
  return layout;
}

TimeObserver::TimeObserver(const Game& game, const ObservationOptions& options,
                           std::shared_ptr<const PriceSums> prices)
    : game_(&game), options_(options), prices_(std::move(prices)), demand_(game) {
  MakeRows();
}

void TimeObserver::MakeRows() {
  const GameTables& tables = game_->tables();
  const Program& program = game_->program();
  const size_t margin = options_.neighbours;
  rows_.assign((tables.decisions.size() + 2 * margin) * kAccessColumns, 0.0F);

  std::vector<int64_t> own(tables.decisions.size()), rest(tables.decisions.size()),
      left(tables.decisions.size());
  std::vector<Tick> previous(tables.decisions.size(), -1);
  for (size_t i = tables.decisions.size(); i-- > 0;) {
    const Decision& d = tables.decisions[i];
    const auto price = [&](uint64_t placement) {
      return tables.PriceAt(game_->cost_model(), d.tick, placement).time_ps;
    };
    own[i] = (price(0) - price(uint64_t{1} << d.bit)) * program.trips(d.tick);
    if (d.next < 0) continue;
    const size_t next = d.next;
    previous[next] = d.tick;
    rest[i] = rest[next] + own[next];
    left[i] = left[next] + 1;
  }
  for (size_t i = 0; i < tables.decisions.size(); ++i) {
    const Decision& d = tables.decisions[i];
    const GameBuffer& b = tables.buffers[d.buffer];
    const Buffer& buffer = program.buffer(b.id);
    int64_t saving = own[i];
    for (int32_t n = d.next; n >= 0 && tables.decisions[n].tick < d.covered_until;
         n = tables.decisions[n].next) {
      saving += own[n];
    }
    const Tick last = program.access(program.accesses_of(b.id).back()).tick;
    const std::vector<int64_t>& idle = tables.certain_idle_before;
    float* row = rows_.data() + (i + margin) * kAccessColumns;
    row[AccessColumn("present")] = 1.0F;
    row[AccessColumn("is_read") + static_cast<int>(d.kind)] = 1.0F;
    row[AccessColumn("share")] = Share(b.size_bytes, game_->usable_bytes());
    row[AccessColumn("bytes")] = Bytes(b.size_bytes);
    row[AccessColumn("copy_time")] = Time(b.copy_ps);
    row[AccessColumn("trips")] = Count(program.trips(d.tick));
    row[AccessColumn("saving")] = Time(saving);
    row[AccessColumn("rest_saving")] = Time(rest[i]);
    row[AccessColumn("saving_per_copy")] =
        Ratio(saving / std::max<int64_t>(1, program.trips(d.tick)), b.copy_ps);
    row[AccessColumn("idle_before")] =
        Ratio(idle[d.tick] - idle[std::max(0, previous[i])], b.copy_ps);
    row[AccessColumn("to_previous")] = previous[i] < 0 ? 1.0F : Ticks(d.tick - previous[i]);
    row[AccessColumn("to_next")] =
        d.next < 0 ? 1.0F : Ticks(tables.decisions[d.next].tick - d.tick);
    row[AccessColumn("to_last")] = Ticks(last - d.tick);
    row[AccessColumn("accesses_left")] = Count(left[i] + 1);
    row[AccessColumn("is_first")] = d.first;
    row[AccessColumn("is_parameter")] = b.preloadable;
    row[AccessColumn("is_output")] = buffer.is_output;
    row[AccessColumn("is_undefined")] = b.undefined;
    row[AccessColumn("plain_copy")] = d.source >= 0;
    row[AccessColumn("keepable")] = d.pin_end != kNever;
  }
}

void TimeObserver::Write(const Position& position, float* out) const {
  const auto& state = static_cast<const State&>(position);
  const ActionSet legal = state.legal_actions();
  const StateView view = state.view();
  const size_t actions = game_->num_actions();
  const auto decisions = static_cast<int64_t>(game_->tables().decisions.size());
  WriteAccesses(view, view.decision < 0 ? decisions : view.decision, out);
  out += (2 * options_.neighbours + 1) * kAccessColumns;
  WriteActions(state, view, out);
  out += actions * kTimeActionColumns;
  if (options_.columns() > 0) {
    WriteOccupancy(view, out);
    out += static_cast<size_t>(options_.columns()) * static_cast<size_t>(options_.address_cells);
    WriteIdle(view, out);
    out += options_.columns() * 2;
  }
  WriteScalars(state, view, out);
  out += kTimeScalarColumns;
  for (size_t a = 0; a < actions; ++a) out[a] = legal.Has(static_cast<int>(a)) ? 1.0F : 0.0F;
}

void TimeObserver::WriteAccesses(const StateView& view, int64_t middle, float* out) const {
  const GameTables& tables = game_->tables();
  const int64_t count = 2 * options_.neighbours + 1,
                decisions = static_cast<int64_t>(tables.decisions.size());
  // At the end the middle row is the one after the last decision, so the rows of zeros may be one
  // too few.
  const int64_t rows =
      std::min(count, decisions + options_.neighbours - middle + options_.neighbours);
  std::memcpy(out, rows_.data() + middle * kAccessColumns,
              static_cast<size_t>(rows * kAccessColumns) * sizeof(float));
  std::fill(out + rows * kAccessColumns, out + count * kAccessColumns, 0.0F);
  const int64_t first = middle - options_.neighbours;
  const Tick now = view.windows.now();
  for (int64_t i = std::max<int64_t>(0, first); i < std::min(decisions, first + count); ++i) {
    const Decision& d = tables.decisions[i];
    const BufferState& b = view.buffers[d.buffer];
    float* row = out + (i - first) * kAccessColumns;
    row[AccessColumn("distance")] = Ticks(d.tick - now);
    const uint64_t placement = view.placements[d.tick];
    const bool replaced = IsReplaced(tables.instructions[d.tick], placement);
    row[AccessColumn("fast")] =
        replaced ? static_cast<float>(d.source >= 0) : static_cast<float>(placement >> d.bit & 1u);
    row[AccessColumn("resident")] = b.resident_end > now;
    row[AccessColumn("in_main")] = b.has_value && b.main_since <= now;
    row[AccessColumn("forced")] = d.tick >= now && d.tick < b.forced_until;
  }
}

void TimeObserver::WriteActions(const State& state, const StateView& view, float* out) const {
  const ActionSet legal = state.feasible_actions();
  std::fill(out, out + game_->num_actions() * kTimeActionColumns, 0.0F);
  if (legal.empty()) return;
  const GameTables& tables = game_->tables();
  const Decision& d = tables.decisions[view.decision];
  const auto time_ps = [&](Tick tick, uint64_t placement) {
    return tables.PriceAt(game_->cost_model(), tick, placement).time_ps;
  };
  const Tick now = view.windows.now();
  const int64_t trips = tables.instructions[d.tick].trips;
  const uint64_t placement = view.placements[d.tick];
  // These hold for all actions but those that replace a plain copy.
  const int64_t main_ps = time_ps(d.tick, placement);
  const bool taken_over = IsReplaced(tables.instructions[d.tick], placement);
  const int64_t fast_ps = taken_over ? main_ps : time_ps(d.tick, placement | uint64_t{1} << d.bit);
  for (const int a : legal) {
    float* row = out + a * kTimeActionColumns;
    const int64_t saved = state.SavingOf(a);
    row[TimeActionColumn("legal")] = 1.0F;
    row[TimeActionColumn("saved")] = Time(saved);
    const ActionEffect& effect = view.effects[a];
    if (prices_ != nullptr) WriteRent(d, effect, saved, row);
    if (a == static_cast<int>(Action::kDrop)) continue;
    int64_t saved_here = main_ps - fast_ps;
    if (effect.transfer) {
      if (const Decision* replaced = tables.ReplacedWrite(d, view.placements); replaced == &d) {
        saved_here = main_ps;
      } else if (replaced != nullptr) {
        saved_here += time_ps(replaced->tick, 0);
      }
      saved_here -= effect.window.stall_ps;
      row[TimeActionColumn("stall")] = Time(effect.window.stall_ps);
    }
    row[TimeActionColumn("saved_here")] = Time(saved_here * trips);
    row[TimeActionColumn("lead")] = effect.extend ? 0.0F : Ticks(now - effect.begin);
    row[TimeActionColumn("stay")] = Ticks(effect.end - now);
    row[TimeActionColumn("offset")] =
        Share(effect.extend ? view.buffers[d.buffer].offset : effect.offset, game_->usable_bytes());
    row[TimeActionColumn("transfer")] = effect.transfer;
    row[TimeActionColumn("extend")] = effect.extend;
    row[TimeActionColumn("preload")] = effect.preload;
    row[TimeActionColumn("eviction")] = effect.eviction_end != 0;
    WriteDemand(view, d, effect, row);
  }
}

void TimeObserver::WriteDemand(const StateView& view, const Decision& d, const ActionEffect& effect,
                               float* row) const {
  const GameTables& tables = game_->tables();
  const Tick now = d.tick, begin = std::min(now, effect.begin);
  // The window of a prefetch begins with the residence and ends at now.
  const Demand::Wanted before = demand_.Over(begin, now, now);
  Demand::Wanted wanted = demand_.Over(std::max(now, effect.begin), effect.end, now);
  wanted += before;
  const double length = demand_.position(effect.end) - demand_.position(effect.begin);
  const double share = static_cast<double>(tables.buffers[d.buffer].size_bytes) /
                       static_cast<double>(std::max<int64_t>(1, game_->usable_bytes()));
  row[TimeActionColumn("space")] = scale::Space(share * length);
  if (length > 0) {
    row[TimeActionColumn("demand")] = scale::Part(wanted.space, length);
    row[TimeActionColumn("excess")] = scale::Part(wanted.excess, length);
  }
  double copy_ps = 0, idle_ps = 0;
  if (effect.transfer) {
    copy_ps += before.copy_ps;
    idle_ps += static_cast<double>(view.windows.FreePs(effect.window.begin));
  }
  if (effect.eviction_end != 0) {
    const Tick from = d.UsedUntil(), until = effect.eviction_end;
    copy_ps += demand_.Over(from, until, now).copy_ps;
    idle_ps +=
        static_cast<double>(tables.certain_idle_before[until] - tables.certain_idle_before[from]);
  }
  if (copy_ps > 0) row[TimeActionColumn("contention")] = scale::Part(copy_ps, idle_ps);
}

void TimeObserver::WriteRent(const Decision& d, const ActionEffect& effect, int64_t saved,
                             float* row) const {
  const GameBuffer& buffer = game_->tables().buffers[d.buffer];
  double channel = 0;
  if (effect.transfer)
    channel += prices_->OfCopy(buffer.copy_ps, effect.window.begin, effect.window.end);
  if (effect.eviction_end != 0)
    channel += prices_->OfCopy(buffer.copy_ps, d.UsedUntil(), effect.eviction_end);
  const double space = prices_->OfSpace(buffer.size_bytes, effect.begin, effect.end);
  row[TimeActionColumn("space_rent")] = scale::Price(space);
  row[TimeActionColumn("channel_rent")] = scale::Price(channel);
  row[TimeActionColumn("profit")] = scale::Profit(saved, space + channel);
}

// Each piece of memory adds its share to the last column in which it is taken. Then the columns are
// summed up from the right.
void TimeObserver::WriteOccupancy(const StateView& view, float* out) const {
  const int columns = options_.columns(), cells = options_.address_cells;
  if (cells == 0) return;
  std::fill(out, out + columns * cells, 0.0F);
  const auto per_cell =
      static_cast<float>(cells) / static_cast<float>(std::max<int64_t>(1, view.memory.capacity()));
  const auto pieces = view.memory.pieces();
  const int64_t now = view.windows.now(), width = options_.ticks_per_column;
  float begin = 0.0F;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const bool last = i + 1 == pieces.size();
    const float end =
        last ? static_cast<float>(cells) : static_cast<float>(pieces[i + 1].offset) * per_cell;
    // How many ticks, from the first column's first on, it is taken.
    const int64_t taken = pieces[i].free_from - now + options_.ticks_back * width;
    if (taken > 0 && end > begin) {
      float* row = out + (std::min<int64_t>(columns, (taken + width - 1) / width) - 1) * cells;
      int cell = std::min(static_cast<int>(begin), cells - 1);
      const int last_cell = std::min(static_cast<int>(end), cells - 1);
      if (cell == last_cell) {
        row[cell] += end - begin;
      } else {
        row[cell] += static_cast<float>(cell + 1) - begin;
        while (++cell < last_cell) row[cell] += 1.0F;
        row[cell] += end - static_cast<float>(cell);
      }
    }
    begin = end;
  }
  for (int c = columns - 2; c >= 0; --c) {
    float* row = out + c * cells;
    for (int a = 0; a < cells; ++a) row[a] += row[a + cells];
  }
  // A sum of floats may be a little above 1.
  for (int i = 0; i < columns * cells; ++i) out[i] = std::min(out[i], 1.0F);
}

void TimeObserver::WriteIdle(const StateView& view, float* out) const {
  const GameTables& tables = game_->tables();
  const CopyWindows& windows = view.windows;
  const int64_t now = windows.now(), ticks = game_->program().ticks(),
                width = options_.ticks_per_column;
  const int64_t unit = view.decision < 0
                           ? tables.shortest_copy_ps
                           : tables.buffers[tables.decisions[view.decision].buffer].copy_ps;
  // Goes backwards from now: the free time is what lies behind the last booked copy, then the gaps,
  // the last one first.
  const auto gaps = windows.gaps();
  size_t gap = gaps.size();
  CopyWindows::Gap free = {std::min(windows.booked_until_ps(), windows.now_ps()), windows.now_ps()};
  for (int64_t c = options_.ticks_back - 1, end = now; c >= 0; --c, end -= width) {
    float* column = out + c * 2;
    column[0] = column[1] = 0.0F;
    if (end <= 0) continue;
    const int64_t until = windows.service_ps(static_cast<Tick>(end));
    column[0] = Ratio(
        until - windows.service_ps(static_cast<Tick>(std::max<int64_t>(0, end - width))), unit);
    const int64_t since = windows.service_ps(
        static_cast<Tick>(std::max<int64_t>(windows.segment_begin(), end - width)));
    int64_t left = 0;
    while (true) {
      left += std::max<int64_t>(0, std::min(free.end, until) - std::max(free.begin, since));
      if (free.begin <= since || gap == 0) break;
      free = gaps[--gap];
    }
    column[1] = Ratio(left, unit);
  }
  int64_t backlog = std::max<int64_t>(0, windows.booked_until_ps() - windows.now_ps());
  for (int64_t c = 0; c < options_.ticks_ahead; ++c) {
    const size_t begin = std::min(ticks, now + c * width);
    const size_t end = std::min(ticks, now + (c + 1) * width);
    const int64_t idle = tables.certain_idle_before[end] - tables.certain_idle_before[begin];
    const int64_t used = std::min(idle, backlog);
    backlog -= used;
    float* column = out + (options_.ticks_back + c) * 2;
    column[0] = Ratio(idle, unit);
    column[1] = Ratio(idle - used, unit);
  }
}

void TimeObserver::WriteScalars(const State& state, const StateView& view, float* out) const {
  const GameTables& tables = game_->tables();
  const Hardware& hardware = game_->hardware();
  const auto decisions = static_cast<int64_t>(tables.decisions.size());
  const Tick now = state.tick(), ticks = game_->program().ticks();
  int64_t taken = 0, free = 0, largest_free = 0;
  const auto pieces = view.memory.pieces();
  for (size_t i = 0; i < pieces.size(); ++i) {
    const int64_t size =
        (i + 1 < pieces.size() ? pieces[i + 1].offset : view.memory.capacity()) - pieces[i].offset;
    const bool is_free = pieces[i].free_from <= now;
    taken += is_free ? 0 : size;
    free = is_free ? free + size : 0;
    largest_free = std::max(largest_free, free);
  }
  const auto under_way = [&](absl::Span<const uint8_t> counts, int32_t limit) {
    return now < ticks ? Share(counts[now], limit) : 0.0F;
  };
  out[TimeScalarColumn("progress")] =
      Share(view.decision < 0 ? decisions : view.decision, decisions);
  out[TimeScalarColumn("time")] = Share(now, ticks);
  out[TimeScalarColumn("return")] =
      Share(game_->all_main_ps() - state.latency_ps(), game_->all_main_ps());
  out[TimeScalarColumn("stalled")] = Share(state.stall_ps(), game_->all_main_ps());
  out[TimeScalarColumn("taken")] = Share(taken, view.memory.capacity());
  out[TimeScalarColumn("largest_free")] = Share(largest_free, view.memory.capacity());
  out[TimeScalarColumn("preloads_left")] =
      Share(hardware.max_preloads - state.preloads(), hardware.max_preloads);
  out[TimeScalarColumn("backlog")] =
      Time(std::max<int64_t>(0, view.windows.booked_until_ps() - view.windows.now_ps()));
  out[TimeScalarColumn("prefetches")] =
      under_way(view.prefetches, hardware.max_outstanding_prefetches);
  out[TimeScalarColumn("evictions")] =
      under_way(view.evictions, hardware.max_outstanding_evictions);
  out[TimeScalarColumn("capacity")] = Bytes(game_->usable_bytes());
  out[TimeScalarColumn("decisions")] = Ticks(decisions);
  out[TimeScalarColumn("all_main")] = Time(game_->all_main_ps());
  out[TimeScalarColumn("priced")] = prices_ != nullptr;
}

}  // namespace mallocgame
