// Each error says which piece answered what, about which buffer, and what was allowed.
#include "mallocgame/solvers/xla/asked_pieces.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mallocgame/solvers/xla/interval_picker.h"

namespace mallocgame {

std::string AskedPieces::Named(BufferId buffer) const {
  return absl::StrCat("buffer ", buffer.value, " ('", program_.buffer(buffer).name, "')");
}

std::vector<BufferId> AskedPieces::Order(const XlaOrderQuestion& question) {
  std::optional<std::vector<BufferId>> order = Taken(pieces_.order(question));
  if (!order) return {};
  enum : uint8_t { kUnknown, kAsked, kAnswered };
  std::vector<uint8_t> seen(program_.buffers().size(), kUnknown);
  for (const BufferId buffer : question.by_xla) seen[buffer.index()] = kAsked;
  for (const BufferId buffer : *order) {
    if (!buffer.valid() || buffer.index() >= seen.size() || seen[buffer.index()] == kUnknown) {
      Fail(absl::InvalidArgumentError(absl::StrCat("order: found buffer ", buffer.value,
                                                   ", which is none of the ",
                                                   question.by_xla.size(), " to be put in order")));
      return {};
    }
    if (std::exchange(seen[buffer.index()], kAnswered) == kAnswered) {
      Fail(absl::InvalidArgumentError(
          absl::StrCat("order: found ", Named(buffer), " twice, allowed: once")));
      return {};
    }
  }
  for (const BufferId buffer : question.by_xla) {
    if (seen[buffer.index()] == kAnswered) continue;
    Fail(absl::InvalidArgumentError(absl::StrCat("order: found ", order->size(), " of ",
                                                 question.by_xla.size(),
                                                 " buffers, missing: ", Named(buffer))));
    return {};
  }
  return *std::move(order);
}

std::vector<Tick> AskedPieces::Begins(const XlaBeginsQuestion& question) {
  if (!status_.ok()) return {};
  std::optional<std::vector<Tick>> begins = Taken(pieces_.begins(question));
  if (!begins) return {};
  for (const Tick begin : *begins) {
    if (begin >= question.first && begin < question.end && question.MayBegin(begin)) continue;
    Fail(absl::InvalidArgumentError(
        absl::StrCat("begins: found ", begin, " for the prefetch of ", Named(question.buffer),
                     " that ends at ", question.end, ", allowed: ", question.first, " to ",
                     question.end - 1, " in the loop or branch of the end")));
    return {};
  }
  return *std::move(begins);
}

XlaNext AskedPieces::Next(const XlaAttempt& attempt) {
  constexpr int kMostRetries = 100;
  if (!status_.ok()) return XlaNext::kLeaveOut;
  const std::optional<XlaNext> next = Taken(pieces_.retry(attempt));
  if (!next) return XlaNext::kLeaveOut;
  const bool again = *next == XlaNext::kRetry || *next == XlaNext::kRepack;
  if (*next == XlaNext::kKeep && (attempt.failures & kMustUndo) != 0) {
    Fail(absl::InvalidArgumentError(
        absl::StrCat("retry: found 'keep' for ", Named(attempt.buffer),
                     " after 'must undo', allowed: 'retry', 'repack', 'leave out'")));
    return XlaNext::kLeaveOut;
  }
  if (again && attempt.retry + attempt.repacks_of_buffer >= kMostRetries) {
    Fail(absl::InvalidArgumentError(absl::StrCat("retry: found another attempt for ",
                                                 Named(attempt.buffer), " after ", kMostRetries,
                                                 ", which are allowed")));
    return XlaNext::kLeaveOut;
  }
  return *next;
}

std::optional<int64_t> AskedPieces::Offset(const ChunkHeap& heap, const Chunk& wanted,
                                           absl::Span<const ByteRange> free) {
  if (!status_.ok()) return std::nullopt;
  const XlaOffsetQuestion question = {buffer_, wanted.begin,    wanted.end,      wanted.size,
                                      free,    heap.capacity(), heap.alignment()};
  const std::optional<std::optional<int64_t>> answer = Taken(pieces_.offset(question));
  if (!answer || !*answer) return std::nullopt;
  const int64_t offset = **answer;
  const bool fits = std::any_of(free.begin(), free.end(), [&](const ByteRange& range) {
    return range.begin <= offset && offset <= range.end - wanted.size;
  });
  if (fits && offset % heap.alignment() == 0) return offset;
  Fail(absl::InvalidArgumentError(
      absl::StrCat("offset: found ", offset, " for ", wanted.size, " bytes of ", Named(buffer_),
                   " over [", wanted.begin, ", ", wanted.end, "), ",
                   fits ? "which is not aligned" : "where not all of these bytes are free",
                   ", allowed: multiples of ", heap.alignment(), " in the free ranges")));
  return std::nullopt;
}

bool AskedPieces::Repack(ChunkHeap& heap) {
  if (!status_.ok()) return false;
  std::vector<XlaBlock> blocks;
  for (const int32_t id : heap.Ids()) {
    const Chunk& chunk = heap.chunk(id);
    blocks.push_back({chunk.begin, chunk.end, chunk.offset, chunk.size});
  }
  std::optional<std::optional<std::vector<int64_t>>> answer =
      Taken(pieces_.repack({blocks, heap.reserved(), heap.capacity(), heap.alignment()}));
  if (!answer || !*answer) return false;
  const std::vector<int64_t>& offsets = **answer;
  if (offsets.size() != blocks.size()) {
    Fail(absl::InvalidArgumentError(absl::StrCat("repack: found ", offsets.size(),
                                                 " offsets, allowed: ", blocks.size(),
                                                 ", one for each block")));
    return false;
  }
  const std::optional<size_t> wrong = heap.MoveTo(offsets);
  if (!wrong) return true;
  const XlaBlock& block = blocks[*wrong];
  Fail(absl::InvalidArgumentError(
      absl::StrCat("repack: found ", offsets[*wrong], " for block ", *wrong, ", ", block.size_bytes,
                   " bytes over [", block.begin, ", ", block.end, "), allowed: multiples of ",
                   heap.alignment(), " within ", heap.capacity(),
                   " bytes, apart from what is reserved and from the blocks before")));
  return false;
}

bool XlaBeginsQuestion::MayBegin(Tick begin) const { return picker.MayBegin(begin - 1, end); }

double XlaBeginsQuestion::HiddenPs(Tick begin) const { return picker.Elapsed(begin - 1, end); }

std::vector<Tick> XlaBeginsQuestion::ByXla(std::optional<Tick> start) const {
  IntervalPicker::Candidates candidates =
      picker.Begins(first - 1, end, window_ps, saved_ps, start ? std::optional(*start - 1) : start);
  std::vector<Tick> begins;
  while (const std::optional<Tick> s = candidates.Next()) begins.push_back(*s + 1);
  return begins;
}

}  // namespace mallocgame
