#include "nn/modules/net.h"

#include <memory>
#include <string>

#include "base/status_error.h"
#include "gtest/gtest.h"
#include "nn/arena/parameter_arena.h"
#include "nn/autograd/create.h"
#include "nn/autograd/var_math.h"
#include "nn/kernels/cpu/cpu_kernels.h"
#include "nn/modules/conv2d.h"
#include "nn/modules/linear.h"
#include "nn/modules/pool2d.h"
#include "nn/modules/sequential.h"

namespace troupe::nn {
namespace {

class Images : public Net {
 public:
  Var Forward(Var x) override {
    x = pool_(conv_(x).Relu());
    return fc_(x.Flatten());
  }

 private:
  Conv2d& conv_ = Add<Conv2d>("conv", 3, 6, 5);
  MaxPool2d pool_{2};
  Linear& fc_ = Add<Linear>("fc", 6 * 4 * 4, 10);
};

class NetTest : public testing::Test {
 protected:
  void Bind(Module& module) {
    arena_ = *ParameterArena::Create({module.Parameters()}, {},
                                     kernels_->allocator());
    ASSERT_TRUE(arena_->Initialize(/*seed=*/1).ok());
  }
  std::string ErrorOf(Module& module, const Var& x) {
    return std::string(base::Try([&] { module(x); }).message());
  }

  std::unique_ptr<Kernels> kernels_ = CreateCpuKernels({});
  std::unique_ptr<ParameterArena> arena_;
  Tape tape_;
  Context ctx_{*kernels_, &tape_};
};

TEST_F(NetTest, IsCalledWithAVar) {
  Images net;
  Bind(net);
  const Var logits = net(Ones(ctx_, {2, 12, 12, 3}));
  EXPECT_EQ(logits.shape(), (Shape{2, 10}));
  Mean(logits).Backward();
  EXPECT_TRUE(net.Parameters()[0]->grad_written);
}

TEST_F(NetTest, IsAModule) {
  Sequential model;
  model.Append<Images>();
  model.Append<Linear>(10, 3);
  ShapeRecord record;
  const absl::StatusOr<Tensor> y =
      ShapeOnlyForward(model, {5, 12, 12, 3}, DType::kF32, Device{}, record);
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_EQ(y->shape(), (Shape{5, 3}));
  EXPECT_EQ(record.parameters.size(), 6u);
  EXPECT_EQ(record.parameters[0]->name, "0.conv.weight");
}

class Wrong : public Net {
 public:
  Var Forward(Var x) override {
    const Var y = x + Ones(x.context(), {7});
    reached_end = true;
    return y;
  }
  bool reached_end = false;
};

class Around : public Net {
 public:
  Var Forward(Var x) override { return wrong(x); }
  Wrong& wrong = Add<Wrong>("wrong");
};

TEST_F(NetTest, AnErrorEndsForwardAndHasThePathOfItsModule) {
  Sequential model;
  Around& around = model.Append<Around>();
  EXPECT_EQ(ErrorOf(model, Ones(ctx_, {2, 3})),
            "in module 0.wrong: add takes two tensors of one dtype that "
            "broadcast to one shape, got f32[2, 3] and f32[7]");
  EXPECT_FALSE(around.wrong.reached_end);
  EXPECT_TRUE(ctx_.ok());  // it was thrown: the context can be used again
}

// Throws an error of its own, without a path.
class Unlucky : public Net {
 public:
  Var Forward(Var) override {
    throw base::StatusError(absl::NotFoundError("no table"));
  }
};

TEST_F(NetTest, AStatusErrorOfTheModulesOwnKeepsItsCode) {
  Sequential model;
  model.Append<Unlucky>();
  const absl::Status status = base::Try([&] { model(Ones(ctx_, {2})); });
  EXPECT_EQ(status, absl::NotFoundError("in module 0: no table"));
}

class PlainMember : public Net {
 public:
  Var Forward(Var x) override { return fc_(x); }

 private:
  Linear fc_{10, 10};
};

TEST_F(NetTest, ALayerAsAPlainMemberIsRefusedInWords) {
  constexpr char kAdvice[] =
      "it calls a troupe::nn::Linear that was not added to it: as a plain "
      "member, a layer with parameters has no name and is not trained; write, "
      "as the member, `Linear& fc = Add<Linear>(\"fc\", 10, 10);`";
  PlainMember net;
  EXPECT_EQ(ErrorOf(net, Ones(ctx_, {2, 10})), kAdvice);
  Sequential model;
  model.Append<PlainMember>();
  ShapeRecord record;
  EXPECT_EQ(ShapeOnlyForward(model, {2, 10}, DType::kF32, Device{}, record)
                .status()
                .message(),
            std::string("in module 0: ") + kAdvice);
}

TEST_F(NetTest, WithoutAnArenaAParameterHasNoMemory) {
  Images net;
  EXPECT_EQ(ErrorOf(net, Ones(ctx_, {2, 12, 12, 3})),
            "in module conv: parameter weight has no memory: either the model "
            "has none yet (an arena gives it), or it was declared after the "
            "model was made; declare it, and add its module, in the "
            "constructor");
}

}  // namespace
}  // namespace troupe::nn
