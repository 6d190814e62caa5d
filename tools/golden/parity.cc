// Trains models as PyTorch did and prints how far they are from it.
// tools/golden/parity.py writes the folders, and calls this program.

#include <cstdio>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/check.h"
#include "base/files/file_system.h"
#include "nn/kernels/cpu/cpu_kernels.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "tools/golden/parity_case.h"
#include "tools/golden/parity_table.h"

namespace troupe::golden {
namespace {

constexpr char kHelp[] =
    R"(Trains models as PyTorch did and prints how far they are from it.

    python3 tools/golden/parity.py      writes the folders, and calls this
    parity FOLDER...                    again, on folders that it left

A FOLDER has the weights of one model, one batch and what PyTorch makes of them:
the output, the loss and all gradients of the first step, and the losses of some
steps of SGD or AdamW on this batch. The table compares with PyTorch in f64:

    f64      what the reference kernels make of it in f64
    limit    how far that may be
    f32      what the cpu kernels make of it in f32
    PyTorch  what PyTorch makes of it in f32
    ratio    of the last two; at most 2

    output, gradients   ||a - b|| / ||b||; of all gradients the one that is
                        furthest in f64, and the one with the largest ratio
    loss                |a - b| / |b|, of the first step
    losses              the largest |a - b| of all steps

Exits with 0 where all is within the limits, with 1 where something is not, and
with 2 where it cannot be compared.
)";

enum ExitCode { kAllWithin = 0, kSomethingOutside = 1, kNotCompared = 2 };

// Prints a model's errors; returns whether all are within the limits.
absl::StatusOr<bool> Compare(const std::string& folder) {
  base::PosixFileSystem files;
  TROUPE_ASSIGN_OR_RETURN(const ParityCase parity,
                          ParityCase::Open(files, folder));
  ParityRow row;
  row.model = parity.name();
  row.torch_f32 = parity.torch_f32();
  const std::unique_ptr<nn::Kernels> reference = nn::CreateReferenceKernels();
  TROUPE_ASSIGN_OR_RETURN(row.f64, parity.Train(nn::DType::kF64, *reference));
  const std::unique_ptr<nn::Kernels> cpu = nn::CreateCpuKernels({});
  TROUPE_ASSIGN_OR_RETURN(row.f32, parity.Train(nn::DType::kF32, *cpu));
  const std::vector<ParityLine> lines = Judge(row);
  std::printf("%s", ParityTableLines(row.model, lines).c_str());
  std::fflush(stdout);
  return AllOk(lines);
}

int Main(int argc, char** argv) {
  if (argc < 2 || std::string(argv[1]) == "--help") {
    std::fputs(kHelp, argc < 2 ? stderr : stdout);
    return argc < 2 ? kNotCompared : kAllWithin;
  }
  std::fputs(ParityTableHead().c_str(), stdout);
  bool all_within = true;
  for (int i = 1; i < argc; ++i) {
    const absl::StatusOr<bool> within = Compare(argv[i]);
    if (!within.ok()) {
      std::fprintf(stderr, "parity: %s\n",
                   std::string(within.status().message()).c_str());
      return kNotCompared;
    }
    all_within = all_within && *within;
  }
  return all_within ? kAllWithin : kSomethingOutside;
}

}  // namespace
}  // namespace troupe::golden

int main(int argc, char** argv) { return troupe::golden::Main(argc, argv); }
