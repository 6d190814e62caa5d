// Times training steps on a GPU, and, in alternating rounds, PyTorch's. The
// default cases are small models, whose steps cost overhead, not arithmetic.
//
//   bazel run --config=cuda //tools/bench/gpu_step -- --python=$(which python3)
//   ... --case=toy_cnn --dtype=bf16           some cases, one dtype
//   ... --case=gpt2,resnet50_224 --dtype=bf16 --seconds=5
//       --peer_modes=eager,autocast_compile   models that fill a GPU
//   ... --seconds=2 --rounds=9 --json
//   ... --device=cpu:0 --dtype=f32            the same rows without a GPU
//
// A row "toy_cnn f32 graphs / torch eager" has Troupe's time of a step that is
// captured in CUDA graphs beside that of PyTorch run eagerly: medians of
// alternating rounds. Its note has Troupe's samples or tokens per second, and
// its model FLOPs (tools/bench/nn/step_work.h). Troupe runs the whole engine
// (actors, loader, samples gathered from memory and copied to the GPU); the
// peer's batch is one fixed tensor on the GPU, and the peer uses its fastest
// settings (torch_step.py). Neither side uses TF32. bf16 holds for all
// parameters and activations; "autocast graphs" and "autocast compile" are
// PyTorch's autocast instead, with parameters in f32.

#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "actors/step_seconds.h"
#include "base/check.h"
#include "data/dataset.h"
#include "nn/kernels/kernel_choices.h"
#include "nn/kernels/open_kernels.h"
#include "tools/bench/nn/step_work.h"
#include "tools/bench/peer.h"
#include "tools/bench/report.h"
#include "tools/bench/train_case.h"

ABSL_FLAG(std::vector<std::string>, case, {},
          "cases of tools/bench/train_case.h; default: toy_mlp, toy_cnn, "
          "mnist_mlp");
ABSL_FLAG(std::vector<std::string>, dtype,
          std::vector<std::string>({"f32", "bf16"}), "f32, bf16, or both");
ABSL_FLAG(std::string, device, "cuda:0", "cuda:N or cpu:0");
ABSL_FLAG(double, seconds, 1, "time of one contestant in one round");
ABSL_FLAG(int, rounds, 3, "alternating rounds; the median counts");
ABSL_FLAG(double, budget_s, 0,
          "begin no further case after this many seconds; 0: no limit");
ABSL_FLAG(bool, json, false, "print one JSON object a row");
ABSL_FLAG(std::string, python, "", "a Python with PyTorch, to measure it too");
ABSL_FLAG(std::vector<std::string>, peer_modes,
          std::vector<std::string>({"eager", "graphs", "compile"}),
          "how PyTorch runs: eager, graphs, compile, autocast_compile, "
          "autocast_graphs; bf16 has autocast_graphs beside graphs");

namespace troupe::bench {
namespace {

struct OwnMode {
  std::string name;
  std::string cuda_graphs;  // value of train.cuda_graphs
};

std::vector<OwnMode> OwnModes() {
  if (absl::StartsWith(absl::GetFlag(FLAGS_device), "cuda")) {
    return {{"eager", "off"}, {"graphs", "on"}};
  }
  return {{"eager", "auto"}};
}

std::vector<std::string> PeerModes(const std::string& dtype) {
  std::vector<std::string> modes = absl::GetFlag(FLAGS_peer_modes);
  if (dtype == "bf16" && absl::c_linear_search(modes, "graphs")) {
    modes.push_back("autocast_graphs");
  }
  return modes;
}

// Work of a step: the number of samples or tokens, and the arithmetic.
struct Work {
  const char* unit = "samples";
  double units = 0;
  double flops = 0;
};

absl::StatusOr<Work> WorkOf(const actors::JobSpec& spec) {
  const data::SampleSpec& sample = spec.train->spec();
  Work work;
  work.units = static_cast<double>(spec.plan.global_batch_size);
  if (!nn::IsFloating(sample.input_dtype)) {
    work.unit = "tokens";
    work.units *= static_cast<double>(sample.input_shape.numel());
  }
  TROUPE_ASSIGN_OR_RETURN(work.flops, StepFlops(spec));
  return work;
}

// Returns "512000 tokens/s, 438 TFLOP/s".
std::string Describe(const Work& work, double micros) {
  return absl::StrFormat("%.6g %s/s, %.3g TFLOP/s", work.units / micros * 1e6,
                         work.unit, work.flops / micros * 1e-6);
}

double MicrosPerStep(double steps_per_second) { return 1e6 / steps_per_second; }

// Times in microseconds by mode, one per round; none if the mode does not run.
using Times = std::map<std::string, std::vector<double>>;

class Bench {
 public:
  Bench(std::unique_ptr<Peer> peer, Report& report)
      : peer_(std::move(peer)), report_(report) {}

  absl::Status Run(const std::string& name, const std::string& dtype) {
    ours_.clear();
    theirs_.clear();
    for (int round = 0; round < absl::GetFlag(FLAGS_rounds); ++round) {
      TROUPE_RETURN_IF_ERROR(Round(name, dtype));
    }
    for (const OwnMode& mode : OwnModes()) AddRows(name, dtype, mode.name);
    return absl::OkStatus();
  }

