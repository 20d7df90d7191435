// Reads observations by the names of their parts and columns.
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "mallocgame/game/observation.h"
#include "mallocgame/game/position.h"
#include "mallocgame/game/prices.h"
#include "mallocgame/game/time/time_game.h"
#include "tests/catch.h"

namespace mallocgame::testing {

inline int Column(absl::Span<const Feature> features, const std::string& name) {
  for (size_t i = 0; i < features.size(); ++i) {
    if (features[i].name == name) return static_cast<int>(i);
  }
  FAIL("no feature " << name);
  return -1;
}

// One observation.
struct Reader {
  Reader(const Position& position, const ObservationOptions& options,
         const Prices* prices = nullptr)
      : layout(position.game().options().Layout(options)) {
    const auto observer = Observer::Create(position.shared_game(), options, prices);
    REQUIRE(observer.ok());
    numbers.assign(observer->size() + 1, 77.0F);
    observer->Write(position, numbers.data());
    REQUIRE(numbers.back() == 77.0F);
    numbers.pop_back();
  }
  const ObservationPart& Part(const std::string& name) const {
    for (const ObservationPart& part : layout) {
      if (part.name == name) return part;
    }
    FAIL("no part " << name);
    return layout[0];
  }
  float At(const std::string& name, int row, int column) const {
    const ObservationPart& part = Part(name);
    return numbers[part.offset + row * part.shape.back() + column];
  }
  float Access(int row, const char* feature) const {
    return At("accesses", row, Column(Part("accesses").columns, feature));
  }
  float Candidate(int row, const char* feature) const {
    return At("candidates", row, Column(Part("candidates").columns, feature));
  }
  float Of(int action, const char* feature) const {
    return At("actions", action, Column(Part("actions").columns, feature));
  }
  float Of(Action action, const char* feature) const {
    return Of(static_cast<int>(action), feature);
  }
  float Scalar(const char* feature) const {
    return At("scalars", 0, Column(Part("scalars").columns, feature));
  }

  std::vector<ObservationPart> layout;
  std::vector<float> numbers;
};

}  // namespace mallocgame::testing
