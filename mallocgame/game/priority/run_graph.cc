#include "mallocgame/game/priority/run_graph.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string_view>

namespace mallocgame {
namespace {

constexpr int kPieces = RunGraph::kPieces;

float Log(double x, double least) { return static_cast<float>(std::log(std::max(x, least))); }
float Clamp(float x, float most) { return std::clamp(x, -most, most); }

// An interval of ticks without any time is given a little, at its place.
constexpr float kLeastPiece = 1e-3f;
void Widen(float& begin, float& end) {
  begin = std::clamp(begin, 0.0f, kPieces - kLeastPiece);
  end = std::clamp(end, begin + kLeastPiece, static_cast<float>(kPieces));
}

// Adds `height` over [begin, end) to a function of the pieces.
void Add(float* pieces, float begin, float end, float height) {
  for (int p = static_cast<int>(begin); p < kPieces && static_cast<float>(p) < end; ++p) {
    const float from = std::max(begin, static_cast<float>(p));
    const float to = std::min(end, static_cast<float>(p + 1));
    pieces[p] += height * (to - from);
  }
}

// The mean over [begin, end), and the largest value that it meets.
std::pair<float, float> MeanAndMost(const float* pieces, float begin, float end) {
  float sum = 0, most = 0;
  for (int p = static_cast<int>(begin); p < kPieces && static_cast<float>(p) < end; ++p) {
    const float from = std::max(begin, static_cast<float>(p));
    const float to = std::min(end, static_cast<float>(p + 1));
    sum += pieces[p] * (to - from);
    most = std::max(most, pieces[p]);
  }
  return {sum / (end - begin), most};
}

consteval size_t Column(std::string_view name) { return ColumnOf(kRunFeatures, name); }

constexpr int kFeatures = RunGraph::kFeatures;

// Fills a graph in three steps: each run by itself, all whole lives together, and the features,
// which tell how each run stands to the others.
class Describing {
 public:
  Describing(const PriorityTables& tables, RunGraph& graph)
      : tables_(tables), arrangement_(tables.arrangement), graph_(graph),
        all_main_(static_cast<double>(std::max<int64_t>(1, arrangement_.game.all_main_ps()))),
        run_of_(tables.runs.size()), saving_(tables.runs.size()), held_(tables.runs.size()),
        idle_(tables.runs.size()), whole_(tables.runs.size()) {
    for (const Run& run : tables.runs) run_of_[run.id] = &run;
    for (const int32_t root : tables.roots) whole_[tables.runs[root].id] = 1;
    for (auto* column :
         {&graph.begin, &graph.end, &graph.fetch_begin, &graph.need, &graph.bytes, &graph.copy,
          &graph.log_saving, &graph.log_held, &graph.log_bytes, &graph.log_importance})
      column->assign(tables.runs.size(), 0);
    graph.features.assign(tables.runs.size() * kFeatures, 0);
  }

  void Fill() {
    const auto runs = static_cast<int32_t>(run_of_.size());
    for (int32_t i = 0; i < runs; ++i) DescribeAlone(i);
    for (int32_t i = 0; i < runs; ++i) {
      if (Counts(i)) Count(i, all_);
    }
    std::vector<int32_t> order(runs);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [this](int32_t a, int32_t b) {
      return graph_.log_importance[a] > graph_.log_importance[b];
    });
    for (const int32_t i : order) {
      WriteFeatures(i);
      if (!Counts(i)) continue;
      Count(i, before_);
      Add(load_.data(), graph_.begin[i], graph_.end[i], graph_.bytes[i]);
      const float window = graph_.need[i] - graph_.fetch_begin[i];
      if (graph_.copy[i] > 0)
        Add(demand_.data(), graph_.fetch_begin[i], graph_.need[i], graph_.copy[i] / window);
    }
  }

 private:
  struct Sums {
    double held = 0, copies = 0, saving = 0;
  };

  // Whole lives that save something are what the others are told of.
  bool Counts(int32_t i) const { return whole_[i] != 0 && saving_[i] > 0; }
  void Count(int32_t i, Sums& sums) const {
    sums.held += held_[i] * graph_.bytes[i];
    sums.copies += graph_.copy[i];
    sums.saving += saving_[i];
  }

  double ShareOf(int64_t ps) const { return static_cast<double>(ps) / all_main_; }
  float PieceAt(Tick tick) const {
    return static_cast<float>(ShareOf(arrangement_.tables.all_main_before[tick]) * kPieces);
  }
  // The channel's idle time with everything in fast memory.
  double IdleBetween(Tick begin, Tick end) const {
    return ShareOf(arrangement_.tables.fast_idle_before[end] -
                   arrangement_.tables.fast_idle_before[begin]);
  }

