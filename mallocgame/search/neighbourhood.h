// What local search asks of whatever it changes: a solution, random *moves* from it, and what they
// cost. A move sets up a trial beside the accepted solution, which takes its place or is forgotten.
#pragma once

#include <cstdint>

#include "mallocgame/base/rng.h"

namespace mallocgame {

class Neighbourhood {
 public:
  virtual ~Neighbourhood() = default;

  // Whether there is nothing to move.
  virtual bool empty() const = 0;
  // Sets up a trial by a random move. False: there is no trial.
  virtual bool Propose(Rng& rng) = 0;
  // Works out the trial and says whether its latency is at most `most`. If it is, Accept makes it
  // the accepted solution; Reject forgets any trial. One of them ends each trial.
  virtual bool Try(int64_t most) = 0;
  virtual void Accept() = 0;
  virtual void Reject() = 0;
  virtual int64_t latency_ps() const = 0;  // of the accepted solution
};

}  // namespace mallocgame
