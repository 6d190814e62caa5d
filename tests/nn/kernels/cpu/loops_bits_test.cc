// The bits of every loop on fixed inputs, for each instruction set: "same plan,
// same seed, same bits" holds from one version to the next, too. If a change of
// bits is intended, the test prints the lines to put here.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/cpu_isa.h"
#include "base/fnv_hash.h"
#include "gtest/gtest.h"
#include "nn/kernels/cpu/loops.h"

namespace troupe::nn::cpu {
namespace {

using Floats = std::vector<float>;

// Hash of the bytes of values.
class Hash : public base::FnvHash {
 public:
  template <typename T>
  void Add(const std::vector<T>& values) {
    AddBytes(values.data(), values.size() * sizeof(T));
  }
};

// Numbers in [-2, 2) of a linear congruential generator.
class Draws {
 public:
  std::uint32_t Word() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::uint32_t>(state_ >> 32);
  }
  Floats Make(std::int64_t count) {
    Floats values(static_cast<std::size_t>(count));
    for (float& v : values) {
      v = static_cast<float>(static_cast<std::int32_t>(Word())) * 0x1p-30f;
    }
    return values;
  }
  // Returns arbitrary bits, with infinities, NaN and tiny numbers.
  std::vector<std::uint16_t> MakeHalves(std::int64_t count) {
    std::vector<std::uint16_t> values(static_cast<std::size_t>(count));
    for (auto& v : values) v = static_cast<std::uint16_t>(Word());
    return values;
  }

 private:
  std::uint64_t state_ = 1;
};

// Inserts zeros of both signs, infinities and a NaN.
Floats WithSpecials(Floats values) {
  const float special[] = {0.0f, -0.0f, __builtin_inff(), -__builtin_inff(),
                           __builtin_nanf("")};
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i % 7 == 3) values[i] = special[i / 7 % 5];
  }
  return values;
}

using Run = std::function<void(const Loops&, Draws&, Hash&)>;

constexpr std::int64_t kSizes[] = {0, 1, 3, 8, 15, 16, 31, 33, 64, 257, 1000};

Run OverSizes(
    std::function<void(const Loops&, std::int64_t, Draws&, Hash&)> run) {
  return [run](const Loops& loops, Draws& draws, Hash& hash) {
    for (std::int64_t n : kSizes) run(loops, n, draws, hash);
  };
}

void AddElementwise(std::map<std::string, Run>& all) {
  all["relu"] = OverSizes([](auto& loops, auto n, auto& draws, auto& hash) {
    const Floats x = WithSpecials(draws.Make(n)), dy = draws.Make(n);
    Floats y(n), dx(n);
    loops.relu_forward(n, x.data(), y.data());
    loops.relu_backward(n, y.data(), dy.data(), dx.data());
    hash.Add(y);
    hash.Add(dx);
  });
  all["add"] = OverSizes([](auto& loops, auto n, auto& draws, auto& hash) {
    const Floats a = draws.Make(n), b = draws.Make(n);
    Floats y(n);
    loops.add(n, a.data(), b.data(), y.data());
    hash.Add(y);
  });
  all["scale"] = OverSizes([](auto& loops, auto n, auto& draws, auto& hash) {
    const Floats x = draws.Make(n);
    Floats y(n);
    loops.scale(n, 0.7f, x.data(), y.data());
    hash.Add(y);
  });
  all["fill"] = OverSizes([](auto& loops, auto n, auto&, auto& hash) {
    Floats y(n);
    loops.fill(n, 0.3f, y.data());
    hash.Add(y);
  });
  all["bf16"] = OverSizes([](auto& loops, auto n, auto& draws, auto& hash) {
    const std::vector<std::uint16_t> halves = draws.MakeHalves(n);
    const Floats x = draws.Make(n);
    Floats wide(n);
    std::vector<std::uint16_t> narrow(n);
    loops.widen_bf16(n, halves.data(), wide.data());
    loops.narrow_bf16(n, x.data(), narrow.data());
    hash.Add(wide);
    hash.Add(narrow);
  });
  all["transpose"] =
      OverSizes([](auto& loops, auto n, auto& draws, auto& hash) {
        const Floats x = draws.Make(n * 19);
        Floats y(n * 19);
        loops.transpose(n, 19, x.data(), y.data());
        hash.Add(y);
        loops.transpose(19, n, x.data(), y.data());
        hash.Add(y);
      });
}

