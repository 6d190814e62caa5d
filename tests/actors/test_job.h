// Jobs and observers for the tests of this folder.

#ifndef TESTS_ACTORS_TEST_JOB_H_
#define TESTS_ACTORS_TEST_JOB_H_

#include <memory>
#include <string>
#include <vector>

#include "actors/job.h"
#include "nn/modules/module.h"
#include "nn/tensor/dtype.h"

namespace troupe::actors {

// Returns LeNet on random 28x28 images in 10 classes, with momentum 0.9 and
// global batches of 32.
JobSpec TinyCnnJob(int dp, std::int64_t steps);

// Returns the same with global batches of 4 and buckets of 20 kB, in one or two
// stages.
JobSpec TinyCnnPipeline(int dp, int pp, std::int64_t steps);

// Returns a model with dropout for the samples of TinyCnnJob().
std::unique_ptr<nn::Module> MakeDropoutMlp();

// Sets the dtype of the model's parameters, its activations and the inputs.
void UseDType(nn::DType dtype, JobSpec& spec);

// An observer that keeps every report.
class Reports : public JobObserver {
 public:
  void OnStart(const JobInfo& info) override { this->info = info; }
  void OnSteps(absl::Span<const StepReport> reports) override {
    steps.insert(steps.end(), reports.begin(), reports.end());
  }
  void OnEvaluation(const EvaluationReport& report) override {
    evaluations.push_back(report);
  }
  void OnCheckpoint(std::int64_t, const std::string& path) override {
    checkpoints.push_back(path);
  }

  // Returns the losses of all steps.
  std::vector<double> losses() const;

  JobInfo info;
  std::vector<StepReport> steps;
  std::vector<EvaluationReport> evaluations;
  std::vector<std::string> checkpoints;
};

// Runs the job, expects it to succeed, and returns its reports.
Reports ReportsOf(const JobSpec& spec);

// Makes an empty folder in the test's own.
std::string FreshFolder(const std::string& name);

// Returns the bytes of a file; fails the test if it cannot be read.
std::string FileBytes(const std::string& path);

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_TEST_JOB_H_
