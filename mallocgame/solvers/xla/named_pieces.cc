// One function makes each piece; a table names them. The begins that look at the heap choose a
// begin by XLA's distance from the preferred time plus a penalty, and go on around it as XLA does.
#include "mallocgame/solvers/xla/named_pieces.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "mallocgame/base/error.h"
#include "mallocgame/plan/offsets.h"

namespace mallocgame {
namespace {

// Begins are scored up to so many, those nearest to the preferred time.
constexpr size_t kMostScored = 200;
// The nodes that one search for offsets looks at. Without a limit of time it is deterministic.
constexpr int64_t kRepackNodes = 20000;

// The buffers with the greatest `worth(index into by_xla)` first; ties stay in XLA's order.
template <class Worth>
std::vector<BufferId> Descending(const XlaOrderQuestion& question, const Worth& worth) {
  std::vector<double> worths(question.by_xla.size());
  for (size_t i = 0; i < worths.size(); ++i) worths[i] = worth(i);
  std::vector<size_t> order(worths.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return worths[a] > worths[b]; });
  std::vector<BufferId> buffers;
  buffers.reserve(order.size());
  for (const size_t i : order) buffers.push_back(question.by_xla[i]);
  return buffers;
}

double Bytes(const XlaOrderQuestion& question, size_t i) {
  return static_cast<double>(question.program.buffer(question.by_xla[i]).size_bytes);
}

void LargestFirst(double, XlaPieces& pieces) {
  pieces.order = [](const XlaOrderQuestion& question) {
    return Descending(question, [&](size_t i) { return Bytes(question, i); });
  };
}

void MostSavedFirst(double, XlaPieces& pieces) {
  pieces.order = [](const XlaOrderQuestion& question) {
    return Descending(question, [&](size_t i) {
      return question.boundedness[i] * std::sqrt(Bytes(question, i));
    });
  };
}

void MostSavedPerByteFirst(double, XlaPieces& pieces) {
  pieces.order = [](const XlaOrderQuestion& question) {
    return Descending(question, [&](size_t i) {
      return question.boundedness[i] / std::sqrt(Bytes(question, i));
    });
  };
}

void EarliestFirst(double, XlaPieces& pieces) {
  pieces.order = [](const XlaOrderQuestion& question) {
    return Descending(question, [&](size_t i) {
      const auto accesses = question.program.accesses_of(question.by_xla[i]);
      return -static_cast<double>(question.program.access(accesses.front()).tick);
    });
  };
}

void LatestBegin(double, XlaPieces& pieces) {
  pieces.begins = [](const XlaBeginsQuestion& question) {
    std::vector<Tick> begins = question.ByXla();
    std::sort(begins.rbegin(), begins.rend());
    return begins;
  };
}

void EarliestBegin(double, XlaPieces& pieces) {
  pieces.begins = [](const XlaBeginsQuestion& question) {
    std::vector<Tick> begins = question.ByXla();
    std::sort(begins.begin(), begins.end());
    return begins;
  };
}

// What is bad about the heap over the time for which a begin takes its bytes: 0 is best, and 1 as
// bad as twice the preferred time.
using Penalty = double (*)(const XlaBeginsQuestion& question, Tick begin);

double Fragmentation(const XlaBeginsQuestion& question, Tick begin) {
  int64_t all = 0, largest = 0;
  for (const ByteRange& range : question.memory.Free(begin, question.held_until)) {
    all += range.size();
    largest = std::max(largest, range.size());
  }
  return all == 0 ? 1 : 1 - static_cast<double>(largest) / static_cast<double>(all);
}

double Splinter(const XlaBeginsQuestion& question, Tick begin) {
  int64_t best = question.memory.capacity_bytes() + 1;
  bool top = false;
  for (const ByteRange& range : question.memory.Free(begin, question.held_until)) {
    if (range.size() < question.size_bytes) continue;
    if (range.end == question.memory.capacity_bytes()) {
      top = true;
    } else {
      best = std::min(best, range.size());
    }
  }
  if (best > question.memory.capacity_bytes()) return top ? 0 : 1;
  return 1 - static_cast<double>(question.size_bytes) / static_cast<double>(best);
}

double Crowding(const XlaBeginsQuestion& question, Tick begin) {
  double crowded_ps = 0;
  for (Tick t = begin; t < question.end; ++t) {
    const double time_ps = question.HiddenPs(t) - question.HiddenPs(t + 1);
    crowded_ps += time_ps * static_cast<double>(question.memory.MostUsed(t, t + 1));
  }
  return crowded_ps / static_cast<double>(question.memory.capacity_bytes()) /
         std::max(1.0, question.preferred_ps);
}

template <Penalty kPenalty>
void Penalized(double weight, XlaPieces& pieces) {
  pieces.begins = [weight](const XlaBeginsQuestion& question) {
    std::vector<Tick> begins = question.ByXla();
    const double preferred_ps = std::max(1.0, question.preferred_ps);
    const auto score = [&](Tick begin) {
      const double off = std::abs(question.HiddenPs(begin) - preferred_ps) / preferred_ps;
      return off + weight * kPenalty(question, begin);
    };
    size_t best = 0;
    double best_score = begins.empty() ? 0 : score(begins[0]);
    for (size_t i = 1; i < std::min(begins.size(), kMostScored); ++i) {
      const double own = score(begins[i]);
      if (own >= best_score) continue;
      best = i;
      best_score = own;
    }
    return best == 0 ? begins : question.ByXla(begins[best]);
  };
}

XlaNext WithoutRepacking(const XlaAttempt& attempt) {
  return attempt.by_xla == XlaNext::kRepack ? XlaNext::kKeep : attempt.by_xla;
}

void NoRepacking(double, XlaPieces& pieces) { pieces.retry = WithoutRepacking; }

void NoSecondAttempt(double, XlaPieces& pieces) {
  pieces.retry = [](const XlaAttempt& attempt) {
    const XlaNext next = WithoutRepacking(attempt);
    return next == XlaNext::kRetry ? XlaNext::kLeaveOut : next;
  };
}

void RepackAlways(double, XlaPieces& pieces) {
  pieces.retry = [](const XlaAttempt& attempt) {
    const bool out_of_memory = (attempt.failures & kOutOfMemory) != 0;
    return attempt.by_xla == XlaNext::kKeep && out_of_memory && attempt.repacks_of_buffer == 0
               ? XlaNext::kRepack
               : attempt.by_xla;
  };
}

void FirstFit(double, XlaPieces& pieces) {
  pieces.offset = [](const XlaOffsetQuestion& question) -> std::optional<int64_t> {
    if (question.free.empty()) return std::nullopt;
    return question.free.front().begin;
  };
}

void LastFit(double, XlaPieces& pieces) {
  pieces.offset = [](const XlaOffsetQuestion& question) -> std::optional<int64_t> {
    if (question.free.empty()) return std::nullopt;
    const ByteRange& last = question.free.back();
    const int64_t highest = last.end - question.size_bytes;
    return highest - highest % question.alignment_bytes;
  };
}

void WorstFit(double, XlaPieces& pieces) {
  pieces.offset = [](const XlaOffsetQuestion& question) -> std::optional<int64_t> {
    const auto widest = std::max_element(
        question.free.begin(), question.free.end(),
        [](const ByteRange& a, const ByteRange& b) { return a.size() < b.size(); });
    if (widest == question.free.end()) return std::nullopt;
    return widest->begin;
  };
}

void RepackBySearch(double, XlaPieces& pieces) {
  pieces.repack =
      [](const XlaRepackQuestion& question) -> absl::StatusOr<std::optional<std::vector<int64_t>>> {
    OffsetProblem problem = {{}, question.capacity_bytes, question.alignment_bytes};
    for (const XlaBlock& block : question.blocks) {
      const auto reserved = question.reserved.subspan(
          std::min<size_t>(block.begin, question.reserved.size()), block.end - block.begin);
      const auto most = std::max_element(reserved.begin(), reserved.end());
      problem.intervals.push_back({.begin = block.begin,
                                   .end = block.end,
                                   .size = block.size_bytes,
                                   .min_offset = most == reserved.end() ? 0 : *most});
    }
    MG_ASSIGN_OR_RETURN(OffsetResult result,
                        SolveOffsets(problem, {.seconds = 0, .nodes = kRepackNodes}));
    if (result.status != OffsetStatus::kFeasible) return std::nullopt;
    return std::optional(std::move(result.offsets));
  };
}

template <auto kMember>
void Own(double, XlaPieces& pieces) {
  pieces.*kMember = nullptr;
}

struct Entry {
  NamedXlaPiece named;
  void (*set)(double weight, XlaPieces& pieces);
};
constexpr bool kWeighted = true, kPlain = false;
constexpr Entry kEntries[] = {
    {{"order", "xla", kPlain, "what all uses save per square root of a byte"},
     Own<&XlaPieces::order>},
    {{"order", "size", kPlain, "the largest first"}, LargestFirst},
    {{"order", "saving", kPlain, "what all uses save"}, MostSavedFirst},
    {{"order", "saving-per-byte", kPlain, "what all uses save per byte"}, MostSavedPerByteFirst},
    {{"order", "time", kPlain, "the first access first"}, EarliestFirst},
    {{"begins", "xla", kPlain, "nearest to hiding the copy twice, then alternately around it"},
     Own<&XlaPieces::begins>},
    {{"begins", "latest", kPlain, "XLA's, the latest first"}, LatestBegin},
    {{"begins", "earliest", kPlain, "XLA's, the earliest first"}, EarliestBegin},
    {{"begins", "fragmentation", kWeighted,
      "XLA's around the best begin, plus a penalty: one less the largest free range over all free "
      "bytes"},
     Penalized<Fragmentation>},
    {{"begins", "splinter", kWeighted,
      "the same with another penalty: the share of the smallest range that fits which would be "
      "left "
      "over"},
     Penalized<Splinter>},
    {{"begins", "crowding", kWeighted,
      "the same with another penalty: the window's time, each instruction by the share of memory "
      "in "
      "use"},
     Penalized<Crowding>},
    {{"retry", "xla", kPlain, "two attempts; four times a program all bytes are packed anew"},
     Own<&XlaPieces::retry>},
    {{"retry", "no-repacking", kPlain, "bytes are never packed anew"}, NoRepacking},
    {{"retry", "once", kPlain, "one attempt, and bytes are never packed anew"}, NoSecondAttempt},
    {{"retry", "always-repack", kPlain, "bytes are packed anew for each buffer without bytes"},
     RepackAlways},
    {{"offset", "xla", kPlain, "best fit"}, Own<&XlaPieces::offset>},
    {{"offset", "first-fit", kPlain, "the lowest"}, FirstFit},
    {{"offset", "last-fit", kPlain, "the highest"}, LastFit},
    {{"offset", "worst-fit", kPlain, "the lowest of the largest range"}, WorstFit},
    {{"repack", "xla", kPlain, "best fit, the longest first"}, Own<&XlaPieces::repack>},
    {{"repack", "search", kPlain, "a search for offsets (docs/offsets.md)"}, RepackBySearch},
};

}  // namespace

