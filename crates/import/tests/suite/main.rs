//! Texts of other programs, articles and tables, and the records made of them.

#![forbid(unsafe_code)]

mod articles;
mod damaged;
mod texts;
