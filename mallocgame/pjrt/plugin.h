// A compiler behind the PJRT C API, as libtpu is one. It needs no chip.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace mallocgame::pjrt {

struct Api;
struct Error;
struct PhaseCompiler;
struct PhaseCompileExtension;
struct TopologyDescription;

// The phases of a compile that libtpu runs one by one, in order. Both of phase 2 take what phase 1
// gives: 2a the top-level program, 2b one isolated module at a time.
inline constexpr absl::string_view kPhase1HloOpts = "phase1_hlo_opts";
inline constexpr absl::string_view kPhase2aTlpLowering = "phase2a_tlp_lowering";
inline constexpr absl::string_view kPhase2bDedupedLowering = "phase2b_deduped_lowering";
inline constexpr absl::string_view kPhase3Linking = "phase3_linking";

// Settings of a topology by name: texts and lists of integers.
using TopologyOptions = std::map<std::string, std::variant<std::string, std::vector<int64_t>>>;

// The chips that a plugin compiles for. It may not outlive the plugin.
class Topology {
 public:
  Topology(const Api* api, TopologyDescription* description);

 private:
  friend class Plugin;
  std::shared_ptr<TopologyDescription> description_;
};

// A loaded plugin. Its library stays loaded until the process ends. What the plugin refuses is a
// status with the plugin's own code and message. Where a check inside the plugin fails, it ends the
// process.
class Plugin {
 public:
  // NotFound: there is no such library. FailedPrecondition: it is no plugin, or speaks another
  // version of the API.
  static absl::StatusOr<std::unique_ptr<Plugin>> Load(const std::string& path);

  ~Plugin();
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;

  // "MAJOR.MINOR".
  std::string api_version() const;

  // Whether it can run phases one by one.
  bool HasPhases() const;

  // name: "v5e:2x2", say.
  absl::StatusOr<Topology> CreateTopology(const std::string& name,
                                          const TopologyOptions& options) const;

  // Returns the serialized executable. format: "mlir" (StableHLO as a portable artifact) or "hlo"
  // (a HloModuleProto). options: as CompileOptions() makes them.
  absl::StatusOr<std::string> Compile(absl::string_view format, absl::string_view program,
                                      absl::string_view options, const Topology& topology) const;

  // Runs one phase on serialized partial programs (partial_program.h) and returns what it gives.
  // FailedPrecondition: the plugin has no phases.
  absl::StatusOr<std::vector<std::string>> RunPhase(absl::string_view phase,
                                                    absl::Span<const std::string> programs,
                                                    absl::string_view options,
                                                    const Topology& topology) const;

 private:
  Plugin(const Api* api, const PhaseCompileExtension* phases);
  // Initializes the plugin, and has it make its phase compiler if it has phases.
  absl::Status Start();

  const Api* const api_;
  const PhaseCompileExtension* const phases_;  // nullptr: it has none
  const PhaseCompiler* phase_compiler_ = nullptr;
};

}  // namespace mallocgame::pjrt
