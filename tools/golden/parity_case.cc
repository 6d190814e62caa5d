#include "tools/golden/parity_case.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "nn/tensor/caching_allocator.h"
#include "tools/golden/model_spec.h"

namespace troupe::golden {
namespace {

using nlohmann::json;
using nn::DType;
using nn::Tensor;

// Advice on a file that is not as parity.py writes it.
constexpr char kAnew[] = "make the folder anew by tools/golden/parity.py";

double FiniteOrInfinity(double error) {
  return std::isfinite(error) ? error : std::numeric_limits<double>::infinity();
}

// Returns ||got / divisor - want|| / ||want||.
template <typename T>
double NormError(const T* got, double divisor, const Tensor& want) {
  const double* b = want.data<double>();
  double squares = 0, want_squares = 0;
  for (std::int64_t i = 0; i < want.numel(); ++i) {
    const double apart = got[i] / divisor - b[i];
    squares += apart * apart;
    want_squares += b[i] * b[i];
  }
  return FiniteOrInfinity(std::sqrt(squares / want_squares));
}

double LargestDifference(const std::vector<double>& got,
                         const std::vector<double>& want) {
  double largest = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    largest = std::max(largest, FiniteOrInfinity(std::fabs(got[i] - want[i])));
  }
  return largest;
}

double RelativeError(double got, double want) {
  return FiniteOrInfinity(std::fabs(got - want) / std::fabs(want));
}

}  // namespace

absl::StatusOr<ParityCase> ParityCase::Open(base::FileSystem& files,
                                            const std::string& folder) {
  TROUPE_ASSIGN_OR_RETURN(
      nn::WeightFile weights,
      nn::WeightFile::Open(files, folder + "/weights.safetensors"));
  TROUPE_ASSIGN_OR_RETURN(
      nn::SafetensorsFile golden,
      nn::SafetensorsFile::Open(files, folder + "/case.safetensors"));
  ParityCase parity(std::move(weights), std::move(golden));
  TROUPE_ASSIGN_OR_RETURN(parity.losses_, parity.ReadLosses());
  TROUPE_RETURN_IF_ERROR(parity.ReadSpec());
  return parity;
}

absl::Status ParityCase::ReadSpec() {
  const auto found = golden_.metadata().find("spec");
  if (found == golden_.metadata().end()) {
    return absl::DataLossError(absl::StrCat(
        golden_.path(), " has no \"spec\" in its metadata; ", kAnew));
  }
  try {
    const json spec = json::parse(found->second);
    name_ = spec.at("name");
    torch_version_ = spec.at("torch");
    model_ = spec.at("model");
    optimizer_ = spec.at("optimizer");
    return ReadTorchF32(spec.at("f32"));
  } catch (const json::exception& e) {
    return absl::DataLossError(
        absl::StrCat(golden_.path(), ": its spec: ", e.what(), "; ", kAnew));
  }
}

