#include "nn/modules/summary.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <typeinfo>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/type_name.h"

namespace troupe::nn {
namespace {

constexpr char kNothing[] = "--";

// Returns "Conv2d" for "troupe::nn::(anonymous namespace)::Conv2d".
std::string ShortTypeName(const Module& module) {
  std::string name = base::TypeName(typeid(module));
  const std::string arguments =
      name.substr(std::min(name.find('<'), name.size()));
  name = name.substr(0, name.size() - arguments.size());
  const std::size_t colon = name.rfind(':');
  return colon == std::string::npos ? name : name.substr(colon + 1);
}

// Returns 1234567 as "1,234,567".
std::string WithCommas(std::int64_t number) {
  std::string text = absl::StrCat(number);
  for (int at = static_cast<int>(text.size()) - 3; at > 0; at -= 3) {
    text.insert(static_cast<std::size_t>(at), ",");
  }
  return text;
}

std::string BytesText(std::int64_t bytes) {
  constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  for (; value >= 1000 && unit < 4; ++unit) value /= 1000;
  return absl::StrFormat("%.*f %s", unit == 0 ? 0 : 1, value, kUnits[unit]);
}

// Returns the columns that UTF-8 text takes on a terminal, if each of its
// characters takes one.
int Columns(const std::string& text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

std::string Padded(const std::string& text, int columns) {
  return text + std::string(std::max(0, columns - Columns(text)), ' ');
}

// Data on one module from the shape-only forward and the list of parameters.
struct Found {
  Shape output;
  bool has_output = false;
  double mult_adds = 0;
  std::int64_t parameters = 0;
  bool trained = false;
};
using ByPath = std::map<std::string, Found>;

std::string Above(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}

// The output of a module is that of the last op in or below it.
void AddOps(const ShapeRecord& record, ByPath& found) {
  for (const ShapeRecord::Op& op : record.ops) {
    found[op.module].mult_adds += op.flops / 2;
    for (std::string path = op.module;; path = Above(path)) {
      found[path].output = op.output;
      found[path].has_output = true;
      if (path.empty()) break;
    }
  }
}

void AddRows(const Module& module, const std::string& path, int depth,
             const ByPath& found, std::vector<ModelSummary::Row>& rows) {
  ModelSummary::Row row;
  row.depth = depth;
  row.name = module.name();
  row.type = ShortTypeName(module);
  const auto here = found.find(path);
  // Declarations of a child without a name count for its parent.
  const bool is_named = depth == 0 || !module.name().empty();
  if (here != found.end() && is_named) {
    const Found& f = here->second;
    row.output = f.output;
    row.has_output = f.has_output;
    row.mult_adds = f.mult_adds;
    row.parameters = f.parameters;
    row.frozen = f.parameters > 0 && !f.trained;
  }
  rows.push_back(std::move(row));
  for (const auto& child : module.children()) {
    const char* const dot = path.empty() || child->name().empty() ? "" : ".";
    AddRows(*child, absl::StrCat(path, dot, child->name()), depth + 1, found,
            rows);
  }
}

// Returns "│  ├─ 0 (Conv2d)", with the tree's lines in front.
std::string Label(const std::vector<ModelSummary::Row>& rows, std::size_t i) {
  const ModelSummary::Row& row = rows[i];
  if (row.depth == 0) return row.type;
  // Whether a level still has a module below this one.
  const auto goes_on = [&](int depth) {
    for (std::size_t j = i + 1; j < rows.size(); ++j) {
      if (rows[j].depth < depth) return false;
      if (rows[j].depth == depth) return true;
    }
    return false;
  };
  std::string label;
  for (int depth = 1; depth < row.depth; ++depth) {
    label += goes_on(depth) ? "│  " : "   ";
  }
  absl::StrAppend(&label, goes_on(row.depth) ? "├─ " : "└─ ", row.name,
                  row.name.empty() ? "(" : " (", row.type, ")");
  return label;
}

// Returns the rows down to `depth`; deeper ones count for the row above them.
std::vector<ModelSummary::Row> DownTo(
    int depth, const std::vector<ModelSummary::Row>& rows) {
  std::vector<ModelSummary::Row> shown;
  for (const ModelSummary::Row& row : rows) {
    if (row.depth <= depth) {
      shown.push_back(row);
      continue;
    }
    ModelSummary::Row& above = shown.back();
    if (row.parameters > 0) {
      above.frozen = row.frozen && (above.frozen || above.parameters == 0);
    }
    above.parameters += row.parameters;
    above.mult_adds += row.mult_adds;
  }
  return shown;
}

std::string Count(double number) {
  return number > 0 ? WithCommas(std::llround(number)) : kNothing;
}

}  // namespace

absl::StatusOr<ModelSummary> Summary(Module& model, const TensorSpec& input) {
  ShapeRecord record;
  TROUPE_RETURN_IF_ERROR(
      ShapeOnlyForward(model, {input}, Device{}, record).status());
  ModelSummary summary;
  summary.input = input;
  ByPath found;
  AddOps(record, found);
  DType activations = IsFloating(input.dtype) ? input.dtype : DType::kF32;
  for (const Parameter* p : model.Parameters()) {
    const auto bytes =
        p->shape.numel() * static_cast<std::int64_t>(SizeOf(p->dtype));
    Found& owner = found[Above(p->name)];
    owner.parameters += p->shape.numel();
    owner.trained |= p->requires_grad;
    summary.parameters += p->shape.numel();
    summary.parameter_bytes += bytes;
    if (!p->requires_grad) continue;
    summary.trained += p->shape.numel();
    summary.gradient_bytes += bytes;
    activations = p->dtype;
  }
  for (const Buffer* b : model.Buffers()) {
    summary.buffers += b->shape.numel();
    summary.buffer_bytes +=
        b->shape.numel() * static_cast<std::int64_t>(SizeOf(b->dtype));
  }
  for (const ShapeRecord::Op& op : record.ops) {
    summary.activation_bytes +=
        op.output.numel() * static_cast<std::int64_t>(SizeOf(activations));
  }
  summary.mult_adds = record.flops() / 2;
  AddRows(model, "", 0, found, summary.rows);
  return summary;
}

std::string ModelSummary::Table(int depth) const {
  const std::vector<Row> shown = DownTo(depth, rows);
  std::vector<std::string> labels, shapes;
  int label_columns = 5, shape_columns = 12;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    labels.push_back(Label(shown, i));
    shapes.push_back(shown[i].has_output ? shown[i].output.ToString()
                                         : kNothing);
    label_columns = std::max(label_columns, Columns(labels[i]));
    shape_columns = std::max(shape_columns, Columns(shapes[i]));
  }
  constexpr int kNumberColumns = 16;
  const auto line = [&](const std::string& label, const std::string& shape,
                        const std::string& count, const std::string& macs) {
    return absl::StrFormat("%s  %s%*s%*s\n", Padded(label, label_columns),
                           Padded(shape, shape_columns), kNumberColumns, count,
                           kNumberColumns, macs);
  };
  const std::string rule =
      std::string(label_columns + 2 + shape_columns + 2 * kNumberColumns, '=') +
      "\n";
  std::string text = absl::StrCat(
      line("Layer", "Output shape", "Parameters", "Mult-adds"), rule);
  for (std::size_t i = 0; i < shown.size(); ++i) {
    std::string count = Count(static_cast<double>(shown[i].parameters));
    if (shown[i].frozen) count = absl::StrCat("(", count, ")");
    text += line(labels[i], shapes[i], count, Count(shown[i].mult_adds));
  }
  return text + rule;
}

std::string ModelSummary::ToString() const {
  return absl::StrCat(
      Table(std::numeric_limits<int>::max()),
      "Parameters: ", WithCommas(parameters), ", of which ",
      WithCommas(trained), " are trained; buffers: ", WithCommas(buffers),
      "\nMult-adds of a forward of ", input.ToString(), ": ",
      WithCommas(std::llround(mult_adds)), "\nMemory: parameters ",
      BytesText(parameter_bytes), ", gradients ", BytesText(gradient_bytes),
      ", buffers ", BytesText(buffer_bytes),
      ", activations for backward up to ", BytesText(activation_bytes), "\n");
}

}  // namespace troupe::nn
