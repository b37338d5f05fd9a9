// Programs as CUDA graphs: the steps of a call are captured once, then put on a stream with one launch.
//
// A graph names addresses. Where a call has others (its results are always fresh tensors), the kernels that name them get new
// parameters before the launch, which costs a tenth of launching them. A library's product cannot be changed: what it reads of
// moving inputs and writes of results lies in memory of the graph, which copies from and to the caller's. A program that was not
// asked to be a graph is one only while copying takes less time than launching its steps would. Scratch memory is the stream's workspace, which all programs
// share. For other sizes another graph is made, when they come a second time; a few are kept.
#include "cuda_launcher.h"

namespace {

constexpr size_t kKept = 8, kSeen = 16;
constexpr uint64_t kStale = 256; // a graph that so many calls did not use makes room for other sizes
// On an H200, nanoseconds: new parameters for a kernel, a copy (of that many bytes a nanosecond), the launch of a step without a graph.
constexpr int64_t kPatch = 360, kCopy = 1500, kBytes = 2000, kLaunch = 3000;
constexpr int64_t kMuch = 64 << 20; // bytes that a graph does not copy without being asked to
constexpr int kDevices = 64;

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

int64_t bytes_of(const GpuCall &call, size_t buffer) { // of an input or output
    const GpuPlan &plan = call.plan;
    if (buffer >= plan.inputs.size()) {
        const GpuOutput &output = plan.outputs[buffer - plan.inputs.size()];
        return bytes_of(call, output.sizes, output.strides, output.dtype);
    }
    const GpuInput &input = plan.inputs[buffer];
    return input.dtype < 0 ? 0 : bytes_of(call, input.sizes, input.strides, input.dtype);
}

// Which steps name which buffers.
void learn(const GpuPlan &plan, GpuGraphs &graphs) {
    size_t count = plan.inputs.size() + plan.outputs.size() + plan.constants.size() + plan.workspace_offsets.size();
    graphs.rigid.assign(count, 0);
    graphs.users.assign(count, {});
    graphs.moving.assign(plan.inputs.size(), 0);
    for (const ProductStep &p : plan.products)
        for (const Place *place : {&p.a, &p.b, &p.c}) graphs.rigid[(size_t)place->buffer] = 1;
    for (const CopyStep &c : plan.copies) graphs.rigid[(size_t)c.target.buffer] = graphs.rigid[(size_t)c.source.buffer] = 1;
    for (size_t l = 0; l < plan.launches.size(); ++l)
        for (const Argument &argument : plan.launches[l].arguments)
            if (argument.kind == kPointer || argument.kind == kDescriptor) {
                std::vector<int> &users = graphs.users[(size_t)argument.place.buffer];
                if (users.empty() || users.back() != (int)l) users.push_back((int)l);
            }
}

// Should a buffer whose address changes lie in the graph's memory: its users cannot be changed, or a copy is cheaper.
bool is_copied(const GpuCall &call, const GpuGraphs &graphs, size_t buffer) {
    if (call.plan.captured != kAlways) return graphs.rigid[buffer];
    return graphs.rigid[buffer] || (int64_t)graphs.users[buffer].size() * kPatch > kCopy + bytes_of(call, buffer) / kBytes;
}

void drop(GpuGraph &graph) {
    if (graph.exec) lm_cuda()->graph_exec_destroy(graph.exec);
    if (graph.graph) lm_cuda()->graph_destroy(graph.graph);
    graph.exec = graph.graph = nullptr;
    Py_CLEAR(graph.memory);
}

// The graph's memory: for copied inputs and results, and for tables.
bool reserve(GpuCall &call, GpuGraph &graph) {
    std::vector<int64_t> offsets;
    int64_t total = 0;
    for (size_t b = 0; b < graph.own.size(); ++b)
        if (graph.own[b]) offsets.push_back(total), total += rounded(bytes_of(call, b));
    for (const Table &table : call.plan.tables) offsets.push_back(total), total += rounded((int64_t)(table.size() * sizeof(int64_t)));
    DevicePtr base = 0;
    if (offsets.empty()) return true;
    graph.memory = lm_gpu_new_bytes(call.abi, call.plan.device, total + 512, &base);
    if (!graph.memory) return false;
    size_t next = 0;
    for (size_t b = 0; b < graph.own.size(); ++b)
        if (graph.own[b]) graph.addresses[b] = base + (DevicePtr)offsets[next++];
    for (TableCopy &table : graph.tables) table.at = base + (DevicePtr)offsets[next++];
    return true;
}

// Copies between memory of the graph and the caller's, for inputs (before the steps) or for results (behind them).
bool capture_copies(GpuCall &call, GpuGraph &graph, bool results) {
    size_t inputs = call.plan.inputs.size();
    for (size_t b = results ? inputs : 0; b < (results ? graph.own.size() : inputs); ++b) {
        int64_t bytes = graph.own[b] ? bytes_of(call, b) : 0;
        if (!bytes) continue;
        DevicePtr to = results ? graph.home[b] : call.addresses[b], from = results ? call.addresses[b] : graph.home[b];
        if (!lm_cuda_ok(lm_cuda()->copy(to, from, (size_t)bytes, call.stream), results ? "copying a result" : "copying an input")) return false;
        if (!lm_gpu_node(call, &graph.copies[b])) return false;
    }
    return true;
}

// Captures the steps over the addresses of the call.
bool capture(GpuCall &call, GpuGraph &graph, DevicePtr workspace) {
    const Driver *cuda = lm_cuda();
    Opaque stream = lm_gpu_side_stream(call.plan.device), own = call.stream;
    std::string doing = std::string(PyUnicode_AsUTF8(call.plan.name)) + ": capturing a CUDA graph";
    if (!stream || !lm_cuda_ok(cuda->begin_capture(stream, 2), doing.c_str())) return false; // 2: other threads may go on
    call.stream = stream, call.nodes = &graph.nodes;
    bool fine = capture_copies(call, graph, false) && lm_gpu_run(call, workspace) && capture_copies(call, graph, true);
    call.stream = own, call.nodes = nullptr;
    int status = cuda->end_capture(stream, &graph.graph);
    if (!fine || !lm_cuda_ok(status, doing.c_str())) return false;
    for (const LaunchStep &step : call.plan.launches) graph.values.push_back(step.values);
    return lm_cuda_ok(cuda->graph_instantiate(&graph.exec, graph.graph, 0), doing.c_str());
}

// Does the graph do for this call, perhaps with other parameters. If not, notes which inputs move.
bool serves(const GpuCall &call, GpuGraphs &graphs, const GpuGraph &graph, DevicePtr workspace) {
    bool result = call.plan.blas_offset < 0 || workspace == graph.workspace;
    for (size_t b = 0; b < call.addresses.size(); ++b) {
        bool named = b < graph.own.size(); // an input or a result
        if (call.addresses[b] == graph.addresses[b] || (named && graph.own[b])) continue;
        if (named ? !is_copied(call, graphs, b) : !graphs.rigid[b]) continue;
        if (b < graphs.moving.size()) graphs.moving[b] = 1;
        result = false;
    }
    return result;
}

GpuGraph *find(GpuCall &call, GpuGraphs &graphs, DevicePtr workspace) {
    for (size_t k = 0; k < graphs.kept.size(); ++k) {
        GpuGraph &graph = graphs.kept[k];
        bool same = graph.stream == call.stream;
        for (size_t i = 0; same && i < graph.sizes.size(); ++i) same = graph.sizes[i] == call.slots[i];
        if (!same) continue;
        if (serves(call, graphs, graph, workspace)) return &graph;
        drop(graph);
        graphs.kept.erase(graphs.kept.begin() + (Py_ssize_t)k);
        break;
    }
    return nullptr;
}

bool patch(GpuCall &call, const GpuGraphs &graphs, GpuGraph &graph) {
    for (size_t b = 0; b < call.addresses.size(); ++b)
        if (call.addresses[b] != graph.addresses[b])
            for (int user : graphs.users[b])
                if (!lm_gpu_patch(call, user, graph.exec, graph.nodes[(size_t)user], &graph.values[(size_t)user])) return false;
    graph.addresses = call.addresses;
    return true;
}

// Copies from and to where the caller's inputs and results are in this call.
bool redirect(GpuCall &call, GpuGraph &graph, const std::vector<DevicePtr> &home) {
    Opaque context = nullptr;
    lm_cuda()->context_current(&context);
    for (size_t b = 0; b < graph.own.size(); ++b) {
        if (!graph.copies[b] || graph.home[b] == home[b]) continue;
        CopyNode with;
        bool result = b >= call.plan.inputs.size();
        with.bytes = (size_t)bytes_of(call, b);
        with.from.device = result ? graph.addresses[b] : home[b];
        with.to.device = result ? home[b] : graph.addresses[b];
        if (!lm_cuda_ok(lm_cuda()->graph_set_copy(graph.exec, graph.copies[b], &with, context), "changing a copy of a CUDA graph")) return false;
        graph.home[b] = home[b];
    }
    return true;
}

bool run_graph(GpuCall &call, GpuGraphs &graphs, GpuGraph &graph, DevicePtr workspace) {
    std::vector<DevicePtr> home(call.addresses.begin(), call.addresses.begin() + (Py_ssize_t)graph.own.size());
    for (size_t b = 0; b < graph.own.size(); ++b)
        if (graph.own[b]) call.addresses[b] = graph.addresses[b];
    std::vector<TableCopy> *usual = call.tables;
    call.tables = &graph.tables;
    bool fine = lm_gpu_fill_tables(call);
    if (fine && graph.exec) {
        fine = patch(call, graphs, graph) && redirect(call, graph, home);
    } else if (fine) {
        graph.home = std::move(home);
        graph.copies.assign(graph.own.size(), nullptr);
        fine = capture(call, graph, workspace);
    }
    call.tables = usual;
    return fine && lm_cuda_ok(lm_cuda()->graph_launch(graph.exec, call.stream), "launching a CUDA graph");
}

bool warn(const GpuCall &call, GpuGraphs &graphs) {
    if (call.plan.captured != kAlways || graphs.warned) return true;
    graphs.warned = true;
    return PyErr_WarnFormat(PyExc_RuntimeWarning, 1,
                            "%U: %zd CUDA graphs are kept for inputs of other sizes or on other streams; calls with further ones launch their "
                            "kernels one by one",
                            call.plan.name, (Py_ssize_t)kKept) == 0;
}

// Have calls with these sizes come lately? Sizes that are new at each call are not worth a graph.
bool come_again(GpuGraphs &graphs, const std::vector<int64_t> &sizes) {
    for (const std::vector<int64_t> &seen : graphs.seen)
        if (seen == sizes) return true;
    if (graphs.seen.size() == kSeen) graphs.seen.erase(graphs.seen.begin());
    graphs.seen.push_back(sizes);
    return false;
}

// Is there room for one more graph, perhaps that of one that is not used any more?
bool make_room(GpuGraphs &graphs) {
    if (graphs.kept.size() < kKept) return true;
    size_t oldest = 0;
    for (size_t k = 1; k < kKept; ++k)
        if (graphs.kept[k].used < graphs.kept[oldest].used) oldest = k;
    if (graphs.calls - graphs.kept[oldest].used < kStale) return false;
    drop(graphs.kept[oldest]);
    graphs.kept.erase(graphs.kept.begin() + (Py_ssize_t)oldest);
    return true;
}

// A graph for this call, not yet captured; false: there should be none.
bool prepare(GpuCall &call, GpuGraphs &graphs, GpuGraph &graph, DevicePtr workspace) {
    const GpuPlan &plan = call.plan;
    graph.sizes.assign(call.slots, call.slots + plan.sizes.size());
    graph.stream = call.stream, graph.workspace = workspace;
    graph.addresses = call.addresses;
    graph.own = graphs.moving;
    for (size_t b = plan.inputs.size(); b < plan.inputs.size() + plan.outputs.size(); ++b) graph.own.push_back(is_copied(call, graphs, b));
    graph.tables.resize(plan.tables.size());
    if (plan.captured == kAlways) return true;
    int64_t bytes = 0, copying = 0;
    for (size_t b = 0; b < graph.own.size(); ++b)
        if (graph.own[b]) bytes += bytes_of(call, b), copying += kCopy + bytes_of(call, b) / kBytes;
    graphs.refused |= bytes > kMuch || copying > (int64_t)plan.steps.size() * kLaunch;
    return come_again(graphs, graph.sizes) && !graphs.refused;
}

} // namespace

