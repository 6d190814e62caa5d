// A small GPT in a loop of one's own: two ranks train it on characters, and
// rank 0 lets it write between steps. gpt_loop.py is the same with PyTorch,
// with 71 lines, blank lines and comments aside.
//
//   bazel run //examples/gpt_loop

#include <stdexcept>
#include <string>

#include "data/text/text_splits.h"
#include "nn/generate/generate.h"
#include "nn/models/gpt2.h"
#include "troupe/troupe.h"

using namespace troupe;

constexpr int kContext = 32, kSteps = 201;

// Lets the model go on from `text`.
std::string Write(Rank& rank, nn::Module& model, const data::Tokenizer& chars,
                  std::string text) {
  nn::GenerateOptions options;
  options.tokens = 60, options.context = kContext;
  options.sampling.temperature = 0.8;
  const auto add = [&](std::int32_t token) {
    text += *chars.Decode({token});
    return true;
  };
  base::OrThrow(
      nn::Generate(model, rank.kernels(), *chars.Encode(text), options, add));
  return text;
}

void Run(Rank& rank) {
  base::PosixFileSystem files;
  data::TextOptions options;
  options.tokenizer = "chars", options.context = kContext;
  data::TextSplits text =
      data::OpenText(files, /*path=*/"", options, {}).value();
  nn::Gpt2Options sizes = nn::Gpt2Preset("gpt_nano").value();
  sizes.vocab_size = text.tokenizer->vocab_size(), sizes.context = kContext;
  auto model = rank.Place(nn::MakeGpt2(sizes).value());
  DDP ddp(model);
  Adam adam(ddp, {/*lr=*/0.003});
  DataLoader loader(rank, text.train, {/*batch_size=*/16, /*shuffle=*/true});
  double mean = 0;
  int step = 0;
  for (auto [x, y] : loader) {
    adam.ZeroGrad();
    Var loss = nn::CrossEntropy(ddp(x), y);
    loss.Backward();
    adam.Step();
    if (step % 100 == 0) {
      AllReduce(loss, ReduceOp::kAvg);
      mean = loss.item();
      rank.Log("step %d: loss %.2f\n", step, mean);
      if (rank.number() == 0) {
        rank.Log("%s\n", Write(rank, model, *text.tokenizer, "return "));
      }
    }
    if (++step == kSteps) break;
  }
  if (!(mean < 2.7)) throw std::runtime_error("it has not learnt");
}

int main() { return Main(Run, {/*ranks=*/2}); }
