// Ending kernels early.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>

#include <memory>
#include <optional>

#include "arrays.hpp"
#include "mcce/pulse.hpp"
#include "watch.hpp"

void bind_cancellation(nb::module_& module) {
    using mcce::Cancellation;
    nb::exception<mcce::Cancelled>(module, "CancelledError", PyExc_RuntimeError);
    nb::exception<mcce::Expired>(module, "ExpiredError", PyExc_TimeoutError);
    nb::class_<Cancellation>(module, "Cancellation")
        .def(nb::init<std::optional<double>, std::shared_ptr<Cancellation>>(),
             nb::arg("max_seconds").none() = nb::none(), nb::arg("outer").none() = nb::none())
        .def("cancel", &Cancellation::cancel)
        .def("check", &Cancellation::check)
        .def_prop_ro("cancelled", &Cancellation::cancelled)
        .def_prop_ro("expired", &Cancellation::expired);
    nb::class_<Watch>(module, "Watch")
        .def(nb::init<std::shared_ptr<Cancellation>, bool>(), nb::arg("cancellation").none(), nb::arg("signals"));
}
