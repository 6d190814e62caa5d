// Jobs of two processes give the bits of the same jobs in one process, which
// tests/golden/job_bits.txt remembers: losses, checkpoints, reports and plans.
// job_bits_test writes that file; this test only reads it.

#include <fstream>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "actors/job.h"
#include "gtest/gtest.h"
#include "tests/actors/cluster/cluster_run.h"
#include "tests/actors/jobs/bits/bit_cases.h"
#include "tests/actors/jobs/bits/golden_lines.h"
#include "tests/actors/jobs/bits/job_bits.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

constexpr char kGolden[] = "tests/golden/job_bits.txt";

struct Carrier {
  std::string name;  // its name in JobInfo::transports
  Transport transport;
  bool encrypts = false;
};

void PrintTo(const Carrier& carrier, std::ostream* out) {
  *out << carrier.name;
}

// Writes the bits of a job to a file at every report, since a process of
// ChildProcesses exits as soon as its job has ended.
class BitsWriter : public Reports {
 public:
  explicit BitsWriter(std::string path) : path_(std::move(path)) {}
  const std::string& path() const { return path_; }
  void OnSteps(absl::Span<const StepReport> reports) override {
    Reports::OnSteps(reports);
    Write();
  }
  void OnEvaluation(const EvaluationReport& report) override {
    Reports::OnEvaluation(report);
    Write();
  }
  void OnCheckpoint(std::int64_t step, const std::string& path) override {
    Reports::OnCheckpoint(step, path);
    Write();
  }

 private:
  void Write() const {
    const JobBits bits = BitsOf(*this);
    std::ofstream(path_) << bits.numbers << "\n"
                         << bits.reports << "\n"
                         << bits.plan << "\n"
                         << info.transports << "\n";
  }

  const std::string path_;
};

class ProcessJobBitsTest : public testing::TestWithParam<Carrier> {
 protected:
  // Runs the case in two processes, each with half of the ranks.
  void ExpectTheGoldenBits(const std::string& line) {
    SCOPED_TRACE(line);
    const BitCase& one = BitCaseOf(line);
    JobSpec spec = one.spec;
    spec.checkpoint.dir = FreshFolder("checkpoints");
    BitsWriter writer(absl::StrCat(FreshFolder("bits"), "/bits"));
    ClusterRun run;
    run.ranks = {spec.plan.mesh.size() / 2, spec.plan.mesh.size() / 2};
    run.transport = GetParam().transport;
    run.edit = [](int, JobSpec& mine) {
      mine.cluster->encrypt_data = GetParam().encrypts;
    };
    run.observer = [&](int process) {
      return process == 0 ? &writer : nullptr;
    };
    ChildProcesses children(spec, run);
    for (const int process : {0, 1}) {
      const absl::Status status = children.Wait(process);
      ASSERT_TRUE(status.ok()) << process << ": " << status;
    }
    const std::vector<std::string> lines =
        absl::StrSplit(FileBytes(writer.path()), '\n');
    ASSERT_EQ(lines.size(), 5u);
    ExpectGoldenLine(kGolden, one.line(), lines[0]);
    ExpectGoldenLine(kGolden, one.reports_line(), lines[1]);
    ExpectGoldenLine(kGolden, one.plan_line(), lines[2]);
    EXPECT_EQ(lines[3], absl::StrCat(GetParam().name, " (1 link)"));
  }
};

TEST_P(ProcessJobBitsTest, OfReplicas) {
  ExpectTheGoldenBits("lenet dp=2 plain");
  ExpectTheGoldenBits("lenet dp=2 cross-step plain");
  ExpectTheGoldenBits("lenet dp=2 f16 plain");
}

TEST_P(ProcessJobBitsTest, OfStages) {
  ExpectTheGoldenBits("gpt pp=2 1f1b plain");
  ExpectTheGoldenBits("unet pp=2 plain");
  ExpectTheGoldenBits("vit pp=2 clipped plain");
}

TEST_P(ProcessJobBitsTest, OfReplicasOfStages) {
  ExpectTheGoldenBits("gpt dp=2 pp=2 zb_v plain");
  ExpectTheGoldenBits("resnet18 dp=2 pp=2 plain");
}

// Each process has the two pieces of one replica.
TEST_P(ProcessJobBitsTest, OfSlicesOfPieces) {
  ExpectTheGoldenBits("gpt dp=2 tp=2 zero=2 plain");
  ExpectTheGoldenBits("gpt dp=2 tp=2 zero=3 plain");
}

TEST_P(ProcessJobBitsTest, OfLayersThatCommunicate) {
  ExpectTheGoldenBits("resnet18 synchronised dp=2 plain");
}

INSTANTIATE_TEST_SUITE_P(By, ProcessJobBitsTest,
                         testing::Values(Carrier{"shm", Transport::kShm},
                                         Carrier{"tcp", Transport::kTcp},
                                         Carrier{"tls", Transport::kTcp,
                                                 /*encrypts=*/true}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace troupe::actors
