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

// LeNet on random 28x28 images in 10 classes: 2 ranks of 16, momentum 0.9.
JobSpec TinyCnnJob(int dp, std::int64_t steps);

// A model for the samples of TinyCnnJob() in which a layer draws.
std::unique_ptr<nn::Module> MakeDropoutMlp();

// Gives the model's parameters, its activations and the inputs this dtype.
void UseDType(nn::DType dtype, JobSpec& spec);

// Keeps every report.
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

  // The losses of all steps, to be compared bit for bit.
  std::vector<double> losses() const;

  JobInfo info;
  std::vector<StepReport> steps;
  std::vector<EvaluationReport> evaluations;
  std::vector<std::string> checkpoints;
};

// What a job reports that must end well.
Reports ReportsOf(const JobSpec& spec);

// A fresh folder below the test's own.
std::string FreshFolder(const std::string& name);

// The bytes of a file; fails the test when it cannot be read.
std::string FileBytes(const std::string& path);

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_TEST_JOB_H_
