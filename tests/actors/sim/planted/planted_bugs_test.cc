// Tests bugs that are planted into the step engine, the cursor, the reducer,
// the communication strand and the communicator: each must be found by a
// simulated job within a thousand seeds, by a check that names the fault.
// docs/simulation.md has the table.

#include <cstdint>
#include <memory>
#include <string>

#include "actors/hooks/gathered_reduction.h"
#include "actors/sim/simulation.h"
#include "data/subset.h"
#include "gtest/gtest.h"
#include "nn/models/gpt2.h"
#include "nn/modules/batch_norm.h"
#include "nn/modules/linear.h"
#include "nn/modules/sequential.h"
#include "nn/ops/loss.h"
#include "nn/optim/layerwise.h"
#include "nn/optim/sgd.h"
#include "tests/actors/sim/deep_models.h"
#include "tests/actors/sim/lost_work.h"
#include "tests/actors/sim/planted/bug.h"
#include "tests/actors/sim/planted/hunt.h"
#include "tests/actors/sim/simulated_run.h"
#include "tests/actors/sim/small_job.h"

namespace troupe::actors {
namespace {

JobSpec Launched() { return SmallJob({/*ranks=*/3, Numbers::kFloat, 3}); }

// Returns a job that reduces in two rounds.
JobSpec Gathered() {
  JobSpec spec = Launched();
  spec.hook = GatherIn(nn::DType::kBF16);
  return spec;
}

// Returns a job whose buckets have several chunks each.
JobSpec Wide() {
  SmallJobOptions options;
  options.ranks = 3;
  options.width = 48;
  JobSpec spec = SmallJob(options);
  spec.plan.buckets.bucket_bytes = 10'000;
  return spec;
}

JobSpec WideInline() {
  JobSpec spec = Wide();
  spec.plan.inline_bytes = 1 << 30;
  return spec;
}

// Returns a job with a bucket for each layer.
JobSpec Exact() { return SmallJob({/*ranks=*/3, Numbers::kExact, 2}); }

JobSpec Stages() {
  JobSpec spec = SmallJob({/*ranks=*/1, Numbers::kFloat, 3});
  spec.plan.mesh = pipeline::Mesh(/*dp=*/2, /*pp=*/3);
  spec.plan.cuts = {2, 4};
  spec.test = spec.train;
  spec.eval_every = 1;
  return spec;
}

JobSpec Evaluating() {
  JobSpec spec = Launched();
  spec.test = spec.train;
  spec.eval_every = 1;
  return spec;
}

JobSpec With(const nn::SgdOptions& sgd, JobSpec spec) {
  spec.optimizer = sgd;
  return spec;
}

// Returns a job whose updates inspect all gradients first.
JobSpec SkippingSteps() {
  nn::SgdOptions sgd;
  sgd.common.skip_nonfinite = true;
  return With(sgd, Launched());
}

// Returns a job whose replicas each have slices of the optimizer's states.
JobSpec Owners() {
  SmallJobOptions options;
  options.ranks = 3;
  options.steps = 3;
  options.momentum = 0.9;
  JobSpec spec = SmallJob(options);
  spec.plan.zero_stage = 1;
  return spec;
}

// Returns the same job, whose replicas also have slices of the gradients, and
// add up those of each micro-batch.
JobSpec OwnersOfGradients() {
  JobSpec spec = Owners();
  spec.plan.zero_stage = 2;
  return spec;
}

// Returns the same job as a pipeline, with more micro-batches: the last one may
// have its forward before or after the end of an earlier one's reduction.
JobSpec OwnersInStages() {
  JobSpec spec = OwnersOfGradients();
  spec.plan.mesh = pipeline::Mesh(/*dp=*/3, /*pp=*/2);
  spec.plan.cuts = {2};
  spec.plan.micro_batch_size = 2;
  return spec;
}

// Returns a job whose replicas gather the values of buckets before each use,
// and of which the first one alone has a sample to evaluate.
JobSpec OwnersOfValues() {
  JobSpec spec = Owners();
  spec.plan.zero_stage = 3;
  spec.plan.zero_ahead_bytes = 0;
  spec.plan.micro_batch_size = 0;
  spec.test = *data::MakeSubset(spec.train, 0, /*end=*/1);
  spec.eval_every = 1;
  return spec;
}

// Returns a job of owners with a limit on the norm of the gradients.
JobSpec OwnersThatClip() {
  nn::SgdOptions sgd;
  sgd.lr = 0.05;
  sgd.common.clip_grad_norm = 0.01;
  return With(sgd, Owners());
}

// Returns a job of owners whose updates need the norms of whole parameters.
JobSpec OwnersWithNorms() {
  JobSpec spec = Owners();
  nn::LambOptions lamb;
  lamb.lr = 0.1;
  spec.optimizer = lamb;
  return spec;
}

// Returns a job whose ranks along tp have pieces, and that limits the norm of
// the gradients.
JobSpec PiecesThatClip() {
  SmallJobOptions options;
  options.steps = 3;
  options.width = 8;
  options.pieces = true;
  JobSpec spec = SmallJob(options);
  spec.plan.mesh = pipeline::Mesh(/*dp=*/2, /*pp=*/1, /*tp=*/2);
  spec.optimizer = OwnersThatClip().optimizer;
  return spec;
}

// Returns the same job, whose replicas have slices of the pieces.
JobSpec SlicesThatClip() {
  JobSpec spec = PiecesThatClip();
  spec.plan.zero_stage = 1;
  return spec;
}

// Returns the same job, whose updates need the norms of whole parameters. A
// factor that two of them share would change nothing without the third number.
JobSpec PiecesWithNorms() {
  JobSpec spec = PiecesThatClip();
  nn::LarsOptions lars;
  lars.lr = 0.5;
  lars.trust_coefficient = 0.5;
  lars.eps = 0.05;
  spec.optimizer = lars;
  return spec;
}

// Returns the difference of a job of slices of pieces that was stopped and
// resumed from one that was not.
std::string ResumedWithOtherBits(std::uint64_t seed, bool in_place) {
  JobSpec spec = SlicesThatClip();
  const SimulatedRun straight = Simulate(spec, std::uint64_t{0});
  spec.checkpoint.every = 1;
  spec.checkpoint.in_place = in_place;
  const ResumedRun run = StopAndResume(spec, "pieces", seed);
  if (!run.status().ok()) return run.status().ToString();
  // It may have been stopped behind its last step.
  return run.second.reports.steps.empty() ? ""
                                          : Difference(run.second, straight);
}

std::string ResumedFromGathered(std::uint64_t seed) {
  return ResumedWithOtherBits(seed, /*in_place=*/false);
}
std::string ResumedFromInPlace(std::uint64_t seed) {
  return ResumedWithOtherBits(seed, /*in_place=*/true);
}

// Returns the same job with a checkpoint, which four ranks write in place.
JobSpec SavingSlices() {
  JobSpec spec = SlicesThatClip();
  spec.checkpoint.dir = FreshFolder("slices");
  return spec;
}

// Returns a job of a GPT whose ranks along tp have pieces of the vocabulary, of
// which the last is padded.
JobSpec SplitVocabulary() {
  JobSpec spec = SmallGpt().Job(pipeline::Mesh(/*dp=*/1, /*pp=*/1, /*tp=*/2),
                                /*micro_batches=*/2);
  spec.model = [] {
    nn::Gpt2Options options;
    options.layers = 1;
    options.heads = 2;
    options.width = 8;
    options.context = 4;
    options.vocab_size = 7;
    return *nn::MakeGpt2(options);
  };
  nn::ops::CrossEntropyOptions options;
  options.label_smoothing = 0.1;
  spec.loss = nn::ops::CrossEntropyLoss(options);
  return spec;
}

// Returns the same job, whose ranks along tp share tokens.
JobSpec SharedTokens() {
  JobSpec spec = SplitVocabulary();
  spec.plan.sequence_parallel = true;
  return spec;
}

// Returns a job of overlapping steps, with a bucket for each parameter, and
// with momentum, so that steps differ.
JobSpec Across() {
  SmallJobOptions options;
  options.ranks = 3;
  options.steps = 3;
  options.momentum = 0.9;
  JobSpec spec = SmallJob(options);
  spec.plan.buckets.bucket_bytes = 1;
  spec.plan.cross_step = true;
  return spec;
}

// Returns the same job with another learning rate in each step.
JobSpec AcrossWithSchedule() {
  nn::SgdOptions sgd;
  sgd.lr = 0.05;
  sgd.common.schedule.kind = nn::LrSchedule::Kind::kExponential;
  sgd.common.schedule.gamma = 0.5;
  return With(sgd, Across());
}

// Returns the same job with owners of slices, who gather beside the next step.
JobSpec AcrossWithOwners() {
  JobSpec spec = Across();
  spec.plan.zero_stage = 1;
  return spec;
}

// Returns a job with a checkpoint at its end.
JobSpec Saving() {
  JobSpec spec = Launched();
  spec.checkpoint.dir = FreshFolder("saving");
  return spec;
}

// Returns a job that evaluates with batch norms, whose replicas have running
// statistics of their own until they share them.
JobSpec Normed() {
  JobSpec spec = Evaluating();
  spec.model = []() -> std::unique_ptr<nn::Module> {
    auto model = std::make_unique<nn::Sequential>();
    model->Append<nn::Linear>(4, 6);
    model->Append<nn::BatchNorm1d>(6);
    model->Append<nn::Linear>(6, 2);
    return model;
  };
  return spec;
}

struct Case {
  Bug bug;
  const char* name;
  JobSpec (*job)();
  // Part of the fault that the check reports.
  const char* found;
  // Returns the fault of a job of its own; null: `job` is compared with itself.
  std::string (*fault)(std::uint64_t seed) = nullptr;
};

#define TROUPE_CASE(bug, job, found) \
  { Bug::k##bug, #bug, job, found }

constexpr Case kCases[] = {
    TROUPE_CASE(EarlyTransferIsLost, Stages, "no progress for 1m"),
    TROUPE_CASE(TransferOfAnotherStepIsTaken, Stages, "a second time"),
    TROUPE_CASE(AnotherBucketIsReduced, Launched,
                "updated before its reduction was there"),
    TROUPE_CASE(BucketIsReleasedWhenReady, Exact, "the runs differ after"),
    TROUPE_CASE(MicroBatchWithoutLoss, Launched, "the runs differ after"),
    TROUPE_CASE(FirstRoundIsTheLast, Gathered,
                "updated before its reduction was there"),
    TROUPE_CASE(SumIsNotTaken, Gathered, "differ after step 1"),
    TROUPE_CASE(SlicesAreNotGathered, Owners, "differ after"),
    TROUPE_CASE(FindingsOfOneSlice, OwnersThatClip, "differ after"),
    TROUPE_CASE(NormsOfOneSlice, OwnersWithNorms, "differ after"),
    TROUPE_CASE(LastMicroBatchAlone, OwnersOfGradients, "differ after step 1"),
    TROUPE_CASE(UseComesBeforeItsGather, OwnersOfValues, "0 is nan"),
    TROUPE_CASE(ReleasedAtTheFirstUse, OwnersOfValues, "0 is nan"),
    TROUPE_CASE(ValuesOfTheFirstOwner, OwnersOfValues, "0 is nan"),
    TROUPE_CASE(EvaluationsDifferInLength, OwnersOfValues,
                "no progress for 1m"),
    TROUPE_CASE(CopiesCountForEachPiece, PiecesThatClip, "differ after"),
    TROUPE_CASE(FindingsOfOnePiece, PiecesThatClip, "differ after"),
    TROUPE_CASE(LossOfAllCopies, PiecesThatClip, "differ after"),
    TROUPE_CASE(SlicesOfCopiesCountForEachPiece, SlicesThatClip,
                "differ after"),
    TROUPE_CASE(NormsOfOnePiece, PiecesWithNorms, "differ after"),
    TROUPE_CASE(NormsOfCopiesCountForEachPiece, PiecesWithNorms,
                "differ after"),
    TROUPE_CASE(NormsOfEachReplicaCount, PiecesWithNorms, "differ after"),
    {Bug::kFirstPieceIsSavedForAll, "FirstPieceIsSavedForAll", nullptr,
     "the runs differ after step", ResumedFromGathered},
    {Bug::kPieceIsWrittenAtItsOwnPlace, "PieceIsWrittenAtItsOwnPlace", nullptr,
     "are not those that were written", ResumedFromInPlace},
    TROUPE_CASE(PublishedBeforeAllHaveWritten, SavingSlices,
                "has been written by 3 of its 4 writers"),
    TROUPE_CASE(PartsOfGradientsStayParts, SharedTokens,
                "ranks 1 and 0 differ after step 1 in"),
    TROUPE_CASE(SmoothingByLocalClasses, SplitVocabulary, "differ after"),
    TROUPE_CASE(LogitsCountForEachPiece, SplitVocabulary, "differ after"),
    TROUPE_CASE(PaddingIsCounted, SplitVocabulary, "differ after"),
    TROUPE_CASE(ForwardDoesNotWait, Across, "differ after"),
    TROUPE_CASE(ForwardWaitsForNoGather, AcrossWithOwners, "differ after"),
    TROUPE_CASE(TailTakesTheNextScalars, AcrossWithSchedule, "differ after"),
    TROUPE_CASE(ReductionsCountedOverSteps, SkippingSteps,
                "no progress for 1m"),
    TROUPE_CASE(LossOvertakesRounds, OwnersInStages, " launched ["),
    TROUPE_CASE(OneNeedIsEnough, Launched,
                "updated before its reduction was there"),
    TROUPE_CASE(InlineIsLaunched, WideInline, "no progress for 1m"),
    TROUPE_CASE(LossOfOneRank, Launched, "ranks 2 and 0 differ after"),
    TROUPE_CASE(GroupsMixedUp, Stages, "of the group differs"),
    TROUPE_CASE(DoesNotDriveOn, Wide, "no progress for 1m"),
    TROUPE_CASE(ToldWhenStarted, Launched, "differ after"),
    TROUPE_CASE(DoneBeforeTheLastBlock, Wide, "differ after"),
    TROUPE_CASE(LastElementIsNotReduced, Wide, "differ after"),
    TROUPE_CASE(SumInOrderOfWhoIsFirst, Launched, "the loss of step"),
    TROUPE_CASE(OwnReplicaOnly, WideInline, "differ after step 1"),
    TROUPE_CASE(NeverIdle, Wide, "no progress for 1m"),
    TROUPE_CASE(LooksOnce, Wide, "no progress for 1m"),
    TROUPE_CASE(FastestRankCounts, Launched, "not updated exactly once"),
    TROUPE_CASE(OneEvaluationIsMissing, Evaluating, "no progress for 1m"),
    {Bug::kFailureEndsTheCheckpoint, "FailureEndsTheCheckpoint", nullptr,
     "the checkpoint of step 2 is", LostByAFailingStep},
    TROUPE_CASE(ReplicaMissesAnUpdate, Saving,
                "rank 1 has other parameters or optimizer states than"),
    TROUPE_CASE(ReplicaKeepsItsBuffers, Normed, "the evaluation after step 1"),
};

SimulatedRun RunCase(const Case& c, std::uint64_t seed) {
  SimulationOptions options;
  options.seed = seed;
  return Simulate(c.job(), options);
}

class PlantedBugsTest : public testing::TestWithParam<Case> {};

TEST_P(PlantedBugsTest, IsFound) {
  const Case& c = GetParam();
  if (c.fault != nullptr) {
    ASSERT_EQ(c.fault(0), "");
    ExpectFound(c.bug, c.name, c.found, c.fault);
    return;
  }
  const SimulatedRun sound = RunCase(c, 0);
  ASSERT_EQ(sound.check, absl::OkStatus());
  ASSERT_EQ(Difference(RunCase(c, 1), sound), "");
  ExpectFound(c.bug, c.name, c.found, [&](std::uint64_t seed) {
    return Difference(RunCase(c, seed), sound);
  });
}

INSTANTIATE_TEST_SUITE_P(Bugs, PlantedBugsTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

TEST(PlantedBugsTest, EveryBugHasACase) { ExpectACaseForEach<Bug>(kCases); }

}  // namespace
}  // namespace troupe::actors
