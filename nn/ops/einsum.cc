#include "nn/ops/einsum.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "nn/ops/arithmetic.h"
#include "nn/ops/matmul.h"
#include "nn/ops/op_util.h"
#include "nn/ops/permute.h"
#include "nn/ops/reduce.h"
#include "nn/ops/reshape.h"

namespace troupe::nn::ops {
namespace {

// An operand with the subscripts of its axes, in their order.
struct Named {
  Tensor x;
  std::string axes;
};

bool Has(const std::string& axes, char subscript) {
  return axes.find(subscript) != std::string::npos;
}

// Returns the subscripts of `axes` that are in `other`, or that are not.
std::string Shared(const std::string& axes, const std::string& other) {
  std::string found;
  for (const char c : axes) {
    if (Has(other, c)) found += c;
  }
  return found;
}
std::string Lacking(const std::string& axes, const std::string& other) {
  std::string found;
  for (const char c : axes) {
    if (!Has(other, c)) found += c;
  }
  return found;
}

// Returns the first mistake in a list of subscripts; empty: none.
std::string MistakeIn(const std::string& axes) {
  std::string seen;
  for (const char c : axes) {
    if (!absl::ascii_isalpha(c)) {
      return absl::StrCat("'", std::string(1, c), "' is no letter");
    }
    if (Has(seen, c)) {
      return absl::StrCat("subscript ", std::string(1, c), " is twice in ",
                          axes);
    }
    seen += c;
  }
  return "";
}

// An equation that fits its operands, or the first mistake in it.
struct Equation {
  std::vector<Named> operands;
  std::string result;
  std::string mistake;
};

// Checks the extents of the operands.
std::string MistakeInExtents(const std::vector<Named>& operands) {
  std::map<char, std::int64_t> extents;
  for (const auto& [x, axes] : operands) {
    for (int axis = 0; axis < x.shape().rank(); ++axis) {
      const auto [found, is_new] = extents.emplace(axes[axis], x.dim(axis));
      if (found->second == x.dim(axis)) continue;
      return absl::StrCat("subscript ", std::string(1, axes[axis]), " is ",
                          found->second, " and ", x.dim(axis));
    }
  }
  return "";
}

Equation Parse(absl::string_view equation, absl::Span<const Tensor> operands) {
  Equation parsed;
  const std::vector<std::string> sides =
      absl::StrSplit(absl::StrReplaceAll(equation, {{" ", ""}}), "->");
  if (sides.size() != 2) {
    parsed.mistake = "it has no result: write \"ij,jk->ik\"";
    return parsed;
  }
  const std::vector<std::string> lists = absl::StrSplit(sides[0], ',');
  if (lists.size() != operands.size()) {
    parsed.mistake = absl::StrCat("it names ", lists.size(),
                                  " operands and gets ", operands.size());
    return parsed;
  }
  if (lists.size() > 2) {
    parsed.mistake = absl::StrCat("it has ", lists.size(),
                                  " operands; one or two are supported");
    return parsed;
  }
  parsed.result = sides[1];
  std::string all;
  for (std::size_t i = 0; i < lists.size(); ++i) {
    const Tensor& x = operands[i];
    parsed.operands.push_back({x, lists[i]});
    all += lists[i];
    parsed.mistake = MistakeIn(lists[i]);
    if (!parsed.mistake.empty()) return parsed;
    if (!x.defined() || !IsFloating(x.dtype()) ||
        x.dtype() != operands[0].dtype()) {
      parsed.mistake = "operands are floating numbers of one dtype";
    } else if (lists[i].size() != static_cast<std::size_t>(x.shape().rank())) {
      parsed.mistake = absl::StrCat("\"", lists[i], "\" names ",
                                    lists[i].size(), " axes of ", Str(x));
    }
    if (!parsed.mistake.empty()) return parsed;
  }
  parsed.mistake = MistakeIn(parsed.result);
  const std::string unknown = Lacking(parsed.result, all);
  if (parsed.mistake.empty() && !unknown.empty()) {
    parsed.mistake = absl::StrCat("subscript ", unknown.substr(0, 1),
                                  " of the result is in no operand");
  }
  if (parsed.mistake.empty() && parsed.result.size() > Shape::kMaxRank) {
    parsed.mistake =
        absl::StrCat("the result has more than ", Shape::kMaxRank, " axes");
  }
  if (parsed.mistake.empty())
    parsed.mistake = MistakeInExtents(parsed.operands);
  return parsed;
}

// Returns the operand with its axes in the order `axes`.
Tensor InOrder(Context& ctx, const Named& operand, const std::string& axes) {
  if (operand.axes == axes) return operand.x;
  std::vector<int> from;
  for (const char c : axes) {
    from.push_back(static_cast<int>(operand.axes.find(c)));
  }
  return Permute(ctx, operand.x, from);
}

// Returns the sums over all axes that are not in `kept`.
Named SumOver(Context& ctx, const Named& operand, const std::string& kept) {
  std::vector<int> axes;
  for (const char c : Lacking(operand.axes, kept)) {
    axes.push_back(static_cast<int>(operand.axes.find(c)));
  }
  if (axes.empty()) return operand;
  return {Sum(ctx, operand.x, axes), Shared(operand.axes, kept)};
}

// A matrix [batch, rows, cols] of an operand; of its transpose if `transposed`.
struct Matrix {
  Tensor x;
  bool transposed = false;
};

class Product {
 public:
  Product(Named a, Named b, const std::string& result)
      : a_(std::move(a)),
        b_(std::move(b)),
        batch_(Shared(Shared(result, a_.axes), b_.axes)),
        rows_(Lacking(Shared(result, a_.axes), b_.axes)),
        cols_(Lacking(Shared(result, b_.axes), a_.axes)),
        summed_(Lacking(Shared(a_.axes, b_.axes), result)) {}

