//! Matrices on the stand-in kernel and machine (docs/testing.md): wherever and by whomever cells are computed, they come out the
//! same, and once.

mod engine;
mod hostile;
mod objects;
mod race;
mod simulation;
mod slurm;
mod support;
