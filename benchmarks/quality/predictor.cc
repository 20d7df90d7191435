// How well the profile cost model predicts placements it has not seen: leaves out one price after
// another, predicts it from the rest of its pool, and prints a Markdown table with one row a
// program.
//
//   predictor --hardware NAME CAPTURE... [--hardware NAME CAPTURE...]
//
// A CAPTURE is a folder with pre_msa.hlo.pb.gz, profile.json.gz and
// codegen_{off,default,cap16}.hlo.pb.gz; all but the first may be missing. The folder's name is the
// program's.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "mallocgame/base/error.h"
#include "mallocgame/hardware/hardware.h"
#include "mallocgame/hlo/cost/price_table.h"
#include "mallocgame/hlo/import/import.h"
#include "mallocgame/hlo/module/module.h"
#include "mallocgame/program/cost_model.h"
#include "mallocgame/replay/files.h"

namespace mallocgame {
namespace {

// One program with the prices of each instruction still apart.
struct Capture {
  Imported imported;
  std::unique_ptr<const hlo::Module> module;
  std::unique_ptr<hlo::PriceTable> prices;
};

absl::StatusOr<std::string> ReadIfThere(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return std::string();
  return ReadFile(path.string());
}

absl::StatusOr<Capture> ReadCapture(const std::filesystem::path& folder, const Hardware& hardware) {
  MG_ASSIGN_OR_RETURN(const std::string module, ReadFile((folder / "pre_msa.hlo.pb.gz").string()));
  MG_ASSIGN_OR_RETURN(const std::string profile, ReadIfThere(folder / "profile.json.gz"));
  std::vector<std::string> priced;
  for (const char* kind : {"off", "default", "cap16"}) {
    MG_ASSIGN_OR_RETURN(std::string bytes,
                        ReadIfThere(folder / absl::StrCat("codegen_", kind, ".hlo.pb.gz")));
    if (!bytes.empty()) priced.push_back(std::move(bytes));
  }
  ImportInput input;
  input.module = module;
  input.profile = profile;
  input.priced.assign(priced.begin(), priced.end());
  Capture capture;
  MG_ASSIGN_OR_RETURN(capture.imported, ImportHlo(input, hardware));
  MG_ASSIGN_OR_RETURN(capture.module, hlo::Module::Parse(module, "module"));
  capture.prices = std::make_unique<hlo::PriceTable>(*capture.module);
  for (const std::string& bytes : priced) {
    MG_RETURN_IF_ERROR(
        capture.prices->AddModule(bytes, "priced module", hardware.fast_memory_space));
  }
  if (!profile.empty()) MG_RETURN_IF_ERROR(capture.prices->AddProfile(profile));
  capture.prices->Finish();
  return capture;
}

// Errors of one way to predict, over all prices left out.
struct Errors {
  int64_t exact = 0;
  double sum = 0, of = 0;        // of absolute errors, and of the prices, in cycles
  std::vector<double> relative;  // by price

