#include "tools/bench/gpu_kernels/kernel_case.h"

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "tools/bench/ops/op_bench_util.h"

namespace troupe::bench {
namespace {

// A layer of a network: the parts of its line without the way.
struct Layer {
  const char* name;
  const char* op;       // "linear" or "conv"
  const char* numbers;  // the numbers in its line
};

constexpr Layer kLayers[] = {
    {"gpt2 qkv", "linear", "8192 768 2304"},
    {"gpt2 proj", "linear", "8192 768 768"},
    {"gpt2 fc", "linear", "8192 768 3072"},
    {"gpt2 fc2", "linear", "8192 3072 768"},
    {"gpt2 head", "linear", "8192 768 50304"},
    {"resnet50 s1 3x3", "conv", "64 56 64 64 3 1 1"},
    {"resnet50 s2 3x3", "conv", "64 28 128 128 3 1 1"},
    {"resnet50 s3 3x3", "conv", "64 14 256 256 3 1 1"},
    {"resnet50 s4 3x3", "conv", "64 7 512 512 3 1 1"},
    {"resnet50 stem 7x7/2", "conv", "64 224 3 64 7 2 3"},
    {"resnet50 s1 1x1 up", "conv", "64 56 64 256 1 1 0"},
    {"resnet50 s1 1x1 down", "conv", "64 56 256 64 1 1 0"},
    {"resnet50 s2 1x1 up", "conv", "64 28 128 512 1 1 0"},
    {"resnet50 s2 1x1 down", "conv", "64 28 512 128 1 1 0"},
    {"resnet50 s3 1x1 up", "conv", "64 14 256 1024 1 1 0"},
    {"resnet50 s3 1x1 down", "conv", "64 14 1024 256 1 1 0"},
    {"resnet50 s4 1x1 up", "conv", "64 7 512 2048 1 1 0"},
    {"resnet50 s4 1x1 down", "conv", "64 7 2048 512 1 1 0"},
    {"resnet50 s2 3x3/2", "conv", "64 56 128 128 3 2 1"},
    {"resnet50 s3 3x3/2", "conv", "64 28 256 256 3 2 1"},
    {"resnet50 s4 3x3/2", "conv", "64 14 512 512 3 2 1"},
    {"resnet50 s2 1x1/2", "conv", "64 56 256 512 1 2 0"},
    {"resnet50 s3 1x1/2", "conv", "64 28 512 1024 1 2 0"},
    {"resnet50 s4 1x1/2", "conv", "64 14 1024 2048 1 2 0"},
    {"resnet50 s1 1x1 first", "conv", "64 56 64 64 1 1 0"},
    {"resnet50 s2 1x1 first", "conv", "64 56 256 128 1 1 0"},
    {"resnet50 s3 1x1 first", "conv", "64 28 512 256 1 1 0"},
    {"resnet50 s4 1x1 first", "conv", "64 14 1024 512 1 1 0"},
};

constexpr Layer kTinyLayers[] = {
    {"tiny linear", "linear", "16 24 8"},
    {"tiny 3x3", "conv", "2 8 4 8 3 1 1"},
    {"tiny 1x1", "conv", "2 8 8 16 1 1 0"},
};

constexpr const char* kWays[] = {"f", "bd", "bw"};

template <std::size_t kCount>
std::vector<KernelCase> CasesOf(const Layer (&layers)[kCount]) {
  std::vector<KernelCase> cases;
  for (const Layer& layer : layers) {
    for (const char* way : kWays) {
      absl::StatusOr<KernelCase> c =
          ParseKernelCase(absl::StrCat(layer.op, " ", way, " ", layer.numbers));
      TROUPE_CHECK(c.ok(), "the table's lines are right");
      c->name = absl::StrCat(layer.name, " ", way);
      cases.push_back(*std::move(c));
    }
  }
  return cases;
}

bool ParseWay(const std::string& word, KernelWay& way) {
  for (int i = 0; i < 3; ++i) {
    if (word != kWays[i]) continue;
    way = static_cast<KernelWay>(i);
    return true;
  }
  return false;
}

void SetLinear(const Line& line, KernelCase& c) {
  c.N = line.n[0], c.K = line.n[1], c.M = line.n[2];
  c.flops = 2.0 * static_cast<double>(c.N) * static_cast<double>(c.K) *
            static_cast<double>(c.M);
  c.elems = c.N * c.K + c.M * c.K + c.N * c.M;
}

void SetConv(const Line& line, KernelCase& c) {
  const std::int64_t size = line.n[4], stride = line.n[5], pad = line.n[6];
  c.conv = true;
  c.N = line.n[0], c.H = line.n[1], c.C = line.n[2], c.O = line.n[3];
  c.window = {size, size, stride, stride, pad, pad};
  const std::int64_t outputs = c.N * c.P() * c.P() * c.O;
  const std::int64_t taps = size * size * c.C;
  c.flops = 2.0 * static_cast<double>(outputs) * static_cast<double>(taps);
  c.elems = c.N * c.H * c.H * c.C + c.O * taps + outputs;
}

}  // namespace

absl::StatusOr<KernelCase> ParseKernelCase(absl::string_view text) {
  const Line line{std::string(text)};
  KernelCase c;
  c.line = c.name = std::string(text);
  const bool linear = line.Is("linear", 3);
  bool right =
      (linear || line.Is("conv", 7)) && ParseWay(line.direction, c.way);
  for (std::size_t i = 0; i < line.n.size(); ++i) {
    const std::int64_t least = i == 6 ? 0 : 1;  // the padding may be 0
    right = right && line.n[i] >= least && line.n[i] <= kExtentMax;
  }
  if (right && !linear) {
    right = line.n[4] <= line.n[1] + 2 * line.n[6];  // the window fits
  }
  if (!right) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text,
                     "\" is no case; write \"linear f|bd|bw N K M\" or "
                     "\"conv f|bd|bw N H C O kernel stride pad\""));
  }
  if (linear) {
    SetLinear(line, c);
  } else {
    SetConv(line, c);
  }
  return c;
}

std::vector<KernelCase> KernelCases() { return CasesOf(kLayers); }
std::vector<KernelCase> TinyKernelCases() { return CasesOf(kTinyLayers); }

}  // namespace troupe::bench
