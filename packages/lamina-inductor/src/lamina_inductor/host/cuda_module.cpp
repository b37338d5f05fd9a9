// The extension module `lamina_inductor.host._cuda`. Importing it touches no driver.
#include "cuda_launcher.h"

namespace {

PyObject *set_front_end(PyObject *, PyObject *type) {
    const lamina_abi *abi = PyType_Check(type) ? lm_gpu_abi(reinterpret_cast<PyTypeObject *>(type)) : nullptr;
    if (!abi) return PyErr_Format(PyExc_TypeError, "expected a front end's tensor type, got %R", type);
    lm_gpu_set_default(abi);
    Py_RETURN_NONE;
}

PyObject *current_stream(PyObject *, PyObject *device) {
    long number = PyLong_AsLong(device);
    if (number == -1 && PyErr_Occurred()) return nullptr;
    const lamina_abi *abi = lm_gpu_default();
    if (!abi || !abi->stream) return PyErr_Format(PyExc_RuntimeError, "no front end with streams is known");
    void *stream = abi->stream((int)number);
    return PyErr_Occurred() ? nullptr : PyLong_FromVoidPtr(stream);
}

// (address, bytes, stream): device memory as bytes, when all that was on the stream before is done.
PyObject *read_memory(PyObject *, PyObject *arguments) {
    unsigned long long address, stream;
    Py_ssize_t bytes;
    if (!PyArg_ParseTuple(arguments, "KnK", &address, &bytes, &stream)) return nullptr;
    const Driver *cuda = lm_cuda();
    PyObject *result = cuda ? PyBytes_FromStringAndSize(nullptr, bytes) : nullptr;
    if (!result) return nullptr;
    auto on = reinterpret_cast<Opaque>(stream);
    if (lm_cuda_ok(bytes ? cuda->copy_out(PyBytes_AS_STRING(result), address, (size_t)bytes, on) : 0, "copying from the GPU") &&
        lm_cuda_ok(cuda->stream_synchronize(on), "copying from the GPU"))
        return result;
    Py_DECREF(result);
    return nullptr;
}

// (address, bytes-like, stream)
PyObject *write_memory(PyObject *, PyObject *arguments) {
    unsigned long long address, stream;
    Py_buffer view;
    if (!PyArg_ParseTuple(arguments, "Ky*K", &address, &view, &stream)) return nullptr;
    const Driver *cuda = lm_cuda();
    auto on = reinterpret_cast<Opaque>(stream);
    bool fine = cuda && lm_cuda_ok(view.len ? cuda->copy_in(address, view.buf, (size_t)view.len, on) : 0, "copying to the GPU") &&
                lm_cuda_ok(cuda->stream_synchronize(on), "copying to the GPU");
    PyBuffer_Release(&view);
    if (!fine) return nullptr;
    Py_RETURN_NONE;
}

PyMethodDef methods[] = {
    {"device_info", lm_cuda_device_info, METH_O, "(name, major, minor, multiprocessors, driver version) of a GPU; RuntimeError without one."},
    {"set_front_end", set_front_end, METH_O, "The tensor type whose memory programs without tensor inputs use."},
    {"set_cublas", lm_set_cublas, METH_O, "Path of the cuBLAS library, which the first product opens, or open_cublas."},
    {"open_cublas", lm_open_cublas, METH_O, "Open cuBLAS for a device now; RuntimeError where it cannot be loaded."},
    {"current_stream", current_stream, METH_O, "Address of the front end's current stream for a device."},
    {"read_memory", read_memory, METH_VARARGS, "(address, bytes, stream): device memory as bytes; waits."},
    {"write_memory", write_memory, METH_VARARGS, "(address, data, stream): bytes to device memory; waits."},
    {"check_errors", lm_gpu_check_errors, METH_NOARGS, "Raise what a kernel that has run found wrong."},
    {"release_workspaces", lm_gpu_release, METH_NOARGS, "Give back the memory that programs share; returns how many bytes."},
    {nullptr, nullptr, 0, nullptr},
};
PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_cuda", "Launcher of GPU programs.", -1, methods, nullptr, nullptr, nullptr, nullptr};

} // namespace

PyMODINIT_FUNC PyInit__cuda(void) {
    PyObject *module = PyModule_Create(&definition);
    if (module && lm_gpu_program_setup(module) < 0) Py_CLEAR(module);
    return module;
}
