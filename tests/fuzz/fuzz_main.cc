// The entry for libFuzzer: it calls the reader that this executable is named after, one of
// MALLOCGAME_FUZZ_READERS.
#include <cstddef>
#include <cstdint>

#include "mallocgame/base/error.h"
#include "tests/fuzz/readers.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const mallocgame::fuzz::Reader* const reader = [] {
    const mallocgame::fuzz::Reader* found = nullptr;
    for (const auto& r : mallocgame::fuzz::MALLOCGAME_FUZZ_READERS()) {
      if (r.name == MALLOCGAME_FUZZ_READER) found = &r;
    }
    MG_CHECK(found != nullptr);
    return found;
  }();
  reader->read({reinterpret_cast<const char*>(data), size});
  return 0;
}
