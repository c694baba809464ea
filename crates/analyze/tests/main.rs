//! All tests in one program; each file is a module.

mod by_hand;
mod damage;
mod operations;
mod reference;
mod single_paths;
mod support;
