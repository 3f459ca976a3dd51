// NumPy arrays in and out of the kernels.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <initializer_list>
#include <limits>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace nb = nanobind;

// Read-only input. Holding it keeps the memory alive.
template <class T, int N>
using In = nb::ndarray<const T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out = nb::ndarray<nb::numpy, T>;

template <class Array>
auto copy(const Array& array) {
    using Value = std::remove_cv_t<std::remove_reference_t<decltype(*array.data())>>;
    return std::vector<Value>(array.data(), array.data() + array.size());
}

// Hands a vector over to Python without copying it.
template <class T>
Out<T> give(std::vector<T>&& values, std::initializer_list<std::size_t> shape) {
    auto owned = std::make_unique<std::vector<T>>(std::move(values));
    T* data = owned->data();
    nb::capsule owner(owned.get(), [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    owned.release();
    return Out<T>(data, shape, owner);
}

template <class T>
Out<T> give(std::vector<T>&& values) {
    const std::size_t size = values.size();
    return give(std::move(values), {size});
}

// The number of entries of a result; as the vector would, this fails if they cannot fit in memory.
inline std::size_t n_entries(std::initializer_list<std::size_t> shape) {
    constexpr std::size_t most = std::numeric_limits<std::ptrdiff_t>::max() / sizeof(double);
    std::size_t total = 1;
    for (const std::size_t size : shape) {
        if (size > most || (size && total > most / size)) throw std::bad_alloc();
        total *= size;
    }
    return total;
}

// Each binds the kernels of one topic.
void bind_boost(nb::module_& module);
void bind_cancellation(nb::module_& module);
void bind_forest(nb::module_& module);
void bind_grow(nb::module_& module);
void bind_neighbours(nb::module_& module);
void bind_rank(nb::module_& module);