Opaque lm_gpu_side_stream(int device) {
    static Opaque streams[kDevices];
    if (!streams[device]) lm_cuda_ok(lm_cuda()->stream_create(&streams[device], 1), "making a stream"); // 1: beside the default stream
    return streams[device];
}

bool lm_gpu_replay(GpuProgram *program, GpuCall &call, DevicePtr workspace) {
    GpuGraphs &graphs = *program->graphs;
    GpuGraph graph;
    if (graphs.rigid.empty()) learn(call.plan, graphs);
    ++graphs.calls;
    if (GpuGraph *found = find(call, graphs, workspace)) {
        found->used = graphs.calls;
        return run_graph(call, graphs, *found, workspace);
    }
    bool many = !graphs.refused && !make_room(graphs);
    if (graphs.refused || many || !prepare(call, graphs, graph, workspace))
        return (!many || warn(call, graphs)) && lm_gpu_fill_tables(call) && lm_gpu_run(call, workspace);
    if (!reserve(call, graph) || !run_graph(call, graphs, graph, workspace)) { drop(graph); return false; }
    graph.used = graphs.calls;
    graphs.kept.push_back(std::move(graph));
    return true;
}

void lm_gpu_drop_graphs(GpuProgram *program) {
    if (program->graphs && !lm_cuda_forked())
        for (GpuGraph &graph : program->graphs->kept) drop(graph);
}
