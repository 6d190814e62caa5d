// Times generation with a key-value cache and, in alternating rounds, Hugging
// Face's generate(): tokens per second of models of random weights, f32, one
// thread, the likeliest token each time.
//
//   bazel run //tools/bench/generate -- --python=$HOME/peer/bin/python
//   ... --case=gpt2 --texts=1                one case, one number of texts
//   ... --rounds=5                           more often
//   ... --json                               one JSON object per row
//
// Cases: gpt2, of 124M parameters; char_gpt, 6 layers of 192, 65 characters.
// The time has the prompts' forwards in it. A row's note has the time of a
// step, a token of each text, after the prompt and at the end: the medians of
// up to 32 steps. In JSON these are first_step_ms and last_step_ms.

#include "nn/generate/generate.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "nn/arena/parameter_arena.h"
#include "nn/kernels/open_kernels.h"
#include "nn/models/gpt2.h"
#include "tools/bench/figure_table.h"
#include "tools/bench/peer.h"

ABSL_FLAG(std::vector<std::string>, case,
          std::vector<std::string>({"char_gpt", "gpt2"}), "char_gpt, gpt2");
ABSL_FLAG(std::vector<std::string>, texts, std::vector<std::string>({"1", "8"}),
          "numbers of texts at a time");
ABSL_FLAG(int, prompt, 64, "tokens of a prompt");
ABSL_FLAG(int, tokens, 256, "tokens that follow, at least 4");
ABSL_FLAG(int, rounds, 3, "alternating rounds; the median counts");
ABSL_FLAG(bool, json, false, "print one JSON object a row");
ABSL_FLAG(std::string, python, "",
          "a Python with PyTorch and transformers, to measure the peer");

namespace troupe::bench {
namespace {

using Clock = std::chrono::steady_clock;

// Notes when each step of all texts has ended.
class Steps : public nn::TextListener {
 public:
  explicit Steps(std::size_t texts) : texts_(texts) {}

  bool OnToken(std::size_t text, std::int32_t) override {
    if (text + 1 == texts_) ends_.push_back(Clock::now());
    return true;
  }

  // Return the median milliseconds of up to 32 steps. The first token comes
  // from the prompt, and the second is compared with a forward of all tokens.
  double First() const { return MedianOf(2, std::min(Size(), 2 + kSteps)); }
  double Last() const {
    return MedianOf(std::max(Size(), 2 + kSteps) - kSteps, Size());
  }

 private:
  static constexpr std::size_t kSteps = 32;

  std::size_t Size() const { return ends_.size(); }
  double MedianOf(std::size_t begin, std::size_t end) const {
    std::vector<double> times;
    for (std::size_t i = begin; i < end; ++i) {
      times.push_back(
          std::chrono::duration<double, std::milli>(ends_[i] - ends_[i - 1])
              .count());
    }
    return Median(times);
  }

  const std::size_t texts_;
  std::vector<Clock::time_point> ends_;
};

class Model {
 public:
  static absl::StatusOr<std::unique_ptr<Model>> Make(const std::string& name) {
    auto model = std::make_unique<Model>();
    if (name == "char_gpt") {
      model->options_ = *nn::Gpt2Preset("gpt_mini");
      model->options_.vocab_size = 65;
      model->options_.context = 320;
    } else if (name == "gpt2") {
      model->options_ = *nn::Gpt2Preset("gpt2");
    } else {
      return absl::InvalidArgumentError(absl::StrCat(
          "--case: there is no case ", name, "; give char_gpt or gpt2"));
    }
    TROUPE_ASSIGN_OR_RETURN(model->kernels_, nn::OpenKernels(nn::Device(), {}));
    TROUPE_ASSIGN_OR_RETURN(model->layers_, nn::MakeGpt2(model->options_));
    TROUPE_ASSIGN_OR_RETURN(
        model->arena_,
        nn::ParameterArena::Create({model->layers_->Parameters()}, {},
                                   model->kernels_->allocator()));
    TROUPE_RETURN_IF_ERROR(model->arena_->Initialize(/*seed=*/1));
    return model;
  }

