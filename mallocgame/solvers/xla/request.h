// What XLA's allocator can be asked for, beside its settings (docs/tpu-method.md: what the
// compiler does with each).
#ifndef MALLOCGAME_SOLVERS_XLA_REQUEST_H_
#define MALLOCGAME_SOLVERS_XLA_REQUEST_H_

#include <optional>
#include <string>
#include <vector>

#include "mallocgame/base/ids.h"

namespace mallocgame {

// A copy into fast memory for the first access that needs it.
struct XlaPrefetch {
  AccessId access;
  Tick begin = 0;      // the copy's first tick
  bool strict = true;  // it begins there, or the request is refused
};

struct XlaRequest {
  std::vector<AccessId> in_main;  // keep_in_default_memory: main memory serves them
  // pin_in_alternate_memory: made in fast memory, to stay there up to the first loop or update
  std::vector<BufferId> pinned;
  std::vector<XlaPrefetch> prefetches;
  std::vector<BufferId> order;  // these come before all others, in this order
  // The parameters to preload, in this order. None: those that XLA picks.
  std::optional<std::vector<BufferId>> preloads;
};

// What the compiler would not do.
struct XlaRefusal {
  AccessId access;
  std::string reason;
};

}  // namespace mallocgame

#endif  // MALLOCGAME_SOLVERS_XLA_REQUEST_H_
