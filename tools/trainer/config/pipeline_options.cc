#include "tools/trainer/config/pipeline_options.h"

#include <array>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/field_error.h"
#include "pipeline/balance.h"
#include "pipeline/cut_search.h"
#include "pipeline/schedules/schedule_search.h"
#include "pipeline/schedules/schedules.h"
#include "tools/trainer/config/config_blame.h"
#include "tools/trainer/config/key_rules.h"
#include "tools/trainer/config/model_builder.h"

namespace troupe::tools {
namespace {

using C = TrainerConfig;
using actors::JobSpec;
using pipeline::PlanOptions;
using Names = std::vector<std::string>;

constexpr char kSearch[] = "search";
constexpr char kMeasured[] = "measured";
constexpr std::int64_t kGridBytesMax = 64 << 20;

pipeline::Balance BalanceOf(const std::string& name) {
  return name == "parameters" ? pipeline::Balance::kParameters
         : name == "layers"   ? pipeline::Balance::kLayers
                              : pipeline::Balance::kFlops;
}

// Axes of a mesh in the order of pipeline::Mesh(dp, pp, tp).
constexpr const char* kAxes[] = {"dp", "pp", "tp"};

std::array<int, 3> SizesOf(const TrainerConfig& config) {
  const pipeline::Mesh& mesh = config.job.plan.mesh;
  return {mesh.dp(), mesh.pp(), mesh.tp()};
}

// Field of one axis: keys set mesh.dp, mesh.pp and mesh.tp one at a time, but a
// mesh is set as a whole.
template <int kAxis>
constexpr KeyField kMeshAxis = {
    KeyType::kInteger,
    [](const TrainerConfig& config) {
      return KeyValue(std::int64_t{SizesOf(config)[kAxis]});
    },
    [](const KeyValue& value, TrainerConfig& config) {
      std::array<int, 3> sizes = SizesOf(config);
      sizes[kAxis] = static_cast<int>(std::get<std::int64_t>(value));
      config.job.plan.mesh = pipeline::Mesh(sizes[0], sizes[1], sizes[2]);
      return absl::OkStatus();
    },
    [] { return pipeline::AxisFieldName(kAxes[kAxis]); },
};

constexpr ConfigKey kMeshKeys[] = {
    {"mesh.auto", Field<&C::pipeline, &PipelineConfig::auto_mesh>(), kAny,
     "Chooses the mesh at the start: compares ways to lay out the ranks "
     "(mesh.dp * mesh.pp * mesh.tp of them, or --ranks) as trainer plan "
     "--meshes does, and takes the fastest that keeps mesh.memory_limit. What "
     "train.micro_batch_size, mesh.tp, mesh.schedule, mesh.virtual_stages, "
     "zero.stage and model.recompute... set stays. mesh = \"auto\": the same.",
     "true"},
    {"mesh.dp", kMeshAxis<0>, AtMost(kIntMax),
     "Replicas of the model, which share each global batch. --ranks=N sets it "
     "to N / (mesh.pp * mesh.tp).",
     "4"},
    {"mesh.pp", kMeshAxis<1>, AtMost(kIntMax),
     "Stages of the pipeline that a replica is cut into, one rank each.", "2"},
    {"mesh.tp", kMeshAxis<2>, AtMost(kIntMax),
     "Ranks that each compute with a part of the layers (tensor parallelism): "
     "of attention and MLPs in gpt and vit, and the vocabulary of gpt. Must "
     "divide heads and widths.",
     "2"},
    {"mesh.sequence_parallel",
     Field<&C::job, &JobSpec::plan, &PlanOptions::sequence_parallel>(), kAny,
     "Lets the ranks of mesh.tp also share the tokens of each sequence between "
     "attention and MLPs (sequence parallelism): activations there take 1 / "
     "mesh.tp of the memory, and as many bytes travel, with one gather more "
     "for each column layer. For gpt and vit; mesh.tp must divide the tokens.",
     "true"},
    {"mesh.depth_blocks",
     Field<&C::job, &JobSpec::plan, &PlanOptions::depth_blocks>(),
     AtMost(pipeline::kDepthBlocksMax),
     "Number of blocks, a power of two, in which layers compute each sum over "
     "what mesh.tp divides. Every mesh.tp that divides it then gives the same "
     "bits, 1 included: in f32 on the cpu, with one thread a rank and without "
     "mesh.sequence_parallel. It must divide the widths of these layers.",
     "4"},
    {"mesh.cuts", Field<&C::job, &JobSpec::plan, &PlanOptions::cuts>(), kExtent,
     "Where stages begin: as many layers of the model as there are stages, "
     "less one, ascending, each by its number, counted from 0, or by its name, "
     "as parameters have it (\"7\", or \"features.4\" inside another "
     "Sequential). Empty: as mesh.balance says.",
     "[3, \"7\"]"},
    {"mesh.balance", Field<&C::pipeline, &PipelineConfig::balance>(), OneOf([] {
       return Names{"flops", "parameters", "layers", "measured"};
     }),
     "What is alike in all stages, as far as may be, where mesh.cuts is empty: "
     "the arithmetic of a forward, the number of parameters, or of layers; "
     "\"measured\" times each layer at the start, and takes the cuts that give "
     "the busiest rank the least work.",
     "\"measured\""},
    {"mesh.memory_limit", Field<&C::pipeline, &PipelineConfig::memory_limit>(),
     Bytes(0, KeyUnit::kBytes),
     "Limit on what a rank holds, by estimate: parameters, gradients, "
     "optimizer states and activations. mesh.auto keeps it, and so does "
     "mesh.balance = \"measured\" in a pipeline; trainer plan says what does "
     "not fit. 0 means none.",
     "\"8GiB\"", CopiedTo<&actors::OpenMesh::memory_limit>},
    {"mesh.bandwidth", Field<&C::pipeline, &PipelineConfig::bandwidth>(),
     kFromZero,
     "Bytes a second that a rank sends to others, for predictions: 1.25e9 "
     "are 10 Gbit/s. 0: sums between threads of this process are timed.",
     "1.25e9"},
    {"mesh.virtual_stages",
     Field<&C::job, &JobSpec::plan, &PlanOptions::virtual_stages>(),
     KeyRule{1, 1024},
     "Parts of the model that each rank of a pipeline holds: mesh.pp times so "
     "many stages in all.",
     "2"},
    {"mesh.schedule", Field<&C::pipeline, &PipelineConfig::schedule>(),
     OneOf(ScheduleChoices),
     "In which order ranks of a pipeline take their forwards and backwards "
     "(docs/schedules.md). \"auto\" is \"1f1b\", or \"interleaved_1f1b\" where "
     "mesh.virtual_stages is above 1; \"search\" looks for the shortest step. "
     "The results are the same.",
     "\"zb_v\""},
    {"mesh.schedule_file",
     Field<&C::pipeline, &PipelineConfig::schedule_file>(), kPath,
     "File with the order instead, a line a rank, as trainer plan --grid "
     "prints it: \"rank 0: F0 F1 B0 B1\".",
     "\"schedule.txt\""},
    {"mesh.activation_limit",
     Field<&C::pipeline, &PipelineConfig::activation_limit>(),
     Bytes(0, KeyUnit::kBytes),
     "Limit on the activations of a rank that mesh.schedule = \"search\" "
     "keeps, "
     "by estimate; 0 means none.",
     "\"2GiB\""},
    {"mesh.strict_order", Field<&C::pipeline, &PipelineConfig::strict_order>(),
     kAny,
     "Keeps the order of the schedule also where an input comes late and "
     "another is there. The results are the same.",
     "true"},
};

// Makes the options of one configuration. `costs` are measured costs; null:
// none were measured.
class Builder {
 public:
  Builder(const LoadedConfig& loaded, const data::SampleSpec& sample,
          const pipeline::ModelCosts* costs)
      : loaded_(loaded),
        config_(loaded.config),
        sample_(sample),
        costs_(costs),
        options_(config_.job.plan) {}

