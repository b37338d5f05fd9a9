// The launcher's own types, shared by its files.
#ifndef LAMINA_LAUNCHER_H
#define LAMINA_LAUNCHER_H
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <lamina/tensor_abi.h>

#include "host_abi.h"

typedef int64_t (*lm_run)(const lm_host *, void *const *, const int64_t *, char *);
typedef void (*lm_layout)(const int64_t *, int64_t *);

struct InputPlan {
    int dtype = -1; // -1: not a tensor
    int ndim = 0;
    bool written = false;
    Py_ssize_t at = 0; // where its sizes (then strides) stand in the numbers
};

struct OutputPlan {
    int dtype;
    int ndim;
    Py_ssize_t at;
    bool contiguous; // known for static numbers; otherwise false and found out per call
};

struct SizePlan {
    Py_ssize_t input;
    int dim; // -1: the input itself is the number
};

enum ResultKind { kOutput, kInput, kConstant, kNumber, kAlias };

struct ResultPlan {
    ResultKind kind;
    Py_ssize_t index;
    PyObject *constant; // owned
};

// One input as seen for one call.
struct View {
    PyObject *object = nullptr; // borrowed from the arguments, or owned (`owned`) after an adapter made it
    bool owned = false;
    const lamina_abi *abi = nullptr; // null: a NumPy array
    const int64_t *sizes = nullptr;
    const int64_t *strides = nullptr;
    void *data = nullptr;
    uint64_t *version = nullptr;
    int ndim = 0;
    int dtype = -1;
    int stride_unit = 1; // bytes of one stride step, for NumPy; 1 for elements
    bool writable = true;
};

// inputs.cpp
int lm_inputs_setup(void);                                       // imports NumPy; -1 with an exception set
bool lm_read(PyObject *object, View *view);                       // false (no exception): not a tensor we can read
PyObject *lm_new_array(int dtype, int ndim, const int64_t *sizes, const int64_t *strides, bool contiguous);
void *lm_array_data(PyObject *array);
PyObject *lm_register_dtype(PyObject *, PyObject *arguments);     // (code, type number, item size)
PyObject *lm_array_of(PyObject *, PyObject *value);         // a NumPy view of a tensor
PyObject *lm_like(PyObject *, PyObject *arguments);           // (array, like): a tensor over the array

// workspace.cpp
char *lm_take_workspace(int64_t bytes);  // needs the GIL; NULL when there is no memory
void lm_give_workspace(char *memory);    // needs the GIL
int64_t lm_workspace_held(void);

extern PyTypeObject *lm_program_type;
int lm_program_setup(PyObject *module);
PyObject *lm_set_blas(PyObject *, PyObject *addresses);

#endif
