// Pieces for XLA's allocator by name, to try beside XLA's own: `order=size,begins=latest`. A caller
// may put its own functions into the rest of the XlaPieces.
#ifndef MALLOCGAME_SOLVERS_XLA_NAMED_PIECES_H_
#define MALLOCGAME_SOLVERS_XLA_NAMED_PIECES_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "mallocgame/solvers/xla/pieces.h"

namespace mallocgame {

struct NamedXlaPiece {
  absl::string_view piece;  // "order", "begins", "retry", "offset" or "repack"
  absl::string_view name;
  bool weighted;           // the name is followed by a weight >= 0: `crowding:0.5`
  absl::string_view what;  // what it does, in one sentence
};
// All that have a name. `xla` is that of XLA's own piece of each kind.
absl::Span<const NamedXlaPiece> NamedXlaPieces();

// Puts one piece in place. InvalidArgument: there is no such piece, name or weight; the message
// lists what there is.
absl::Status SetXlaPiece(absl::string_view piece, absl::string_view name, XlaPieces& pieces);

// The pieces of a list such as `order=size,begins=fragmentation:0.5,offset=first-fit`; XLA's own
// where it names none. InvalidArgument: as above, or one is named twice.
absl::StatusOr<XlaPieces> XlaPiecesOf(absl::string_view text);

}  // namespace mallocgame

#endif  // MALLOCGAME_SOLVERS_XLA_NAMED_PIECES_H_
