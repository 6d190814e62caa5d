#include "base/cuda/emulated/runtime/address_space.h"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/cuda/emulated/runtime/scheduler.h"
#include "base/cuda/emulated/runtime/world.h"

namespace emulated_cuda {
namespace {

constexpr int kRangesMax = 16;
AddressRange ranges[kRangesMax];
DeviceMask open_devices = 0;
struct sigaction old_action;

int RangeOf(const void* p) {
  for (int d = 0; d < kRangesMax; ++d) {
    const char* const base = ranges[d].base;
    if (base != nullptr && p >= base && p < base + AddressRange::kBytes) {
      return d;
    }
  }
  return -1;
}

// Reports the code that touched device memory; then the access faults again,
// for the previous fault handler.
void OnFault(int number, siginfo_t* info, void* context) {
  const int device = RangeOf(info->si_addr);
  if (device >= 0) {
    const auto* const machine = static_cast<ucontext_t*>(context);
    const void* const pc =
        reinterpret_cast<void*>(machine->uc_mcontext.gregs[REG_RIP]);
    char text[512];
    const int length = std::snprintf(
        text, sizeof text,
        "emulated_cuda: %s touches memory of device %d at %p, in %s\n",
        RunsAnOperation() ? "an operation of another device" : "host code",
        device, info->si_addr, SymbolAt(pc).c_str());
    const auto bytes = std::min<std::size_t>(
        static_cast<std::size_t>(std::max(length, 0)), sizeof text - 1);
    if (write(STDERR_FILENO, text, bytes) < 0) std::abort();
  }
  sigaction(number, &old_action, nullptr);
}

void Protect(DeviceMask devices, int protection) {
  auto& all = TheWorld().devices;
  for (std::size_t d = 0; d < all.size(); ++d) {
    if ((devices >> d & 1) != 0) all[d].memory.Protect(protection);
  }
}

}  // namespace

AddressRange& AddressesOf(int device) {
  AddressRange& range = ranges[device];
  if (range.base == nullptr) {
    void* const base = mmap(nullptr, AddressRange::kBytes, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) {
      std::perror("emulated_cuda: the addresses of a device");
      std::abort();
    }
    range.base = static_cast<char*>(base);
  }
  return range;
}

bool IsOpen(int device) { return (open_devices & DeviceBit(device)) != 0; }

OpenMemory::OpenMemory(DeviceMask devices) {
  if (TheWorld().habits.is_strict && (open_devices & ~devices) != 0) {
    CloseMemory();
  }
  const DeviceMask closed = devices & ~open_devices;
  if (closed != 0) Protect(closed, PROT_READ | PROT_WRITE);
  open_devices |= closed;
}

void CloseMemory() {
  if (open_devices != 0 && HasWorld()) Protect(open_devices, PROT_NONE);
  open_devices = 0;
}

void WatchForStrayAccesses() {
  static bool is_watching = false;
  if (is_watching) return;
  is_watching = true;
  struct sigaction action {};
  action.sa_sigaction = OnFault;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, &old_action);
}

}  // namespace emulated_cuda
