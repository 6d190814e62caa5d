#include "comm/spanning/frames/task_queue.h"

#include <string>

#include "gtest/gtest.h"

namespace troupe::comm::internal {
namespace {

TEST(TaskQueue, RunsTasksInOrderAlsoThoseThatTheyAdd) {
  TaskQueue queue;
  EXPECT_TRUE(queue.empty());
  EXPECT_FALSE(queue.RunNext());
  std::string log;
  queue.Add([&] {
    log += "a";
    queue.Add([&] { log += "c"; });
  });
  queue.Add([&] { log += "b"; });
  EXPECT_FALSE(queue.empty());
  while (queue.RunNext()) {
  }
  EXPECT_EQ(log, "abc");
  EXPECT_TRUE(queue.empty());
}

}  // namespace
}  // namespace troupe::comm::internal