  void Add(const PredictedCycles& predicted, int64_t cycles) {
    const double error = std::abs(static_cast<double>(predicted.cycles - cycles));
    exact += predicted.exact ? 1 : 0;
    sum += error;
    of += static_cast<double>(cycles);
    relative.push_back(cycles > 0 ? error / static_cast<double>(cycles) : 0);
  }
  double Share() const {
    return relative.empty() ? 0 : static_cast<double>(exact) / static_cast<double>(relative.size());
  }
  double Total() const { return of > 0 ? sum / of : 0; }
  // The least error that `share` of all do not exceed.
  double Quantile(double share) {
    if (relative.empty()) return 0;
    std::sort(relative.begin(), relative.end());
    const auto n = static_cast<double>(relative.size());
    return relative[static_cast<size_t>(std::max(0.0, std::min(n - 1, share * n - 0.5)))];
  }
};

std::vector<CostRow> Without(absl::Span<const CostRow> rows, const CostRow& left_out) {
  std::vector<CostRow> rest;
  for (const CostRow& row : rows) {
    if (row.operands != left_out.operands || row.outputs != left_out.outputs) rest.push_back(row);
  }
  return rest;
}

// Leaves out each price of each instruction. A price that another instruction of the pool has too
// stays in the pool.
void PrintRow(const std::string& name, const Capture& capture) {
  const Program& program = *capture.imported.program;
  struct Priced {
    const InstructionCost* cost;
    const hlo::PricedInstruction* own;
  };
  std::vector<Priced> all;
  // instructions by pool and placement
  std::map<std::tuple<int32_t, uint64_t, uint64_t>, int> seen;
  for (Tick tick = 0; tick < program.ticks(); ++tick) {
    const InstructionCost& cost = program.cost().instructions[tick];
    const auto found = capture.prices->instructions().find(program.instruction(tick).name);
    if (cost.pool < 0 || found == capture.prices->instructions().end()) continue;
    all.push_back({&cost, &found->second});
    for (const CostRow& row : found->second.rows) ++seen[{cost.pool, row.operands, row.outputs}];
  }
  Errors pooled, own;
  int64_t alone = 0;
  for (const Priced& priced : all) {
    const absl::Span<const CostRow> pool = program.cost().pools[priced.cost->pool].rows;
    for (const CostRow& row : priced.own->rows) {
      const bool shared = seen[{priced.cost->pool, row.operands, row.outputs}] > 1;
      const std::vector<CostRow> rest =
          shared ? std::vector<CostRow>(pool.begin(), pool.end()) : Without(pool, row);
      if (rest.empty()) {
        ++alone;
        continue;
      }
      pooled.Add(PredictCycles(*priced.cost, rest, row.operands, row.outputs), row.cycles);
      const std::vector<CostRow> own_rest = Without(priced.own->rows, row);
      if (!own_rest.empty())
        own.Add(PredictCycles(*priced.cost, own_rest, row.operands, row.outputs), row.cycles);
    }
  }
  const ImportSummary& summary = capture.imported.summary;
  std::printf("| %s | %lld | %lld | %lld | %lld | %.2f | %.2f %% | %.2f %% | %.2f %% | %.1f %% |\n",
              name.c_str(), static_cast<long long>(summary.priced_instructions),
              static_cast<long long>(summary.pools), static_cast<long long>(pooled.relative.size()),
              static_cast<long long>(alone), pooled.Share(), 100 * own.Total(),
              100 * pooled.Total(), 100 * pooled.Quantile(0.5), 100 * pooled.Quantile(0.95));
}

absl::Status Run(absl::Span<char*> arguments) {
  Hardware hardware;
  std::printf(
      "| program | priced | pools | prices left out | no other row | exact after pooling | own "
      "rows: error "
      "| pooled: error | median | p95 |\n| --- | --: | --: | --: | --: | --: | --: | --: | --: | "
      "--: |\n");
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string argument = arguments[i];
    if (argument == "--hardware" && i + 1 < arguments.size()) {
      MG_ASSIGN_OR_RETURN(hardware, HardwarePreset(arguments[++i]));
      continue;
    }
    if (hardware.name.empty())
      return absl::InvalidArgumentError("--hardware NAME must come before the first capture");
    const std::filesystem::path folder = std::filesystem::path(argument).lexically_normal();
    MG_ASSIGN_OR_RETURN(const Capture capture, ReadCapture(folder, hardware));
    const std::string name =
        (folder.has_filename() ? folder : folder.parent_path()).filename().string();
    PrintRow(absl::StrCat(name, ".", hardware.name), capture);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace mallocgame

int main(int argc, char** argv) {
  const absl::Status status =
      mallocgame::Run(absl::MakeSpan(argv + 1, static_cast<size_t>(argc > 0 ? argc - 1 : 0)));
  if (status.ok()) return 0;
  std::fprintf(stderr, "predictor: %s\n", std::string(status.message()).c_str());
  return 2;
}
