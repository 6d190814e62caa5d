#include "tools/bench/ops/op_bench_case.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "tools/bench/ops/bench_steps.h"
#include "tools/bench/ops/op_bench_util.h"

namespace troupe::bench {
namespace {

using nn::DType;
using nn::Kernels;
using nn::Tensor;
using nn::Window2d;

OpBenchCase LinearCase(const Line& line, Kernels& k) {
  const std::int64_t N = line.n[0], K = line.n[1], M = line.n[2];
  Tensor x = Numbers({N, K}, k), w = Numbers({M, K}, k), b = Numbers({M}, k);
  Tensor y = Numbers({N, M}, k), none;
  OpBenchCase c;
  c.flops = 2.0 * N * K * M;
  if (line.direction == "f") {
    c.run = [=, &k]() mutable { return k.LinearForward(x, w, b, y); };
  } else if (line.direction == "bd") {
    c.run = [=, &k]() mutable { return k.LinearBackwardInput(y, w, x); };
  } else {
    c.run = [=, &k]() mutable {
      return k.LinearBackwardWeight(x, y, false, w, b);
    };
  }
  return c;
}

OpBenchCase ConvCase(const Line& line, Kernels& k) {
  const std::int64_t N = line.n[0], H = line.n[1], C = line.n[2];
  const std::int64_t O = line.n[3], size = line.n[4];
  Window2d window{size, size, line.n[5], line.n[5], line.n[6], line.n[6]};
  const std::int64_t P = window.OutH(H);
  Tensor x = Numbers({N, H, H, C}, k), w = Numbers({O, C, size, size}, k);
  Tensor b = Numbers({O}, k), y = Numbers({N, P, P, O}, k);
  OpBenchCase c;
  c.flops = 2.0 * N * P * P * O * C * size * size;
  if (line.direction == "f") {
    c.run = [=, &k]() mutable { return k.Conv2dForward(window, x, w, b, y); };
  } else if (line.direction == "bd") {
    c.run = [=, &k]() mutable {
      return k.Conv2dBackwardInput(window, y, w, x);
    };
  } else {
    c.run = [=, &k]() mutable {
      return k.Conv2dBackwardWeight(window, x, y, false, w, b);
    };
  }
  return c;
}

OpBenchCase PoolCase(const Line& line, Kernels& k) {
  const std::int64_t N = line.n[0], H = line.n[1], C = line.n[2];
  const Window2d window{2, 2, 2, 2};
  Tensor x = Numbers({N, H, H, C}, k), y = Numbers({N, H / 2, H / 2, C}, k);
  Tensor at = Tensor::Zeros({N, H / 2, H / 2, C}, DType::kI32, k.allocator());
  OpBenchCase c;
  c.bytes = 4.0 * (x.numel() + 2 * y.numel());
  if (!k.MaxPool2dForward(window, x, y, at).ok()) return c;
  if (line.direction == "f") {
    c.run = [=, &k]() mutable { return k.MaxPool2dForward(window, x, y, at); };
  } else {
    c.run = [=, &k]() mutable { return k.MaxPool2dBackward(window, y, at, x); };
  }
  return c;
}

OpBenchCase AttentionCase(const Line& line, Kernels& k) {
  const std::int64_t N = line.n[0], T = line.n[1], H = line.n[2], D = line.n[3];
  Tensor qkv = Numbers({N, T, 3 * H, D}, k), d = Numbers({N, T, 3 * H, D}, k);
  Tensor y = Numbers({N, T, H, D}, k), dy = Numbers({N, T, H, D}, k), none;
  Tensor lse = Numbers({N, H, T}, k);
  nn::AttentionRule rule;
  rule.causal = true;
  rule.scale = 1 / std::sqrt(static_cast<double>(D));
  OpBenchCase c;
  c.flops = 2.0 * N * H * T * (T + 1) * D;
  if (!k.AttentionForward(rule, qkv, none, none, y, lse).ok()) return c;
  if (line.direction == "f") {
    c.run = [=, &k]() mutable {
      return k.AttentionForward(rule, qkv, none, none, y, lse);
    };
  } else {
    c.flops *= 2.5;
    c.run = [=, &k]() mutable {
      return k.AttentionBackward(rule, qkv, none, none, y, lse, dy, d, none,
                                 none);
    };
  }
  return c;
}

OpBenchCase FlatCase(const Line& line, Kernels& k) {
  const std::int64_t n = line.n[0];
  Tensor a = Numbers({n}, k), b = Numbers({n}, k, 1e-3f), c = Numbers({n}, k);
  Tensor stats = Tensor::Zeros({3}, DType::kF64, k.allocator()), none;
  OpBenchCase made;
  made.bytes = 12.0 * n;
  nn::SgdRule rule;
  nn::StepScalars values;
  values.step = 1;
  values.lr = 1e-6;
  values.loss_count = 1;
  const Tensor scalars = nn::HostScalars(values, k.allocator());
  if (line.op == "relu" && line.direction == "f") {
    made.bytes = 8.0 * n;
    made.run = [=, &k]() mutable { return k.ReluForward(a, c); };
  } else if (line.op == "relu") {
    made.run = [=, &k]() mutable { return k.ReluBackward(a, b, c); };
  } else if (line.op == "add") {
    made.run = [=, &k]() mutable { return k.Add(a, b, c); };
  } else if (line.op == "mse") {
    made.run = [=, &k]() mutable {
      return k.PairLoss({nn::PairLossFunction::kSquaredError}, a, b, stats, c);
    };
  } else if (line.op == "sgd") {
    made.run = [=, &k]() mutable {
      return k.SgdUpdate(rule, scalars, b, a, none);
    };
  } else if (line.op == "momentum") {
    rule.momentum = 0.9;
    made.bytes = 20.0 * n;
    made.run = [=, &k]() mutable {
      return k.SgdUpdate(rule, scalars, b, a, c);
    };
  }
  return made;
}

OpBenchCase CrossEntropyCase(const Line& line, Kernels& k) {
  const std::int64_t N = line.n[0], C = line.n[1];
  Tensor x = Numbers({N, C}, k), d = Numbers({N, C}, k);
  Tensor targets = Tensor::Zeros({N}, DType::kI64, k.allocator());
  Tensor stats = Tensor::Zeros({3}, DType::kF64, k.allocator());
  for (std::int64_t i = 0; i < N; ++i) targets.data<std::int64_t>()[i] = i % C;
  OpBenchCase c;
  c.bytes = 8.0 * N * C;
  c.run = [=, &k]() mutable {
    return k.SoftmaxCrossEntropy(x, targets, -100, stats, d);
  };
  return c;
}

}  // namespace

absl::StatusOr<OpBenchCase> MakeOpBenchCase(const std::string& text,
                                            nn::Kernels& kernels) {
  const Line line(text);
  OpBenchCase c;
  if (line.Is("linear", 3)) c = LinearCase(line, kernels);
  if (line.Is("conv", 7)) c = ConvCase(line, kernels);
  if (line.Is("pool", 3)) c = PoolCase(line, kernels);
  if (line.Is("attention", 4)) c = AttentionCase(line, kernels);
  if (line.Is("xent", 2)) c = CrossEntropyCase(line, kernels);
  if (line.Is("step", 0)) c = StepCase(line.direction, kernels);
  if (line.n.size() == 1) c = FlatCase(line, kernels);
  c.line = text;
  if (!c.run) {
    return absl::InvalidArgumentError(
        absl::StrCat("no case \"", text, "\"; see op_bench_case.h"));
  }
  return c;
}

std::vector<std::string> DefaultOpBenchLines() {
  std::vector<std::string> lines;
  auto three = [&](const char* op, const char* rest) {
    for (const char* direction : {"f", "bd", "bw"}) {
      lines.push_back(absl::StrCat(op, " ", direction, " ", rest));
    }
  };
  for (const char* shape :
       {"20 10 10", "20 10 5", "64 784 512", "64 512 512", "64 512 10",
        "64 2236 2236", "16 400 120", "16 120 84", "16 84 10", "1024 256 768",
        "1024 1024 256"}) {
    three("linear", shape);
  }
  for (const char* shape :
       {"16 32 3 6 5 1 0", "16 14 6 16 5 1 0", "64 28 1 32 3 1 0",
        "8 16 64 64 3 1 1", "8 16 64 128 3 2 1", "8 4 256 256 3 1 1",
        "8 2 512 512 3 1 1", "8 16 64 256 1 1 0"}) {
    three("conv", shape);
  }
  for (const char* line : {"pool f 16 28 6",
                           "pool bd 16 28 6",
                           "pool f 16 10 16",
                           "pool bd 16 10 16",
                           "attention f 8 128 4 64",
                           "attention bd 8 128 4 64",
                           "attention f 1 1024 12 64",
                           "attention bd 1 1024 12 64",
                           "relu f 200",
                           "relu bd 200",
                           "relu f 75264",
                           "relu bd 75264",
                           "relu f 1048576",
                           "relu bd 1048576",
                           "mse 100",
                           "xent 16 10",
                           "xent 64 10",
                           "xent 64 1000",
                           "add 1048576",
                           "sgd 165",
                           "sgd 62006",
                           "sgd 669706",
                           "sgd 24998480",
                           "momentum 669706",
                           "step toy_mlp",
                           "step toy_cnn",
                           "step mnist_mlp",
                           "step mlp_25m"}) {
    lines.push_back(line);
  }
  return lines;
}

}  // namespace troupe::bench
