#include "mallocgame/vector/vector_env.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"

namespace mallocgame {
namespace {

constexpr int kMostEnvironments = 1 << 20;
// Waking threads costs about as much as some tens of steps.
constexpr int kFewEnvironments = 256;
constexpr int kChunk = 32;

int ThreadCount(int asked, int count) {
  if (asked > 0) return std::min(asked, count);
  if (count < kFewEnvironments) return 1;
  return std::min(UsableCores(), count / kChunk);
}

}  // namespace

absl::StatusOr<std::unique_ptr<VectorEnv>> VectorEnv::Create(std::shared_ptr<const GameList> games,
                                                             int count,
                                                             const VectorEnvOptions& options) {
  if (count < 1 || count > kMostEnvironments) {
    return absl::InvalidArgumentError(
        absl::StrCat("num_envs: found ", count, ", allowed: 1 to ", kMostEnvironments));
  }
  if (options.threads < 0 || options.threads > kMaxThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat("threads: found ", options.threads, ", allowed: 0 to ", kMaxThreads));
  }
  std::vector<Environment> environments;
  environments.reserve(count);
  for (int i = 0; i < count; ++i) {
    std::optional<size_t> fixed;
    if (options.order == GameOrder::kFixed) fixed = i % games->size();
    environments.emplace_back(games, fixed);
  }
  return std::unique_ptr<VectorEnv>(new VectorEnv(std::move(games), std::move(environments),
                                                  options, ThreadCount(options.threads, count)));
}

VectorEnv::VectorEnv(std::shared_ptr<const GameList> games, std::vector<Environment> environments,
                     const VectorEnvOptions& options, int threads)
    : games_(std::move(games)), options_(options), environments_(std::move(environments)),
      pool_(threads) {}

std::unique_ptr<VectorEnv> VectorEnv::Clone() const {
  return std::unique_ptr<VectorEnv>(new VectorEnv(games_, environments_, options_, threads()));
}

void VectorEnv::ForEach(const std::function<void(int, int)>& body) {
  if (pool_.threads() == 1) {
    body(0, count());
  } else {
    pool_.Run(count(), std::clamp(count() / (4 * pool_.threads()), 1, kChunk), body);
  }
}

void VectorEnv::WriteState(int i, float* observations, int8_t* masks) const {
  const Environment& environment = environments_[i];
  environment.Observe(observations + static_cast<ptrdiff_t>(i) * games_->observation_size());
  int8_t* const mask = masks + static_cast<ptrdiff_t>(i) * games_->num_actions();
  environment.WriteMask(mask);
  if (options_.autoreset == Autoreset::kNextStep && ended(i)) mask[0] = 1;
}

absl::Status VectorEnv::Reset(absl::Span<const std::optional<uint64_t>> seeds,
                              absl::Span<const bool> which, const StepBuffers& out) {
  const size_t all = count();
  if ((!seeds.empty() && seeds.size() != all) || (!which.empty() && which.size() != all)) {
    return absl::InvalidArgumentError(
        absl::StrCat("reset: found ", seeds.size(), " seeds and a mask of ", which.size(), " for ",
                     all, " environments; allowed: none, or one for each"));
  }
  ForEach([&](int begin, int end) {
    for (int i = begin; i < end; ++i) {
      const size_t at = i;
      if (!which.empty() && !which[at]) continue;
      environments_[at].Reset(seeds.empty() ? std::nullopt : seeds[at]);
      WriteState(i, out.observations, out.masks);
      out.latency_ps[i] = environments_[at].position().latency_ps();
    }
  });
  return absl::OkStatus();
}

absl::Status VectorEnv::Resume(absl::Span<const EnvironmentPoint> points, const StepBuffers& out) {
  if (points.size() != environments_.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "points: found ", points.size(), ", allowed: ", count(), ", one for each environment"));
  }
  for (int i = 0; i < count(); ++i) {
    const absl::Status status = environments_[i].Resume(points[i]);
    if (!status.ok()) {
      return absl::Status(status.code(), absl::StrCat("environment ", i, ": ", status.message()));
    }
    WriteState(i, out.observations, out.masks);
    out.latency_ps[i] = environments_[i].position().latency_ps();
  }
  return absl::OkStatus();
}

absl::Status VectorEnv::CheckAction(int i, int64_t action) const {
  const Position& position = environments_[i].position();
  if (position.IsTerminal()) {
    // The step begins the next episode and ignores the action.
    if (options_.autoreset == Autoreset::kNextStep) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat("environment ", i, ": the game is over; reset it before its next step"));
  }
  const ActionSet legal = position.legal_actions();
  if (action >= 0 && action < games_->num_actions() && legal.Has(static_cast<int>(action)))
    return absl::OkStatus();
  std::string names;
  for (const int other : legal) {
    absl::StrAppend(&names, names.empty() ? "" : ", ", other, " (",
                    position.game().ActionToString(other), ")");
  }
  return absl::InvalidArgumentError(absl::StrCat("environment ", i, ": action ", action,
                                                 " is illegal at decision ",
                                                 position.num_decisions(), "; legal: ", names));
}

absl::Status VectorEnv::StepOne(int i, int64_t action, const StepBuffers& out) {
  Environment& environment = environments_[i];
  if (environment.position().IsTerminal()) {  // kNextStep, by CheckAction
    environment.Reset();
    out.rewards[i] = 0.0;
  } else {
    MG_ASSIGN_OR_RETURN(const int64_t saved_ps, environment.Step(static_cast<int>(action)));
    const int64_t all_main_ps = environment.position().game().all_main_ps();
    out.rewards[i] =
        all_main_ps == 0 ? 0.0 : static_cast<double>(saved_ps) / static_cast<double>(all_main_ps);
  }
  out.terminated[i] = environment.position().IsTerminal();
  out.latency_ps[i] = environment.position().latency_ps();
  if (out.terminated[i] && options_.autoreset == Autoreset::kSameStep) {
    WriteState(i, out.final_observations, out.final_masks);
    environment.Reset();
  }
  WriteState(i, out.observations, out.masks);
  return absl::OkStatus();
}

absl::Status VectorEnv::Step(absl::Span<const int64_t> actions, const StepBuffers& out) {
  if (actions.size() != environments_.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "actions: found ", actions.size(), ", allowed: ", count(), ", one for each environment"));
  }
  for (int i = 0; i < count(); ++i) MG_RETURN_IF_ERROR(CheckAction(i, actions[i]));

  std::mutex mutex;
  absl::Status first;
  int first_index = count();
  ForEach([&](int begin, int end) {
    for (int i = begin; i < end; ++i) {
      absl::Status status = StepOne(i, actions[i], out);
      if (status.ok()) continue;
      const std::lock_guard<std::mutex> lock(mutex);
      if (i >= first_index) continue;
      first_index = i;
      first = absl::Status(status.code(), absl::StrCat("environment ", i, ": ", status.message()));
    }
  });
  return first;
}

}  // namespace mallocgame
