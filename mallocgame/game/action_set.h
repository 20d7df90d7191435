// A set of actions of a game.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>

namespace mallocgame {

// Actions are numbers in [0, kMaxActions). A loop over the set gives them in rising order.
class ActionSet {
 public:
  static constexpr int kMaxActions = 256;

  constexpr ActionSet() = default;
  // Bit a of `bits` is set for each action a in the set, which are all below 64.
  explicit constexpr ActionSet(uint64_t bits) : words_{bits} {}

  constexpr bool Has(int action) const {
    return (words_[static_cast<size_t>(action) / 64] >> action % 64 & 1) != 0;
  }
  // Adds first + i for each set bit i of `bits`.
  constexpr void Add(int first, uint8_t bits) {
    const int word = first / 64, shift = first % 64;
    words_[word] |= uint64_t{bits} << shift;
    if (shift > 56 && word + 1 < kWords) words_[word + 1] |= uint64_t{bits} >> (64 - shift);
  }
  constexpr void Remove(int action) { words_[action / 64] &= ~(uint64_t{1} << action % 64); }

  constexpr bool empty() const { return *this == ActionSet(); }
  constexpr int size() const {
    int count = 0;
    for (const uint64_t word : words_) count += std::popcount(word);
    return count;
  }
  // The action with so many in the set before it, in [0, size()).
  constexpr int operator[](uint32_t before) const {
    int word = 0;
    for (uint32_t count = 0; (count = std::popcount(words_[word])) <= before; ++word)
      before -= count;
    uint64_t rest = words_[word];
    for (; before > 0; --before) rest &= rest - 1;
    return 64 * word + std::countr_zero(rest);
  }

  class Iterator {
   public:
    // NOLINTBEGIN(readability-identifier-naming): the names that the standard library asks for
    using iterator_category = std::input_iterator_tag;
    using value_type = int;
    using difference_type = std::ptrdiff_t;
    using pointer = const int*;
    using reference = int;
    // NOLINTEND(readability-identifier-naming)

    constexpr int operator*() const { return 64 * word_ + std::countr_zero(rest_); }
    constexpr Iterator& operator++() {
      rest_ &= rest_ - 1;
      Settle();
      return *this;
    }
    friend constexpr bool operator==(const Iterator& a, const Iterator& b) {
      return a.word_ == b.word_ && a.rest_ == b.rest_;
    }

   private:
    friend class ActionSet;
    constexpr Iterator(const ActionSet* set, int word) : set_(set), word_(word) {
      if (word < kWords) rest_ = set->words_[word];
      Settle();
    }
    // Goes to the next word that has an action, or to the end.
    constexpr void Settle() {
      while (rest_ == 0 && word_ < kWords) {
        if (++word_ < kWords) rest_ = set_->words_[word_];
      }
    }
    const ActionSet* set_;
    int word_;
    uint64_t rest_ = 0;
  };
  constexpr Iterator begin() const { return {this, 0}; }
  constexpr Iterator end() const { return {this, kWords}; }
  friend constexpr bool operator==(const ActionSet&, const ActionSet&) = default;

 private:
  static constexpr int kWords = kMaxActions / 64;
  std::array<uint64_t, kWords> words_ = {};
};

}  // namespace mallocgame
