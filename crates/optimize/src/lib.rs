//! Profile to recipe inputs to tuned kernel, and the proof that it took
