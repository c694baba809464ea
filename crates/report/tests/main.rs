//! One program of tests, in which a file is a module.

mod advise;
mod anatomy_page;
mod character;
mod figure_1;
mod inlining;
mod page;
mod paper;
mod path_length;
mod path_page;
mod profile_page;
mod sample;
mod selections;
mod sums;
mod synthetic;
mod tables;
mod text;