  absl::StatusOr<PlanOptions> Build() {
    if (config_.pipeline.strict_order) {
      options_.dispatch = pipeline::Dispatch::kStrict;
    }
    options_.zero_accumulates_whole =
        config_.pipeline.zero_accumulate == kZeroLocal;
    const bool by_file = !config_.pipeline.schedule_file.empty();
    const std::string name = ScheduleName(config_);
    if (name.empty() && !by_file) return CheckAlone();
    if (by_file) {
      TROUPE_RETURN_IF_ERROR(SetGrid());
    } else if (name == kSearchSchedule) {
      TROUPE_RETURN_IF_ERROR(Search());
    } else {
      const absl::Status status = pipeline::SetSchedule(name, options_);
      if (!status.ok()) return AtSchedule(status);
    }
    TROUPE_RETURN_IF_ERROR(Cut());
    return std::move(options_);
  }

 private:
  absl::StatusOr<PlanOptions> CheckAlone() {
    if (config_.pipeline.schedule == kAutoSchedule) return std::move(options_);
    return ErrorAt(loaded_, {"mesh.schedule"},
                   "mesh.schedule is for pipelines, and mesh.pp is 1; remove "
                   "mesh.schedule, or set mesh.pp to 2 or more");
  }

  absl::Status AtSchedule(const absl::Status& status) const {
    return ErrorAt(loaded_,
                   {"mesh.schedule", "mesh.virtual_stages", "mesh.pp",
                    "train.micro_batch_size"},
                   status.message());
  }

