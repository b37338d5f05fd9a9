// Programs as CUDA graphs: the kernels of a call are captured once, then put on a stream with one launch.
//
// A graph names addresses. Inputs whose address was the same in the last two calls are read where they lie; the others are copied
// to memory of the graph first. Results are computed in memory of the graph and copied to fresh tensors, so a later call cannot
// change them. For other sizes another graph is made; a few are kept.
#include "cuda_launcher.h"

#include <string.h>

namespace {

constexpr size_t kKept = 8;

int64_t rounded(int64_t bytes) { return (bytes + 511) / 512 * 512; }

int64_t bytes_of(const GpuCall &call, const std::vector<int> &sizes, const std::vector<int> &strides, int dtype) {
    int64_t elements = 1;
    for (size_t d = 0; d < sizes.size(); ++d) {
        int64_t size = call.slots[sizes[d]];
        if (size == 0) return 0;
        elements += (size - 1) * call.slots[strides[d]];
    }
    return elements * lm_gpu_item_size(dtype);
}

bool matches(const GpuCall &call, const GpuGraph &graph) {
    for (size_t i = 0; i < graph.sizes.size(); ++i)
        if (graph.sizes[i] != call.slots[i]) return false;
    for (size_t i = 0; i < graph.inputs.size(); ++i)
        if (!graph.staged[i] && graph.inputs[i] != call.addresses[i]) return false;
    return true;
}

void drop(GpuGraph &graph) {
    if (graph.exec) lm_cuda()->graph_exec_destroy(graph.exec);
    Py_CLEAR(graph.memory);
}

// Addresses for a captured run: its own memory for results, staged inputs, tables and the workspace.
bool place(GpuCall &call, GpuGraph &graph, std::vector<DevicePtr> *addresses, std::vector<DevicePtr> *tables, DevicePtr *workspace) {
    const GpuPlan &plan = call.plan;
    std::vector<int64_t> offsets;
    int64_t total = 0;
    auto add = [&](int64_t bytes) { offsets.push_back(total); total += rounded(bytes); };
    for (size_t i = 0; i < plan.inputs.size(); ++i)
        add(graph.staged[i] ? bytes_of(call, plan.inputs[i].sizes, plan.inputs[i].strides, plan.inputs[i].dtype) : 0);
    for (const GpuOutput &output : plan.outputs) add(bytes_of(call, output.sizes, output.strides, output.dtype));
    for (const Table &table : plan.tables) add((int64_t)(table.cells.size() * sizeof(int64_t)));
    add(call.slots[plan.workspace_bytes]);
    DevicePtr base = 0;
    graph.memory = lm_gpu_new_bytes(call.abi, plan.device, total + 512, &base);
    if (!graph.memory) return false;
    for (size_t i = 0; i < plan.inputs.size(); ++i) addresses->push_back(graph.staged[i] ? base + (DevicePtr)offsets[i] : graph.inputs[i]);
    for (size_t i = 0; i < plan.outputs.size(); ++i) addresses->push_back(base + (DevicePtr)offsets[plan.inputs.size() + i]);
    for (size_t i = 0; i < plan.tables.size(); ++i) tables->push_back(base + (DevicePtr)offsets[plan.inputs.size() + plan.outputs.size() + i]);
    *workspace = base + (DevicePtr)offsets.back();
    addresses->insert(addresses->end(), plan.constants_at.begin(), plan.constants_at.end());
    for (int offset : plan.workspace_offsets) addresses->push_back(*workspace + (DevicePtr)call.slots[offset]);
    return true;
}

// While a graph is captured, tables lie in its memory: it reads them whenever it runs, and another graph has other ones.
struct OwnTables {
    GpuPlan &plan;
    std::vector<Table> kept;

