// Vectors of plain values whose changes can be taken back. Several of them write what they held
// into one UndoLog. UndoLog::Mark names a moment; each vector returns to it by Rollback(log, mark),
// and then the log by UndoLog::Rollback(mark). That costs as much as was changed, not as is stored.
// The log is one block because States are copied all the time, and a copy costs mostly by the
// number of its blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace mallocgame {

class UndoLog {
 public:
  uint32_t Mark() const { return static_cast<uint32_t>(words_.size()); }
  // All vectors that write into this log must have returned to `mark`.
  void Rollback(uint32_t mark) { words_.resize(mark); }

 private:
  template <class T>
  friend class UndoVector;
  std::vector<uint64_t> words_;
};

template <class T>
class UndoVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  UndoVector() = default;
  explicit UndoVector(std::vector<T> items) : items_(std::move(items)) {}

  size_t size() const { return items_.size(); }
  const T& operator[](size_t i) const { return items_[i]; }
  absl::Span<const T> items() const { return items_; }

  void Set(UndoLog* log, size_t i, const T& value) {
    Note(log, i, 1, 1);
    items_[i] = value;
  }

  // Replaces items [begin, begin + remove) by `insert`, which must not point into this vector.
  void Splice(UndoLog* log, size_t begin, size_t remove, absl::Span<const T> insert) {
    Note(log, begin, remove, insert.size());
    Exchange(begin, remove, insert.data(), insert.size());
  }

  void Rollback(const UndoLog& log, uint32_t mark) {
    while (latest_ > mark) {
      const uint64_t* const end = log.words_.data() + latest_;
      Change change;
      std::memcpy(&change, end - kChangeWords, sizeof(Change));
      Exchange(change.begin, change.inserted, end - kChangeWords - Words(change.removed),
               change.removed);
      latest_ = change.previous;
    }
  }

 private:
  struct Change {
    uint32_t begin, removed, inserted;
    uint32_t previous;  // where this vector's change before this one ends in the log
  };
  static constexpr size_t kChangeWords = sizeof(Change) / sizeof(uint64_t);
  static constexpr size_t Words(size_t items) {
    return (items * sizeof(T) + sizeof(uint64_t) - 1) / sizeof(uint64_t);
  }

  // Writes into the log the items that are about to be removed, and after them the change itself.
  void Note(UndoLog* log, size_t begin, size_t remove, size_t insert) {
    const Change change = {static_cast<uint32_t>(begin), static_cast<uint32_t>(remove),
                           static_cast<uint32_t>(insert), latest_};
    const size_t at = log->words_.size();
    log->words_.resize(at + Words(remove) + kChangeWords);
    uint64_t* const place = log->words_.data() + at;
    if (remove > 0) std::memcpy(place, items_.data() + begin, remove * sizeof(T));
    std::memcpy(place + Words(remove), &change, sizeof(Change));
    latest_ = log->Mark();
  }

  // `insert` points to `count` items, which need not be aligned.
  void Exchange(size_t begin, size_t remove, const void* insert, size_t count) {
    const auto at = items_.begin() + static_cast<ptrdiff_t>(begin);
    if (remove < count) {
      items_.insert(at, count - remove, T{});
    } else if (remove > count) {
      items_.erase(at, at + static_cast<ptrdiff_t>(remove - count));
    }
    if (count > 0)
      std::memcpy(static_cast<void*>(items_.data() + begin), insert, count * sizeof(T));
  }

  std::vector<T> items_;
  uint32_t latest_ = 0;  // where this vector's latest change ends in the log; 0 if there is none
};

}  // namespace mallocgame
