#include "tools/golden/expression_ops.h"

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/status_error.h"
#include "nn/autograd/create.h"
#include "nn/autograd/var_math.h"
#include "nn/ops/activation.h"
#include "nn/ops/masked_attention.h"

namespace troupe::golden {
namespace {

using nn::Shape;
using nn::Var;
using Vars = std::vector<Var>;

[[noreturn]] void Refuse(const std::string& message) {
  throw base::StatusError(absl::InvalidArgumentError(message));
}

double NumberIn(absl::string_view text) {
  double number = 0;
  if (!absl::SimpleAtod(text, &number)) {
    Refuse(absl::StrCat("\"", text, "\" must be a number"));
  }
  return number;
}

// One step with its operands and attributes.
class Call {
 public:
  Call(nn::Context& ctx, nn::DType dtype, const ExpressionStep& step,
       const ExpressionValues& values)
      : ctx_(ctx), dtype_(dtype), step_(step), values_(values) {}

  nn::Context& ctx() const { return ctx_; }
  nn::DType dtype() const { return dtype_; }
  std::size_t count() const { return step_.operands.size(); }
  const Var& operator[](std::size_t i) const {
    return ValueOf(values_, Operand(i));
  }
  Vars All() const {
    Vars all;
    for (std::size_t i = 0; i < count(); ++i) all.push_back((*this)[i]);
    return all;
  }
  bool IsNumber(std::size_t i) const {
    const std::string& text = Operand(i);
    return values_.count(text) == 0;
  }
  double Number(std::size_t i) const { return NumberIn(Operand(i)); }

  double Double(const char* name, double absent = 0) const {
    const std::string* text = Find(name);
    return text == nullptr ? absent : NumberIn(*text);
  }
  std::int64_t Int(const char* name, std::int64_t absent = 0) const {
    return static_cast<std::int64_t>(Double(name, static_cast<double>(absent)));
  }
  int Axis(std::int64_t absent = -1) const {
    return static_cast<int>(Int("axis", absent));
  }
  bool Flag(const char* name, bool absent = false) const {
    return Int(name, absent) != 0;
  }
  std::string Text(const char* name) const {
    const std::string* text = Find(name);
    return text == nullptr ? "" : *text;
  }
  template <typename T>
  std::vector<T> List(const char* name) const {
    std::vector<T> list;
    for (const absl::string_view one :
         absl::StrSplit(Text(name), ',', absl::SkipEmpty())) {
      list.push_back(static_cast<T>(NumberIn(one)));
    }
    return list;
  }
  std::vector<int> Axes() const { return List<int>("axes"); }
  Shape ShapeOf() const { return Shape(List<std::int64_t>("shape")); }

 private:
  const std::string& Operand(std::size_t i) const {
    if (i >= count()) {
      Refuse(absl::StrCat("it lacks operand ", i, "; draw it anew"));
    }
    return step_.operands[i];
  }
  const std::string* Find(const char* name) const {
    const auto found = step_.attributes.find(name);
    return found == step_.attributes.end() ? nullptr : &found->second;
  }

