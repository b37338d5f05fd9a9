// Workspaces of running programs, shared by all programs of the process: what forward held, backward takes.
//
// A few blocks are kept between calls. Fresh pages cost more than most kernels, so blocks of some megabytes ask for huge
// pages. All of it happens under the GIL.
#include "launcher.h"

#include <stdlib.h>
#include <sys/mman.h>

namespace {

struct Block {
    char *memory;
    int64_t bytes;
    bool taken;
    int loose; // how often in a row it was taken for much less than its size
};
constexpr int kBlocks = 16;
constexpr int kKept = 4; // free blocks kept at most
constexpr int kLoose = 32; // a block that was much too large so often in a row is given up for one of the right size
Block blocks[kBlocks];

char *allocate(int64_t bytes) {
    size_t unit = bytes >= (4 << 20) ? (2 << 20) : 4096;
    size_t rounded = (static_cast<size_t>(bytes) + unit - 1) / unit * unit;
    void *memory = aligned_alloc(unit, rounded);
#ifdef MADV_HUGEPAGE
    if (memory && unit > 4096) madvise(memory, rounded, MADV_HUGEPAGE);
#endif
    return static_cast<char *>(memory);
}

int best_fit(int64_t bytes) {
    int best = -1;
    for (int i = 0; i < kBlocks; ++i) {
        const Block &block = blocks[i];
        if (block.memory && !block.taken && block.bytes >= bytes && (best < 0 || block.bytes < blocks[best].bytes)) best = i;
    }
    return best;
}

void release(int i) {
    free(blocks[i].memory);
    blocks[i] = {nullptr, 0, false, 0};
}

// So that memory does not pile up: the smallest free block goes when more than `keep` are free, or all such (`every`).
void drop_smallest_free(int keep, bool every) {
    for (;;) {
        int count = 0, smallest = -1;
        for (int i = 0; i < kBlocks; ++i)
            if (blocks[i].memory && !blocks[i].taken) {
                ++count;
                if (smallest < 0 || blocks[i].bytes < blocks[smallest].bytes) smallest = i;
            }
        if (count <= keep) return;
        release(smallest);
        if (!every) return;
    }
}

} // namespace

char *lm_take_workspace(int64_t bytes) {
    static char empty[64];
    if (bytes <= 0) return empty;
    int i = best_fit(bytes);
    if (i >= 0) {
        blocks[i].loose = blocks[i].bytes > bytes + bytes / 8 ? blocks[i].loose + 1 : 0;
        if (blocks[i].loose < kLoose || bytes < (4 << 20)) {
            blocks[i].taken = true;
            return blocks[i].memory;
        }
        release(i); // what needed it, a first call perhaps, does not run any more
    }
    drop_smallest_free(0, true); // all are too small: the new block serves their programs, too
    char *memory = allocate(bytes);
    if (!memory) return nullptr;
    for (Block &block : blocks)
        if (!block.memory) {
            block = {memory, bytes, true, 0};
            break;
        }
    return memory; // not in the table when that is full: then it is freed on return
}

void lm_give_workspace(char *memory) {
    for (Block &block : blocks)
        if (block.memory == memory) {
            block.taken = false;
            drop_smallest_free(kKept, false);
            return;
        }
    static char *const none = lm_take_workspace(0);
    if (memory != none) free(memory);
}

int64_t lm_workspace_held(void) {
    int64_t total = 0;
    for (const Block &block : blocks) total += block.bytes;
    return total;
}
