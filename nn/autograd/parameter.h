// A trainable tensor as a module declares it: name, shape and initialiser
// first, memory later, when the plan has decided where it lives.
//
//   Parameter& w = Declare("weight", {out, in}, Initializer::Uniform(bound));
//   w.value;    // meta until ParameterArena binds it, then a view of the arena
//
// One thread at a time: the rank's compute strand.

#ifndef NN_AUTOGRAD_PARAMETER_H_
#define NN_AUTOGRAD_PARAMETER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nn/autograd/initializer.h"
#include "nn/tensor/tensor.h"

namespace troupe::nn {

struct Parameter {
  std::string name;  // "0.weight": the module's path and its own name
  // The other names of a parameter that several modules share, in their order
  // ("lm_head.weight" where `name` is "wte.weight"). Files are saved under
  // `name`, and may have any of them when they are read.
  std::vector<std::string> other_names;
  // Set where a cut parts the modules that share it: both names stay those that
  // it had in the whole model, in each of the parts.
  bool keeps_names = false;
  Shape shape;
  DType dtype = DType::kF32;
  Initializer init;
  // False: frozen. Set it before an arena is made, in the module's constructor
  // say: only then do optimizers leave the value alone (parameter_arena.h).
  bool requires_grad = true;
  // True: the forward that the job was planned from did not use it, so it is
  // saved and not trained. Context::Use() refuses it where there is a tape.
  bool unused = false;

  Tensor value;
  // Of the sum of losses so far this step. May be undefined while there is none
  // (ParameterArena::ReleaseGrads).
  Tensor grad;
  // False at the start of a step: the first gradient overwrites, later ones
  // add. So no pass over memory is spent on zeros.
  bool grad_written = false;
  // Whether a tape that uses the parameter twice, as a table of tokens and as a
  // head say, keeps the gradients of its first use, which backward comes to
  // last, in `first_use_grad`: micro-batches add up use by use, so that two
  // stages that hold a use each have the same sums. Whoever sets it adds the
  // two when the step's last gradient is there (AddUses() in tape.h).
  bool grad_per_use = false;
  Tensor first_use_grad;           // undefined while there is none
  bool first_use_written = false;  // as grad_written
  // Place in the rank's list of parameters; -1 until an arena binds it.
  int index = -1;

  // The parameter that is used in place of this one, which then has no memory
  // of its own (Module::TieParameter); null: this one is used itself.
  std::shared_ptr<Parameter> tied_to;

  // The leaf of this parameter on the tape that used it last (tape.h).
  TapeRef leaf;
};

}  // namespace troupe::nn

#endif  // NN_AUTOGRAD_PARAMETER_H_
