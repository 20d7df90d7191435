#include "tests/golden/examples.h"

#include <utility>

namespace mallocgame::golden {

std::vector<Example> AllExamples() {
  std::vector<Example> all;
  for (const auto& part : {ReadExamples, WriteExamples, ChannelExamples, LoopExamples,
                           SpaceExamples, OptionExamples, PriorityExamples}) {
    for (Example& example : part()) all.push_back(std::move(example));
  }
  return all;
}

}  // namespace mallocgame::golden
