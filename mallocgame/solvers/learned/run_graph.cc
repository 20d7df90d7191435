#include "mallocgame/solvers/learned/run_graph.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace mallocgame {
namespace {

constexpr int kPieces = RunGraph::kPieces;

float Log(double x, double least) { return static_cast<float>(std::log(std::max(x, least))); }
float Clamp(float x, float most) { return std::clamp(x, -most, most); }

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

}  // namespace

float MeanOfPieces(const double* before, float begin, float end) {
  const auto sum = [before](double x) {
    const int p = std::min(static_cast<int>(x), kPieces - 1);
    return before[p] + (before[p + 1] - before[p]) * (x - p);
  };
  return static_cast<float>((sum(end) - sum(begin)) / (static_cast<double>(end) - begin));
}

RunGraph::RunGraph(const OrderTables& tables) {
  const ArrangementTables& arrangement = tables.arrangement;
  const Game& game = arrangement.game;
  const Program& program = arrangement.program;
  const size_t runs = tables.runs.size();
  features.assign(runs * kFeatures, 0);
  for (auto* column : {&begin, &end, &fetch_begin, &need, &bytes, &copy, &log_saving, &log_held,
                       &log_bytes, &log_importance})
    column->assign(runs, 0);
  const double all_main = static_cast<double>(std::max<int64_t>(1, game.all_main_ps()));
  const auto piece_at = [&](Tick tick) {
    return static_cast<float>(static_cast<double>(arrangement.tables.all_main_before[tick]) *
                              kPieces / all_main);
  };
  // An interval of ticks without any time is given a little, at its place.
  constexpr float kLeast = 1e-3f;
  const auto widen = [](float& from, float& to) {
    from = std::clamp(from, 0.0f, kPieces - kLeast);
    to = std::clamp(to, from + kLeast, static_cast<float>(kPieces));
  };

  std::vector<double> held(runs), held_bytes(runs), idle_at(runs), saving(runs);
  std::vector<int32_t> position(runs);  // of each id in tables.runs
  for (size_t r = 0; r < runs; ++r) position[tables.runs[r].id] = static_cast<int32_t>(r);
  for (size_t i = 0; i < runs; ++i) {
    const Run& run = tables.runs[position[i]];
    const GameBuffer& buffer = arrangement.tables.buffers[run.buffer];
    const Tick first = arrangement.decision(run.buffer, run.first).tick;
    const Decision& last = arrangement.decision(run.buffer, run.last);
    const Tick until = std::min(program.ticks(), std::max(last.tick + 1, last.loop_exit));
    begin[i] = piece_at(first);
    end[i] = piece_at(until);
    widen(begin[i], end[i]);
    need[i] = begin[i];
    fetch_begin[i] =
        run.placeable && run.planned.fetched ? piece_at(run.planned.earliest_fetch) : begin[i];
    need[i] = begin[i] + kLeast;
    widen(fetch_begin[i], need[i]);
    bytes[i] = static_cast<float>(static_cast<double>(buffer.size_bytes) /
                                  static_cast<double>(std::max<int64_t>(1, game.usable_bytes())));
    const bool copied = run.placeable && (run.planned.fetched || run.planned.written >= 0);
    copy[i] = copied ? static_cast<float>(static_cast<double>(buffer.copy_ps) / all_main) : 0;
    saving[i] = static_cast<double>(run.saving_ps) / all_main;
    held[i] = std::max(1e-9, static_cast<double>(arrangement.tables.all_main_before[until] -
                                                 arrangement.tables.all_main_before[first]) /
                                 all_main) +
              copy[i];
    held_bytes[i] = held[i] * bytes[i];
    log_saving[i] = Log(saving[i], 1e-9);
    log_held[i] = Log(held[i], 1e-9);
    log_bytes[i] = Log(bytes[i], 1e-9);
    log_importance[i] = log_saving[i] - Log(held_bytes[i], 1e-12);
    idle_at[i] = run.placeable ? static_cast<double>(arrangement.tables.fast_idle_before[first] -
                                                     arrangement.tables.fast_idle_before[std::min(
                                                         run.planned.earliest_fetch, first)]) /
                                     all_main
                               : 0;
  }
  idle.assign(kPieces, 0);
  for (Tick t = 0; t < program.ticks(); ++t) {
    const int p = std::min(kPieces - 1, static_cast<int>(piece_at(t)));
    idle[p] += static_cast<float>(static_cast<double>(arrangement.tables.fast_idle_before[t + 1] -
                                                      arrangement.tables.fast_idle_before[t]) /
                                  all_main);
  }

  // What the more important whole lives take, of space and of the channel.
  std::vector<uint8_t> is_root(runs, 0);
  double all_held = 0, all_copies = 0, all_saving = 0;
  for (const int32_t root : tables.roots) {
    const int32_t i = tables.runs[root].id;
    is_root[i] = 1;
    if (saving[i] <= 0) continue;
    all_held += held_bytes[i];
    all_copies += copy[i];
    all_saving += saving[i];
  }
  const double all_idle = std::accumulate(idle.begin(), idle.end(), 0.0);
  std::vector<int32_t> order(runs);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [this](int32_t a, int32_t b) { return log_importance[a] > log_importance[b]; });
  std::array<float, kPieces> load = {}, demand = {};
  double held_before = 0, copies_before = 0, saving_before = 0;
  for (const int32_t i : order) {
    const Run& run = tables.runs[position[i]];
    float* f = &features[i * kFeatures];
    const auto [mean, most] = MeanAndMost(load.data(), begin[i], end[i]);
    const float window =
        fetch_begin[i] < need[i] - 0.01f
            ? MeanAndMost(demand.data(), fetch_begin[i], need[i]).first * (need[i] - fetch_begin[i])
            : 0;
    const float window_idle = static_cast<float>(idle_at[i]);
    int k = 0;
    f[k++] = 1;
    f[k++] = Log(saving[i], 1e-7) / 4 + 2;
    f[k++] = Log(bytes[i], 1e-6) / 4 + 1;
    f[k++] = Log(held[i], 1e-7) / 4 + 2;
    f[k++] = Log(copy[i], 1e-7) / 4 + 2;
    f[k++] = Log(held_before, 1e-3) / 2;
    f[k++] = Log(copies_before, 1e-3) / 2;
    f[k++] = static_cast<float>(saving_before / std::max(all_saving, 1e-9)) - 0.5f;
    f[k++] = Clamp(mean, 4);
    f[k++] = Clamp(most, 4);
    f[k++] = Log(window_idle / std::max(copy[i], 1e-9f), 1e-2) / 4;
    f[k++] = Clamp(window / (window_idle + copy[i] + 1e-9f), 4);
    f[k++] = run.placeable && run.planned.fetched ? 1.0f : 0.0f;
    f[k++] = run.placeable && run.planned.written >= 0 ? 1.0f : 0.0f;
    f[k++] = run.preloadable ? 1.0f : 0.0f;
    f[k++] = run.splits ? 1.0f : 0.0f;
    f[k++] = run.placeable ? 1.0f : 0.0f;
    f[k++] = is_root[i] ? 1.0f : 0.0f;
    f[k++] = std::log2(static_cast<float>(1 + run.last - run.first)) / 4;
    f[k++] = std::log10(static_cast<float>(
                 arrangement.tables.instructions[arrangement.decision(run.buffer, run.last).tick]
                     .trips)) /
             3;
    // Its parts, and the whole that it is a part of.
    double parts_saving = 0;
    float best = 0, worst = 0;
    for (const int32_t part : run.parts) {
      if (part < 0) continue;
      const int32_t id = tables.runs[part].id;
      parts_saving += saving[id];
      const float more = Clamp(log_importance[id] - log_importance[i], 8) / 4;
      best = part == run.parts[0] ? more : std::max(best, more);
      worst = part == run.parts[0] ? more : std::min(worst, more);
    }
    f[k++] = best;
    f[k++] = worst;
    f[k++] = saving[i] > 0 ? Clamp(static_cast<float>(parts_saving / saving[i]), 2) : 0;
    f[k++] = run.parent >= 0
                 ? Clamp(log_importance[tables.runs[run.parent].id] - log_importance[i], 8) / 4
                 : 0;
    f[k++] = Clamp((need[i] - fetch_begin[i]) / kPieces, 1);
    f[k++] = (begin[i] / kPieces) - 0.5f;
    f[k++] = Log(all_held, 1e-3) / 2;
    f[k++] = Log(all_copies / std::max(all_idle, 1e-9), 1e-3) / 2;
    f[k++] = static_cast<float>(all_saving);
    f[k++] = bytes[i];
    if (is_root[i] && saving[i] > 0) {
      Add(load.data(), begin[i], end[i], bytes[i]);
      if (copy[i] > 0)
        Add(demand.data(), fetch_begin[i], need[i], copy[i] / (need[i] - fetch_begin[i]));
      held_before += held_bytes[i];
      copies_before += copy[i];
      saving_before += saving[i];
    }
  }
}

}  // namespace mallocgame
