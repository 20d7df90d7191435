// The objects behind the handles of the C interface, so that a handle that is wrong in any way is
// an error: never given out, freed, of another kind, or of what another thread is using.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "mallocgame/game/game.h"
#include "mallocgame/game/observation.h"
#include "mallocgame/game/position.h"
#include "mallocgame/replay/program_file.h"
#include "mallocgame/vector/vector_env.h"

namespace mallocgame::c {

template <class T>
using Shared = std::shared_ptr<const T>;
// What never changes is shared; what does has one owner.
using Object = std::variant<std::monostate, Shared<ProgramFile>, Shared<Game>, Shared<Observer>,
                            std::unique_ptr<Position>, std::unique_ptr<VectorEnv>>;
inline constexpr std::array kKinds = {"nothing",     "a program",  "a game",
                                      "an observer", "a position", "environments"};

class Handles {
  struct Slot {
    // The handle that it is of; with kTaken if a thread is using it; 0 if it is free.
    std::atomic<uint64_t> of = 0;
    uint64_t generation = 0;
    Object object;
  };

 public:
  // The objects of this process. They are never destroyed, because threads may outlive main().
  static Handles& Get() {
    static Handles& all = *new Handles;
    return all;
  }

  // An object in use by this thread, and by no other until this is destroyed.
  struct Releaser {
    void operator()(const void* /*object*/) const { Release(*slot); }
    Slot* slot;
  };
  template <class T>
  using Use = std::unique_ptr<T, Releaser>;

  uint64_t Add(Object object) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (free_.empty()) Grow();
    const uint32_t index = free_.back();
    free_.pop_back();
    Slot& slot = At(index);
    slot.object = std::move(object);
    slot.generation = (slot.generation + 1) % kGenerations;
    const uint64_t handle = (slot.generation << 32) + index + 1;
    slot.of.store(handle, std::memory_order_release);
    return handle;
  }

  absl::Status Free(uint64_t handle) {
    absl::StatusOr<Slot*> slot = Take(handle, "handle", true);
    if (!slot.ok()) return slot.status();
    const Object gone = std::exchange((*slot)->object, {});  // It is destroyed without the lock.
    const std::lock_guard<std::mutex> lock(mutex_);
    (*slot)->of.store(0, std::memory_order_release);
    free_.push_back(static_cast<uint32_t>(handle) - 1);
    return absl::OkStatus();
  }

  // `name`: of the argument, for the error.
  template <class T>
  absl::StatusOr<Use<T>> Take(uint64_t handle, const char* name) {
    absl::StatusOr<Slot*> slot = Take(handle, name, false);
    if (!slot.ok()) return slot.status();
    auto* object = std::get_if<std::unique_ptr<T>>(&(*slot)->object);
    if (object == nullptr) return Wrong<std::unique_ptr<T>>(**slot, name);
    return Use<T>(object->get(), Releaser{*slot});
  }
  template <class T>
  absl::StatusOr<Shared<T>> Share(uint64_t handle, const char* name) {
    absl::StatusOr<Slot*> slot = Take(handle, name, true);
    if (!slot.ok()) return slot.status();
    const auto* object = std::get_if<Shared<T>>(&(*slot)->object);
    if (object == nullptr) return Wrong<Shared<T>>(**slot, name);
    Shared<T> shared = *object;
    Release(**slot);
    return shared;
  }

 private:
  static constexpr uint64_t kTaken = uint64_t{1} << 63;
  static constexpr uint64_t kGenerations = uint64_t{1} << 31;
  // Chunk k has kFirst << k slots, which never move.
  static constexpr uint64_t kFirst = 1024;
  static constexpr int kChunks = 22;

  static int ChunkOf(uint64_t index) {
    return static_cast<int>(std::bit_width(index / kFirst + 1)) - 1;
  }
  Slot& At(uint64_t index) {
    const int chunk = ChunkOf(index);
    const uint64_t before = kFirst * ((uint64_t{1} << chunk) - 1);
    return chunks_[chunk].load(std::memory_order_acquire)[index - before];
  }
  void Grow() {
    const uint64_t more = kFirst << num_chunks_;
    const uint64_t before = more - kFirst;
    if (num_chunks_ == kChunks) throw std::bad_alloc();
    free_.reserve(before + more);
    chunks_[num_chunks_++].store(new Slot[more], std::memory_order_release);
    for (uint64_t i = more; i > 0; --i) free_.push_back(static_cast<uint32_t>(before + i - 1));
  }
  static void Release(Slot& slot) { slot.of.fetch_and(~kTaken, std::memory_order_release); }

  // With `wait`, others hold it only as long as they copy a pointer.
  absl::StatusOr<Slot*> Take(uint64_t handle, const char* name, bool wait) {
    const uint64_t index = (handle & 0xffffffff) - 1;
    if ((handle & 0xffffffff) == 0 || (handle & kTaken) != 0 || ChunkOf(index) >= kChunks ||
        chunks_[ChunkOf(index)].load(std::memory_order_acquire) == nullptr)
      return Unknown(name, handle);
    Slot& slot = At(index);
    for (int tries = 0;; ++tries) {
      uint64_t found = handle;
      if (slot.of.compare_exchange_weak(found, handle | kTaken, std::memory_order_acquire))
        return &slot;
      if (found == handle) continue;  // It failed for no reason.
      if (found != (handle | kTaken)) return Unknown(name, handle);
      if (!wait || tries > kPatience) {
        return absl::UnavailableError(
            absl::StrCat(name, ": another thread is using handle ", handle,
                         "; allowed: one thread at a time, or a clone for each"));
      }
      std::this_thread::yield();
    }
  }
  static constexpr int kPatience = 1'000'000;

  static absl::Status Unknown(const char* name, uint64_t handle) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": found ", handle,
                     ", which is no handle or was freed; allowed: one that a function has given"));
  }
  template <class Wanted>
  static absl::Status Wrong(Slot& slot, const char* name) {
    const size_t found = slot.object.index();
    Release(slot);
    return absl::InvalidArgumentError(absl::StrCat(name, ": found a handle of ", kKinds[found],
                                                   ", allowed: one of ",
                                                   kKinds[Object(Wanted()).index()]));
  }

  std::mutex mutex_;
  int num_chunks_ = 0;
  std::array<std::atomic<Slot*>, kChunks> chunks_ = {};
  std::vector<uint32_t> free_;
};

}  // namespace mallocgame::c
