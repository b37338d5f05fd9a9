/* Narrow C interface over the CPython frame. Only _frame.c sees the internal headers; CPython 3.11 to 3.14. */
#ifndef LAMINA_FRAME_H
#define LAMINA_FRAME_H
#include <Python.h>
#ifdef __cplusplus
extern "C" {
#endif

struct _PyInterpreterFrame;
typedef struct _PyInterpreterFrame lf_frame;
typedef PyObject *(*lf_evaluator)(PyThreadState *, lf_frame *, int);

/* A not yet started frame of a plain function. All references are borrowed. */
typedef struct {
    PyCodeObject *code;
    PyObject *globals;
    PyObject *builtins;
    PyObject *function;
    void *slots;   /* arguments: positional, keyword-only, *args, **kwargs */
    int arguments; /* how many, *args and **kwargs included */
} lf_view;

/* The frame's code, borrowed; NULL when it does not run a code object. */
PyCodeObject *lf_code(lf_frame *frame);
/* 1 and a filled view for a fresh frame of a plain function; 0 for generators, class bodies, modules, resumed frames. */
int lf_view_frame(lf_frame *frame, int throwflag, lf_view *view);
/* Argument i, borrowed; NULL never for a fresh frame. */
PyObject *lf_argument(const lf_view *view, int i);
/* Cells of the free variables: borrowed tuple, or NULL. */
PyObject *lf_closure(const lf_view *view);
/* Do both take the same arguments and free variables, and may `replacement` run in a frame of `original`? */
int lf_fits(PyCodeObject *original, PyCodeObject *replacement);

/* Evaluate the same frame with other code. `inputs`: NULL, or what goes into the slot behind the arguments (the reference is
 * taken). *done = 0, and nothing is taken, when the data stack has no room: use lf_run_by_call. */
PyObject *lf_run_in_place(PyThreadState *, lf_frame *, PyCodeObject *replacement, PyObject *inputs, lf_evaluator, int *done);
/* Call a function made from the flat form of the replacement (every slot a positional argument), then drop the frame. */
PyObject *lf_run_by_call(PyThreadState *, lf_frame *, PyCodeObject *flat, PyObject *inputs);
/* Drop a frame that never ran. From 3.12 on the evaluator owns frames, so it must pass through it. */
void lf_drop(PyThreadState *, lf_frame *);
/* Code that returns None and has no RESUME, for lf_drop. A reference is kept. */
void lf_set_drop_code(PyCodeObject *code);
/* The evaluator, without charging the C recursion limit of 3.12 (which setrecursionlimit does not lift). */
PyObject *lf_evaluate(PyThreadState *, lf_frame *, int throwflag, lf_evaluator);

lf_evaluator lf_get_evaluator(void);
void lf_set_evaluator(lf_evaluator);
Py_ssize_t lf_extra_index(freefunc);
void *lf_extra_get(PyCodeObject *, Py_ssize_t index);
int lf_extra_set(PyCodeObject *, Py_ssize_t index, void *);

#ifdef __cplusplus
}
#endif
#endif
