// The extension module. Each bind_*.cpp binds one topic: arrays in, arrays out, the GIL released while a
// kernel works. Arrays are checked before that, and what a kernel uses as an index is copied, so that
// no other thread can change or free it meanwhile.
#include "arrays.hpp"

NB_MODULE(_native, module) {
    module.doc() = "Compiled kernels; see mcce.kernels.";
    // A forest that is still referred to when Python exits is no leak to tell users of.
    nb::set_leak_warnings(false);
    bind_cancellation(module);
    bind_boost(module);
    bind_grow(module);
    bind_forest(module);
    bind_neighbours(module);
    bind_rank(module);
}
