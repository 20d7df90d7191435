// OpenSpiel's AlphaZero on a game of ours: alpha_zero FOLDER SECONDS [PROGRAM]. It trains for so
// long, and prints what the network of each checkpoint plays, alone and with its MCTS.
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <thread>

#include "bindings/open_spiel/mallocgame.h"
#include "open_spiel/algorithms/alpha_zero_torch/alpha_zero.h"
#include "open_spiel/algorithms/alpha_zero_torch/device_manager.h"
#include "open_spiel/algorithms/alpha_zero_torch/vpevaluator.h"
#include "open_spiel/algorithms/alpha_zero_torch/vpnet.h"
#include "open_spiel/algorithms/mcts.h"
#include "open_spiel/utils/thread.h"

namespace az = open_spiel::algorithms::torch_az;

// The return of a game with so many simulations for each decision.
double Play(const open_spiel::Game& game, const std::shared_ptr<az::VPNetEvaluator>& network,
            int simulations) {
  open_spiel::algorithms::MCTSBot bot(game, network, 1, simulations, 100, /*solve=*/false, 0,
                                      /*verbose=*/false,
                                      open_spiel::algorithms::ChildSelectionPolicy::PUCT);
  std::unique_ptr<open_spiel::State> state = game.NewInitialState();
  while (!state->IsTerminal()) {
    if (simulations > 0) {
      state->ApplyAction(bot.Step(*state));
      continue;
    }
    open_spiel::Action best = open_spiel::kInvalidAction;
    double most = -1;
    for (const auto& [action, share] : network->Prior(*state)) {
      if (share > most) most = share, best = action;
    }
    state->ApplyAction(best);
  }
  return state->PlayerReturn(0);
}

int main(int argc, char** argv) {
  if (argc < 3) return std::cerr << "usage: alpha_zero FOLDER SECONDS [PROGRAM]\n", 2;
  const std::string folder = argv[1], program = argc > 3 ? argv[3] : "wavernn_64steps_b8.tpu_v4i";
  const int seconds = std::atoi(argv[2]);
  az::AlphaZeroConfig config = {};
  config.game = "mallocgame(players=2,observation=compact,program=" + program + ")";
  config.path = folder;
  config.nn_model = "mlp";
  config.nn_width = 128;
  config.nn_depth = 2;
  config.devices = "/cpu:0";
  config.learning_rate = 1e-3;
  config.weight_decay = 1e-4;
  config.train_batch_size = 256;
  config.inference_batch_size = 1;
  config.inference_cache = 1 << 16;
  config.replay_buffer_size = 1 << 13;
  config.replay_buffer_reuse = 3;
  config.checkpoint_freq = 5;
  config.evaluation_window = 10;
  config.uct_c = 1;
  config.max_simulations = 50;
  config.policy_alpha = 1;
  config.policy_epsilon = 0.25;
  config.temperature = 1;
  config.temperature_drop = 20;
  config.cutoff_probability = 0;
  config.cutoff_value = 100;  // above all returns
  config.actors = 2;
  config.evaluators = 0;
  config.eval_levels = 1;

  std::filesystem::create_directories(folder);
  open_spiel::StopToken stop;
  const auto start = std::chrono::steady_clock::now();
  std::thread timer([&] {
    std::this_thread::sleep_for(std::chrono::seconds(seconds));
    stop.Stop();
  });
  const bool trained = az::AlphaZero(config, &stop, /*resuming=*/false);
  stop.Stop();
  timer.join();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::cout << "\ntrained for " << took.count() << " s\n";

  const std::shared_ptr<const open_spiel::Game> game = open_spiel::LoadGame(config.game);
  az::DeviceManager devices;
  devices.AddDevice(az::VPNetModel(*game, folder, "vpnet.pb", "/cpu:0"));
  for (int step = 0; step < 1'000'000; step += config.checkpoint_freq) {
    if (!std::filesystem::exists(folder + "/checkpoint-" + std::to_string(step) + ".pt")) break;
    devices.Get(1)->LoadCheckpoint(step);
    auto network = std::make_shared<az::VPNetEvaluator>(&devices, 1, 0, 1, 1);
    std::cout << "checkpoint " << step << ": network " << Play(*game, network, 0) << ", with MCTS "
              << Play(*game, network, 50) << std::endl;
  }
  return trained ? 0 : 1;
}
