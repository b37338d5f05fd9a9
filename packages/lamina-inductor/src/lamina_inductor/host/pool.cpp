// The thread pool of generated programs.
//
// Why not OpenMP's: a child forked after an OpenMP region hangs with libgomp, a second pool (BLAS) would fight with it for
// the cores, and a wheel could not count on finding it. Here the BLAS runs with one thread inside our own blocks, a fork
// leaves the child with an empty pool that starts anew, and a call from inside a parallel body or from a second Python
// thread runs serially instead of oversubscribing.
//
// Every participant owns a contiguous range of the iterations, so that a thread meets the same part of a tensor in kernel
// after kernel; whoever is done takes pieces from the others. A worker that has not woken up is not waited for.
#include "host_abi.h"

#include <atomic>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#if defined(__x86_64__)
#include <immintrin.h>
#define LM_PAUSE() _mm_pause()
#else
#define LM_PAUSE() sched_yield()
#endif

namespace {

constexpr int kMaxThreads = 256;
constexpr int kSpins = 4000; // about 50 us: longer than the gap between two kernels of a program
constexpr int kPieces = 4;   // pieces per participant, for balance
constexpr int kAlign = 64;   // ranges of fine-grained iterations begin at multiples of this

enum State : int { kIdle, kRun, kBusy };

struct alignas(128) Worker {
    std::atomic<int> state{kIdle};
    std::atomic<int> sleeping{0};
    bool started = false;
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
};

struct alignas(128) Range {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
};

struct Job {
    lm_body body;
    void *context;
    int64_t piece;
    int participants;
};

Worker workers[kMaxThreads];
Range ranges[kMaxThreads];
Job job;
std::atomic<int> in_use{0};
std::atomic<int64_t> thread_count{1};

struct Scratch {
    void *memory = nullptr;
    int64_t bytes = 0;
    ~Scratch() { free(memory); }
};
thread_local Scratch scratch;

void take_part(int self) {
    const Job now = job;
    for (int step = 0; step < now.participants; ++step) {
        Range &range = ranges[(self + step) % now.participants];
        for (;;) {
            if (range.next.load(std::memory_order_relaxed) >= range.end) break;
            int64_t begin = range.next.fetch_add(now.piece, std::memory_order_relaxed);
            if (begin >= range.end) break;
            int64_t end = begin + now.piece;
            now.body(now.context, begin, end < range.end ? end : range.end);
        }
    }
}

void sleep_until_run(Worker &me) {
    pthread_mutex_lock(&me.mutex);
    me.sleeping.store(1);
    while (me.state.load() != kRun) pthread_cond_wait(&me.wake, &me.mutex);
    me.sleeping.store(0);
    pthread_mutex_unlock(&me.mutex);
}

void *worker_main(void *argument) {
    int self = static_cast<int>(reinterpret_cast<intptr_t>(argument));
    Worker &me = workers[self];
    for (;;) {
        int spins = 0;
        while (me.state.load(std::memory_order_acquire) != kRun) {
            if (++spins > kSpins) { sleep_until_run(me); spins = 0; }
            LM_PAUSE();
        }
        int expected = kRun;
        if (!me.state.compare_exchange_strong(expected, kBusy, std::memory_order_acquire)) continue;
        take_part(self);
        me.state.store(kIdle, std::memory_order_release);
    }
    return nullptr;
}

bool start(int self) {
    if (workers[self].started) return true;
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, 8 << 20);
    bool fine = pthread_create(&thread, &attributes, worker_main, reinterpret_cast<void *>(static_cast<intptr_t>(self))) == 0;
    pthread_attr_destroy(&attributes);
    workers[self].started = fine;
    return fine;
}

void post(int self) {
    Worker &worker = workers[self];
    worker.state.store(kRun);
    if (worker.sleeping.load()) {
        pthread_mutex_lock(&worker.mutex);
        pthread_cond_signal(&worker.wake);
        pthread_mutex_unlock(&worker.mutex);
    }
}

void collect(int self) {
    Worker &worker = workers[self];
    int expected = kRun; // not begun: everything is done already, so take the order back
    if (worker.state.compare_exchange_strong(expected, kIdle)) return;
    int spins = 0;
    while (worker.state.load(std::memory_order_acquire) != kIdle) {
        if (++spins > kSpins) sched_yield();
        LM_PAUSE();
    }
}

void after_fork_in_child() {
    // The threads are gone; forget them and start again when needed.
    for (Worker &worker : workers) {
        worker.started = false;
        worker.state.store(kIdle);
        worker.sleeping.store(0);
        pthread_mutex_init(&worker.mutex, nullptr);
        pthread_cond_init(&worker.wake, nullptr);
    }
    in_use.store(0);
}

} // namespace

extern "C" void lm_pool_install(void) {
    static bool done = false;
    if (!done) pthread_atfork(nullptr, nullptr, after_fork_in_child);
    done = true;
}

extern "C" int64_t lm_pool_threads(void) { return thread_count.load(); }

extern "C" void lm_pool_set_threads(int64_t threads) {
    thread_count.store(threads < 1 ? 1 : threads > kMaxThreads ? kMaxThreads : threads);
}

extern "C" void *lm_pool_scratch(int64_t bytes) {
    if (bytes > scratch.bytes) {
        free(scratch.memory);
        scratch.bytes = 0;
        int64_t rounded = (bytes + 4095) / 4096 * 4096;
        scratch.memory = aligned_alloc(4096, static_cast<size_t>(rounded));
        if (scratch.memory) scratch.bytes = rounded;
    }
    return scratch.memory;
}

extern "C" void lm_pool_parallel(lm_body body, void *context, int64_t n, int64_t grain) {
    if (n <= 0) return;
    if (grain < 1) grain = 1;
    int64_t participants = n / grain;
    if (participants > thread_count.load(std::memory_order_relaxed)) participants = thread_count.load();
    int expected = 0;
    if (participants < 2 || !in_use.compare_exchange_strong(expected, 1, std::memory_order_acquire)) {
        body(context, 0, n);
        return;
    }
    int started = 1;
    while (started < participants && start(started)) ++started;
    int64_t share = (n + started - 1) / started;
    int64_t piece = (share + kPieces - 1) / kPieces;
    piece = piece < grain ? (grain < share ? grain : share) : piece;
    if (grain >= kAlign) { // a vectorised loop's remainder may round differently, so it must not depend on the threads
        share = (share + kAlign - 1) / kAlign * kAlign;
        piece = (piece + kAlign - 1) / kAlign * kAlign;
    }
    job = {body, context, piece, started};
    for (int i = 0; i < started; ++i) {
        int64_t begin = share * i, end = share * (i + 1);
        ranges[i].next.store(begin < n ? begin : n, std::memory_order_relaxed);
        ranges[i].end = end < n ? end : n;
    }
    for (int i = 1; i < started; ++i) post(i);
    take_part(0);
    for (int i = 1; i < started; ++i) collect(i);
    in_use.store(0, std::memory_order_release);
}