    OwnTables(GpuPlan &p, const std::vector<DevicePtr> &places) : plan(p), kept(p.tables) {
        for (size_t i = 0; i < places.size(); ++i) plan.tables[i].uploaded_to = places[i], plan.tables[i].uploaded.clear();
    }
    ~OwnTables() { plan.tables = std::move(kept); }
};

Opaque capture_stream(void) {
    static Opaque stream = nullptr;
    if (!stream) lm_cuda_ok(lm_cuda()->stream_create(&stream, 1), "making a stream"); // 1: beside the default stream
    return stream;
}

bool capture(GpuCall &call, GpuGraph &graph, std::vector<DevicePtr> *addresses) {
    const Driver *cuda = lm_cuda();
    DevicePtr workspace = 0;
    Opaque made = nullptr, stream = capture_stream(), own = call.stream;
    std::vector<DevicePtr> places;
    if (!stream || !place(call, graph, addresses, &places, &workspace)) return false;
    OwnTables own_tables(call.plan, places);
    call.addresses.swap(*addresses);
    bool fine = lm_gpu_fill_tables(call); // outside of the graph: addresses are as they will always be
    call.stream = stream;
    fine = fine && lm_cuda_ok(cuda->begin_capture(stream, 2), "capturing a graph"); // 2: other threads may go on
    if (fine) {
        fine = lm_gpu_run(call, workspace);
        int status = cuda->end_capture(stream, &made);
        fine = fine && lm_cuda_ok(status, "capturing a graph");
    }
    call.stream = own;
    call.addresses.swap(*addresses);
    if (fine) fine = lm_cuda_ok(cuda->graph_instantiate(&graph.exec, made, 0), "making a graph ready");
    if (made) cuda->graph_destroy(made);
    return fine;
}

// Copies between the caller's inputs and the graph's copies of them.
bool move_inputs(GpuCall &call, const GpuGraph &graph, bool back) {
    const GpuPlan &plan = call.plan;
    for (size_t i = 0; i < plan.inputs.size(); ++i) {
        if (!graph.staged[i] || (back && !plan.inputs[i].written)) continue;
        int64_t bytes = bytes_of(call, plan.inputs[i].sizes, plan.inputs[i].strides, plan.inputs[i].dtype);
        DevicePtr to = back ? call.addresses[i] : graph.inputs[i], from = back ? graph.inputs[i] : call.addresses[i];
        if (bytes && !lm_cuda_ok(lm_cuda()->copy(to, from, (size_t)bytes, call.stream), "copying an input")) return false;
    }
    return true;
}

bool copy_outputs(GpuCall &call, const std::vector<DevicePtr> &from) {
    const GpuPlan &plan = call.plan;
    size_t first = call.addresses.size();
    if (!lm_gpu_make_outputs(call)) return false;
    for (size_t i = 0; i < plan.outputs.size(); ++i) {
        int64_t bytes = bytes_of(call, plan.outputs[i].sizes, plan.outputs[i].strides, plan.outputs[i].dtype);
        if (bytes && !lm_cuda_ok(lm_cuda()->copy(call.addresses[first + i], from[i], (size_t)bytes, call.stream), "copying a result")) return false;
    }
    return true;
}

GpuGraph *find_or_capture(GpuProgram *program, GpuCall &call) {
    for (GpuGraph &graph : *program->graphs)
        if (matches(call, graph)) return &graph;
    const GpuPlan &plan = call.plan;
    size_t count = plan.inputs.size();
    GpuGraph graph;
    graph.sizes.assign(call.slots, call.slots + plan.sizes.size());
    graph.inputs = std::vector<DevicePtr>(call.addresses.begin(), call.addresses.begin() + (Py_ssize_t)count);
    graph.staged.assign(count, 0);
    if (program->moving->empty()) program->moving->assign(count, 0);
    for (const GpuGraph &other : *program->graphs) // an address that was another one before will be so again
        for (size_t i = 0; i < count; ++i)
            if (!other.staged[i] && other.inputs[i] != graph.inputs[i]) (*program->moving)[i] = 1;
    for (size_t i = 0; i < count; ++i)
        graph.staged[i] = plan.inputs[i].dtype >= 0 && ((*program->moving)[i] || plan.inputs[i].on_host || graph.inputs[i] % 16);
    for (size_t k = program->graphs->size(); k-- > 0;) { // graphs that named an address that has moved are of no more use
        GpuGraph &old = (*program->graphs)[k];
        bool useless = program->graphs->size() >= kKept;
        for (size_t i = 0; i < count; ++i) useless |= (*program->moving)[i] && !old.staged[i];
        if (useless) {
            drop(old);
            program->graphs->erase(program->graphs->begin() + (Py_ssize_t)k);
        }
    }
    std::vector<DevicePtr> addresses;
    if (!capture(call, graph, &addresses)) { drop(graph); return nullptr; }
    graph.inputs.assign(addresses.begin(), addresses.begin() + (Py_ssize_t)count);
    graph.results.assign(addresses.begin() + (Py_ssize_t)count, addresses.begin() + (Py_ssize_t)(count + plan.outputs.size()));
    program->graphs->push_back(std::move(graph));
    return &program->graphs->back();
}

} // namespace

PyObject *lm_gpu_replay(GpuProgram *program, GpuCall &call, bool *done) {
    GpuPlan &plan = call.plan;
    if (!plan.warm) { // the first call loads kernels and libraries, which a capture must not see
        plan.warm = true;
        return nullptr;
    }
    for (const GpuOutput &output : plan.outputs)
        if (output.on_host) return nullptr;
    for (const GpuInput &input : plan.inputs)
        if (input.on_host) return nullptr;
    *done = true;
    GpuGraph *graph = find_or_capture(program, call);
    if (!graph || !move_inputs(call, *graph, false)) return nullptr;
    if (!lm_cuda_ok(lm_cuda()->graph_launch(graph->exec, call.stream), "launching a graph")) return nullptr;
    if (!move_inputs(call, *graph, true) || !copy_outputs(call, graph->results)) return nullptr;
    for (size_t i = 0; i < plan.inputs.size(); ++i)
        if (plan.inputs[i].written && call.tensors[i]) ++*call.tensors[i]->version;
    return lm_gpu_finish(call);
}

void lm_gpu_drop_graphs(GpuProgram *program) {
    if (program->graphs)
        for (GpuGraph &graph : *program->graphs) drop(graph);
}