  Named Compute(Context& ctx) const {
    const Tensor product = summed_.empty() ? OfElements(ctx) : OfMatrices(ctx);
    if (!ctx.ok()) return {};
    const std::string axes = batch_ + rows_ + cols_;
    std::vector<std::int64_t> extents;
    for (const char c : axes) extents.push_back(ExtentOf(c));
    return {Reshape(ctx, product, Shape(extents)), axes};
  }

 private:
  std::int64_t ExtentOf(char subscript) const {
    const Named& owner = Has(a_.axes, subscript) ? a_ : b_;
    return owner.x.dim(static_cast<int>(owner.axes.find(subscript)));
  }
  std::int64_t ProductOf(const std::string& axes) const {
    std::int64_t product = 1;
    for (const char c : axes) product *= ExtentOf(c);
    return product;
  }

  // Transposed, if that is how the operand is stored.
  Matrix MatrixOf(Context& ctx, const Named& operand, const std::string& rows,
                  const std::string& cols) const {
    const bool transposed = operand.axes == batch_ + cols + rows;
    const std::string& first = transposed ? cols : rows;
    const std::string& second = transposed ? rows : cols;
    const Tensor x = InOrder(ctx, operand, batch_ + first + second);
    if (!ctx.ok()) return {};
    return {Reshape(ctx, x,
                    {ProductOf(batch_), ProductOf(first), ProductOf(second)}),
            transposed};
  }

  Tensor OfMatrices(Context& ctx) const {
    const Matrix a = MatrixOf(ctx, a_, rows_, summed_);
    const Matrix b = MatrixOf(ctx, b_, summed_, cols_);
    if (!ctx.ok()) return Tensor();
    return MatMul(ctx, a.x, b.x, {a.transposed, b.transposed});
  }

  Tensor OfElements(Context& ctx) const {
    const Tensor a = InOrder(ctx, a_, batch_ + rows_);
    const Tensor b = InOrder(ctx, b_, batch_ + cols_);
    if (!ctx.ok()) return Tensor();
    const std::int64_t batch = ProductOf(batch_);
    return Mul(ctx, Reshape(ctx, a, {batch, ProductOf(rows_), 1}),
               Reshape(ctx, b, {batch, 1, ProductOf(cols_)}));
  }

  const Named a_, b_;
  const std::string batch_, rows_, cols_, summed_;
};

}  // namespace

Tensor Einsum(Context& ctx, absl::string_view equation,
              absl::Span<const Tensor> operands) {
  if (!ctx.ok()) return Tensor();
  const Equation parsed = Parse(equation, operands);
  if (!parsed.mistake.empty()) {
    return BadShapes(
        ctx, "einsum \"", equation, "\": ", parsed.mistake, ", got {",
        absl::StrJoin(
            operands, ", ",
            [](std::string* out, const Tensor& x) { out->append(Str(x)); }),
        "}");
  }
  const Named& first = parsed.operands[0];
  if (parsed.operands.size() == 1) {
    const Named sums = SumOver(ctx, first, parsed.result);
    return ctx.ok() ? InOrder(ctx, sums, parsed.result) : Tensor();
  }
  const Named& second = parsed.operands[1];
  const Named a = SumOver(ctx, first, parsed.result + second.axes);
  const Named b = SumOver(ctx, second, parsed.result + first.axes);
  if (!ctx.ok()) return Tensor();
  const Named product = Product(a, b, parsed.result).Compute(ctx);
  return ctx.ok() ? InOrder(ctx, product, parsed.result) : Tensor();
}

}  // namespace troupe::nn::ops