absl::Status ParityCase::ReadTorchF32(const json& f32) {
  torch_f32_.output = f32.at("output");
  for (const auto& [name, error] : f32.at("gradients").items()) {
    torch_f32_.gradients.push_back({name, error});
  }
  const std::vector<double> losses = f32.at("losses");
  if (losses.size() != losses_.size()) {
    return absl::DataLossError(
        absl::StrCat(golden_.path(), " has ", losses_.size(),
                     " losses in f64 and ", losses.size(), " in f32; ", kAnew));
  }
  torch_f32_.loss = RelativeError(losses[0], losses_[0]);
  torch_f32_.losses = LargestDifference(losses, losses_);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<double>> ParityCase::ReadLosses() const {
  nn::CachingAllocator memory;
  TROUPE_ASSIGN_OR_RETURN(const Tensor losses, golden_.Read("losses", memory));
  if (losses.dtype() != DType::kF64 || losses.numel() < 2) {
    return absl::DataLossError(
        absl::StrCat(golden_.path(),
                     ": losses must be f64 and at least 2, one of a step "
                     "and one after the last; ",
                     kAnew));
  }
  const double* begin = losses.data<double>();
  return std::vector<double>(begin, begin + losses.numel());
}

absl::Status ParityCase::Import(ModelRun& run) const {
  TROUPE_RETURN_IF_ERROR(weights_.CheckStrict(run.model()));
  for (const nn::Parameter* p : run.parameters()) {
    TROUPE_RETURN_IF_ERROR(weights_.Read(*p, p->value).status());
  }
  for (const nn::Buffer* b : run.model().Buffers()) {
    TROUPE_RETURN_IF_ERROR(weights_.Read(*b, b->value).status());
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> ParityCase::ReadInput(DType dtype,
                                             nn::Allocator& allocator) const {
  TROUPE_ASSIGN_OR_RETURN(const Tensor x, golden_.Read("x", allocator));
  return nn::ConvertFloats(x, dtype, allocator);
}

absl::StatusOr<double> ParityCase::ErrorOf(const Tensor& got, double divisor,
                                           absl::string_view name) const {
  nn::CachingAllocator memory;
  TROUPE_ASSIGN_OR_RETURN(const Tensor want,
                          Tensor::Create(got.shape(), DType::kF64, memory));
  TROUPE_RETURN_IF_ERROR(golden_.Read(name, want));
  return got.dtype() == DType::kF64
             ? NormError(got.data<double>(), divisor, want)
             : NormError(got.data<float>(), divisor, want);
}

absl::Status ParityCase::CompareFirst(const ModelRun& run,
                                      const ModelRun::Batch& batch,
                                      ParityErrors& errors) const {
  TROUPE_ASSIGN_OR_RETURN(errors.output,
                          ErrorOf(batch.output, /*divisor=*/1, "output"));
  errors.loss = RelativeError(batch.loss(), losses_[0]);
  for (const nn::Parameter* p : run.parameters()) {
    TROUPE_ASSIGN_OR_RETURN(const double error,
                            ErrorOf(p->grad, batch.loss_count,
                                    absl::StrCat("gradients/", p->name)));
    errors.gradients.push_back({p->name, error});
  }
  return absl::OkStatus();
}

absl::StatusOr<ParityErrors> ParityCase::Train(DType dtype,
                                               nn::Kernels& kernels) const {
  TROUPE_CHECK(dtype == DType::kF32 || dtype == DType::kF64,
               "errors are taken of f32 and f64");
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<nn::Sequential> model,
                          MakeSpecModel(model_));
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<nn::Optimizer> optimizer,
                          MakeSpecOptimizer(optimizer_));
  TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<ModelRun> run,
                          ModelRun::Create(std::move(model), dtype, kernels));
  TROUPE_RETURN_IF_ERROR(Import(*run));
  TROUPE_RETURN_IF_ERROR(run->SetOptimizer(std::move(optimizer)));
  TROUPE_ASSIGN_OR_RETURN(const Tensor x,
                          ReadInput(dtype, kernels.allocator()));
  TROUPE_ASSIGN_OR_RETURN(const Tensor labels,
                          golden_.Read("labels", kernels.allocator()));
  ParityErrors errors;
  std::vector<double> losses;
  while (losses.size() + 1 < losses_.size()) {
    TROUPE_ASSIGN_OR_RETURN(const ModelRun::Batch batch, run->Train(x, labels));
    if (losses.empty()) {
      TROUPE_RETURN_IF_ERROR(CompareFirst(*run, batch, errors));
    }
    losses.push_back(batch.loss());
    TROUPE_RETURN_IF_ERROR(run->Update(batch));
  }
  TROUPE_ASSIGN_OR_RETURN(const ModelRun::Batch last, run->Forward(x, labels));
  losses.push_back(last.loss());
  errors.losses = LargestDifference(losses, losses_);
  return errors;
}

}  // namespace troupe::golden
