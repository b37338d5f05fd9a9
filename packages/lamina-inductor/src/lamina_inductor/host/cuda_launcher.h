// The GPU launcher's own types, shared by its files.
#ifndef LAMINA_CUDA_LAUNCHER_H
#define LAMINA_CUDA_LAUNCHER_H
#include "cuda_plan.h"

// cuda_graph.cpp: a captured run. Kernels are given other addresses before it is launched; what cannot be (a library's product)
// reads and writes memory of the graph, from and to which the graph copies.
struct GpuGraph {
    std::vector<int64_t> sizes; // values of the size symbols
    Opaque stream = nullptr;    // whose workspace it uses
    std::vector<DevicePtr> addresses;
    DevicePtr workspace = 0;
    std::vector<char> own;       // per input and output: lies in `memory`
    std::vector<DevicePtr> home; // per input and output: the caller's address, where it is copied
    std::vector<Opaque> copies;  // and the copy's node
    PyObject *memory = nullptr;
    std::vector<TableCopy> tables; // in `memory`
    std::vector<Opaque> nodes;     // per launch step; null: its grid is empty
    std::vector<std::vector<uint64_t>> values;
    uint64_t used = 0; // number of the call that ran it last
    Opaque graph = nullptr, exec = nullptr;
};
struct GpuGraphs {
    std::vector<GpuGraph> kept;
    std::vector<char> rigid;             // per buffer: named by steps that cannot be changed
    std::vector<std::vector<int>> users; // per buffer: launches that name it
    std::vector<char> moving;            // per input: it is copied, because its address has changed
    std::vector<std::vector<int64_t>> seen; // sizes of calls without a graph, the latest last
    uint64_t calls = 0;
    bool refused = false, warned = false;
};

struct GpuProgram {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    GpuPlan *plan;
    GpuGraphs *graphs;
    PyObject *weak; // references to it
};

// What one call knows.
struct GpuCall {
    GpuPlan &plan;
    std::vector<PyObject *> objects;      // inputs as read: borrowed, or owned where `owned`
    std::vector<char> owned;
    std::vector<lamina_tensor *> tensors; // null for numbers
    std::vector<DevicePtr> addresses;     // of inputs, outputs, constants, workspace slices
    std::vector<int64_t> own_slots;
    const int64_t *slots = nullptr;
    std::vector<PyObject *> outputs;
    std::vector<PyObject *> temporaries; // memory of aligned copies of inputs
    const lamina_abi *abi = nullptr;
    Opaque stream = nullptr;
    std::vector<Opaque> *marks = nullptr; // events between the steps, where these are timed
    std::vector<Opaque> *nodes = nullptr; // what launches become, while they are captured
    std::vector<TableCopy> *tables;
    bool noted = false; // somebody captures the stream
    std::vector<int64_t> table_values;

    explicit GpuCall(GpuPlan &p) : plan(p), tables(&p.table_copies) {}
    ~GpuCall();
    DevicePtr at(const Place &place) const {
        return addresses[(size_t)place.buffer] + (place.offset < 0 ? 0 : (DevicePtr)slots[place.offset]);
    }
};

const lamina_abi *lm_gpu_abi(PyTypeObject *type); // of a front end's tensors; null: not one
void lm_gpu_set_default(const lamina_abi *abi);
const lamina_abi *lm_gpu_default(void);
int lm_gpu_item_size(int dtype);

// cuda_inputs.cpp
bool lm_gpu_read_inputs(GpuCall &call, PyObject *const *arguments);
bool lm_gpu_find_sizes(GpuCall &call);
bool lm_gpu_check_inputs(GpuCall &call);
bool lm_gpu_stage_inputs(GpuCall &call, DevicePtr workspace); // host values and unaligned memory to the workspace
bool lm_gpu_return_inputs(GpuCall &call);                     // what was written to staged copies, back

// cuda_steps.cpp
bool lm_gpu_load(GpuPlan &plan, Opaque stream); // kernels and constants, once
bool lm_gpu_fill_tables(GpuCall &call);
bool lm_gpu_run(GpuCall &call, DevicePtr workspace);
bool lm_gpu_node(const GpuCall &call, Opaque *node); // what was just captured; null: nothing yet
bool lm_gpu_patch(GpuCall &call, int launch, Opaque exec, Opaque node, std::vector<uint64_t> *values);

// cuda_timing.cpp
bool lm_gpu_mark(GpuCall &call);
PyObject *lm_gpu_times(GpuCall &call, bool done);

// cuda_workspace.cpp: one block per device and stream, which runs in order
struct GpuBlock {
    PyObject *tensor = nullptr;
    DevicePtr address = 0;
    int slot = -1; // in the table; -1: of this call only
};
bool lm_gpu_take(const lamina_abi *abi, int device, Opaque stream, int64_t bytes, bool own, GpuBlock *block);
void lm_gpu_give(GpuBlock *block);
PyObject *lm_gpu_release(PyObject *, PyObject *); // gives up all blocks that are not taken
bool lm_gpu_alloc(DevicePtr *address, size_t bytes, const char *purpose); // of the driver: outside of the front end's pool
PyObject *lm_gpu_new_bytes(const lamina_abi *abi, int device, int64_t bytes, DevicePtr *address);

// cuda_errors.cpp
int64_t *lm_gpu_error_word(DevicePtr *device_address); // null with an exception set
bool lm_gpu_error_check(GpuPlan &plan);                // false with the exception that a kernel's word stands for
void lm_gpu_error_watch(GpuPlan *plan);
void lm_gpu_error_forget(GpuPlan *plan);
PyObject *lm_gpu_check_errors(PyObject *, PyObject *);

// cuda_graph.cpp
Opaque lm_gpu_side_stream(int device); // on which nothing of the caller's runs; null with an exception set
bool lm_gpu_replay(GpuProgram *program, GpuCall &call, DevicePtr workspace); // in place of `lm_gpu_run`
void lm_gpu_drop_graphs(GpuProgram *program);

PyObject *lm_gpu_finish(GpuCall &call); // the tuple of results
bool lm_gpu_make_outputs(GpuCall &call);
int lm_gpu_program_setup(PyObject *module);

#endif