 private:
  absl::Status Round(const std::string& name, const std::string& dtype) {
    for (const OwnMode& mode : OwnModes()) {
      TROUPE_ASSIGN_OR_RETURN(
          actors::JobSpec spec,
          MakeTrainJob(
              name, /*ranks=*/1,
              {absl::StrCat("train.device=", absl::GetFlag(FLAGS_device)),
               absl::StrCat("train.precision=", dtype),
               absl::StrCat("train.cuda_graphs=", mode.cuda_graphs),
               "train.stop_on_nan=false"}));
      spec.kernel_choices = choices_;
      TROUPE_ASSIGN_OR_RETURN(work_, WorkOf(spec));
      TROUPE_ASSIGN_OR_RETURN(
          const double rate,
          actors::StepsPerSecond(spec, absl::GetFlag(FLAGS_seconds)));
      ours_[mode.name].push_back(MicrosPerStep(rate));
    }
    if (peer_ == nullptr) return absl::OkStatus();
    for (const std::string& mode : PeerModes(dtype)) {
      TROUPE_ASSIGN_OR_RETURN(
          const double rate,
          peer_->Measure(absl::StrCat(name, " ", dtype, " ", mode, " ",
                                      absl::GetFlag(FLAGS_seconds))));
      // The peer answers NaN if it does not run the mode (torch_step.py).
      if (std::isfinite(rate)) theirs_[mode].push_back(MicrosPerStep(rate));
    }
    return absl::OkStatus();
  }

  void AddRows(const std::string& name, const std::string& dtype,
               const std::string& own_mode) {
    Row row;
    row.name = absl::StrCat(name, " ", dtype, " ", own_mode);
    row.unit = "us/step";
    row.ours = Median(ours_.at(own_mode));
    row.note = Describe(work_, row.ours);
    if (theirs_.empty()) report_.Add(row);
    for (const auto& [mode, times] : theirs_) {
      Row beside = row;
      absl::StrAppend(&beside.name, " / torch ",
                      absl::StrReplaceAll(mode, {{"_", " "}}));
      beside.peer = Median(times);
      report_.Add(beside);
    }
  }

  const std::unique_ptr<Peer> peer_;
  Report& report_;
  const std::shared_ptr<nn::KernelChoices> choices_ =
      std::make_shared<nn::KernelChoices>();
  Work work_;
  Times ours_, theirs_;
};

// Returns "cuda:0, NVIDIA H200, ..."; empty if the CPU computes.
absl::StatusOr<std::string> DescribeDevice(const std::string& text) {
  TROUPE_ASSIGN_OR_RETURN(const nn::Device device, nn::Device::Parse(text));
  if (device.is_host()) return "";
  TROUPE_RETURN_IF_ERROR(nn::CheckDevices(device, /*ranks=*/1));
  TROUPE_ASSIGN_OR_RETURN(
      const std::unique_ptr<nn::Kernels> kernels,
      nn::OpenKernels(device.ForRank(/*local_rank=*/0), {}));
  return kernels->Describe();
}

absl::StatusOr<std::unique_ptr<Peer>> StartPeer(const std::string& program,
                                                bool on_gpu) {
  const std::string python = absl::GetFlag(FLAGS_python);
  if (python.empty()) return nullptr;
  return Peer::Start(python,
                     FindScript(program, "tools/bench/gpu_step/torch_step.py"),
                     {absl::StrCat("--device=", on_gpu ? "cuda" : "cpu")});
}

// Runs cases until the time budget is spent. If one fails, prints why and goes
// on with the next.
absl::Status RunCases(Bench& bench) {
  std::vector<std::string> names = absl::GetFlag(FLAGS_case);
  if (names.empty()) names = {"toy_mlp", "toy_cnn", "mnist_mlp"};
  const double budget_s = absl::GetFlag(FLAGS_budget_s);
  const auto begin = std::chrono::steady_clock::now();
  absl::Status first_error;
  for (const std::string& name : names) {
    for (const std::string& dtype : absl::GetFlag(FLAGS_dtype)) {
      const std::chrono::duration<double> spent =
          std::chrono::steady_clock::now() - begin;
      absl::Status status;
      if (budget_s > 0 && spent.count() > budget_s) {
        std::fprintf(stderr, "no time is left for %s %s\n", name.c_str(),
                     dtype.c_str());
      } else {
        status = bench.Run(name, dtype);
      }
      if (status.ok()) continue;
      std::fprintf(stderr, "%s %s: %s\n", name.c_str(), dtype.c_str(),
                   status.ToString().c_str());
      first_error.Update(status);
    }
  }
  return first_error;
}

absl::Status Main(const std::string& program) {
  for (const std::string& dtype : absl::GetFlag(FLAGS_dtype)) {
    if (dtype == "f32" || dtype == "bf16") continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--dtype=", dtype, ": give f32, bf16, or both"));
  }
  TROUPE_ASSIGN_OR_RETURN(const std::string gpu,
                          DescribeDevice(absl::GetFlag(FLAGS_device)));
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<Peer> peer,
                          StartPeer(program, !gpu.empty()));
  Report report(
      "gpu_step",
      absl::GetFlag(FLAGS_json) ? Report::Form::kJson : Report::Form::kTable,
      gpu);
  Bench bench(std::move(peer), report);
  const absl::Status status = RunCases(bench);
  report.End();
  return status;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("Times training steps on a GPU.");
  absl::ParseCommandLine(argc, argv);
  const absl::Status status = troupe::bench::Main(argv[0]);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}
