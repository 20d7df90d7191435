// A vector of plain values whose changes can be taken back: Mark() names a moment, Rollback(mark) returns to it. Costs
// what was changed, not what is stored. Copying copies the history too.
#ifndef MALLOCGAME_GAME_UNDO_VECTOR_H_
#define MALLOCGAME_GAME_UNDO_VECTOR_H_

#include <cstddef>
#include <cstdint>
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
    changes_.push_back({static_cast<uint32_t>(i), 1, 1});
    removed_.push_back(items_[i]);
    items_[i] = value;
  }

  // Replaces items [begin, begin + remove) by `insert`, which must not point into this vector.
  void Splice(size_t begin, size_t remove, absl::Span<const T> insert) {
    const auto at = items_.begin() + static_cast<ptrdiff_t>(begin);
    changes_.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(remove), static_cast<uint32_t>(insert.size())});
    removed_.insert(removed_.end(), at, at + static_cast<ptrdiff_t>(remove));
    Exchange(begin, remove, insert.data(), insert.size());
  }

  uint32_t Mark() const { return static_cast<uint32_t>(changes_.size()); }

  void Rollback(uint32_t mark) {
    while (changes_.size() > mark) {
      const Change change = changes_.back();
      changes_.pop_back();
      const size_t kept = removed_.size() - change.removed;
      Exchange(change.begin, change.inserted, removed_.data() + kept, change.removed);
      removed_.resize(kept);
    }
  }

 private:
  struct Change {
    uint32_t begin, removed, inserted;
  };

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
  std::vector<Change> changes_;
  std::vector<T> removed_;
};

}  // namespace mallocgame

#endif  // MALLOCGAME_GAME_UNDO_VECTOR_H_