void AddFunctions(std::map<std::string, Run>& all) {
  all["unary"] = OverSizes([](auto& loops, auto n, auto& draws, auto& hash) {
    const Floats x = draws.Make(n), dy = draws.Make(n);
    Floats y(n);
    for (int i = 0; i <= static_cast<int>(UnaryFunction::kTanh); ++i) {
      const auto f = static_cast<UnaryFunction>(i);
      loops.unary_forward(f, 0.3f, n, x.data(), y.data());
      hash.Add(y);
      loops.unary_backward(f, 0.3f, n, x.data(), dy.data(), y.data());
      hash.Add(y);
    }
  });
}

void AddOptimizer(std::map<std::string, Run>& all) {
  for (int kind = 0; kind < 8; ++kind) {
    const bool decays = kind & 1, has_momentum = kind & 2, nesterov = kind & 4;
    if (nesterov && !has_momentum) continue;
    all["sgd_" + std::to_string(kind)] =
        OverSizes([=](auto& loops, auto n, auto& draws, auto& hash) {
          SgdScalars step{};
          step.lr = 0.1f;
          step.momentum = has_momentum ? 0.9f : 0.0f;
          step.undampened = 0.8f;
          step.weight_decay = decays ? 0.01f : 0.0f;
          step.inverse_divisor = 1 / 3.0f;
          step.nesterov = nesterov;
          Floats param = draws.Make(n), momentum = draws.Make(n);
          for (bool first : {true, false}) {
            step.first_step = first;
            const Floats grad = draws.Make(n);
            loops.sgd(n, step, grad.data(), param.data(),
                      has_momentum ? momentum.data() : nullptr);
          }
          hash.Add(param);
          hash.Add(momentum);
        });
  }
}

void AddLosses(std::map<std::string, Run>& all) {
  all["squared_error"] =
      OverSizes([](auto& loops, auto n, auto& draws, auto& hash) {
        const Floats a = draws.Make(n), b = draws.Make(n);
        Floats d(n);
        const double sum = loops.pair_loss({PairLossFunction::kSquaredError}, n,
                                           a.data(), b.data(), d.data());
        hash.AddBytes(&sum, sizeof(sum));
        hash.Add(d);
      });
  all["pair_losses"] =
      OverSizes([](auto& loops, auto n, auto& draws, auto& hash) {
        const Floats x = draws.Make(n), t = draws.Make(n);
        Floats d(n);
        const PairLossRule rules[] = {{PairLossFunction::kAbsoluteError},
                                      {PairLossFunction::kHuber, 0.7, 1.5},
                                      {PairLossFunction::kBceWithLogits, 2.5}};
        for (const PairLossRule& rule : rules) {
          const double sum =
              loops.pair_loss(rule, n, x.data(), t.data(), d.data());
          hash.AddBytes(&sum, sizeof(sum));
          hash.Add(d);
        }
      });
  all["cross_entropy"] =
      OverSizes([](auto& loops, auto n, auto& draws, auto& hash) {
        if (n == 0) return;
        Floats x = draws.Make(n), d(n);
        for (float& v : x) v *= 30;
        bool hit = false;
        // The loss itself is not hashed: it uses the C library's logarithm.
        loops.cross_entropy_row(n, x.data(), n / 2, d.data(), &hit);
        hash.AddBytes(&hit, sizeof(hit));
        hash.Add(d);
      });
}

