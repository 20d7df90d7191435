// UndoVector by hand, and against a stack of whole copies.
#include "mallocgame/game/undo_vector.h"

#include <algorithm>
#include <vector>

#include "absl/types/span.h"
#include "mallocgame/base/rng.h"
#include "tests/catch.h"

namespace mallocgame {
namespace {

template <class T>
std::vector<T> Items(const UndoVector<T>& vector) {
  return {vector.items().begin(), vector.items().end()};
}

TEST_CASE("an undo vector returns to what it held at a mark") {
  UndoLog log;
  UndoVector<int> vector(std::vector<int>{1, 2, 3});
  const uint32_t start = log.Mark();
  vector.Set(&log, 1, 9);
  REQUIRE(Items(vector) == std::vector<int>{1, 9, 3});

  const uint32_t middle = log.Mark();
  vector.Splice(&log, 0, 2, {7});  // fewer items than before
  REQUIRE(Items(vector) == std::vector<int>{7, 3});
  vector.Splice(&log, 1, 0, {4, 5, 6});  // more
  REQUIRE(Items(vector) == std::vector<int>{7, 4, 5, 6, 3});
  vector.Splice(&log, 0, 5, {});  // none
  REQUIRE(vector.size() == 0);

  vector.Rollback(log, middle);
  REQUIRE(Items(vector) == std::vector<int>{1, 9, 3});
  log.Rollback(middle);
  vector.Rollback(log, start);
  REQUIRE(Items(vector) == std::vector<int>{1, 2, 3});
}

TEST_CASE("vectors that share a log return to the same moment, whoever changed last") {
  UndoLog log;
  UndoVector<int> a(std::vector<int>{1}), b(std::vector<int>{2});
  a.Set(&log, 0, 10);
  const uint32_t mark = log.Mark();
  b.Set(&log, 0, 20);
  a.Set(&log, 0, 100);
  b.Set(&log, 0, 200);
  a.Rollback(log, mark);
  b.Rollback(log, mark);
  log.Rollback(mark);
  REQUIRE(a[0] == 10);
  REQUIRE(b[0] == 2);
  // What is written into the log from here on takes the place of what was taken back.
  b.Set(&log, 0, 21);
  b.Rollback(log, mark);
  REQUIRE(b[0] == 2);
}

TEST_CASE("a vector and its log are values: a copy goes its own way") {
  UndoLog log;
  UndoVector<int> vector(std::vector<int>{1, 2});
  const uint32_t mark = log.Mark();
  vector.Set(&log, 0, 3);
  UndoLog other_log = log;
  UndoVector<int> other = vector;
  vector.Set(&log, 1, 4);
  other.Rollback(other_log, mark);
  REQUIRE(Items(other) == std::vector<int>{1, 2});
  REQUIRE(Items(vector) == std::vector<int>{3, 4});
}

// The log is made of words of 8 bytes: items of 1 and of 12 bytes do not fill them.
struct Odd {
  int32_t x, y, z;
  friend bool operator==(const Odd&, const Odd&) = default;
};

template <class T, class Make>
void CompareWithCopies(uint64_t seed, const Make& make) {
  struct Moment {
    uint32_t mark;
    std::vector<T> a, b;
  };
  Rng rng(seed);
  UndoLog log;
  UndoVector<T> a, b;
  std::vector<Moment> moments = {{log.Mark(), {}, {}}};
  for (int step = 0; step < 2000; ++step) {
    UndoVector<T>& vector = rng.Below(2) == 0 ? a : b;
    if (rng.Below(10) == 0) {  // back to some moment; later ones are gone
      moments.resize(1 + rng.Below(moments.size()));
      const Moment& moment = moments.back();
      a.Rollback(log, moment.mark);
      b.Rollback(log, moment.mark);
      log.Rollback(moment.mark);
      REQUIRE(Items(a) == moment.a);
      REQUIRE(Items(b) == moment.b);
      continue;
    }
    std::vector<T> expected = Items(vector);
    if (vector.size() > 0 && rng.Below(3) == 0) {
      const size_t i = rng.Below(vector.size());
      expected[i] = make(rng);
      vector.Set(&log, i, expected[i]);
    } else {
      const size_t begin = rng.Below(vector.size() + 1);
      const size_t remove = rng.Below(std::min<size_t>(4, vector.size() - begin) + 1);
      std::vector<T> insert(rng.Below(4));
      for (T& item : insert) item = make(rng);
      const auto at = expected.begin() + static_cast<ptrdiff_t>(begin);
      expected.insert(expected.erase(at, at + static_cast<ptrdiff_t>(remove)), insert.begin(),
                      insert.end());
      vector.Splice(&log, begin, remove, insert);
    }
    REQUIRE(Items(vector) == expected);
    if (rng.Below(3) == 0) moments.push_back({log.Mark(), Items(a), Items(b)});
  }
}

TEST_CASE("random changes and returns agree with copies that were kept") {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    CompareWithCopies<uint8_t>(seed, [](Rng& rng) { return static_cast<uint8_t>(rng.Below(256)); });
    CompareWithCopies<Odd>(seed, [](Rng& rng) {
      const auto x = static_cast<int32_t>(rng.Below(1000));
      return Odd{x, x + 1, x + 2};
    });
    CompareWithCopies<uint64_t>(seed, [](Rng& rng) { return rng.Next(); });
  }
}

}  // namespace
}  // namespace mallocgame
