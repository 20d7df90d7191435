// make_programs FOLDER COUNT SEED [TICKS]: writes COUNT tiny random programs as FOLDER/0.mgp ...,
// for tests in other languages. Each comes with hardware that holds a few of its buffers. With
// TICKS they are large ones of that length (large_program.h) for tpu_v4i_16mib. The same seed gives
// the same files.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "mallocgame/replay/files.h"
#include "mallocgame/replay/program_file.h"
#include "tests/support/large_program.h"
#include "tests/support/programs.h"

namespace {

mallocgame::ProgramFile Tiny(mallocgame::Rng& rng) {
  mallocgame::testing::RandomProgramOptions options;
  options.instructions = 3 + static_cast<int>(rng.Below(10));
  options.loops = static_cast<int>(rng.Below(3));
  options.branches = static_cast<int>(rng.Below(2));
  options.constrained = rng.Below(2) == 0;
  options.roofline = rng.Below(8) == 0;
  mallocgame::ProgramFile file;
  file.program = mallocgame::testing::RandomProgram(rng, options);
  file.hardware = mallocgame::testing::TestHardware(6 + rng.Below(16));
  file.hardware.max_preloads = static_cast<int32_t>(rng.Below(3));
  return file;
}

mallocgame::ProgramFile Large(mallocgame::Rng& rng, int ticks) {
  mallocgame::ProgramFile file;
  file.program =
      mallocgame::testing::LargeProgram({.instructions = ticks, .seed = rng.Below(1000)});
  file.hardware = *mallocgame::HardwarePreset("tpu_v4i_16mib");
  return file;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) {
    std::fprintf(stderr, "usage: make_programs FOLDER COUNT SEED [TICKS]\n");
    return 2;
  }
  mallocgame::Rng rng(std::strtoull(argv[3], nullptr, 10));
  const int count = std::stoi(argv[2]);
  for (int i = 0; i < count; ++i) {
    const mallocgame::ProgramFile file = argc == 5 ? Large(rng, std::stoi(argv[4])) : Tiny(rng);
    const std::string path = std::string(argv[1]) + "/" + std::to_string(i) + ".mgp";
    if (const absl::Status status =
            mallocgame::WriteFile(path, mallocgame::SerializeProgramFile(file));
        !status.ok()) {
      std::fprintf(stderr, "make_programs: %s\n", std::string(status.message()).c_str());
      return 1;
    }
  }
  return 0;
}
