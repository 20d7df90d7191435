// A vector of plain values whose changes can be taken back: Mark() names a moment, Rollback(mark) returns to it. Costs
// what was changed, not what is stored. Copying copies the history too, which lies in one block for that reason: States are
// copied all the time, and what a copy costs is mostly the number of its blocks.
#ifndef MALLOCGAME_GAME_UNDO_VECTOR_H_
#define MALLOCGAME_GAME_UNDO_VECTOR_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace mallocgame {

template <class T>
class UndoVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  UndoVector() = default;
  explicit UndoVector(std::vector<T> items) : items_(std::move(items)) {}

  size_t size() const { return items_.size(); }
  const T& operator[](size_t i) const { return items_[i]; }
  absl::Span<const T> items() const { return items_; }

  void Set(size_t i, const T& value) {
    Note({static_cast<uint32_t>(i), 1, 1});
    items_[i] = value;
  }

  // Replaces items [begin, begin + remove) by `insert`, which must not point into this vector.
  void Splice(size_t begin, size_t remove, absl::Span<const T> insert) {
    Note({static_cast<uint32_t>(begin), static_cast<uint32_t>(remove), static_cast<uint32_t>(insert.size())});
    Exchange(begin, remove, insert.data(), insert.size());
  }

  uint32_t Mark() const { return changes_; }

  void Rollback(uint32_t mark) {
    for (; changes_ > mark; --changes_) {
      Change change;
      std::memcpy(&change, history_.data() + (history_.size() - kChangeItems), sizeof(Change));
      const size_t kept = history_.size() - kChangeItems - change.removed;
      Exchange(change.begin, change.inserted, history_.data() + kept, change.removed);
      history_.resize(kept);
    }
  }

 private:
  struct Change {
    uint32_t begin, removed, inserted;
  };
  static constexpr size_t kChangeItems = (sizeof(Change) + sizeof(T) - 1) / sizeof(T);

  // The items that are about to go, and behind them, in the space of kChangeItems items, what is about to happen.
  void Note(const Change& change) {
    const auto at = items_.begin() + static_cast<ptrdiff_t>(change.begin);
    history_.insert(history_.end(), at, at + static_cast<ptrdiff_t>(change.removed));
    T space[kChangeItems] = {};
    std::memcpy(static_cast<void*>(space), &change, sizeof(Change));
    history_.insert(history_.end(), space, space + kChangeItems);
    ++changes_;
  }

  void Exchange(size_t begin, size_t remove, const T* insert, size_t count) {
    const auto at = items_.begin() + static_cast<ptrdiff_t>(begin);
    if (remove < count) {
      items_.insert(at + static_cast<ptrdiff_t>(remove), insert + remove, insert + count);
      for (size_t i = 0; i < remove; ++i) items_[begin + i] = insert[i];
    } else {
      for (size_t i = 0; i < count; ++i) items_[begin + i] = insert[i];
      if (remove > count) items_.erase(at + static_cast<ptrdiff_t>(count), at + static_cast<ptrdiff_t>(remove));
    }
  }

  std::vector<T> items_;
  std::vector<T> history_;
  uint32_t changes_ = 0;
};

}  // namespace mallocgame

#endif  // MALLOCGAME_GAME_UNDO_VECTOR_H_
