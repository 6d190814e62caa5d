// Declares names that the usage comments in tools/trainer/doctor/ leave
// undeclared.

#ifndef TESTS_USAGE_WORDS_TOOLS_TRAINER_DOCTOR_H_
#define TESTS_USAGE_WORDS_TOOLS_TRAINER_DOCTOR_H_

#include <poll.h>
#include <unistd.h>

#include <iostream>
#include <memory>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/check.h"
#include "base/tls/certificates.h"
#include "comm/tcp/tls_stream.h"
#include "nn/kernels/device_backends.h"
#include "tools/trainer/doctor/doctor_machine.h"
#include "tools/trainer/terminal/version.h"

namespace troupe::tools::usage {

namespace doctor_gpus_h {
extern const nn::DeviceBackend* const backend;
}

namespace doctor_peer_h {
extern const base::tls::CertificateFiles own;
}

namespace doctor_stream_h {
extern const absl::Time deadline;
extern const std::shared_ptr<comm::TlsContext> context;
}  // namespace doctor_stream_h

}  // namespace troupe::tools::usage

#endif  // TESTS_USAGE_WORDS_TOOLS_TRAINER_DOCTOR_H_
