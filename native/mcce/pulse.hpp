// How work that takes long is ended early: cancelled from another thread, or by a deadline.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include "compiler.hpp"

namespace mcce {

struct Cancelled : std::runtime_error {
    Cancelled() : std::runtime_error("the work was cancelled") {}
};

struct Expired : std::runtime_error {
    Expired() : std::runtime_error("the time limit has passed") {}
};

// A flag that any thread may raise, and a deadline. Those of `outer` count too.
class Cancellation {
public:
    Cancellation(std::optional<double> max_seconds, std::shared_ptr<Cancellation> outer)
        : outer_(std::move(outer)) {
        if (!max_seconds) return;
        if (!(*max_seconds == *max_seconds)) throw std::invalid_argument("max_seconds is not a number");
        constexpr double most = 1e9;  // about 30 years, which no clock overflows
        const std::chrono::duration<double> seconds(std::max(*max_seconds, 0.0));
        if (seconds.count() < most) deadline_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(seconds);
    }

    void cancel() noexcept { cancelled_.store(true, std::memory_order_relaxed); }
    bool cancelled() const {
        return cancelled_.load(std::memory_order_relaxed) || (outer_ && outer_->cancelled());
    }
    bool expired() const { return (deadline_ && Clock::now() >= *deadline_) || (outer_ && outer_->expired()); }

    // Throws if the work is to end.
    void check() const {
        if (cancelled()) throw Cancelled();
        if (expired()) throw Expired();
    }

private:
    using Clock = std::chrono::steady_clock;

    std::shared_ptr<Cancellation> outer_;
    std::atomic<bool> cancelled_{false};
    std::optional<Clock::time_point> deadline_;
};

// Kernels count their work here, one unit being about a nanosecond. Every so often, and at the first
// count, `beat` is called, which may throw to end the kernel.
class Pulse {
public:
    explicit Pulse(std::function<void()> beat) : beat_(std::move(beat)) {}

    void tick(std::size_t work) {
        if (work < left_) {
            left_ -= work;
        } else {
            beat();
        }
    }

private:
    MCCE_COLD void beat() {
        left_ = kWork;
        beat_();
    }

    static constexpr std::size_t kWork = 1 << 19;

    std::size_t left_ = 0;
    std::function<void()> beat_;
};

}  // namespace mcce
