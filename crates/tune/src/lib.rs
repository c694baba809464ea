//! The loop: a resumable plan of steps