void AddLinear(std::map<std::string, Run>& all) {
  struct Size {
    std::int64_t n, k, m;
  };
  const Size sizes[] = {{1, 1, 1},    {2, 37, 9},   {20, 10, 5}, {7, 33, 17},
                        {64, 50, 84}, {5, 700, 11}, {40, 3, 200}};
  all["linear"] = [=](const Loops& loops, Draws& draws, Hash& hash) {
    for (auto [n, k, m] : sizes) {
      const Floats x = draws.Make(n * k), w = draws.Make(m * k);
      const Floats b = draws.Make(m), dy = draws.Make(n * m);
      Floats y(n * m), dx(n * k), dw = draws.Make(m * k), db = draws.Make(m);
      Floats scratch(loops.linear_scratch(n, k, m) + 64);
      loops.linear_forward(n, k, m, x.data(), w.data(), /*ld=*/k, b.data(),
                           y.data(), scratch.data());
      loops.linear_backward_input(n, k, m, dy.data(), /*ld=*/m, w.data(),
                                  /*accumulate=*/false, dx.data(),
                                  scratch.data());
      loops.linear_backward_weight(n, k, m, 0, m, x.data(), dy.data(), true,
                                   dw.data(), scratch.data());
      loops.column_sums(n, m, dy.data(), true, db.data());
      loops.add_to_rows(n, m, b.data(), y.data());
      for (const Floats* result : {&y, &dx, &dw, &db}) hash.Add(*result);
    }
  };
}

ImageShape Shape(std::int64_t n, std::int64_t h, std::int64_t w, std::int64_t c,
                 std::int64_t o, std::int64_t r, std::int64_t s,
                 std::int64_t stride, std::int64_t pad) {
  const std::int64_t p = (h + 2 * pad - r) / stride + 1;
  const std::int64_t q = (w + 2 * pad - s) / stride + 1;
  return {n, h, w, c, p, q, o, r, s, stride, stride, pad, pad};
}

void AddConv2d(std::map<std::string, Run>& all) {
  const ImageShape shapes[] = {
      Shape(2, 12, 12, 1, 6, 5, 5, 1, 0),  Shape(2, 12, 12, 6, 16, 5, 5, 1, 0),
      Shape(1, 9, 7, 16, 32, 3, 3, 1, 1),  Shape(3, 10, 11, 5, 7, 3, 2, 2, 1),
      Shape(1, 40, 40, 3, 40, 3, 3, 1, 1), Shape(1, 1, 1, 1, 1, 3, 3, 1, 1)};
  all["conv2d"] = [=](const Loops& loops, Draws& draws, Hash& hash) {
    for (const ImageShape& d : shapes) {
      const Floats x = draws.Make(d.n * d.h * d.w * d.c);
      const Floats w = draws.Make(d.o * d.c * d.r * d.s), b = draws.Make(d.o);
      const Floats dy = draws.Make(d.n * d.p * d.q * d.o);
      Floats y(dy.size()), dx(x.size()), dw = draws.Make(w.size());
      Floats scratch(loops.conv_scratch(d) + 64);
      loops.conv_forward(d, x.data(), w.data(), b.data(), y.data(),
                         scratch.data());
      loops.conv_backward_input(d, dy.data(), w.data(), dx.data(),
                                scratch.data());
      loops.conv_backward_weight(d, x.data(), dy.data(), true, dw.data(),
                                 scratch.data());
      for (const Floats* result : {&y, &dx, &dw}) hash.Add(*result);
    }
  };
}

