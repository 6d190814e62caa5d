// Mistakes of users in programs of their own. compile_errors.bzl compiles this
// file, which must fail, and mistakes_test.py compares the errors with the
// comments here.

#include <memory>

#include "nn/models/models.h"
#include "troupe/troupe.h"

namespace troupe {

struct Toy : nn::Net {
  nn::Linear& fc = Add<nn::Linear>("fc", 10, 5);
  Var Forward(Var x) override { return fc(x); }
};

struct WithoutForward : nn::Net {};

void Run(Rank& rank);
void TakesACopy(Rank rank);
void TakesMore(Rank& rank, int epochs);

// Says: a program is a function of a rank: void Run(troupe::Rank& rank);
void ARankByValue() { ExitCode(Spawn(TakesACopy, 2)); }

// Says: a program is a function of a rank: void Run(troupe::Rank& rank);
void AFunctionWithAnArgument() { ExitCode(Spawn(TakesMore, 2)); }

// Says: and comes before the number of ranks: Spawn(Run, /*ranks=*/2)
void TheRanksFirst() { ExitCode(Spawn(2, Run)); }

// Says: auto model = rank.Make<MyNet>(); DDP ddp(model);
void AModule() {
  Toy toy;
  DDP ddp(toy);
}

// Says: auto model = rank.Make<MyNet>(); DDP ddp(model); Sgd sgd(ddp,
// {/*lr=*/0.1});
void Parameters(Model<Toy>& model) { Sgd sgd(model.Parameters(), {0.1}); }

// Says: auto model = rank.Make<MyNet>();
void AnOptimizerOfAModule() {
  auto toy = std::make_unique<Toy>();
  Adam adam(toy, {});
}

// Says: no known conversion for argument 2 from 'double' to 'const
// troupe::nn::SgdOptions&'
void ALearningRate(Model<Toy>& model) { Sgd sgd(model, 0.1); }

// Says: rank.Place(nn::MakeLeNet({28, 28, 1}, 10, {}).value());
void AStatusOr(Rank& rank) {
  auto model = rank.Place(nn::MakeLeNet({28, 28, 1}, 10, {}));
  DDP ddp(model);
}

// Says: rank.Place(std::make_unique<MyNet>());
void AnObject(Rank& rank) { rank.Place(Toy()); }

// Says: 'virtual troupe::nn::Var troupe::nn::Net::Forward(troupe::nn::Var)'
void ANetWithoutForward(Rank& rank) { rank.Make<WithoutForward>(); }

// Says: candidate expects 0 arguments, 1 provided
void AnArgumentTooMany(Rank& rank) { rank.Make<Toy>(10); }

// Says: the rank comes first: DataLoader loader(rank, dataset,
// {/*batch_size=*/16});
void ALoaderWithoutARank(data::DatasetPtr dataset) {
  DataLoader loader(dataset, {16});
}

// Says: ReduceOp op = ReduceOp::kSum
void ANameOfAnOperation(Var& x) { AllReduce(x, "sum"); }

// Says: cannot convert 'int' to 'const troupe::nn::Shape&'
void ExtentsWithoutBraces(Rank& rank) { rank.Zeros(20, 10); }

// Says: View() takes the extents in braces: x.View({-1, 784})
void AViewWithoutBraces(Var& x) { x.View(-1, 784); }

// Says: View() takes the extents in braces: x.View({-1, 784})
void AViewOfOneExtent(Var& x) { x.View(-1); }

// Says: Permute() takes the axes in braces: x.Permute({0, 2, 1})
void APermutationWithoutBraces(Var& x) { x.Permute(0, 2, 1); }

// Says: did you mean 'Backward'?
void ThePythonName(Var& loss) { loss.backward(); }

// Says: use of deleted function
// 'troupe::DistributedDataParallel::Unsynced::Unsynced(
void ACopyOfAGuard(DDP& ddp) {
  auto unsynced = ddp.NoSync();
  auto copy = unsynced;
}

}  // namespace troupe
