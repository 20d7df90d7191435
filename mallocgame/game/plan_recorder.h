// Writes down as a Plan what a State does while a game is played.
#ifndef MALLOCGAME_GAME_PLAN_RECORDER_H_
#define MALLOCGAME_GAME_PLAN_RECORDER_H_

#include <cstdint>
#include <vector>

#include "mallocgame/base/ids.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/program/program.h"

namespace mallocgame {

class PlanRecorder {
 public:
  PlanRecorder(const Program& program, const Hardware& hardware);

  // A new residence of `buffer`, which is the one that Extend, Prefetch, Serve and WriteBack of
  // that buffer mean from now on.
  void Open(BufferId buffer, int64_t offset, Tick begin, Tick end);
  void SetEnd(BufferId buffer, Tick end);
  // start_ps orders the copies: the service axis of the game's channel.
  void Prefetch(BufferId buffer, Tick begin, Tick end, int64_t start_ps, Tick replaces);
  void Preload(BufferId buffer, Tick end);
  void WriteBack(BufferId buffer, Tick begin, Tick end);
  void WriteBackStarts(BufferId buffer, int64_t start_ps);
  void SetWriteBackEnd(BufferId buffer, Tick end);
  void Serve(AccessId access, BufferId buffer);

  Plan Finish();

 private:
  int64_t PartEnd(BufferId buffer) const { return program_.buffer(buffer).size_bytes; }

  const Program& program_;
  Plan plan_;
  std::vector<int64_t> start_ps_;  // one a copy
  std::vector<ResidenceId> open_;  // one a buffer: its latest residence
  // one a buffer: its latest write-back, index into plan_.copies
  std::vector<int32_t> write_back_;
};

}  // namespace mallocgame

#endif  // MALLOCGAME_GAME_PLAN_RECORDER_H_
