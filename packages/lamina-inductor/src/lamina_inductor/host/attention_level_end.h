// What attention_vectors.h and the level before it defined.
#undef LM_AT
#undef LM_VECTOR
#undef LM_ROWS
#undef LM_VECTORS
#undef LM_VEC
#undef LM_FAST
#undef LM_SLOW
