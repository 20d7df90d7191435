#include "mallocgame/game/observation.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/game/feature_scale.h"
#include "mallocgame/game/tables.h"

namespace mallocgame {
namespace {

using scale::Bytes;
using scale::Count;
using scale::Ratio;
using scale::Share;
using scale::Ticks;
using scale::Time;

// The numbers of a row that change during a game come last.
enum AccessColumn {
  kPresent,
  kRead,
  kUpdate,
  kWrite,
  kLoopEntry,
  kShare,
  kBytes,
  kCopyTime,
  kTrips,
  kSaving,
  kRestSaving,
  kSavingPerCopy,
  kIdleBefore,
  kToPrevious,
  kToNext,
  kToLast,
  kAccessesLeft,
  kFirst,
  kParameter,
  kOutput,
  kUndefined,
  kPlainCopy,
  kKeepable,
  kStaticColumns,
  kDistance = kStaticColumns,
  kFast,
  kResident,
  kInMain,
  kForced,
  kAccessColumns,
};

constexpr Feature kAccessFeatures[kAccessColumns] = {
    {"present", "1; 0: there is no such access, and all else is 0"},
    {"is_read", "0 or 1"},
    {"is_update", "0 or 1"},
    {"is_write", "0 or 1"},
    {"is_loop_entry", "0 or 1"},
    {"share", "size of the buffer / capacity of fast memory"},
    {"bytes", "bytes(size of the buffer)"},
    {"copy_time", "time(one transfer of the buffer)"},
    {"trips", "log2(how often the access runs) / 16"},
    {"saving",
     "time(saved by serving this access alone from fast memory, all trips); at a loop's entry, "
     "those inside"},
    {"rest_saving",
     "time(saved by serving each later access of the buffer alone from fast memory)"},
    {"saving_per_copy", "s / (|s| + c): s saving a trip, c one transfer"},
    {"idle_before",
     "x / (x + c): x idle time that is certain since the buffer's previous access, c one transfer"},
    {"to_previous", "ticks(since the buffer's previous access); 1 if none"},
    {"to_next", "ticks(to the buffer's next access); 1 if none"},
    {"to_last", "ticks(to the buffer's last access)"},
    {"accesses_left", "log2(1 + later accesses of the buffer) / 16"},
    {"is_first", "the buffer's first access"},
    {"is_parameter", "an entry parameter: may be preloaded"},
    {"is_output", "its last value must be in main memory at the end"},
    {"is_undefined", "no value before the first write"},
    {"plain_copy", "a write that a transfer may replace"},
    {"keepable", "NoCopy may keep it to its last access"},
    {"distance", "ticks(from now), negative before"},
    {"fast", "decided: served from fast memory"},
    {"resident", "the buffer is in fast memory after now"},
    {"in_main", "the value is in main memory now"},
    {"forced", "follows from an earlier decision, not asked"},
};

enum ActionColumn {
  kLegal,
  kSaved,
  kStall,
  kLead,
  kStay,
  kOffset,
  kTransfer,
  kExtend,
  kPreload,
  kWriteBack,
  kActionColumns,
};

constexpr Feature kActionFeatures[kActionColumns] = {
    {"legal", "0 or 1; if 0, all else is 0"},
    {"saved",
     "time(saved at this instruction less the copy's stall, all trips); what is forced later isn't "
     "counted"},
    {"stall", "time(waited for the copy, one trip)"},
    {"lead", "ticks(from the residence's begin to now)"},
    {"stay", "ticks(from now to the residence's end)"},
    {"offset", "offset of the residence / capacity"},
    {"transfer", "books a prefetch"},
    {"extend", "keeps the previous access's residence"},
    {"preload", "takes a preload"},
    {"write_back", "books a write-back"},
};

enum ScalarColumn {
  kProgress,
  kTime,
  kReturn,
  kStalled,
  kTaken,
  kLargestFree,
  kPreloadsLeft,
  kBacklog,
  kPrefetches,
  kWriteBacks,
  kCapacity,
  kDecisions,
  kAllMain,
  kScalarColumns,
};

constexpr Feature kScalarFeatures[kScalarColumns] = {
    {"progress", "decisions passed / all"},
    {"time", "tick / ticks"},
    {"return", "1 - latency / all-main latency so far"},
    {"stalled", "stalls / all-main latency"},
    {"taken", "share of fast memory that is taken now"},
    {"largest_free", "the largest range free from now on / capacity"},
    {"preloads_left", "share of the preloads"},
    {"backlog", "time(copies booked and not served yet)"},
    {"prefetches", "copies to fast memory under way now / the most allowed"},
    {"write_backs", "copies to main memory under way now / the most allowed"},
    {"capacity", "bytes(capacity of fast memory)"},
    {"decisions", "ticks(accesses the game can ask about)"},
    {"all_main", "time(all-main latency)"},
};

bool InRange(int value, int low, int high) { return low <= value && value <= high; }

absl::Status CheckOptions(const ObservationOptions& options) {
  const auto check = [](const char* name, int value, int low, int high) {
    if (InRange(value, low, high)) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("observation: ", name, ": found ", value, ", allowed: ", low, " to ", high));
  };
  MG_RETURN_IF_ERROR(check("neighbours", options.neighbours, 0, 1024));
  MG_RETURN_IF_ERROR(check("ticks_back", options.ticks_back, 0, 4096));
  MG_RETURN_IF_ERROR(check("ticks_ahead", options.ticks_ahead, 0, 4096));
  MG_RETURN_IF_ERROR(check("ticks_per_column", options.ticks_per_column, 1, 65536));
  return check("address_cells", options.address_cells, 0, 4096);
}

}  // namespace

