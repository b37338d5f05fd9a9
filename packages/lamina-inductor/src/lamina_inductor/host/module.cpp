// The extension module `lamina_inductor.host._launcher`.
#include "launcher.h"

namespace {

PyObject *get_threads(PyObject *, PyObject *) { return PyLong_FromLongLong(lm_pool_threads()); }

PyObject *set_threads(PyObject *, PyObject *value) {
    long long threads = PyLong_AsLongLong(value);
    if (threads == -1 && PyErr_Occurred()) return nullptr;
    if (threads < 1) return PyErr_Format(PyExc_ValueError, "the number of threads must be at least 1, got %lld", threads);
    lm_pool_set_threads(threads);
    Py_RETURN_NONE;
}

PyObject *workspace_held(PyObject *, PyObject *) { return PyLong_FromLongLong(lm_workspace_held()); }

PyMethodDef methods[] = {
    {"num_threads", get_threads, METH_NOARGS, "Threads a kernel may use."},
    {"set_num_threads", set_threads, METH_O, "Set the threads a kernel may use, from the next call on."},
    {"register_dtype", lm_register_dtype, METH_VARARGS, "(code, NumPy type number, item size): a type from ml_dtypes."},
    {"set_blas", lm_set_blas, METH_O, "Addresses of cblas_sgemm, dgemm, cgemm, zgemm (0: none)."},
    {"array_of", lm_array_of, METH_O, "A NumPy view of a tensor's memory (an array is returned as it is)."},
    {"like", lm_like, METH_VARARGS, "(array, like): a tensor of the front end of `like` over the array's memory."},
    {"workspace_held", workspace_held, METH_NOARGS, "Bytes of workspace memory the process holds now."},
    {nullptr, nullptr, 0, nullptr},
};
PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_launcher", "Launcher of generated programs.", -1, methods,
                          nullptr, nullptr, nullptr, nullptr};

} // namespace

PyMODINIT_FUNC PyInit__launcher(void) {
    lm_pool_install();
    PyObject *module = PyModule_Create(&definition);
    if (!module) return nullptr;
    if (lm_inputs_setup() < 0 || lm_program_setup(module) < 0) {
        Py_DECREF(module);
        return nullptr;
    }
    return module;
}