absl::Span<const NamedXlaPiece> NamedXlaPieces() {
  static const auto* const all = [] {
    auto* pieces = new std::vector<NamedXlaPiece>;
    for (const Entry& entry : kEntries) pieces->push_back(entry.named);
    return pieces;
  }();
  return *all;
}

absl::Status SetXlaPiece(absl::string_view piece, absl::string_view name, XlaPieces& pieces) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(name, absl::MaxSplits(':', 1));
  std::vector<std::string> of_piece;
  for (const Entry& entry : kEntries) {
    if (entry.named.piece != piece) continue;
    of_piece.push_back(absl::StrCat(entry.named.name, entry.named.weighted ? ":WEIGHT" : ""));
    if (entry.named.name != parts.first) continue;
    double weight = 0;
    const bool right = entry.named.weighted ? absl::SimpleAtod(parts.second, &weight) &&
                                                  weight >= 0 && std::isfinite(weight)
                                            : !absl::StrContains(name, ':');
    if (!right) continue;
    entry.set(weight, pieces);
    return absl::OkStatus();
  }
  if (of_piece.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("pieces: found '", piece, "', allowed: order, begins, retry, offset, repack"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(piece, ": found '", name, "', allowed: ", absl::StrJoin(of_piece, ", ")));
}

absl::StatusOr<XlaPieces> XlaPiecesOf(absl::string_view text) {
  XlaPieces pieces;
  std::vector<absl::string_view> named;
  for (const absl::string_view one : absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(absl::StripAsciiWhitespace(one), absl::MaxSplits('=', 1));
    if (std::find(named.begin(), named.end(), parts.first) != named.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("pieces: found '", parts.first, "' twice in '", text, "', allowed: once"));
    }
    named.push_back(parts.first);
    MG_RETURN_IF_ERROR(SetXlaPiece(parts.first, parts.second, pieces));
  }
  return pieces;
}

}  // namespace mallocgame
