// Tests of the endpoint for Prometheus, through a socket.

#include "tools/trainer/metrics/prometheus_exporter.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/files/file_system.h"
#include "base/files/owned_fd.h"
#include "gtest/gtest.h"
#include "tests/base/fresh_path.h"

namespace troupe::tools {
namespace {

sockaddr_in Loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

// Returns a port at which nothing listens.
int FreePort() {
  const base::OwnedFd fd(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(bind(fd.get(), any, size), 0);
  EXPECT_EQ(getsockname(fd.get(), any, &size), 0);
  return ntohs(address.sin_port);
}

// Returns the server's answer to `request`, until it closes the connection.
std::string Ask(int port, const std::string& request) {
  const base::OwnedFd fd(socket(AF_INET, SOCK_STREAM, 0));
  const timeval patience = {30, 0};
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  const sockaddr_in address = Loopback(port);
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address),
              sizeof(address)) != 0) {
    return "nobody listens";
  }
  if (send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) {
    return "nobody reads";
  }
  std::string answer;
  char bytes[4096];
  ssize_t n;
  while ((n = recv(fd.get(), bytes, sizeof(bytes), 0)) > 0) {
    answer.append(bytes, static_cast<std::size_t>(n));
  }
  return answer;
}

std::string Get(int port, const std::string& path) {
  return Ask(port, absl::StrCat("GET ", path,
                                " HTTP/1.1\r\nHost: localhost\r\n"
                                "Connection: close\r\n\r\n"));
}

class PrometheusExporterTest : public testing::Test {
 protected:
  void SetUp() override {
    port_ = FreePort();
    auto exporter = PrometheusExporter::Start({"127.0.0.1", port_}, files_);
    ASSERT_TRUE(exporter.ok()) << exporter.status();
    exporter_ = *std::move(exporter);
  }

  base::PosixFileSystem files_;
  int port_ = 0;
  std::unique_ptr<PrometheusExporter> exporter_;
};

TEST_F(PrometheusExporterTest, TellsWhereTheRunStands) {
  StartEntry start;
  start.steps = 1000;
  start.ranks = 4;
  ASSERT_TRUE(exporter_->OnStart(start).ok());
  StepEntry step;
  step.step = 640;
  step.epoch = 2;
  step.loss = 0.5;
  step.accuracy = 0.75;
  step.lr = 0.125;
  step.grad_norm = 2.5;
  step.samples_per_s = 2048;
  step.seconds = 0.02;
  step.peak_bytes = 4096;
  ASSERT_TRUE(exporter_->OnStep(step).ok());
  EvaluationEntry evaluation;
  evaluation.step = 600;
  evaluation.loss = 0.25;
  ASSERT_TRUE(exporter_->OnEvaluation(evaluation).ok());
  const std::string folder = base::FreshPath();
  ASSERT_TRUE(files_.CreateFolder(folder).ok());
  ASSERT_TRUE(base::WriteWholeFile(files_, folder + "/a", "12345").ok());
  ASSERT_TRUE(exporter_->OnCheckpoint({600, folder, absl::Now()}).ok());
  const std::string answer = Get(port_, "/metrics");
  EXPECT_TRUE(absl::StartsWith(answer, "HTTP/1.1 200 ")) << answer;
  for (const char* line :
       {"troupe_step 640\n", "troupe_steps 1000\n", "troupe_ranks 4\n",
        "troupe_epoch 2\n", "troupe_train_loss 0.5\n",
        "troupe_train_accuracy 0.75\n", "troupe_learning_rate 0.125\n",
        "troupe_gradient_norm 2.5\n", "troupe_samples_per_second 2048\n",
        "troupe_peak_tensor_bytes 4096\n", "troupe_eval_step 600\n",
        "troupe_eval_loss 0.25\n", "troupe_checkpoint_step 600\n",
        "troupe_checkpoint_bytes_total 5\n",
        "troupe_step_seconds_bucket{le=\"0.01\"} 0\n",
        "troupe_step_seconds_bucket{le=\"0.03\"} 1\n",
        "troupe_step_seconds_count 1\n", "process_resident_memory_bytes "}) {
    EXPECT_TRUE(absl::StrContains(answer, absl::StrCat("\n", line)))
        << line << answer;
  }
}

TEST_F(PrometheusExporterTest, HasNothingElse) {
  EXPECT_TRUE(absl::StartsWith(Get(port_, "/"), "HTTP/1.1 404 "));
  EXPECT_TRUE(absl::StartsWith(Get(port_, "/../../etc/passwd"), "HTTP/1.1 4"));
}

TEST_F(PrometheusExporterTest, WhatIsNoHttpIsRefused) {
  for (const char* request :
       {"nonsense\r\n\r\n", "GET\r\n\r\n", "\x16\x03\x01 TLS\r\n\r\n"}) {
    const std::string answer = Ask(port_, request);
    EXPECT_TRUE(absl::StrContains(answer.substr(0, 13), " 400 "))
        << request << answer;
  }
  EXPECT_TRUE(absl::StartsWith(Get(port_, "/metrics"), "HTTP/1.1 200 "))
      << "it goes on";
}

TEST_F(PrometheusExporterTest, ARequestIsBounded) {
  const std::string header(2 * PrometheusExporter::kRequestBytesMax, 'a');
  const std::string answer =
      Ask(port_, "GET /metrics HTTP/1.1\r\nX: " + header + "\r\n\r\n");
  EXPECT_FALSE(absl::StartsWith(answer, "HTTP/1.1 200 ")) << answer;
  EXPECT_TRUE(absl::StartsWith(Get(port_, "/metrics"), "HTTP/1.1 200 "))
      << "it goes on";
}

TEST_F(PrometheusExporterTest, APortThatIsTakenIsAnError) {
  const auto second = PrometheusExporter::Start({"127.0.0.1", port_}, files_);
  EXPECT_EQ(second.status(),
            absl::UnavailableError(absl::StrCat(
                "cannot serve metrics at 127.0.0.1:", port_,
                ": the port is taken, or no address of this machine; take "
                "another")));
}

TEST(IsLoopbackHost, KnowsNumbersAndOneName) {
  for (const char* host : {"127.0.0.1", "127.1.2.3", "::1", "localhost"}) {
    EXPECT_TRUE(base::IsLoopbackHost(host)) << host;
  }
  for (const char* host :
       {"0.0.0.0", "::", "10.0.0.1", "node1", "127.0.0.1.example.org", ""}) {
    EXPECT_FALSE(base::IsLoopbackHost(host)) << host;
  }
}

}  // namespace
}  // namespace troupe::tools
