// A GPU program as data: what a call does, computed once from plain Python tuples (see cuda/plan.py).
//
// Every number that may depend on sizes is a slot of one array: the size symbols first, then constants, then what a list of
// operations computes from them. A program for fixed shapes has no operations.
#ifndef LAMINA_CUDA_PLAN_H
#define LAMINA_CUDA_PLAN_H
#include "cuda_driver.h"

#include <lamina/tensor_abi.h>

#include <memory>
#include <string>
#include <vector>

struct Operation {
    int target, code, a, b;
};
enum OperationCode { kAdd, kMultiply, kFloorDivide, kModulo, kMinimum, kMaximum, kEqual, kNotEqual, kLess, kLessEqual, kAnd, kOr };

struct GpuInput {
    int dtype = -1; // -1: not a tensor
    bool written = false;
    bool on_host = false; // its value is copied to `staged` before the kernels run
    int staged = -1;      // slot: offset in the workspace, for inputs on the host
    std::vector<int> sizes, strides;
};
struct GpuOutput {
    int dtype;
    bool on_host;
    std::vector<int> sizes, strides;
};
struct GpuSize {
    Py_ssize_t input;
    int dim; // -1: the input itself is the number
};
struct Place {
    int buffer; // inputs, outputs, constants, then slices of the workspace
    int offset; // slot, in bytes; -1: none
};
enum ArgumentKind { kPointer, kInt32, kInt64, kBits, kErrorWord, kNull, kDescriptor, kTable };
struct Argument {
    int kind;
    Place place;   // pointer, descriptor: of its memory; table: of the slice that it is copied to
    int64_t value; // slot of an integer; bits; index of a descriptor or table
};
struct Descriptor {
    int type, swizzle, item;
    std::vector<int> sizes, strides; // slots, outermost first
    std::vector<unsigned> block;
    TensorMap map;
    std::vector<uint64_t> made_for;
};
typedef std::vector<Argument> Table; // rows of 64-bit numbers that a kernel over many tensors reads: pointers and slots
struct TableCopy { // a table in the device's memory
    DevicePtr at = 0;
    std::vector<int64_t> values; // what it holds, or will when the stream has come so far
    Opaque stream = nullptr;
};
struct GpuKernel {
    std::string name;
    PyObject *image = nullptr; // bytes, owned
    int shared = 0, threads = 0, clusters = 1;
    bool cooperative = false; // its programs wait for each other: all must run at once
    Opaque module = nullptr, function = nullptr;
};
struct LaunchStep {
    int kernel;
    int grid[3];
    std::vector<Argument> arguments;
    std::vector<uint64_t> values;
    std::vector<void *> pointers;
};
struct ProductStep {
    int dtype, out_dtype;
    bool accumulate, tf32;
    Place a, b, c;
    int outer, batch, m, n, k; // slots
    int strides[12];           // slots: outer, batch, row, column of a, b and c
};
struct CallStep {
    int number;
    std::vector<Place> places;
};
struct CopyStep {
    Place target, source;
    int bytes;
};
enum StepKind { kLaunch, kProduct, kCall, kCopy };
struct StepRef {
    StepKind kind;
    int index;
};
enum GraphUse { kNever, kWhereCheap, kAlways }; // cheap: where little must be copied for it
enum GpuResultKind { kOutput, kInput, kConstant, kNumber, kAlias };
struct GpuResult {
    GpuResultKind kind;
    Py_ssize_t index;
    PyObject *constant; // owned
};

struct GpuPlan {
    PyObject *name = nullptr;
    int device = 0;
    std::vector<GpuInput> inputs;
    std::vector<GpuOutput> outputs;
    std::vector<GpuSize> sizes;
    std::vector<int64_t> slots;
    std::vector<Operation> operations;
    std::vector<PyObject *> constants; // contiguous arrays, owned
    std::vector<DevicePtr> constants_at;
    std::vector<int> workspace_offsets; // slots, of the buffers in the workspace
    int workspace_bytes = 0;            // slot
    int narrow = -1;                    // slot: do indices of 32 bits, which its kernels have, do for these sizes; -1: for all
    PyObject *wider = nullptr;          // gives the program for other sizes
    PyObject *wide = nullptr;           // which it gave
    int blas_offset = -1;               // slot: where in the workspace cuBLAS may work
    std::vector<GpuKernel> kernels;
    std::vector<std::unique_ptr<Descriptor>> descriptors;
    std::vector<Table> tables;
    std::vector<TableCopy> table_copies;
    std::vector<DevicePtr> noted_tables; // in somebody's graphs
    std::vector<LaunchStep> launches;
    std::vector<ProductStep> products;
    std::vector<CallStep> calls;
    std::vector<CopyStep> copies;
    std::vector<StepRef> steps;
    std::vector<GpuResult> results;
    PyObject *host_call = nullptr; // (number, addresses, sizes, stream) -> None
    PyObject *fail = nullptr;      // (error word) -> raises
    PyObject *adapt = nullptr;     // (input, value, sizes, strides) -> a tensor that fits, or raises
    int64_t *error = nullptr;      // a word that the device and the host see
    DevicePtr error_at = 0;
    bool checks = false;
    int captured = 0; // run as a CUDA graph: GraphUse
    bool loaded = false;
    bool warm = false; // has run
};

bool lm_gpu_parse(GpuPlan &plan, PyObject *arguments, PyObject *keywords); // false with an exception set
void lm_gpu_clear(GpuPlan &plan);
void lm_gpu_evaluate(const GpuPlan &plan, int64_t *slots); // fills the computed slots

#endif