absl::Span<const Feature> AccessFeatures() { return kAccessFeatures; }
absl::Span<const Feature> ActionFeatures() { return kActionFeatures; }
absl::Span<const Feature> ScalarFeatures() { return kScalarFeatures; }

std::vector<ObservationPart> ObservationLayout(const ObservationOptions& options, int num_actions) {
  std::vector<ObservationPart> parts;
  int offset = 0;
  const auto add = [&](const char* name, std::vector<int> shape) {
    int size = 1;
    for (int length : shape) size *= length;
    if (size == 0) return;
    parts.push_back({name, offset, std::move(shape)});
    offset += size;
  };
  add("accesses", {2 * options.neighbours + 1, kAccessColumns});
  add("actions", {num_actions, kActionColumns});
  add("occupancy", {options.columns(), options.address_cells});
  add("idle", {options.columns(), 2});
  add("scalars", {kScalarColumns});
  add("action_mask", {num_actions});
  return parts;
}

absl::StatusOr<Observer> Observer::Create(std::shared_ptr<const Game> game,
                                          const ObservationOptions& options) {
  MG_RETURN_IF_ERROR(CheckOptions(options));
  return Observer(std::move(game), options);
}

Observer::Observer(std::shared_ptr<const Game> game, const ObservationOptions& options)
    : game_(std::move(game)), options_(options) {
  for (const ObservationPart& part : ObservationLayout(options_, game_->num_actions())) {
    int length = 1;
    for (int n : part.shape) length *= n;
    size_ = part.offset + length;
  }
  MakeRows();
}

