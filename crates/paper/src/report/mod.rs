//! Outcomes as text, Markdown and pages.

mod findings;
pub mod markdown;
pub mod paper;
pub mod paper_page;
mod parts;
mod recipes;
pub mod study;
pub mod survey;
