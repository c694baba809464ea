//! Single test program with a module per file.

mod advise;
mod anatomy_page;
mod character;
mod figure_1;
mod inlining;
mod json_docs;
mod page;
mod path_length;
mod path_page;
mod profile_page;
mod sample;
mod selections;
mod sums;
mod synthetic;
mod tables;
mod text;