  nn::TensorSpec Input() const {
    return {sample_.InputShape(options_.MicroBatchSize()),
            InputDType(config_, sample_)};
  }
  std::unique_ptr<nn::Module> Model() const {
    return MakeModel(config_, sample_).value();
  }

  absl::StatusOr<std::vector<pipeline::Cut>> Balanced(int stages) const {
    const auto cuts = pipeline::BalanceCuts(
        [this] { return Model(); }, Input(), config_.job.device, stages,
        BalanceOf(config_.pipeline.balance),
        pipeline::PlacesOf(options_.mesh, /*rank=*/0,
                           options_.sequence_parallel, options_.depth_blocks));
    if (cuts.ok()) return cuts;
    return ErrorAt(loaded_, {"mesh.pp", "mesh.virtual_stages"},
                   cuts.status().message());
  }

  absl::Status Cut() {
    const pipeline::Placement placement =
        options_.placement.empty()
            ? pipeline::LoopedPlacement(options_.mesh.pp(),
                                        options_.virtual_stages)
            : options_.placement;
    const int stages = static_cast<int>(placement.size());
    if (!options_.cuts.empty() || stages == 1) return absl::OkStatus();
    if (costs_ != nullptr) return CutByCosts(placement);
    TROUPE_ASSIGN_OR_RETURN(options_.cuts, Balanced(stages));
    return absl::OkStatus();
  }

  absl::Status CutByCosts(const pipeline::Placement& placement) {
    pipeline::CutOptions cut;
    cut.placement = placement;
    cut.micro_batches = options_.MicroBatches();
    if (config_.pipeline.memory_limit > 0) {
      cut.memory_limit = static_cast<double>(config_.pipeline.memory_limit);
    }
    pipeline::Tables tables;
    for (int pp = 0; pp < options_.mesh.pp(); ++pp) {
      tables.push_back(options_.schedule(options_.mesh, pp, cut.micro_batches));
    }
    cut.under_way = pipeline::MostUnderWay(tables, placement);
    absl::StatusOr<pipeline::FoundCuts> found =
        pipeline::FindCuts(*costs_, cut);
    if (!found.ok()) {
      return ErrorAt(loaded_,
                     {"mesh.memory_limit", "mesh.pp", "mesh.virtual_stages"},
                     found.status().message());
    }
    options_.cuts = std::move(found->cuts);
    return absl::OkStatus();
  }