  void DescribeAlone(int32_t i) {
    const Run& run = *run_of_[i];
    const GameTables& tables = arrangement_.tables;
    const GameBuffer& buffer = tables.buffers[run.buffer];
    const Tick first = arrangement_.decision(run.buffer, run.first).tick;
    const Decision& last = arrangement_.decision(run.buffer, run.last);
    const Tick until =
        std::min(arrangement_.program.ticks(), std::max(last.tick + 1, last.covered_until));
    float &begin = graph_.begin[i], &end = graph_.end[i], &need = graph_.need[i];
    begin = PieceAt(first);
    end = PieceAt(until);
    Widen(begin, end);
    need = begin + kLeastPiece;
    const bool fetched = run.placeable && run.planned.fetched;
    graph_.fetch_begin[i] = fetched ? PieceAt(run.planned.earliest_fetch) : begin;
    Widen(graph_.fetch_begin[i], need);
    graph_.bytes[i] = static_cast<float>(
        static_cast<double>(buffer.size_bytes) /
        static_cast<double>(std::max<int64_t>(1, arrangement_.game.usable_bytes())));
    const bool copied = fetched || (run.placeable && run.planned.written >= 0);
    graph_.copy[i] = copied ? static_cast<float>(ShareOf(buffer.copy_ps)) : 0;
    saving_[i] = ShareOf(run.saving_ps);
    held_[i] =
        std::max(1e-9, ShareOf(tables.all_main_before[until] - tables.all_main_before[first])) +
        graph_.copy[i];
    graph_.log_saving[i] = Log(saving_[i], 1e-9);
    graph_.log_held[i] = Log(held_[i], 1e-9);
    graph_.log_bytes[i] = Log(graph_.bytes[i], 1e-9);
    graph_.log_importance[i] = graph_.log_saving[i] - Log(held_[i] * graph_.bytes[i], 1e-12);
    if (run.placeable) idle_[i] = IdleBetween(std::min(run.planned.earliest_fetch, first), first);
  }

  // How much more important another run is.
  float More(int32_t run, int32_t than) const {
    const int32_t id = tables_.runs[run].id;
    return Clamp(graph_.log_importance[id] - graph_.log_importance[than], 8) / 4;
  }

  void WriteFeatures(int32_t i) {
    const Run& run = *run_of_[i];
    const float bytes = graph_.bytes[i], copy = graph_.copy[i];
    const float window = graph_.need[i] - graph_.fetch_begin[i];
    float* const f = &graph_.features[static_cast<size_t>(i) * kFeatures];
    f[Column("one")] = 1;
    f[Column("saving")] = Log(saving_[i], 1e-7) / 4 + 2;
    f[Column("bytes")] = Log(bytes, 1e-6) / 4 + 1;
    f[Column("held")] = Log(held_[i], 1e-7) / 4 + 2;
    f[Column("copy")] = Log(copy, 1e-7) / 4 + 2;
    f[Column("share")] = bytes;
    f[Column("begin")] = graph_.begin[i] / kPieces - 0.5f;
    f[Column("window")] = Clamp(window / kPieces, 1);
    f[Column("fetched")] = run.placeable && run.planned.fetched ? 1.0f : 0.0f;
    f[Column("written")] = run.placeable && run.planned.written >= 0 ? 1.0f : 0.0f;
    f[Column("preloadable")] = run.preloadable ? 1.0f : 0.0f;
    f[Column("splits")] = run.splits ? 1.0f : 0.0f;
    f[Column("placeable")] = run.placeable ? 1.0f : 0.0f;
    f[Column("whole")] = static_cast<float>(whole_[i]);
    f[Column("accesses")] = std::log2(static_cast<float>(1 + run.last - run.first)) / 4;
    const Tick last = arrangement_.decision(run.buffer, run.last).tick;
    const int64_t trips = arrangement_.tables.instructions[last].trips;
    f[Column("trips")] = std::log10(static_cast<float>(trips)) / 3;

    double parts_saving = 0;
    float best = 0, worst = 0;
    for (const int32_t part : run.parts) {
      if (part < 0) continue;
      parts_saving += saving_[tables_.runs[part].id];
      const float more = More(part, i);
      best = part == run.parts[0] ? more : std::max(best, more);
      worst = part == run.parts[0] ? more : std::min(worst, more);
    }
    f[Column("best_part")] = best;
    f[Column("worst_part")] = worst;
    if (saving_[i] > 0)
      f[Column("parts_saving")] = Clamp(static_cast<float>(parts_saving / saving_[i]), 2);
    if (run.parent >= 0) f[Column("parent")] = More(run.parent, i);

    f[Column("held_before")] = Log(before_.held, 1e-3) / 2;
    f[Column("copies_before")] = Log(before_.copies, 1e-3) / 2;
    f[Column("saving_before")] =
        static_cast<float>(before_.saving / std::max(all_.saving, 1e-9)) - 0.5f;
    const auto [load, most_load] = MeanAndMost(load_.data(), graph_.begin[i], graph_.end[i]);
    f[Column("load")] = Clamp(load, 4);
    f[Column("most_load")] = Clamp(most_load, 4);
    const auto idle = static_cast<float>(idle_[i]);
    f[Column("idle_per_copy")] = Log(idle / std::max(copy, 1e-9f), 1e-2) / 4;
    if (window > 0.01f) {
      const float wanted =
          MeanAndMost(demand_.data(), graph_.fetch_begin[i], graph_.need[i]).first * window;
      f[Column("contention")] = Clamp(wanted / (idle + copy + 1e-9f), 4);
    }
    f[Column("all_held")] = Log(all_.held, 1e-3) / 2;
    const double all_idle = IdleBetween(0, arrangement_.program.ticks());
    f[Column("all_copies")] = Log(all_.copies / std::max(all_idle, 1e-9), 1e-3) / 2;
    f[Column("all_saving")] = static_cast<float>(all_.saving);
  }

  const PriorityTables& tables_;
  const ArrangementTables& arrangement_;
  RunGraph& graph_;
  const double all_main_;
  std::vector<const Run*> run_of_;  // of each id
  // Shares of the all-main time: what a run saves, the time it is held with one transfer, and the
  // channel's idle time for its prefetch.
  std::vector<double> saving_, held_, idle_;
  std::vector<uint8_t> whole_;  // 1: it is a whole life
  // What whole lives want: all of them, and those before the run that is described.
  Sums all_, before_;
  std::array<float, kPieces> load_ = {}, demand_ = {};
};

}  // namespace

RunGraph::RunGraph(const PriorityTables& tables) { Describing(tables, *this).Fill(); }

}  // namespace mallocgame
