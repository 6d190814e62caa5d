#include "actors/sim/preemption_points.h"

#include <string>
#include <utility>

#include "base/files/intercepted_file_system.h"

namespace troupe::actors {
namespace {

class PreemptedDataset : public data::Dataset {
 public:
  PreemptedDataset(SeededScheduler& scheduler, data::DatasetPtr inner)
      : Dataset(inner->size(), inner->spec()),
        scheduler_(scheduler),
        inner_(std::move(inner)) {}

 private:
  absl::Status Gather(absl::Span<const std::int64_t> indices,
                      std::int64_t epoch, const nn::Tensor& inputs,
                      const nn::Tensor& targets) const override {
    scheduler_.Preempt();
    return inner_->Fill(indices, epoch, inputs, targets);
  }

  SeededScheduler& scheduler_;
  const data::DatasetPtr inner_;
};

class PreemptedFileSystem : public base::InterceptedFileSystem {
 public:
  PreemptedFileSystem(SeededScheduler& scheduler, base::FileSystem& inner)
      : InterceptedFileSystem(inner), scheduler_(scheduler) {}

 private:
  absl::Status BeforeChange(const char*, const std::string&) override {
    scheduler_.Preempt();
    return absl::OkStatus();
  }
  absl::Status BeforeRead(const std::string&) override {
    scheduler_.Preempt();
    return absl::OkStatus();
  }

  SeededScheduler& scheduler_;
};

class PreemptedObserver : public JobObserver {
 public:
  PreemptedObserver(SeededScheduler& scheduler, JobObserver& inner)
      : scheduler_(scheduler), inner_(inner) {}

  void OnStart(const JobInfo& info) override { inner_.OnStart(info); }
  void OnSteps(absl::Span<const StepReport> steps) override {
    scheduler_.Preempt();
    inner_.OnSteps(steps);
  }
  void OnEvaluation(const EvaluationReport& evaluation) override {
    scheduler_.Preempt();
    inner_.OnEvaluation(evaluation);
  }
  void OnCheckpoint(std::int64_t step, const std::string& path) override {
    scheduler_.Preempt();
    inner_.OnCheckpoint(step, path);
  }

 private:
  SeededScheduler& scheduler_;
  JobObserver& inner_;
};

}  // namespace

data::DatasetPtr PreemptionPoints::In(const data::DatasetPtr& dataset) {
  if (dataset == nullptr) return nullptr;
  return std::make_shared<PreemptedDataset>(scheduler_, dataset);
}

base::FileSystem* PreemptionPoints::In(base::FileSystem* files) {
  if (files == nullptr) return nullptr;
  files_ = std::make_unique<PreemptedFileSystem>(scheduler_, *files);
  return files_.get();
}

JobObserver* PreemptionPoints::In(JobObserver* observer) {
  if (observer == nullptr) return nullptr;
  observer_ = std::make_unique<PreemptedObserver>(scheduler_, *observer);
  return observer_.get();
}

}  // namespace troupe::actors