  absl::Status SetGrid() {
    const std::string key = "mesh.schedule_file";
    absl::StatusOr<pipeline::Tables> tables =
        pipeline::ParseGrid(config_.pipeline.grid);
    if (tables.ok()) {
      const absl::Status set =
          pipeline::SetTables(*std::move(tables), options_);
      if (set.ok()) return set;
      tables = set;
    }
    return ErrorAt(loaded_, {key},
                   absl::StrCat(config_.pipeline.schedule_file, ": ",
                                tables.status().message()));
  }

  // Returns those of `chunks` for which the model has enough layers, and the
  // configuration as many cuts.
  //   kInvalidArgument: there is none.
  absl::StatusOr<std::vector<int>> FittingChunks(
      const std::vector<int>& chunks) const {
    std::vector<int> fitting;
    absl::Status first;
    for (const int each : chunks) {
      const int stages = options_.mesh.pp() * each;
      const std::size_t cuts = options_.cuts.size();
      if (cuts > 0 && static_cast<int>(cuts) + 1 != stages) continue;
      const absl::Status status = CutsFor(stages).status();
      first.Update(status);
      if (status.ok()) fitting.push_back(each);
    }
    if (!fitting.empty()) return fitting;
    if (!first.ok()) return first;
    return ErrorAt(loaded_, {"mesh.cuts", "mesh.pp"},
                   absl::StrCat("mesh.pp = ", options_.mesh.pp(),
                                " stages need ", options_.mesh.pp() - 1,
                                " cuts, mesh.cuts has ", options_.cuts.size(),
                                "; give as many, or remove mesh.cuts"));
  }

  // Searches for a schedule. The result has its own cuts, unless the
  // configuration sets them.
  absl::Status Search() {
    pipeline::ScheduleSearchOptions search;
    search.pp = options_.mesh.pp();
    search.micro_batches = options_.MicroBatches();
    search.chunks = {options_.virtual_stages};
    if (!loaded_.IsSet("mesh.virtual_stages")) {
      TROUPE_ASSIGN_OR_RETURN(search.chunks, FittingChunks({1, 2}));
    }
    if (config_.pipeline.activation_limit > 0) {
      search.memory_limit =
          static_cast<double>(config_.pipeline.activation_limit);
    }
    if (costs_ != nullptr && config_.pipeline.memory_limit > 0) {
      search.total_limit = static_cast<double>(config_.pipeline.memory_limit);
    }
    absl::Status failed = absl::OkStatus();
    search.costs_of = [&](int stages) {
      absl::StatusOr<pipeline::StepCosts> costs = CostsOf(stages);
      failed.Update(costs.status());
      if (costs.ok()) return *std::move(costs);
      pipeline::StepCosts none;
      none.stages.resize(stages);
      return none;
    };
    absl::StatusOr<pipeline::FoundSchedule> found =
        pipeline::SearchSchedule(search);
    TROUPE_RETURN_IF_ERROR(failed);
    if (!found.ok()) {
      return ErrorAt(
          loaded_,
          {"mesh.activation_limit", "mesh.memory_limit", "mesh.schedule"},
          found.status().message());
    }
    options_.placement = std::move(found->placement);
    if (costs_ != nullptr) {
      // The search assumed balanced stages for any placement.
      TROUPE_ASSIGN_OR_RETURN(
          options_.cuts, CutsFor(static_cast<int>(options_.placement.size())));
    }
    return pipeline::SetTables(std::move(found->tables), options_);
  }

  // Returns the cuts of the configuration, or cuts that balance the stages.
  absl::StatusOr<std::vector<pipeline::Cut>> CutsFor(int stages) const {
    if (!options_.cuts.empty()) return options_.cuts;
    if (costs_ == nullptr) return Balanced(stages);
    pipeline::CutOptions cut;
    cut.placement = pipeline::LoopedPlacement(stages, /*chunks=*/1);
    cut.micro_batches = options_.MicroBatches();
    TROUPE_ASSIGN_OR_RETURN(pipeline::FoundCuts found,
                            pipeline::FindCuts(*costs_, cut));
    return std::move(found.cuts);
  }

