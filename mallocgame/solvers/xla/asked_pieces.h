// The caller's pieces at work: asks them, and checks what they answer. After the first error none
// is asked again, and the answers are those that end the allocation soonest.
#ifndef MALLOCGAME_SOLVERS_XLA_ASKED_PIECES_H_
#define MALLOCGAME_SOLVERS_XLA_ASKED_PIECES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mallocgame/solvers/xla/heap.h"
#include "mallocgame/solvers/xla/pieces.h"

namespace mallocgame {

class AskedPieces {
 public:
  // Both must outlive it.
  AskedPieces(const Program& program, const XlaPieces& pieces)
      : program_(program), pieces_(pieces) {}

  const XlaPieces& pieces() const { return pieces_; }
  const absl::Status& status() const { return status_; }

  // The functions below are for pieces that are not empty.
  std::vector<BufferId> Order(const XlaOrderQuestion& question);
  std::vector<Tick> Begins(const XlaBeginsQuestion& question);
  XlaNext Next(const XlaAttempt& attempt);
  // As ChunkHeap::ChooseOffset, for the buffer set last.
  std::optional<int64_t> Offset(const ChunkHeap& heap, const Chunk& wanted,
                                absl::Span<const ByteRange> free);
  void set_buffer(BufferId buffer) { buffer_ = buffer; }
  // Moves all chunks; false, and nothing is changed, if they are said not to fit.
  bool Repack(ChunkHeap& heap);

 private:
  // Takes the value of an answer, or its error.
  template <class T>
  std::optional<T> Taken(absl::StatusOr<T> answer) {
    if (answer.ok()) return *std::move(answer);
    Fail(answer.status());
    return std::nullopt;
  }
  void Fail(absl::Status status) {
    if (status_.ok()) status_ = std::move(status);
  }
  std::string Named(BufferId buffer) const;

  const Program& program_;
  const XlaPieces& pieces_;
  BufferId buffer_;
  absl::Status status_;
};

}  // namespace mallocgame

#endif  // MALLOCGAME_SOLVERS_XLA_ASKED_PIECES_H_
