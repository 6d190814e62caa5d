// Declares names that the usage comments in pipeline/ leave undeclared.

#ifndef TESTS_USAGE_WORDS_PIPELINE_H_
#define TESTS_USAGE_WORDS_PIPELINE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nn/autograd/context.h"
#include "nn/autograd/parameter.h"
#include "nn/modules/module.h"
#include "nn/tensor/device.h"
#include "nn/tensor/dtype.h"
#include "pipeline/cut_search.h"
#include "pipeline/mesh.h"
#include "pipeline/plan.h"
#include "pipeline/table/schedule.h"
#include "pipeline/table/table_index.h"

namespace troupe::pipeline::usage {

extern StepTable table;
extern const nn::ModelFactory factory;

namespace action_rules_h {
extern const Action action;
extern const TableIndex index;
}  // namespace action_rules_h

namespace balance_h {
using nn::Device;
extern PlanOptions options;
extern const nn::TensorSpec input;
extern const std::vector<std::string> cuts;
}  // namespace balance_h

namespace buckets_h {
extern const std::vector<std::int64_t> bytes_in_forward_order;
}

namespace bucket_limits_h {
extern const std::vector<std::int64_t> bytes_in_forward_order;
}

namespace cut_search_h {
extern const ModelCosts costs;
extern PlanOptions plan_options;
}  // namespace cut_search_h

namespace group_id_h {
extern const Action action;
extern const Mesh mesh;
extern const int rank;
}  // namespace group_id_h

namespace signal_waiters_h {
extern const int bucket;
extern int* const missing;
}  // namespace signal_waiters_h

namespace parameter_plan_h {
extern nn::Module& model;
extern const nn::Device device;
}  // namespace parameter_plan_h

namespace plan_h {
extern const nn::DType dtype;
extern const nn::Device device;
}  // namespace plan_h

namespace plan_diff_h {
extern const Plan a, b;
}

namespace plan_groups_h {
extern const Plan plan;
void Connect(const std::vector<int>& ranks);
}  // namespace plan_groups_h

namespace plan_json_h {
extern const Plan plan;
}

namespace stage_buckets_h {
extern const PlanOptions options;
extern Plan plan;
extern const std::vector<std::vector<bool>> trained;
extern const std::unique_ptr<nn::Module> module;
extern const nn::ShapeRecord record;
extern const std::vector<nn::Parameter*> parameters;
extern StagePlan stage;
extern const ReductionOptions reductions;
extern RankPlan rank_plan;
}  // namespace stage_buckets_h

namespace table_cursor_h {
void AwaitSignal();
void Run(const Action& action);
}  // namespace table_cursor_h

namespace ties_h {
extern const Plan plan;
}

}  // namespace troupe::pipeline::usage

#endif  // TESTS_USAGE_WORDS_PIPELINE_H_