  absl::StatusOr<pipeline::StepCosts> CostsOf(int stages) const {
    TROUPE_ASSIGN_OR_RETURN(const std::vector<pipeline::Cut> cuts,
                            CutsFor(stages));
    const nn::ModelFactory model = [this] { return Model(); };
    TROUPE_ASSIGN_OR_RETURN(const std::vector<std::string> begins,
                            pipeline::ResolveCuts(model, cuts));
    if (costs_ != nullptr) return pipeline::CostsOfStages(*costs_, begins);
    return pipeline::EstimateCosts(
        model, begins, Input(), config_.job.device,
        pipeline::PlacesOf(options_.mesh, 0, options_.sequence_parallel,
                           options_.depth_blocks));
  }

  const LoadedConfig& loaded_;
  const TrainerConfig& config_;
  const data::SampleSpec& sample_;
  const pipeline::ModelCosts* const costs_;
  PlanOptions options_;
};

}  // namespace

absl::Span<const ConfigKey> MeshKeys() { return kMeshKeys; }

std::vector<std::string> ScheduleChoices() {
  std::vector<std::string> choices = pipeline::ScheduleNames();
  choices.insert(choices.begin(), kAutoSchedule);
  choices.push_back(kSearchSchedule);
  return choices;
}

std::string ScheduleName(const TrainerConfig& config) {
  const PlanOptions& plan = config.job.plan;
  const int chunks = plan.virtual_stages;
  if (plan.mesh.pp() == 1 && chunks == 1) return "";
  const std::string& name = config.pipeline.schedule;
  if (name != kAutoSchedule) return name;
  return chunks > 1 ? "interleaved_1f1b" : "1f1b";
}

absl::Status ReadGrid(base::FileSystem& files, LoadedConfig& loaded) {
  PipelineConfig& config = loaded.config.pipeline;
  if (config.schedule_file.empty()) return absl::OkStatus();
  absl::StatusOr<std::string> grid =
      files.ReadToEnd(config.schedule_file, kGridBytesMax);
  if (!grid.ok()) {
    return base::WithMessage(
        grid.status(), absl::StrCat(loaded.Where("mesh.schedule_file"), ": ",
                                    grid.status().message()));
  }
  config.grid = *std::move(grid);
  return absl::OkStatus();
}

absl::StatusOr<PlanOptions> PipelineOptions(const LoadedConfig& loaded,
                                            const data::SampleSpec& sample) {
  return Builder(loaded, sample, /*costs=*/nullptr).Build();
}

bool IsPipelineOpen(const TrainerConfig& config) {
  const PlanOptions& plan = config.job.plan;
  const bool is_pipeline = plan.mesh.pp() > 1 || plan.virtual_stages > 1;
  const bool is_open = plan.cuts.empty() || ScheduleName(config) == kSearch;
  return is_pipeline && is_open && config.pipeline.balance == kMeasured;
}

actors::OpenPipeline OpenPipelineOf(const LoadedConfig& loaded,
                                    const data::SampleSpec& sample) {
  actors::OpenPipeline open;
  open.chooses_schedule = loaded.config.pipeline.schedule_file.empty() &&
                          ScheduleName(loaded.config) == kSearch;
  open.set = [loaded, sample](const pipeline::ModelCosts& costs,
                              PlanOptions& plan) -> absl::Status {
    TROUPE_ASSIGN_OR_RETURN(PlanOptions found,
                            Builder(loaded, sample, &costs).Build());
    plan.cuts = std::move(found.cuts);
    plan.placement = std::move(found.placement);
    plan.schedule = std::move(found.schedule);
    return absl::OkStatus();
  };
  return open;
}

}  // namespace troupe::tools