void AddPool2d(std::map<std::string, Run>& all) {
  std::vector<ImageShape> shapes;
  for (std::int64_t c : {1, 3, 6, 8, 9, 16, 17, 40}) {
    shapes.push_back(Shape(2, 8, 12, c, c, 2, 2, 2, 0));
    shapes.push_back(Shape(2, 7, 9, c, c, 2, 2, 2, 0));
    shapes.push_back(Shape(1, 9, 8, c, c, 3, 3, 2, 1));
  }
  all["max_pool2d"] = [=](const Loops& loops, Draws& draws, Hash& hash) {
    for (const ImageShape& d : shapes) {
      const Floats x = WithSpecials(draws.Make(d.n * d.h * d.w * d.c));
      const Floats dy = draws.Make(d.n * d.p * d.q * d.c);
      Floats y(dy.size()), dx(x.size());
      std::vector<std::int32_t> argmax(dy.size());
      loops.max_pool_forward(d, x.data(), y.data(), argmax.data());
      loops.max_pool_backward(d, dy.data(), argmax.data(), dx.data());
      hash.Add(y);
      hash.Add(argmax);
      hash.Add(dx);
    }
  };
  all["avg_pool2d"] = [=](const Loops& loops, Draws& draws, Hash& hash) {
    for (const ImageShape& d : shapes) {
      const Floats x = draws.Make(d.n * d.h * d.w * d.c);
      const Floats dy = draws.Make(d.n * d.p * d.q * d.c);
      Floats y(dy.size()), dx(x.size());
      loops.avg_pool_forward(d, /*padded=*/true, x.data(), y.data());
      loops.avg_pool_backward(d, /*padded=*/true, dy.data(), dx.data());
      hash.Add(y);
      hash.Add(dx);
    }
  };
}

std::map<std::string, Run> AllRuns() {
  std::map<std::string, Run> all;
  AddElementwise(all);
  AddFunctions(all);
  AddOptimizer(all);
  AddLosses(all);
  AddLinear(all);
  AddConv2d(all);
  AddPool2d(all);
  return all;
}

std::vector<const Loops*> AllLoops() {
  std::vector<const Loops*> sets = {&PlainLoops()};
  if (base::BestCpuIsa() >= base::CpuIsa::kAvx2) sets.push_back(&Avx2Loops());
  if (base::BestCpuIsa() >= base::CpuIsa::kAvx512) {
    sets.push_back(&Avx512Loops());
  }
  return sets;
}

// Maps "plain add" to its hash, and so on.
std::map<std::string, std::uint64_t> BitsHere() {
  std::map<std::string, std::uint64_t> bits;
  for (const Loops* loops : AllLoops()) {
    for (const auto& [name, run] : AllRuns()) {
      Draws draws;
      Hash hash;
      run(*loops, draws, hash);
      bits[absl::StrCat(loops->name, " ", name)] = hash.value();
    }
  }
  return bits;
}

const std::map<std::string, std::uint64_t>& ExpectedBits();

TEST(LoopsBits, StayAsTheyWere) {
  std::string changed;
  for (const auto& [name, bits] : BitsHere()) {
    const auto it = ExpectedBits().find(name);
    if (it != ExpectedBits().end() && it->second == bits) continue;
    absl::StrAppendFormat(&changed, "      {\"%s\", 0x%016x},\n", name, bits);
  }
  EXPECT_EQ(changed, "");
}

// A family whose Set...Loops() lacks a loop leaves it null.
TEST(Loops, AreAllSet) {
  for (const Loops* loops : AllLoops()) {
    const void* entries[sizeof(Loops) / sizeof(void*)];
    static_assert(sizeof(entries) == sizeof(Loops), "pointers only");
    std::memcpy(entries, loops, sizeof(entries));
    EXPECT_EQ(std::count(std::begin(entries), std::end(entries), nullptr), 0)
        << loops->name;
  }
}

