//! Matrices on the stand-in kernel and machine (docs/testing.md): every machine computes the same
//! cells, once.

mod engine;
mod hostile;
mod objects;
mod race;
mod simulation;
mod slurm;
mod support;
