// Times of the steps of a call: an event before each step and one behind the last.
#include "cuda_launcher.h"

bool lm_gpu_mark(GpuCall &call) {
    const Driver *cuda = lm_cuda();
    Opaque event = nullptr;
    if (!lm_cuda_ok(cuda->event_create(&event, 0), "making an event")) return false;
    call.marks->push_back(event);
    return lm_cuda_ok(cuda->event_record(event, call.stream), "recording an event");
}

// Milliseconds of each step, when all is done; the events are given back.
PyObject *lm_gpu_times(GpuCall &call, bool done) {
    const Driver *cuda = lm_cuda();
    std::vector<Opaque> &marks = *call.marks;
    size_t count = marks.empty() ? 0 : marks.size() - 1;
    bool fine = done && lm_cuda_ok(cuda->stream_synchronize(call.stream), "waiting for a timed call");
    PyObject *result = fine ? PyTuple_New((Py_ssize_t)count) : nullptr;
    for (size_t i = 0; result && i < count; ++i) {
        float taken = 0;
        PyObject *number = lm_cuda_ok(cuda->event_elapsed(&taken, marks[i], marks[i + 1]), "reading an event") ? PyFloat_FromDouble(taken) : nullptr;
        if (number) PyTuple_SET_ITEM(result, (Py_ssize_t)i, number);
        else Py_CLEAR(result);
    }
    for (Opaque mark : marks) cuda->event_destroy(mark);
    return result;
}
