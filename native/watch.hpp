// What a kernel looks at while it works: whether it is to end, and whether Python has signals to handle.
#pragma once

#include <chrono>
#include <memory>
#include <utility>

#include "arrays.hpp"
#include "mcce/pulse.hpp"

class Watch {
public:
    // signals   whether the calling thread handles Python's signals, as the main thread does
    Watch(std::shared_ptr<mcce::Cancellation> cancellation, bool signals)
        : cancellation_(std::move(cancellation)), signals_(signals) {}

    // For one call of a kernel, which holds no lock and has released the GIL.
    mcce::Pulse pulse() const {
        return mcce::Pulse([this, handled = Clock::now()]() mutable {
            if (cancellation_) cancellation_->check();
            if (!signals_ || Clock::now() - handled < kBetweenSignals) return;
            const nb::gil_scoped_acquire acquire;
            if (PyErr_CheckSignals() != 0) throw nb::python_error();
            handled = Clock::now();
        });
    }

    // The same within a lock: signal handlers, which may call anything, have to wait.
    mcce::Pulse quiet_pulse() const {
        return mcce::Pulse([this] {
            if (cancellation_) cancellation_->check();
        });
    }

private:
    using Clock = std::chrono::steady_clock;
    // Waiting for the GIL takes a while if other threads are busy, so it must not happen too often.
    static constexpr std::chrono::milliseconds kBetweenSignals{30};

    std::shared_ptr<mcce::Cancellation> cancellation_;
    bool signals_;
};