const std::map<std::string, std::uint64_t>& ExpectedBits() {
  static const auto* bits = new std::map<std::string, std::uint64_t>{
      {"avx2 add", 0xa06e94eded0eb744},
      {"avx2 avg_pool2d", 0x1ef4da0c2775a5cc},
      {"avx2 bf16", 0xf9afd556d7c4ab89},
      {"avx2 conv2d", 0xb95fa7b0a00f0c2d},
      {"avx2 cross_entropy", 0x18244db0406473ff},
      {"avx2 fill", 0x999b13f594ef43bd},
      {"avx2 linear", 0x8412a9617ff4bc3e},
      {"avx2 max_pool2d", 0x43a68bb15d0e69f4},
      {"avx2 pair_losses", 0x4c720b1b32a8ad92},
      {"avx2 relu", 0x3787f3153a9521e8},
      {"avx2 scale", 0xf4532efd23e92c5e},
      {"avx2 sgd_0", 0x5d36d5a723ac78e2},
      {"avx2 sgd_1", 0xdfd65814cbc724cc},
      {"avx2 sgd_2", 0x53588ca89c076333},
      {"avx2 sgd_3", 0x6e37e6383423864b},
      {"avx2 sgd_6", 0x85fb5f467399f430},
      {"avx2 sgd_7", 0x998e90f4a028de51},
      {"avx2 squared_error", 0x875bcf7698eb1eef},
      {"avx2 transpose", 0x937fc797ae8b47a9},
      {"avx2 unary", 0xb31ccc925c28f245},
      {"avx512 add", 0xa06e94eded0eb744},
      {"avx512 avg_pool2d", 0x1ef4da0c2775a5cc},
      {"avx512 bf16", 0xf9afd556d7c4ab89},
      {"avx512 conv2d", 0xb95fa7b0a00f0c2d},
      {"avx512 cross_entropy", 0x19c0ca5d1d641100},
      {"avx512 fill", 0x999b13f594ef43bd},
      {"avx512 linear", 0x8412a9617ff4bc3e},
      {"avx512 max_pool2d", 0x43a68bb15d0e69f4},
      {"avx512 pair_losses", 0x29ef4c727abbe222},
      {"avx512 relu", 0x3787f3153a9521e8},
      {"avx512 scale", 0xf4532efd23e92c5e},
      {"avx512 sgd_0", 0x5d36d5a723ac78e2},
      {"avx512 sgd_1", 0xdfd65814cbc724cc},
      {"avx512 sgd_2", 0x53588ca89c076333},
      {"avx512 sgd_3", 0x6e37e6383423864b},
      {"avx512 sgd_6", 0x85fb5f467399f430},
      {"avx512 sgd_7", 0x998e90f4a028de51},
      {"avx512 squared_error", 0x3a2b28bc65ab7a5a},
      {"avx512 transpose", 0x937fc797ae8b47a9},
      {"avx512 unary", 0xb31ccc925c28f245},
      {"plain add", 0xa06e94eded0eb744},
      {"plain avg_pool2d", 0x1ef4da0c2775a5cc},
      {"plain bf16", 0xf9afd556d7c4ab89},
      {"plain conv2d", 0xa093e69a7603979b},
      {"plain cross_entropy", 0x2b7f5f8ce3decb2d},
      {"plain fill", 0x999b13f594ef43bd},
      {"plain linear", 0xd7ba70d8371e6afb},
      {"plain max_pool2d", 0x43a68bb15d0e69f4},
      {"plain pair_losses", 0xa804c683ec8a8cde},
      {"plain relu", 0x3787f3153a9521e8},
      {"plain scale", 0xf4532efd23e92c5e},
      {"plain sgd_0", 0xdfef3565a17953c7},
      {"plain sgd_1", 0xe551043f4d4ced38},
      {"plain sgd_2", 0x35bd74c7bf1cb746},
      {"plain sgd_3", 0xa465ebebeb3f2e9e},
      {"plain sgd_6", 0xcf17da639787fcb7},
      {"plain sgd_7", 0x470c0a05577f299e},
      {"plain squared_error", 0xd14145e8f831e233},
      {"plain transpose", 0x937fc797ae8b47a9},
      {"plain unary", 0xd350c68cfbfa5abe},
  };
  return *bits;
}

}  // namespace
}  // namespace troupe::nn::cpu