  nn::Context& ctx_;
  const nn::DType dtype_;
  const ExpressionStep& step_;
  const ExpressionValues& values_;
};

using Function = std::function<Vars(const Call&)>;
using Table = std::map<std::string, Function>;

// Function of two operands, one of which may be a number.
template <typename F>
Function Binary(F f) {
  return [f](const Call& c) -> Vars {
    if (c.IsNumber(0)) return {f(c.Number(0), c[1])};
    if (c.IsNumber(1)) return {f(c[0], c.Number(1))};
    return {f(c[0], c[1])};
  };
}

Function Unary(Var (*f)(const Var&)) {
  return [f](const Call& c) -> Vars { return {f(c[0])}; };
}

void AddElementwise(Table& all) {
  all["+"] = Binary([](const auto& a, const auto& b) { return a + b; });
  all["*"] = Binary([](const auto& a, const auto& b) { return a * b; });
  all["/"] = Binary([](const auto& a, const auto& b) { return a / b; });
  const Function minus =
      Binary([](const auto& a, const auto& b) { return a - b; });
  all["-"] = [minus](const Call& c) -> Vars {
    return c.count() == 1 ? Vars{-c[0]} : minus(c);
  };
  all["Exp"] = Unary(nn::Exp);
  all["Log"] = Unary(nn::Log);
  all["Sqrt"] = Unary(nn::Sqrt);
  all["Rsqrt"] = Unary(nn::Rsqrt);
  all["Square"] = Unary(nn::Square);
  all["Abs"] = Unary(nn::Abs);
  all["Sin"] = Unary(nn::Sin);
  all["Cos"] = Unary(nn::Cos);
  all["Pow"] = [](const Call& c) -> Vars {
    return {nn::Pow(c[0], c.Double("p"))};
  };
  all["Clamp"] = [](const Call& c) -> Vars {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    return {nn::Clamp(c[0], c.Double("low", -kInfinity),
                      c.Double("high", kInfinity))};
  };
  all["Relu"] = [](const Call& c) -> Vars { return {c[0].Relu()}; };
  all["Sigmoid"] = [](const Call& c) -> Vars { return {c[0].Sigmoid()}; };
  all["Tanh"] = [](const Call& c) -> Vars { return {c[0].Tanh()}; };
  all["Gelu"] = [](const Call& c) -> Vars {
    return {c[0].Apply(nn::ops::Gelu, c.Flag("tanh")
                                          ? nn::ops::GeluForm::kTanh
                                          : nn::ops::GeluForm::kExact)};
  };
  all["Silu"] = [](const Call& c) -> Vars {
    return {c[0].Apply(nn::ops::Silu)};
  };
  all["LeakyRelu"] = [](const Call& c) -> Vars {
    return {c[0].Apply(nn::ops::LeakyRelu, c.Double("slope", 0.01))};
  };
  all["Softmax"] = [](const Call& c) -> Vars {
    return {c[0].Softmax(c.Axis())};
  };
  all["LogSoftmax"] = [](const Call& c) -> Vars {
    return {c[0].LogSoftmax(c.Axis())};
  };
  all["Detached"] = [](const Call& c) -> Vars { return {c[0].Detached()}; };
}

void AddChoices(Table& all) {
  all["<"] = Binary([](const auto& a, const auto& b) { return a < b; });
  all["<="] = Binary([](const auto& a, const auto& b) { return a <= b; });
  all[">"] = Binary([](const auto& a, const auto& b) { return a > b; });
  all[">="] = Binary([](const auto& a, const auto& b) { return a >= b; });
  all["=="] = Binary([](const auto& a, const auto& b) { return a == b; });
  all["!="] = Binary([](const auto& a, const auto& b) { return a != b; });
  all["Where"] = [](const Call& c) -> Vars {
    if (c.IsNumber(1)) return {nn::Where(c[0], c.Number(1), c[2])};
    if (c.IsNumber(2)) return {nn::Where(c[0], c[1], c.Number(2))};
    return {nn::Where(c[0], c[1], c[2])};
  };
  all["MaskedFill"] = [](const Call& c) -> Vars {
    return {nn::MaskedFill(c[0], c[1], c.Number(2))};
  };
}

void AddProducts(Table& all) {
  all["MatMul"] = [](const Call& c) -> Vars {
    return {nn::MatMul(c[0], c[1])};
  };
  all["Einsum"] = [](const Call& c) -> Vars {
    return {nn::Einsum(c.Text("equation"), c.All())};
  };
  all["MaskedAttention"] = [](const Call& c) -> Vars {
    nn::ops::AttentionOptions options;
    options.causal = c.Flag("causal");
    if (!c.Text("scale").empty()) options.scale = c.Double("scale");
    nn::ops::AttentionMask mask;
    if (c.Flag("mask")) mask.mask = c[3];
    if (c.Flag("bias")) mask.bias = c[c.Flag("mask") ? 4 : 3];
    return {c[0].Apply(nn::ops::MaskedAttention, c[1].tensor(), c[2].tensor(),
                       mask, options)};
  };
}

// A reduction over any axes.
template <typename F>
Function OverAxes(F f) {
  return [f](const Call& c) -> Vars {
    return {f(c[0], c.Axes(), c.Flag("keep_dims"))};
  };
}

Vars BothOf(const nn::VarExtremes& found) {
  return {found.values, found.indices};
}
Vars BothOf(const nn::VarSorted& found) {
  return {found.values, found.indices};
}

void AddReductions(Table& all) {
  all["Sum"] = OverAxes(nn::Sum);
  all["Mean"] =
      OverAxes([](const Var& x, absl::Span<const int> axes, bool keep_dims) {
        return nn::Mean(x, axes, keep_dims);
      });
  all["Amax"] = OverAxes(nn::Amax);
  all["Amin"] = OverAxes(nn::Amin);
  all["Variance"] = [](const Call& c) -> Vars {
    return {nn::Variance(c[0], c.Axes(),
                         static_cast<int>(c.Int("correction", 1)),
                         c.Flag("keep_dims"))};
  };
  all["Max"] = [](const Call& c) {
    return BothOf(nn::Max(c[0], c.Axis(), c.Flag("keep_dims")));
  };
  all["Min"] = [](const Call& c) {
    return BothOf(nn::Min(c[0], c.Axis(), c.Flag("keep_dims")));
  };
  all["Argmax"] = [](const Call& c) -> Vars {
    return {nn::Argmax(c[0], c.Axis(), c.Flag("keep_dims"))};
  };
  all["Argmin"] = [](const Call& c) -> Vars {
    return {nn::Argmin(c[0], c.Axis(), c.Flag("keep_dims"))};
  };
  all["TopK"] = [](const Call& c) {
    return BothOf(
        nn::TopK(c[0], c.Int("k"), c.Axis(), c.Flag("largest", true)));
  };
  all["Sort"] = [](const Call& c) {
    return BothOf(nn::Sort(c[0], c.Axis(), c.Flag("descending")));
  };
  all["Argsort"] = [](const Call& c) -> Vars {
    return {nn::Argsort(c[0], c.Axis(), c.Flag("descending"))};
  };
}

void AddIndices(Table& all) {
  all["Gather"] = [](const Call& c) -> Vars {
    return {nn::Gather(c[0], c.Axis(), c[1])};
  };
  all["IndexSelect"] = [](const Call& c) -> Vars {
    return {nn::IndexSelect(c[0], c.Axis(), c[1])};
  };
  all["ScatterAdd"] = [](const Call& c) -> Vars {
    return {nn::ScatterAdd(c[0], c.Axis(), c[1], c[2])};
  };
  all["IndexAdd"] = [](const Call& c) -> Vars {
    return {nn::IndexAdd(c[0], c.Axis(), c[1], c[2])};
  };
  all["Cumsum"] = [](const Call& c) -> Vars {
    return {nn::Cumsum(c[0], c.Axis())};
  };
}

void AddShapes(Table& all) {
  all["Cat"] = [](const Call& c) -> Vars {
    return {nn::Cat(c.All(), c.Axis())};
  };
  all["Stack"] = [](const Call& c) -> Vars {
    return {nn::Stack(c.All(), c.Axis())};
  };
  all["Expand"] = [](const Call& c) -> Vars {
    return {nn::Expand(c[0], c.ShapeOf())};
  };
  all["Repeat"] = [](const Call& c) -> Vars {
    return {nn::Repeat(c[0], c.List<std::int64_t>("counts"))};
  };
  all["Meshgrid"] = [](const Call& c) -> Vars {
    return nn::Meshgrid(c.All(), c.Flag("xy") ? nn::ops::GridIndexing::kXY
                                              : nn::ops::GridIndexing::kIJ);
  };
  all["Flip"] = [](const Call& c) -> Vars {
    return {nn::Flip(c[0], c.Axes())};
  };
  all["Roll"] = [](const Call& c) -> Vars {
    return {nn::Roll(c[0], c.Int("shift"), c.Axis())};
  };
  all["Tril"] = [](const Call& c) -> Vars {
    return {nn::Tril(c[0], static_cast<int>(c.Int("diagonal")))};
  };
  all["Triu"] = [](const Call& c) -> Vars {
    return {nn::Triu(c[0], static_cast<int>(c.Int("diagonal")))};
  };
  all["View"] = [](const Call& c) -> Vars {
    return {c[0].View(c.List<std::int64_t>("extents"))};
  };
  all["Flatten"] = [](const Call& c) -> Vars { return {c[0].Flatten()}; };
  all["Unsqueeze"] = [](const Call& c) -> Vars {
    return {c[0].Unsqueeze(c.Axis())};
  };
  all["Squeeze"] = [](const Call& c) -> Vars {
    return {c.Text("axis").empty() ? c[0].Squeeze() : c[0].Squeeze(c.Axis())};
  };
  all["Transpose"] = [](const Call& c) -> Vars {
    return {c[0].Transpose(static_cast<int>(c.Int("first")),
                           static_cast<int>(c.Int("second")))};
  };
  all["Permute"] = [](const Call& c) -> Vars {
    return {c[0].Permute(c.Axes())};
  };
  all["[]"] = [](const Call& c) -> Vars { return {c[0][c.Int("index")]}; };
  all["Slice"] = [](const Call& c) -> Vars {
    return {c[0].Slice(c.Int("begin"),
                       c.Text("end").empty() ? Var::kEnd : c.Int("end"),
                       c.Axis(0))};
  };
}

void AddNewTensors(Table& all) {
  all["Full"] = [](const Call& c) -> Vars {
    return {nn::Full(c.ctx(), c.ShapeOf(), c.Double("value"), c.dtype())};
  };
  all["Zeros"] = [](const Call& c) -> Vars {
    return {nn::Zeros(c.ctx(), c.ShapeOf(), c.dtype())};
  };
  all["Ones"] = [](const Call& c) -> Vars {
    return {nn::Ones(c.ctx(), c.ShapeOf(), c.dtype())};
  };
  all["FullLike"] = [](const Call& c) -> Vars {
    return {nn::FullLike(c[0], c.Double("value"))};
  };
  all["ZerosLike"] = Unary(nn::ZerosLike);
  all["OnesLike"] = Unary(nn::OnesLike);
  all["Arange"] = [](const Call& c) -> Vars {
    const nn::DType dtype = c.Flag("integers") ? nn::DType::kI64 : c.dtype();
    return {nn::Arange(c.ctx(), c.Double("begin"), c.Double("end"),
                       c.Double("step", 1), dtype)};
  };
  all["Linspace"] = [](const Call& c) -> Vars {
    return {nn::Linspace(c.ctx(), c.Double("first"), c.Double("last"),
                         c.Int("count"), c.dtype())};
  };
  all["OneHot"] = [](const Call& c) -> Vars {
    return {nn::OneHot(c[0], c.Int("classes"), c.dtype())};
  };
}

void AddLosses(Table& all) {
  all["CrossEntropy"] = [](const Call& c) -> Vars {
    nn::ops::CrossEntropyOptions options;
    options.label_smoothing = c.Double("label_smoothing");
    options.class_weights = c.List<double>("class_weights");
    return {nn::CrossEntropy(c[0], c[1], options)};
  };
  all["MeanSquaredError"] = [](const Call& c) -> Vars {
    return {nn::MeanSquaredError(c[0], c[1])};
  };
  all["L1Loss"] = [](const Call& c) -> Vars {
    return {nn::L1Loss(c[0], c[1])};
  };
  all["HuberLoss"] = [](const Call& c) -> Vars {
    return {nn::HuberLoss(c[0], c[1], c.Double("delta", 1))};
  };
  all["BceWithLogits"] = [](const Call& c) -> Vars {
    return {nn::BceWithLogits(c[0], c[1], c.Double("pos_weight", 1))};
  };
}

const Table& Ops() {
  static const Table& all = *[] {
    auto* const table = new Table;
    AddElementwise(*table);
    AddChoices(*table);
    AddProducts(*table);
    AddReductions(*table);
    AddIndices(*table);
    AddShapes(*table);
    AddNewTensors(*table);
    AddLosses(*table);
    return table;
  }();
  return all;
}

}  // namespace

const nn::Var& ValueOf(const ExpressionValues& values,
                       const std::string& name) {
  const auto found = values.find(name);
  if (found == values.end()) {
    Refuse(absl::StrCat("there is no value \"", name,
                        "\"; name one of an earlier line"));
  }
  return found->second;
}

std::vector<Var> Apply(nn::Context& ctx, nn::DType dtype,
                       const ExpressionStep& step,
                       const ExpressionValues& values) {
  const auto found = Ops().find(step.op);
  if (found == Ops().end()) {
    Refuse(absl::StrCat("there is no op \"", step.op,
                        "\"; add it to tools/golden/expression_ops.cc"));
  }
  return found->second(Call(ctx, dtype, step, values));
}

std::vector<std::string> ExpressionOps() {
  std::vector<std::string> names;
  for (const auto& [name, function] : Ops()) names.push_back(name);
  return names;
}

}  // namespace troupe::golden