void Observer::MakeRows() {
  const GameTables& tables = *game_->tables_;
  const Program& program = game_->program();
  const size_t margin = options_.neighbours;
  rows_.assign((tables.decisions.size() + 2 * margin) * kAccessColumns, 0.0F);

  std::vector<int64_t> own(tables.decisions.size()), rest(tables.decisions.size()),
      left(tables.decisions.size());
  std::vector<Tick> previous(tables.decisions.size(), -1);
  for (size_t i = tables.decisions.size(); i-- > 0;) {
    const Decision& d = tables.decisions[i];
    const auto price = [&](uint64_t placement) {
      const InstructionPrices& prices = tables.instructions[d.tick];
      if (prices.bits == kFreeBits) return int64_t{0};
      if (prices.bits <= kMaxTableBits) return tables.prices[prices.first + placement].time_ps;
      return tables.PriceOf(game_->cost_model(), program, d.tick, placement).time_ps;
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
    if (d.kind == AccessKind::kLoopEntry) {
      for (int32_t n = d.next; n >= 0 && tables.decisions[n].tick < d.loop_exit;
           n = tables.decisions[n].next) {
        saving += own[n];
      }
    }
    const Tick last = program.access(program.accesses_of(b.id).back()).tick;
    const std::vector<int64_t>& idle = tables.certain_idle_before;
    float* row = rows_.data() + (i + margin) * kAccessColumns;
    row[kPresent] = 1.0F;
    row[kRead + static_cast<int>(d.kind)] = 1.0F;
    row[kShare] = Share(b.size_bytes, game_->usable_bytes());
    row[kBytes] = Bytes(b.size_bytes);
    row[kCopyTime] = Time(b.copy_ps);
    row[kTrips] = Count(program.trips(d.tick));
    row[kSaving] = Time(saving);
    row[kRestSaving] = Time(rest[i]);
    row[kSavingPerCopy] = Ratio(saving / std::max<int64_t>(1, program.trips(d.tick)), b.copy_ps);
    row[kIdleBefore] = Ratio(idle[d.tick] - idle[std::max(0, previous[i])], b.copy_ps);
    row[kToPrevious] = previous[i] < 0 ? 1.0F : Ticks(d.tick - previous[i]);
    row[kToNext] = d.next < 0 ? 1.0F : Ticks(tables.decisions[d.next].tick - d.tick);
    row[kToLast] = Ticks(last - d.tick);
    row[kAccessesLeft] = Count(left[i] + 1);
    row[kFirst] = d.first;
    row[kParameter] = b.preloadable;
    row[kOutput] = buffer.is_output;
    row[kUndefined] = b.undefined;
    row[kPlainCopy] = d.source >= 0;
    row[kKeepable] = d.pin_end != kNever;
  }
}

void Observer::Write(const State& state, float* out) const {
  const size_t actions = game_->num_actions();
  const auto decisions = static_cast<int64_t>(game_->tables_->decisions.size());
  WriteAccesses(state, state.cursor_ < 0 ? decisions : state.cursor_, out);
  out += (2 * options_.neighbours + 1) * kAccessColumns;
  WriteActions(state, out);
  out += actions * kActionColumns;
  if (options_.columns() > 0) {
    WriteOccupancy(state, out);
    out += static_cast<size_t>(options_.columns()) * static_cast<size_t>(options_.address_cells);
    WriteIdle(state, out);
    out += options_.columns() * 2;
  }
  WriteScalars(state, out);
  out += kScalarColumns;
  const unsigned mask = state.legal_mask();
  for (size_t a = 0; a < actions; ++a) out[a] = static_cast<float>(mask >> a & 1u);
}

void Observer::WriteAccesses(const State& state, int64_t middle, float* out) const {
  const GameTables& tables = *game_->tables_;
  const int64_t count = 2 * options_.neighbours + 1,
                decisions = static_cast<int64_t>(tables.decisions.size());
  // At the end the middle row is one behind the last decision: the zeros there may be one row
  // short.
  const int64_t rows =
      std::min(count, decisions + options_.neighbours - middle + options_.neighbours);
  std::memcpy(out, rows_.data() + middle * kAccessColumns,
              static_cast<size_t>(rows * kAccessColumns) * sizeof(float));
  std::fill(out + rows * kAccessColumns, out + count * kAccessColumns, 0.0F);
  const int64_t first = middle - options_.neighbours;
  const Tick now = state.tick();
  for (int64_t i = std::max<int64_t>(0, first); i < std::min(decisions, first + count); ++i) {
    const Decision& d = tables.decisions[i];
    const State::BufferState& b = state.buffers_[d.buffer];
    float* row = out + (i - first) * kAccessColumns;
    row[kDistance] = Ticks(d.tick - now);
    const uint64_t placement = state.placements_[d.tick];
    const bool replaced = IsReplaced(tables.instructions[d.tick], placement);
    row[kFast] =
        replaced ? static_cast<float>(d.source >= 0) : static_cast<float>(placement >> d.bit & 1u);
    row[kResident] = b.resident_end > now;
    row[kInMain] = b.has_value && b.main_since <= now;
    row[kForced] = d.tick >= now && d.tick < b.forced_until;
  }
}

void Observer::WriteActions(const State& state, float* out) const {
  std::fill(out, out + game_->num_actions() * kActionColumns, 0.0F);
  const unsigned mask = state.legal_mask();
  if (mask == 0) return;
  const GameTables& tables = *game_->tables_;
  const Decision& d = state.current();
  const Tick now = state.tick();
  const int64_t trips = tables.instructions[d.tick].trips;
  const uint64_t placement = state.placements_[d.tick];
  // The same for all actions but for those that replace a plain copy.
  const int64_t main_ps = state.PriceAt(d.tick, placement).time_ps;
  const bool taken_over = IsReplaced(tables.instructions[d.tick], placement);
  const int64_t fast_ps =
      taken_over ? main_ps : state.PriceAt(d.tick, placement | uint64_t{1} << d.bit).time_ps;
  for (int a = 0; a < game_->num_actions(); ++a) {
    if ((mask >> a & 1u) == 0) continue;
    float* row = out + a * kActionColumns;
    row[kLegal] = 1.0F;
    if (a == static_cast<int>(Action::kDrop)) continue;
    const State::Option& option = state.options_[a];
    int64_t saved = main_ps - fast_ps;
    if (option.transfer) {
      if (const Decision* replaced = state.ReplacedWrite(d); replaced == &d) {
        saved = main_ps;
      } else if (replaced != nullptr) {
        saved += state.PriceAt(replaced->tick, 0).time_ps;
      }
      saved -= option.window.stall_ps;
      row[kStall] = Time(option.window.stall_ps);
    }
    row[kSaved] = Time(saved * trips);
    const Tick end = option.end == kNever ? game_->program().ticks() : option.end;
    row[kLead] = option.extend ? 0.0F : Ticks(now - option.begin);
    row[kStay] = Ticks(end - now);
    row[kOffset] = Share(option.extend ? state.buffers_[d.buffer].offset : option.offset,
                         game_->usable_bytes());
    row[kTransfer] = option.transfer;
    row[kExtend] = option.extend;
    row[kPreload] = option.preload;
    row[kWriteBack] = option.write_back_end != 0;
  }
}

// Each piece of memory adds its share to the last column it is taken in; the sums from the right
// are the picture.
void Observer::WriteOccupancy(const State& state, float* out) const {
  const int columns = options_.columns(), cells = options_.address_cells;
  if (cells == 0) return;
  std::fill(out, out + columns * cells, 0.0F);
  const auto per_cell = static_cast<float>(cells) /
                        static_cast<float>(std::max<int64_t>(1, state.memory_.capacity()));
  const auto pieces = state.memory_.pieces();
  const int64_t now = state.tick(), width = options_.ticks_per_column;
  float begin = 0.0F;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const bool last = i + 1 == pieces.size();
    const float end =
        last ? static_cast<float>(cells) : static_cast<float>(pieces[i + 1].offset) * per_cell;
    // ticks from the first column's on
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
  // Adding up in floats may leave a trifle above the whole.
  for (int i = 0; i < columns * cells; ++i) out[i] = std::min(out[i], 1.0F);
}

void Observer::WriteIdle(const State& state, float* out) const {
  const GameTables& tables = *game_->tables_;
  const CopyWindows& windows = state.windows_;
  const int64_t now = windows.now(), ticks = game_->program().ticks(),
                width = options_.ticks_per_column;
  const int64_t unit =
      state.IsTerminal() ? tables.shortest_copy_ps : tables.buffers[state.current().buffer].copy_ps;
  // Backwards from now: the free time is what lies behind the last booked copy, then the gaps from
  // the last on.
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

void Observer::WriteScalars(const State& state, float* out) const {
  const GameTables& tables = *game_->tables_;
  const Hardware& hardware = game_->hardware();
  const auto decisions = static_cast<int64_t>(tables.decisions.size());
  const Tick now = state.tick(), ticks = game_->program().ticks();
  int64_t taken = 0, free = 0, largest_free = 0;
  const auto pieces = state.memory_.pieces();
  for (size_t i = 0; i < pieces.size(); ++i) {
    const int64_t size = (i + 1 < pieces.size() ? pieces[i + 1].offset : state.memory_.capacity()) -
                         pieces[i].offset;
    const bool is_free = pieces[i].free_from <= now;
    taken += is_free ? 0 : size;
    free = is_free ? free + size : 0;
    largest_free = std::max(largest_free, free);
  }
  const auto under_way = [&](bool write_back, int32_t limit) {
    return now < ticks ? Share(state.under_way_[state.UnderWayAt(write_back, now)], limit) : 0.0F;
  };
  out[kProgress] = Share(state.cursor_ < 0 ? decisions : state.cursor_, decisions);
  out[kTime] = Share(now, ticks);
  out[kReturn] = Share(game_->all_main_ps() - state.latency_ps(), game_->all_main_ps());
  out[kStalled] = Share(state.stall_ps(), game_->all_main_ps());
  out[kTaken] = Share(taken, state.memory_.capacity());
  out[kLargestFree] = Share(largest_free, state.memory_.capacity());
  out[kPreloadsLeft] = Share(hardware.max_preloads - state.preloads(), hardware.max_preloads);
  out[kBacklog] =
      Time(std::max<int64_t>(0, state.windows_.booked_until_ps() - state.windows_.now_ps()));
  out[kPrefetches] = under_way(false, hardware.max_outstanding_prefetches);
  out[kWriteBacks] = under_way(true, hardware.max_outstanding_write_backs);
  out[kCapacity] = Bytes(game_->usable_bytes());
  out[kDecisions] = Ticks(decisions);
  out[kAllMain] = Time(game_->all_main_ps());
}

}  // namespace mallocgame
