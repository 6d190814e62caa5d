#include "tools/golden/expression.h"

#include <list>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "base/status_error.h"
#include "nn/autograd/context.h"
#include "nn/autograd/var.h"
#include "nn/serialize/weight_file.h"
#include "tools/golden/expression_ops.h"

namespace troupe::golden {
namespace {

using nn::Tensor;
using nn::Var;

// Parses "outputs = op operands attributes".
absl::StatusOr<ExpressionStep> ParseStep(absl::string_view line) {
  ExpressionStep step;
  step.text = std::string(line);
  bool left = true;
  for (const absl::string_view word :
       absl::StrSplit(line, ' ', absl::SkipEmpty())) {
    if (left && word == "=") {
      left = false;
    } else if (left) {
      step.outputs.emplace_back(word);
    } else if (step.op.empty()) {
      step.op = std::string(word);
    } else if (const std::size_t at = word.find('=');
               at != absl::string_view::npos) {
      step.attributes.emplace(word.substr(0, at), word.substr(at + 1));
    } else {
      step.operands.emplace_back(word);
    }
  }
  if (step.outputs.empty() || step.op.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", line, "\" is no step, \"outputs = op operands ",
        "attributes\"; make it anew by tools/golden/expressions.py"));
  }
  return step;
}

// Adds a line to the expressions.
absl::Status Take(absl::string_view line, std::vector<Expression>& all) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(line, ' ', absl::SkipEmpty());
  if (words.empty()) return absl::OkStatus();
  if (words[0] == "expression" && words.size() == 2) {
    all.emplace_back().name = std::string(words[1]);
    return absl::OkStatus();
  }
  if (all.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", line, "\" stands before the first \"expression ",
                     "NAME\"; put such a line in front"));
  }
  if (words[0] == "backward" && words.size() == 2) {
    all.back().root = std::string(words[1]);
    return absl::OkStatus();
  }
  TROUPE_ASSIGN_OR_RETURN(ExpressionStep step, ParseStep(line));
  all.back().steps.push_back(std::move(step));
  return absl::OkStatus();
}

absl::Status At(absl::string_view where, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat(where, ": ", status.message()));
}

// One evaluation: its values by their names, and what is kept of them.
class Evaluation {
 public:
  Evaluation(const Expression& expression, const nn::SafetensorsFile& inputs,
             nn::DType dtype, nn::Kernels& kernels)
      : expression_(expression),
        inputs_(inputs),
        dtype_(dtype),
        ctx_(kernels, &tape_) {}

  absl::StatusOr<std::vector<nn::NamedTensor>> Run() {
    for (const ExpressionStep& step : expression_.steps) {
      const absl::Status status = base::Try([&] { Compute(step); });
      if (!status.ok()) return At(step.text, status);
    }
    const absl::Status status =
        base::Try([&] { ValueOf(values_, expression_.root).Backward(); });
    if (!status.ok()) return At("backward", status);
    for (const nn::Parameter& parameter : parameters_) {
      if (parameter.grad_written)
        Keep(parameter.name + ".grad", parameter.grad);
    }
    return std::move(results_);
  }

 private:
  void Keep(const std::string& name, const Tensor& tensor) {
    results_.push_back(
        {absl::StrCat(expression_.name, "/", name), tensor.Detached()});
  }

  Tensor Read(const std::string& name) {
    nn::Allocator& memory = ctx_.kernels().allocator();
    const Tensor read = base::OrThrow(
        inputs_.Read(absl::StrCat(expression_.name, "/", name), memory));
    return base::OrThrow(nn::ConvertFloats(read, dtype_, memory));
  }

  // Returns a tensor of the file as a trained parameter of its own.
  Var Trained(const std::string& name) {
    nn::Parameter& parameter = parameters_.emplace_back();
    parameter.name = name;
    parameter.value = Read(name);
    parameter.shape = parameter.value.shape();
    parameter.dtype = dtype_;
    parameter.grad = base::OrThrow(
        Tensor::Create(parameter.shape, dtype_, ctx_.kernels().allocator()));
    return Var(ctx_, ctx_.Use(parameter));
  }

  void Compute(const ExpressionStep& step) {
    std::vector<Var> made;
    if (step.op == "input") {
      made.push_back(Trained(step.outputs[0]));
    } else if (step.op == "constant") {
      made.emplace_back(ctx_, Read(step.outputs[0]));
    } else {
      made = Apply(ctx_, dtype_, step, values_);
    }
    if (made.size() != step.outputs.size()) {
      throw base::StatusError(absl::InvalidArgumentError(
          absl::StrCat("it has ", made.size(), " outputs; name all of them")));
    }
    for (std::size_t i = 0; i < made.size(); ++i) {
      const bool drawn = step.op == "input" || step.op == "constant";
      if (!drawn) Keep(step.outputs[i], made[i].Mean().tensor());
      values_.insert_or_assign(step.outputs[i], std::move(made[i]));
    }
  }

  const Expression& expression_;
  const nn::SafetensorsFile& inputs_;
  const nn::DType dtype_;
  nn::Tape tape_;
  nn::Context ctx_;
  std::list<nn::Parameter> parameters_;
  ExpressionValues values_;
  std::vector<nn::NamedTensor> results_;
};

}  // namespace

absl::StatusOr<std::vector<Expression>> ParseExpressions(
    absl::string_view text) {
  std::vector<Expression> all;
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    const absl::Status status = Take(line, all);
    if (!status.ok()) {
      return At(absl::StrCat("line ", number), status);
    }
  }
  return all;
}

absl::StatusOr<std::vector<nn::NamedTensor>> Evaluate(
    const Expression& expression, const nn::SafetensorsFile& inputs,
    nn::DType dtype, nn::Kernels& kernels) {
  return Evaluation(expression, inputs, dtype, kernels).Run();
}

}  // namespace troupe::golden
