// Checks that ranks along tp can share a model as the options of a plan say.

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/field_error.h"
#include "nn/modules/module.h"
#include "pipeline/partition.h"
#include "pipeline/plan.h"

namespace troupe::pipeline {
namespace {

absl::StatusOr<std::unique_ptr<nn::Module>> RankOf(
    const PlanOptions& options, const nn::ModelFactory& factory,
    bool sequence_parallel, int depth_blocks) {
  return BuildStage(
      factory, /*begins=*/{}, /*stage=*/0,
      PlacesOf(options.mesh, /*rank=*/0, sequence_parallel, depth_blocks));
}

absl::Status CheckTokens(const PlanOptions& options,
                         const nn::ModelFactory& factory) {
  const std::string tp = AxisFieldName("tp");
  const std::string sequence =
      base::FieldName<&PlanOptions::sequence_parallel>();
  if (options.mesh.tp() == 1) {
    if (!options.sequence_parallel) return absl::OkStatus();
    return base::WithFields(
        absl::InvalidArgumentError(absl::StrCat(
            sequence, " lets the ranks along tp share tokens, and ", tp,
            " is 1; set it to 2 or more, or leave ", sequence, " out")),
        {sequence, tp});
  }
  TROUPE_RETURN_IF_ERROR(base::WithFields(
      RankOf(options, factory, /*sequence_parallel=*/false, /*depth_blocks=*/1)
          .status(),
      {tp}));
  if (!options.sequence_parallel) return absl::OkStatus();
  const absl::Status status = RankOf(options, factory,
                                     /*sequence_parallel=*/true,
                                     /*depth_blocks=*/1)
                                  .status();
  return base::WithFields(
      base::WithMessage(status, absl::StrCat(sequence, ": ", status.message())),
      {sequence, tp});
}

std::string BlocksField() {
  return base::FieldName<&PlanOptions::depth_blocks>();
}

// Returns an error of depth_blocks, which also blames `fields`.
absl::Status BlocksError(const PlanOptions& options, const std::string& what,
                         std::vector<std::string> fields = {}) {
  fields.insert(fields.begin(), BlocksField());
  return base::WithFields(
      absl::InvalidArgumentError(
          absl::StrCat(BlocksField(), " = ", options.depth_blocks, ": ", what)),
      fields);
}

// Checks what the options alone say.
absl::Status CheckBlockNumbers(const PlanOptions& options, nn::Device device) {
  const int blocks = options.depth_blocks, tp = options.mesh.tp();
  if (blocks < 1 || blocks > kDepthBlocksMax || (blocks & (blocks - 1)) != 0) {
    return BlocksError(options, absl::StrCat("must be a power of two up to ",
                                             kDepthBlocksMax));
  }
  if (blocks == 1) return absl::OkStatus();
  if (blocks % tp != 0) {
    const std::string axis = AxisFieldName("tp");
    return BlocksError(
        options,
        absl::StrCat("ranks have equal numbers of blocks, and ", axis, " is ",
                     tp, "; set it to a power of two from ", axis,
                     " on, or to 1"),
        {axis});
  }
  if (options.sequence_parallel) {
    const std::string sequence =
        base::FieldName<&PlanOptions::sequence_parallel>();
    return BlocksError(
        options,
        absl::StrCat("under ", sequence,
                     " ranks add up gradients of their own tokens, in another "
                     "order for each number of ranks; set it to 1, or leave ",
                     sequence, " out"),
        {sequence});
  }
  if (options.threads_per_rank > 1) {
    const std::string threads =
        base::FieldName<&PlanOptions::threads_per_rank>();
    return BlocksError(
        options,
        absl::StrCat("with several threads the order of sums follows from the "
                     "extents of a rank's part, and ",
                     threads, " is ", options.threads_per_rank,
                     "; set it to 1, or ", threads, " to 1"),
        {threads});
  }
  if (device.type == nn::DeviceType::kCpu) return absl::OkStatus();
  return BlocksError(
      options,
      absl::StrCat("sums in blocks are for the cpu, and the "
                   "device is ",
                   device.ToString(), "; set it to 1, or train on the cpu"));
}

absl::Status CheckBlocks(const PlanOptions& options,
                         const nn::ModelFactory& factory, nn::Device device) {
  TROUPE_RETURN_IF_ERROR(CheckBlockNumbers(options, device));
  if (options.depth_blocks == 1) return absl::OkStatus();
  const auto model = RankOf(options, factory, /*sequence_parallel=*/false,
                            options.depth_blocks);
  if (!model.ok()) {
    return BlocksError(options, std::string(model.status().message()));
  }
  for (const nn::Parameter* p : (*model)->Parameters()) {
    if (p->dtype == nn::DType::kF32) continue;
    return BlocksError(
        options, absl::StrCat("sums in blocks have one set of bits in f32, and "
                              "parameter ",
                              p->name, " is ", nn::DTypeName(p->dtype),
                              "; set it to 1, or train in f32"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckPieces(const PlanOptions& options,
                         const nn::ModelFactory& factory, nn::Device device) {
  TROUPE_RETURN_IF_ERROR(CheckTokens(options, factory));
  return CheckBlocks(options, factory, device);
}

}  // namespace troupe::pipeline
