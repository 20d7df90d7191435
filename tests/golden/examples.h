// The rules of docs/rules.md, each on a program that is as small as the rule allows. TestHardware
// makes a byte and a cycle take one picosecond, so every number in the recorded games can be worked
// out on paper.
#pragma once

#include <vector>

#include "tests/golden/record.h"

namespace mallocgame::golden {

std::vector<Example> ReadExamples();      // Drop, Copy, CopyEarly and NoCopy at a read
std::vector<Example> WriteExamples();     // writes, evictions, updates, outputs, plain copies
std::vector<Example> ChannelExamples();   // the copy channel: windows, stalls, limits
std::vector<Example> LoopExamples();      // loops, branches and calls
std::vector<Example> SpaceExamples();     // offsets, alignment, reserved bytes, a full memory
std::vector<Example> PriorityExamples();  // the priority game: one for each mode
std::vector<Example> OptionExamples();    // what a game can be started with, and what isn't asked

std::vector<Example> AllExamples();

}  // namespace mallocgame::golden
