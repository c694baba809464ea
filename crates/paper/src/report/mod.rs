//! Outcomes as text, Markdown and pages.

pub mod findings;
pub mod markdown;
pub mod paper;
pub mod paper_page;
mod plain;
pub mod study;
mod study_page;
pub mod survey;
mod survey_page;
