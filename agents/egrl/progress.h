// What a generation of training did, for people who watch it.
#pragma once

#include <cstdint>

namespace mallocgame::egrl {

// What a generation did. All but the last fields are of its problem. Rewards are the squares of the
// speed-up. They are NaN where nothing was graded or learned.
struct Progress {
  int64_t generation = 0;   // of all problems
  int64_t problem = 0;      // the place of its problem among all
  int64_t evaluations = 0;  // maps graded since the start
  int64_t best_ps = 0;      // latency of the best map so far that fits; 0 if there is none yet
  double best_reward = 0;   // the reward of that map
  double fresh = 0;         // share of this generation's maps that had not been graded before
  double penalised = 0;     // share of them that had to be rectified, which Config::penalty counts

  // The number of members of the population after the generation, and the rewards of its networks,
  // of its Boltzmann chromosomes, of the policy gradient's rollouts and of the refinements.
  int gnn_members = 0, boltzmann_members = 0;
  double gnn_mean = 0, gnn_max = 0;
  double boltzmann_mean = 0, boltzmann_max = 0;
  double gradient_mean = 0, gradient_max = 0;
  double refined_mean = 0, refined_max = 0;

  // How often each found a better map than all before, since the start.
  int64_t best_by_gnn = 0, best_by_boltzmann = 0, best_by_gradient = 0, best_by_refining = 0;
  // Actors that migrated into the population since the start. The next selection made some of them
  // elites, selected some others as parents, and discarded the rest.
  int64_t migrants = 0, migrants_elite = 0, migrants_selected = 0;

  // Means over the generation's updates. Values (learner.h) are multiplied by the
  // setting reward_scale.
  int64_t updates = 0;        // number of updates since the start, for all problems
  double critic_loss = 0;     // mean square error of the critics' values
  double value = 0;           // value that the critics expect of the actor's map
  double entropy = 0;         // entropy of the actor in nats, mean over the real decisions
  double actor_gradient = 0;  // norm of the actor's gradient before clipping
  int64_t replay = 0;         // number of maps in the replay buffer

  double rollout_seconds = 0;  // wall time spent on making and grading maps
  double learn_seconds = 0;    // wall time spent on updates
};

}  // namespace mallocgame::egrl
