/* The eval-frame hook, the cache per code object and the state per thread. */
#pragma once
#include <Python.h>

#include <memory>
#include <vector>

#include "guards.h"

namespace lamina {

/* One compiled form of a frame. */
struct Entry {
    std::shared_ptr<GuardProgram> guards;
    PyCodeObject *code = nullptr; /* runs in the frame */
    PyCodeObject *flat = nullptr; /* the same with every slot a positional argument, inputs too; for frames without room */
    PyObject *info = nullptr;     /* the Python side's record */
    Entry() = default;
    Entry(const Entry &) = delete;
    ~Entry();
};

/* What one owner (one `optimize` configuration) knows of a code object. */
struct OwnerState {
    long owner = 0;
    bool skip = false;     /* never ask the compiler */
    bool frozen = false;   /* use the entries, make no new ones */
    bool busy = false;     /* some thread compiles this code now */
    std::vector<std::shared_ptr<Entry>> entries; /* most recently used first */
};

struct CodeState {
    bool skip = false; /* for every owner: replacement codes, the compiler's own functions */
    std::vector<std::unique_ptr<OwnerState>> owners;
    OwnerState *find(long owner, bool create);
};

/* What this thread captures with; `callback` NULL: nothing. */
struct ThreadCapture {
    PyObject *callback = nullptr; /* borrowed: the compiled function that runs holds it */
    long owner = 0;
    bool compiling = false;
};
extern thread_local ThreadCapture capture;

/* Sets what the thread captures with for a scope; installs the hook while any thread captures. */
class CaptureScope {
  public:
    CaptureScope(PyObject *callback, long owner);
    ~CaptureScope();
    CaptureScope(const CaptureScope &) = delete;

  private:
    ThreadCapture saved;
};

void start_hook();
void after_fork_in_child();
/* The state of a code object; with `create` never NULL except on error. */
CodeState *code_state(PyCodeObject *code, bool create);

struct Counters {
    long long hits = 0, misses = 0, fallbacks = 0, compiled = 0;
};
extern Counters counters;

/* objects.cpp */
int add_objects(PyObject *module);

}  // namespace lamina
