// DataParallel: a model whose batches are divided among the devices of one
// rank, as with torch.nn.DataParallel. The program is that of one device.
//
//   DataParallel model(rank, [] { return std::make_unique<Toy>(); });
//   Sgd sgd(model, {/*lr=*/0.1});
//   for (auto [x, y] : loader) {                // 30 samples on 4 devices:
//     sgd.ZeroGrad();
//     Var output = model(x);                    // 8, 8, 8, 6; output has 30
//     nn::CrossEntropy(output, y).Backward();
//     sgd.Step();
//   }
//
// SpawnOptions::devices is the number of devices; with one the model is a plain
// one. Each device runs a strand of its own. The program runs on the first one,
// with x, y, the output and the loss:
//
//     forward     cuts x along its first axis as torch.chunk() does: 5 over 4
//                 are 2, 2, 1, and the last device has no part. Outputs are put
//                 together in the order of the devices; one without axes, such
//                 as a loss, is one row
//     backward    all devices run theirs at the same time. Gradients are added
//                 up over the devices, in buckets, while backwards run, and are
//                 those of the loss on one device, up to rounding. They may be
//                 read when Backward() returns
//     Step()      every device updates a replica of its own, with the same
//                 bits, so that parameters are not sent
//
// The function makes a module on each device, with the same initial values.
// Before a forward, buffers (running statistics) are the first device's on all
// devices, and what the others make of theirs is lost, as in PyTorch. Frozen
// parameters, training and NoGrad() are those of the first device. A layer
// under a name draws for a sample what it would draw on one device, if each
// forward of the step has a part for each device. Members that the program sets
// in the module later are those of the first device alone.
//
// Load() of the model, or of its optimizer, reaches all devices. A program that
// changes parameters in another way calls Replicate(). It does not change
// gradients: the other devices have their own.
//
// Costs. A forward has one task for each device and one answer, and a copy of
// its output; devices of the host read their parts where x is, and others have
// copies. The buffers are sent, as one range for each dtype. PyTorch's sends
// all parameters for each forward, and adds up gradients on the first device.
//
// Differences from DDP: there are no NoSync(), Join() and communication hooks;
// synchronised norms have the statistics of their device's part.
//
// Errors: base::StatusError. One of a forward on another device leaves the
// forward here, with the device and the path of the module: "device 2: in
// module fc: ...". The program may go on after it. Others end the program, such
// as one of a backward. kInvalidArgument: an input that is a scalar, outputs
// that differ in more than their first axis, functions that make different
// models.
// Threads: the rank's own. The function is called on each device's strand.
// Source: torch.nn.DataParallel of PyTorch 2.15.

#ifndef TROUPE_DATA_PARALLEL_H_
#define TROUPE_DATA_PARALLEL_H_

#include <memory>
#include <type_traits>
#include <utility>

#include "nn/modules/module.h"
#include "troupe/model.h"

namespace troupe {

// Gives `model` replicas, which `make` makes, on the other devices of its rank.
void DivideAmongDevices(const Trainable& model, const nn::ModelFactory& make);
// See DataParallel::Replicate().
void ReplicateOnDevices(const Trainable& model);

template <typename M>
class DataParallel : public Model<M> {
 public:
  // `make`: a function without arguments that returns a std::unique_ptr<M>, the
  // same model each time. A copy of it is called on each device.
  template <typename MakeFn>
  DataParallel(Rank& rank, MakeFn make) : Model<M>(rank, make()) {
    DivideAmongDevices(*this, [make = std::move(make)]() mutable {
      return std::unique_ptr<nn::Module>(make());
    });
  }

  // Gives all devices the first one's parameters, buffers and states of the
  // optimizer, before the next forward.
  void Replicate() const { ReplicateOnDevices(*this); }
};

template <typename MakeFn>
DataParallel(Rank&, MakeFn)
    -> DataParallel<typename std::invoke_result_t<MakeFn&>::element_type>;

}  // namespace troupe

#endif  // TROUPE_DATA_PARALLEL_H_