  absl::Status Generate(std::size_t texts, Steps& steps) {
    nn::GenerateOptions options;
    options.context = options_.context;
    options.tokens = absl::GetFlag(FLAGS_tokens);
    options.batch = static_cast<std::int64_t>(texts);
    options.sampling.temperature = 0;
    const auto length = static_cast<std::size_t>(absl::GetFlag(FLAGS_prompt));
    std::vector<std::vector<std::int32_t>> prompts(texts);
    std::int64_t next = 0;
    for (std::vector<std::int32_t>& prompt : prompts) {
      while (prompt.size() < length) {
        prompt.push_back(
            static_cast<std::int32_t>(next++ * 7919 % options_.vocab_size));
      }
    }
    return nn::GenerateTexts(nn::LogitsOf(*layers_, *kernels_),
                             kernels_->allocator(), prompts, options, steps);
  }

 private:
  nn::Gpt2Options options_;
  std::unique_ptr<nn::Kernels> kernels_;
  std::unique_ptr<nn::Sequential> layers_;
  std::unique_ptr<nn::ParameterArena> arena_;
};

class Benchmark {
 public:
  explicit Benchmark(std::unique_ptr<Peer> peer)
      : table_("generate", absl::GetFlag(FLAGS_json) ? Report::Form::kJson
                                                     : Report::Form::kTable),
        peer_(std::move(peer)) {}

  absl::Status Run(const std::string& name, int texts) {
    TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<Model> model,
                            Model::Make(name));
    Figure& figure = table_.At(absl::StrCat(name, " texts=", texts),
                               /*ranks=*/1, "tokens/s", Better::kHigher);
    std::vector<double> first, last;
    const double tokens = 1.0 * texts * absl::GetFlag(FLAGS_tokens);
    for (int round = 0; round < absl::GetFlag(FLAGS_rounds); ++round) {
      for (const bool own : {round % 2 == 0, round % 2 != 0}) {
        if (own) {
          Steps steps(static_cast<std::size_t>(texts));
          const Clock::time_point begin = Clock::now();
          TROUPE_RETURN_IF_ERROR(
              model->Generate(static_cast<std::size_t>(texts), steps));
          const std::chrono::duration<double> time = Clock::now() - begin;
          figure.ours.push_back(tokens / time.count());
          first.push_back(steps.First());
          last.push_back(steps.Last());
        } else if (peer_ != nullptr) {
          TROUPE_ASSIGN_OR_RETURN(
              const double seconds,
              peer_->Measure(absl::StrCat(name, " ", texts, " ",
                                          absl::GetFlag(FLAGS_prompt), " ",
                                          absl::GetFlag(FLAGS_tokens))));
          figure.peer.push_back(tokens / seconds);
        }
      }
    }
    figure.note = absl::StrFormat(
        "a step: %.4g ms after the prompt, %.4g ms at "
        "the end",
        Median(first), Median(last));
    figure.details = {{"first_step_ms", Median(first)},
                      {"last_step_ms", Median(last)}};
    table_.Print();
    return absl::OkStatus();
  }

  void End() { table_.End(); }

 private:
  FigureTable table_;
  const std::unique_ptr<Peer> peer_;
};

absl::Status Main(const std::string& program) {
  for (const auto& [name, value, least] :
       {std::tuple("--tokens", absl::GetFlag(FLAGS_tokens), 4),
        std::tuple("--prompt", absl::GetFlag(FLAGS_prompt), 1),
        std::tuple("--rounds", absl::GetFlag(FLAGS_rounds), 1)}) {
    if (value >= least) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is ", value, "; it must be at least ", least));
  }
  std::unique_ptr<Peer> peer;
  if (const std::string python = absl::GetFlag(FLAGS_python); !python.empty()) {
    TROUPE_ASSIGN_OR_RETURN(
        peer,
        Peer::Start(
            python,
            FindScript(program, "tools/bench/generate/torch_generate.py"), {}));
  }
  Benchmark benchmark(std::move(peer));
  for (const std::string& name : absl::GetFlag(FLAGS_case)) {
    for (const std::string& word : absl::GetFlag(FLAGS_texts)) {
      int texts = 0;
      if (!absl::SimpleAtoi(word, &texts) || texts < 1) {
        return absl::InvalidArgumentError(
            absl::StrCat("--texts has \"", word, "\"; give numbers from 1 on"));
      }
      TROUPE_RETURN_IF_ERROR(benchmark.Run(name, texts));
    }
  }
  benchmark.End();
  return absl::OkStatus();
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "times generation with a cache, and Hugging Face's generate()");
  absl::ParseCommandLine(argc, argv);
  const absl::Status status = troupe::bench::Main(argv[0]);
  if (status.ok()) return 0;
  std::fprintf(stderr, "generate: %s\n", status.ToString().c_str());
  return 1;
}
